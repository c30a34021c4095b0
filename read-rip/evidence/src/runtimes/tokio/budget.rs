//! How much of a processor a step may take. A busy machine makes it longer, and not shorter.

use std::cell::Cell;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// The clock is asked once in so many questions.
const QUESTIONS: u32 = 64;

#[derive(Debug)]
pub(super) struct Budget {
    /// The processor time of this thread at which it is used up; `None` if there is no such clock.
    end: Option<Duration>,
    questions: Cell<u32>,
    is_over: Cell<bool>,
}

impl Budget {
    pub(super) fn of(limit: Duration) -> Budget {
        let end = now().map(|now| now + limit);
        Budget { is_over: Cell::new(end.is_none()), end, questions: Cell::new(0) }
    }

    /// Whether it is used up.
    pub(super) fn is_over(&self) -> bool {
        let questions = self.questions.get();
        self.questions.set(questions.wrapping_add(1));
        if !self.is_over.get() && questions.is_multiple_of(QUESTIONS) {
            self.is_over.set(now() >= self.end);
        }
        self.is_over.get()
    }
}

fn now() -> Option<Duration> {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok().map(Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_over_when_this_thread_has_used_it() {
        assert!(Budget::of(Duration::ZERO).is_over());
        let budget = Budget::of(Duration::from_hours(1));
        assert!((0..3 * QUESTIONS).all(|_| !budget.is_over()));
        let budget = Budget::of(Duration::from_millis(2));
        while !budget.is_over() {}
        assert!(now() >= budget.end);
    }
}
