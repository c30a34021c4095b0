//! Text as HTML, JSON for an element of HTML, and the policy of the page.

use std::fmt;
use std::io::{self, Write};

use read_rip_report::printable;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter};
use sha2::{Digest, Sha256};

/// A text as the content of an element, or as a quoted attribute. What would do something or show nothing is escaped.
pub(super) struct Text<'a>(pub(super) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&quick_xml::escape::escape(&*printable(self.0)))
    }
}

/// The value of the policy: nothing may be loaded, and only these texts of a style and a script have effect.
pub(super) fn policy(style: &str, script: &str) -> String {
    format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
        source(style),
        source(script)
    )
}

/// How a policy names the text of an element.
fn source(text: &str) -> String {
    format!("sha256-{}", base64(&Sha256::digest(text)))
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let all = three.iter().chain(&[0; 2]).take(3).fold(0, |all, &byte| all << 8 | usize::from(byte));
        for at in 0..4 {
            let letter = LETTERS[all >> (18 - 6 * at) & 63];
            out.push(if at <= three.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

/// Writes JSON that no parser of HTML takes for markup, and that is a literal of a script too.
pub(super) fn json(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(out, InElement);
    Ok(value.serialize(&mut serializer)?)
}

/// Escapes the letters of markup, and the ends of lines that JSON does not know.
struct InElement;

impl Formatter for InElement {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut written = 0;
        for (at, letter) in fragment.match_indices(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            CompactFormatter.write_string_fragment(out, &fragment[written..at])?;
            written = at + letter.len();
            let code = letter.chars().next().map_or(0, u32::from);
            write!(out, "\\u{code:04x}")?;
        }
        CompactFormatter.write_string_fragment(out, &fragment[written..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_the_standard() {
        assert_eq!(source("alert('Hello, world.');"), "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=");
        let encoded = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(encoded, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }

    #[test]
    fn json_in_an_element_cannot_end_it_and_says_the_same() {
        let nasty = "</script><!--&amp;\u{2028}\u{2029}\"\\\n\u{0}ü";
        let mut out = Vec::new();
        json(&mut out, &[nasty]).unwrap_or_default();
        let out = String::from_utf8_lossy(&out);
        assert!(!out.contains(['<', '>', '&', '\u{2028}', '\u{2029}', '\n', '\0']), "{out}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&out).unwrap_or_default(), [nasty]);
    }

    #[test]
    fn text_has_no_markup_and_nothing_that_hides() {
        let shown = Text("<b a='\"'>&\u{202e}\0</b>").to_string();
        assert_eq!(shown, "&lt;b a=&apos;&quot;&apos;&gt;&amp;\\u{202e}\\u{0}&lt;/b&gt;");
    }
}
