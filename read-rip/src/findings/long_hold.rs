//! Long holds: a living thread keeps a lock, and does nothing.
//!
//! # Question
//!
//! Which locks are held for longer than the threshold by threads that do not move?
//!
//! # Method
//!
//! A lock that its thread has had for longer than the threshold, while the thread marked nothing between the two
//! readings and waits neither for a lock nor for a condition. How long, and where it was taken, is told.
//!
//! # Blind spots
//!
//! A thread may keep a lock for its whole liveness on purpose, or sit in a long call that it does not mark. Of locks
//! without a time of acquisition (they are timed where somebody waits, unless `RIP_CLOCK` says more) only the time between
//! the readings counts. In a dead process nothing was going to move.
//!
//! # Example output
//!
//! ```text
//! suspected long-hold: writer[12] has had JOURNAL for 41 s and does nothing
//!     writer[12] took it at append journal.rs:50, was last at append journal.rs:61
//! ```

use super::unreleased::waiting;
use super::{Analysis, Confidence, Finding, Part, View, locks_of, parts, pile_up, unreleased};
use crate::locks::HoldState;
use crate::threads::ThreadState;

/// See the file's description.
pub(super) struct LongHold;

pub(super) const KIND: &str = "long-hold";

impl Analysis for LongHold {
    fn kinds(&self) -> &'static [&'static str] {
        &[KIND]
    }

    fn look(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let explained = locks_of(found, &["deadlock", unreleased::KIND, pile_up::PILE_UP, pile_up::CONVOY]);
        for (id, thread) in view.now.threads.iter().enumerate() {
            let is_still = thread.advanced == Some(0) && !thread.is_blocked();
            if view.now.is_final || thread.state != ThreadState::Present || !is_still {
                continue;
            }
            for hold in thread.holds.iter().filter(|hold| hold.state == HoldState::Held && hold.is_steady) {
                // Without a time, it was held at both readings for certain, and so in between.
                let held_ns = view.ago_ns(hold.since_ns).or(view.now.window_ns);
                let held_ns = held_ns.filter(|&held_ns| held_ns >= view.threshold_ns);
                let Some(held_ns) = held_ns.filter(|_| !explained.contains(&hold.lock)) else { continue };
                let summary = parts![
                    Part::Thread(id),
                    if hold.is_shared { " has shared " } else { " has had " },
                    Part::Lock(hold.lock),
                    if hold.since_ns.is_some() { " for " } else { " for at least " },
                    Part::Duration(held_ns),
                    " and does nothing"
                ];
                let mut line = parts![Part::Thread(id), " took it at ", Part::Location(hold.location)];
                if let Some(last) = thread.last {
                    line.extend(parts![", and was last at ", Part::Location(last)]);
                }
                let mut evidence = vec![line];
                evidence.extend(waiting(view, hold.lock));
                let mut finding = Finding::new(KIND, Confidence::Suspected, summary, evidence);
                finding.since_ns = hold.since_ns;
                finding.threads_hurt = view.waiters(hold.lock).count();
                finding.doubt = Some("it may be busy in a call that has no marks".into());
                finding.advice =
                    "look at the code behind its last mark: a slow call, a sleep, input that does not come; \
                                  do that without the lock"
                        .into();
                found.push(finding);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{NOW, SECOND, Scene};

    fn scene() -> Scene {
        let mut scene = Scene::new();
        let (thread, lock) = (scene.thread("writer"), scene.lock("JOURNAL"));
        scene.holds(thread, lock);
        scene
    }

    #[test]
    fn a_lock_kept_past_the_threshold_is_suspected() {
        let found = scene().look(&LongHold);
        assert_eq!((found.len(), found[0].confidence), (1, Confidence::Suspected));
    }

    #[test]
    fn who_moves_or_waits_or_has_it_for_a_short_time_is_not_told_of() {
        type Change = fn(&mut Scene);
        let changes: [Change; 6] = [
            |scene| scene.model.threads[0].advanced = Some(4),
            |scene| scene.waits(0, 0),
            |scene| scene.model.threads[0].condition_wait = Some(0),
            |scene| scene.model.threads[0].holds[0].since_ns = Some(NOW - SECOND),
            |scene| scene.model.threads[0].holds[0].since_ns = None,
            |scene| scene.model.is_final = true,
        ];
        for (at, change) in changes.into_iter().enumerate() {
            let mut scene = scene();
            change(&mut scene);
            assert!(scene.look(&LongHold).is_empty(), "change {at}");
        }
    }
}
