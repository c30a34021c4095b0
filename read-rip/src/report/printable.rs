//! Text from a ring, made safe for a terminal; and small formats.

use std::borrow::Cow;

/// Replaces control characters, and those that turn the direction of writing, by their escapes.
///
/// Names of threads and files come from the recorded program, or from whoever wrote the file. In a terminal
/// they must not move the cursor, change colours or hide text.
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

/// Whether a terminal shows a character and does nothing else.
pub(super) fn is_harmless(letter: char) -> bool {
    !(letter.is_control()
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'))
}

/// A number of things: `1 thread`, `2 threads`.
pub fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// A duration for people: the two largest units.
pub fn age(duration_ns: u64) -> String {
    let seconds = duration_ns / 1_000_000_000;
    match seconds {
        0 => format!("{} ms", duration_ns / 1_000_000),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_reach_the_terminal_as_commands() {
        assert_eq!(printable("worker 7: ü"), "worker 7: ü");
        assert_eq!(printable("a\x1b[31mb\nc\u{202e}d\u{9b}e"), "a\\u{1b}[31mb\\nc\\u{202e}d\\u{9b}e");
    }

    #[test]
    fn ages_are_short() {
        assert_eq!(age(999_000_000), "999 ms");
        assert_eq!(age(59_999_000_000), "59 s");
        assert_eq!(age(7_384_000_000_000), "2 h 3 min");
        assert_eq!(age(183_600_000_000_000), "2 d 3 h");
    }
}
