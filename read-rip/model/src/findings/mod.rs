//! What is wrong with the locks and threads of a ring: one analysis a file.
//!
//! Analyses map values to values. They do no input or output, resolve no symbols and make no text. `report::findings`
//! makes the sentences.
//!
//! Adding an analysis touches three places: its file, the lists ([`ANALYSES`] here, [`Kind`] and [`Evidence`] for
//! what it finds), and a scene in its tests. The compiler then asks `report::findings` for its sentences. The order
//! of [`ANALYSES`] matters in one way: an analysis does not report again what an earlier one has explained.
//!
//! | file | what it has |
//! |---|---|
//! | `kind`, `named` | kinds and confidence, with their stable names |
//! | `remarks` | doubts, premises and advice, with their stable names and sentences |
//! | `evidence`, `mentions` | what findings are based on, and which threads, locks and locations that mentions |
//! | `finding`, `view` | what an analysis makes, and what it sees |
//! | `history`, `gates`, `kin`, `nesting`, `graph`, `pasts`, `per_lock`, `replaced` | tools of several analyses |
//! | `orders`, `order_cycles` | the orders in which threads acquired locks, and the cycles in them |
//! | `waits_for`, `task_waits` | the graph of waits, and what differs for tasks in it |
//! | `group`, `standstill`, `idle_pool` | who waits behind whom, and which of these threads look idle |
//! | `balance` | what the threads do, and what the record cannot show |
//! | `suppress` | findings that are not to be reported |
//! | all others | an analysis each |

mod abandoned_channel;
mod balance;
mod contention;
mod convoy;
mod deadlock;
mod destroyed;
mod double;
mod evidence;
mod finding;
mod gates;
mod graph;
mod group;
mod history;
mod idle_places;
mod idle_pool;
mod kin;
mod kind;
mod lines;
mod livelock;
mod lock_order;
mod long_hold;
mod long_wait;
mod lost_owner;
mod lost_wakeup;
mod mentions;
mod misuse;
mod named;
mod nested_read;
mod nesting;
mod never_woken;
mod nobody_left;
mod order_cycles;
mod orders;
mod own_order;
mod pasts;
mod per_lock;
mod pollers;
mod remarks;
mod replaced;
mod runtimes;
mod stall;
mod standstill;
mod starvation;
mod starved_runtime;
mod suppress;
mod task_balance;
#[cfg(test)]
mod task_tests;
mod task_waits;
#[cfg(test)]
mod testing;
mod unlock;
mod unpolled_task;
mod unreleased;
mod view;
mod waits_for;
#[cfg(test)]
mod worker_tests;

pub use balance::{Balance, HeldAtEnd, Outcome};
pub use evidence::*;
pub use finding::{Analysis, Finding, Limit};
pub use idle_pool::IdlePool;
pub use kind::{Confidence, Kind, Refusal};
pub use mentions::Mentions;
pub use remarks::{Advice, Doubt, Premise};
pub use runtimes::{Runtime, executor};
pub use suppress::{BadRule, BadRuleReason, Suppression};
pub use task_balance::TaskBalance;
pub use view::{Memo, View};

/// All analyses, in the order in which they run.
pub const ANALYSES: &[&dyn Analysis] = &[
    &deadlock::Deadlock,
    &starved_runtime::StarvedRuntime,
    &unpolled_task::UnpolledTask,
    &never_woken::NeverWokenTask,
    &abandoned_channel::AbandonedChannel,
    &unreleased::Unreleased,
    &lost_owner::LostOwner,
    &destroyed::Destroyed,
    &misuse::Misuse,
    &unlock::Unlock,
    &double::Double,
    &lock_order::LockOrder,
    &own_order::OwnOrder,
    &nested_read::NestedRead,
    &livelock::Livelock,
    &convoy::Convoy,
    &starvation::Starvation,
    &long_wait::LongWait,
    &lost_wakeup::LostWakeup,
    &nobody_left::NobodyLeft,
    &long_hold::LongHold,
    &contention::Contention,
    &lines::Lines,
    &stall::Stalled,
];

/// Runs all analyses. The worst finding is first: the most certain, and of those the one that hurts most threads.
pub fn run(view: &View<'_>) -> Vec<Finding> {
    run_bounded(view).0
}

/// Like [`run`]. Returns also the limits that were reached: what is beyond them was not looked for.
pub fn run_bounded(view: &View<'_>) -> (Vec<Finding>, Vec<Limit>) {
    let mut found = Vec::new();
    let limits = ANALYSES.iter().filter_map(|analysis| analysis.run_bounded(view, &mut found)).collect();
    for finding in &mut found {
        finding.for_ns = view.ago_ns(finding.since_ns);
    }
    sort(&mut found);
    (found, limits)
}

fn sort(found: &mut [Finding]) {
    found.sort_by_key(|finding| std::cmp::Reverse((finding.confidence, finding.threads_hurt)));
}

/// Takes back what a copy cannot prove: if its process ran while the copy was made, each part of the copy shows another
/// moment.
pub fn doubt_copy(found: &mut [Finding]) {
    doubt(found, Doubt::Copied);
}

/// Takes back what a file proves that somebody may have forged.
pub fn doubt_foreign(found: &mut [Finding]) {
    doubt(found, Doubt::Foreign);
}

/// Nothing is proven, because of a doubt.
fn doubt(found: &mut [Finding], doubt: Doubt) {
    for finding in found.iter_mut().filter(|finding| finding.confidence == Confidence::Proven) {
        finding.confidence = Confidence::Potential;
        finding.doubts.push(doubt);
    }
    sort(found);
}

#[cfg(test)]
mod tests {
    use super::testing::Scene;
    use super::*;
    use crate::locations::Location;

    /// A server: a quarter of the threads hold a lock each, one in ten of the others waits for one, all have histories.
    fn server(threads: usize) -> Scene {
        let mut scene = Scene::new();
        let locks = threads / 4;
        (0..locks).for_each(|at| {
            scene.lock(&format!("SHARD_{at}"));
        });
        for at in 0..threads {
            let thread = scene.thread("worker");
            let (low, high) = ((at * 7) % (locks / 2), locks / 2 + (at * 13) % (locks / 2));
            scene.model.threads[thread].overwritten = 100;
            if at < locks {
                scene.holds(thread, at);
                continue;
            }
            (0..4).for_each(|_| scene.nests(thread, &[low, high]));
            if at % 10 == 0 {
                scene.waits(thread, at % locks);
            }
        }
        scene
    }

    #[test]
    fn time_does_not_grow_with_the_square_of_the_threads() {
        let scene = server(40_000);
        let locations: Vec<&Location> = scene.locations.iter().collect();
        let view = View {
            now: &scene.model,
            before: None,
            locations: &locations,
            threshold_ns: u64::MAX,
            memo: Memo::default(),
        };
        let began = std::time::Instant::now();
        let found = run(&view);
        let took = began.elapsed();
        println!("{} findings in {took:?}", found.len());
        assert!(
            found.iter().all(|finding| finding.confidence == Confidence::Suspected),
            "nothing is wrong: {found:?}"
        );
        // The limit allows for an unoptimised build and other tests at the same time. Quadratic time would be hours.
        assert!(took.as_secs() < 20, "{took:?}");
    }

    #[test]
    fn the_most_certain_and_worst_findings_come_first() {
        let mut scene = Scene::new();
        for at in 0..2 {
            scene.thread("worker");
            scene.lock(&format!("LOCK_{at}"));
        }
        for at in 0..2 {
            scene.holds(at, at);
            scene.waits(at, 1 - at);
        }
        let (thread, lock) = (scene.thread("keeps"), scene.lock("KEPT"));
        scene.holds(thread, lock);
        let locations: Vec<&Location> = scene.locations.iter().collect();
        let view = View {
            now: &scene.model,
            before: None,
            locations: &locations,
            threshold_ns: 1,
            memo: Memo::default(),
        };
        let found: Vec<_> = run(&view).iter().map(|finding| (finding.confidence, finding.kind)).collect();
        assert_eq!(found, [(Confidence::Proven, Kind::Deadlock), (Confidence::Suspected, Kind::LongHold)]);
    }
}
