//! `librip_preload.so`: records the locks of unmodified programs.
//!
//! ```text
//! LD_PRELOAD=/path/to/librip_preload.so program
//! ```
//!
//! It exports the C library's functions that lock, and records around the functions of the same name that it replaces:
//! every mutex, readers-writer lock, spin lock, condition variable, semaphore and barrier of `pthread.h`, `semaphore.h`
//! and `threads.h`, every join of a thread and every initialisation that is done once, with the address of the lock and
//! the location of the call. It obeys the `RIP_*` variables like all of librip. It does not see locks that the C
//! library uses internally, locks that the program makes of futexes or atomics, and calls that do not go through the
//! dynamic linker.
//!
//! # Invariants
//!
//! * What a call returns and does is what it would without us. That includes errors, `errno`, and which calls are
//!   cancellation points.
//! * Around a lock we allocate nothing, lock nothing and make no system call, except at a thread's first operation.
//! * Nothing here uses the program's allocator, which may be what calls us (`arena`).
//! * The functions work before any constructor has run, ours included. They record from then on.
//! * No frame of ours has anything to clean up: `pthread_cancel` and `pthread_exit` unwind through them.
//!
//! # The parts
//!
//! `calls` has the entries, which find out where they were called. `object` has the types of what the program passes.
//! `mutex`, `rwlock`, `spin`, `condition`, `semaphore`, `barrier` and `c11` have a function for each entry; `acquire`
//! is what the locks among them have in common, `blocking` what the others have, and `incident` what errors mean.
//! `once` tells who runs an initialiser, and `thread` who creates and joins whom. `real` has the C library's functions,
//! and `elf` finds them. `modules` notices libraries that are loaded later, `filters` that the program restricts its
//! system calls, `forks` that it forks or becomes a daemon, `exit` that it ends without `exit`, and `exec` that it
//! becomes another program.

#![allow(unsafe_code, reason = "the functions of the C library, by their own names")]

#[cfg(panic = "abort")]
compile_error!("cancelled threads unwind through this library: it needs panic = \"unwind\"");

mod acquire;
mod arena;
mod barrier;
mod blocking;
mod c11;
mod calls;
mod condition;
mod elf;
mod exec;
mod exit;
mod filters;
mod forks;
mod incident;
mod modules;
mod mutex;
mod object;
mod once;
mod real;
mod rwlock;
mod semaphore;
mod spin;
mod thread;

/// Marks the libraries that are interposers. If there are several copies, the first that the dynamic linker finds does
/// the work, and skips the others by this symbol.
///
/// It points to a static that only this copy can name: in all copies, the symbol itself means that of the first copy.
#[unsafe(no_mangle)]
pub static librip_preload_1: &u8 = &OWN;

/// Its address is different in each copy.
static OWN: u8 = 1;

#[global_allocator]
static ARENA: arena::Arena = arena::Arena::new();

/// The dynamic linker calls it when it has loaded the library, before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

extern "C" fn loaded() {
    real::find();
    if elf::is_first_copy() {
        // Without a ring the program runs as it would without us. There is nobody to report an error to.
        let _ = librip::interpose::start_at_first_mark();
        forks::watch();
    }
}
