//! [`Fields`]: the values of one event, on the stack.
//!
//! It keeps as much of each text as an event can keep, and formats into itself: nothing is allocated. It knows neither
//! `tracing` nor `log`.
//!
//! # Invariants
//!
//! * The first `len` bytes of [`Bytes`] are initialised. The others are not: to clear them would take longer than the
//!   rest of a short event.

#![allow(unsafe_code, reason = "bytes that are not initialised")]

use std::array;
use std::fmt::{self, Write};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use librip::Text;
use librip::bridge::AnyValue;

/// An event has at most this many values.
pub(crate) const VALUES_MAX: usize = 10;
/// An event keeps at most this many bytes of a text.
const TEXT_KEPT_MAX: usize = 48;
/// An event keeps at most this many bytes of its message.
const MESSAGE_KEPT_MAX: usize = 240;
/// All texts of an event.
const BYTES_MAX: usize = MESSAGE_KEPT_MAX + (VALUES_MAX - 1) * TEXT_KEPT_MAX;

/// A value; a text is in the bytes beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Stored {
    #[default]
    None,
    U64(u64),
    I64(i64),
    F64(f64),
    Bool(bool),
    /// Where its beginning is, and the length of the whole text, as far as it is not longer than that.
    Text {
        from: u16,
        to: u16,
        len: u32,
        is_message: bool,
    },
}

/// The texts of an event, one after the other.
struct Bytes {
    bytes: [MaybeUninit<u8>; BYTES_MAX],
    len: usize,
}

impl Bytes {
    /// Appends a text, up to so many bytes, as far as there is room.
    #[inline]
    fn append(&mut self, text: &[u8], kept_max: usize) {
        let free = &mut self.bytes[self.len..];
        let kept = text.len().min(kept_max).min(free.len());
        for (to, &byte) in free.iter_mut().zip(&text[..kept]) {
            to.write(byte);
        }
        self.len += kept;
    }

    #[inline]
    fn filled(&self) -> &[u8] {
        let filled: *const [MaybeUninit<u8>] = &raw const self.bytes[..self.len];
        // SAFETY: `append` has initialised all bytes before `len`. The layout is that of bytes.
        unsafe { &*(filled as *const [u8]) }
    }
}

pub(crate) struct Fields {
    values: [Stored; VALUES_MAX],
    bytes: Bytes,
}

impl Fields {
    #[inline]
    pub(crate) fn new() -> Fields {
        let bytes = Bytes { bytes: [MaybeUninit::uninit(); BYTES_MAX], len: 0 };
        Fields { values: [Stored::None; VALUES_MAX], bytes }
    }

    /// Sets the value of a place. Places beyond the last one have no value.
    #[inline]
    pub(crate) fn set(&mut self, place: usize, value: Stored) {
        if let Some(at) = self.values.get_mut(place) {
            *at = value;
        }
    }

    /// Sets a text, of whose `len` bytes these are the first ones.
    pub(crate) fn set_text(&mut self, place: usize, text: &[u8], len: usize) {
        let from = self.bytes.len;
        self.bytes.append(text, TEXT_KEPT_MAX);
        self.set_appended(place, from, len, false);
    }

    /// Sets a text that is formatted now.
    pub(crate) fn set_formatted(&mut self, place: usize, value: &dyn fmt::Debug) {
        if place >= VALUES_MAX {
            return;
        }
        let from = self.bytes.len;
        let mut writer = Writer { fields: self, from, len: 0, kept_max: TEXT_KEPT_MAX, first: First::Copied };
        writer.write(value);
        let len = writer.len;
        self.set_appended(place, from, len, false);
    }

    /// Formats a message into the first place. Returns whether it is the text that `first` knows: then it is not
    /// stored.
    pub(crate) fn set_message(&mut self, message: &dyn fmt::Debug, first: First<'_>) -> bool {
        let from = self.bytes.len;
        let mut writer = Writer { fields: self, from, len: 0, kept_max: MESSAGE_KEPT_MAX, first };
        writer.write(message);
        let (len, is_known) = (writer.len, matches!(writer.first, First::Known(_)) && writer.len > 0);
        self.set_appended(0, from, len, true);
        is_known
    }

    #[inline]
    fn set_appended(&mut self, place: usize, from: usize, len: usize, is_message: bool) {
        let (from, to) = (from as u16, self.bytes.len as u16);
        self.set(place, Stored::Text { from, to, len: u32::try_from(len).unwrap_or(u32::MAX), is_message });
    }

    /// Passes the values of these places on.
    #[inline]
    pub(crate) fn with_values<T>(&self, places: Range<usize>, then: impl FnOnce(&[AnyValue<'_>]) -> T) -> T {
        with_values(self.values.get(places).unwrap_or_default(), self.bytes.filled(), then)
    }

    /// What outlives the call.
    #[cfg(feature = "tracing")]
    pub(crate) fn kept(&self, count: usize) -> Kept {
        let values = self.values[..count.min(VALUES_MAX)].into();
        Kept { values, bytes: self.bytes.filled().into() }
    }
}

#[cfg(feature = "tracing")]
#[derive(Debug)]
pub(crate) struct Kept {
    values: Box<[Stored]>,
    bytes: Box<[u8]>,
}

#[cfg(feature = "tracing")]
impl Kept {
    /// Passes the values on.
    pub(crate) fn with_values<T>(&self, then: impl FnOnce(&[AnyValue<'_>]) -> T) -> T {
        with_values(&self.values, &self.bytes, then)
    }

    /// Replaces the values that `new` has.
    pub(crate) fn update(&mut self, new: &Fields) {
        let mut all = Fields::new();
        for (place, (&before, &now)) in self.values.iter().zip(&new.values).enumerate() {
            let (value, bytes) =
                if now == Stored::None { (before, &*self.bytes) } else { (now, new.bytes.filled()) };
            match value {
                Stored::Text { from, to, len, .. } => {
                    all.set_text(place, bytes.get(from.into()..to.into()).unwrap_or_default(), len as usize);
                }
                _ => all.set(place, value),
            }
        }
        *self = all.kept(self.values.len());
    }
}

/// Most events have few values. Others take longer.
const USUAL: usize = 4;

#[inline]
fn with_values<T>(stored: &[Stored], bytes: &[u8], then: impl FnOnce(&[AnyValue<'_>]) -> T) -> T {
    let value =
        |index: usize| stored.get(index).map_or(AnyValue::Bool(false), |value| any_value(value, bytes));
    if stored.len() <= USUAL {
        then(&array::from_fn::<_, USUAL, _>(value)[..stored.len()])
    } else {
        then(&array::from_fn::<_, VALUES_MAX, _>(value)[..stored.len().min(VALUES_MAX)])
    }
}

#[inline]
fn any_value<'a>(stored: &Stored, bytes: &'a [u8]) -> AnyValue<'a> {
    match *stored {
        Stored::None => AnyValue::Text(Text("(none)")),
        Stored::U64(number) => AnyValue::U64(number),
        Stored::I64(number) => AnyValue::I64(number),
        Stored::F64(number) => AnyValue::F64(number),
        Stored::Bool(truth) => AnyValue::Bool(truth),
        Stored::Text { from, to, len, is_message } => {
            let text = bytes.get(from.into()..to.into()).unwrap_or_default();
            let len = len as usize;
            if is_message { AnyValue::Message(text, len) } else { AnyValue::Beginning(text, len) }
        }
    }
}

/// What becomes of the first part that a message writes.
///
/// A message without arguments is one part, which is the same each time. Then it is a part of the callsite's format.
pub(crate) enum First<'a> {
    /// It is copied, as all parts are.
    Copied,
    /// It is kept here too, for the callsite's format. There is one if the message has no further parts.
    Learnt(&'a mut Option<String>),
    /// If it is this one, it is not copied until another part comes.
    Known(&'a str),
}

/// No longer text becomes a part of a format.
const LEARNT_LEN_MAX: usize = 2048;

struct Writer<'f, 'a> {
    fields: &'f mut Fields,
    from: usize,
    /// The length of the whole text.
    len: usize,
    kept_max: usize,
    first: First<'a>,
}

impl Writer<'_, '_> {
    /// Formats a value. What the formatting says of its failure is a part of the text.
    fn write(&mut self, value: &dyn fmt::Debug) {
        let written = catch_unwind(AssertUnwindSafe(|| write!(self, "{value:?}")));
        let failure = match written {
            Ok(Ok(())) => return,
            Ok(Err(_)) => " (its Debug failed)",
            Err(_) => " (its Debug panicked)",
        };
        let _ = self.write_str(failure);
    }

    fn append(&mut self, part: &str) {
        let bytes = &mut self.fields.bytes;
        bytes.append(part.as_bytes(), self.kept_max.saturating_sub(bytes.len - self.from));
    }
}

impl Write for Writer<'_, '_> {
    /// It never fails: a `Debug` implementation may not expect that.
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if part.is_empty() {
            return Ok(());
        }
        let is_first = self.len == 0;
        self.len = self.len.saturating_add(part.len());
        match &mut self.first {
            First::Copied => {}
            First::Learnt(learnt) => {
                **learnt = (is_first && part.len() <= LEARNT_LEN_MAX).then(|| part.to_owned());
                if !is_first {
                    self.first = First::Copied;
                }
            }
            First::Known(known) if is_first && *known == part => return Ok(()),
            First::Known(known) => {
                let known = *known;
                self.first = First::Copied;
                if !is_first {
                    self.append(known);
                }
            }
        }
        self.append(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(fields: &Fields, place: usize) -> (String, usize) {
        fields.with_values(place..place + 1, |values| match values {
            [AnyValue::Message(text, len) | AnyValue::Beginning(text, len)] => {
                (String::from_utf8(text.to_vec()).unwrap(), *len)
            }
            _ => panic!("{values:?}"),
        })
    }

    #[test]
    fn a_text_is_cut_and_its_length_is_known() {
        let mut fields = Fields::new();
        fields.set_message(&format_args!("{}{}", "m".repeat(200), "n".repeat(1000)), First::Copied);
        for place in 1..VALUES_MAX {
            fields.set_formatted(place, &format_args!("{}{place}", "x".repeat(47)));
        }
        assert_eq!(text(&fields, 0), ("m".repeat(200) + &"n".repeat(40), 1200));
        for place in 1..VALUES_MAX {
            assert_eq!(text(&fields, place), ("x".repeat(47) + &place.to_string(), 48));
        }
        // There is no such place.
        fields.set(VALUES_MAX, Stored::Bool(true));
        fields.set_formatted(VALUES_MAX, &1);
    }

    #[test]
    fn a_message_is_learnt_if_it_has_one_part() {
        let learnt = |message: fmt::Arguments<'_>| {
            let mut learnt = None;
            assert!(!Fields::new().set_message(&message, First::Learnt(&mut learnt)));
            learnt
        };
        assert_eq!(learnt(format_args!("ready")).as_deref(), Some("ready"));
        let (one, two, three) = (1, "two", 3);
        assert_eq!(learnt(format_args!("{one} and {two}, {three}")), None);
        assert_eq!(learnt(format_args!("")), None);
    }

    #[test]
    fn only_the_known_message_is_left_out() {
        let left_out = |message: fmt::Arguments<'_>| {
            let mut fields = Fields::new();
            (fields.set_message(&message, First::Known("ready")), text(&fields, 0).0)
        };
        assert_eq!(left_out(format_args!("ready")), (true, String::new()));
        let (name, set) = ("ready", ", set");
        assert_eq!(left_out(format_args!("{name}{set}")), (false, "ready, set".to_owned()));
        assert_eq!(left_out(format_args!("{set}{name}")), (false, ", setready".to_owned()));
        assert_eq!(left_out(format_args!("")), (false, String::new()));
    }

    #[test]
    fn a_debug_that_panics_or_fails_says_so() {
        struct Broken(bool);
        impl fmt::Debug for Broken {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("half")?;
                if self.0 { std::panic::resume_unwind(Box::new(())) } else { Err(fmt::Error) }
            }
        }
        let mut fields = Fields::new();
        fields.set_formatted(0, &Broken(true));
        fields.set_formatted(1, &Broken(false));
        assert_eq!(text(&fields, 0).0, "half (its Debug panicked)");
        assert_eq!(text(&fields, 1).0, "half (its Debug failed)");
    }

    #[cfg(feature = "tracing")]
    #[test]
    fn values_of_a_span_are_replaced_one_by_one() {
        let mut first = Fields::new();
        first.set_text(0, b"GET", 3);
        first.set(1, Stored::U64(7));
        let mut kept = first.kept(3);
        let mut second = Fields::new();
        second.set_text(2, b"done", 4);
        second.set(1, Stored::I64(-1));
        kept.update(&second);
        let shown = kept.with_values(|values| format!("{values:?}"));
        assert_eq!(shown, "[Beginning([71, 69, 84], 3), I64(-1), Beginning([100, 111, 110, 101], 4)]");
    }
}
