//! What a fork costs under the interposer.

use crate::{compile_as, plan, preload};

/// How many page faults a forked child takes.
fn faults(interposed: bool, arguments: &[&str]) -> u64 {
    // Without lazy binding, which faults in other places under the interposer.
    let program = compile_as("faults", "faults", &["-Wl,-z,now"]);
    let libraries = if interposed { vec![preload()] } else { Vec::new() };
    let remains = plan(&program, arguments, &libraries).run();
    remains.expect_success();
    remains.stdout.trim().parse().unwrap()
}

/// Each takes about a hundredth of the time of a fork. They are: the code, and a page of the recorder's private memory;
/// with a ring also the control block, and the header.
#[test]
fn a_forked_child_touches_few_pages_of_the_recorder() {
    let bare = faults(false, &[]);
    let [without, with] = [&[][..], &["ring"]].map(|arguments| faults(true, arguments));
    assert!(
        without <= bare + 2 && with <= bare + 4,
        "bare {bare}, without a ring {without}, with one {with}"
    );
}
