//! The same marks through every kind of code generation and linking.

use std::collections::BTreeSet;
use std::path::Path;

use librip_test_kit::oracle::Ring;

use crate::{compile, run};

/// The labels of the marks that `marks all` passes, in order.
const LABELS: [&str; 20] = [
    "arm",
    "arm",
    "same position",
    "same position",
    "generic",
    "generic",
    "inlined",
    "inlined",
    "inlined",
    "closure",
    "closure",
    "closure",
    "boxed closure",
    "in a loop",
    "in a loop",
    "in a loop",
    "in a loop",
    "nested module",
    "case",
    "case",
];

/// Runs `marks all`, and checks what must hold for every build. Returns the ring.
fn check(program: &Path) -> Ring {
    let remains = run(program, &["all"]);
    let ring = remains.ring();
    assert_eq!(ring.metadata_refused, 0);
    assert_eq!(ring.slots.len(), 1);
    let slot = &ring.slots[0];
    // Every PC belongs to a site with the right label: `labels` panics if it belongs to none.
    assert_eq!(ring.labels(slot), [&LABELS[..], &["case"]].concat());
    let events = slot.events().events;
    let distinct = |label: &str| {
        let pcs = events.iter().map(|event| event.pc).filter(|&pc| ring.label(pc) == label);
        pcs.collect::<BTreeSet<u64>>().len()
    };
    assert_eq!(distinct("arm"), 2, "two arms of an `if`");
    assert_eq!(distinct("same position"), 2, "two marks on one line and column");
    assert_eq!(distinct("generic"), 2, "two instantiations");
    assert_eq!(distinct("inlined"), 3, "three callers");
    assert_eq!(distinct("case"), 3, "three arms of a `match`");
    // No two sites share a PC, and each site says where it is in the source.
    let pcs: BTreeSet<(usize, u64)> = ring.sites.iter().map(|site| (site.module, site.pc)).collect();
    assert_eq!(pcs.len(), ring.sites.len());
    let source = std::fs::read_to_string(crate::fixture("marks.rs")).unwrap();
    let lines: Vec<&str> = source.lines().collect();
    for event in &events {
        let site = ring.site_of(event.pc).unwrap();
        assert!(site.file.ends_with("marks.rs"), "{site:?}");
        let expected = if site.label == "same position" { "either!" } else { "rip_snap!" };
        let line = lines[site.line as usize - 1];
        assert!(line[site.column as usize - 1..].contains(expected), "{site:?}: {line}");
        assert_eq!(site.module_path == "marks::nested::deeper", site.label == "nested module");
    }
    let executable = ring.modules.iter().find(|module| module.is_executable).unwrap();
    assert_eq!(executable.path, program.to_str().unwrap());
    ring
}

#[test]
#[ignore = "compiles for long: scripts/test-builds"]
fn marks_are_exact_at_every_optimisation_level() {
    for level in ["0", "1", "2", "3", "s", "z"] {
        check(&compile("marks.rs", &format!("marks-O{level}"), &["-C", &format!("opt-level={level}")]));
    }
}

#[test]
fn marks_are_exact_with_many_codegen_units() {
    check(&compile("marks.rs", "marks-units", &["-O", "-C", "codegen-units=64"]));
}

#[test]
#[ignore = "compiles for long: scripts/test-builds"]
fn marks_are_exact_with_fat_and_thin_link_time_optimisation() {
    for lto in ["fat", "thin"] {
        let flags = ["-C", "opt-level=3", "-C", &format!("lto={lto}"), "-C", "codegen-units=1"];
        check(&compile("marks.rs", &format!("marks-lto-{lto}"), &flags));
    }
}

#[test]
fn marks_are_exact_in_a_stripped_program() {
    let program = compile("marks.rs", "marks-stripped", &["-O", "-C", "strip=symbols"]);
    let symbols = crate::tool(std::process::Command::new("nm").arg(&program));
    assert_eq!(symbols, "", "nothing is left to resolve with, but the ring explains itself");
    check(&program);
}

#[test]
fn marks_are_exact_with_panics_that_abort() {
    check(&compile("marks.rs", "marks-abort", &["-O", "-C", "panic=abort"]));
}

#[test]
fn marks_are_exact_in_a_program_that_is_not_position_independent() {
    let ring = check(&compile("marks.rs", "marks-static-model", &["-O", "-C", "relocation-model=static"]));
    let executable = ring.modules.iter().find(|module| module.is_executable).unwrap();
    assert_eq!(executable.load_bias, 0, "it is one");
}

#[test]
#[ignore = "compiles for long: scripts/test-builds"]
fn marks_are_exact_in_static_programs_position_independent_or_not() {
    for (name, model) in [("pie", "pie"), ("no-pie", "static")] {
        let flags = ["-O", "-C", "target-feature=+crt-static", "-C", &format!("relocation-model={model}")];
        let ring = check(&compile("marks.rs", &format!("marks-crt-static-{name}"), &flags));
        let executable = ring.modules.iter().find(|module| module.is_executable).unwrap();
        assert_eq!(executable.load_bias == 0, model == "static");
        let libraries: Vec<_> = ring.modules.iter().filter(|module| !module.is_executable).collect();
        assert!(libraries.iter().all(|module| !module.path.contains("libc")), "{libraries:?}");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn marks_are_exact_with_the_other_linker() {
    // Rust's default on x86-64 is lld. This build uses the default linker of `cc`, usually GNU ld.
    check(&compile("marks.rs", "marks-ld", &["-O", "-C", "linker-features=-lld"]));
}

#[test]
fn a_crate_that_forbids_unsafe_code_and_warnings_may_mark() {
    let program = compile("forbids_unsafe.rs", "forbids-unsafe", &["-O"]);
    let ring = run(&program, &[]).ring();
    assert_eq!(ring.labels(&ring.slots[0]), ["", "labelled", "a block's statement", "an arm's value"]);
}
