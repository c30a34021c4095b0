//! The C library's functions that ours replace: each under its own name, called through a pointer.
//!
//! Until the functions are found, each pointer leads to a function that finds all of them. So they work at any time,
//! and a call costs one load more than without us. A function that the C library does not have returns ENOSYS.
//! Programs that were linked with this C library do not call it.
//!
//! # From a pointer to a function
//!
//! Rust has no cast from an address to a function pointer, so the calls transmute a `*mut c_void`. Both have the size
//! of an address on the processors that librip supports, and a function there is nothing but its address. The type of
//! the function is that of the C library's header.

use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;

use crate::elf;
use crate::object::{
    Argument, Attributes, Barrier, Condition, Deadline, Joined, Mutex, Object, Once, Routine, Rwlock,
    Semaphore, Spin, Text, Texts, Thread,
};

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            /// The C library's.
            #[inline(always)]
            pub(crate) fn $name($($argument: $type),*) -> c_int {
                type Function = unsafe extern "C-unwind" fn($($type),*) -> c_int;
                // ORDERING: relaxed: it leads to code, which is there whichever thread stored the pointer.
                let function = address::$name.load(Relaxed);
                // SAFETY: `first::NAME`, or the C library's function of that name, which has this type.
                let function = unsafe { core::mem::transmute::<*mut c_void, Function>(function) };
                // SAFETY: the types say that the program has passed these objects to a function for such objects.
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
            use super::{
                Argument, Attributes, Barrier, Condition, Deadline, Joined, MaybeUninit, Mutex, Object, Once, Relaxed,
                Routine, Rwlock, Semaphore, Spin, Text, Texts, Thread, c_int, c_void,
            };
            $(
                pub(super) extern "C-unwind" fn $name($($argument: $type),*) -> c_int {
                    super::find();
                    // ORDERING: relaxed, as above.
                    let is_found = super::address::$name.load(Relaxed).addr() != ($name as *const c_void).addr();
                    if is_found { super::$name($($argument),*) } else { libc::ENOSYS }
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
    pthread_mutex_init(mutex: Object<Mutex>, attributes: Attributes);
    pthread_mutex_lock(mutex: Object<Mutex>);
    pthread_mutex_trylock(mutex: Object<Mutex>);
    pthread_mutex_timedlock(mutex: Object<Mutex>, until: Deadline);
    pthread_mutex_clocklock(mutex: Object<Mutex>, clock: c_int, until: Deadline);
    pthread_mutex_unlock(mutex: Object<Mutex>);
    pthread_mutex_destroy(mutex: Object<Mutex>);
    pthread_rwlock_init(rwlock: Object<Rwlock>, attributes: Attributes);
    pthread_rwlock_rdlock(rwlock: Object<Rwlock>);
    pthread_rwlock_tryrdlock(rwlock: Object<Rwlock>);
    pthread_rwlock_timedrdlock(rwlock: Object<Rwlock>, until: Deadline);
    pthread_rwlock_clockrdlock(rwlock: Object<Rwlock>, clock: c_int, until: Deadline);
    pthread_rwlock_wrlock(rwlock: Object<Rwlock>);
    pthread_rwlock_trywrlock(rwlock: Object<Rwlock>);
    pthread_rwlock_timedwrlock(rwlock: Object<Rwlock>, until: Deadline);
    pthread_rwlock_clockwrlock(rwlock: Object<Rwlock>, clock: c_int, until: Deadline);
    pthread_rwlock_unlock(rwlock: Object<Rwlock>);
    pthread_rwlock_destroy(rwlock: Object<Rwlock>);
    pthread_spin_init(spin: Object<Spin>, is_process_shared: c_int);
    pthread_spin_lock(spin: Object<Spin>);
    pthread_spin_trylock(spin: Object<Spin>);
    pthread_spin_unlock(spin: Object<Spin>);
    pthread_spin_destroy(spin: Object<Spin>);
    pthread_cond_wait(condition: Object<Condition>, mutex: Object<Mutex>);
    pthread_cond_timedwait(condition: Object<Condition>, mutex: Object<Mutex>, until: Deadline);
    pthread_cond_clockwait(condition: Object<Condition>, mutex: Object<Mutex>, clock: c_int, until: Deadline);
    pthread_cond_signal(condition: Object<Condition>);
    pthread_cond_broadcast(condition: Object<Condition>);
    pthread_cond_destroy(condition: Object<Condition>);
    cnd_destroy(condition: Object<Condition>);
    cnd_signal(condition: Object<Condition>);
    cnd_broadcast(condition: Object<Condition>);
    sem_wait(semaphore: Object<Semaphore>);
    sem_trywait(semaphore: Object<Semaphore>);
    sem_timedwait(semaphore: Object<Semaphore>, until: Deadline);
    sem_clockwait(semaphore: Object<Semaphore>, clock: c_int, until: Deadline);
    sem_post(semaphore: Object<Semaphore>);
    sem_getvalue(semaphore: Object<Semaphore>, value: &mut c_int);
    mtx_init(mutex: Object<Mutex>, kind: c_int);
    mtx_lock(mutex: Object<Mutex>);
    mtx_trylock(mutex: Object<Mutex>);
    mtx_timedlock(mutex: Object<Mutex>, until: Deadline);
    mtx_unlock(mutex: Object<Mutex>);
    mtx_destroy(mutex: Object<Mutex>);
    cnd_wait(condition: Object<Condition>, mutex: Object<Mutex>);
    pthread_barrier_wait(barrier: Object<Barrier>);
    pthread_once(once: Object<Once>, initialiser: Routine);
    call_once(once: Object<Once>, initialiser: Routine);
    pthread_getattr_default_np(attributes: &mut MaybeUninit<libc::pthread_attr_t>);
    pthread_attr_getstacksize(attributes: Attributes, len_bytes: &mut usize);
    pthread_attr_destroy(attributes: &mut MaybeUninit<libc::pthread_attr_t>);
    pthread_create(thread: Thread, attributes: Attributes, routine: Routine, argument: Argument);
    pthread_join(thread: Joined, value: Argument);
    pthread_tryjoin_np(thread: Joined, value: Argument);
    pthread_timedjoin_np(thread: Joined, value: Argument, until: Deadline);
    pthread_clockjoin_np(thread: Joined, value: Argument, clock: c_int, until: Deadline);
    thrd_create(thread: Thread, routine: Routine, argument: Argument);
    thrd_join(thread: Joined, value: Argument);
    daemon(stays_in_directory: c_int, keeps_files: c_int);
    execve(path: Text, arguments: Texts, environment: Texts);
    execv(path: Text, arguments: Texts);
    execvp(file: Text, arguments: Texts);
    execvpe(file: Text, arguments: Texts, environment: Texts);
    fexecve(descriptor: c_int, arguments: Texts, environment: Texts);
    execveat(directory: c_int, path: Text, arguments: Texts, environment: Texts, flags: c_int);
    cnd_timedwait(condition: Object<Condition>, mutex: Object<Mutex>, until: Deadline);
}

/// `dlopen`, or [`nothing`] until it is found. The entry in `calls` finds it and jumps there.
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

/// Returns a null pointer, or nothing for a function without a result.
///
/// FOLKLORE: never inlined: the compiler makes several copies of a function that it may inline, and then its address is
/// not one. [`find_once`] compares it.
#[inline(never)]
extern "C" fn nothing() -> *mut c_void {
    core::ptr::null_mut()
}

/// Finds all functions. It may run again, and in two threads at a time.
#[cold]
#[inline(never)]
pub(crate) fn find() {
    // The first definition counts, in the order of the modules.
    let mut found = [false; ALL.len()];
    for symbols in elf::after_this() {
        for (&(name, address), found) in ALL.iter().zip(&mut found) {
            if !*found && let Some(function) = symbols.function(name) {
                // ORDERING: relaxed: a pointer to code.
                address.store(core::ptr::with_exposed_provenance_mut(function), Relaxed);
                *found = true;
            }
        }
    }
}

/// Finds all functions if they have not been found yet.
#[inline(always)]
pub(crate) fn find_once() {
    // ORDERING: relaxed, as above.
    if SYSCALL.load(Relaxed) == NOTHING {
        find();
    }
}

/// `struct _pthread_cleanup_buffer`.
#[repr(C)]
pub(crate) struct Cleanup {
    routine: Option<extern "C" fn(*mut c_void)>,
    argument: *mut c_void,
    cancel_type: c_int,
    previous: *mut c_void,
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

    /// Makes `routine` run if the thread is cancelled.
    ///
    /// It is what `pthread_cleanup_push` was before it became a macro, and still is within the C library. The buffer's
    /// address on the stack says when its turn has come.
    ///
    /// # Safety
    ///
    /// The buffer and the argument stay where they are, in the frame of the caller, until `pop`.
    #[inline(always)]
    pub(crate) unsafe fn push(&mut self, routine: extern "C" fn(*mut c_void), argument: *mut c_void) {
        type Push = unsafe extern "C" fn(*mut Cleanup, extern "C" fn(*mut c_void), *mut c_void);
        // ORDERING: relaxed: a pointer to code.
        let push = CLEANUP_PUSH.load(Relaxed);
        // SAFETY: the C library's function, which has this type, or `nothing`, which looks at no argument.
        let push = unsafe { core::mem::transmute::<*mut c_void, Push>(push) };
        // SAFETY: the caller guarantees what the function demands.
        unsafe { push(self, routine, argument) };
    }

    /// Ends what `push` began, without running the routine.
    ///
    /// # Safety
    ///
    /// The function that calls it has called `push`.
    #[inline(always)]
    pub(crate) unsafe fn pop(&mut self) {
        type Pop = unsafe extern "C" fn(*mut Cleanup, c_int);
        // ORDERING: relaxed: a pointer to code.
        let pop = CLEANUP_POP.load(Relaxed);
        // SAFETY: as in `push`.
        let pop = unsafe { core::mem::transmute::<*mut c_void, Pop>(pop) };
        // SAFETY: the caller guarantees what the function demands.
        unsafe { pop(self, 0) };
    }
}
