//! Breaks long lines between words where a terminal would break them anywhere, and cuts those of source code.
//!
//! Only text for people passes through it: not JSON, and not the lines that scripts read. Into a pipe, each line stays
//! whole, so that a search finds it.

use std::io::{self, Write};

use textwrap::core::display_width;
use textwrap::{Options, WordSplitter, WrapAlgorithm};

/// Narrower terminals get lines of this width.
const WIDTH_MIN: usize = 40;
/// The continuation of a line begins this much further to the right.
const INDENT: usize = 4;
/// Ends all colours.
const RESET: &str = "\x1b[0m";

/// Writes lines that are no longer than a terminal is wide, if it can break them between words.
pub(super) struct Wrapping<W: Write> {
    inner: W,
    width: usize,
    /// The beginning of a line.
    pending: Vec<u8>,
}

impl<W: Write> Wrapping<W> {
    pub(super) fn new(inner: W, width: usize) -> Wrapping<W> {
        Wrapping { inner, width: width.max(WIDTH_MIN), pending: Vec::new() }
    }
}

impl<W: Write> Write for Wrapping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.pending.extend(piece);
            if piece.ends_with(b"\n") {
                let wrapped = wrap(&self.pending, self.width);
                self.pending.clear();
                self.inner.write_all(&wrapped)?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.pending);
        self.inner.write_all(&rest)?;
        self.inner.flush()
    }
}

/// Lines from standard error or output, broken where they are too long.
pub(super) fn wrap(line: &[u8], width: usize) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(line) else { return line.to_vec() };
    // Bytes are at least as many as columns.
    if text.len() <= width {
        return line.to_vec();
    }
    let (text, end) = text.strip_suffix('\n').map_or((text, ""), |text| (text, "\n"));
    if is_source(text) {
        return (cut(text, width) + end).into_bytes();
    }
    let own = text.len() - text.trim_start_matches(' ').len();
    let (first, indent) = (" ".repeat(own), " ".repeat(own + INDENT));
    let options = Options::new(width)
        .initial_indent(&first)
        .subsequent_indent(&indent)
        .break_words(false)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    (textwrap::fill(&text[own..], options) + end).into_bytes()
}

/// Whether it is a line of source code with its number, or one of the labels below it, as `26 |`.
fn is_source(text: &str) -> bool {
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        match letter {
            '|' => return true,
            ' ' | '0'..='9' => {}
            '\x1b' => end_colour(&mut rest),
            _ => break,
        }
    }
    false
}

/// The beginning of a line, as wide as a terminal: it shows by an ellipsis that there is more.
fn cut(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let (mut rest, mut left) = (text.chars(), width - 1);
    let mut end = 0;
    while let Some(letter) = rest.next() {
        if letter == '\x1b' {
            end_colour(&mut rest);
        } else {
            let columns = display_width(letter.encode_utf8(&mut [0; 4]));
            if columns > left {
                break;
            }
            left -= columns;
        }
        end = text.len() - rest.as_str().len();
    }
    let reset = if text.contains('\x1b') { RESET } else { "" };
    format!("{}{reset}…", &text[..end])
}

/// Passes the rest of an escape sequence that sets a colour.
fn end_colour(rest: &mut std::str::Chars<'_>) {
    let _ = rest.find(|&letter| letter == 'm');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str) -> String {
        let mut out = Wrapping::new(Vec::new(), 40);
        // In pieces, as formatting writes them.
        text.as_bytes().chunks(3).for_each(|piece| out.write_all(piece).unwrap());
        out.flush().unwrap();
        String::from_utf8(out.inner).unwrap()
    }

    #[test]
    fn long_lines_are_broken_between_words_and_continue_indented() {
        assert_eq!(
            wrapped("  held by worker[11] at server::cache::get cache.rs:12, for 3.2 s\nshort\n"),
            "  held by worker[11] at\n      server::cache::get cache.rs:12,\n      for 3.2 s\nshort\n"
        );
    }

    #[test]
    fn source_lines_and_their_labels_are_cut() {
        assert_eq!(
            wrapped("\x1b[94m26\x1b[0m \x1b[94m|\x1b[0m   let guard = cache.lock(\x1b[91m).unwrap();\n"),
            "\x1b[94m26\x1b[0m \x1b[94m|\x1b[0m   let guard = cache.lock(\x1b[91m).unwrap(\x1b[0m…\n"
        );
        let label = "   |     ------------- writer[1] holds cache";
        assert_eq!(wrapped(&format!("{label}\n")), format!("{}…\n", &label[..39]));
        assert_eq!(
            wrapped("   |     ------------- writer[1] 線線線線線\n"),
            "   |     ------------- writer[1] 線線線…\n"
        );
        assert!(is_source("  1 | x") && !is_source("26 threads | x"));
    }

    #[test]
    fn colours_take_no_columns_and_long_words_stay_whole() {
        let line = "\x1b[1m\x1b[31mproven deadlock\x1b[0m: 2 threads wait here";
        assert_eq!(wrapped(line), line);
        let path = "x".repeat(60);
        assert_eq!(wrapped(&format!("a {path}\nlast")), format!("a\n    {path}\nlast"));
    }
}
