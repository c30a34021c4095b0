//! Locks in optimised programs: separate locations, their lines without debug information, the recorder's share of a
//! critical section, and locks of libraries.

use std::process::Command;

use librip_test_kit::oracle::{Holding, Module};

use crate::{compile, run, tool};

#[test]
#[ignore = "compiles for long: scripts/test-builds"]
fn two_branches_that_acquire_a_lock_have_two_locations() {
    for flags in [&["-C", "opt-level=3"][..], &["-C", "opt-level=s"], &["-C", "opt-level=3", "-C", "lto=fat"]]
    {
        let ring = run(&compile("locks.rs", "locks-arms", flags), &[]).ring();
        let locations: Vec<u64> = ["first", "second"]
            .into_iter()
            .map(|name| {
                let slot = ring.slot_named(name);
                assert_eq!((slot.held.len(), slot.held[0].state), (1, Holding::Held), "{flags:?}");
                assert!(slot.held[0].call.is_some() && ring.is_call(slot.held[0].pc), "{flags:?}");
                slot.held[0].pc
            })
            .collect();
        assert_ne!(locations[0], locations[1], "{flags:?}");
    }
}

#[test]
fn locks_of_a_library_are_in_the_threads_one_table() {
    let plugin = compile("locks_plugin.rs", "liblocks_plugin.so", &["-O", "--crate-type", "cdylib"]);
    let ring = run(&compile("locks_host.rs", "locks-host", &["-O"]), &[plugin.to_str().unwrap()]).ring();
    assert_eq!(ring.slots.len(), 1, "two copies of librip, one slot");
    let held = &ring.slots[0].held;
    let shared: Vec<(Holding, bool)> = held.iter().map(|held| (held.state, held.shared)).collect();
    assert_eq!(shared, [(Holding::Held, false), (Holding::Held, false), (Holding::Held, true)]);
    let module = |index: usize| {
        let is_in = |module: &&Module| {
            (module.begin..module.end).contains(&held[index].pc.wrapping_sub(module.load_bias))
        };
        &ring.modules.iter().find(is_in).unwrap().path
    };
    assert!(module(0).ends_with("locks-host") && module(1).ends_with("liblocks_plugin.so"), "{held:?}");
    assert_eq!(ring.releases_unmatched, 0);
}

/// Follows the path without taken conditional jumps, from the instruction that acquires the lock to the program's own
/// work.
#[cfg(target_arch = "x86_64")]
#[test]
fn between_the_acquisition_of_a_free_lock_and_the_programs_work_one_word_is_stored() {
    let program = compile("locks.rs", "locks-golden", &["-C", "opt-level=3"]);
    let listing = tool(
        Command::new("objdump")
            .args(["-d", "-M", "intel", "--no-show-raw-insn", "--disassemble=one_pair"])
            .arg(program),
    );
    let instructions: Vec<(&str, &str)> = listing
        .lines()
        .filter_map(|line| line.trim().split_once(":\t"))
        .map(|(address, text)| (address, text.trim()))
        .collect();
    let mut at = instructions.iter().position(|(_, text)| text.starts_with("lock cmpxchg")).unwrap() + 1;
    let mut between = Vec::new();
    while !instructions[at].1.starts_with("prefetchnta") {
        let (_, text) = instructions[at];
        at = match text.strip_prefix("jmp ") {
            Some(target) => {
                let target = target.split_whitespace().next().unwrap();
                instructions.iter().position(|&(address, _)| address == target).unwrap()
            }
            None => at + 1,
        };
        between.push(text);
        assert!(between.len() < 100, "{}", between.join("\n"));
    }
    let is_store = |text: &&&str| {
        let (mnemonic, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let target = operands.split(',').next().unwrap_or_default();
        // Stores to the stack are spilled values, not records of librip.
        target.contains('[') && !target.contains("[rsp") && !matches!(mnemonic, "cmp" | "test" | "nop")
    };
    let stores: Vec<&&str> = between.iter().filter(is_store).collect();
    assert_eq!(stores.len(), 1, "{stores:?} in\n{}", between.join("\n"));
    assert!(!between.iter().any(|text| text.starts_with("call")), "{}", between.join("\n"));
}
