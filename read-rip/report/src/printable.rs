//! Text of unknown origin, made safe for a terminal; and text that was made for a terminal, as plain lines.
//!
//! It escapes characters and removes colours, and changes nothing else.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// Characters that do something, or show nothing: control characters, characters of format (which change the direction
/// of writing, among others), separators of lines, and those that a font shows as nothing if it does not know them.
static HARMFUL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]").ok());

/// Replaces characters that do something in a terminal or that nobody sees by their escapes.
///
/// The names of threads, locks and files come from the recorded program, or from whoever wrote the file. In a
/// terminal they must not move the cursor, change colours or hide text.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().fold(String::new(), |mut out, letter| {
        if is_harmless(letter) {
            out.push(letter);
        } else {
            out.extend(letter.escape_default());
        }
        out
    }))
}

/// The lines of a text, without colours.
pub fn plain_lines(text: &[u8]) -> Vec<String> {
    let text = anstream::adapter::strip_bytes(text).into_vec();
    String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
}

/// Whether a terminal shows this character and does nothing else.
pub(crate) fn is_harmless(letter: char) -> bool {
    if letter.is_ascii() {
        return !letter.is_ascii_control();
    }
    HARMFUL.as_ref().is_some_and(|harmful| !harmful.is_match(letter.encode_utf8(&mut [0; 4])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_send_commands_to_the_terminal() {
        assert_eq!(printable("worker 7: ü"), "worker 7: ü");
        assert_eq!(printable("a\x1b[31mb\nc\u{202e}d\u{9b}e"), "a\\u{1b}[31mb\\nc\\u{202e}d\\u{9b}e");
    }

    #[test]
    fn characters_that_nobody_sees_are_escaped() {
        // A mark of direction, a soft hyphen, a word joiner, a vowel separator, a filler, an annotation and a tag.
        for letter in
            "\u{61c}\u{ad}\u{2060}\u{180e}\u{3164}\u{fff9}\u{e0041}\u{fe0f}\u{2028}\u{200b}\u{feff}".chars()
        {
            assert_eq!(printable(&format!("a{letter}b")), format!("a{}b", letter.escape_unicode()));
        }
        for text in ["ß", "日本", "नमस्ते", "e\u{301}", "🦀"] {
            assert_eq!(printable(text), text);
        }
    }
}
