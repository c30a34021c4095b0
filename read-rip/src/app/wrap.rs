//! Breaks long lines between words where a terminal would break them anywhere, and cuts those of source code.
//!
//! Only text on a terminal passes through it. Into a pipe, each line stays whole, so that a search finds it, and
//! scripts read it.
//!
//! If lines have signs that are not words, a legend follows the last line.

use std::io::{self, Write};

use textwrap::core::display_width;
use textwrap::{Options, WordSplitter, WrapAlgorithm};

/// Narrower terminals get lines of this width.
const WIDTH_MIN: usize = 40;
/// The continuation of a line begins this much further to the right.
const INDENT: usize = 4;
/// A space at which no line is broken.
const NO_BREAK: &str = "\u{a0}";
/// What may follow a number.
const UNITS: [&str; 9] = ["ns", "us", "ms", "s", "min", "h", "d", "KiB", "%"];
/// Ends all colours.
const RESET: &str = "\x1b[0m";

/// Writes lines that are no longer than a terminal is wide, if it can break them between words.
pub(super) struct Wrapping<W: Write> {
    inner: W,
    width: usize,
    /// The beginning of a line.
    pending: Vec<u8>,
    /// The signs so far; `None` if there is to be no legend.
    signs: Option<Signs>,
}

/// Which signs lines had.
#[derive(Default)]
struct Signs {
    sequence: bool,
    address: bool,
    inferred: bool,
}

impl<W: Write> Wrapping<W> {
    pub(super) fn new(inner: W, width: usize) -> Wrapping<W> {
        Wrapping { inner, width: width.max(WIDTH_MIN), pending: Vec::new(), signs: None }
    }

    /// The same, with a legend.
    pub(super) fn with_legend(inner: W, width: usize) -> Wrapping<W> {
        Wrapping { signs: Some(Signs::default()), ..Wrapping::new(inner, width) }
    }

    /// Writes the legend of the signs since the last one.
    pub(super) fn end(&mut self) -> io::Result<()> {
        let legend = self.signs.as_mut().and_then(|signs| std::mem::take(signs).legend());
        legend.map_or(Ok(()), |legend| self.inner.write_all(&wrap(legend.as_bytes(), self.width)))
    }
}

impl<W: Write> Write for Wrapping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.pending.extend(piece);
            if piece.ends_with(b"\n") {
                if let (Some(signs), Ok(line)) = (&mut self.signs, std::str::from_utf8(&self.pending)) {
                    signs.note(line);
                }
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

impl Signs {
    fn note(&mut self, line: &str) {
        let is_sequence = |after: &str| {
            after.split_once('}').is_some_and(|(digits, _)| {
                !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
            })
        };
        self.sequence |= line.split('{').skip(1).any(is_sequence);
        self.address |= line.contains("<0x");
        self.inferred |= line.trim_start().starts_with("? ");
    }

    /// One line that explains the signs; `None` if there were none.
    fn legend(self) -> Option<String> {
        let parts = [
            (self.sequence, "{5}: the fifth word that the thread recorded"),
            (self.address, "<0x1f>: an address in the program or library, where a line has several"),
            (self.inferred, "?: found on the stack, and perhaps no caller"),
        ];
        let said: Vec<&str> =
            parts.into_iter().filter_map(|(is_there, text)| is_there.then_some(text)).collect();
        (!said.is_empty()).then(|| format!("Signs: {}.\n", said.join("; ")))
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
    let lines = textwrap::fill(&kept_together(&text[own..]), options);
    (lines.replace(NO_BREAK, " ") + end).into_bytes()
}

/// A text in which numbers do not part from what they count: `12 s`, `task 3`.
fn kept_together(text: &str) -> String {
    let mut words = text.split(' ').peekable();
    let mut kept = String::with_capacity(text.len());
    while let Some(word) = words.next() {
        kept.push_str(word);
        let Some(&next) = words.peek() else { break };
        let unit = next.trim_end_matches(|letter: char| letter.is_ascii_punctuation() && letter != '%');
        let is_length = word.ends_with(|last: char| last.is_ascii_digit()) && UNITS.contains(&unit);
        let is_task = word.ends_with("[task") && next.starts_with(|first: char| first.is_ascii_digit());
        kept.push_str(if is_length || is_task { NO_BREAK } else { " " });
    }
    kept
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
    fn numbers_stay_with_their_units() {
        let line = "one[task 3] waits for the lock, for 12 s, on a processor, and 31 % of the others\n";
        assert_eq!(
            wrapped(line),
            "one[task 3] waits for the lock, for\n    12 s, on a processor, and 31 % of\n    the others\n"
        );
    }

    #[test]
    fn signs_have_a_legend_where_they_occur() {
        let legend = |text: &str| {
            let mut out = Wrapping::with_legend(Vec::new(), 200);
            out.write_all(text.as_bytes()).unwrap();
            out.flush().unwrap();
            out.inner.clear();
            out.end().unwrap();
            String::from_utf8(out.inner).unwrap()
        };
        assert_eq!(legend("main[1]: a.c:1, {x}, is it so? yes\n"), "");
        assert_eq!(
            legend("    transfer bank.c:14\n  ? main bank.c:30\n"),
            "Signs: ?: found on the stack, and perhaps no caller.\n"
        );
        let all = legend("main[1]: {12}a.c:1<0x1000>, {13}a.c:2\n");
        assert!(all.starts_with("Signs: {5}: ") && all.contains("; <0x1f>: ") && !all.contains("?"), "{all}");
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
