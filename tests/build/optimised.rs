//! Properties that only optimised code can break.

use std::path::PathBuf;
use std::sync::OnceLock;

use librip_test_kit::victim::{Plan, expect_same};

use crate::{compile, run};

fn program() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| compile("marks.rs", "marks-optimised", &["-C", "opt-level=3"]))
}

#[test]
fn the_optimiser_does_not_move_a_load_before_a_mark() {
    let remains = Plan::new(program(), &["fault"]).run();
    assert_eq!(remains.signal(), Some(libc::SIGSEGV), "{remains:?}");
    let ring = remains.ring();
    assert_eq!(ring.slots.len(), 1, "the mark was made");
    assert_eq!(ring.labels(&ring.slots[0]), ["before the fault"]);
}

#[test]
fn a_first_mark_within_floating_point_code_does_not_change_its_result() {
    let with = run(program(), &["floats"]);
    let without = Plan::new(program(), &["floats"]).env("RIP_RING", "off").run();
    expect_same(&with, &without);
    let ring = with.ring();
    assert!(with.stdout.len() > 100);
    let counts: Vec<(u64, &str)> = ring.slots.iter().map(|slot| (slot.count, ring.labels(slot)[0])).collect();
    assert_eq!(counts[0], (100, "amid scalars"));
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        assert_eq!(counts[1], (100, "amid vectors"));
    }
}

#[test]
fn a_first_mark_in_a_signal_handler_fits_on_an_alternate_stack_of_8_kib() {
    // 8 KiB is SIGSTKSZ, and the size that Rust's runtime uses. On a processor with AVX-512, the signal frame takes
    // about 3.5 KiB, and a first mark as much again to save the same registers.
    let ring = run(program(), &["small_stack"]).ring();
    assert_eq!(ring.labels(&ring.slots[0]), ["on a small stack"]);
}
