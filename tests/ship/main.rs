//! The artefacts as they are shipped: whatever cargo is asked to build, each has the same content.
//!
//! Cargo turns a feature on for all packages of one build that share a dependency. So the interposer or the reader
//! could differ between `cargo build -p X` and `cargo build --workspace`. These tests build in the main target
//! directory, where most is built already. The lists of exported symbols are blessed by `scripts/bless`.

#![allow(missing_docs, reason = "tests")]

mod calls;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use librip_test_kit::tool::{Built, COMPILER_WRAPPER, blessing, cargo, repository, tool};

/// Builds, and keeps other tests of this file from replacing what was built.
fn build(arguments: &[&str]) -> (Built, MutexGuard<'static, ()>) {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp");
    // The compiler with which most is built. What is looked at here does not depend on it: names of symbols.
    let wrapper = std::env::var(COMPILER_WRAPPER).ok();
    let environment: Vec<(&str, &str)> =
        wrapper.iter().map(|wrapper| (COMPILER_WRAPPER, wrapper.as_str())).collect();
    (cargo(&[&["build"], arguments].concat(), target, &environment), guard)
}

/// The whole workspace, with the features that its tests turn on too. It is built already: `scripts/test` builds it so,
/// and leaves out the benches.
const EVERYTHING: [&str; 5] = ["--workspace", "--lib", "--bins", "--tests", "--examples"];

/// The ways to build: everything at once, and with all features of librip. A feature only adds to the others.
fn ways() -> Vec<Vec<String>> {
    let packages = ["librip", "librip-preload", "librip-capi"];
    let packages = packages.iter().flat_map(|&package| ["--package".to_owned(), package.to_owned()]);
    let features: Vec<String> = features().iter().map(|feature| format!("librip/{feature}")).collect();
    let with_features = packages.chain(["--features".to_owned(), features.join(",")]);
    vec![EVERYTHING.map(str::to_owned).to_vec(), with_features.collect()]
}

/// The features of librip.
fn features() -> Vec<String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]);
    let metadata = tool(command.arg(repository().join("Cargo.toml")));
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    let mut packages = metadata["packages"].as_array().unwrap().iter();
    let librip = packages.find(|package| package["name"] == "librip").unwrap();
    let features = librip["features"].as_object().unwrap();
    assert!(features.contains_key("lock_api"), "{features:?}");
    features.keys().cloned().collect()
}

/// The symbols that a library exports, sorted.
fn exports(library: &Path) -> String {
    let listing = tool(Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(library));
    let mut names: Vec<&str> = listing.lines().filter_map(|line| line.split(' ').next()).collect();
    names.sort_unstable();
    names.join("\n") + "\n"
}

/// Builds one library alone and in all other ways, and compares what it exports with the list.
fn check_exports(package: &str, target: &str) {
    let list = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("ship").join(format!("{package}.symbols"));
    let (built, alone) = build(&["--package", package]);
    let exported = exports(&built.file(target, ".so"));
    if blessing() {
        std::fs::write(&list, &exported).unwrap();
    }
    let listed = std::fs::read_to_string(&list).unwrap();
    assert_eq!(exported, listed, "{package}, built alone, and {}", list.display());
    drop(alone);
    for way in ways() {
        let way: Vec<&str> = way.iter().map(String::as_str).collect();
        let (built, _guard) = build(&way);
        let exported = exports(&built.file(target, ".so"));
        assert_eq!(exported, listed, "{package}, built by cargo build {}", way.join(" "));
    }
}

#[test]
fn the_interposer_exports_the_listed_symbols_however_it_is_built() {
    check_exports("librip-preload", "rip_preload");
}

#[test]
fn the_c_library_exports_the_listed_symbols_however_it_is_built() {
    check_exports("librip-capi", "rip");
}

#[test]
fn the_reader_contains_no_recorder_however_it_is_built() {
    // Alone: it does not depend on librip, so nothing can bring the recorder along. To build it would be to build most
    // libraries again, with fewer features.
    let mut tree = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    tree.args([
        "tree",
        "--package",
        "read-rip",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]);
    let tree = tool(tree.current_dir(repository()));
    let has = |package: &str| tree.lines().any(|line| line.split(' ').next() == Some(package));
    assert!(has("librip-format") && !has("librip"), "{tree}");
    // With all features of all packages.
    let (built, _guard) = build(&EVERYTHING);
    let program = built.executable("read-rip");
    let symbols = tool(Command::new("nm").arg("--demangle").arg(&program));
    assert!(symbols.contains("read_rip::"), "nm lists the program's own symbols");
    for line in symbols.lines() {
        // Functions of the recorder, and the names that its assembly and its C interface define.
        let is_recorder = ["librip::", "librip_enter", "librip_tls", "librip_module", " rip_start"];
        assert!(!is_recorder.iter().any(|name| line.contains(name)), "{line}");
    }
    let sections = tool(Command::new("readelf").args(["--sections", "--wide"]).arg(&program));
    assert!(!sections.contains(".note.librip"), "no mark and no instance of the recorder:\n{sections}");
}

#[test]
fn what_the_reader_must_not_contain_is_found_in_the_interposer() {
    let (built, _guard) = build(&["--package", "librip-preload"]);
    let library = built.file("rip_preload", ".so");
    let sections = tool(Command::new("readelf").args(["--sections", "--wide"]).arg(&library));
    assert!(sections.contains(".note.librip"), "{sections}");
    let symbols = tool(Command::new("nm").arg("--demangle").arg(&library));
    for name in ["librip::", "librip_module", "librip_tls"] {
        assert!(symbols.contains(name), "{name}");
    }
}

/// The program's allocator and its handler of SIGABRT: stable Rust has no safe way to say that there is no memory. And
/// how its heap grows. And no safe library asks the kernel who changed a semaphore of System V last.
const UNSAFE: [&str; 6] = [
    "read-rip/src/no_memory.rs",
    "read-rip/src/heap.rs",
    "read-rip/src/app/run/start.rs",
    "read-rip/evidence/src/process/live/needs/system_v.rs",
    "read-rip/evidence/src/scheduler/perf.rs",
    "read-rip/symbols/src/debug_sections.rs",
];

#[test]
fn the_reader_and_the_format_have_no_unsafe_code() {
    let parts = ["case", "evidence", "export", "files", "model", "report", "ring", "symbols"];
    let parts = parts.map(|part| format!("read-rip/{part}/src"));
    for directory in ["read-rip/src", "librip/format/src"].into_iter().chain(parts.iter().map(String::as_str))
    {
        let mut pending = vec![repository().join(directory)];
        let mut files = 0;
        while let Some(path) = pending.pop() {
            if path.is_dir() {
                pending.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
                continue;
            }
            files += 1;
            if UNSAFE.iter().any(|file| path.ends_with(file)) {
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            for (index, line) in source.lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                let has_unsafe =
                    code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe");
                assert!(!has_unsafe, "{}:{}: {line}", path.display(), index + 1);
            }
        }
        assert!(files > 3, "{directory} has {files} files");
    }
}

/// The names in the parentheses after each sentence of the page, and the sources that may have them.
#[test]
fn each_sentence_of_the_security_page_names_tests_that_exist() {
    let page = std::fs::read_to_string(repository().join("read-rip/docs/security.md")).unwrap();
    let page = page.split("## What is not promised").next().unwrap();
    let mut sources = String::new();
    let mut files: Vec<String> = Vec::new();
    let mut pending = ["read-rip", "tests"].map(|path| repository().join(path)).to_vec();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path.file_stem().unwrap().to_string_lossy().into_owned());
            sources += &std::fs::read_to_string(path).unwrap();
        }
    }
    let mut named = 0;
    for sentence in page.split("\n* ").skip(1) {
        let sentence = sentence.split("\n\n").next().unwrap();
        let (_, tests) = sentence.rsplit_once('(').unwrap_or_else(|| panic!("no test: {sentence}"));
        for name in tests.split('`').skip(1).step_by(2).filter(|name| !name.contains('-')) {
            let last = name.rsplit("::").next().unwrap();
            let exists = sources.contains(&format!("fn {last}()")) || files.iter().any(|file| file == last);
            assert!(exists, "{name}");
            named += 1;
        }
    }
    assert!(named > 15, "{named}");
}
