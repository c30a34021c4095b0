//! What the program passes to the interposed functions: locks, condition variables, semaphores and deadlines.
//!
//! # Why the rest of this crate may use them
//!
//! A value of these types can be trusted like this: *the program has passed the pointer to a function of the C
//! library that uses it as such an object, and this call has not returned yet*. So the C library's functions for such
//! objects may be called with it, and what they would read may be read. If the program passed an invalid pointer, it
//! crashes here instead of in the C library.
//!
//! There is one way to get such a value: as an argument of an exported function. The assembly in `calls` hands the
//! program's arguments on as they are, and says there why that is sound. No code here makes one from a pointer, but for
//! the arguments of `execl`, which are collected in an array, and the default attributes of threads.

use core::ffi::{c_char, c_void};
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicI32, AtomicU32};

/// An object of the C library, of this kind, which the program has passed.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Object<K>(*mut c_void, PhantomData<K>);

/// `pthread_mutex_t`. In glibc, `mtx_t` is the same.
#[derive(Clone, Copy)]
pub(crate) enum Mutex {}

/// `pthread_rwlock_t`.
#[derive(Clone, Copy)]
pub(crate) enum Rwlock {}

/// `pthread_spinlock_t`.
#[derive(Clone, Copy)]
pub(crate) enum Spin {}

/// `sem_t`.
#[derive(Clone, Copy)]
pub(crate) enum Semaphore {}

/// `pthread_barrier_t`.
#[derive(Clone, Copy)]
pub(crate) enum Barrier {}

/// `pthread_once_t`. In glibc, `once_flag` is the same.
#[derive(Clone, Copy)]
pub(crate) enum Once {}

/// `pthread_cond_t`. In glibc, `cnd_t` is the same.
#[derive(Clone, Copy)]
pub(crate) enum Condition {}

impl<K> Object<K> {
    /// The address that events and entries have for it.
    #[inline(always)]
    pub(crate) fn address(self) -> u64 {
        self.0.expose_provenance() as u64
    }
}

impl Object<Mutex> {
    /// The word of the mutex that has its owner's thread id, or with priority protection, a 1 or 2 below the priority.
    pub(crate) fn lock_word(self) -> i32 {
        // SAFETY: see the module. It is the first word of the mutex.
        let word = unsafe { AtomicI32::from_ptr(self.0.cast()) };
        // ORDERING: relaxed: a hint.
        word.load(Relaxed)
    }

    /// The word of the mutex that has its owner's thread id, in whatever way it was locked. Its offset is part of
    /// glibc's binary interface, because debuggers read it.
    pub(crate) fn owner_word(self) -> i32 {
        const OFFSET: usize = 8;
        // SAFETY: see the module. It is within the mutex.
        let word = unsafe { AtomicI32::from_ptr(self.0.wrapping_byte_add(OFFSET).cast()) };
        // ORDERING: relaxed: if this thread owns the mutex, it has stored the word itself.
        word.load(Relaxed)
    }

    /// The thread that owns the mutex, by the mutex itself. What is initialised now may be no mutex yet, so the answer
    /// may be any number.
    pub(crate) fn owner(self) -> Option<u32> {
        let owner = u32::try_from(self.owner_word()).ok().filter(|&owner| owner != 0);
        owner.filter(|_| self.lock_word() != 0)
    }

    /// The mutex's type and protocol. Their offset and values are part of glibc's binary interface, because
    /// `PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP` and others are compiled into programs.
    #[inline(always)]
    pub(crate) fn kind_word(self) -> i32 {
        const OFFSET: usize = 16;
        // SAFETY: see the module. It is within the mutex.
        let word = unsafe { AtomicI32::from_ptr(self.0.wrapping_byte_add(OFFSET).cast()) };
        // ORDERING: relaxed: while the mutex is in use, it changes only in bits that we do not look at.
        word.load(Relaxed)
    }
}

impl Object<Condition> {
    const IS_PROCESS_SHARED: u32 = 1;
    const WAITERS_SHIFT: u32 = 3;

    /// Whether a thread may wait on it. If it is for several processes, their threads count as waiting, because this
    /// process does not know when they began.
    #[inline(always)]
    pub(crate) fn may_have_waiters(self) -> bool {
        let word = self.word();
        word >> Self::WAITERS_SHIFT != 0 || word & Self::IS_PROCESS_SHARED != 0
    }

    /// Whether a thread waits on it, or was woken just now.
    pub(crate) fn has_waiters(self) -> bool {
        self.word() >> Self::WAITERS_SHIFT != 0
    }

    /// The word in which glibc counts the waiters, from the fourth bit on, since version 2.25. The first bit says
    /// whether the condition variable is for several processes.
    ///
    /// Earlier versions have half of a pointer there, which is zero only before the first wait, or if the mutex is in
    /// the first 4 GiB.
    #[inline(always)]
    fn word(self) -> u32 {
        const OFFSET: usize = 36;
        // SAFETY: see the module. It is within the condition variable.
        let word = unsafe { AtomicU32::from_ptr(self.0.wrapping_byte_add(OFFSET).cast()) };
        // ORDERING: relaxed: a hint, as precise as the C library's own look.
        word.load(Relaxed)
    }
}

impl Object<Barrier> {
    /// How many threads a round takes; 0 if that is not known.
    ///
    /// glibc has it after the number of threads that have come, and that at the beginning of the round, since version
    /// 2.23. Then follows whether processes share the barrier. Earlier versions have other numbers there: how many
    /// threads are missing, and how many a round takes. The latter is never 0, and rarely 128.
    pub(crate) fn threads_of_round(self) -> u32 {
        const PRIVATE: u32 = 0;
        const SHARED: u32 = 128;
        match self.word(12) {
            PRIVATE | SHARED => self.word(8),
            _ => 0,
        }
    }

    fn word(self, offset: usize) -> u32 {
        // SAFETY: see the module. Both offsets are within the barrier.
        let word = unsafe { AtomicU32::from_ptr(self.0.wrapping_byte_add(offset).cast()) };
        // ORDERING: relaxed: it does not change while the barrier is in use.
        word.load(Relaxed)
    }
}

impl Object<Once> {
    /// Whether the initialiser has returned. Then the C library does nothing.
    #[inline(always)]
    pub(crate) fn is_done(self) -> bool {
        const DONE: u32 = 2;
        self.word() == DONE
    }

    /// Whether a thread runs the initialiser. In a forked child that may be a thread of its parent: the upper bits say
    /// after how many forks it began.
    pub(crate) fn is_running(self) -> bool {
        const IN_PROGRESS: u32 = 1;
        self.word() & IN_PROGRESS != 0
    }

    #[inline(always)]
    fn word(self) -> u32 {
        // SAFETY: see the module. It is the only word.
        let word = unsafe { AtomicU32::from_ptr(self.0.cast()) };
        // ORDERING: relaxed: the C library reads it again, and orders what the initialiser did.
        word.load(Relaxed)
    }
}

impl Object<Rwlock> {
    /// Whether new readers pass waiting writers: if the lock's kind is not
    /// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`. glibc keeps the kind in the lock, at an offset that
    /// initialisers have compiled into programs.
    #[inline(always)]
    pub(crate) fn has_readers_first(self) -> bool {
        const WRITERS_FIRST: u32 = 2;
        self.word(48) != WRITERS_FIRST
    }

    /// Whether several processes use the lock. glibc keeps that in the lock as well.
    #[inline(always)]
    pub(crate) fn is_process_shared(self) -> bool {
        self.word(28) != 0
    }

    /// The thread that holds the lock in exclusive mode, by the lock itself. What is initialised now may be no lock
    /// yet, so the answer may be any number.
    pub(crate) fn writer(self) -> Option<u32> {
        Some(self.word(24)).filter(|&writer| writer != 0)
    }

    /// Whether a thread holds the lock, in whatever mode. glibc counts the readers from the fourth bit of the first
    /// word on. A debugger that shows the holders reads both words.
    pub(crate) fn is_taken(self) -> bool {
        const READERS_SHIFT: u32 = 3;
        self.word(0) >> READERS_SHIFT != 0 || self.writer().is_some()
    }

    #[inline(always)]
    fn word(self, offset: usize) -> u32 {
        // SAFETY: see the module. All these offsets are within the lock.
        let word = unsafe { AtomicU32::from_ptr(self.0.wrapping_byte_add(offset).cast()) };
        // ORDERING: relaxed: it does not change while the lock is in use, or is a hint.
        word.load(Relaxed)
    }
}

/// A `const struct timespec *`, which the program has passed.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Deadline(*const libc::timespec);

impl Deadline {
    /// Whether the C library accepts the time. It checks that even if the lock is free.
    pub(crate) fn is_valid(self) -> bool {
        if self.0.is_null() {
            return false;
        }
        // SAFETY: see the module. The C library reads it too, before anything else.
        let time = unsafe { self.0.read_unaligned() };
        (0..1_000_000_000).contains(&time.tv_nsec)
    }
}

/// The attributes of a lock, which the program has passed: a `const pthread_mutexattr_t *` or the like, or null.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Attributes(*const c_void);

impl Attributes {
    /// Those of a program that chooses none.
    pub(crate) fn none() -> Attributes {
        Attributes(core::ptr::null())
    }

    /// Those of threads that the C library has filled in for us. They must stay until the call has ended.
    pub(crate) fn of(attributes: &MaybeUninit<libc::pthread_attr_t>) -> Attributes {
        Attributes(attributes.as_ptr().cast())
    }

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }
}

/// A `pthread_t *` or `thrd_t *`, which the program has passed.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Thread(*mut c_void);

/// A `pthread_t` or `thrd_t`, which the program has passed to be joined.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Joined(*mut c_void);

impl Joined {
    /// The `pthread_t` as a number.
    pub(crate) fn address(self) -> usize {
        self.0.addr()
    }

    /// The id of the thread, 0 if the thread has ended; `None` if it is not known where the C library keeps it.
    pub(crate) fn tid(self) -> Option<u32> {
        // SAFETY: the program has passed it to be joined, so nobody has joined it yet.
        unsafe { librip::interpose::tid_of(self.address()) }
    }
}

/// The function in which a thread begins, or an initialiser.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Routine(*const c_void);

impl Routine {
    /// A function of ours that takes its argument from where the C library passes it.
    pub(crate) fn of(function: unsafe extern "C-unwind" fn()) -> Routine {
        Routine(function as *const c_void)
    }

    pub(crate) fn address(self) -> usize {
        self.0.expose_provenance()
    }
}

/// What the function in which a thread begins gets, or where a join stores what it returned.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Argument(*mut c_void);

impl Argument {
    /// A number, for a function of ours.
    pub(crate) fn of(number: usize) -> Argument {
        Argument(core::ptr::without_provenance_mut(number))
    }

    pub(crate) fn address(self) -> usize {
        self.0.expose_provenance()
    }
}

/// A string, which the program has passed.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

/// An array of strings that ends with a null pointer, which the program has passed.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Texts(*const *const c_char);

impl Texts {
    /// The array of strings that the program has passed one by one. It must stay until the call has ended.
    pub(crate) fn of(arguments: &[usize]) -> Texts {
        Texts(arguments.as_ptr().cast())
    }

    /// An argument that the program has passed, as an array.
    pub(crate) fn at(address: usize) -> Texts {
        Texts(core::ptr::with_exposed_provenance(address))
    }
}
