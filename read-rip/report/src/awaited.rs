//! What a thread or task waits for, in words.

use read_rip_model::locks::Awaited;

use super::names::LockNames;

/// `for LOCK`, `on a condition variable, with LOCK`, `for the end of THREAD`: after "waits" or "waiting".
pub fn awaited_words(awaited: Awaited<'_>, names: &LockNames<'_>) -> String {
    let name = |lock| names.lock(&names.model.locks[lock]);
    match awaited {
        Awaited::Lock(wait) => format!("for {}", name(wait.lock)),
        Awaited::Condition { lock, .. } => format!("on a condition variable, with {}", name(lock)),
        Awaited::Unit { lock, .. } => format!("for {}", name(lock)),
        Awaited::End(join) => format!("for the end of {}", names.thread(join.joined)),
    }
}
