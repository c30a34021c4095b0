//! Sites of lock events, and where an event comes from: a site that is inlined into the program, or an interposed call.
//!
//! It records nothing. `protocol` says which events an operation has, and asks the [`Origin`] for what differs.

#![allow(unsafe_code, reason = "sites are assembly")]
#![cfg_attr(
    not(feature = "interpose"),
    allow(unreachable_pub, reason = "with that feature, `interpose` exports these types")
)]
#![allow(private_interfaces, reason = "other crates name an origin, and call none of its methods")]

use core::panic::Location;

use crate::lock::table::Slot;
#[cfg(feature = "interpose")]
use librip_format::{
    HELD_CALLER, HELD_PROCESS_SHARED, HELD_TRY, LOCK_TYPE_SPIN, SITE_LOCK_TYPE_SHIFT, SITE_TRY,
};
use librip_format::{HELD_SHARED, SITE_SHARED};

/// What the sites of an operation have in common: `SITE_*` and a `LOCK_TYPE_*`.
pub type Flags = u16;

/// Where an event comes from: what its operands and its entry in the held-lock table say of the place.
pub trait Origin: Copy {
    /// Whether an entry has a call in place of a PC: see `librip_format::call`.
    const IS_CALL: bool = false;
    /// Whether an event reads the clock if a time is due, also of a thread that [reads none](Slot::reads_clock) for it.
    const HAS_TIME: bool = false;
    /// The operands of an event that say the place.
    #[doc(hidden)]
    type Place: IntoIterator<Item = u64, IntoIter: ExactSizeIterator>;

    /// The place of an event at this site.
    #[doc(hidden)]
    fn place(self, pc: u64) -> Self::Place;

    /// An entry for a lock that is acquired at this site.
    fn entry_pc(self, site: u64) -> u64;

    /// The flags of an entry, after those of the site.
    fn entry_flags(site_flags: Flags) -> u64;

    /// Records an event and returns its sequence. The operands are `times`, those of the origin, and `operands`.
    #[doc(hidden)]
    #[inline(always)]
    fn event<const A: usize, const B: usize>(
        self,
        slot: Slot,
        times: [u64; A],
        operands: [u64; B],
        pc: u64,
    ) -> u64 {
        slot.event((times, self.place(pc), operands), pc)
    }

    /// Records an event without times, of a thread that [reads no clock](Slot::reads_clock) for it.
    #[doc(hidden)]
    #[inline(always)]
    fn plain_event<const B: usize>(self, slot: Slot, operands: [u64; B], pc: u64) -> u64 {
        if Self::HAS_TIME {
            self.event(slot, [], operands, pc)
        } else {
            slot.plain_event((self.place(pc), operands), pc)
        }
    }

    /// Records that an acquisition begins, without a time, and returns the event's sequence. `reads_clock`: whether it
    /// looks if a time is due.
    #[doc(hidden)]
    #[inline(always)]
    fn begin_event(self, slot: Slot, lock: u64, pc: u64, reads_clock: bool) -> u64 {
        if reads_clock { self.event(slot, [], [lock], pc) } else { self.plain_event(slot, [lock], pc) }
    }

    /// The thread is about to wait, and has time: notes in the ring what explains this place without the program.
    #[doc(hidden)]
    #[inline(always)]
    fn note(self, _slot: Slot) {}
}

/// The site is where the program is: a wrapper is inlined there, or the program has a mark there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Here;

impl Origin for Here {
    type Place = [u64; 0];

    #[inline(always)]
    fn entry_pc(self, site: u64) -> u64 {
        site
    }

    #[inline(always)]
    fn entry_flags(site_flags: Flags) -> u64 {
        held_flags(site_flags)
    }

    #[inline(always)]
    fn place(self, _pc: u64) -> [u64; 0] {
        []
    }
}

/// An interposed call: the site is the interposer's, and this return address says where the program called.
///
/// Each event has it as the operand CALLER, and an entry has it as its PC.
#[cfg(feature = "interpose")]
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Caller(pub u64);

#[cfg(feature = "interpose")]
impl Origin for Caller {
    type Place = [u64; 1];

    #[inline(always)]
    fn entry_pc(self, _site: u64) -> u64 {
        self.0
    }

    #[inline(always)]
    fn entry_flags(site_flags: Flags) -> u64 {
        let tries = if site_flags & SITE_TRY != 0 { HELD_TRY } else { 0 };
        // A spin lock does not say whether processes share it, so it may be shared.
        let is_spin = site_flags >> SITE_LOCK_TYPE_SHIFT == LOCK_TYPE_SPIN;
        held_flags(site_flags) | HELD_CALLER | tries | if is_spin { HELD_PROCESS_SHARED } else { 0 }
    }

    #[inline(always)]
    fn place(self, _pc: u64) -> [u64; 1] {
        [self.0]
    }
}

#[inline(always)]
pub(crate) fn held_flags(site_flags: Flags) -> u64 {
    if site_flags & SITE_SHARED != 0 { HELD_SHARED } else { 0 }
}

/// The sites of a wrapper's operations, but for those of its releases, which do not know their caller, and for
/// acquisitions without a time, which are calls. Each method expands to a site in the function that it is inlined into.
pub(crate) trait Sites: Copy {
    const FLAGS: Flags;
    /// What the events say of the caller.
    type Origin: Origin;
    /// What the events of waits say of the caller and of its callers.
    type Waiter: Origin;
    fn origin(self) -> Self::Origin;
    fn waiter(self) -> Self::Waiter;
    fn acquire_begin_timed(self) -> u64;
    /// A future waits. The stack is that of the thread that polls it.
    fn wait(self) -> u64;
    /// A thread waits. Its events are those of a [`waiter`](Sites::waiter), as those of a condition's wait are.
    fn wait_of_thread(self) -> u64;
    fn try_failed(self) -> u64;
    fn acquired(self) -> u64;
    fn acquired_timed(self) -> u64;
    fn condition_wait(self) -> u64;
    fn condition_woken(self) -> u64;
    fn condition_signalled(self) -> u64;
    fn condition_unheard(self) -> u64;
}

/// Defines a type for [`Sites`], whose sites name the source file where this is: `define_sites!(NAME)`.
///
/// The type has the flags as a parameter, and the location of the call, which events name and which keeps sites apart:
/// see [`apart`].
macro_rules! define_sites {
    ($name:ident) => {
        #[derive(Clone, Copy)]
        pub(crate) struct $name<const FLAGS: $crate::lock::site::Flags>(
            pub(crate) &'static ::core::panic::Location<'static>,
        );

        impl<const FLAGS: $crate::lock::site::Flags> $crate::lock::site::Sites for $name<FLAGS> {
            const FLAGS: $crate::lock::site::Flags = FLAGS;
            type Origin = $crate::lock::caller::At<FLAGS>;
            type Waiter = $crate::lock::stack::WaitingAt<FLAGS>;

            #[inline(always)]
            fn origin(self) -> Self::Origin {
                $crate::lock::caller::At(self.0)
            }

            #[inline(always)]
            fn waiter(self) -> Self::Waiter {
                $crate::lock::stack::WaitingAt::here(self.origin())
            }

            $crate::lock::site::define_sites! {
                sites
                acquire_begin_timed: KIND_LOCK_ACQUIRE_BEGIN [OPERAND_TIME, OPERAND_LOCATION, OPERAND_LOCK];
                wait: KIND_LOCK_WAIT [OPERAND_TIME, OPERAND_LOCATION, OPERAND_LOCK];
                wait_of_thread:
                    KIND_LOCK_WAIT [OPERAND_TIME, OPERAND_LOCATION, OPERAND_STACK, OPERAND_STACK, OPERAND_STACK,
                        OPERAND_STACK, OPERAND_LOCK];
                try_failed: KIND_LOCK_TRY_FAILED [OPERAND_LOCATION, OPERAND_LOCK];
                acquired: KIND_LOCK_ACQUIRED [OPERAND_LOCATION, OPERAND_LOCK];
                acquired_timed: KIND_LOCK_ACQUIRED [OPERAND_TIME, OPERAND_LOCATION, OPERAND_LOCK];
                condition_wait:
                    KIND_CONDITION_WAIT [OPERAND_TIME, OPERAND_LOCATION, OPERAND_STACK, OPERAND_STACK,
                        OPERAND_STACK, OPERAND_STACK, OPERAND_LOCK, OPERAND_CONDITION];
                condition_woken:
                    KIND_CONDITION_WOKEN [OPERAND_TIME, OPERAND_LOCATION, OPERAND_LOCK, OPERAND_CONDITION];
                condition_signalled: KIND_CONDITION_SIGNALLED [OPERAND_LOCATION, OPERAND_CONDITION];
                condition_unheard: KIND_CONDITION_UNHEARD [OPERAND_LOCATION, OPERAND_CONDITION];
            }
        }
    };
    (sites $($site:ident: $kind:ident [$($operand:ident),*];)*) => {
        $(
            #[inline(always)]
            fn $site(self) -> u64 {
                let pc = $crate::lock::site::wrapper_site!($kind, FLAGS, [$($operand),*]);
                $crate::lock::site::apart(pc, self.0)
            }
        )*
    };
}
pub(crate) use define_sites;

/// Expands to the PC of a site in a wrapper: `wrapper_site!(KIND, FLAGS, [OPERANDS])`, constants of `librip_format`.
macro_rules! wrapper_site {
    ($kind:ident, $flags:expr, [$($operand:ident),*]) => {
        $crate::__rip_text_site!(
            $kind,
            $flags | $crate::__private::format::SITE_WRAPPER,
            [$($operand),*],
            ""
        )
    };
}
pub(crate) use wrapper_site;

/// Keeps the sites of two calls apart that are inlined into one function.
///
/// LLVM merges the ends of blocks that are equal, assembly included. Then both sites have one PC, and the line of one
/// of them or none. Here the blocks differ after the site: each loads the location of its caller.
#[inline(always)]
pub(crate) fn apart(pc: u64, location: &'static Location<'static>) -> u64 {
    let mut pc = pc;
    // SAFETY: it is empty and changes nothing. Not `pure`, so that it stays where it is.
    unsafe {
        core::arch::asm!(
            "/* {pc} {location} */",
            pc = inout(reg) pc,
            location = in(reg) core::ptr::from_ref(location).addr(),
            options(nomem, nostack, preserves_flags),
        );
    }
    pc
}
