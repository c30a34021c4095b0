//! What a fork costs under the interposer.

use crate::{compile_as, plan, preload};

/// How many page faults a forked child takes: the least of several runs, because the addresses differ in each.
fn faults(interposed: bool, arguments: &[&str]) -> u64 {
    const RUNS: usize = 20;
    // Without lazy binding, which faults in other places under the interposer.
    let program = compile_as("faults", "faults", &["-Wl,-z,now"]);
    let libraries = if interposed { vec![preload()] } else { Vec::new() };
    let of_a_run = || -> u64 {
        let remains = plan(&program, arguments, &libraries).run();
        remains.expect_success();
        remains.stdout.trim().parse().unwrap()
    };
    (0..RUNS).map(|_| of_a_run()).min().unwrap()
}

/// Each takes about a hundredth of the time of a fork. With a ring they are: the code, a page of the recorder's private
/// memory, the control block, and the header.
#[test]
fn a_forked_child_touches_few_pages_of_the_recorder() {
    let bare = faults(false, &[]);
    let [without, with] = [&[][..], &["ring"]].map(|arguments| faults(true, arguments));
    assert!(
        without <= bare + 3 && with <= bare + 4,
        "bare {bare}, without a ring {without}, with one {with}"
    );
}
