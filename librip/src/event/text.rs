//! Texts by reference: an event has the address of a text, and the ring has the text once.

use core::fmt;

use librip_format::{VALUE_NAME, VALUE_TEXT};

use super::primitive::{Primitive, sealed::Sealed};
use crate::process::instance;
use crate::process::seen::Seen;
use crate::process::slot::Words;

/// A text that lasts as long as the program, for events: recorded by reference.
///
/// An event keeps only the address and the length of the text, so the text may have any length, and takes two words.
/// The first event with this text copies up to 256 bytes of it into the ring. Without this wrapper, a `str` is recorded
/// by value, up to 48 bytes.
///
/// # Examples
///
/// ```
/// use librip::{Text, rip_event};
///
/// let state: &'static str = "waiting for a connection to the database of sessions";
/// rip_event!("now {}", Text(state));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text(pub &'static str);

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0, f)
    }
}

/// The name of an enum's variant, for `#[derive(Value)]`. It is shown without quotes.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name(pub &'static str);

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The texts that were copied into the ring. Texts that find no room are not copied.
static COPIED: Seen<1024> = Seen::new();

/// What stands for a text in the set. Two texts may begin at one address.
#[inline(always)]
fn key(text: &'static [u8]) -> u64 {
    text.as_ptr().addr() as u64 ^ (text.len() as u64) << 48
}

/// Copies a text into the ring, unless that was done before.
#[inline(always)]
pub(super) fn copy(text: &'static [u8]) {
    if !COPIED.has_at_once(key(text)) {
        copy_if_new(text);
    }
}

#[cold]
#[inline(never)]
fn copy_if_new(text: &'static [u8]) {
    if COPIED.is_new(key(text)) {
        instance::enter_text(text);
    }
}

macro_rules! by_reference {
    ($type:ident: $kind:ident) => {
        impl Sealed for $type {}

        #[allow(private_interfaces, reason = "as the trait")]
        impl Primitive for $type {
            const TYPE: u64 = $kind;

            #[inline(always)]
            fn words(&self, _kept_max: usize) -> usize {
                2
            }

            #[inline(always)]
            fn prepare(&self) {
                copy(self.0.as_ref());
            }

            #[inline(always)]
            fn write(&self, _kept_max: usize, words: &mut Words) {
                words.operand(self.summary());
                words.operand(self.0.len() as u64);
            }

            #[inline(always)]
            fn summary(&self) -> u64 {
                self.0.as_ptr().addr() as u64
            }
        }
    };
}

by_reference!(Text: VALUE_TEXT);
by_reference!(Name: VALUE_NAME);
