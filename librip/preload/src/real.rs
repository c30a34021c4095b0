//! The C library's functions behind ours: each under its own name, called through a pointer.
//!
//! A pointer leads to a function that finds all of them, until they have been found: so they work at any time, and
//! a call costs one load more than without us. A function that the C library does not have answers ENOSYS; programs
//! that were linked with this C library do not call it.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;

use crate::{Pointer, elf};

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            /// The C library's.
            ///
            /// # Safety
            ///
            /// As the C library's.
            #[inline(always)]
            pub(crate) unsafe fn $name($($argument: $type),*) -> c_int {
                type Function = unsafe extern "C-unwind" fn($($type),*) -> c_int;
                // ORDERING: relaxed: what it leads to is code, which is there whoever stored the pointer.
                let function = address::$name.load(Relaxed);
                // SAFETY: `first::NAME`, or the C library's function of that name, which has this type.
                let function = unsafe { core::mem::transmute::<*mut c_void, Function>(function) };
                // SAFETY: the caller's.
                unsafe { function($($argument),*) }
            }
        )*

        /// Where the functions are.
        #[allow(non_upper_case_globals, reason = "the names are those of the functions")]
        pub(crate) mod address {
            use super::{AtomicPtr, c_void};
            $(
                pub(crate) static $name: AtomicPtr<c_void> =
                    AtomicPtr::new(super::first::$name as *const c_void as *mut c_void);
            )*
        }

        /// What the pointers lead to at first.
        mod first {
            use super::{Pointer, Relaxed, c_int, c_void};
            $(
                pub(super) unsafe extern "C-unwind" fn $name($($argument: $type),*) -> c_int {
                    super::find();
                    // ORDERING: relaxed, as above.
                    let is_found = super::address::$name.load(Relaxed).addr() != ($name as *const c_void).addr();
                    // SAFETY: the caller's.
                    if is_found { unsafe { super::$name($($argument),*) } } else { libc::ENOSYS }
                }
            )*
        }

        static ALL: &[(&CStr, &AtomicPtr<c_void>)] = &[
            $((
                // SANITY: evaluated by the compiler; the names are ours.
                match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!(),
                },
                &address::$name,
            ),)*
            (c"dlopen", &DLOPEN),
            (c"dlmopen", &DLMOPEN),
            (c"dlsym", &DLSYM),
            (c"dlvsym", &DLVSYM),
            (c"prctl", &PRCTL),
            (c"syscall", &SYSCALL),
            (c"_exit", &EXIT),
            (c"_pthread_cleanup_push", &CLEANUP_PUSH),
            (c"_pthread_cleanup_pop", &CLEANUP_POP),
        ];
    };
}

functions! {
    pthread_mutex_lock(mutex: Pointer);
    pthread_mutex_trylock(mutex: Pointer);
    pthread_mutex_timedlock(mutex: Pointer, until: Pointer);
    pthread_mutex_clocklock(mutex: Pointer, clock: c_int, until: Pointer);
    pthread_mutex_unlock(mutex: Pointer);
    pthread_mutex_destroy(mutex: Pointer);
    pthread_rwlock_rdlock(rwlock: Pointer);
    pthread_rwlock_tryrdlock(rwlock: Pointer);
    pthread_rwlock_timedrdlock(rwlock: Pointer, until: Pointer);
    pthread_rwlock_clockrdlock(rwlock: Pointer, clock: c_int, until: Pointer);
    pthread_rwlock_wrlock(rwlock: Pointer);
    pthread_rwlock_trywrlock(rwlock: Pointer);
    pthread_rwlock_timedwrlock(rwlock: Pointer, until: Pointer);
    pthread_rwlock_clockwrlock(rwlock: Pointer, clock: c_int, until: Pointer);
    pthread_rwlock_unlock(rwlock: Pointer);
    pthread_rwlock_destroy(rwlock: Pointer);
    pthread_spin_lock(spin: Pointer);
    pthread_spin_trylock(spin: Pointer);
    pthread_spin_unlock(spin: Pointer);
    pthread_spin_destroy(spin: Pointer);
    pthread_cond_wait(condition: Pointer, mutex: Pointer);
    pthread_cond_timedwait(condition: Pointer, mutex: Pointer, until: Pointer);
    pthread_cond_clockwait(condition: Pointer, mutex: Pointer, clock: c_int, until: Pointer);
    sem_wait(semaphore: Pointer);
    sem_trywait(semaphore: Pointer);
    sem_timedwait(semaphore: Pointer, until: Pointer);
    sem_clockwait(semaphore: Pointer, clock: c_int, until: Pointer);
    sem_post(semaphore: Pointer);
    sem_getvalue(semaphore: Pointer, value: *mut c_int);
    mtx_lock(mutex: Pointer);
    mtx_trylock(mutex: Pointer);
    mtx_timedlock(mutex: Pointer, until: Pointer);
    mtx_unlock(mutex: Pointer);
    mtx_destroy(mutex: Pointer);
    cnd_wait(condition: Pointer, mutex: Pointer);
    cnd_timedwait(condition: Pointer, mutex: Pointer, until: Pointer);
}

/// `dlopen`, or [`nothing`] before it was found: the entry in `calls` finds it, and jumps there.
pub(crate) static DLOPEN: AtomicPtr<c_void> = AtomicPtr::new(NOTHING);
/// See [`DLOPEN`].
pub(crate) static DLMOPEN: AtomicPtr<c_void> = AtomicPtr::new(NOTHING);
/// See [`DLOPEN`].
pub(crate) static DLSYM: AtomicPtr<c_void> = AtomicPtr::new(NOTHING);
/// See [`DLOPEN`].
pub(crate) static DLVSYM: AtomicPtr<c_void> = AtomicPtr::new(NOTHING);
/// See [`DLOPEN`].
pub(crate) static PRCTL: AtomicPtr<c_void> = AtomicPtr::new(NOTHING);
/// See [`DLOPEN`].
pub(crate) static SYSCALL: AtomicPtr<c_void> = AtomicPtr::new(NOTHING);
/// See [`DLOPEN`]. `_Exit` is the same.
pub(crate) static EXIT: AtomicPtr<c_void> = AtomicPtr::new(NOTHING);
static CLEANUP_PUSH: AtomicPtr<c_void> = AtomicPtr::new(NOTHING);
static CLEANUP_POP: AtomicPtr<c_void> = AtomicPtr::new(NOTHING);

const NOTHING: *mut c_void = nothing as *const c_void as *mut c_void;

/// A null pointer, or success of a function without a result.
extern "C" fn nothing() -> *mut c_void {
    core::ptr::null_mut()
}

/// Finds all functions. Doing it again, or in two threads at a time, does no harm.
#[cold]
#[inline(never)]
pub(crate) fn find() {
    // What came first stays: `is_found` by module, because the first definition is the one that counts.
    let mut found = [false; ALL.len()];
    for symbols in elf::behind() {
        for (&(name, address), found) in ALL.iter().zip(&mut found) {
            if !*found && let Some(function) = symbols.function(name) {
                // ORDERING: relaxed: a pointer to code.
                address.store(core::ptr::with_exposed_provenance_mut(function), Relaxed);
                *found = true;
            }
        }
    }
}

/// Finds the functions that are jumped to, unless that was done.
pub(crate) fn find_once() {
    // ORDERING: relaxed, as above.
    if SYSCALL.load(Relaxed) == NOTHING {
        find();
    }
}

/// `struct _pthread_cleanup_buffer`.
#[repr(C)]
pub(crate) struct Cleanup {
    routine: Option<extern "C" fn(Pointer)>,
    argument: Pointer,
    cancel_type: c_int,
    previous: Pointer,
}

impl Cleanup {
    pub(crate) const fn new() -> Cleanup {
        Cleanup {
            routine: None,
            argument: core::ptr::null_mut(),
            cancel_type: 0,
            previous: core::ptr::null_mut(),
        }
    }

    /// Sees to it that `routine` runs, should the thread be cancelled: what `pthread_cleanup_push` was before it became
    /// a macro, and still is within the C library. The buffer's place on the stack tells when its turn has come.
    ///
    /// # Safety
    ///
    /// The buffer and the argument stay where they are, in the frame of the caller, until `pop`.
    #[inline(always)]
    pub(crate) unsafe fn push(&mut self, routine: extern "C" fn(Pointer), argument: Pointer) {
        type Push = unsafe extern "C" fn(*mut Cleanup, extern "C" fn(Pointer), Pointer);
        // ORDERING: relaxed: a pointer to code.
        let push = CLEANUP_PUSH.load(Relaxed);
        // SAFETY: `nothing`, for which arguments are no harm, or the C library's function, which has this type.
        let push = unsafe { core::mem::transmute::<*mut c_void, Push>(push) };
        // SAFETY: the caller's.
        unsafe { push(self, routine, argument) };
    }

    /// Ends what `push` began, without running the routine.
    ///
    /// # Safety
    ///
    /// In the function that has called `push`.
    #[inline(always)]
    pub(crate) unsafe fn pop(&mut self) {
        type Pop = unsafe extern "C" fn(*mut Cleanup, c_int);
        // ORDERING: relaxed: a pointer to code.
        let pop = CLEANUP_POP.load(Relaxed);
        // SAFETY: as in `push`.
        let pop = unsafe { core::mem::transmute::<*mut c_void, Pop>(pop) };
        // SAFETY: the caller's.
        unsafe { pop(self, 0) };
    }
}
