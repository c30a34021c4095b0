//! The instructions of marks and of a lock, compared with golden listings: they decide what a mark costs.
//!
//! The listings are in `golden/`, one directory for each architecture. `scripts/bless assembly` rewrites them; the diff
//! then shows what a change does to every mark. On x86-64 the listings of marks are from linked programs. The other
//! listings show what the compiler emits.

use std::path::{Path, PathBuf};
use std::process::Command;

use librip_test_kit::tool::{Built, blessing, cargo, tool};

use crate::{compile, directory, fixture, librip};

/// Compares a listing with its golden file, or rewrites that file when blessing.
fn check(architecture: &str, name: &str, listing: &str) {
    let golden = golden(architecture, name);
    if blessing() {
        std::fs::create_dir_all(golden.parent().unwrap()).unwrap();
        std::fs::write(&golden, listing).unwrap();
    }
    let expected =
        std::fs::read_to_string(&golden).unwrap_or_else(|error| panic!("{}: {error}", golden.display()));
    let same = expected == listing;
    assert!(same, "{name} is not as in {}; scripts/bless assembly\n{listing}\n{expected}", golden.display());
}

fn golden(architecture: &str, name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("build/golden").join(architecture);
    directory.join(name).with_extension("s")
}

/// The instructions of a function in a linked file, one a line. A jump names the number of its target
/// instruction.
#[cfg(target_arch = "x86_64")]
fn disassembled(file: &Path, function: &str) -> String {
    let mut objdump = Command::new("objdump");
    objdump.args(["-d", "-M", "intel", "--no-show-raw-insn", &format!("--disassemble={function}")]);
    let listing = tool(objdump.arg(file));
    let body = listing.split_once(&format!("<{function}>:\n")).expect("the function is there").1;
    let lines = body.lines().take_while(|line| !line.is_empty());
    let instructions: Vec<(&str, &str)> = lines.filter_map(|line| line.trim().split_once(":\t")).collect();
    let mut text = String::new();
    for (index, (_, instruction)) in instructions.iter().enumerate() {
        let number_of = |address: &str| {
            let found = instructions.iter().position(|(at, _)| *at == address);
            found.map_or("outside".to_owned(), |index| format!("instruction {}", index + 1))
        };
        text.push_str(&format!("{:2} {}\n", index + 1, without_addresses(instruction, number_of)));
    }
    text
}

/// An instruction of objdump without what a linker chooses: addresses, and the offsets of thread-locals.
#[cfg(target_arch = "x86_64")]
fn without_addresses(instruction: &str, number_of: impl Fn(&str) -> String) -> String {
    let (code, comment) = instruction.split_once('#').unwrap_or((instruction, ""));
    let (mnemonic, operands) = code.trim().split_once(char::is_whitespace).unwrap_or((code.trim(), ""));
    let operands = operands.trim();
    if let Some((address, _)) = operands.split_once(" <") {
        // je 19c96 <snap+0x36>
        return format!("{mnemonic} {}", number_of(address));
    }
    if let Some((before, _)) = operands.split_once("[rip+") {
        // lea rsi,[rip+0xffffffffffffffd4]        # 19c61 <snap+0x1>
        let address = comment.split_whitespace().next().unwrap_or_default();
        return format!("{mnemonic} {before}[{}]", number_of(address));
    }
    match operands.split_once(",0xffffffffffff") {
        // mov rax,0xfffffffffffffe08
        Some((register, _)) => format!("{mnemonic} {register},distance of librip_tls_1"),
        None => format!("{mnemonic} {operands}").trim().to_owned(),
    }
}

/// The instructions and labels of a function, as the compiler emits them. Labels get names in the order of their use.
fn emitted(assembly: &str, function: &str) -> String {
    let body = assembly.split_once(&format!("\n{function}:\n")).expect("the function is there").1;
    let body = body.split_once("\n.Lfunc_end").expect("the function has an end").0;
    let mut lines = Vec::new();
    let mut is_elsewhere = false;
    for line in body.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        is_elsewhere |= line.starts_with(".pushsection");
        let is_directive = line.starts_with('.') && !line.ends_with(':');
        let is_comment = line.is_empty() || line.starts_with('#');
        if !is_elsewhere && !is_directive && !is_comment {
            lines.push(without_hashes(&line.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
        is_elsewhere &= !line.starts_with(".popsection");
    }
    let labels: Vec<String> =
        lines.iter().filter_map(|line| line.strip_suffix(':')).map(str::to_owned).collect();
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_');
    let mut names: Vec<&str> = Vec::new();
    for line in lines.iter().filter(|line| !line.ends_with(':')) {
        let used = line.split(|c: char| !is_name(c)).filter(|word| labels.iter().any(|label| label == word));
        names.extend(used.filter(|word| !names.contains(word)).collect::<Vec<_>>());
    }
    let mut text = String::new();
    for line in &lines {
        let words = line.split_inclusive(|c: char| !is_name(c)).map(|word| {
            let name = word.trim_end_matches(|c: char| !is_name(c));
            match names.iter().position(|it| *it == name) {
                Some(index) => word.replacen(name, &format!("L{}", index + 1), 1),
                None => word.to_owned(),
            }
        });
        let line_of_names = words.collect::<String>();
        match line.strip_suffix(':') {
            Some(label) if !names.contains(&label) => {}
            Some(_) => text.push_str(&format!("{line_of_names}\n")),
            None => text.push_str(&format!("    {line_of_names}\n")),
        }
    }
    text
}

/// Removes from names what differs between two builds: `17h0123456789abcdefE`, `.Lanon.0123...`.
fn without_hashes(line: &str) -> String {
    let mut words = Vec::new();
    for word in line.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_') {
        let (name, rest) = match word.find(|c: char| !c.is_alphanumeric() && c != '_') {
            Some(at) => word.split_at(at),
            None => (word, ""),
        };
        let is_hash = name.len() >= 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let name = match name.len().checked_sub(20).map(|at| name.split_at(at)) {
            _ if is_hash => "_",
            Some((path, hash)) if hash.starts_with("17h") && hash.ends_with('E') => path,
            _ => name,
        };
        words.push(format!("{name}{rest}"));
    }
    words.concat()
}

/// Compiles `listing.rs` to assembly.
fn assembly(librip: &Built, name: &str, flags: &[&str]) -> String {
    let out = directory().join(name);
    let mut command = librip.rustc(&["librip"]);
    command.arg(fixture("listing.rs")).args(["-C", "opt-level=3", "-C", "codegen-units=1", "--emit=asm"]);
    tool(command.args(flags).arg("-o").arg(&out));
    std::fs::read_to_string(out).unwrap()
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_mark_is_the_instructions_of_the_golden_listing() {
    let program = compile("listing.rs", "listing", &["-C", "opt-level=3"]);
    for (function, instructions) in [("snap", 15), ("progress", 17)] {
        let listing = disassembled(&program, function);
        check("x86_64", function, &listing);
        for forbidden in ["call", "lock", "mfence", "sfence", "lfence", "syscall", "cmpxchg"] {
            assert!(!listing.contains(&format!(" {forbidden}")), "{listing}");
        }
        let body =
            listing.lines().filter(|line| !["push", "pop", "ret"].iter().any(|around| line.contains(around)));
        assert_eq!(body.count(), instructions, "what the guide says of a mark\n{listing}");
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
#[ignore = "compiles for long: scripts/test-builds"]
fn a_mark_is_the_same_instructions_with_fat_link_time_optimisation() {
    let program = compile("listing.rs", "listing-lto", &["-C", "opt-level=3", "-C", "lto=fat"]);
    assert_eq!(disassembled(&program, "snap"), std::fs::read_to_string(golden("x86_64", "snap")).unwrap());
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_mark_in_a_shared_library_finds_its_thread_local_in_another_way_and_without_a_call() {
    let library = compile("listing.rs", "liblisting.so", &["-C", "opt-level=3", "--crate-type", "cdylib"]);
    check("x86_64", "snap-library", &disassembled(&library, "snap"));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_lock_that_is_free_is_acquired_and_released_by_the_instructions_of_the_golden_listing() {
    // Around the marks are the standard library's lock and the compiler's choices.
    let version =
        tool(Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("--version"));
    let listing =
        emitted(&assembly(librip(), "listing.s", &["-C", "llvm-args=--x86-asm-syntax=intel"]), "lock");
    let golden = std::fs::read_to_string(golden("x86_64", "lock")).unwrap_or_default();
    if !blessing() && !golden.starts_with(&format!("# {version}")) {
        let of = golden.lines().next().unwrap_or_default();
        eprintln!("SKIPPED the listing of a lock: it is of another compiler ({of})");
        return;
    }
    check("x86_64", "lock", &format!("# {version}{listing}"));
}

#[test]
fn a_mark_on_aarch64_is_the_instructions_of_the_golden_listing() {
    const TARGET: &str = "aarch64-unknown-linux-gnu";
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let libraries = tool(rustc.args(["--print", "target-libdir", "--target", TARGET]));
    if !Path::new(libraries.trim()).is_dir() {
        eprintln!(
            "SKIPPED the listings of aarch64: its standard library is missing; rustup target add {TARGET}"
        );
        return;
    }
    // The mark is in the fixture, so that only the fixture has to be optimised.
    let arguments = ["build", "--package", "librip", "--target", TARGET];
    let librip = cargo(&arguments, &directory().join("librip"), &[]);
    let host_libraries = directory().join("librip/debug/deps");
    let host_libraries = format!("dependency={}", host_libraries.display());
    let flags = ["--target", TARGET, "--crate-type", "lib", "-L", &host_libraries];
    let assembly = assembly(&librip, "listing-aarch64.s", &flags);
    for function in ["snap", "progress"] {
        check("aarch64", function, &emitted(&assembly, function));
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn every_mark_is_declared_volatile_and_a_memory_barrier_to_the_optimiser() {
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
