//! Which unlocks are fair by themselves. Another crate, for another version of `parking_lot_core`, has its own answer.

use parking_lot_core::UnparkResult;

/// Whether the queue says that this unlock, which nobody wants to be fair, should be so: it says it now and then.
pub(crate) fn is_fair_by_itself(result: &UnparkResult) -> bool {
    result.be_fair
}
