//! What the interposer may not cost: system calls of a wait, and memory of a library that is loaded again and again.

use std::path::PathBuf;

use crate::{compile, expect_same, plan, preload};

#[test]
#[cfg(target_arch = "x86_64")]
fn a_wait_makes_no_system_call_more_on_whatever_stack() {
    let program = compile("costs", &[]);
    let without = plan(&program, &["calls"], &[]).run();
    without.expect_success();
    if !without.stdout.contains("system call 202: ") {
        eprintln!("SKIPPED the system calls of a wait: ptrace does not count them here: {}", without.stdout);
        return;
    }
    assert!(without.stdout.ends_with("status 0\n"), "{without:?}");
    expect_same(&plan(&program, &["calls"], &[preload()]).run(), &without);
    expect_same(&plan(&program, &["calls"], &[preload()]).env("RIP_CLOCK", "all").run(), &without);
}

/// A library with another name, but the same contents.
fn plugin(name: &str) -> PathBuf {
    let library = compile("plugin", &["-shared", "-fPIC"]);
    let copy = library.with_file_name(format!("libplugin-{name}.so"));
    std::fs::copy(library, &copy).unwrap();
    copy
}

#[test]
fn a_library_that_is_loaded_and_unloaded_again_and_again_takes_no_memory() {
    let plugin = plugin("cycles");
    let arguments = ["cycles", plugin.to_str().unwrap(), "500"];
    let program = compile("costs", &[]);
    let without = plan(&program, &arguments, &[]).run();
    assert_eq!(without.stdout, "done\n", "{without:?}");
    let with = plan(&program, &arguments, &[preload()]).env("RIP_KEEP", "always").run();
    expect_same(&with, &without);
    let ring = with.ring();
    let of_plugin = ring.modules.iter().filter(|module| module.path.ends_with("libplugin-cycles.so")).count();
    assert_eq!(of_plugin, 1, "{} modules", ring.modules.len());
}
