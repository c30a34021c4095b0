//! ELF and DWARF, as a ring leads to them: the input is the file of the recorded program.
#![no_main]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use libfuzzer_sys::fuzz_target;
use librip_test_kit::builder::{Module, Ring, Slot};
use read_rip_fuzz::{begin, file, read_rip};

const SOURCE: &str = "
    struct pair { int a, b; };
    static inline int inner(struct pair p) { return p.a * p.b + 1; }
    __attribute__((noinline)) int middle(int x) { struct pair p = {x, x + 1}; return inner(p) + inner(p); }
    int main(int argc, char **argv) { (void)argv; return middle(argc) + inner((struct pair){argc, 2}); }
";

/// Small programs with each kind of debug information that the compiler makes.
fn seeds() -> Vec<Vec<u8>> {
    let source = file("seed.c", SOURCE.as_bytes());
    let program = source.with_extension("out");
    let mut seeds = Vec::new();
    let variants: [&[&str]; 6] = [
        &["-g"],
        &["-gdwarf-4", "-no-pie"],
        &["-g", "-gz"],
        &["-g", "-shared", "-fPIC"],
        &["-s"],
        &["-gsplit-dwarf"],
    ];
    for flags in variants {
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-Wl,--build-id=none"]).args(flags).arg(&source).arg("-o").arg(&program);
        if compiler.status().is_ok_and(|status| status.success()) {
            seeds.push(fs::read(&program).expect("it was built"));
        }
    }
    assert!(!seeds.is_empty(), "cc made no program");
    seeds
}

/// A ring of a program that is this file, with marks all over its first pages.
fn ring_of(program: &Path) -> Ring {
    let metadata = fs::metadata(program).expect("it was written");
    let modified_ns = metadata.mtime() as u64 * 1_000_000_000 + metadata.mtime_nsec() as u64;
    let mut ring = Ring::new();
    ring.modules.push(Module {
        path: program.as_os_str().as_encoded_bytes().to_vec(),
        build_id: Vec::new(),
        begin: 0,
        file_len: metadata.len(),
        modified_ns,
        ..Module::program()
    });
    let addresses = (0x1000..0x1240).step_by(12).chain((0x40_1000..0x40_1200).step_by(24));
    ring.with_slots([Slot::thread("main", 1).marks(addresses)])
}

fuzz_target!(init: begin(seeds), |bytes: &[u8]| {
    let program = file("program", bytes);
    let ring = file("ring", &ring_of(&program).build().bytes);
    read_rip(&["-t", "-v"], &ring);
    read_rip(&["info"], &ring);
});
