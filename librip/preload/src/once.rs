//! `pthread_once` and `call_once`: the thread that runs the initialiser holds a lock meanwhile, and others wait for it.
//!
//! C++'s `std::call_once` calls `pthread_once`. A call that finds the initialisation done records nothing.
//!
//! # How the initialiser is noticed
//!
//! The C library gets [`enter`] in place of the program's initialiser. That has no argument, so a thread-local pointer
//! leads it to the call that it belongs to.
//!
//! # Initialisers that do not return
//!
//! An exception, `pthread_exit` or a cancellation may leave the initialiser. The C library catches each of them, and
//! the next call runs its initialiser from the start. So [`enter`] has a landing pad, as a C function with a cleanup
//! has: the tables name the personality function of the C compiler. Rust code with something to clean up would not do:
//! it may not be unwound by force.

use core::arch::naked_asm;
use core::cell::Cell;
use core::ffi::c_int;
use core::ptr;

use librip::interpose::{Caller, Initialisation, StackPointer};

use crate::object::{Object, Once, Routine};
use crate::real;

/// A call that may run an initialiser. It is in the frame of [`call`].
struct Call {
    initialiser: Routine,
    state: Cell<Initialisation>,
    /// The thread's call around this one, or null.
    outer: *const Call,
}

thread_local! {
    /// The thread's innermost call, or null. Only [`begin`] reads what it points to.
    static INNERMOST: Cell<*const Call> = const { Cell::new(ptr::null()) };
}

pub(crate) extern "C-unwind" fn run(once: Object<Once>, initialiser: Routine, caller: Caller) -> c_int {
    if once.is_done() {
        return real::pthread_once(once, initialiser);
    }
    call(once, initialiser, caller, move |enter| real::pthread_once(once, enter))
}

/// It has no result.
pub(crate) extern "C-unwind" fn run_c11(once: Object<Once>, initialiser: Routine, caller: Caller) -> c_int {
    if once.is_done() {
        return real::call_once(once, initialiser);
    }
    call(once, initialiser, caller, move |enter| real::call_once(once, enter))
}

/// Calls the C library's function with an initialiser of ours.
#[inline(never)]
fn call(
    once: Object<Once>,
    initialiser: Routine,
    caller: Caller,
    with: impl FnOnce(Routine) -> c_int,
) -> c_int {
    let state = Initialisation::begin(once.address(), caller, once.is_running(), StackPointer::here());
    let call = Call { initialiser, state: Cell::new(state), outer: INNERMOST.get() };
    INNERMOST.set(&raw const call);
    let result = with(Routine::of(enter));
    INNERMOST.set(call.outer);
    call.state.get().end();
    result
}

/// What [`enter`] needs, as two registers.
#[repr(C)]
struct Beginning {
    initialiser: usize,
    call: *const Call,
}

/// The thread is about to run the initialiser of its innermost call.
extern "C" fn begin() -> Beginning {
    let innermost = INNERMOST.get();
    // SAFETY: the C library calls `enter` within `call`, in the same thread, and `call` has set the pointer just
    // before.
    let call = unsafe { &*innermost };
    change(call, Initialisation::runs);
    Beginning { initialiser: call.initialiser.address(), call: innermost }
}

/// The initialiser has returned.
///
/// # Safety
///
/// The pointer is from [`begin`], and the frame of that call is still there.
unsafe extern "C" fn returned(call: *const Call) {
    // SAFETY: the caller guarantees it.
    change(unsafe { &*call }, Initialisation::has_run);
}

/// The initialiser is left without a return, and so is the call.
///
/// # Safety
///
/// As for [`returned`].
unsafe extern "C" fn left(call: *const Call) {
    // SAFETY: the caller guarantees it.
    let call = unsafe { &*call };
    change(call, Initialisation::has_run);
    INNERMOST.set(call.outer);
    call.state.get().end();
}

fn change(call: &Call, by: impl FnOnce(&mut Initialisation)) {
    let mut state = call.state.get();
    by(&mut state);
    call.state.set(state);
}

/// The table of call sites of [`enter`], and the pointer to the personality function, as the C compiler emits them.
macro_rules! tables {
    () => {
        concat!(
            ".pushsection .gcc_except_table.librip_once, \"a\"\n",
            ".Llibrip_once_table:\n",
            // The landing pad counts from the function's begin, there are no types, and the numbers are ULEB128.
            ".byte 0xff\n",
            ".byte 0xff\n",
            ".byte 0x01\n",
            ".uleb128 .Llibrip_once_sites_end - .Llibrip_once_sites\n",
            ".Llibrip_once_sites:\n",
            ".uleb128 .Llibrip_once_call - .Llibrip_once_begin\n",
            ".uleb128 .Llibrip_once_called - .Llibrip_once_call\n",
            ".uleb128 .Llibrip_once_left - .Llibrip_once_begin\n",
            ".uleb128 0\n",
            ".Llibrip_once_sites_end:\n",
            ".popsection\n",
            ".hidden DW.ref.__gcc_personality_v0\n",
            ".weak DW.ref.__gcc_personality_v0\n",
            ".pushsection .data.rel.local.DW.ref.__gcc_personality_v0, \"awG\", %progbits, ",
            "DW.ref.__gcc_personality_v0, comdat\n",
            ".balign 8\n",
            ".type DW.ref.__gcc_personality_v0, %object\n",
            ".size DW.ref.__gcc_personality_v0, 8\n",
            "DW.ref.__gcc_personality_v0:\n",
            ".quad __gcc_personality_v0\n",
            ".popsection",
        )
    };
}

/// The initialiser that the C library gets. It calls the program's.
///
/// # The tables
///
/// There is one call site, with a landing pad and without an action, as the C compiler makes it for a variable with a
/// cleanup. Everything else in the function is in no call site, so the personality function passes it by.
///
/// # Safety
///
/// The C library calls it, within [`call`].
#[unsafe(naked)]
unsafe extern "C-unwind" fn enter() {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        ".cfi_startproc",
        ".cfi_personality 0x9b, DW.ref.__gcc_personality_v0",
        ".cfi_lsda 0x1b, .Llibrip_once_table",
        ".Llibrip_once_begin:",
        "sub rsp, 24",
        ".cfi_adjust_cfa_offset 24",
        "call {begin}",
        "mov qword ptr [rsp], rdx",
        ".Llibrip_once_call:",
        "call rax",
        ".Llibrip_once_called:",
        "mov rdi, qword ptr [rsp]",
        "call {returned}",
        ".cfi_remember_state",
        "add rsp, 24",
        ".cfi_adjust_cfa_offset -24",
        "ret",
        ".cfi_restore_state",
        // The unwinder comes here with the exception.
        ".Llibrip_once_left:",
        "mov qword ptr [rsp + 8], rax",
        "mov rdi, qword ptr [rsp]",
        "call {left}",
        "mov rdi, qword ptr [rsp + 8]",
        "call _Unwind_Resume@PLT",
        "ud2",
        ".cfi_endproc",
        tables!(),
        begin = sym begin,
        returned = sym returned,
        left = sym left,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        ".cfi_startproc",
        ".cfi_personality 0x9b, DW.ref.__gcc_personality_v0",
        ".cfi_lsda 0x1b, .Llibrip_once_table",
        ".Llibrip_once_begin:",
        "str x30, [sp, #-32]!",
        ".cfi_adjust_cfa_offset 32",
        ".cfi_rel_offset x30, 0",
        "bl {begin}",
        "str x1, [sp, #8]",
        ".Llibrip_once_call:",
        "blr x0",
        ".Llibrip_once_called:",
        "ldr x0, [sp, #8]",
        "bl {returned}",
        ".cfi_remember_state",
        "ldr x30, [sp], #32",
        ".cfi_adjust_cfa_offset -32",
        ".cfi_restore x30",
        "ret",
        ".cfi_restore_state",
        // The unwinder comes here with the exception.
        ".Llibrip_once_left:",
        "str x0, [sp, #16]",
        "ldr x0, [sp, #8]",
        "bl {left}",
        "ldr x0, [sp, #16]",
        "bl _Unwind_Resume",
        "udf #0",
        ".cfi_endproc",
        tables!(),
        begin = sym begin,
        returned = sym returned,
        left = sym left,
    );
}
