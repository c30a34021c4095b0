//! Events with values, and spans: what the macros of [`marks`](crate::marks) call.
//!
//! It formats nothing: an event has the values themselves, and its site has the format. `value` says which values there
//! are, `values` how an event has several, `any_value` those whose types are known only when the program runs, `text`
//! what becomes of texts by reference, `record` writes the words, `span` keeps the table of open spans, and `capture`
//! keeps what a thread has recorded. `used` has what a thread uses in a span. `channel` has words of their own for some
//! events. `by_hand` has spans for programs that end them by a call, `channel_by_hand` the channels of programs in C,
//! and `packed` their values. `format` checks formats when the program is compiled.

pub(crate) mod any_value;
#[cfg(feature = "capi")]
pub(crate) mod by_hand;
pub(crate) mod capture;
pub(crate) mod channel;
#[cfg(feature = "capi")]
pub(crate) mod channel_by_hand;
pub(crate) mod format;
#[cfg(feature = "capi")]
pub(crate) mod packed;
pub(crate) mod primitive;
pub(crate) mod record;
pub(crate) mod span;
pub(crate) mod text;
pub(crate) mod used;
pub(crate) mod value;
pub(crate) mod values;
