//! Programs for the tests of the `symbols` layer: small sources, compiled here, and questions to a resolver.
//!
//! The expected lines are those with a marker comment in the source. The expected addresses are those of symbols, as
//! `object` reads them. No rings here.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSymbol};
use read_rip_files::Module;
use read_rip_symbols::{Frame, Options, Problem, Resolver};
use tempfile::TempDir;

pub(crate) const C_SOURCE: &str = r#"
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

pub(crate) const C_MAIN: &str = "int main(void) { return entry() ? 0 : 1; }\n";

pub(crate) const CPP_SOURCE: &str = r#"
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

pub(crate) const RUST_SOURCE: &str = r#"
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

/// A directory with a source file and the programs compiled from it.
pub(crate) struct Fixture {
    pub(crate) directory: TempDir,
    pub(crate) source: String,
}

impl Fixture {
    pub(crate) fn new(file: &str, source: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(file), source).unwrap();
        Self { directory, source: source.to_owned() }
    }

    /// `fixture.c` compiled to `prog` with these flags.
    pub(crate) fn c(flags: &str) -> Self {
        let fixture = Self::new("fixture.c", &format!("{C_SOURCE}{C_MAIN}"));
        fixture.run(&format!("gcc -O1 -Wl,--build-id {flags} fixture.c -o prog"));
        fixture
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    /// Runs a command in the directory. Spaces separate its words.
    pub(crate) fn run(&self, command: &str) {
        let words: Vec<&str> = command.split_whitespace().collect();
        let mut child = Command::new(words[0]);
        let output = child.args(&words[1..]).current_dir(self.directory.path()).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }

    pub(crate) fn line(&self, mark: &str) -> u32 {
        let wanted = format!("MARK {mark}");
        let position = self.source.lines().position(|line| line.contains(&wanted)).expect(mark);
        position as u32 + 1
    }

    /// The module as a recorder would record it for this file.
    pub(crate) fn module(&self, file: &str) -> Module {
        module_of(&self.path(file))
    }

    pub(crate) fn resolver(&self, file: &str) -> Resolver {
        Resolver::new(&[self.module(file)], bare())
    }

    /// The three frames at `c_mark`.
    pub(crate) fn check_c_frames(&self, frames: &[Frame]) {
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

pub(crate) fn module_of(path: &Path) -> Module {
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

/// The module-relative address and the length of the first symbol whose name contains `name`.
pub(crate) fn symbol(path: &Path, name: &str) -> (u64, u64) {
    let data = fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let found = file.symbols().find(|symbol| symbol.name().is_ok_and(|found| found.contains(name)));
    let found = found.unwrap_or_else(|| panic!("no symbol {name}"));
    (found.address(), found.size())
}

pub(crate) fn address(path: &Path, name: &str) -> u64 {
    symbol(path, name).0
}

/// Options that ignore the debug files of this machine.
pub(crate) fn bare() -> Options {
    Options { debug_dirs: Vec::new(), ..Options::default() }
}

pub(crate) fn problems(resolver: &Resolver) -> Vec<Problem> {
    resolver.problems().into_iter().map(|problem| problem.what).collect()
}

pub(crate) fn build_id_name(build_id: &[u8]) -> String {
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}/{}.debug", &hex[..2], &hex[2..])
}

/// Checks the frames at `c_mark`, and that the resolver reports no problem.
#[track_caller]
pub(crate) fn check_c(fixture: &Fixture, file: &str) {
    let mut resolver = fixture.resolver(file);
    fixture.check_c_frames(&resolver.resolve(0, address(&fixture.path(file), "c_mark")));
    assert_eq!(problems(&resolver), []);
}
