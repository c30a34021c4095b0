//! The C library's functions for the locks of `rip.hpp`.
//!
//! A program may run under the interposer, which replaces these functions and would record each lock a second time, at
//! a line of the header. So they are looked up past the interposer, at the first call. Without an interposer, they are
//! what the program itself would call: those of a sanitizer, for example.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicPtr, AtomicU32};

/// `pthread_mutex_t` or `pthread_rwlock_t`.
pub(crate) type Lock = *mut c_void;
pub(crate) type Deadline = *const libc::timespec;

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            /// The C library's.
            ///
            /// # Safety
            ///
            /// As the C library's function.
            #[inline(always)]
            pub(crate) unsafe fn $name($($argument: $type),*) -> c_int {
                type Function = unsafe extern "C-unwind" fn($($type),*) -> c_int;
                // ORDERING: relaxed: it leads to code, which is there whichever thread stored the pointer.
                let function = address::$name.load(Relaxed);
                // SAFETY: `first::NAME`, or the C library's function of that name, which has this type.
                let function = unsafe { core::mem::transmute::<*mut c_void, Function>(function) };
                // SAFETY: the caller's promise.
                unsafe { function($($argument),*) }
            }
        )*

        /// Where the functions are.
        #[allow(non_upper_case_globals, reason = "the names are those of the functions")]
        mod address {
            use super::{AtomicPtr, c_void};
            $(
                pub(super) static $name: AtomicPtr<c_void> =
                    AtomicPtr::new(super::first::$name as *const c_void as *mut c_void);
            )*
        }

        /// The functions that the linker and the dynamic linker choose.
        mod linked {
            use super::{Deadline, Lock, c_int};
            unsafe extern "C-unwind" {
                $(pub(super) fn $name($($argument: $type),*) -> c_int;)*
            }
        }

        /// What the pointers lead to at first.
        mod first {
            use super::{Deadline, Lock, c_int};
            $(
                pub(super) unsafe extern "C-unwind" fn $name($($argument: $type),*) -> c_int {
                    super::find();
                    // SAFETY: the caller's promise.
                    unsafe { super::$name($($argument),*) }
                }
            )*
        }

        fn find() {
            $(
                let name = CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes());
                let function = match past_the_interposer(name.unwrap_or_default()) {
                    Some(found) => core::ptr::with_exposed_provenance_mut(found),
                    None => linked::$name as *const c_void as *mut c_void,
                };
                // ORDERING: relaxed, as above.
                address::$name.store(function, Relaxed);
            )*
        }
    };
}

functions! {
    pthread_mutex_lock(mutex: Lock);
    pthread_mutex_trylock(mutex: Lock);
    pthread_mutex_timedlock(mutex: Lock, until: Deadline);
    pthread_mutex_unlock(mutex: Lock);
    pthread_rwlock_wrlock(rwlock: Lock);
    pthread_rwlock_trywrlock(rwlock: Lock);
    pthread_rwlock_timedwrlock(rwlock: Lock, until: Deadline);
    pthread_rwlock_rdlock(rwlock: Lock);
    pthread_rwlock_tryrdlock(rwlock: Lock);
    pthread_rwlock_timedrdlock(rwlock: Lock, until: Deadline);
    pthread_rwlock_unlock(rwlock: Lock);
}

/// The function with this name that the dynamic linker would find if there were no interposer. `None` if there is none,
/// and in a static program.
#[cfg(target_env = "gnu")]
fn past_the_interposer(name: &CStr) -> Option<usize> {
    use librip::interpose::modules;
    let is_interposer = |symbols: &librip::interpose::Symbols| symbols.data(c"librip_preload_1").is_some();
    if !modules().any(|symbols| is_interposer(&symbols)) {
        return None;
    }
    modules().filter(|symbols| !is_interposer(symbols)).find_map(|symbols| symbols.function(name))
}

/// There is no interposer for other C libraries.
#[cfg(not(target_env = "gnu"))]
fn past_the_interposer(_name: &CStr) -> Option<usize> {
    None
}

/// Whether a thread holds a lock, by the lock's own memory. glibc keeps what is read here where debuggers expect it.
///
/// # Safety
///
/// `lock` points at a mutex of the C library, or at a readers-writer lock.
#[cfg(target_env = "gnu")]
pub(crate) unsafe fn is_held(lock: Lock, is_mutex: bool) -> bool {
    /// A readers-writer lock counts its readers in the first word, from this bit on.
    const READERS_SHIFT: u32 = 3;
    /// The thread that holds a readers-writer lock in exclusive mode.
    const WRITER: usize = 24;
    // SAFETY: each is an aligned word of the lock.
    let word = |at: usize| unsafe { AtomicU32::from_ptr(lock.wrapping_byte_add(at).cast()) }.load(Relaxed);
    if is_mutex { word(0) != 0 } else { word(0) >> READERS_SHIFT != 0 || word(WRITER) != 0 }
}

/// Where other C libraries keep it is not known.
///
/// # Safety
///
/// As above.
#[cfg(not(target_env = "gnu"))]
pub(crate) unsafe fn is_held(_lock: Lock, _is_mutex: bool) -> bool {
    false
}
