//! Which unlocks are fair by themselves: what the shared lock word asks of each version of `parking_lot_core`.

use parking_lot_core::UnparkResult;

/// Whether the queue says that this unlock, which nobody wants to be fair, should be so: since 0.10 it never does.
pub(crate) fn is_fair_by_itself(_: &UnparkResult) -> bool {
    false
}
