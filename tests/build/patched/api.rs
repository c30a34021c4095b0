//! The crate that stands in for `parking_lot` 0.13 has the interface of the real one, and does the same.

#![allow(missing_docs, reason = "a test")]

/// The real crate.
mod real {
    use ::parking_lot_0_13 as parking_lot;

    include!("../../locks/lot_api.rs");
    include!("../../locks/lot_api_0_13.rs");
}

/// The crate that stands in for it.
mod recorded {
    use ::recorded_parking_lot_0_13 as parking_lot;

    include!("../../locks/lot_api.rs");
    include!("../../locks/lot_api_0_13.rs");
}

fn main() {
    let said = recorded::everything();
    assert!(said.lines().count() > 40, "{said}");
    assert_eq!(said, real::everything());
}
