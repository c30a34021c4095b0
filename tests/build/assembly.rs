//! The instructions of a mark, as the disassembler shows them. Promise 1 of the design.
#![cfg(target_arch = "x86_64")]

use std::process::Command;

use crate::{compile, tool};

/// The hot path, after the function's prologue and before its return.
const GOLDEN: [&str; 12] =
    ["mov", "mov", "test", "je", "mov", "xadd", "mov", "and", "shl", "lea", "or", "mov"];

/// The mnemonics of `one_mark` up to its return, with their operands.
fn instructions(name: &str, flags: &[&str]) -> Vec<(String, String)> {
    let program = compile("marks.rs", name, flags);
    let listing = tool(
        Command::new("objdump")
            .args(["-d", "-M", "intel", "--no-show-raw-insn", "--disassemble=one_mark"])
            .arg(program),
    );
    let mut instructions = Vec::new();
    for line in listing.lines().filter(|line| line.starts_with(' ')) {
        let Some((_, text)) = line.split_once(":\t") else { continue };
        let (mnemonic, operands) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        instructions.push((mnemonic.to_owned(), operands.trim().to_owned()));
        if mnemonic == "ret" {
            return instructions;
        }
    }
    panic!("no function with a return in:\n{listing}");
}

fn check(instructions: &[(String, String)]) {
    let shown = instructions.iter().map(|(mnemonic, operands)| format!("{mnemonic} {operands}"));
    let shown = shown.collect::<Vec<_>>().join("\n");
    let mnemonics: Vec<&str> = instructions.iter().map(|(mnemonic, _)| mnemonic.as_str()).collect();
    for forbidden in ["call", "lock", "mfence", "sfence", "lfence", "syscall", "cmpxchg"] {
        assert!(!mnemonics.contains(&forbidden), "{shown}");
    }
    // Around the mark there may be what keeps the stack aligned for the cold path.
    let begin = mnemonics.iter().position(|&mnemonic| mnemonic == "mov").unwrap();
    let mark = &mnemonics[begin..begin + GOLDEN.len()];
    assert_eq!(mark, GOLDEN, "{shown}");
    assert!(GOLDEN.len() <= 14);
    let around = mnemonics.len() - GOLDEN.len();
    assert!(around <= 3, "push, pop and ret: {shown}");
}

#[test]
fn a_mark_is_twelve_instructions_without_call_lock_or_fence() {
    check(&instructions("marks-golden", &["-C", "opt-level=3"]));
}

#[test]
fn a_mark_is_the_same_instructions_in_a_shared_library_and_calls_nothing_for_its_thread_local() {
    check(&instructions("libmarks-golden.so", &["-C", "opt-level=3", "--crate-type", "cdylib"]));
}

#[test]
fn a_mark_is_the_same_instructions_with_fat_link_time_optimisation() {
    check(&instructions("marks-golden-lto", &["-C", "opt-level=3", "-C", "lto=fat"]));
}

#[test]
fn every_mark_is_volatile_and_a_barrier_for_memory_in_what_the_optimiser_is_told() {
    // No present optimisation moves a load across volatile assembly, so a run cannot show the difference.
    let listing = compile("marks.rs", "marks.ll", &["-C", "opt-level=3", "--emit=llvm-ir"]);
    let listing = std::fs::read_to_string(listing).unwrap();
    let marks: Vec<&str> = listing.lines().filter(|line| line.contains("xadd qword ptr")).collect();
    assert!(marks.len() > 15, "{} marks", marks.len());
    for mark in marks {
        assert!(mark.contains("asm sideeffect") && mark.contains("~{memory}"), "{mark}");
        let attributes = mark.rsplit('#').next().and_then(|rest| rest.split([',', ' ']).next()).unwrap();
        let definition = listing.lines().find(|line| line.starts_with(&format!("attributes #{attributes} ")));
        assert!(!definition.unwrap().contains("memory("), "{}", definition.unwrap());
    }
}
