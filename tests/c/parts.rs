//! Rust and C in one process: one ring, and one slot per thread.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use librip_test_kit::oracle::{Ring, State};
use librip_test_kit::tool::{Built, librip};

use crate::{GCC, build, directory, fixture, main_slot, package, run, tool};

/// rustc with librip, and with `rip`, the functions that librip.h declares. Both are built on the first call.
pub(crate) fn rustc() -> Command {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| librip(Path::new(env!("CARGO_TARGET_TMPDIR")))).rustc(&["librip", "rip"])
}

/// A Rust program with a part in C: two fixtures of one name.
pub(crate) fn with_c(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let object = directory().join(format!("{name}.o"));
    let mut command = Command::new("gcc");
    command.args(["-O2", "-fPIE", "-c"]).arg(fixture(&format!("{source}.c"))).args(package("Cflags"));
    tool(command.arg("-o").arg(&object));
    let out = directory().join(name);
    let mut command = rustc();
    command.arg(fixture(&format!("{source}.rs"))).args(flags).arg("-o").arg(&out);
    tool(command.arg("-C").arg(format!("link-arg={}", object.display())));
    out
}

fn check_both(ring: &Ring) {
    assert_eq!(ring.metadata_refused, 0);
    assert_eq!(ring.slots.len(), 2, "one slot a thread");
    assert_eq!(ring.labels(main_slot(ring)), ["rust", "c", "rust"]);
    let thread = ring.slot_named("thread");
    assert_eq!((thread.state, ring.labels(thread)), (State::Exited, vec!["c", "rust"]));
    assert!(ring.modules.iter().all(|module| !module.path.contains("librip.so")), "{:?}", ring.modules);
    let files: Vec<&str> =
        thread.events().events.iter().map(|event| &ring.site_of(event.pc).unwrap().file[..]).collect();
    assert!(files[0].ends_with("both.c") && files[1].ends_with("both.rs"), "{files:?}");
}

#[test]
#[ignore = "compiles for long: scripts/test-builds"]
fn a_rust_program_with_parts_in_c_has_one_ring_and_one_block_a_thread() {
    let variants: [(&str, &[&str]); 4] = [
        ("both-O0", &[]),
        ("both-O3", &["-C", "opt-level=3"]),
        ("both-lto", &["-C", "opt-level=3", "-C", "lto=fat", "-C", "codegen-units=1"]),
        ("both-ld", &["-O", "-C", "linker-features=-lld"]),
    ];
    for (name, flags) in variants {
        if name == "both-ld" && cfg!(not(target_arch = "x86_64")) {
            continue;
        }
        let program = with_c("both", name, flags);
        for who in ["rust", "c"] {
            let remains = run(&program, &[who]);
            assert_eq!(remains.files(), ["ring"], "one ring");
            check_both(&remains.ring());
        }
    }
}

/// A library with marks in Rust.
fn plugin_in_rust() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let plugin = directory().join("libplugin-rust.so");
        let source = fixture("../../build/fixtures/plugin.rs");
        tool(rustc().args(["-O", "--crate-type", "cdylib"]).arg(source).arg("-o").arg(&plugin));
        plugin
    })
}

#[test]
fn a_program_in_c_that_loads_a_rust_library_with_marks_has_one_ring() {
    let plugin = plugin_in_rust();
    let program = build(GCC, &["process.c"], "process-loads-rust", &["-O2"]);
    let remains = run(&program, &["load", plugin.to_str().unwrap()]);
    assert_eq!((&remains.stdout[..], &remains.files()[..]), ("stays\n", &["ring".into()][..]));
    let ring = remains.ring();
    assert_eq!(ring.labels(main_slot(&ring)), ["before", "plugin", "between", "plugin"]);
    assert_eq!(ring.slots.len(), 2, "one slot a thread");
}

#[test]
fn a_rust_program_that_loads_a_library_in_c_has_one_ring() {
    // The library is linked with librip.so, which is a second copy of the recorder in this process.
    let host = directory().join("loads");
    tool(rustc().args(["-O", "--crate-name", "loads"]).arg(fixture("loads.rs")).arg("-o").arg(&host));
    let plugin = build(GCC, &["plugin.c"], "libplugin-loads.so", &["-O2", "-fPIC", "-shared"]);
    for when in ["before", "after"] {
        let remains = run(&host, &[plugin.to_str().unwrap(), when]);
        assert_eq!(remains.files(), ["ring"], "{when}");
        let ring = remains.ring();
        assert_eq!((ring.slots.len(), ring.metadata_refused), (2, 0), "one slot a thread");
        assert_eq!(ring.labels(main_slot(&ring)), ["rust", "plugin", "rust"], "{when}");
        let thread = ring.slot_named("thread");
        assert_eq!((thread.state, ring.labels(thread)), (State::Exited, vec!["plugin", "rust"]), "{when}");
    }
}

#[test]
fn a_library_unloaded_while_the_ring_is_made_does_no_harm_and_records_when_loaded_again() {
    let in_c = build(GCC, &["plugin.c"], "libplugin-unloads.so", &["-O2", "-fPIC", "-shared"]);
    let program = build(GCC, &["unloads.c"], "unloads", &["-O2"]);
    for plugin in [&in_c, plugin_in_rust()] {
        for what in ["goes", "moves"] {
            // After every listing of the modules. The last run unloads nothing.
            for look in 1.. {
                let remains = run(&program, &[plugin.to_str().unwrap(), what, &look.to_string()]);
                let ring = remains.ring();
                assert_eq!(ring.labels(main_slot(&ring)), ["plugin", "main"], "{plugin:?} {what} {look}");
                if remains.stdout == "done\n" {
                    assert!(look > 3);
                    break;
                }
            }
        }
    }
}

#[test]
fn a_library_that_is_loaded_during_the_start_may_start_the_recorder_too() {
    let plugin = build(GCC, &["meets.c"], "libplugin-meets.so", &["-O2", "-fPIC", "-shared", "-DPLUGIN"]);
    let program = build(GCC, &["meets.c"], "meets", &["-O2", "-rdynamic"]);
    let ring = run(&program, &[plugin.to_str().unwrap()]).ring();
    assert_eq!(ring.labels(main_slot(&ring)), ["main"]);
}
