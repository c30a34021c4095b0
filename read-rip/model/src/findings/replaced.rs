//! Which addresses were those of several locks, one after the other. It makes no findings.

use foldhash::{HashMap, HashSet};

use super::View;
use super::per_lock::PerLock;
use crate::locks::{LockId, LockName, Ownership, StepKind};

/// The locks at whose address there was more than one lock: a lock was destroyed there, or initialised again. Which of
/// them an event is about is not known there.
pub(super) fn replaced<'v>(view: &'v View<'_>) -> &'v HashSet<LockId> {
    view.memo.replaced.get_or_init(|| find(view))
}

/// Whether there may have been several locks at an address, and nothing would show it: the lock is in no static, has no
/// name, is of a kind whose end nobody records, and its beginning is not known.
pub(super) fn may_be_several(view: &View<'_>, lock: LockId) -> bool {
    let of = &view.now.locks[lock];
    let is_nameless = matches!(of.name, LockName::Location(_) | LockName::None);
    is_nameless && of.nature.ownership == Ownership::ByRule && !begun(view).contains(&lock)
}

/// The locks of which some thread recorded that it initialised them.
fn begun<'v>(view: &'v View<'_>) -> &'v HashSet<LockId> {
    view.memo.begun.get_or_init(|| {
        let is_begun = |kind| kind == StepKind::Initialised;
        let threads = view.now.threads.iter();
        let threads = threads.filter(|thread| thread.steps.locations().any(|(kind, _)| is_begun(kind)));
        let steps = threads.flat_map(|thread| &thread.steps);
        steps.filter(|step| is_begun(step.kind)).filter_map(|step| step.lock).collect()
    })
}

fn find(view: &View<'_>) -> HashSet<LockId> {
    let mut replaced = HashSet::default();
    let is_limit = |kind| matches!(kind, StepKind::Destroyed | StepKind::Initialised);
    let mut kinds = view.now.threads.iter().flat_map(|thread| thread.steps.locations());
    if !kinds.any(|(kind, _)| is_limit(kind)) {
        return replaced;
    }
    // When each lock was initialised.
    let mut initialised: HashMap<LockId, Option<u64>> = HashMap::default();
    // The locks that the thread has used.
    let mut used: PerLock<()> = PerLock::new(view.now.locks.len());
    for thread in &view.now.threads {
        used.forget();
        for step in &thread.steps {
            let Some(lock) = step.lock else { continue };
            let is_first = match step.kind {
                StepKind::Destroyed => false,
                StepKind::Initialised => {
                    initialised.insert(lock, step.time_ns).is_none() && used.get(lock).is_none()
                }
                _ => {
                    used.set(lock, ());
                    continue;
                }
            };
            if !is_first {
                replaced.insert(lock);
            }
        }
    }
    // What was done before the known beginning of a lock was done to another one.
    for thread in view.now.threads.iter().filter(|_| !initialised.is_empty()) {
        for step in thread.steps.iter().filter(|step| step.kind != StepKind::Initialised) {
            let done_ns = step.time_ns.or(thread.exited_ns);
            if let Some(lock) = step.lock
                && let Some(&Some(begun_ns)) = initialised.get(&lock)
                && done_ns.is_some_and(|done_ns| done_ns < begun_ns)
            {
                replaced.insert(lock);
            }
        }
    }
    replaced
}
