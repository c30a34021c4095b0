//! What tasks say of their runtime.

use std::hash::{Hash, Hasher};

use tokio::runtime::{Handle, Runtime, RuntimeFlavor};

/// A runtime or the handle of one: where [`block_on`](crate::block_on) runs a future.
pub trait Executor: sealed::Sealed {
    #[doc(hidden)]
    fn as_handle(&self) -> &Handle;
    /// Whether the calling thread polls all tasks of the runtime meanwhile, and not just the future.
    #[doc(hidden)]
    fn drives_tasks(&self) -> bool;
    #[doc(hidden)]
    fn run<F: Future>(&self, future: F) -> F::Output;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Runtime {}
    impl Sealed for super::Handle {}
}

impl Executor for Runtime {
    fn as_handle(&self) -> &Handle {
        self.handle()
    }

    fn drives_tasks(&self) -> bool {
        has_one_thread(self.handle())
    }

    #[track_caller]
    fn run<F: Future>(&self, future: F) -> F::Output {
        self.block_on(future)
    }
}

impl Executor for Handle {
    fn as_handle(&self) -> &Handle {
        self
    }

    fn drives_tasks(&self) -> bool {
        false
    }

    #[track_caller]
    fn run<F: Future>(&self, future: F) -> F::Output {
        self.block_on(future)
    }
}

/// What a task says of its runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// A number that tells it from other runtimes of the process. Not 0.
    pub(crate) number: u32,
    /// How many workers of the runtime there are of which any may poll the task. 0 if none does, or that is not known.
    pub(crate) workers: usize,
}

impl Facts {
    /// These facts of the runtime that the calling thread has entered; `None` if it has entered none.
    pub(crate) fn current(of: fn(&Handle) -> Facts) -> Option<Facts> {
        Handle::try_current().ok().as_ref().map(of)
    }

    /// Those of a task that is spawned onto the runtime.
    pub(crate) fn of_spawned(handle: &Handle) -> Facts {
        let workers = if has_one_thread(handle) { 1 } else { handle.metrics().num_workers() };
        Facts { number: number(handle), workers }
    }

    /// Those of another task within the runtime: the future of a `block_on`, a task of a `LocalSet`. A runtime of one
    /// thread polls it on that one. Otherwise no worker polls it.
    pub(crate) fn of_local(handle: &Handle) -> Facts {
        Facts::of_driven(handle, has_one_thread(handle))
    }

    /// Those of the future of a `block_on`.
    pub(crate) fn of_blocked_on(executor: &impl Executor) -> Facts {
        Facts::of_driven(executor.as_handle(), executor.drives_tasks())
    }

    fn of_driven(handle: &Handle, is_driver: bool) -> Facts {
        Facts { number: number(handle), workers: usize::from(is_driver) }
    }
}

fn has_one_thread(handle: &Handle) -> bool {
    handle.runtime_flavor() == RuntimeFlavor::CurrentThread
}

/// The number of a runtime.
///
/// If [`count`] is no count any more, the number is still the same for the same runtime, and most probably another one
/// for others.
fn number(handle: &Handle) -> u32 {
    let count = count(handle.id());
    let folded = (count ^ count >> 32) as u32;
    folded.max(1)
}

/// Tokio counts its runtimes and its tasks, and hides the count in an `Id`, which one can print, compare and hash. Its
/// hash is the count itself.
pub(crate) fn count(id: impl Hash) -> u64 {
    let mut kept = Kept(0);
    id.hash(&mut kept);
    kept.0
}

/// A hasher that keeps the integer that it is given.
struct Kept(u64);

impl Hasher for Kept {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(5) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 ^= number;
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn the_hash_of_an_id_is_the_number_that_it_prints() {
        let runtime = Builder::new_current_thread().build().unwrap();
        for task in [(); 3].map(|()| runtime.spawn(async {})) {
            assert_eq!(count(task.id()).to_string(), task.id().to_string());
        }
    }

    #[test]
    fn runtimes_have_different_numbers_which_stay() {
        let [one, other] = [1, 2].map(|_| Builder::new_current_thread().build().unwrap());
        let facts = Facts::of_spawned(one.handle());
        assert_ne!(facts.number, 0);
        assert_ne!(facts.number, Facts::of_spawned(other.handle()).number);
        let current = || Facts::current(Facts::of_spawned);
        assert_eq!(one.block_on(async { current() }), Some(facts));
        assert_eq!(current(), None);
    }

    #[test]
    fn a_runtime_says_how_many_workers_may_poll_a_task() {
        let workers = |of: Facts| of.workers;
        let two = Builder::new_multi_thread().worker_threads(2).build().unwrap();
        assert_eq!(workers(Facts::of_spawned(two.handle())), 2);
        assert_eq!(workers(Facts::of_local(two.handle())), 0);
        assert_eq!(workers(Facts::of_blocked_on(&two)), 0, "the calling thread is no worker");
        let one = Builder::new_current_thread().build().unwrap();
        assert_eq!(workers(Facts::of_spawned(one.handle())), 1);
        assert_eq!(workers(Facts::of_local(one.handle())), 1);
        assert_eq!(workers(Facts::of_blocked_on(&one)), 1, "the calling thread is the worker");
        assert_eq!(workers(Facts::of_blocked_on(one.handle())), 0, "a handle polls nothing else");
    }
}
