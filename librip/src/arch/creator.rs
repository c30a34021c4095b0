//! The thread-local memory that says who created a thread, until the thread claims a slot, and where its stack is.
//!
//! It is separate from the thread's block, because modules with marks in C have blocks too and need no more than they
//! have. A claim reads it, maybe in a signal handler. So it is in static TLS, as the block is: `thread_local!` in a
//! shared library calls a function that may allocate.

use core::cell::Cell;

/// Who created the calling thread: a slot and its count then. All zero when unknown.
///
/// What the creator says of the stack is here too.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Creator {
    /// One more than the index of the slot.
    pub(crate) slot: Cell<u64>,
    pub(crate) count: Cell<u64>,
    /// An address in the thread's own stack: from here to the thread pointer there is nothing else. 0 if unknown.
    pub(crate) stack_begin: Cell<u64>,
}

core::arch::global_asm!(
    ".pushsection .tbss.librip,\"awT\",@nobits",
    ".balign 8",
    ".globl librip_creator_1",
    ".hidden librip_creator_1",
    ".type librip_creator_1,@object",
    ".size librip_creator_1,24",
    "librip_creator_1: .zero 24",
    ".popsection",
);

/// The calling thread's.
pub(crate) fn creator<'a>() -> &'a Creator {
    let creator: *const Creator;
    // SAFETY: as in `thread_block`: it adds a constant to the thread pointer, and writes nothing.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!(
            "mov {creator}, qword ptr fs:[0]",
            "add {creator}, qword ptr [rip + librip_creator_1@GOTTPOFF]",
            creator = out(reg) creator,
            options(nostack, readonly, pure),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!(
            "mrs {scratch}, tpidr_el0",
            "adrp {creator}, :gottprel:librip_creator_1",
            "ldr {creator}, [{creator}, :gottprel_lo12:librip_creator_1]",
            "add {creator}, {creator}, {scratch}",
            creator = out(reg) creator,
            scratch = out(reg) _,
            options(nostack, readonly, pure),
        );
    }
    // SAFETY: the memory above has this size and alignment. It is zero at first, which is valid. Only this thread
    // accesses it, and all fields are cells.
    unsafe { &*creator }
}

const _: () = assert!(size_of::<Creator>() == 24, "librip_creator_1 has this size in assembly");
