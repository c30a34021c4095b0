//! The `resolve` layer against real files: fixtures are compiled here, by `rustc`, `gcc` and `g++`, and taken apart by
//! binutils.
//!
//! Expected lines are those with a marker comment in the fixture's source, expected addresses those of symbols as
//! `object` reads them. Not tested here: rings, and processes in containers.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use object::{Object, ObjectSection, ObjectSymbol};
use read_rip::ring::Module;
use read_rip::symbols::{Frame, ModuleProblem, Options, Problem, Resolver};
use tempfile::TempDir;

const C_SOURCE: &str = r#"
volatile int counter;
int shared_lock[4];
static inline __attribute__((always_inline)) void innermost(int n) {
    __asm__ volatile(".globl c_mark\n c_mark: nop"); /* MARK innermost */
    counter += n;
}
static inline __attribute__((always_inline)) void middle(int n) {
    innermost(n + 1); /* MARK middle */
}
__attribute__((noipa)) int outermost(int n) {
    middle(n); /* MARK outermost */
    return counter;
}
int entry(void) { return outermost(1); }
"#;

const C_MAIN: &str = "int main(void) { return entry() ? 0 : 1; }\n";

const CPP_SOURCE: &str = r#"
namespace cache {
struct Table {
    int lookup(int key, const char *name);
};
volatile int counter;
__attribute__((noipa)) int Table::lookup(int key, const char *name) {
    __asm__ volatile(".globl cpp_mark\n cpp_mark: nop"); // MARK lookup
    return counter += key + *name;
}
}
int main() { cache::Table table; return table.lookup(1, "a"); }
"#;

const RUST_SOURCE: &str = r#"
#![allow(named_asm_labels)]
mod cache {
    pub static CACHE_LOCK: std::sync::Mutex<u32> = std::sync::Mutex::new(7);
    pub struct Table(pub u32);
    impl Table {
        #[inline(never)]
        pub fn lookup(&self, key: u32) -> u32 {
            unsafe { core::arch::asm!(".globl rust_mark", "rust_mark: nop") }; // MARK lookup
            *CACHE_LOCK.lock().unwrap() + key + self.0
        }
    }
}
fn main() {
    std::process::exit((cache::Table(1).lookup(std::process::id()) == 0) as i32);
}
"#;

/// A directory with a source and what is made of it.
struct Fixture {
    directory: TempDir,
    source: String,
}

impl Fixture {
    fn new(file: &str, source: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(file), source).unwrap();
        Self { directory, source: source.to_owned() }
    }

    /// `fixture.c` compiled to `prog`, with these flags instead of `-g`.
    fn c(flags: &str) -> Self {
        let fixture = Self::new("fixture.c", &format!("{C_SOURCE}{C_MAIN}"));
        fixture.run(&format!("gcc -O1 -Wl,--build-id {flags} fixture.c -o prog"));
        fixture
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    /// Runs a command (words are separated by spaces) in the directory.
    fn run(&self, command: &str) {
        let words: Vec<&str> = command.split_whitespace().collect();
        let mut child = Command::new(words[0]);
        let output = child.args(&words[1..]).current_dir(self.directory.path()).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn line(&self, mark: &str) -> u32 {
        let wanted = format!("MARK {mark}");
        let position = self.source.lines().position(|line| line.contains(&wanted)).expect(mark);
        position as u32 + 1
    }

    /// The module as a recorder would have written it down for this file.
    fn module(&self, file: &str) -> Module {
        module_of(&self.path(file))
    }

    fn resolver(&self, file: &str) -> Resolver {
        Resolver::new(&[self.module(file)], bare())
    }

    /// The three frames at `c_mark`.
    fn check_c_frames(&self, frames: &[Frame]) {
        let functions: Vec<_> = frames.iter().map(|frame| frame.function.as_deref().unwrap_or("?")).collect();
        assert_eq!(functions, ["innermost", "middle", "outermost"]);
        let lines: Vec<_> = frames.iter().map(|frame| frame.line.unwrap_or(0)).collect();
        assert_eq!(lines, functions.iter().map(|mark| self.line(mark)).collect::<Vec<_>>());
        let inlined: Vec<_> = frames.iter().map(|frame| frame.is_inlined).collect();
        assert_eq!(inlined, [true, true, false]);
        for frame in frames {
            assert_eq!(frame.file.as_deref().map(Path::new), Some(&*self.path("fixture.c")));
        }
    }
}

fn module_of(path: &Path) -> Module {
    let data = fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let metadata = fs::metadata(path).unwrap();
    Module {
        path: path.to_owned(),
        build_id: file.build_id().unwrap().unwrap_or_default().to_vec(),
        is_executable: true,
        file_len_bytes: metadata.size(),
        modified_ns: metadata.mtime() as u64 * 1_000_000_000 + metadata.mtime_nsec() as u64,
        ..Module::default()
    }
}

/// Module-relative address and length of the symbol whose name ends so.
fn symbol(path: &Path, name: &str) -> (u64, u64) {
    let data = fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let found = file.symbols().find(|symbol| symbol.name().is_ok_and(|found| found.contains(name)));
    let found = found.unwrap_or_else(|| panic!("no symbol {name}"));
    (found.address(), found.size())
}

fn address(path: &Path, name: &str) -> u64 {
    symbol(path, name).0
}

/// Nothing of this machine's own debug files.
fn bare() -> Options {
    Options { debug_dirs: Vec::new(), ..Options::default() }
}

fn problems(resolver: &Resolver) -> Vec<Problem> {
    resolver.problems().map(|problem| problem.what.clone()).collect()
}

fn build_id_name(build_id: &[u8]) -> String {
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}/{}.debug", &hex[..2], &hex[2..])
}

/// Frames in a file of which nothing is wrong.
#[track_caller]
fn check_c(fixture: &Fixture, file: &str) {
    let mut resolver = fixture.resolver(file);
    fixture.check_c_frames(&resolver.resolve(0, address(&fixture.path(file), "c_mark")));
    assert_eq!(problems(&resolver), []);
}

#[test]
fn an_address_in_a_position_independent_program_has_its_inlined_callers_innermost_first() {
    let fixture = Fixture::c("-g -fPIE -pie");
    check_c(&fixture, "prog");
}

#[test]
fn an_address_in_a_program_at_a_fixed_place_is_resolved() {
    let fixture = Fixture::c("-g -no-pie");
    assert!(address(&fixture.path("prog"), "c_mark") >= 0x40_0000, "not at a fixed place");
    check_c(&fixture, "prog");
}

#[test]
fn an_address_in_a_static_position_independent_program_is_resolved() {
    check_c(&Fixture::c("-g -static-pie"), "prog");
}

#[test]
fn an_address_in_a_shared_library_is_resolved() {
    let fixture = Fixture::new("fixture.c", C_SOURCE);
    fixture.run("gcc -g -O1 -fPIC -shared fixture.c -o libfixture.so");
    let mut module = fixture.module("libfixture.so");
    module.is_executable = false;
    // What is given for the program is not for its libraries.
    let options = Options { executable: Some("/nonexistent".into()), ..bare() };
    let mut resolver = Resolver::new(&[Module::default(), module], options);
    fixture.check_c_frames(&resolver.resolve(1, address(&fixture.path("libfixture.so"), "c_mark")));
    assert_eq!(problems(&resolver), []);
}

#[test]
fn all_versions_of_dwarf_are_read() {
    for version in 2..=5 {
        check_c(&Fixture::c(&format!("-gdwarf-{version}")), "prog");
    }
}

#[test]
fn a_pc_at_the_very_start_of_a_function_belongs_to_it_and_not_to_the_one_before() {
    let fixture = Fixture::c("-g");
    let frames = fixture.resolver("prog").resolve(0, address(&fixture.path("prog"), "outermost"));
    assert_eq!(frames.last().unwrap().function.as_deref(), Some("outermost"));
}

#[test]
fn a_symbol_table_alone_gives_functions_without_lines() {
    let fixture = Fixture::c("-g0");
    let mut resolver = fixture.resolver("prog");
    let frames = resolver.resolve(0, address(&fixture.path("prog"), "c_mark"));
    let expected = Frame { function: Some("outermost".into()), ..Frame::default() };
    assert_eq!(frames, [expected]);
    assert_eq!(problems(&resolver), [Problem::NoDebugInfo { functions_from_symbols: true }]);
}

#[test]
fn functions_that_are_one_are_all_named() {
    let fixture = Fixture::new(
        "fixture.c",
        r#"
        __attribute__((noipa)) int opens(void) { return 1; }
        int closes(void) __attribute__((alias("opens")));
        __attribute__((noipa)) int differs(void) { return 2; }
        int main(void) { return opens() + closes() + differs(); }
        "#,
    );
    fixture.run("gcc -O1 -g -Wl,--build-id fixture.c -o prog");
    let mut resolver = fixture.resolver("prog");
    assert_eq!(resolver.namesakes(0, address(&fixture.path("prog"), "closes")), ["closes", "opens"]);
    assert_eq!(resolver.namesakes(0, address(&fixture.path("prog"), "differs")), ["differs"]);
    assert!(resolver.namesakes(0, 1).is_empty());
}

#[test]
fn exported_symbols_answer_when_the_full_table_was_stripped() {
    let fixture = Fixture::c("-g0 -rdynamic");
    let mark = address(&fixture.path("prog"), "c_mark");
    fixture.run("strip prog");
    let frames = fixture.resolver("prog").resolve(0, mark);
    assert_eq!(frames[0].function.as_deref(), Some("outermost"));
}

#[test]
fn a_fully_stripped_program_has_no_frames_and_says_why() {
    let fixture = Fixture::c("-g");
    let mark = address(&fixture.path("prog"), "c_mark");
    fixture.run("strip prog");
    let mut resolver = fixture.resolver("prog");
    assert_eq!(problems(&resolver), [], "nothing is opened before it is asked for");
    assert_eq!(resolver.resolve(0, mark), []);
    let [problem] = &resolver.problems().collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!(problem.what, Problem::NoDebugInfo { functions_from_symbols: false });
    assert!(problem.to_string().ends_with("prog: no debug information and no symbol table"), "{problem}");
    assert!(problem.hint().contains("--debug-dir"));
}

/// A program without, and beside it a file with its debug information.
fn separated() -> (Fixture, u64) {
    let fixture = Fixture::c("-g");
    let mark = address(&fixture.path("prog"), "c_mark");
    fixture.run("objcopy --only-keep-debug prog prog.debug");
    fixture.run("strip prog");
    (fixture, mark)
}

#[test]
fn a_separate_debug_file_is_found_by_build_id() {
    let (fixture, mark) = separated();
    let module = fixture.module("prog");
    let place = fixture.path("debug/.build-id").join(build_id_name(&module.build_id));
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::rename(fixture.path("prog.debug"), place).unwrap();
    let options = Options { debug_dirs: vec!["/nonexistent".into(), fixture.path("debug")], ..bare() };
    let mut resolver = Resolver::new(&[module], options.clone());
    fixture.check_c_frames(&resolver.resolve(0, mark));
    assert_eq!(problems(&resolver), []);

    // Also when the program itself is gone: the build id in the ring is enough.
    let module = fixture.module("prog");
    fs::remove_file(fixture.path("prog")).unwrap();
    let mut resolver = Resolver::new(&[module], options);
    fixture.check_c_frames(&resolver.resolve(0, mark));
    assert_eq!(problems(&resolver), []);
}

#[test]
fn a_separate_debug_file_of_another_build_is_refused() {
    let (fixture, mark) = separated();
    let other = Fixture::c("-g -O0");
    let module = fixture.module("prog");
    let place = fixture.path("debug/.build-id").join(build_id_name(&module.build_id));
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::copy(other.path("prog"), place).unwrap();
    let options = Options { debug_dirs: vec![fixture.path("debug")], ..bare() };
    let mut resolver = Resolver::new(&[module], options);
    assert_eq!(resolver.resolve(0, mark), []);
    assert!(problems(&resolver).iter().any(|problem| matches!(problem, Problem::WrongBuildId { .. })));
}

#[test]
fn a_separate_debug_file_is_found_by_its_path_in_a_debug_directory() {
    let (fixture, mark) = separated();
    let place = fixture.path("debug").join(fixture.path("prog.debug").strip_prefix("/").unwrap());
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::rename(fixture.path("prog.debug"), place).unwrap();
    let options = Options { debug_dirs: vec![fixture.path("debug")], ..bare() };
    let mut resolver = Resolver::new(&[fixture.module("prog")], options);
    fixture.check_c_frames(&resolver.resolve(0, mark));
}

#[test]
fn a_debug_link_is_followed_beside_the_file_in_its_debug_subdirectory_and_in_debug_directories() {
    let (fixture, mark) = separated();
    fixture.run("objcopy --add-gnu-debuglink=prog.debug prog");
    let below = fixture.path("prog.debug");
    let far = fixture.path("global").join(below.strip_prefix("/").unwrap());
    let places = [below, fixture.path(".debug/prog.debug"), far];
    for (index, place) in places.iter().enumerate() {
        if index > 0 {
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::rename(&places[index - 1], place).unwrap();
        }
        let options = Options { debug_dirs: vec![fixture.path("global")], ..bare() };
        let mut resolver = Resolver::new(&[fixture.module("prog")], options);
        fixture.check_c_frames(&resolver.resolve(0, mark));
        assert_eq!(problems(&resolver), []);
    }
}

#[test]
fn a_file_with_the_debug_links_name_and_another_checksum_is_not_used() {
    let (fixture, mark) = separated();
    fixture.run("objcopy --add-gnu-debuglink=prog.debug prog");
    // Same build id, another content.
    let mut bytes = fs::read(fixture.path("prog.debug")).unwrap();
    bytes.push(0);
    fs::write(fixture.path("prog.debug"), bytes).unwrap();
    let mut resolver = fixture.resolver("prog");
    assert_eq!(resolver.resolve(0, mark), []);
    assert!(problems(&resolver).iter().any(|problem| matches!(problem, Problem::WrongChecksum { .. })));
}

/// Whether a file has a section that starts with such bytes.
fn has_section(path: &Path, name: &str, start: &[u8]) -> bool {
    let data = fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let section = file.section_by_name_bytes(name.as_bytes());
    section.is_some_and(|section| {
        let (offset, _) = section.file_range().unwrap();
        data[offset as usize..].starts_with(start)
    })
}

#[test]
fn sections_that_are_compressed_with_zlib_are_read() {
    let fixture = Fixture::c("-g");
    fixture.run("objcopy --compress-debug-sections=zlib prog");
    assert!(has_section(&fixture.path("prog"), ".debug_info", &[1, 0, 0, 0]), "not compressed");
    check_c(&fixture, "prog");
    fixture.run("objcopy --decompress-debug-sections prog");
    fixture.run("objcopy --compress-debug-sections=zlib-gnu prog");
    assert!(has_section(&fixture.path("prog"), ".zdebug_info", b"ZLIB"), "not compressed");
    check_c(&fixture, "prog");
}

#[test]
fn sections_that_are_compressed_with_zstd_are_read() {
    let fixture = Fixture::c("-g");
    fixture.run("objcopy --compress-debug-sections=zstd prog");
    assert!(has_section(&fixture.path("prog"), ".debug_info", &[2, 0, 0, 0]), "not compressed");
    check_c(&fixture, "prog");
}

#[test]
fn split_debug_information_is_read_from_where_the_compiler_put_it() {
    for version in [4, 5] {
        let fixture = Fixture::c(&format!("-gdwarf-{version} -gsplit-dwarf"));
        assert!(fixture.path("prog-fixture.dwo").exists());
        check_c(&fixture, "prog");
    }
}

// FOLKLORE: binutils 2.40's dwp crashes on version 5 of DWARF and llvm-dwp 14 runs forever on gcc's: version 4 is
// packed by the first and version 5 by rustc itself.
#[test]
fn split_debug_information_is_read_from_a_package_beside_the_program() {
    let fixture = Fixture::c("-gdwarf-4 -gsplit-dwarf");
    fixture.run("dwp -e prog -o prog.dwp");
    fs::remove_file(fixture.path("prog-fixture.dwo")).unwrap();
    check_c(&fixture, "prog");

    for version in [4, 5] {
        let fixture = Fixture::new("fixture.rs", RUST_SOURCE);
        let packed = "-C split-debuginfo=packed";
        fixture.run(&format!("rustc -C debuginfo=2 -C dwarf-version={version} {packed} fixture.rs -o prog"));
        assert!(fixture.path("prog.dwp").exists());
        let mark = address(&fixture.path("prog"), "rust_mark");
        let mut resolver = fixture.resolver("prog");
        let frames = resolver.resolve(0, mark);
        assert_eq!(frames[0].function.as_deref(), Some("fixture::cache::Table::lookup"));
        assert_eq!(problems(&resolver), []);
        // Without the package the symbol table still knows the function.
        fs::remove_file(fixture.path("prog.dwp")).unwrap();
        let mut resolver = fixture.resolver("prog");
        assert_eq!(resolver.resolve(0, mark)[0].function, frames[0].function);
        assert_eq!(problems(&resolver), [Problem::MissingSplit]);
    }
}

#[test]
fn without_its_split_debug_information_a_program_still_has_lines_and_outer_functions() {
    for version in [4, 5] {
        let fixture = Fixture::c(&format!("-gdwarf-{version} -gsplit-dwarf"));
        fs::remove_file(fixture.path("prog-fixture.dwo")).unwrap();
        let mut resolver = fixture.resolver("prog");
        let frames = resolver.resolve(0, address(&fixture.path("prog"), "c_mark"));
        let [frame] = &frames[..] else { panic!("{frames:?}") };
        assert_eq!(frame.function.as_deref(), Some("outermost"));
        assert_eq!(frame.line, Some(fixture.line("innermost")));
        let [problem] = &resolver.problems().collect::<Vec<_>>()[..] else { panic!() };
        assert_eq!(problem.what, Problem::MissingSplit);
        assert!(problem.path.ends_with("prog-fixture.dwo"), "{problem}");
    }
}

#[test]
fn split_debug_information_of_another_build_is_not_used() {
    let fixture = Fixture::c("-g -gsplit-dwarf");
    let other = Fixture::c("-g -gsplit-dwarf -O0");
    fs::copy(other.path("prog-fixture.dwo"), fixture.path("prog-fixture.dwo")).unwrap();
    let mut resolver = fixture.resolver("prog");
    assert_eq!(resolver.resolve(0, address(&fixture.path("prog"), "c_mark")).len(), 1);
    assert_eq!(problems(&resolver), [Problem::MissingSplit]);
}

#[test]
fn names_in_cpp_are_demangled_from_dwarf_and_from_symbols() {
    for flags in ["-g", "-g0", "-g1"] {
        let fixture = Fixture::new("fixture.cpp", CPP_SOURCE);
        fixture.run(&format!("g++ -O1 {flags} fixture.cpp -o prog"));
        let frames = fixture.resolver("prog").resolve(0, address(&fixture.path("prog"), "cpp_mark"));
        assert_eq!(frames[0].function.as_deref(), Some("cache::Table::lookup(int, char const*)"), "{flags}");
        assert_eq!(frames[0].line, (flags != "-g0").then(|| fixture.line("lookup")));
    }
}

#[test]
fn names_in_rust_are_demangled_without_their_hash_from_dwarf_and_from_symbols() {
    for mangling in ["", "-C symbol-mangling-version=v0"] {
        for debug in ["2", "line-tables-only", "0"] {
            let fixture = Fixture::new("fixture.rs", RUST_SOURCE);
            fixture.run(&format!("rustc -C opt-level=1 -C debuginfo={debug} {mangling} fixture.rs -o prog"));
            let frames = fixture.resolver("prog").resolve(0, address(&fixture.path("prog"), "rust_mark"));
            let name = frames[0].function.as_deref().unwrap();
            assert!(
                ["fixture::cache::Table::lookup", "<fixture::cache::Table>::lookup"].contains(&name),
                "{name}"
            );
            assert_eq!(frames[0].line, (debug != "0").then(|| fixture.line("lookup")));
        }
    }
}

#[test]
fn a_static_lock_has_the_name_of_its_symbol() {
    let fixture = Fixture::new("fixture.rs", RUST_SOURCE);
    fixture.run("rustc -g fixture.rs -o prog");
    let (address, len_bytes) = symbol(&fixture.path("prog"), "CACHE_LOCK");
    let mut resolver = fixture.resolver("prog");
    for offset in [0, len_bytes - 1] {
        let expected = Some(("fixture::cache::CACHE_LOCK".to_owned(), offset));
        assert_eq!(resolver.static_at(0, address + offset), expected);
    }
    let after = resolver.static_at(0, address + len_bytes);
    assert_ne!(after.map(|(name, _)| name).as_deref(), Some("fixture::cache::CACHE_LOCK"));
    let function = self::address(&fixture.path("prog"), "lookup");
    assert_eq!(resolver.static_at(0, function), None, "a function is not a static");
}

#[test]
fn a_program_of_another_build_is_refused_also_when_it_was_given() {
    let fixture = Fixture::c("-g");
    let mark = address(&fixture.path("prog"), "c_mark");
    let recorded = fixture.module("prog");
    let other = Fixture::c("-g -O0");
    fs::copy(other.path("prog"), fixture.path("prog")).unwrap();
    for executable in [None, Some(other.path("prog"))] {
        let mut resolver = Resolver::new(std::slice::from_ref(&recorded), Options { executable, ..bare() });
        assert_eq!(resolver.resolve(0, mark), []);
        let expected = recorded.build_id.clone();
        let found = other.module("prog").build_id;
        assert_eq!(problems(&resolver), [Problem::WrongBuildId { expected, found }]);
    }
    // The path of the living process leads to the right one, whatever took the file's place.
    let recorded = Module { path: fixture.path("prog"), ..other.module("prog") };
    fs::write(fixture.path("prog"), "replaced").unwrap();
    let options = Options { live_executable: Some(other.path("prog")), ..bare() };
    let mut resolver = Resolver::new(&[recorded], options);
    assert!(!resolver.resolve(0, address(&other.path("prog"), "c_mark")).is_empty());
}

#[test]
fn a_program_that_was_given_is_used_instead_of_the_recorded_path() {
    let fixture = Fixture::c("-g");
    let module = Module { path: "/nonexistent/prog".into(), ..fixture.module("prog") };
    let options = Options { executable: Some(fixture.path("prog")), ..bare() };
    let mut resolver = Resolver::new(&[module], options);
    fixture.check_c_frames(&resolver.resolve(0, address(&fixture.path("prog"), "c_mark")));
    assert_eq!(problems(&resolver), []);
}

#[test]
fn a_replaced_program_without_build_id_is_refused_unless_it_was_given() {
    let fixture = Fixture::c("-g -Wl,--build-id=none");
    let mark = address(&fixture.path("prog"), "c_mark");
    let recorded = fixture.module("prog");
    assert!(recorded.build_id.is_empty());
    check_c(&fixture, "prog");
    for is_longer in [false, true] {
        let file = File::options().append(true).open(fixture.path("prog")).unwrap();
        if is_longer {
            file.set_len(recorded.file_len_bytes + 1).unwrap();
        }
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        let mut resolver = Resolver::new(std::slice::from_ref(&recorded), bare());
        assert_eq!(resolver.resolve(0, mark), []);
        let found_len_bytes = recorded.file_len_bytes + u64::from(is_longer);
        let expected_len_bytes = recorded.file_len_bytes;
        assert_eq!(problems(&resolver), [Problem::FileChanged { expected_len_bytes, found_len_bytes }]);
    }
    let unknown = Module { file_len_bytes: 0, modified_ns: 0, ..recorded.clone() };
    let mut resolver = Resolver::new(&[unknown], bare());
    assert_eq!(resolver.resolve(0, mark), []);
    assert_eq!(problems(&resolver), [Problem::Unverifiable]);

    let options = Options { executable: Some(fixture.path("prog")), ..bare() };
    let mut resolver = Resolver::new(&[recorded], options);
    fixture.check_c_frames(&resolver.resolve(0, mark));
}

#[test]
fn paths_are_below_the_root_of_the_recorded_process() {
    let fixture = Fixture::c("-g");
    let module = Module { path: "/../app/bin/../prog".into(), ..fixture.module("prog") };
    fs::create_dir_all(fixture.path("root/app")).unwrap();
    fs::copy(fixture.path("prog"), fixture.path("root/app/prog")).unwrap();
    let options = Options { root: Some(fixture.path("root")), ..bare() };
    let mut resolver = Resolver::new(&[module], options);
    fixture.check_c_frames(&resolver.resolve(0, address(&fixture.path("prog"), "c_mark")));
    assert_eq!(problems(&resolver), []);
}

type IsExpected = fn(&Problem) -> bool;

#[test]
fn a_path_that_is_not_a_regular_file_is_answered_promptly() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let text = directory.path().join("text");
    fs::write(&text, "x".repeat(5000)).unwrap();
    let huge = directory.path().join("huge");
    File::create(&huge).unwrap().set_len(1 << 42).unwrap();
    let cases: [(&Path, IsExpected); 11] = [
        (&fifo, |problem| *problem == Problem::NotRegularFile),
        (directory.path(), |problem| *problem == Problem::NotRegularFile),
        (Path::new("/dev/zero"), |problem| *problem == Problem::NotRegularFile),
        (Path::new("/dev/tty"), |problem| *problem == Problem::NotRegularFile),
        (Path::new("/dev/null/x"), |problem| *problem == Problem::Missing),
        (Path::new("/nonexistent"), |problem| *problem == Problem::Missing),
        (Path::new("/proc/self/status"), |problem| matches!(problem, Problem::NotElf(_))),
        (&text, |problem| matches!(problem, Problem::NotElf(_))),
        (&huge, |problem| matches!(problem, Problem::TooLarge { .. })),
        (Path::new("linux-vdso.so.1"), |problem| matches!(problem, Problem::BadPath(_))),
        (Path::new("/bin/sh\0"), |problem| matches!(problem, Problem::BadPath(_))),
    ];
    for (path, is_expected) in cases {
        let module =
            Module { path: path.into(), build_id: vec![1; 20], is_executable: true, ..Module::default() };
        let start = Instant::now();
        let mut resolver = Resolver::new(&[module], bare());
        assert_eq!(resolver.resolve(0, 0x1000), []);
        assert_eq!(resolver.static_at(0, 0x1000), None);
        let found: Vec<&ModuleProblem> = resolver.problems().collect();
        assert!(found.len() == 1 && is_expected(&found[0].what), "{path:?}: {found:?}");
        assert_eq!((found[0].module, &*found[0].path), (0, path));
        assert!(start.elapsed() < Duration::from_secs(1), "{path:?}");
    }
}

#[test]
fn a_module_that_does_not_exist_has_no_frames() {
    let mut resolver = Resolver::new(&[], bare());
    assert_eq!(resolver.resolve(3, 0), []);
    assert_eq!(resolver.static_at(3, 0), None);
}

/// A function with a very deep tree of inlined calls: addr2line descends it by recursion.
const DEEP_SOURCE: &str = r#"
    .text
    .globl deep_mark
    .type deep_mark, @function
deep_mark: nop
    .size deep_mark, 1
.Lend:
    .globl main
main: ret
    .section .debug_abbrev, "", @progbits
    .byte 1, 0x11, 1, 0x11, 1, 0x12, 7, 0, 0   # compile unit: low_pc, high_pc
    .byte 2, 0x2e, 1, 0x11, 1, 0x12, 7, 0, 0   # subprogram: low_pc, high_pc
    .byte 3, 0x1d, 1, 0, 0                     # inlined subroutine
    .byte 0
    .section .debug_info, "", @progbits
    .long .Linfo_end - .Linfo_start
.Linfo_start:
    .short 4
    .long 0
    .byte 8
    .byte 1
    .quad deep_mark, 1
    .byte 2
    .quad deep_mark, 1
    .fill DEPTH, 1, 3
    .fill DEPTH, 1, 0
    .byte 0, 0
.Linfo_end:
"#;

#[test]
fn a_tree_of_calls_that_would_overflow_the_stack_is_refused() {
    for (depth, is_refused) in [("10", false), ("5000000", true)] {
        let fixture = Fixture::new("fixture.s", &DEEP_SOURCE.replace("DEPTH", depth));
        fixture.run("gcc fixture.s -o prog");
        let mut resolver = fixture.resolver("prog");
        let frames = resolver.resolve(0, address(&fixture.path("prog"), "deep_mark"));
        assert_eq!(frames.last().unwrap().function.as_deref(), Some("deep_mark"));
        let found = problems(&resolver);
        assert_eq!(
            found.iter().any(|problem| matches!(problem, Problem::Damaged(_))),
            is_refused,
            "{found:?}"
        );
    }
}

/// Deterministic noise: Marsaglia's xorshift64.
struct Noise(u64);

impl Noise {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// All that can be asked of a file; how many frames it has.
fn ask(path: &Path, addresses: &[u64]) -> usize {
    let module = Module { path: path.into(), is_executable: true, ..Module::default() };
    let options = Options { executable: Some(path.into()), ..bare() };
    let mut resolver = Resolver::new(&[module], options);
    let frames = addresses.iter().map(|&address| resolver.resolve(0, address).len()).sum();
    addresses.iter().for_each(|&address| drop(resolver.static_at(0, address)));
    resolver.problems().for_each(|problem| drop((problem.to_string(), problem.hint())));
    frames
}

#[test]
fn thousands_of_damaged_files_neither_panic_nor_hang() {
    for (flags, compression) in [("-gdwarf-4", "none"), ("-gdwarf-5", "none"), ("-g", "zlib"), ("-g", "zstd")]
    {
        let fixture = Fixture::c(flags);
        fixture.run(&format!("objcopy --compress-debug-sections={compression} prog"));
        let path = fixture.path("prog");
        let addresses =
            ["c_mark", "outermost", "entry", "main", "shared_lock"].map(|name| address(&path, name));
        let whole = fs::read(&path).unwrap();
        assert!(ask(&path, &addresses) > 4);
        // Flip where it matters: headers, tables, debug sections.
        let file = object::File::parse(&*whole).unwrap();
        let interesting =
            |name: &str| name.starts_with(".debug") || name.contains("tab") || name.contains("note");
        let mut ranges: Vec<(u64, u64)> = file
            .sections()
            .filter(|section| section.name().is_ok_and(interesting))
            .filter_map(|section| section.file_range())
            .collect();
        let headers = u64::from_le_bytes(whole[40..48].try_into().unwrap());
        ranges.extend([(0, 64), (headers, whole.len() as u64 - headers)]);
        let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
        let mut less = 0;
        let start = Instant::now();
        for round in 0..1000 {
            let mut damaged = whole.clone();
            for _ in 0..=noise.below(4) {
                let (offset, len_bytes) = ranges[noise.below(ranges.len())];
                let at = offset as usize + noise.below(len_bytes as usize);
                damaged[at] =
                    [damaged[at] ^ 1 << noise.below(8), 0xff, 0, noise.below(256) as u8][noise.below(4)];
            }
            if round % 4 == 0 {
                damaged.truncate(noise.below(whole.len()));
            }
            let target = fixture.path("damaged");
            fs::write(&target, damaged).unwrap();
            less += usize::from(ask(&target, &addresses) < 7);
        }
        assert!(less > 100, "only {less} of the mutations did anything");
        assert!(start.elapsed() < Duration::from_secs(120), "{:?}", start.elapsed());
    }
}
