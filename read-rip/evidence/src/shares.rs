//! Work on many items, shared out to several processors.

use std::thread::{Builder, available_parallelism, scope};

use crate::patience::{Member, group};

/// More processors than this would wait for the locks of the target's process.
const PROCESSORS_MAX: usize = 8;
/// Fewer items than this are not worth a thread.
const SHARE_MIN: usize = 1000;

/// Works on equal shares of the items, each on a processor of its own. The results are in the order of the items.
pub(crate) fn in_shares<T: Sync, R: Send>(items: &[T], work: impl Fn(&[T]) -> Vec<R> + Sync) -> Vec<R> {
    let processors = available_parallelism().map_or(1, usize::from).min(PROCESSORS_MAX);
    let share = items.len().div_ceil(processors).max(SHARE_MIN);
    if items.len() <= share {
        return work(items);
    }
    let work = &work;
    let group = &group();
    scope(|scope| {
        let workers = items.chunks(share).map(|share| {
            let worker = Builder::new().spawn_scoped(scope, move || {
                let _member = group.clone().map(Member::of);
                work(share)
            });
            (share, worker)
        });
        let workers: Vec<_> = workers.collect();
        let mut results = Vec::with_capacity(items.len());
        for (share, worker) in workers {
            let done = worker.ok().and_then(|worker| worker.join().ok());
            // Where no thread can be started, this one works.
            results.extend(done.unwrap_or_else(|| work(share)));
        }
        results
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        for count in [0, 1, SHARE_MIN, SHARE_MIN + 1, 10 * SHARE_MIN + 7] {
            let items: Vec<usize> = (0..count).collect();
            let doubled = in_shares(&items, |items| items.iter().map(|item| 2 * item).collect());
            assert!(doubled.iter().copied().eq((0..count).map(|item| 2 * item)), "{count}");
        }
    }
}
