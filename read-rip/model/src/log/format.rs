//! Shows values in a format of Rust's `std::fmt`.
//!
//! The program was compiled with this format and values of these types, so places and values fit each other. In a
//! damaged ring they may not: a place without a value is shown as it is written.

use read_rip_ring::Value;

use super::Known;

/// No width or precision in a format is taken to be larger.
const WIDTH_MAX: usize = 1000;

/// The text of a format with these values.
pub(super) fn rust(format: &str, values: &[Known<'_>]) -> String {
    let mut text = String::new();
    let mut next = 0;
    let mut rest = format;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        if from.starts_with("{{") || from.starts_with("}}") {
            text.push_str(&from[..1]);
            rest = &from[2..];
            continue;
        }
        let Some((place, after)) = from[1..].split_once('}').filter(|_| from.starts_with('{')) else {
            text.push_str(from);
            return text;
        };
        let (argument, spec) = place.split_once(':').unwrap_or((place, ""));
        let index = argument.trim().parse().unwrap_or_else(|_| {
            next += 1;
            next - 1
        });
        match values.get(index) {
            Some(value) => text.push_str(&Spec::parse(spec).show(value)),
            None => text.push_str(&from[..place.len() + 2]),
        }
        rest = after;
    }
    text + rest
}

/// How a value is shown: `[[fill]align][sign]['#']['0'][width]['.' precision][type]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Spec {
    fill: Option<char>,
    align: Option<Align>,
    has_plus: bool,
    is_alternate: bool,
    has_zeros: bool,
    width: usize,
    precision: Option<usize>,
    /// `x`, `?` and so on; empty for `Display`.
    how: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Align {
    Left,
    Center,
    Right,
}

impl Align {
    fn of(letter: char) -> Option<Align> {
        match letter {
            '<' => Some(Align::Left),
            '^' => Some(Align::Center),
            '>' => Some(Align::Right),
            _ => None,
        }
    }
}

impl Spec {
    fn parse(text: &str) -> Spec {
        let mut spec = Spec::default();
        let mut letters = text.trim_end().chars().peekable();
        let mut ahead = letters.clone();
        if let (Some(first), second) = (ahead.next(), ahead.next()) {
            if let Some(align) = second.and_then(Align::of) {
                (spec.fill, spec.align) = (Some(first), Some(align));
                letters.nth(1);
            } else if let Some(align) = Align::of(first) {
                spec.align = Some(align);
                letters.next();
            }
        }
        spec.has_plus = letters.next_if_eq(&'+').is_some();
        letters.next_if_eq(&'-');
        spec.is_alternate = letters.next_if_eq(&'#').is_some();
        spec.has_zeros = letters.next_if_eq(&'0').is_some();
        let mut number = || {
            let mut number = None;
            while let Some(digit) = letters.peek().and_then(|letter| letter.to_digit(10)) {
                let grown = number.unwrap_or(0usize).saturating_mul(10).saturating_add(digit as usize);
                number = Some(grown.min(WIDTH_MAX));
                letters.next();
            }
            (number, letters.next_if_eq(&'.').is_some())
        };
        let (width, has_precision) = number();
        spec.width = width.unwrap_or(0);
        if has_precision {
            spec.precision = number().0;
        }
        spec.how = letters.collect();
        spec
    }

    fn show(&self, value: &Known<'_>) -> String {
        let is_debug = self.how.contains('?');
        match value {
            Known::Text { text, is_cut, is_name } => {
                let mut shown = match self.precision {
                    Some(precision) if !is_debug => text.chars().take(precision).collect(),
                    _ => text.clone().into_owned(),
                };
                if *is_cut {
                    shown.push_str("...");
                }
                if is_debug && !is_name {
                    shown = format!("{shown:?}");
                }
                self.padded(&shown, Align::Left)
            }
            Known::Value(Value::Bool(truth)) => self.padded(&truth.to_string(), Align::Left),
            Known::Value(Value::Char(letter)) => {
                let shown = if is_debug { format!("{letter:?}") } else { letter.to_string() };
                self.padded(&shown, Align::Left)
            }
            Known::Value(Value::Unsigned(number)) => self.integer(false, *number, *number),
            Known::Value(Value::Signed(number, bits)) => {
                let mask = u64::MAX >> (u64::BITS - bits.clamp(&1, &u64::BITS));
                self.integer(*number < 0, number.unsigned_abs(), *number as u64 & mask)
            }
            Known::Value(Value::Pointer(address)) => self.number(false, "0x", &format!("{address:x}")),
            Known::Value(Value::Float32(number)) => self.float(*number, number.is_sign_negative()),
            Known::Value(Value::Float64(number)) => self.float(*number, number.is_sign_negative()),
            // `known` has looked these up.
            Known::Value(Value::Bytes(..) | Value::Text { .. }) => String::new(),
        }
    }

    /// `bits` are those that other bases than ten show.
    fn integer(&self, is_negative: bool, magnitude: u64, bits: u64) -> String {
        let prefix = |prefix| if self.is_alternate { prefix } else { "" };
        match self.how.as_str() {
            "x" | "x?" => self.number(false, prefix("0x"), &format!("{bits:x}")),
            "X" | "X?" => self.number(false, prefix("0x"), &format!("{bits:X}")),
            "o" => self.number(false, prefix("0o"), &format!("{bits:o}")),
            "b" => self.number(false, prefix("0b"), &format!("{bits:b}")),
            "e" => self.number(is_negative, "", &format!("{magnitude:e}")),
            "E" => self.number(is_negative, "", &format!("{magnitude:E}")),
            _ => self.number(is_negative, "", &magnitude.to_string()),
        }
    }

    fn float<F>(&self, number: F, is_negative: bool) -> String
    where
        F: std::fmt::Display + std::fmt::Debug + std::fmt::LowerExp + std::fmt::UpperExp,
    {
        let digits = match (self.how.as_str(), self.precision) {
            ("e", Some(precision)) => format!("{number:.precision$e}"),
            ("e", None) => format!("{number:e}"),
            ("E", Some(precision)) => format!("{number:.precision$E}"),
            ("E", None) => format!("{number:E}"),
            (_, Some(precision)) => format!("{number:.precision$}"),
            ("", None) => format!("{number}"),
            (_, None) => format!("{number:?}"),
        };
        if digits.ends_with("NaN") {
            return Spec { has_plus: false, ..self.clone() }.number(false, "", &digits);
        }
        self.number(is_negative, "", digits.trim_start_matches('-'))
    }

    /// Pads a number, with zeros between its sign and its digits if the format asks for them.
    fn number(&self, is_negative: bool, prefix: &str, digits: &str) -> String {
        let sign = if is_negative {
            "-"
        } else if self.has_plus {
            "+"
        } else {
            ""
        };
        let len = sign.len() + prefix.len() + digits.len();
        if self.has_zeros && len < self.width {
            return format!("{sign}{prefix}{}{digits}", "0".repeat(self.width - len));
        }
        self.padded(&format!("{sign}{prefix}{digits}"), Align::Right)
    }

    fn padded(&self, text: &str, default: Align) -> String {
        let missing = self.width.saturating_sub(text.chars().count());
        let fill = |count: usize| self.fill.unwrap_or(' ').to_string().repeat(count);
        match self.align.unwrap_or(default) {
            Align::Left => format!("{text}{}", fill(missing)),
            Align::Right => format!("{}{text}", fill(missing)),
            Align::Center => format!("{}{text}{}", fill(missing / 2), fill(missing - missing / 2)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Known<'_> {
        Known::Text { text: text.into(), is_cut: false, is_name: false }
    }

    /// Compares with what the standard library makes of the same format and value.
    macro_rules! compare {
        ($known:expr, $value:expr, $($format:literal)+) => {
            $(assert_eq!(rust($format, &[$known]), format!($format, $value), "{}", $format);)+
        };
    }

    #[test]
    fn values_look_as_the_standard_library_shows_them() {
        let unsigned = Value::Unsigned(4711);
        compare!(Known::Value(&unsigned), 4711u64, "{}" "{0}" "{:?}" "{:6}" "{:<6}|" "{:^7}|" "{:*>8}"
            "{:+}" "{:x}" "{:#X}" "{:#010b}" "{:o}" "{:08}" "{:e}" "{{{}}}" "{0} {0:x}");
        let signed = Value::Signed(-5, 8);
        compare!(Known::Value(&signed), -5i8, "{}" "{:x}" "{:#b}" "{:06}" "{:>6}" "{:?}");
        let long = Value::Signed(i64::MIN, 64);
        compare!(Known::Value(&long), i64::MIN, "{}" "{:x}" "{:25}");
        for number in [1.5, -0.0, 1e300, f64::NAN, f64::NEG_INFINITY, 0.1] {
            let float = Value::Float64(number);
            compare!(Known::Value(&float), number, "{}" "{:?}" "{:.3}" "{:8.2}"
                "{:+}" "{:e}" "{:08.1}" "{:<9}|" "{:.2?}");
        }
        let short = Value::Float32(0.1);
        compare!(Known::Value(&short), 0.1f32, "{}" "{:?}" "{:.9}");
        compare!(Known::Value(&Value::Bool(true)), true, "{}" "{:6}|" "{:?}");
        compare!(Known::Value(&Value::Char('ß')), 'ß', "{}" "{:?}" "{:>3}");
        compare!(text("a \"b\""), "a \"b\"", "{}" "{:?}" "{:10}|" "{:.3}" "{:-^9.2}");
        let pointer = std::ptr::without_provenance::<u8>(0x1000);
        compare!(Known::Value(&Value::Pointer(0x1000)), pointer, "{:p}" "{:?}");
    }

    #[test]
    fn a_cut_text_and_a_name_are_shown_as_such() {
        let cut = Known::Text { text: "abc".into(), is_cut: true, is_name: false };
        let name = Known::Text { text: "Busy".into(), is_cut: false, is_name: true };
        assert_eq!(rust("{} {:?} {:?}", &[cut.clone(), cut, name]), "abc... \"abc...\" Busy");
    }

    #[test]
    fn places_without_values_stay_and_nothing_panics() {
        assert_eq!(rust("{} of {}", &[Known::Value(&Value::Unsigned(1))]), "1 of {}");
        for broken in
            ["{", "}", "{:", "{:>", "{9}", "{:99999999999999999999999}", "a}b", "{:.}", "{:é<5}", "{:x?}"]
        {
            rust(broken, &[Known::Value(&Value::Signed(-1, 99))]);
            rust(broken, &[]);
        }
    }
}
