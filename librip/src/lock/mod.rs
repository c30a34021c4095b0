//! What is recorded of locks: events, and the held-lock table.
//!
//! It locks nothing itself. `protocol` is the one protocol that all locks follow. It writes through `table`, and `site`
//! says where an event comes from. `record` is what wrappers call (`sync`, `raw`, `thread`), `interposed` what an
//! interposer calls besides, and `by_hand` is for locks that a program marks itself. `blocked` is for what nobody
//! holds, and `once` for initialisers that run once. `place` has the lines that C++ headers know.

pub(crate) mod blocked;
pub(crate) mod by_hand;
pub(crate) mod caller;
pub(crate) mod future;
#[cfg(feature = "interpose")]
pub(crate) mod interposed;
pub(crate) mod once;
#[cfg(feature = "capi")]
pub(crate) mod place;
pub(crate) mod protocol;
#[cfg(any(feature = "lock_api", feature = "lock_api_05"))]
pub mod raw;
pub(crate) mod record;
pub(crate) mod site;
pub(crate) mod stack;
pub mod sync;
pub(crate) mod table;
pub mod thread;

use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::Relaxed;

use crate::process::instance::{self, Request};
use librip_format::{HELD_COND_WAIT, HELD_DESTROYED, HELD_HELD};
use table::Slot;

/// What a wrapper has besides the lock. Its address identifies the lock.
///
/// It is dropped with the lock and records that, because another lock may be created at the same address: it is not the
/// same lock and does not have its name. The end of a lock that was never used is not recorded.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    /// [`IS_NAMED`], [`IS_USED`], [`HAS_NO_GUARD`], [`IS_RUNNING`].
    state: AtomicU8,
}

/// Defines `set_name` of a wrapper: `__rip_set_name!("the lock", FIELD)`, where the field has the identity.
#[doc(hidden)]
#[macro_export]
macro_rules! __rip_set_name {
    ($what:literal, $field:ident) => {
        #[doc = concat!("Names ", $what, " in the ring, up to 48 bytes.")]
        ///
        #[doc = concat!("The name belongs to the address that ", $what, " has now, so name it where it will stay.")]
        pub fn set_name(&self, name: &str) {
            self.$field.set_name(name);
        }
    };
}

const IS_NAMED: u8 = 1;
const IS_USED: u8 = 2;
const HAS_NO_GUARD: u8 = 4;
const IS_RUNNING: u8 = 8;

impl Identity {
    pub(crate) const fn new() -> Identity {
        Identity { state: AtomicU8::new(0) }
    }

    /// That of a lock that is used without guards: whichever thread the program likes releases it.
    #[cfg(any(feature = "lock_api", feature = "lock_api_05"))]
    pub(crate) const fn without_guard() -> Identity {
        Identity { state: AtomicU8::new(HAS_NO_GUARD) }
    }

    #[inline(always)]
    pub(crate) fn address(&self) -> u64 {
        core::ptr::from_ref(self).addr() as u64
    }

    /// The address of a lock that is about to be acquired.
    #[inline(always)]
    pub(crate) fn address_in_use(&self) -> u64 {
        // ORDERING: relaxed: the thread that drops the lock owns it, and was synchronised with all others by means of
        // its own. Written only once, because the lock itself is in the same cache line.
        if self.state.load(Relaxed) & IS_USED == 0 {
            self.set(IS_USED);
        }
        self.address()
    }

    pub(crate) fn set_name(&self, name: &str) {
        self.set(IS_NAMED);
        instance::name_lock(self.address(), name.as_bytes());
    }

    /// Whether a thread seems to run the initialiser of this initialisation.
    pub(crate) fn is_running(&self) -> bool {
        // ORDERING: relaxed: it decides only what is recorded.
        self.state.load(Relaxed) & IS_RUNNING != 0
    }

    /// A thread begins to run the initialiser, or has run it.
    pub(crate) fn set_running(&self, is_running: bool) {
        // ORDERING: relaxed, as above.
        if is_running {
            self.state.fetch_or(IS_RUNNING, Relaxed);
        } else {
            self.state.fetch_and(!IS_RUNNING, Relaxed);
        }
    }

    #[cold]
    #[inline(never)]
    fn set(&self, flag: u8) {
        // ORDERING: relaxed, as above.
        let before = self.state.fetch_or(flag, Relaxed);
        if flag == IS_USED && before & HAS_NO_GUARD != 0 {
            instance::request(Request::LOCK_WITHOUT_GUARD, self.address());
        }
    }
}

impl Drop for Identity {
    #[inline]
    fn drop(&mut self) {
        let state = *self.state.get_mut();
        if state & IS_NAMED != 0 {
            instance::unname_lock(self.address());
        }
        if state & IS_USED != 0
            && let Some(slot) = Slot::current()
        {
            let is_held: fn(u64) -> bool = |state| state == HELD_HELD || state == HELD_COND_WAIT;
            if let Some(mut entry) = slot.find(self.address(), is_held) {
                entry.set_state(HELD_DESTROYED);
            }
            by_hand::destroyed_here(slot, self.address());
        }
    }
}
