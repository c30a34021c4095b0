//! `pthread_create` and `pthread_join`, and the like: what a thread did before it created another one, and after it
//! joined it, is ordered. A thread that joins another one waits for it meanwhile.
//!
//! # How a new thread learns of its creator
//!
//! The new thread begins in [`enter`], which takes what the creator left for it in a cell and jumps to the program's
//! function. Its stack is then as it would be without us, so an unwinder or a debugger sees nothing of it. Cells are
//! static memory: an allocator may be what creates the thread. If all of them are in use, the thread begins in the
//! program's function, and its creator is unknown. So is that of a thread whose creator has recorded nothing. The
//! creator also says how long the new thread's stack is, which a thread cannot ask without a system call.
//!
//! # Invariants
//!
//! * Nothing is allocated, locked or waited for.
//! * A cell belongs to the thread that took it until that thread's `pthread_create` fails or the new thread has begun.

use core::arch::naked_asm;
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU64, AtomicUsize};

use librip::interpose::{
    Blocking, Caller, Flags, JOIN, JOIN_TRY, Position, StackPointer, created_at, is_recorded, joined,
    position_of_creator,
};

use crate::blocking::block;
use crate::object::{Argument, Attributes, Deadline, Joined, Routine, Thread};
use crate::real;

/// Threads that can be on their way at a time.
const CELLS: usize = 4096;
const BITS: usize = u64::BITS as usize;

/// What a creator leaves for the new thread.
struct Cell {
    routine: AtomicUsize,
    argument: AtomicUsize,
    /// The creator's slot; [`UNKNOWN`] if it has recorded nothing.
    index: AtomicU64,
    count: AtomicU64,
    /// The length of the new thread's stack, bytes; 0 if it is not known.
    stack_len_bytes: AtomicUsize,
}

/// No slot has this index.
const UNKNOWN: u64 = u64::MAX;

static ALL: [Cell; CELLS] = [const {
    Cell {
        routine: AtomicUsize::new(0),
        argument: AtomicUsize::new(0),
        index: AtomicU64::new(0),
        count: AtomicU64::new(0),
        stack_len_bytes: AtomicUsize::new(0),
    }
}; CELLS];

static IN_USE: [AtomicU64; CELLS / BITS] = [const { AtomicU64::new(0) }; CELLS / BITS];

/// Takes the first free cell.
fn take() -> Option<usize> {
    for (at, bits) in IN_USE.iter().enumerate() {
        // ORDERING: relaxed: the exchange below decides.
        let mut seen = bits.load(Relaxed);
        while seen != u64::MAX {
            let free = seen.trailing_ones();
            // ORDERING: acquire, pairs with the release in `give_back`: the last user has read the cell.
            match bits.compare_exchange_weak(seen, seen | 1 << free, Acquire, Relaxed) {
                Ok(_) => return Some(at * BITS + free as usize),
                Err(now) => seen = now,
            }
        }
    }
    None
}

fn give_back(cell: usize) {
    // ORDERING: release, pairs with the acquire in `take`.
    IN_USE[cell / BITS].fetch_and(!(1 << (cell % BITS)), Release);
}

/// The length of the stack of a thread with these attributes, bytes; 0 if it is not known.
///
/// A program may change the default at any time. A length that is too large would have us read beyond a stack.
fn stack_len_bytes(attributes: Attributes) -> usize {
    let mut len = 0;
    if attributes.is_null() {
        let mut default = MaybeUninit::uninit();
        if real::pthread_getattr_default_np(&mut default) == 0 {
            len = stack_len_bytes(Attributes::of(&default));
            real::pthread_attr_destroy(&mut default);
        }
        return len;
    }
    if real::pthread_attr_getstacksize(attributes, &mut len) == 0 { len } else { 0 }
}

/// Creates a thread by the C library's function, which gets the function and the argument to begin with.
#[inline(always)]
fn create(
    routine: Routine,
    argument: Argument,
    attributes: Attributes,
    create: impl FnOnce(Routine, Argument) -> c_int,
) -> c_int {
    let Some(cell) = take() else { return create(routine, argument) };
    let position = position_of_creator();
    let Cell { routine: into, argument: with, index, count, stack_len_bytes: len } = &ALL[cell];
    // ORDERING: relaxed: the creation of the thread orders what its creator did before it.
    into.store(routine.address(), Relaxed);
    with.store(argument.address(), Relaxed);
    index.store(position.map_or(UNKNOWN, |position| position.index), Relaxed);
    count.store(position.map_or(0, |position| position.count), Relaxed);
    len.store(stack_len_bytes(attributes), Relaxed);
    let result = create(Routine::of(enter), Argument::of(cell));
    if result != 0 {
        give_back(cell);
    }
    result
}

/// A function and its argument, as two registers.
#[repr(C)]
struct Beginning {
    routine: usize,
    argument: usize,
}

/// Takes what the creator left for the calling thread.
extern "C" fn begin(cell: usize) -> Beginning {
    let Cell { routine, argument, index, count, stack_len_bytes } = &ALL[cell];
    // ORDERING: relaxed, as in `create`.
    let beginning = Beginning { routine: routine.load(Relaxed), argument: argument.load(Relaxed) };
    let position = Position { index: index.load(Relaxed), count: count.load(Relaxed) };
    created_at(Some(position).filter(|at| at.index != UNKNOWN), stack_len_bytes.load(Relaxed) as u64);
    give_back(cell);
    beginning
}

/// Where a thread begins. The argument is the index of a cell.
///
/// # Safety
///
/// The C library calls it, in a new thread, with a cell that the creator took for this thread.
#[unsafe(naked)]
unsafe extern "C-unwind" fn enter() {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        ".cfi_startproc",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {begin}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "mov rdi, rdx",
        "jmp rax",
        ".cfi_endproc",
        begin = sym begin,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        ".cfi_startproc",
        "str x30, [sp, #-16]!",
        ".cfi_adjust_cfa_offset 16",
        ".cfi_rel_offset x30, 0",
        "bl {begin}",
        "ldr x30, [sp], #16",
        ".cfi_adjust_cfa_offset -16",
        ".cfi_restore x30",
        "mov x16, x0",
        "mov x0, x1",
        "br x16",
        ".cfi_endproc",
        begin = sym begin,
    );
}

/// Replaces the C library's function.
#[unsafe(no_mangle)]
extern "C-unwind" fn pthread_create(
    thread: Thread,
    attributes: Attributes,
    routine: Routine,
    argument: Argument,
) -> c_int {
    create(routine, argument, attributes, move |routine, argument| {
        real::pthread_create(thread, attributes, routine, argument)
    })
}

/// Replaces the C library's function.
#[unsafe(no_mangle)]
extern "C-unwind" fn thrd_create(thread: Thread, routine: Routine, argument: Argument) -> c_int {
    create(routine, argument, Attributes::none(), move |routine, argument| {
        real::thrd_create(thread, routine, argument)
    })
}

/// Joins a thread by the program's own call, and records for which thread the caller waits. If that one has ended,
/// there is nothing to wait for.
#[inline(always)]
fn join_by<const FLAGS: Flags>(thread: Joined, caller: Caller, join: impl FnOnce() -> c_int) -> c_int {
    let joined_tid = is_recorded().then(|| thread.tid()).flatten().filter(|&tid| tid != 0);
    let result = match joined_tid {
        Some(tid) => {
            let blocking = Blocking::begin::<FLAGS>(tid.into(), caller, StackPointer::here());
            block::<FLAGS>(blocking, |result| result == 0, join)
        }
        None => join(),
    };
    joins(thread, result)
}

/// Passes on the result of a join, and notes the join if it succeeded.
#[inline(always)]
fn joins(thread: Joined, result: c_int) -> c_int {
    if result == 0 {
        joined(thread.address());
    }
    result
}

pub(crate) extern "C-unwind" fn join(thread: Joined, value: Argument, caller: Caller) -> c_int {
    join_by::<JOIN>(thread, caller, move || real::pthread_join(thread, value))
}

pub(crate) extern "C-unwind" fn timedjoin(
    thread: Joined,
    value: Argument,
    until: Deadline,
    caller: Caller,
) -> c_int {
    join_by::<JOIN_TRY>(thread, caller, move || real::pthread_timedjoin_np(thread, value, until))
}

pub(crate) extern "C-unwind" fn clockjoin(
    thread: Joined,
    value: Argument,
    clock: c_int,
    until: Deadline,
    caller: Caller,
) -> c_int {
    join_by::<JOIN_TRY>(thread, caller, move || real::pthread_clockjoin_np(thread, value, clock, until))
}

pub(crate) extern "C-unwind" fn thrd_join(thread: Joined, value: Argument, caller: Caller) -> c_int {
    join_by::<JOIN>(thread, caller, move || real::thrd_join(thread, value))
}

/// Replaces the C library's function, which does not wait.
#[unsafe(no_mangle)]
extern "C-unwind" fn pthread_tryjoin_np(thread: Joined, value: Argument) -> c_int {
    joins(thread, real::pthread_tryjoin_np(thread, value))
}
