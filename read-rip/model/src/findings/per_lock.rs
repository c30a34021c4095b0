//! A value for each lock, all of which are forgotten at once.
//!
//! Analyses that look at one thread after another need such values for the locks of that thread. A hash table for each
//! thread would take most of their time.

use crate::locks::LockId;

/// A value for each lock of a model.
#[derive(Debug)]
pub(super) struct PerLock<T> {
    /// Each value, and the round in which it was set. Values of earlier rounds count as not set.
    values: Vec<(u64, T)>,
    round: u64,
}

impl<T: Copy + Default> PerLock<T> {
    /// No values, for this many locks.
    pub(super) fn new(locks: usize) -> PerLock<T> {
        PerLock { values: vec![(0, T::default()); locks], round: 1 }
    }

    /// Forgets all values.
    pub(super) fn forget(&mut self) {
        self.round += 1;
    }

    /// The value of a lock, if it was set.
    pub(super) fn get(&self, lock: LockId) -> Option<T> {
        let (round, value) = self.values[lock];
        (round == self.round).then_some(value)
    }

    /// Sets the value of a lock.
    pub(super) fn set(&mut self, lock: LockId, value: T) {
        self.values[lock] = (self.round, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_values_are_forgotten_at_once() {
        let mut values = PerLock::new(3);
        assert_eq!(values.get(1), None, "not set yet");
        values.set(1, 7);
        assert_eq!((values.get(1), values.get(2)), (Some(7), None));
        values.forget();
        assert_eq!(values.get(1), None);
        values.set(1, 8);
        assert_eq!(values.get(1), Some(8));
    }
}
