//! The syntax of `printf`: the formats of the events that programs in C and C++ record.
//!
//! It finds the conversions of a format, and which value each of them shows. It formats nothing. The reader formats,
//! and the recorder looks up how a `char *` is shown before it reads the characters.
//!
//! ```text
//! % [n$] [flags] [width] [. precision] [length] letter        width and precision: a number, or * [n$]
//! ```
//!
//! ISO C and POSIX define the syntax. A conversion that it does not know is text, and so is `%m`, which shows `errno`.

/// A piece of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'f> {
    /// Shown as it is.
    Text(&'f [u8]),
    /// A conversion.
    Conversion(Conversion<'f>),
}

/// A conversion, which shows a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion<'f> {
    /// How the format has it, from the per cent sign to the letter.
    pub source: &'f [u8],
    /// A set of `FLAG_*`.
    pub flags: u8,
    /// At least this many bytes.
    pub width: Count,
    /// Digits, or at most this many bytes of a text.
    pub precision: Count,
    /// The length modifier.
    pub length: Length,
    /// `d`, `x`, `s` and so on.
    pub letter: u8,
    /// Which of the event's values it shows, from 0.
    pub value: usize,
}

/// A width or a precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// It has none.
    None,
    /// A constant. One that is too large for the type is the largest.
    Constant(u32),
    /// The event's value with this index, from 0.
    Value(usize),
}

/// A length modifier: the type of the argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// None: `int`, `double`, or `char *`.
    None,
    /// `hh`: `char`.
    Char,
    /// `h`: `short`.
    Short,
    /// `l`, `ll`, `j`, `z`, `t`, `q`, `Z`: 64 bits. With `c` and `s`: the wide forms.
    Long,
    /// `L`: `long double`.
    LongDouble,
}

/// [`Conversion::flags`]: `-`, to the left.
pub const FLAG_LEFT: u8 = 1;
/// [`Conversion::flags`]: `+`, with a sign.
pub const FLAG_PLUS: u8 = 2;
/// [`Conversion::flags`]: a space in the place of the sign.
pub const FLAG_SPACE: u8 = 4;
/// [`Conversion::flags`]: `#`, the other form.
pub const FLAG_ALTERNATE: u8 = 8;
/// [`Conversion::flags`]: `0`, padded with zeros.
pub const FLAG_ZEROS: u8 = 16;

/// Iterates over the pieces of a format.
pub fn pieces(format: &[u8]) -> Pieces<'_> {
    Pieces { rest: format, next_value: 0 }
}

/// Returns the conversion that shows a value; `None` if there is none. `*` shows no value.
pub fn conversion_of(format: &[u8], value: usize) -> Option<Conversion<'_>> {
    pieces(format).find_map(|piece| match piece {
        Piece::Conversion(conversion) if conversion.value == value => Some(conversion),
        _ => None,
    })
}

/// See [`pieces`].
#[derive(Clone, Debug)]
pub struct Pieces<'f> {
    rest: &'f [u8],
    /// The value that the next conversion without an index shows.
    next_value: usize,
}

impl<'f> Iterator for Pieces<'f> {
    type Item = Piece<'f>;

    fn next(&mut self) -> Option<Piece<'f>> {
        if self.rest.is_empty() {
            return None;
        }
        let len = match self.rest.iter().position(|&byte| byte == b'%') {
            Some(0) => match self.conversion() {
                Ok(conversion) => {
                    self.rest = &self.rest[conversion.source.len()..];
                    return Some(Piece::Conversion(conversion));
                }
                Err(Unknown::PerCent(len)) => {
                    let (_, rest) = self.rest.split_at(len);
                    self.rest = rest;
                    return Some(Piece::Text(b"%"));
                }
                Err(Unknown::Text(len)) => len,
            },
            Some(at) => at,
            None => self.rest.len(),
        };
        let (text, rest) = self.rest.split_at(len);
        self.rest = rest;
        Some(Piece::Text(text))
    }
}

/// What stands at a per cent sign that begins no conversion, and how many bytes that are.
enum Unknown {
    /// `%%`.
    PerCent(usize),
    Text(usize),
}

/// A place in a format.
struct Cursor<'f> {
    format: &'f [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.format.get(self.at).copied()
    }

    /// Takes the next byte if it is this one.
    fn take(&mut self, byte: u8) -> bool {
        let is_it = self.peek() == Some(byte);
        self.at += usize::from(is_it);
        is_it
    }

    /// Takes a number; `None` if there is no digit.
    fn number(&mut self) -> Option<u32> {
        let mut number = None;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            number = Some(number.unwrap_or(0u32).saturating_mul(10).saturating_add(u32::from(digit - b'0')));
            self.at += 1;
        }
        number
    }

    /// Takes `n$`, and returns the index of the value from 0.
    fn index(&mut self) -> Option<usize> {
        let begin = self.at;
        match self.number() {
            Some(number @ 1..) if self.take(b'$') => Some(number as usize - 1),
            _ => {
                self.at = begin;
                None
            }
        }
    }

    fn flags(&mut self) -> u8 {
        let mut flags = 0;
        while let Some(byte) = self.peek() {
            flags |= match byte {
                b'-' => FLAG_LEFT,
                b'+' => FLAG_PLUS,
                b' ' => FLAG_SPACE,
                b'#' => FLAG_ALTERNATE,
                b'0' => FLAG_ZEROS,
                // Groups of digits, and the digits of a locale: the C locale has none.
                b'\'' | b'I' => 0,
                _ => break,
            };
            self.at += 1;
        }
        flags
    }

    /// Takes a width or a precision. A `*` without an index takes the next value.
    fn count(&mut self, next_value: &mut usize) -> Count {
        if self.take(b'*') {
            return Count::Value(self.index().unwrap_or_else(|| take_next(next_value)));
        }
        self.number().map_or(Count::None, Count::Constant)
    }

    fn length(&mut self) -> Length {
        let length = match self.peek() {
            Some(b'h') => Length::Short,
            Some(b'l' | b'j' | b'z' | b't' | b'q' | b'Z') => Length::Long,
            Some(b'L') => Length::LongDouble,
            _ => return Length::None,
        };
        let is_double = self.format.get(self.at) == self.format.get(self.at + 1);
        self.at += 1;
        match length {
            Length::Short if is_double => {
                self.at += 1;
                Length::Char
            }
            Length::Long if is_double && self.format[self.at] == b'l' => {
                self.at += 1;
                Length::Long
            }
            length => length,
        }
    }
}

fn take_next(next_value: &mut usize) -> usize {
    *next_value += 1;
    *next_value - 1
}

impl<'f> Pieces<'f> {
    /// The conversion at the per cent sign where the rest begins.
    fn conversion(&mut self) -> Result<Conversion<'f>, Unknown> {
        let mut cursor = Cursor { format: self.rest, at: 1 };
        let mut next_value = self.next_value;
        let index = cursor.index();
        let flags = cursor.flags();
        let width = cursor.count(&mut next_value);
        let precision = if cursor.take(b'.') {
            match cursor.count(&mut next_value) {
                Count::None => Count::Constant(0),
                count => count,
            }
        } else {
            Count::None
        };
        let length = cursor.length();
        let Some(letter) = cursor.peek() else { return Err(Unknown::Text(self.rest.len())) };
        match letter {
            b'd' | b'i' | b'u' | b'o' | b'x' | b'X' | b'b' | b'B' | b'c' | b'C' | b's' | b'S' | b'p'
            | b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' | b'n' => {}
            b'%' => return Err(Unknown::PerCent(cursor.at + 1)),
            b'm' => return Err(Unknown::Text(cursor.at + 1)),
            // It may be the first byte of a letter of several bytes.
            _ => return Err(Unknown::Text(cursor.at)),
        }
        let value = index.unwrap_or_else(|| take_next(&mut next_value));
        self.next_value = next_value;
        let source = &self.rest[..=cursor.at];
        Ok(Conversion { source, flags, width, precision, length, letter, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversions<const N: usize>(format: &str) -> [Conversion<'_>; N] {
        let mut all = pieces(format.as_bytes()).filter_map(|piece| match piece {
            Piece::Conversion(conversion) => Some(conversion),
            Piece::Text(_) => None,
        });
        let found = core::array::from_fn(|_| all.next().unwrap());
        assert_eq!(all.next(), None);
        found
    }

    #[test]
    fn conversions_have_their_parts_and_their_values() {
        let [first, second, third] = conversions("a %-#08.3lx b %*.*s %% c %hhd");
        assert_eq!(first.source, b"%-#08.3lx");
        assert_eq!(first.flags, FLAG_LEFT | FLAG_ALTERNATE | FLAG_ZEROS);
        assert_eq!((first.width, first.precision), (Count::Constant(8), Count::Constant(3)));
        assert_eq!((first.length, first.letter, first.value), (Length::Long, b'x', 0));
        assert_eq!((second.width, second.precision), (Count::Value(1), Count::Value(2)));
        assert_eq!((second.letter, second.value), (b's', 3));
        assert_eq!((third.length, third.value), (Length::Char, 4));
        let [first, second] = conversions("%2$s %1$.*3$lld");
        assert_eq!((first.value, second.value, second.precision), (1, 0, Count::Value(2)));
        assert_eq!(second.length, Length::Long);
        let [point] = conversions("%.f");
        assert_eq!(point.precision, Count::Constant(0));
    }

    #[test]
    fn the_conversion_of_a_value_is_found() {
        let format = b"%d %.*s %p";
        assert_eq!(
            conversion_of(format, 2).map(|found| (found.letter, found.precision)),
            Some((b's', Count::Value(1)))
        );
        assert_eq!(conversion_of(format, 3).map(|found| found.letter), Some(b'p'));
        assert_eq!(conversion_of(format, 1), None, "a precision shows no value");
        assert_eq!(conversion_of(format, 4), None);
    }

    #[test]
    fn what_is_no_conversion_is_text_and_nothing_is_lost() {
        for text in ["", "plain", "%", "100 %", "%m", "%-", "%5", "%.", "%ll", "%y", "%é", "%0$d", "%'"] {
            let mut len = 0;
            for piece in pieces(text.as_bytes()) {
                match piece {
                    Piece::Text(text) => len += text.len(),
                    Piece::Conversion(conversion) => panic!("{conversion:?}"),
                }
            }
            assert_eq!(len, text.len(), "{text}");
        }
        assert!(pieces(b"%%").eq([Piece::Text(b"%")]));
        let [huge] = conversions("%99999999999d");
        assert_eq!(huge.width, Count::Constant(u32::MAX));
    }
}
