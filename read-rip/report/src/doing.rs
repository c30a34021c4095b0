//! What threads do, in the words of findings and of the balance.

use read_rip_model::locks::Doing;

use crate::units::agree;

/// What a number of threads do.
pub(super) fn doing(what: Doing, count: usize) -> &'static str {
    match what {
        Doing::Runs => agree(count, "runs", "run"),
        Doing::Starves => agree(
            count,
            "is ready to run and gets hardly any processor",
            "are ready to run and get hardly any processor",
        ),
        Doing::WaitsForLock => agree(count, "waits for a lock", "wait for locks"),
        Doing::WaitsForThread => agree(count, "waits for another thread", "wait for other threads"),
        Doing::WaitsInside => agree(
            count,
            "waits for a signal or a message of another thread",
            "wait for signals or messages of other threads",
        ),
        Doing::WaitsOutside => agree(
            count,
            "waits for input, a time or a signal from outside",
            "wait for input, a time or a signal from outside",
        ),
        Doing::Kernel => agree(count, "waits for the kernel", "wait for the kernel"),
        Doing::Stopped => agree(count, "is stopped", "are stopped"),
        Doing::Unknown => agree(count, "is in an unknown state", "are in an unknown state"),
    }
}
