//! What the reader's tests share: the test kit, and the program under test.
//!
//! Nothing here uses `librip_format`: a mistake there must not be repeated by the tests.

#![allow(dead_code, unused_imports, reason = "each test file uses its own part")]

pub(crate) mod compiled;
pub(crate) mod exports;
pub(crate) mod fixture;
pub(crate) mod locks;
pub(crate) mod nasty;
pub(crate) mod run;
pub(crate) mod sleepers;
pub(crate) mod unprepared;

pub(crate) use librip_test_kit::{Random, gzip, legacy, map, setting};

/// Rings made by hand, and the names of the format that tests use.
pub(crate) mod synth {
    pub(crate) use librip_test_kit::builder::*;
    pub(crate) use librip_test_kit::format::header_at::FILE_DEVICE;
    pub(crate) use librip_test_kit::format::pack as word;
    pub(crate) use librip_test_kit::format::region::{
        LOCK_NAMES as NAMES, MODULES, POLLS, SITES, SLOTS, TEXTS,
    };
    pub(crate) use librip_test_kit::format::slot_state::{CLAIMING, EXITED, LIVE};
}
