//! `librip_preload.so`: records the locks of unmodified programs.
//!
//! ```text
//! LD_PRELOAD=/path/to/librip_preload.so program
//! ```
//!
//! It exports the functions of the C library that lock, and records around those of the same name behind it: every
//! mutex, readers-writer lock, spin lock, condition variable and semaphore of `pthread.h`, `semaphore.h` and
//! `threads.h`, with the address of the lock and the place of the call. `RIP_*` in the environment is obeyed
//! as everywhere. It does not see locks that the C library uses within itself, locks made of futexes or atomics
//! by the program, and calls that do not go through the dynamic linker.
//!
//! # Invariants
//!
//! * What a call returns, and what it does, is what it would without us. That includes errors, `errno`, and which calls
//!   are cancellation points.
//! * Nothing is allocated, no lock is taken and no system call made by us around a lock, but for a thread's first
//!   operation. `dlsym` may allocate once after each `dlopen`.
//! * The functions work before any constructor has run, ours included; they record from then on.
//! * No frame of ours has anything to clean up: `pthread_cancel` and `pthread_exit` unwind through them.
//!
//! # The parts
//!
//! `calls` has the entries, which find out where they were called from; `mutex`, `rwlock`, `spin`, `condition`,
//! `semaphore` and `c11` say what is done; `acquire` is what the locks among them have in common. `real` has the C
//! library's functions, `elf` finds them; `modules` notices libraries that are loaded later, `filters` that the program
//! forbids itself system calls, `ending` that it ends without `exit`.

#![allow(unsafe_code, reason = "the functions of the C library, by their own names")]

#[cfg(panic = "abort")]
compile_error!("cancelled threads unwind through this library: it needs panic = \"unwind\"");

mod acquire;
mod c11;
mod calls;
mod condition;
mod elf;
mod ending;
mod filters;
mod modules;
mod mutex;
mod real;
mod rwlock;
mod semaphore;
mod spin;

use core::ffi::c_void;

/// What the interposed functions get: a pointer that they pass on.
type Pointer = *mut c_void;

/// The address that an event or an entry has for a lock.
fn address(lock: Pointer) -> u64 {
    lock.expose_provenance() as u64
}

/// Marks the libraries that are interposers: of several copies, the first that the dynamic linker finds does the work,
/// and knows by this symbol which others to pass over.
///
/// It leads to a static that nobody else sees: the symbol itself means the first copy's, in all of them.
#[unsafe(no_mangle)]
pub static librip_preload_1: &u8 = &OWN;

/// What is this copy's alone.
static OWN: u8 = 1;

/// The dynamic linker calls it when it has loaded the library, before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

extern "C" fn loaded() {
    real::find();
    if elf::is_first_copy() {
        // Without a ring the program runs as it would without us: there is nobody to tell.
        let _ = librip::init();
        modules::watch_forks();
        // Here, rather than behind whatever filter of system calls the program sets up.
        librip::interpose::enter();
    }
}
