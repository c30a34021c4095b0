//! The macros that users write: marks, marks of progress, and marks of locks.
//!
//! A macro expands to a site, and to instructions (`arch`) or a call (`lock::by_hand`) that record an event of it.
//! Those modules say what is recorded. `events` has the macros of events with values, and of spans.

mod events;

/// Records that the thread passes this line. Takes about a nanosecond.
///
/// Stores the address of the current instruction, with a sequence number, in the calling thread's slot of the process's
/// ring. Before [`init`](crate::init) has made a ring it records nowhere. It never blocks, allocates or fails, and may
/// be used in signal handlers and in destructors of thread-locals.
///
/// A label, a string literal, is kept in the program's notes and shown by `read-rip -v`. It costs nothing at run time.
///
/// # Examples
///
/// With this pattern around a lock, `read-rip` shows which threads wait for it, hold it, or have released it:
///
/// ```
/// use librip::rip_snap;
/// use std::sync::Mutex;
///
/// static CACHE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
///
/// rip_snap!("waits for the cache");
/// let mut cache = CACHE.lock().unwrap();
/// rip_snap!("holds the cache");
/// cache.push(1);
/// drop(cache);
/// rip_snap!("has released the cache");
/// ```
///
/// The label is a constant. A place for a value in it does not compile:
///
/// ```compile_fail
/// let request = 7;
/// librip::rip_snap!("request {request}");
/// ```
#[macro_export]
macro_rules! rip_snap {
    () => {
        $crate::rip_snap!("")
    };
    ($label:literal) => {
        $crate::__rip_plain_mark!($label, KIND_SNAP)
    };
}

/// Records that the thread has done useful work: answered a request, finished an item. Takes about a nanosecond.
///
/// These marks let `read-rip check` tell a livelock from progress.
#[macro_export]
macro_rules! rip_progress {
    () => {
        $crate::rip_progress!("")
    };
    ($label:literal) => {
        $crate::__rip_plain_mark!($label, KIND_PROGRESS)
    };
}

/// Expands to a mark without operands. Arguments: label, kind.
#[doc(hidden)]
#[macro_export]
macro_rules! __rip_plain_mark {
    ($label:literal, $kind:ident) => {{
        const _: () = $crate::__private::check_label(::core::concat!($label));
        const TEXT: &str = ::core::concat!(::core::file!(), "\0", ::core::module_path!(), "\0", $label);
        // A static of its own for each site: see `__rip_mark`.
        static BYTES: [u8; TEXT.len()] = $crate::__private::text_bytes(TEXT);
        // SAFETY: the assembly advances the count of the thread's slot and stores one word among the slot's words. It
        // changes no other memory of the program, and no register but its operands.
        unsafe { $crate::__rip_mark!(BYTES, TEXT.len(), $kind) }
    }};
}

/// Expands to the PC of a lock's site. Arguments: kind, class, flags by name, operands.
#[doc(hidden)]
#[macro_export]
macro_rules! __rip_lock_site {
    ($kind:ident, $class:literal, [$($flag:ident),*], [$($operand:ident),*]) => {{
        $crate::__rip_text_site!($kind, 0 $(| $crate::__rip_lock_flag!($flag))*, [$($operand),*], $class)
    }};
}

/// Expands to the PC of a site with a text. Arguments: kind, flags, operands, and the parts of the label.
#[doc(hidden)]
#[macro_export]
macro_rules! __rip_text_site {
    ($kind:ident, $flags:expr, [$($operand:ident),*], $($label:expr),+) => {{
        const TEXT: &str = ::core::concat!(::core::file!(), "\0", ::core::module_path!(), "\0", $($label),+);
        // A static of its own for each site: see `__rip_mark`.
        static BYTES: [u8; TEXT.len()] = $crate::__private::text_bytes(TEXT);
        $crate::__rip_site!(
            BYTES,
            TEXT.len(),
            $crate::__private::format::$kind,
            $flags,
            (&[$($crate::__private::format::$operand),*] as &[u8])
        )
    }};
}

/// Expands to the number of a flag.
#[doc(hidden)]
#[macro_export]
macro_rules! __rip_lock_flag {
    (exclusive) => {
        0
    };
    (shared) => {
        $crate::__private::format::SITE_SHARED
    };
    (reentrant) => {
        $crate::__private::format::SITE_REENTRANT
    };
    (readers_first) => {
        $crate::__private::format::SITE_READERS_FIRST
    };
    (try_for) => {
        $crate::__private::format::SITE_TRY
    };
}

/// Records that the thread is about to wait for a lock.
///
/// The first argument is a reference or a pointer to the lock, whose address identifies the lock. Flags may follow:
/// `shared` for a reader, `reentrant` if the owner may acquire the lock again, `readers_first` if readers overtake
/// waiting writers, `try_for` if the wait has a timeout.
///
/// A class may precede the lock, as in `rip_lock_wait!(class "session", &lock)`: a string literal that says what kind
/// of lock this is. `read-rip` shows it for locks that have no name of their own. Like a label, it is kept in the
/// program's notes and costs nothing at run time. `rip_lock_acquired!`, `rip_lock_released!` and `rip_lock_try_failed!`
/// take a class too.
///
/// Place it directly before the call that blocks. It records the time, which takes some nanoseconds more than other
/// marks do (`RIP_CLOCK=off` saves them). [`rip_lock_acquired!`](crate::rip_lock_acquired) or
/// [`rip_lock_try_failed!`](crate::rip_lock_try_failed) follows.
///
/// # Examples
///
/// ```
/// use librip::{rip_lock_acquired, rip_lock_released, rip_lock_wait};
/// use std::sync::Mutex;
///
/// static CACHE: Mutex<u32> = Mutex::new(0);
///
/// rip_lock_wait!(&CACHE);
/// let mut cache = CACHE.lock().unwrap();
/// rip_lock_acquired!(&CACHE);
/// *cache += 1;
/// drop(cache);
/// rip_lock_released!(&CACHE);
/// ```
#[macro_export]
macro_rules! rip_lock_wait {
    (class $class:literal, $lock:expr $(, $flag:ident)* $(,)?) => {
        $crate::__private::lock_wait(
            $lock,
            $crate::__rip_lock_site!(KIND_LOCK_WAIT, $class, [$($flag),*], [OPERAND_TIME, OPERAND_LOCK]),
            0 $(| $crate::__rip_lock_flag!($flag))*,
        )
    };
    ($lock:expr $(, $flag:ident)* $(,)?) => {
        $crate::rip_lock_wait!(class "", $lock $(, $flag)*)
    };
}

/// Records that the thread has acquired a lock: see [`rip_lock_wait!`](crate::rip_lock_wait).
///
/// Place it directly after the acquisition, with or without a `rip_lock_wait!` before. `try_for` says that the lock was
/// acquired by trying.
#[macro_export]
macro_rules! rip_lock_acquired {
    (class $class:literal, $lock:expr $(, $flag:ident)* $(,)?) => {
        $crate::__private::lock_acquired(
            $lock,
            $crate::__rip_lock_site!(KIND_LOCK_ACQUIRED, $class, [$($flag),*], [OPERAND_LOCK]),
            $crate::__rip_lock_site!(KIND_LOCK_ACQUIRED, $class, [$($flag),*], [OPERAND_TIME, OPERAND_LOCK]),
            0 $(| $crate::__rip_lock_flag!($flag))*,
        )
    };
    ($lock:expr $(, $flag:ident)* $(,)?) => {
        $crate::rip_lock_acquired!(class "", $lock $(, $flag)*)
    };
}

/// Records that the thread has released a lock: see [`rip_lock_wait!`](crate::rip_lock_wait).
///
/// Place it directly after the release. Another thread may have acquired the lock.
#[macro_export]
macro_rules! rip_lock_released {
    (class $class:literal, $lock:expr $(, $flag:ident)* $(,)?) => {
        $crate::__private::lock_released(
            $lock,
            $crate::__rip_lock_site!(KIND_LOCK_RELEASED, $class, [$($flag),*], [OPERAND_LOCK]),
            $crate::__rip_lock_site!(
                KIND_LOCK_RELEASED,
                $class,
                [$($flag),*],
                [OPERAND_TIME, OPERAND_SINCE, OPERAND_LOCK]
            ),
        )
    };
    ($lock:expr $(, $flag:ident)* $(,)?) => {
        $crate::rip_lock_released!(class "", $lock $(, $flag)*)
    };
}

/// Records that an attempt to acquire a lock failed, or that a wait for it timed out.
#[macro_export]
macro_rules! rip_lock_try_failed {
    (class $class:literal, $lock:expr $(, $flag:ident)* $(,)?) => {
        $crate::__private::lock_try_failed(
            $lock,
            $crate::__rip_lock_site!(KIND_LOCK_TRY_FAILED, $class, [try_for $(, $flag)*], [OPERAND_LOCK]),
        )
    };
    ($lock:expr $(, $flag:ident)* $(,)?) => {
        $crate::rip_lock_try_failed!(class "", $lock $(, $flag)*)
    };
}

/// Records that the thread is about to wait on a condition variable, which releases a lock meanwhile.
///
/// The arguments are references or pointers to the condition variable and to the lock, whose addresses identify them. A
/// flag may follow: `try_for` if the wait has a timeout. [`rip_condition_woken!`](crate::rip_condition_woken) follows,
/// however the wait ended. Like `rip_lock_wait!`, it records the time.
///
/// # Examples
///
/// ```
/// use librip::{rip_condition_wait, rip_condition_woken, rip_lock_acquired, rip_lock_released};
/// use std::sync::{Condvar, Mutex};
/// use std::time::Duration;
///
/// static QUEUE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
/// static FILLED: Condvar = Condvar::new();
///
/// let queue = QUEUE.lock().unwrap();
/// rip_lock_acquired!(&QUEUE);
/// rip_condition_wait!(&FILLED, &QUEUE, try_for);
/// let (queue, _) = FILLED.wait_timeout(queue, Duration::from_millis(1)).unwrap();
/// rip_condition_woken!(&FILLED, &QUEUE, try_for);
/// drop(queue);
/// rip_lock_released!(&QUEUE);
/// ```
#[macro_export]
macro_rules! rip_condition_wait {
    ($condition:expr, $lock:expr $(, $flag:ident)* $(,)?) => {
        $crate::__private::condition_wait(
            $condition,
            $lock,
            $crate::__rip_lock_site!(
                KIND_CONDITION_WAIT,
                "",
                [$($flag),*],
                [OPERAND_TIME, OPERAND_LOCK, OPERAND_CONDITION]
            ),
        )
    };
}

/// Records that a wait on a condition variable has ended, and the thread has the lock again: see
/// [`rip_condition_wait!`](crate::rip_condition_wait).
#[macro_export]
macro_rules! rip_condition_woken {
    ($condition:expr, $lock:expr $(, $flag:ident)* $(,)?) => {
        $crate::__private::condition_woken(
            $condition,
            $lock,
            $crate::__rip_lock_site!(
                KIND_CONDITION_WOKEN,
                "",
                [$($flag),*],
                [OPERAND_TIME, OPERAND_LOCK, OPERAND_CONDITION]
            ),
        )
    };
}

/// Records that a lock is about to be destroyed. Removes its name. If a thread holds it, the ring says from now on that
/// the held lock was destroyed.
///
/// Use it for locks in memory that the program will use again. Without it, a later lock at the same address looks like
/// this one.
#[macro_export]
macro_rules! rip_lock_destroyed {
    ($lock:expr) => {
        $crate::__private::lock_destroyed(
            $lock,
            $crate::__rip_lock_site!(KIND_LOCK_DESTROYED, "", [], [OPERAND_LOCK]),
        )
    };
}

/// Names a lock in the ring, up to 48 bytes. `read-rip` shows the name instead of the address.
///
/// A lock that is a `static` needs no name: `read-rip` shows the name of the static. Naming takes about a microsecond,
/// however many names there are. A ring has room for more than 100,000 names. For locks of which there are many, a
/// class costs nothing: see [`rip_lock_wait!`](crate::rip_lock_wait).
///
/// # Examples
///
/// ```
/// use std::sync::Mutex;
///
/// let sessions = Box::new(Mutex::new(Vec::<u32>::new()));
/// librip::rip_lock_name!(&*sessions, "sessions");
/// ```
#[macro_export]
macro_rules! rip_lock_name {
    ($lock:expr, $name:expr $(,)?) => {
        $crate::__private::lock_name($lock, $name)
    };
}

/// Fails to compile if a label has a place for a value, as `{count}`. A mark formats nothing: its label is a constant.
#[doc(hidden)]
pub const fn check_label(label: &str) {
    let label = label.as_bytes();
    let mut at = 0;
    while at < label.len() {
        if label[at] == b'{' {
            let mut end = at + 1;
            while end < label.len()
                && (label[end].is_ascii_alphanumeric() || matches!(label[end], b'_' | b':' | b'?' | b'#'))
            {
                end += 1;
            }
            assert!(
                end == label.len() || label[end] != b'}',
                "the label of a mark is a constant: rip_snap! and rip_progress! format no values"
            );
        }
        at += 1;
    }
}

/// Returns a string as an array, for a `static` whose address the assembly uses.
#[doc(hidden)]
pub const fn text_bytes<const LEN: usize>(text: &str) -> [u8; LEN] {
    let source = text.as_bytes();
    let mut bytes = [0; LEN];
    let mut at = 0;
    while at < LEN {
        bytes[at] = source[at];
        at += 1;
    }
    bytes
}

/// Packs the operand types of a site as its note has them.
#[doc(hidden)]
pub const fn types(operands: &[u8]) -> u64 {
    assert!(operands.len() <= 8, "the assembly of a site has room for eight");
    let mut packed = 0;
    let mut at = 0;
    while at < operands.len() {
        packed |= (operands[at] as u64) << (8 * at);
        at += 1;
    }
    packed
}
