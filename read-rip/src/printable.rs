//! Text of unknown origin, made safe for a terminal.
//!
//! It escapes characters, and changes nothing else.

use std::borrow::Cow;

/// Replaces control characters, and characters that change the direction of writing, by their escapes.
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

/// Whether a terminal shows this character and does nothing else.
pub fn is_harmless(letter: char) -> bool {
    !(letter.is_control()
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_send_commands_to_the_terminal() {
        assert_eq!(printable("worker 7: ü"), "worker 7: ü");
        assert_eq!(printable("a\x1b[31mb\nc\u{202e}d\u{9b}e"), "a\\u{1b}[31mb\\nc\\u{202e}d\\u{9b}e");
    }
}
