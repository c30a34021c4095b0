//! Writes lines of JSON. Text in them cannot break a line or control a terminal. It knows no types of lines.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use crate::printable::is_harmless;

/// Writes JSON lines.
#[derive(Debug)]
pub struct Json<W>(pub W);

/// Compact, with control characters escaped: serde_json itself escapes those below U+0020 only.
struct Harmless;

impl Formatter for Harmless {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, letter)) = rest.char_indices().find(|&(_, letter)| !is_harmless(letter)) {
            out.write_all(&rest.as_bytes()[..at])?;
            for unit in letter.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = &rest[at + letter.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}

impl<W: Write> Json<W> {
    pub(super) fn line(&mut self, line: impl Serialize) -> io::Result<()> {
        line.serialize(&mut Serializer::with_formatter(&mut self.0, Harmless))?;
        writeln!(self.0)
    }
}
