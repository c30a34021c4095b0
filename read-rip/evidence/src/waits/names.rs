//! The functions in which threads wait, by name.
//!
//! Adding a library takes lines of the table and a line of the test.

use super::construct::Place::{AtFutex, BeforeFutex, Elsewhere};
use super::construct::{Construct, Place, Primitive, Role};
use super::patterns::{glob, plain};

/// What a function's name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It is between the system call and the function that tells the object.
    Glue,
    /// It waits for an object of this kind.
    Object(Primitive, Construct),
    /// It uses the object that was found, for this.
    Purpose(Construct),
}

/// Returns what a name says, given the role of what was found further inside.
pub(super) fn meaning(name: &str, inside: Option<Role>) -> Option<Meaning> {
    let plain = plain(name);
    // Names of the C libraries are only exact with their underscores where a user's function may have the same name.
    let matches = |pattern: &str| glob(pattern, if pattern.starts_with("__") { name } else { &plain });
    let purposes = PURPOSES.iter().filter(|(roles, ..)| inside.is_some_and(|inside| roles.contains(&inside)));
    let mut purposes =
        purposes.flat_map(|&(_, name, role, patterns)| patterns.split(' ').map(move |p| (p, name, role)));
    if let Some((_, name, role)) = purposes.find(|(pattern, ..)| matches(pattern)) {
        return Some(Meaning::Purpose(Construct { name, role }));
    }
    let mut objects = OBJECTS.iter();
    if let Some(&(_, primitive, name, role)) = objects.find(|(pattern, ..)| matches(pattern)) {
        return Some(Meaning::Object(primitive, Construct { name, role }));
    }
    GLUE.iter().any(|pattern| matches(pattern)).then_some(Meaning::Glue)
}

/// Whether a thread in this function of glibc has the lock of the arena from which it allocates, if the process has
/// several threads. Freeing functions do not count: they have it for a part of the time.
pub(super) fn has_allocators_lock(name: &str) -> bool {
    const LOCKED: &[&str] = &["int_malloc", "int_realloc", "int_memalign", "sysmalloc", "malloc_consolidate"];
    LOCKED.contains(&&*plain(name))
}

/// The library of a pool that hands its objects out by a function of this name.
pub fn pool_of(function: &str) -> Option<&'static str> {
    let plain = plain(function);
    let mut pools = PURPOSES.iter().filter(|(_, _, role, _)| *role == Role::Pool);
    pools
        .find(|(.., patterns)| patterns.split(' ').any(|pattern| glob(pattern, &plain)))
        .map(|&(_, name, ..)| name)
}

/// Whether a function of this name is one in which threads wait until others bring something, and not for a lock.
pub(crate) fn waits_for_work(function: &str) -> bool {
    let plain = plain(function);
    let is_it = |pattern: &str| glob(pattern, if pattern.starts_with("__") { function } else { &plain });
    let is_purpose = |(_, _, role, patterns): &Purpose| match role {
        // The libraries of channels also send and drop.
        Role::Channel => {
            ["recv", "select"].iter().any(|part| plain.contains(part)) && patterns.split(' ').any(is_it)
        }
        role => brings(*role) && patterns.split(' ').any(is_it),
    };
    // The C++ library's functions around those of the C library.
    glob("std::*condition_variable*::wait*", &plain)
        || OBJECTS.iter().any(|(pattern, _, _, role)| brings(*role) && is_it(pattern))
        || PURPOSES.iter().any(is_purpose)
}

/// Whether another thread has to bring something to whoever waits for an object with this role.
pub(crate) fn brings(role: Role) -> bool {
    matches!(role, Role::Condition | Role::Semaphore | Role::Park | Role::Idle)
}

/// Whether a function of this name is of a library that waits for others, and so runs no job of the program.
pub(crate) fn is_of_library(function: &str) -> bool {
    let plain = plain(function);
    let is_of = |library: &&str| plain.strip_prefix(library).is_some_and(|rest| rest.starts_with("::"));
    waits_for_work(function) || LIBRARIES.iter().any(is_of)
}

/// Whether a function of this name calls a closure or a virtual function, for its language. What it calls may be in it.
pub(crate) fn calls_closure(function: &str) -> bool {
    const PARTS: &[&str] = &[
        "core::ops::function::",
        "FnOnce",
        "FnMut",
        "std::function<",
        "std::_Function_handler<",
        "std::__invoke",
        "panic",
        "__rust_begin_short_backtrace",
    ];
    PARTS.iter().any(|part| function.contains(part))
}

/// Libraries of languages, of locks and of channels, by the beginnings of their functions' names.
const LIBRARIES: &[&str] = &[
    "std",
    "core",
    "alloc",
    "parking_lot",
    "parking_lot_core",
    "lock_api",
    "crossbeam_channel",
    "crossbeam_utils",
    "flume",
    "kanal",
    "boost",
    "absl",
    "folly",
];

/// Functions between the system call and the function that tells the object.
const GLUE: &[&str] = &[
    // glibc; `_L_lock_1` and so on are parts of functions before 2.20.
    "syscall",
    "futex_wait*",
    "futex_abstimed_wait*",
    "futex_lock_pi*",
    "lll_lock_wait",
    "lll_timedlock_wait",
    "lll_clocklock_wait",
    "lll_robust_lock_wait",
    "lll_robust_timedlock_wait",
    "lll_mutex_lock_optimized",
    "do_futex_wait",
    "L_*lock_*",
    // The interposer, between the program and the C library.
    "rip_preload::*",
    // The recorder, around the locks of a program that is prepared.
    "librip::lock::*",
    // musl
    "__timedwait",
    "__timedwait_cp",
    "__wait",
    "__futexwait",
    "__futex4_cp",
    "__syscall_cp*",
    // Rust
    "std::sys::*futex_wait*",
    "core::*",
    "std::thread::local::LocalKey*",
    "parking_lot_core::*",
    "tokio::loom::*",
    "parking_lot::*deadlock*",
    // C++: what the standard library's atomic waits go through.
    "std::__detail::__waiter*",
    // What absl waits in.
    "absl::*synchronization_internal::*",
    "absl::*PerThreadSem*",
    "absl::*Mutex::Block*",
    "AbslInternalPerThreadSemWait*",
    // Chromium's and tcmalloc's copies of it have other prefixes.
    "AbslInternalSpinLockDelay*",
    "*base::internal::SpinLockDelay*",
    "*base_internal::SpinLockWait*",
    // GLib
    "g_futex_wait",
    // folly
    "folly::detail::*utexWait*",
    "folly::detail::MemoryIdler::futexWait*",
    "folly::*spin_pause_until*",
    // WebKit
    "WTF::ParkingLot::park*",
    "WTF::LockAlgorithm*",
    // OpenMP, as LLVM's library waits
    "kmp_futex*",
    "kmp_suspend_*",
    "kmp_wait_*",
    "kmp_flag_*",
    "kmp_hyper_barrier_*",
    "kmp_hierarchical_barrier_*",
    "kmp_tree_barrier_*",
    "kmp_dist_barrier_*",
    // TBB
    "tbb::*futex_wait*",
    "tbb::*binary_semaphore*",
    "tbb::*sleep_node*",
    "tbb::*concurrent_monitor*",
    "tbb::*thread_monitor*",
    // Go
    "runtime.futex*",
    "runtime.notesleep*",
    "runtime.notetsleep*",
    "runtime.semasleep*",
];

type Object = (&'static str, Primitive, &'static str, Role);

const fn opaque(
    pattern: &'static str,
    place: Place,
    is_exclusive: bool,
    name: &'static str,
    role: Role,
) -> Object {
    (pattern, Primitive::Opaque { place, is_exclusive }, name, role)
}

const fn lock(pattern: &'static str, place: Place, name: &'static str) -> Object {
    opaque(pattern, place, true, name, Role::Lock)
}

const fn read_lock(pattern: &'static str, place: Place, name: &'static str) -> Object {
    opaque(pattern, place, false, name, Role::Lock)
}

const fn other(pattern: &'static str, place: Place, name: &'static str, role: Role) -> Object {
    opaque(pattern, place, false, name, role)
}

/// Functions that wait for an object. The first line that matches counts.
const OBJECTS: &[Object] = &[
    // POSIX
    ("pthread_mutex_*lock*", Primitive::Mutex, "pthread mutex", Role::Lock),
    ("pthread_rwlock_*rdlock*", Primitive::ReadLock, "pthread readers-writer lock", Role::Lock),
    ("pthread_rwlock_*wrlock*", Primitive::WriteLock, "pthread readers-writer lock", Role::Lock),
    ("pthread_cond_*wait*", Primitive::Condition, "pthread condition variable", Role::Condition),
    ("pthread_barrier_wait*", Primitive::Barrier, "pthread barrier", Role::Barrier),
    ("pthread_once*", Primitive::Once, "pthread_once", Role::Initialisation),
    ("pthread_*join*", Primitive::Join, "pthread_join", Role::Join),
    ("sem_*wait*", Primitive::Semaphore, "POSIX semaphore", Role::Semaphore),
    ("new_sem_*wait*", Primitive::Semaphore, "POSIX semaphore", Role::Semaphore),
    ("lll_*wait_tid*", Primitive::Join, "pthread_join", Role::Join),
    ("lll_lock_wait_private", Primitive::LibraryLock, "C library", Role::Lock),
    ("__lockfile", Primitive::LibraryLock, "stdio stream", Role::Stream),
    ("__lock", Primitive::LibraryLock, "C library", Role::Lock),
    ("cxa_guard_acquire", Primitive::Guard, "C++ static variable", Role::Initialisation),
    // Rust's standard library since 1.62. Earlier ones use POSIX objects.
    lock("std::sys::*mutex*::lock*", AtFutex, "std::sync::Mutex"),
    read_lock("std::sys::*rwlock*::read*", AtFutex, "std::sync::RwLock"),
    lock("std::sys::*rwlock*::write*", BeforeFutex, "std::sync::RwLock"),
    other("std::sys::*condvar*::wait*", AtFutex, "std::sync::Condvar", Role::Condition),
    other("std::sys::*once*::call*", AtFutex, "std::sync::Once", Role::Initialisation),
    other("std::sys::*once*::wait*", AtFutex, "std::sync::Once", Role::Initialisation),
    other("std::sys::*Parker::park*", Elsewhere, "std::thread::park", Role::Park),
    // The compiler inlines the functions above into these.
    other("std::thread::*park*", Elsewhere, "std::thread::park", Role::Park),
    other("std::sync::*arrier::wait*", Elsewhere, "std::sync::Barrier", Role::Barrier),
    other("std::sync::*ondvar::wait*", AtFutex, "std::sync::Condvar", Role::Condition),
    // parking_lot: each thread sleeps in a futex of its own.
    lock("parking_lot::raw_mutex::*lock*", Elsewhere, "parking_lot::Mutex"),
    read_lock("parking_lot::raw_rwlock::*shared*", Elsewhere, "parking_lot::RwLock"),
    lock("parking_lot::raw_rwlock::*", Elsewhere, "parking_lot::RwLock"),
    other("parking_lot::condvar::*wait*", Elsewhere, "parking_lot::Condvar", Role::Condition),
    // The same where it is one of `lock_api` 0.5.
    other("parking_lot::raw_condvar::*wait*", Elsewhere, "parking_lot::Condvar", Role::Condition),
    other("lock_api::condvar::Condvar*::wait*", Elsewhere, "lock_api::Condvar", Role::Condition),
    // The same of the crate that stands in for parking_lot.
    other("parking_lot::waiters::*wait*", Elsewhere, "parking_lot::Condvar", Role::Condition),
    other("parking_lot::once::*", Elsewhere, "parking_lot::Once", Role::Initialisation),
    // Other locks that are built as those of parking_lot: each implements a trait of lock_api.
    lock("dashmap::lock::RawRwLock::*exclusive*", Elsewhere, "shard of a DashMap"),
    read_lock("dashmap::lock::RawRwLock::*shared*", Elsewhere, "shard of a DashMap"),
    lock("*::RawMutex::lock*", Elsewhere, "lock of lock_api"),
    lock("*::RawRwLock::*exclusive*", Elsewhere, "lock of lock_api"),
    read_lock("*::RawRwLock::*shared*", Elsewhere, "lock of lock_api"),
    // C++
    read_lock("absl::*Mutex::ReaderLock*", Elsewhere, "absl::Mutex"),
    read_lock("absl::*Mutex::lock_shared*", Elsewhere, "absl::Mutex"),
    other("absl::*Mutex::Await*", Elsewhere, "absl::Mutex", Role::Condition),
    lock("absl::*Mutex::*ock*", Elsewhere, "absl::Mutex"),
    other("absl::*CondVar::FutexWait*", Elsewhere, "absl::CondVar", Role::Condition),
    other("std::*atomic_futex_unsigned*", AtFutex, "std::future", Role::Park),
    other("std::*atomic_wait*", Elsewhere, "std::atomic::wait", Role::Park),
    other("std::*platform_wait*", AtFutex, "std::atomic::wait", Role::Park),
    lock("*base_internal::SpinLock::SlowLock*", AtFutex, "absl spin lock"),
    lock("SpinLock::SlowLock*", AtFutex, "tcmalloc"),
    // GLib. Its recursive and readers-writer locks are POSIX objects.
    lock("g_mutex_lock*", AtFutex, "GMutex"),
    lock("g_bit_lock*", AtFutex, "g_bit_lock"),
    lock("g_pointer_bit_lock*", AtFutex, "g_pointer_bit_lock"),
    other("g_cond_wait*", AtFutex, "GCond", Role::Condition),
    // folly
    lock("folly::MicroLock*::lock*", AtFutex, "folly::MicroLock"),
    lock("folly::MicroSpinLock::lock*", AtFutex, "folly::MicroSpinLock"),
    lock("folly::SharedMutex*::lockExclusive*", AtFutex, "folly::SharedMutex"),
    lock("folly::SharedMutex*::lockUpgrade*", AtFutex, "folly::SharedMutex"),
    read_lock("folly::SharedMutex*::lockShared*", AtFutex, "folly::SharedMutex"),
    lock("folly::SharedMutex*::*wait*", AtFutex, "folly::SharedMutex"),
    lock("folly::*DistributedMutex*::lock*", Elsewhere, "folly::DistributedMutex"),
    lock("folly::*distributed_mutex::*lock*", Elsewhere, "folly::DistributedMutex"),
    other("folly::*Baton*ait*", AtFutex, "folly::Baton", Role::Park),
    // OpenMP, as gcc's library has it. A stripped one names the functions of the standard and those that code calls.
    other("gomp_*barrier_wait*", AtFutex, "OpenMP barrier", Role::Barrier),
    lock("gomp_mutex_lock*", AtFutex, "OpenMP lock"),
    other("gomp_sem_wait*", AtFutex, "OpenMP semaphore", Role::Semaphore),
    other("GOMP_barrier*", AtFutex, "OpenMP barrier", Role::Barrier),
    lock("GOMP_critical_*start", AtFutex, "OpenMP critical section"),
    lock("GOMP_atomic_start", AtFutex, "OpenMP critical section"),
    lock("omp_set_lock*", AtFutex, "OpenMP lock"),
    lock("omp_set_nest_lock*", AtFutex, "OpenMP lock"),
    // The same of LLVM's library.
    lock("kmp_acquire_*lock*", AtFutex, "OpenMP lock"),
    // TBB: threads sleep in words of their own.
    other("tbb::*rml::*worker*::run*", Elsewhere, "TBB worker", Role::Idle),
    read_lock("tbb::*rw_mutex::lock_shared*", Elsewhere, "TBB lock"),
    lock("tbb::*mutex::lock*", Elsewhere, "TBB lock"),
    lock("tbb::*wait_on_address*", Elsewhere, "TBB lock"),
    // Go: its goroutines' locks are not seen here.
    lock("runtime.lock*", AtFutex, "Go runtime lock"),
    other("runtime.stopm*", Elsewhere, "Go runtime", Role::Idle),
    other("runtime.mPark*", Elsewhere, "Go runtime", Role::Idle),
    other("runtime.notetsleepg*", Elsewhere, "Go runtime", Role::Idle),
];

/// What the lock of CPython's interpreter is called.
pub(super) const PYTHON_GIL: &str = "Python's global interpreter lock";

/// What the locks of Python's `threading` are called.
pub(crate) const PYTHON_LOCK: &str = "Python lock";

type Purpose = (&'static [Role], &'static str, Role, &'static str);

/// Functions that say what an object is for. The first list: the roles of what they use. The last text: their
/// names, with blanks between them. The first line that matches counts.
const PURPOSES: &[Purpose] = &[
    (
        &[Role::Lock, Role::Allocator],
        "malloc",
        Role::Allocator,
        "malloc calloc realloc free cfree memalign posix_memalign aligned_alloc valloc \
         libc_malloc libc_calloc libc_realloc libc_free libc_memalign int_malloc int_free \
         int_realloc int_memalign arena_get* tcache_init malloc_* mid_memalign sysmalloc \
         arena_thread_freeres mallinfo* mallopt",
    ),
    (
        &[Role::Lock, Role::Stream],
        "stdio stream",
        Role::Stream,
        "IO_* fputs* puts fwrite* fread* fgets* printf* vprintf* fprintf* vfprintf* printf_chk \
         fprintf_chk vfprintf_internal flockfile fflush* fclose* getc putc fputc fgetc putchar \
         getchar getline getdelim ungetc perror fseek* ftell*",
    ),
    (
        &[Role::Lock, Role::Loader],
        "dynamic loader",
        Role::Loader,
        "dl_* dlopen* dlsym* dlclose* dladdr* dlerror* tls_get_addr* cxa_thread_atexit_impl",
    ),
    (
        &[Role::Lock, Role::Lifecycle],
        "fork",
        Role::Lifecycle,
        "fork libc_fork run_fork_handlers run_prefork_handlers register_atfork unregister_atfork",
    ),
    (
        &[Role::Lock, Role::Lifecycle],
        "exit",
        Role::Lifecycle,
        "exit run_exit_handlers cxa_atexit on_exit new_exitfn cxa_finalize",
    ),
    (
        &[Role::Lock, Role::Lifecycle],
        "pthread_create",
        Role::Lifecycle,
        "start_thread pthread_create* allocate_stack nptl_deallocate_stack nptl_free_tcb",
    ),
    // Rust's standard library
    (&[Role::Join], "std::thread::JoinHandle", Role::Join, "std::*thread*::join* std::*JoinInner*::join*"),
    (&[Role::Condition], "std::sync::Barrier", Role::Barrier, "std::sync::*arrier::wait*"),
    (&[Role::Condition], "std::sync::Condvar", Role::Condition, "std::s*condvar*::wait*"),
    (
        &[Role::Initialisation],
        "std::sync::LazyLock",
        Role::Initialisation,
        "std::sync::lazy_lock::* std::sync::*lazy_lock::LazyLock*",
    ),
    (
        &[Role::Initialisation],
        "std::sync::OnceLock",
        Role::Initialisation,
        "std::sync::once_lock::* std::sync::*once_lock::OnceLock*",
    ),
    (&[Role::Initialisation], "std::sync::Once", Role::Initialisation, "std::sync::*once::Once*"),
    (&[Role::Park], "std::thread::scope", Role::Join, "std::thread::scope*"),
    // C++: what the standard library makes of std::atomic::wait.
    (&[Role::Park], "std::barrier", Role::Barrier, "std::barrier* std::__tree_barrier*"),
    (&[Role::Park], "std::latch", Role::Barrier, "std::latch::*"),
    (
        &[Role::Park],
        "std::counting_semaphore",
        Role::Semaphore,
        "std::__atomic_semaphore* std::counting_semaphore*",
    ),
    (&[Role::Park, Role::Channel], "std::sync::mpsc", Role::Channel, "std::sync::mp*"),
    (
        &[Role::Park, Role::Channel],
        "crossbeam channel",
        Role::Channel,
        "crossbeam_channel::*recv* crossbeam_channel::*send* crossbeam_channel::*select*",
    ),
    (&[Role::Park, Role::Channel], "flume channel", Role::Channel, "flume::*"),
    (&[Role::Park, Role::Channel], "kanal channel", Role::Channel, "kanal::*"),
    (&[Role::Park, Role::Channel], "tokio channel", Role::Channel, "tokio::sync::*blocking_*"),
    (&[Role::Park], "std::thread::park", Role::Park, "std::thread::*park* std::sys::*park*"),
    (&[Role::Condition, Role::Pool], "r2d2", Role::Pool, "r2d2::Pool*::*get*"),
    (
        &[Role::Condition, Role::Idle],
        "scheduled-thread-pool worker",
        Role::Idle,
        "scheduled_thread_pool::Worker::*",
    ),
    // A runtime that is dropped waits for the calls on its pool. Those that it has not begun do not run.
    (
        &[Role::Condition, Role::Park, Role::Idle, Role::Calls],
        "tokio",
        Role::Calls,
        "tokio::runtime::blocking::shutdown::*",
    ),
    // A thread that polls one future: `block_on` of a runtime with workers of its own, `blocking_recv` and its like.
    (
        &[Role::Condition, Role::Park, Role::Idle],
        "tokio block_on",
        Role::Park,
        "tokio::runtime::park::CachedParkThread::* tokio::runtime::context::blocking::*",
    ),
    (&[Role::Condition, Role::Park, Role::Idle], "tokio worker", Role::Idle, "tokio::runtime::*park*"),
    (&[Role::Condition, Role::Idle], "rayon worker", Role::Idle, "rayon_core::sleep::*"),
    // C++
    (
        &[Role::Condition, Role::Semaphore, Role::Lock],
        "absl::Mutex",
        Role::Lock,
        "absl::*Mutex::Lock* absl::*Mutex::ReaderLock*",
    ),
    // OpenMP: what its own locks are for, and LLVM's library, which waits for condition variables.
    (
        &[Role::Lock],
        "OpenMP critical section",
        Role::Lock,
        "GOMP_critical_*start GOMP_atomic_start __kmpc_critical*",
    ),
    (
        &[Role::Condition, Role::Barrier],
        "OpenMP barrier",
        Role::Barrier,
        "GOMP_barrier* GOMP_parallel* __kmpc_barrier* __kmp_barrier* __kmp_join_barrier*",
    ),
    (&[Role::Condition], "OpenMP worker", Role::Idle, "__kmp_fork_barrier*"),
    // WebKit: threads sleep on condition variables of their own.
    (&[Role::Condition], "WTF::Lock", Role::Lock, "WTF::*Lock::lockSlow* WTF::*Lock::lock"),
    (&[Role::Condition], "WTF::Condition", Role::Condition, "WTF::Condition::wait*"),
    // jemalloc
    (
        &[Role::Lock, Role::Allocator],
        "jemalloc",
        Role::Allocator,
        "malloc_mutex_lock* je_malloc_mutex_lock* _rjem_* je_* arena_* tcache_*",
    ),
    // Java
    (&[Role::Condition, Role::Lock], "Java monitor", Role::Lock, "ObjectMonitor::*nter*"),
    (&[Role::Condition], "Java Object.wait", Role::Condition, "ObjectMonitor::wait*"),
    (&[Role::Condition, Role::Park], "Java LockSupport.park", Role::Park, "Unsafe_Park*"),
    (
        &[Role::Condition],
        "Java virtual machine",
        Role::Condition,
        "os::*PlatformEvent::park* PlatformEvent::park* Parker::park* PlatformMonitor::wait*",
    ),
    // Python
    (&[Role::Condition], PYTHON_GIL, Role::Lock, "take_gil"),
    (&[Role::Condition, Role::Semaphore, Role::Lock], PYTHON_LOCK, Role::Lock, "PyThread_acquire_lock*"),
];

#[cfg(test)]
mod tests {
    use super::super::Clue;
    use super::*;

    /// Stacks, innermost first; the last functions are the user's. Those of libraries are as debuggers show them.
    const STACKS: &[(&[&str], &str, Role)] = &[
        (
            &[
                "syscall",
                "parking_lot_core::thread_parker::imp::ThreadParker::futex_wait",
                "parking_lot_core::parking_lot::park",
                "parking_lot::condvar::Condvar::wait_until_internal",
                "parking_lot::condvar::Condvar::wait",
                "tokio::loom::std::parking_lot::Condvar::wait",
                "tokio::runtime::park::Inner::park",
                "tokio::runtime::park::CachedParkThread::park::{{closure}}",
                "std::thread::local::LocalKey<T>::try_with",
                "tokio::runtime::park::CachedParkThread::block_on",
                "tokio::runtime::context::blocking::BlockingRegionGuard::block_on",
                "tokio::runtime::blocking::shutdown::Receiver::wait",
                "tokio::runtime::blocking::pool::BlockingPool::shutdown",
                "main",
            ],
            "tokio",
            Role::Calls,
        ),
        (
            &[
                "std::sys::sync::condvar::futex::Condvar::wait",
                "std::sync::poison::condvar::Condvar::wait",
                "tokio::runtime::park::Inner::park",
                "tokio::runtime::park::CachedParkThread::block_on",
                "tokio::runtime::context::blocking::BlockingRegionGuard::block_on",
                "tokio::sync::mpsc::bounded::Sender<T>::blocking_send",
                "user",
            ],
            "tokio channel",
            Role::Channel,
        ),
        (
            &[
                "parking_lot::condvar::Condvar::wait_until_internal",
                "parking_lot::condvar::Condvar::wait_until",
                "<r2d2::Pool<M>>::get_timeout",
                "<r2d2::Pool<M>>::get",
                "user",
            ],
            "r2d2",
            Role::Pool,
        ),
        (
            &[
                "parking_lot::raw_condvar::RawCondvar::wait_until_internal",
                "<parking_lot::raw_condvar::RawCondvar as lock_api::condvar::RawCondvarTimed>::wait_until",
                "lock_api::condvar::Condvar<C>::wait_until",
                "scheduled_thread_pool::Worker::get_job",
            ],
            "scheduled-thread-pool worker",
            Role::Idle,
        ),
        (
            &["std::thread::park", "flume::signal::SyncSignal::wait", "flume::Sender<T>::send", "user"],
            "flume channel",
            Role::Channel,
        ),
        (
            &["std::thread::park", "kanal::signal::Signal<T>::wait", "kanal::Sender<T>::send", "user"],
            "kanal channel",
            Role::Channel,
        ),
        (&["__GI___lll_lock_wait", "___pthread_mutex_lock", "main"], "pthread mutex", Role::Lock),
        (&["", "pthread_mutex_lock@@GLIBC_2.2.5", "main"], "pthread mutex", Role::Lock),
        (&["__lll_lock_wait", "_L_lock_791", "__pthread_mutex_lock"], "pthread mutex", Role::Lock),
        (&["", "", "__pthread_rwlock_wrlock_full64", "f"], "pthread readers-writer lock", Role::Lock),
        (
            &[
                "__futex_abstimed_wait_common64",
                "do_futex_wait.constprop.0",
                "__new_sem_wait_slow64.constprop.1",
            ],
            "POSIX semaphore",
            Role::Semaphore,
        ),
        (&["__lll_lock_wait_private", "_int_malloc", "malloc", "main"], "malloc", Role::Allocator),
        (&["__lll_lock_wait_private", "_IO_fwrite", "main"], "stdio stream", Role::Stream),
        (&["__lll_lock_wait_private", "user", "malloc"], "C library", Role::Lock),
        (&["__lll_lock_wait", "pthread_mutex_lock", "dl_iterate_phdr"], "dynamic loader", Role::Loader),
        (&["__timedwait_cp", "__lockfile", "fputs"], "stdio stream", Role::Stream),
        (
            &["syscall", "std::sys::sync::mutex::futex::Mutex::lock_contended", "main"],
            "std::sync::Mutex",
            Role::Lock,
        ),
        (
            &[
                "std::sys::pal::unix::futex::futex_wait",
                "<std::sys::sync::mutex::futex::Mutex>::lock_contended",
            ],
            "std::sync::Mutex",
            Role::Lock,
        ),
        (&["std::sys::unix::locks::futex_mutex::Mutex::lock_contended"], "std::sync::Mutex", Role::Lock),
        (&["std::sys::sync::rwlock::futex::RwLock::write_contended"], "std::sync::RwLock", Role::Lock),
        (
            &["", "pthread_join", "std::sys::thread::unix::Thread::join", "std::thread::JoinHandle<T>::join"],
            "std::thread::JoinHandle",
            Role::Join,
        ),
        (
            &[
                "std::sys::pal::unix::futex::futex_wait",
                "std::sys::sync::thread_parking::futex::Parker::park",
                "std::thread::park",
                "std::sync::mpmc::context::Context::wait_until",
                "<std::sync::mpmc::list::Channel<T>>::recv::{{closure}}",
                "user",
            ],
            "std::sync::mpsc",
            Role::Channel,
        ),
        (
            &["std::sys::sync::thread_parking::futex::Parker::park", "std::thread::scoped::scope", "main"],
            "std::thread::scope",
            Role::Join,
        ),
        (
            &["std::sys::sync::once::futex::Once::call", "std::sync::once_lock::OnceLock<T>::initialize"],
            "std::sync::OnceLock",
            Role::Initialisation,
        ),
        (
            &[
                "std::sys::sync::condvar::futex::Condvar::wait",
                "std::sync::poison::condvar::Condvar::wait",
                "tokio::runtime::park::Inner::park",
                "tokio::runtime::park::CachedParkThread::park::{{closure}}",
                "std::thread::local::LocalKey<T>::try_with",
                "user",
            ],
            "tokio block_on",
            Role::Park,
        ),
        (
            &[
                "std::sys::sync::condvar::futex::Condvar::wait",
                "std::sync::poison::condvar::Condvar::wait",
                "tokio::runtime::scheduler::multi_thread::park::Inner::park_condvar",
                "tokio::runtime::scheduler::multi_thread::park::Parker::park",
                "tokio::runtime::scheduler::multi_thread::worker::Context::park_internal",
            ],
            "tokio worker",
            Role::Idle,
        ),
        (
            &[
                "syscall",
                "parking_lot_core::thread_parker::imp::ThreadParker::futex_wait",
                "parking_lot_core::parking_lot::park",
                "parking_lot::raw_mutex::RawMutex::lock_slow",
            ],
            "parking_lot::Mutex",
            Role::Lock,
        ),
        (
            &[
                "parking_lot_core::parking_lot::park",
                "dashmap::lock::RawRwLock::lock_exclusive_slow",
                "dashmap::DashMap<K,V,S>::_insert",
            ],
            "shard of a DashMap",
            Role::Lock,
        ),
        (
            &["parking_lot_core::parking_lot::park", "fair_lock::RawMutex::lock_slow"],
            "lock of lock_api",
            Role::Lock,
        ),
        (
            &[
                "absl::lts_20230125::synchronization_internal::FutexWaiter::FutexWait(int)",
                "absl::lts_20230125::Mutex::LockSlow(absl::MuHow, int)",
            ],
            "absl::Mutex",
            Role::Lock,
        ),
        (
            &["pthread_cond_wait", "os::PlatformEvent::park()", "ObjectMonitor::enter(JavaThread*)"],
            "Java monitor",
            Role::Lock,
        ),
        (&["pthread_cond_timedwait", "take_gil", "main"], "Python's global interpreter lock", Role::Lock),
        (&["sem_clockwait", "PyThread_acquire_lock_timed"], "Python lock", Role::Lock),
        (
            &["sem_wait", "rip_preload::semaphore::wait", "PyThread_acquire_lock_timed"],
            "Python lock",
            Role::Lock,
        ),
        (&["runtime.futex.abi0", "runtime.futexsleep", "runtime.lock2"], "Go runtime lock", Role::Lock),
        (
            &[
                "syscall",
                "void std::__detail::__platform_wait<int>(int const*, int)",
                "std::__detail::__waiter_pool::_M_do_wait(int const*, int)",
                "void std::__atomic_wait_address<std::__barrier_phase_t>(std::__barrier_phase_t const*)",
                "std::__tree_barrier<std::__empty_completion>::wait(std::__barrier_phase_t&&) const",
                "std::barrier<std::__empty_completion>::arrive_and_wait()",
                "worker()",
            ],
            "std::barrier",
            Role::Barrier,
        ),
        (
            &[
                "syscall",
                "void std::__detail::__platform_wait<int>(int const*, int)",
                "std::latch::wait() const",
            ],
            "std::latch",
            Role::Barrier,
        ),
        (
            &[
                "void std::__atomic_wait_address_v<int>(int const*, int)",
                "std::__atomic_semaphore::_M_acquire()",
                "std::counting_semaphore<8l>::acquire()",
                "transfer()",
            ],
            "std::counting_semaphore",
            Role::Semaphore,
        ),
        (
            &["void std::__atomic_wait_address_v<int>(int const*, int)", "user()"],
            "std::atomic::wait",
            Role::Park,
        ),
        (&["syscall", "g_mutex_lock_slowpath", "g_mutex_lock", "main"], "GMutex", Role::Lock),
        (&["syscall", "", "g_mutex_lock", "main"], "GMutex", Role::Lock),
        (&["syscall", "g_futex_wait", "g_bit_lock"], "g_bit_lock", Role::Lock),
        (&["syscall", "g_cond_wait", "g_async_queue_pop"], "GCond", Role::Condition),
        (
            &[
                "syscall",
                "AbslInternalSpinLockDelay_lts_20230125",
                "absl::lts_20230125::base_internal::SpinLock::SlowLock()",
            ],
            "absl spin lock",
            Role::Lock,
        ),
        (
            &[
                "syscall",
                "folly::detail::(anonymous namespace)::nativeFutexWaitImpl(void const*, unsigned int)",
                "folly::detail::futexWaitImpl(std::atomic<unsigned int> const*, unsigned int)",
                "folly::SharedMutexImpl<false>::lockExclusiveImpl(unsigned int&, unsigned int)",
                "user",
            ],
            "folly::SharedMutex",
            Role::Lock,
        ),
        (
            &["folly::detail::futexWaitImpl(void*)", "folly::MicroLockCore::lockSlowPath(unsigned int)"],
            "folly::MicroLock",
            Role::Lock,
        ),
        (
            &[
                "pthread_cond_wait@@GLIBC_2.3.2",
                "WTF::ParkingLot::parkConditionallyImpl(void const*)",
                "WTF::LockAlgorithm<unsigned char>::lockSlow(WTF::Atomic<unsigned char>&)",
                "WTF::Lock::lockSlow()",
                "JSC::Heap::collect",
            ],
            "WTF::Lock",
            Role::Lock,
        ),
        (
            &["lll_lock_wait", "pthread_mutex_lock", "je_malloc_mutex_lock_slow", "je_arena_malloc_hard"],
            "jemalloc",
            Role::Allocator,
        ),
        (
            &["futex_wait", "gomp_mutex_lock_slow", "GOMP_critical_start", "main._omp_fn.0"],
            "OpenMP critical section",
            Role::Lock,
        ),
        (&["", "", "GOMP_critical_name_start"], "OpenMP critical section", Role::Lock),
        (
            &["syscall", "__kmp_acquire_futex_lock", "__kmpc_critical_with_hint", "main"],
            "OpenMP critical section",
            Role::Lock,
        ),
        (&["", "GOMP_barrier", "main._omp_fn.0"], "OpenMP barrier", Role::Barrier),
        (
            &["pthread_cond_wait", "__kmp_suspend_64<false, true>", "__kmp_wait_template", "__kmp_barrier"],
            "OpenMP barrier",
            Role::Barrier,
        ),
        (
            &["syscall", "tbb::detail::r1::wait_on_address(void*, tbb::detail::d1::delegate_base&)", "user"],
            "TBB lock",
            Role::Lock,
        ),
    ];

    #[test]
    fn stacks_of_known_libraries_are_recognised() {
        for &(frames, name, role) in STACKS {
            let clue = Clue::of(frames);
            assert_eq!(clue.construct, Some(Construct { name, role }), "{frames:?}");
            assert!(clue.primitive.is_some(), "{frames:?}");
        }
    }

    #[test]
    fn what_waits_for_others_and_is_no_lock_is_known_by_its_name() {
        for name in [
            "pthread_cond_wait@@GLIBC_2.3.2",
            "std::condition_variable::wait(std::unique_lock<std::mutex>&)",
            "std::sync::mpsc::Receiver<T>::recv",
            "crossbeam_channel::channel::Receiver<T>::recv",
            "rayon_core::sleep::Sleep::no_work_found",
            "std::thread::park",
        ] {
            assert!(waits_for_work(name), "{name}");
        }
        for name in ["pthread_mutex_lock", "std::sync::mpsc::Sender<T>::send", "take", "sleep", "malloc"] {
            assert!(!waits_for_work(name), "{name}");
        }
        assert!(is_of_library("<std::sys::sync::mutex::futex::Mutex>::lock_contended"));
        assert!(
            !is_of_library("rayon_core::registry::WorkerThread::wait_until_cold") && !is_of_library("works")
        );
        assert!(calls_closure("core::ops::function::FnOnce::call_once{{vtable.shim}}"));
    }

    #[test]
    fn a_function_of_the_user_ends_the_walk() {
        assert_eq!(Clue::of(&["syscall", "my_wait", "initialise", "pthread_once"]), Clue::default());
        assert_eq!(Clue::of(&["lock"]), Clue::default());
        assert_eq!(Clue::of(&["malloc"]), Clue::default());
        assert_eq!(Clue::of(&[]), Clue::default());
        // The mutex is the user's, and not the loader's.
        let clue = Clue::of(&["pthread_mutex_lock", "a_constructor", "call_init", "dlopen"]);
        assert_eq!(clue.construct.unwrap().role, Role::Lock);
    }
}
