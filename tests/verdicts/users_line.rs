//! A lock inside a library: what is said of it has the line of the user, and the function that the user has called.

use super::ask::{printed, start};
use super::verdicts::{finds, finds_nothing};

/// The line of `tests/src/bin/scenario/library.rs` with this text.
fn line_of(text: &str) -> usize {
    let source = include_str!("../src/bin/scenario/library.rs");
    1 + source.lines().position(|line| line.contains(text)).unwrap()
}

/// Where the user waits in the library.
fn users_place() -> String {
    let function = "scenario::library::shelf::Shelf::put of shelf";
    format!("{function}, called from scenario::library::stock library.rs:{}", line_of("SHELF.put"))
}

#[test]
fn finds_a_deadlock_through_a_lock_of_a_library() {
    finds("cycle-through-a-library", &["proven deadlock"], |answer| {
        assert_eq!(answer.threads(0), ["counter", "stocker"]);
    });
}

#[test]
fn a_library_that_is_always_called_with_the_same_lock_is_no_finding() {
    finds_nothing("library-in-one-order");
}

#[test]
fn a_wait_in_a_library_is_at_the_line_of_the_user_also_in_a_copy() {
    let victim = start("cycle-through-a-library");
    let ring = victim.ring_path();
    let place = format!("stocker[{}] waits for ", victim_thread(&printed(&["-t"], &ring), "stocker"));
    let said = printed(&["check", "--no-source"], &ring);
    let line = said.lines().find(|line| line.contains(&place)).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains(&users_place()), "{line}");
    let copy = librip_test_kit::victim::tempdir();
    let copy = copy.path().join("copy.gz");
    printed(&["save", "-o", copy.to_str().unwrap()], &ring);
    let said = printed(&["check", "--no-source"], &copy);
    assert!(said.contains(&users_place()), "{said}");
    let locks = printed(&["locks"], &ring);
    assert!(locks.contains(&format!("waits at {}", users_place())), "{locks}");
    // The kernel knows a futex, and the record the lock around it.
    assert!(locks.contains(&format!("\n  {place}")), "{locks}");
    assert!(!locks.contains("has been waiting for"), "{locks}");
}

#[test]
fn the_record_has_the_line_of_the_user_after_a_kill() {
    let victim = start("cycle-through-a-library");
    let remains = victim.killed();
    let ring = remains.ring_path();
    let said = printed(&["check", "--no-source"], &ring);
    assert!(said.contains("dead") && said.contains(&format!("at {}\n", users_place())), "{said}");
    // The lines of threads and the view have it too.
    let line = format!("library.rs:{}", line_of("SHELF.put"));
    let threads = printed(&["-t"], &ring);
    assert!(threads.contains(&format!("{line}(waits)")), "{threads}");
    let view = printed(&[], &ring);
    assert!(view.contains("scenario::library::stock : 1 thread") && view.contains(&line), "{view}");
}

/// The id of a thread, by its line.
fn victim_thread(lines: &str, name: &str) -> String {
    let line = lines.lines().find_map(|line| line.strip_prefix(&format!("{name}[")));
    line.unwrap_or_else(|| panic!("{lines}")).split(']').next().unwrap().to_owned()
}
