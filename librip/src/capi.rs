//! Functions of the recorder for the package `librip-capi`. They are not part of the public interface.

use crate::process::seen::Seen;
use crate::process::{instance, thread};

/// The functions that marks of locks call.
pub mod lock_marks {
    use crate::lock::by_hand;
    pub use by_hand::{condition_wait, condition_woken, destroyed, try_failed, wait};

    /// A lock was acquired. The PCs are sites of the kind ACQUIRED, without and with a time.
    pub fn acquired_slowly(lock: u64, pc: u64, pc_timed: u64, site_flags: u16) {
        by_hand::acquired_slowly(lock, pc, pc_timed, site_flags);
    }

    /// A lock was released. The PCs are sites of the kind RELEASED, without and with times.
    pub fn released_slowly(lock: u64, pc: u64, pc_timed: u64) {
        by_hand::released_slowly(lock, pc, pc_timed);
    }
}

/// What marks of events and spans record.
pub use crate::event::any_value::AnyValue;
pub use crate::event::by_hand::SpanByHand;
pub use crate::event::capture::Begun as CycleByHand;
pub use crate::event::channel_by_hand::ChannelByHand;
pub use crate::event::packed::{PackedTypes, PackedValue, PackedValues};
pub use crate::event::text::Text;

/// Coroutines with stacks of their own.
pub mod coroutine {
    pub use crate::task::coroutine::{Coroutine, create, current, destroy, switch};
}

/// Places in the source of other languages, which bindings make.
pub mod binding {
    pub use crate::binding::MadePlace;
}

/// Places in the source that headers know.
pub mod place {
    pub use crate::lock::place::{Place, enter, is_entered};
}

/// Records an event with these values, of which the first ten count. The PC is a site of the kind EVENT.
pub fn event(pc: u64, values: &[AnyValue<'_>]) {
    crate::event::record::event(pc, values);
}

/// The same with the values of a program in C.
#[inline]
pub fn packed_event(pc: u64, values: PackedValues<'_>) {
    crate::event::record::event(pc, values);
}

/// The same in a channel.
///
/// # Safety
///
/// As [`ChannelByHand::takes`].
#[allow(unsafe_code, reason = "the name of the channel is a text of a program in C")]
#[inline]
pub unsafe fn packed_event_in(channel: &ChannelByHand, pc: u64, values: PackedValues<'_>) {
    // SAFETY: the caller's promise.
    unsafe { crate::event::channel_by_hand::event_in(channel, pc, values) };
}

/// The same as [`packed_event`]. Then it keeps what the thread has recorded up to the event.
#[inline]
pub fn packed_capture(pc: u64, values: PackedValues<'_>) {
    crate::event::capture::capture(pc, values);
}

/// Sites where each `char *` is a text that ends with a zero byte.
static PLAIN: Seen<1024> = Seen::new();

/// Whether [`note_plain`] was called for this site. If it was, this may be false all the same.
#[inline]
pub fn is_plain(pc: u64) -> bool {
    PLAIN.has_at_once(pc)
}

/// Each `char *` of this site is a text that ends with a zero byte.
pub fn note_plain(pc: u64) {
    PLAIN.is_new(pc);
}

/// Runs `body`, which may call a cancellation point, while this thread cannot be cancelled.
#[inline(always)]
pub fn with_cancellation_off<T: Copy>(body: impl FnOnce() -> T) -> T {
    crate::sys::with_cancellation_off(body)
}

/// A module with marks in C was loaded.
pub fn module_loaded() {
    crate::runtime::module_loaded();
}

/// Names a lock by its address. An empty name removes the present one.
pub fn name_lock(lock: u64, name: &[u8]) {
    instance::name_lock(lock, name);
}

/// Names the calling thread; an empty name changes nothing. Claims a slot if the thread has none.
pub fn set_thread_name(name: &[u8]) {
    thread::set_name(name);
}

/// Releases the calling thread's slot, or (true) lets its next mark claim one.
pub fn set_participation(takes_part: bool) {
    instance::set_participation(takes_part);
}
