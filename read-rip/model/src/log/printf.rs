//! Shows values in a format of C's `printf`, as glibc does in the C locale.
//!
//! The program's compiler has checked that conversions and values fit each other, if the program wanted to know. In a
//! damaged ring they may not: a value that its conversion cannot show is shown plainly, and a conversion without a
//! value as it is written.

use librip_format::printf::{
    Conversion, Count, FLAG_ALTERNATE, FLAG_LEFT, FLAG_PLUS, FLAG_SPACE, FLAG_ZEROS, Length, Piece, pieces,
};
use read_rip_ring::Value;

use super::Known;
use super::format::rust;

/// No width or precision in a format is taken to be larger.
const COUNT_MAX: usize = 1000;

/// The text of a format with these values.
pub(super) fn printf(format: &str, values: &[Known<'_>]) -> String {
    let mut text = String::new();
    for piece in pieces(format.as_bytes()) {
        match piece {
            Piece::Text(bytes) => text.push_str(&String::from_utf8_lossy(bytes)),
            Piece::Conversion(conversion) => match values.get(conversion.value) {
                Some(value) => text.push_str(&Spec::new(&conversion, values).show(value)),
                None => text.push_str(&String::from_utf8_lossy(conversion.source)),
            },
        }
    }
    text
}

/// How a value is shown.
#[derive(Clone, Copy, Debug)]
struct Spec {
    flags: u8,
    width: usize,
    precision: Option<usize>,
    length: Length,
    letter: u8,
}

impl Spec {
    /// Looks up the width and the precision, which may be values too.
    fn new(conversion: &Conversion<'_>, values: &[Known<'_>]) -> Spec {
        let count = |count| match count {
            Count::None => None,
            Count::Constant(number) => Some(i64::from(number)),
            Count::Value(index) => {
                values.get(index).and_then(|value| Integer::of(value)).map(Integer::signed)
            }
        };
        let mut flags = conversion.flags;
        let width = count(conversion.width).unwrap_or(0);
        if width < 0 {
            flags |= FLAG_LEFT;
        }
        let limited = |number: u64| usize::try_from(number).map_or(COUNT_MAX, |number| number.min(COUNT_MAX));
        Spec {
            flags,
            width: limited(width.unsigned_abs()),
            // A negative precision is as none.
            precision: count(conversion.precision).and_then(|number| u64::try_from(number).ok()).map(limited),
            length: conversion.length,
            letter: conversion.letter,
        }
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn show(&self, value: &Known<'_>) -> String {
        let shown = match self.letter {
            // It shows nothing, and would store something.
            b'n' => Some(String::new()),
            b'd' | b'i' => Integer::of(value).map(|integer| self.decimal(integer.signed_of(self.length))),
            b'u' | b'o' | b'x' | b'X' | b'b' | b'B' => {
                Integer::of(value).map(|integer| self.unsigned(integer.unsigned_of(self.length)))
            }
            b'c' | b'C' => self.letter(value).map(|letter| self.padded(&letter.to_string())),
            b's' | b'S' => self.text(value),
            b'p' => match value {
                Known::Value(Value::Pointer(0)) => Some(self.padded("(nil)")),
                Known::Value(Value::Pointer(address)) => Some(
                    Spec { letter: b'x', flags: self.flags | FLAG_ALTERNATE, ..*self }.unsigned(*address),
                ),
                _ => None,
            },
            _ => match *value {
                Known::Value(Value::Float64(number)) => Some(self.float(*number)),
                Known::Value(Value::Float32(number)) => Some(self.float(f64::from(*number))),
                _ => None,
            },
        };
        shown.unwrap_or_else(|| self.padded(&rust("{}", std::slice::from_ref(value))))
    }

    fn decimal(&self, number: i128) -> String {
        let sign = self.sign(number < 0);
        self.number(
            sign,
            "",
            &self.digits(number == 0, number.unsigned_abs().to_string()),
            self.precision.is_none(),
        )
    }

    fn unsigned(&self, number: u64) -> String {
        let digits = match self.letter {
            b'o' => format!("{number:o}"),
            b'x' => format!("{number:x}"),
            b'X' => format!("{number:X}"),
            b'b' | b'B' => format!("{number:b}"),
            _ => number.to_string(),
        };
        let mut digits = self.digits(number == 0, digits);
        let mut prefix = "";
        if self.has(FLAG_ALTERNATE) {
            match self.letter {
                b'o' if !digits.starts_with('0') => digits.insert(0, '0'),
                b'x' if number != 0 => prefix = "0x",
                b'X' if number != 0 => prefix = "0X",
                b'b' if number != 0 => prefix = "0b",
                b'B' if number != 0 => prefix = "0B",
                _ => {}
            }
        }
        self.number("", prefix, &digits, self.precision.is_none())
    }

    /// At least as many digits as the precision says: none of a zero if it says none.
    fn digits(&self, is_zero: bool, digits: String) -> String {
        match self.precision {
            Some(0) if is_zero => String::new(),
            Some(precision) => format!("{}{digits}", "0".repeat(precision.saturating_sub(digits.len()))),
            None => digits,
        }
    }

    /// A byte above ASCII is no letter by itself.
    fn letter(&self, value: &Known<'_>) -> Option<char> {
        if let Known::Value(Value::Char(letter)) = value {
            return Some(*letter);
        }
        let number = Integer::of(value)?.unsigned_of(Length::None);
        let is_wide = self.letter == b'C' || self.length == Length::Long;
        let code = if is_wide { u32::try_from(number).ok() } else { Some(number as u32 & 0xff) };
        let letter = code.filter(|code| is_wide || *code < 0x80).and_then(char::from_u32);
        Some(letter.unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn text(&self, value: &Known<'_>) -> Option<String> {
        let Known::Text { text, is_cut, .. } = value else { return None };
        let end = self.precision.map_or(text.len(), |precision| text.floor_char_boundary(precision));
        let is_cut = *is_cut && self.precision.is_none_or(|precision| precision > text.len());
        Some(self.padded(&format!("{}{}", &text[..end], if is_cut { "..." } else { "" })))
    }

    fn float(&self, number: f64) -> String {
        let sign = self.sign(number.is_sign_negative());
        let number = number.abs();
        let is_finite = number.is_finite();
        let (mut prefix, mut digits) = ("", String::new());
        if !is_finite {
            digits.push_str(if number.is_nan() { "nan" } else { "inf" });
        } else {
            let precision = self.precision.unwrap_or(6);
            match self.letter.to_ascii_lowercase() {
                b'e' => digits = self.scientific(number, precision),
                b'g' => digits = self.shorter(number, precision.max(1)),
                b'a' => (prefix, digits) = ("0x", self.hexadecimal(number)),
                _ => digits = self.fixed(number, precision),
            }
        }
        if self.letter.is_ascii_uppercase() {
            digits.make_ascii_uppercase();
            prefix = if prefix.is_empty() { "" } else { "0X" };
        }
        self.number(sign, prefix, &digits, is_finite)
    }

    /// `%f`.
    fn fixed(&self, number: f64, precision: usize) -> String {
        self.with_point(format!("{number:.precision$}"), precision)
    }

    /// `%e`: the exponent has a sign and at least two digits.
    fn scientific(&self, number: f64, precision: usize) -> String {
        let (mantissa, exponent) = parts(number, precision);
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", self.with_point(mantissa, precision), exponent.unsigned_abs())
    }

    /// `%g`: `precision` digits in the shorter of the two forms, without the zeros at the end.
    fn shorter(&self, number: f64, precision: usize) -> String {
        let (_, exponent) = parts(number, precision - 1);
        let shown = match usize::try_from(precision as i64 - 1 - exponent) {
            Ok(after_point) if exponent >= -4 => self.fixed(number, after_point),
            _ => self.scientific(number, precision - 1),
        };
        if self.has(FLAG_ALTERNATE) {
            return shown;
        }
        let (digits, exponent) = shown.split_at(shown.find('e').unwrap_or(shown.len()));
        let digits =
            if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
        format!("{digits}{exponent}")
    }

    /// `%a`, without the prefix: one digit, a point, the other digits, and a power of two.
    fn hexadecimal(&self, number: f64) -> String {
        const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
        const DIGITS: usize = FRACTION_BITS as usize / 4;
        let bits = number.to_bits();
        let fraction = bits & ((1 << FRACTION_BITS) - 1);
        let (mut mantissa, exponent) = match bits >> FRACTION_BITS {
            0 if fraction == 0 => (0, 0),
            0 => (fraction, f64::MIN_EXP - 1),
            biased => (fraction | 1 << FRACTION_BITS, biased as i32 - f64::MAX_EXP + 1),
        };
        let mut kept = DIGITS;
        if let Some(precision) = self.precision.filter(|&precision| precision < DIGITS) {
            // To the nearest number, and to the even one of two.
            let dropped = 4 * (DIGITS - precision) as u32;
            let rest = mantissa & ((1 << dropped) - 1);
            mantissa >>= dropped;
            mantissa += u64::from(rest + (mantissa & 1) > 1 << (dropped - 1));
            kept = precision;
        }
        let first = mantissa >> (4 * kept);
        let mut digits = String::new();
        if kept > 0 {
            digits = format!("{:0kept$x}", mantissa & ((1 << (4 * kept)) - 1));
        }
        match self.precision {
            None => digits.truncate(digits.trim_end_matches('0').len()),
            Some(precision) => digits.push_str(&"0".repeat(precision.saturating_sub(DIGITS))),
        }
        let point = if digits.is_empty() && !self.has(FLAG_ALTERNATE) { "" } else { "." };
        format!("{first}{point}{digits}p{exponent:+}")
    }

    fn with_point(&self, mut digits: String, precision: usize) -> String {
        if precision == 0 && self.has(FLAG_ALTERNATE) {
            digits.push('.');
        }
        digits
    }

    fn sign(&self, is_negative: bool) -> &'static str {
        if is_negative {
            "-"
        } else if self.has(FLAG_PLUS) {
            "+"
        } else if self.has(FLAG_SPACE) {
            " "
        } else {
            ""
        }
    }

    /// Pads a number, with zeros after its sign and prefix if the format asks for them and it may have them.
    fn number(&self, sign: &str, prefix: &str, digits: &str, may_have_zeros: bool) -> String {
        let len = sign.len() + prefix.len() + digits.len();
        if may_have_zeros && self.has(FLAG_ZEROS) && !self.has(FLAG_LEFT) {
            return format!("{sign}{prefix}{}{digits}", "0".repeat(self.width.saturating_sub(len)));
        }
        self.padded(&format!("{sign}{prefix}{digits}"))
    }

    /// The width counts bytes.
    fn padded(&self, text: &str) -> String {
        let fill = " ".repeat(self.width.saturating_sub(text.len()));
        if self.has(FLAG_LEFT) { format!("{text}{fill}") } else { format!("{fill}{text}") }
    }
}

/// The decimal mantissa with this many digits after the point, and the exponent of ten.
fn parts(number: f64, precision: usize) -> (String, i64) {
    let shown = format!("{number:.precision$e}");
    let (mantissa, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
    (mantissa.to_owned(), exponent.parse().unwrap_or(0))
}

/// A value that is an integer, and how many bits its type has if that is known.
#[derive(Clone, Copy, Debug)]
enum Integer {
    Unsigned(u64),
    Signed(i64, u32),
}

impl Integer {
    fn of(value: &Known<'_>) -> Option<Integer> {
        match value {
            Known::Value(Value::Unsigned(number) | Value::Pointer(number)) => {
                Some(Integer::Unsigned(*number))
            }
            Known::Value(Value::Signed(number, bits)) => Some(Integer::Signed(*number, *bits)),
            Known::Value(Value::Bool(truth)) => Some(Integer::Unsigned(u64::from(*truth))),
            Known::Value(Value::Char(letter)) => Some(Integer::Unsigned(u64::from(u32::from(*letter)))),
            _ => None,
        }
    }

    /// The value of an `int`.
    fn signed(self) -> i64 {
        match self {
            Integer::Unsigned(number) => i64::try_from(number).unwrap_or(i64::MAX),
            Integer::Signed(number, _) => number,
        }
    }

    /// The number that `%d` with this length shows. It is whole if the value has more bits than the length says.
    fn signed_of(self, length: Length) -> i128 {
        let bits = match self {
            Integer::Unsigned(number) => number,
            Integer::Signed(number, _) => number as u64,
        };
        match (length, self) {
            (Length::Char, _) => i128::from(bits as i8),
            (Length::Short, _) => i128::from(bits as i16),
            (Length::None, Integer::Unsigned(number)) => match u32::try_from(number) {
                Ok(number) => i128::from(number as i32),
                Err(_) => i128::from(number),
            },
            (_, Integer::Signed(number, _)) => i128::from(number),
            (Length::Long | Length::LongDouble, Integer::Unsigned(number)) => i128::from(number as i64),
        }
    }

    /// The number that `%u` with this length shows.
    fn unsigned_of(self, length: Length) -> u64 {
        let bits = match self {
            Integer::Unsigned(number) => number,
            Integer::Signed(number, bits) if bits <= u32::BITS && length == Length::None => {
                u64::from(number as u32)
            }
            Integer::Signed(number, _) => number as u64,
        };
        match length {
            Length::Char => u64::from(bits as u8),
            Length::Short => u64::from(bits as u16),
            _ => bits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str, is_cut: bool) -> Known<'_> {
        Known::Text { text: text.into(), is_cut, is_name: false }
    }

    // tests/printf.rs compares with the C library, which this crate cannot call: it has no unsafe code.

    #[test]
    fn a_text_is_cut_at_whole_letters_and_one_that_goes_on_says_so() {
        assert_eq!(printf("%s|%5s|%-5s|%.2s", &vec![text("abc", false); 4]), "abc|  abc|abc  |ab");
        assert_eq!(printf("%s %.3s %.4s", &vec![text("abc", true); 3]), "abc... abc abc...");
        assert_eq!(printf("%.2s", &[text("aß", false)]), "a");
    }

    #[test]
    fn a_value_that_does_not_fit_is_shown_plainly() {
        let (number, float) = (Value::Unsigned(5_000_000_000), Value::Float64(1.5));
        assert_eq!(printf("%d", &[Known::Value(&number)]), "5000000000");
        assert_eq!(printf("%s %f", &[Known::Value(&number), Known::Value(&number)]), "5000000000 5000000000");
        assert_eq!(printf("%6d|%x", &[Known::Value(&float), text("abc", false)]), "   1.5|abc");
        assert_eq!(printf("%d %p", &[text("abc", false), text("abc", false)]), "abc abc");
    }

    #[test]
    fn conversions_without_values_stay_and_nothing_panics() {
        let number = Value::Signed(i64::MIN, 99);
        assert_eq!(
            printf("%d of %d, %*d 100%: %m %n", &[Known::Value(&Value::Unsigned(1))]),
            "1 of %d, %*d 100%: %m %n"
        );
        let floats = [f64::MAX, f64::MIN_POSITIVE, f64::from_bits(1), f64::NAN, 0.0].map(Value::Float64);
        let values = [number, Value::Char('ß'), Value::Pointer(u64::MAX), Value::Bool(true)];
        let texts = [text("ünïcode", true), text("", false)];
        let known: Vec<Known<'_>> = values.iter().chain(&floats).map(Known::Value).chain(texts).collect();
        for letter in "diuoxXbBcCsSpfFeEgGaAn%mzé".chars() {
            for before in [
                "",
                "0",
                "-",
                "+ #0'I",
                "5",
                ".",
                ".0",
                ".1",
                "#.0",
                "99999999999.99999999999",
                "hh",
                "ll",
                "L",
            ] {
                for value in &known {
                    printf(&format!("%{before}{letter}"), std::slice::from_ref(value));
                    printf(&format!("%*.*{letter}"), &[value.clone(), value.clone(), value.clone()]);
                }
            }
        }
    }
}
