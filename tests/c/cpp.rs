//! `rip.hpp`: locks with the interface of std's, whose record names the user's line however they were compiled.

use std::path::Path;
use std::process::Command;

use librip_test_kit::tool::tool;
use librip_test_kit::victim::Plan;

use crate::examples::{answer, expect};
use crate::{CLANGPP, Compiler, GPP, build, directory, installed, line_of, package, run};

const SOURCE: &str = "cpp_locks.cc";
/// The locks of the circle, and the functions that hold them and wait for them.
const CIRCLE: [(&str, &str, &str); 5] = [
    ("plain", "first", "fifth"),
    ("recursive", "second", "first"),
    ("shared", "third", "second"),
    ("timed", "fourth", "third"),
    ("wrapper", "fifth", "fourth"),
];

/// The number of the line with this comment that a compiler sees for this standard.
fn line(comment: &str, standard: &str) -> u32 {
    let first = line_of(SOURCE, comment);
    let source = std::fs::read_to_string(crate::fixture(SOURCE)).unwrap();
    let second = source.lines().skip(first as usize).position(|line| line.contains(comment));
    // Of two lines, the first is for the later standards.
    let since = if comment.starts_with("shared") { "c++14" } else { "c++17" };
    match second {
        Some(second) if standard < since => first + 1 + second as u32,
        _ => first,
    }
}

fn expect_circle(said: &str, standard: &str, why: &str, has_program: bool) {
    for (lock, holder, waiter) in CIRCLE {
        let waits = line(&format!("{lock}: waits"), standard);
        let held = line(&format!("{lock}: held"), standard);
        let (waiting, holding) = (format!(" waits for {lock} "), format!(" holds {lock}, "));
        for (what, function, line) in [(waiting, waiter, waits), (holding, holder, held)] {
            let found = said.lines().find(|said| said.contains(&what)).unwrap_or_default();
            // Without debug information, the name has the parameters: `first()`. Without the program, there is none.
            let at = [format!("{function} {SOURCE}:{line}"), format!("{function}() {SOURCE}:{line}")];
            let alone = format!("at {SOURCE}:{line}");
            let is_told = at.iter().any(|at| found.contains(at)) || !has_program && found.contains(&alone);
            assert!(is_told, "{why}: no {at:?} in\n{said}");
        }
    }
}

fn stuck(program: &Path) -> librip_test_kit::victim::Victim {
    let mut victim = Plan::new(program, &[]).start();
    victim.until("stuck");
    victim
}

/// A live process, its ring after its death, and a copy of that without the program.
fn check_circle(compiler: Compiler, standard: &str, flags: &[&str]) {
    let why = format!("{} -std={standard} {}", compiler.name, flags.join(" "));
    let name = why.replace(' ', "");
    let standard_flag = format!("-std={standard}");
    let program = build(compiler, &[SOURCE], &name, &[&[&standard_flag[..]], flags].concat());
    let victim = stuck(&program);
    let said = answer(&["check"], &victim.ring_path(), 1);
    expect(&said, &["proven deadlock: 5 threads wait for one another"]);
    expect_circle(&said, standard, &why, true);
    let remains = victim.killed();
    let said = answer(&["check"], &remains.ring_path(), 1);
    expect(&said, &["proven deadlock: 5 threads wait for one another"]);
    expect_circle(&said, standard, &why, true);
    std::fs::remove_file(&program).unwrap();
    let said = answer(&["check"], &remains.ring_path(), 1);
    expect_circle(&said, standard, &why, false);
}

#[test]
fn deadlocks_of_cpp_locks_are_proven_at_the_lines_of_the_user() {
    check_circle(GPP, "c++11", &["-O0", "-g"]);
    check_circle(GPP, "c++17", &["-O2"]);
}

#[test]
#[ignore = "compiles for long: scripts/test-builds"]
fn deadlocks_of_cpp_locks_are_proven_in_all_standards_and_levels() {
    for compiler in installed(&[GPP, CLANGPP]) {
        for standard in compiler.standards {
            for level in ["-O0", "-O1", "-O2", "-O3"] {
                for more in [&["-g"][..], &[], &["-fno-exceptions", "-fno-rtti"], &["-fPIC", "-fno-plt"]] {
                    check_circle(compiler, standard, &[&[level][..], more].concat());
                }
            }
        }
    }
}

fn healthy(compiler: Compiler, flags: &[&str]) {
    let program = build(compiler, &[SOURCE], &format!("cpp-healthy-{}", compiler.name), flags);
    let mut victim = Plan::new(&program, &["healthy"]).start();
    victim.until("stuck");
    let live = answer(&["check"], &victim.ring_path(), 0);
    expect(&live, &["no findings"]);
    let remains = victim.killed();
    // All threads wait, and the record does not say for whom.
    let said = answer(&["check"], &remains.ring_path(), 3);
    expect(&said, &["not judged: all recorded threads wait"]);
}

#[test]
fn healthy_cpp_locks_have_no_findings() {
    healthy(GPP, &["-O1"]);
}

#[test]
#[ignore = "compiles for long: scripts/test-builds"]
fn cpp_locks_compile_without_a_warning_and_behave_as_those_of_std() {
    let all = ["-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Wold-style-cast", "-Wundef"];
    for compiler in installed(&[GPP, CLANGPP]) {
        for standard in compiler.standards {
            for disabled in [&["-DRIP_DISABLE"][..], &[]] {
                for level in ["-O0", "-O2"] {
                    let standard = format!("-std={standard}");
                    let flags = [&[&standard[..], level], &all[..], disabled].concat();
                    let program = build(
                        compiler,
                        &["cpp_interface.cc"],
                        &format!("interface-{}", compiler.name),
                        &flags,
                    );
                    // With and without a ring.
                    if disabled.is_empty() {
                        run(&program, &["rip_start"]);
                    }
                    let plain = Command::new(&program).status().unwrap();
                    assert_eq!(plain.code(), Some(3), "{flags:?}");
                }
            }
        }
        healthy(compiler, &["-O0"]);
        healthy(compiler, &["-O3", "-flto"]);
    }
}

#[test]
fn cpp_locks_have_the_interface_of_those_of_std() {
    let flags = ["-std=c++20", "-O0", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wold-style-cast"];
    run(&build(GPP, &["cpp_interface.cc"], "interface", &flags), &["rip_start"]);
}

#[test]
fn cpp_locks_need_no_library_if_nothing_is_recorded() {
    let out = directory().join("cpp-disabled");
    let mut command = Command::new("g++");
    command.args(["-std=c++17", "-O1", "-DRIP_DISABLE", "-Wall", "-Wextra", "-Werror"]);
    command.arg(crate::fixture("cpp_interface.cc")).args(package("Cflags")).arg("-pthread").arg("-o");
    tool(command.arg(&out));
    assert_eq!(Command::new(out).status().unwrap().code(), Some(3));
}
