//! Functions that try to acquire something, and those that only let time pass: what a thread calls that waits in a
//! loop.

use serde::{Deserialize, Serialize};

/// What a thread calls that waits in a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trying {
    /// A function that runs in a loop until it has a spin lock.
    SpinLock,
    /// A function that acquires a lock only if it is free.
    TryLock,
    /// A function that lets other threads run.
    Yield,
}

impl Trying {
    /// What a function is, by its demangled name; `None`: it does something else.
    pub fn of_function(name: &str) -> Option<Trying> {
        // `sched_yield`, `__sched_yield@GLIBC_2.2.5`, `std::mutex::try_lock()`.
        let name = name.split(['(', '@']).next().unwrap_or_default().trim_start_matches('_');
        Some(match name {
            "pthread_spin_lock" => Trying::SpinLock,
            "pthread_mutex_trylock"
            | "pthread_spin_trylock"
            | "pthread_rwlock_tryrdlock"
            | "pthread_rwlock_trywrlock"
            | "mtx_trylock"
            | "gthread_mutex_trylock"
            | "std::mutex::try_lock"
            | "std::recursive_mutex::try_lock"
            | "std::shared_mutex::try_lock"
            | "std::shared_mutex::try_lock_shared" => Trying::TryLock,
            "sched_yield" | "std::this_thread::yield" | "std::thread::yield_now" => Trying::Yield,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_their_names() {
        for (name, is) in [
            ("pthread_spin_lock", Some(Trying::SpinLock)),
            ("___pthread_mutex_trylock@GLIBC_2.34", Some(Trying::TryLock)),
            ("std::mutex::try_lock()", Some(Trying::TryLock)),
            ("__sched_yield", Some(Trying::Yield)),
            ("pthread_mutex_lock", None),
            ("Bank::try_lock()", None),
        ] {
            assert_eq!(Trying::of_function(name), is, "{name}");
        }
    }
}
