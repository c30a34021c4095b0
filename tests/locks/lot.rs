//! The crate that stands in for `parking_lot` has the interface of the real one, and does the same.

#![allow(unsafe_code, reason = "raw locks are unlocked")]

/// The real crate.
mod real {
    use ::parking_lot;

    include!("lot_api.rs");
    include!("lot_api_0_12.rs");
}

/// The crate that stands in for it.
mod recorded {
    use ::recorded_parking_lot as parking_lot;

    include!("lot_api.rs");
    include!("lot_api_0_12.rs");
}

#[test]
fn the_crate_that_stands_in_for_parking_lot_has_all_of_its_interface() {
    let said = recorded::everything();
    assert!(said.lines().count() > 40, "{said}");
    assert_eq!(said, real::everything());
}
