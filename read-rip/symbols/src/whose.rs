//! Whose code a frame is: the user's, a library's, a language's, the system's, or not known.
//!
//! Three things tell it: the source file, the function's name, and the object, which is the program or a library. Paths
//! are compared as text, and no file is opened.
//!
//! The rules, of which the first that fits decides:
//!
//! 1. All code of a system library, or of a language's library, is that of the object.
//! 2. The source file is the header with the recorder's locks for C++, or in a place where package managers and
//!    compilers put files: Cargo's registry and its checkouts of git, a vendored directory, the source of a standard
//!    library, the headers of a system.
//! 3. There is no absolute path of a source file: the crate, or the name of a function of the C library. The program's
//!    constants say which crates are packages of a registry (`packages`).
//! 4. The program's own code is the user's. In doubt, code is not known to be a library's: it is shown as the user's.

use std::path::Path;
use std::sync::Arc;

use read_rip_files::Module;

use super::c_library::is_of_c_library;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Whose {
    /// The program's own.
    User,
    /// That of a package, a crate or a shared library, with its name.
    Library(Arc<str>),
    /// That of a language: its standard library or its runtime.
    Runtime(Arc<str>),
    /// That of the C library, the loader or the kernel.
    System,
    /// Not known.
    #[default]
    Unknown,
}

/// The packages whose functions stand around a lock. Who calls them waits.
const OF_LOCKS: [&str; 7] = [
    "librip",
    "librip-tokio",
    "librip-async-lock",
    "librip-tracing",
    "parking_lot",
    "parking_lot_core",
    "lock_api",
];
/// The crates of Rust's standard library.
const OF_RUST: [&str; 3] = ["core", "std", "alloc"];
/// What the recorder is called.
const LIBRIP: &str = "librip";
/// What Rust's standard library is called.
const RUST: &str = "std";
/// What C++'s standard library is called, whoever wrote it.
const CPP: &str = "libstdc++";
/// What Go's standard library and runtime are called.
const GO: &str = "go";

/// What the names of files of C libraries and loaders begin with.
const SYSTEM_OBJECTS: [&str; 13] = [
    "libc.so",
    "libc-",
    "libpthread",
    "ld-linux",
    "ld-musl",
    "ld-2",
    "ld.so",
    "libm.so",
    "libdl.",
    "librt.",
    "libresolv",
    "[vdso]",
    "linux-vdso",
];
/// What the names of files of runtimes begin with, and what these are called.
const RUNTIME_OBJECTS: [(&str, &str); 14] = [
    ("libstdc++", CPP),
    ("libc++", CPP),
    ("libgcc_s", CPP),
    ("libstd-", RUST),
    ("libjvm", "java"),
    ("libpython", "python"),
    ("libruby", "ruby"),
    ("libperl", "perl"),
    ("libnode", "node"),
    ("libcoreclr", "dotnet"),
    ("libmono", "mono"),
    ("libgomp", "libgomp"),
    ("libasan", "libasan"),
    ("libtsan", "libtsan"),
];
/// Programs that run others, which are in another language.
const INTERPRETERS: [&str; 8] = ["python", "java", "node", "ruby", "perl", "php", "beam.smp", "dotnet"];
/// Directories whose directories are packages of others.
const VENDORED: [&str; 6] =
    ["vendor", "third_party", "third-party", "thirdparty", "3rdparty", "node_modules"];

impl Whose {
    /// Whose a module is: that of its code for which nothing better is known.
    pub fn of_module(module: &Module) -> Whose {
        Whose::of_object(&module.path, module.is_executable)
    }

    /// Whose an object is, by its path.
    pub fn of_object(path: &Path, is_executable: bool) -> Whose {
        let whole = path.to_string_lossy();
        let name = whole.rsplit('/').next().unwrap_or_default();
        if name.is_empty() {
            return Whose::Unknown;
        }
        if SYSTEM_OBJECTS.iter().any(|begin| name.starts_with(begin)) {
            return Whose::System;
        }
        if let Some((_, runtime)) = RUNTIME_OBJECTS.iter().find(|(begin, _)| name.starts_with(begin)) {
            return Whose::Runtime((*runtime).into());
        }
        if name.starts_with("librip_preload") {
            return Whose::Library(LIBRIP.into());
        }
        if is_executable {
            let version = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            let interpreter =
                INTERPRETERS.iter().find(|known| name.strip_prefix(**known).is_some_and(version));
            return interpreter.map_or(Whose::User, |known| Whose::Runtime((*known).into()));
        }
        // The modules of an interpreter, and those of its packages.
        match Whose::of_script(&whole) {
            Whose::Library(name) => {
                return Whose::Library(name.split(".cpython-").next().unwrap_or_default().into());
            }
            Whose::Runtime(language) => return Whose::Runtime(language),
            _ => {}
        }
        let is_installed = ["/usr/", "/lib/", "/lib32/", "/lib64/", "/nix/store/", "/gnu/store/", "/snap/"];
        match is_installed.iter().any(|begin| whole.starts_with(begin)) {
            true => Whose::Library(name.split(".so").next().unwrap_or(name).into()),
            false => Whose::User,
        }
    }

    /// Whose a function in this object is, by its name and by its source file.
    pub fn of(function: Option<&str>, file: Option<&str>, object: &Whose) -> Whose {
        if matches!(object, Whose::Runtime(_) | Whose::System | Whose::Library(_)) {
            return object.clone();
        }
        if function.is_some_and(|function| function.contains("rip::")) && file.is_some_and(is_cpp_locks) {
            return Whose::Library(LIBRIP.into());
        }
        if let Some(whose) = file.and_then(of_file) {
            return whose;
        }
        match (function, file) {
            // The whole path of a source file says more than the name of a function.
            (_, Some(file)) if file.starts_with('/') => object.clone(),
            // A function of C may have the name of a crate.
            (Some(function), Some(file)) if file.ends_with(".rs") => {
                of_crate(function).unwrap_or_else(|| object.clone())
            }
            (_, Some(_)) => object.clone(),
            (Some(function), None) => of_symbol(function).unwrap_or_else(|| object.clone()),
            (None, None) => Whose::Unknown,
        }
    }

    /// Whose a script is that an interpreter runs, by the path of its file.
    pub fn of_script(file: &str) -> Whose {
        let parts: Vec<&str> = file.split('/').collect();
        let after =
            |name: &[&str]| parts.iter().position(|part| name.contains(part)).map(|at| &parts[at + 1..]);
        if let Some([package, ..]) = after(&["site-packages", "dist-packages"]) {
            return Whose::Library(package.trim_end_matches(".py").into());
        }
        let is_of_python = |pair: &[&str]| pair[0].starts_with("lib") && pair[1].starts_with("python");
        match parts.windows(2).any(is_of_python) || file.starts_with("<frozen ") {
            true => Whose::Runtime("python".into()),
            false => Whose::User,
        }
    }

    /// Whose a function is without a source file, if packages with these crates are known to be in the program.
    pub(super) fn or_of_package(self, function: &str, crates: impl FnOnce() -> Arc<[String]>) -> Whose {
        if self != Whose::User || !function.contains("::") {
            return self;
        }
        let name = crate_of(function);
        match crates().binary_search_by(|known| known.as_str().cmp(name)) {
            Ok(_) => Whose::Library(name.into()),
            Err(_) => self,
        }
    }

    /// Whether it is the program's own, as far as is known: that it is another's is not.
    pub fn may_be_users(&self) -> bool {
        matches!(self, Whose::User | Whose::Unknown)
    }

    /// Whether it stands around locks: a standard library, or a package that wraps its locks. Where a thread waits is
    /// what has called it.
    pub fn is_around_locks(&self) -> bool {
        match self {
            Whose::Runtime(_) => true,
            Whose::Library(package) => OF_LOCKS.contains(&&**package),
            Whose::User | Whose::System | Whose::Unknown => false,
        }
    }

    /// The name of a library's package; `None` if it is no library's.
    pub fn package(&self) -> Option<&str> {
        match self {
            Whose::Library(package) => Some(package),
            _ => None,
        }
    }

    /// The name of a library's package, or of a language; `None` if it is neither's.
    pub fn package_or_language(&self) -> Option<&str> {
        match self {
            Whose::Library(name) | Whose::Runtime(name) => Some(name),
            Whose::User | Whose::System | Whose::Unknown => None,
        }
    }

    /// Its stable name, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Whose::User => "user",
            Whose::Library(_) => "library",
            Whose::Runtime(_) => "runtime",
            Whose::System => "system",
            Whose::Unknown => "unknown",
        }
    }
}

/// Whose a source file is; `None` if its path does not tell.
fn of_file(file: &str) -> Option<Whose> {
    if is_rusts(file) {
        return Some(Whose::Runtime(RUST.into()));
    }
    if is_cpp_header(file) {
        return Some(Whose::Runtime(CPP.into()));
    }
    if is_c_library(file) {
        return Some(Whose::System);
    }
    let parts: Vec<&str> = file.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let is_absolute = file.starts_with('/');
    // The last part is the file.
    let directories = parts.split_last().map_or(&[][..], |(_, directories)| directories);
    of_package_manager(directories, is_absolute)
        .or_else(|| is_recorders(directories).then(|| Whose::Library(LIBRIP.into())))
        .or_else(|| of_system(directories, is_absolute))
}

/// A package that a package manager has put there.
fn of_package_manager(directories: &[&str], is_absolute: bool) -> Option<Whose> {
    let package = |name: &str| Whose::Library(without_version(name).into());
    for at in 0..directories.len() {
        match &directories[at..] {
            // `~/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/dashmap-6.1.0/src/lib.rs`, and Debian's
            // `/usr/share/cargo/registry/dashmap-6.1.0/src/lib.rs`.
            ["registry", "src", _, name, ..] | ["registry", name, ..] if has_version(name) => {
                return Some(package(name));
            }
            // `~/.cargo/git/checkouts/tokio-8d2b7b1f0f1b1b1b/abc1234/tokio/src/lib.rs`: the directory before `src` is
            // that of the crate.
            ["git", "checkouts", repository, _, within @ ..] => {
                let of_crate = within.iter().position(|part| *part == "src").filter(|&src| src > 0);
                let repository = repository.rsplit_once('-').map_or(*repository, |(name, _)| name);
                return Some(Whose::Library(of_crate.map_or(repository, |src| within[src - 1]).into()));
            }
            // `/usr/local/go/src/runtime/proc.go`, `/usr/lib/go-1.19/src/sync/mutex.go`. A user's own packages may be
            // in `~/go/src`.
            [go, "src", ..]
                if is_absolute && (*go == "go" && directories[0] == "usr" || go.starts_with("go-1")) =>
            {
                return Some(Whose::Runtime(GO.into()));
            }
            // `~/go/pkg/mod/github.com/lib/pq@v1.10.9/conn.go`
            ["pkg", "mod", within @ ..] => {
                let module = within.iter().find(|part| part.contains('@'))?;
                return Some(Whose::Library(module.split('@').next().unwrap_or(module).into()));
            }
            [vendor, name, ..] if VENDORED.contains(vendor) || vendor.ends_with("-vendor") => {
                return Some(package(name));
            }
            [name, ..] if has_version(name) && OF_LOCKS.contains(&without_version(name)) => {
                return Some(package(name));
            }
            // A path that the ring has kept the end of, or one that begins in a directory for packages: compilers can
            // be told to leave out what is before it.
            [cut, name, ..] if at == 0 && cut.starts_with("...") && has_version(name) => {
                return Some(package(name));
            }
            [name, ..] if at == 0 && !is_absolute && has_version(name) => return Some(package(name)),
            _ => {}
        }
    }
    None
}

/// A header or a library of the system: `/usr/include/boost/thread/mutex.hpp`.
fn of_system(directories: &[&str], is_absolute: bool) -> Option<Whose> {
    let within = match directories {
        _ if !is_absolute => return None,
        ["usr", "local", "include" | "lib" | "lib64" | "share", within @ ..]
        | ["usr", "include" | "lib" | "lib64" | "share", within @ ..] => within,
        _ => return None,
    };
    // `x86_64-linux-gnu` is no package, and `bits` and `sys` are the C library's.
    let name = within.iter().find(|part| !part.contains("-linux-"));
    let name = name.filter(|name| !matches!(**name, "bits" | "sys"));
    Some(name.map_or(Whose::System, |name| Whose::Library(without_version(name).into())))
}

/// Whether a source file belongs to the standard library of Rust.
fn is_rusts(file: &str) -> bool {
    // The directory before this is that of the toolchain if rustc found the library's source, and /rustc/HASH
    // otherwise. What that library depends on is in /rust/deps.
    OF_RUST.iter().any(|name| file.contains(&format!("/library/{name}/src/")))
        || file.starts_with("/rustc/")
        || file.starts_with("/rust/deps/")
        || file.contains("/rustlib/src/rust/")
}

/// Whether a file is a header of libstdc++ or libc++: `include/c++/12/mutex`,
/// `include/x86_64-linux-gnu/c++/12/bits/...`, `include/c++/v1/mutex`; or a source file of gcc's library.
fn is_cpp_header(file: &str) -> bool {
    if file.contains("/libstdc++-v3/") || file.contains("/libcxx/include/") {
        return true;
    }
    let Some((before, after)) = file.rsplit_once("/c++/") else { return false };
    let is_version = after.trim_start_matches('v').starts_with(|digit: char| digit.is_ascii_digit());
    is_version && before.split('/').any(|directory| directory == "include")
}

/// Whether a source file is one of a C library: a static program has their code.
fn is_c_library(file: &str) -> bool {
    let is_its = |part: &str| part.starts_with("glibc-") || part.starts_with("musl-");
    file.contains("/sysdeps/")
        || file.contains("/nptl/")
        || file.starts_with("../sysdeps")
        || file.starts_with("./nptl")
        || file.split('/').any(is_its)
}

/// Whether a file is the header with the recorder's locks for C++, wherever it is installed. Its functions are those of
/// `rip`, or of `std` for a type of `rip`.
fn is_cpp_locks(file: &str) -> bool {
    file == "rip.hpp" || file.ends_with("/rip.hpp")
}

/// Whether a file is in a checkout of the recorder: `librip/src/lock/record.rs`, `librip/tokio/src/lib.rs`.
fn is_recorders(directories: &[&str]) -> bool {
    let members = ["capi", "preload", "parking_lot", "parking_lot_0_13", "tokio", "async-lock", "tracing"];
    directories.windows(2).any(|pair| pair == ["librip", "src"])
        || directories.windows(3).any(|of| of[0] == "librip" && members.contains(&of[1]) && of[2] == "src")
}

/// Whose a function is, by the name that a symbol table has for it.
fn of_symbol(function: &str) -> Option<Whose> {
    let begins = matches!(function, "_start" | "_init" | "_fini");
    if begins || is_of_c_library(function) { Some(Whose::System) } else { of_crate(function) }
}

/// Whose a function is, by its crate.
fn of_crate(function: &str) -> Option<Whose> {
    if !function.contains("::") {
        return None;
    }
    let name = crate_of(function);
    if OF_RUST.contains(&name) {
        return Some(Whose::Runtime(RUST.into()));
    }
    OF_LOCKS.contains(&name).then(|| Whose::Library(name.into()))
}

/// The crate of a function's path. That of `<some::Type as some::Trait>::function` is the crate of the type.
pub(super) fn crate_of(function: &str) -> &str {
    let mut path = function.trim_start_matches(['<', '&', '*', ' ', '(', '[']);
    for prefix in ["mut ", "const ", "dyn "] {
        path = path.strip_prefix(prefix).unwrap_or(path);
    }
    path.split("::").next().unwrap_or(path)
}

/// Whether a directory is named like a package with its version: `dashmap-6.1.0`.
fn has_version(name: &str) -> bool {
    without_version(name) != name
}

/// `dashmap` of `dashmap-6.1.0`.
pub(super) fn without_version(name: &str) -> &str {
    let is_version = |version: &str| {
        let numbers = version.split(['-', '+']).next().unwrap_or_default();
        let mut parts = numbers.split('.');
        parts.by_ref().take(2).filter(|part| is_number(part)).count() == 2 && parts.all(is_number)
    };
    let mut ends = name.match_indices('-').map(|(at, _)| at);
    ends.find(|&at| is_version(&name[at + 1..])).map_or(name, |at| &name[..at])
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: &str) -> Whose {
        Whose::Library(name.into())
    }

    fn runtime(name: &str) -> Whose {
        Whose::Runtime(name.into())
    }

    fn file(file: &str) -> Whose {
        Whose::of(Some("f"), Some(file), &Whose::User)
    }

    #[test]
    fn files_of_packages_are_those_of_libraries() {
        for (path, name) in [
            (
                "/home/me/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/dashmap-6.1.0/src/lib.rs",
                "dashmap",
            ),
            ("/usr/local/cargo/registry/src/github.com-1ecc/lock_api-0.4.9/src/rwlock.rs", "lock_api"),
            ("/cargo/registry/src/x/wasm-bindgen-0.2.92/src/lib.rs", "wasm-bindgen"),
            ("/cargo/registry/src/x/foo-1.0.0-alpha.1+build-5/src/lib.rs", "foo"),
            ("/usr/share/cargo/registry/flume-0.11.1/src/lib.rs", "flume"),
            ("/home/me/.cargo/git/checkouts/tokio-8d2b7b1f0f/abc1234/tokio/src/sync/mutex.rs", "tokio"),
            ("/home/me/.cargo/git/checkouts/flume-8d2b7b1f0f/abc1234/src/lib.rs", "flume"),
            ("/opt/registry/flume-0.11.1/src/lib.rs", "flume"),
            ("/opt/crates/lock_api-0.4.14/src/mutex.rs", "lock_api"),
            ("/src/app/vendor/flume/src/lib.rs", "flume"),
            ("/src/app/vendor/flume-0.11.1/src/lib.rs", "flume"),
            ("/build/cargo-deps-vendor/epaint-0.29.1/src/mutex.rs", "epaint"),
            ("vendor/flume/src/lib.rs", "flume"),
            ("/src/app/third_party/abseil/mutex.cc", "abseil"),
            ("dashmap-6.1.0/src/lib.rs", "dashmap"),
            ("...x.crates.io-1949cf8c6b5b557f/flume-0.11.1/src/lib.rs", "flume"),
            ("/home/me/go/pkg/mod/github.com/lib/pq@v1.10.9/conn.go", "pq"),
            ("/usr/include/boost/thread/mutex.hpp", "boost"),
            ("/usr/include/x86_64-linux-gnu/qt5/QtCore/qmutex.h", "qt5"),
            ("/usr/local/include/absl/synchronization/mutex.h", "absl"),
            ("/home/me/code/librip/src/lock/record.rs", "librip"),
            ("librip/src/lock/record.rs", "librip"),
            ("/home/me/code/librip/tokio/src/sync/mutex.rs", "librip"),
        ] {
            assert_eq!(file(path), library(name), "{path}");
        }
    }

    #[test]
    fn files_of_languages_and_of_the_system_are_known() {
        for (path, whose) in [
            ("/usr/include/c++/12/mutex", runtime(CPP)),
            ("/usr/lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/bits/std_mutex.h", runtime(CPP)),
            ("/usr/lib/llvm-19/bin/../include/c++/v1/__mutex/lock_guard.h", runtime(CPP)),
            (
                "/opt/cross/aarch64-linux-gnu/include/c++/14.2.0/aarch64-linux-gnu/bits/gthr-default.h",
                runtime(CPP),
            ),
            ("/home/me/c++/include/c++/v1/mutex", runtime(CPP)),
            ("/rustc/abc/library/core/src/result.rs", runtime(RUST)),
            ("/rustc/abc/library/backtrace/src/lib.rs", runtime(RUST)),
            ("/rust/deps/hashbrown-0.15.2/src/raw/mod.rs", runtime(RUST)),
            (
                "/home/me/.rustup/toolchains/stable/lib/rustlib/src/rust/library/std/src/thread/mod.rs",
                runtime(RUST),
            ),
            ("/usr/src/rustc-1.63.0/library/std/src/thread/mod.rs", runtime(RUST)),
            ("/usr/local/go/src/runtime/proc.go", runtime(GO)),
            ("/usr/lib/go-1.19/src/sync/mutex.go", runtime(GO)),
            ("./nptl/futex-internal.c", Whose::System),
            ("../sysdeps/unix/sysv/linux/x86_64/clone3.S", Whose::System),
            ("/build/glibc-6V9RKT/glibc-2.31/nptl/pthread_mutex_lock.c", Whose::System),
            ("/build/glibc-6V9RKT/glibc-2.31/io/read.c", Whose::System),
            ("/usr/include/stdlib.h", Whose::System),
            ("/usr/include/x86_64-linux-gnu/bits/stdio2.h", Whose::System),
        ] {
            assert_eq!(file(path), whose, "{path}");
        }
    }

    #[test]
    fn other_files_of_the_program_are_the_users() {
        for path in [
            "/home/me/c++/12/mutex.cc",
            "/src/include/c++/vector.h",
            "/home/me/library/core.rs",
            "/home/me/bank/src/main.rs",
            "src/main.rs",
            "src/registry/src/lib.rs",
            "main.c",
            // An archive that the user has unpacked and built, and the sources of a distribution's own program.
            "/home/me/redis-7.2.1/src/server.c",
            "/build/redis-4rDTKo/redis-7.0.15/src/networking.c",
            "/usr/src/app/src/main.rs",
            "/home/me/mylibrip/src/a.rs",
            "/home/me/vendor.rs",
            "/home/me/go/src/bank/main.go",
        ] {
            assert_eq!(file(path), Whose::User, "{path}");
        }
    }

    #[test]
    fn the_locks_of_the_recorder_for_cpp_are_its_own_wherever_they_are() {
        let of = |function, file| Whose::of(Some(function), Some(file), &Whose::User);
        let guard = "std::lock_guard<rip::basic_mutex<(rip::kind)0> >::~lock_guard()";
        for file in ["/opt/librip/include/rip.hpp", "/usr/include/rip.hpp", "rip.hpp"] {
            assert_eq!(of(guard, file), library("librip"), "{file}");
        }
        assert_eq!(of("Guard::lock()", "/src/app/rip.hpp"), Whose::User);
        assert_eq!(of("rip::f()", "/src/app/trip.hpp"), Whose::User);
    }

    #[test]
    fn without_a_path_the_function_decides() {
        let of = |function, file| Whose::of(Some(function), file, &Whose::User);
        assert_eq!(of("std::sys::sync::mutex::futex::Mutex::lock_contended", None), runtime(RUST));
        assert_eq!(of("<alloc::boxed::Box<T> as core::ops::FnOnce>::call_once", None), runtime(RUST));
        assert_eq!(of("parking_lot_core::parking_lot::park", None), library("parking_lot_core"));
        assert_eq!(of("librip::lock::enter", Some("enter.rs")), library("librip"));
        assert_eq!(of("pthread_mutex_lock", None), Whose::System);
        assert_eq!(of("__lll_lock_wait", None), Whose::System);
        assert_eq!(of("_start", None), Whose::System);
        assert_eq!(of("bank::transfer", None), Whose::User);
        assert_eq!(of("transfer", None), Whose::User);
        assert_eq!(of("core::lock", Some("core.c")), Whose::User, "a program in C");
        let own = "<std::sync::Mutex<T> as bank::Locks>::lock_both";
        assert_eq!(of(own, Some("/src/bank/src/lib.rs")), Whose::User, "the path says more");
        assert_eq!(Whose::of(None, None, &Whose::User), Whose::Unknown);
    }

    #[test]
    fn a_crate_is_a_librarys_if_the_program_has_its_path() {
        let crates = || ["dashmap".to_owned()].into();
        let of = |function| Whose::User.or_of_package(function, crates);
        assert_eq!(of("<dashmap::DashMap<K, V> as dashmap::t::Map>::_insert"), library("dashmap"));
        assert_eq!(of("bank::transfer"), Whose::User);
        assert_eq!(of("dashmap"), Whose::User);
        assert_eq!(Whose::System.or_of_package("dashmap::f", crates), Whose::System);
    }

    #[test]
    fn the_object_decides_where_all_of_its_code_is_of_one() {
        let object = |path: &str| Whose::of_object(Path::new(path), false);
        for (path, whose) in [
            ("/lib/x86_64-linux-gnu/libc.so.6", Whose::System),
            ("/opt/app/lib/ld-musl-x86_64.so.1", Whose::System),
            ("[vdso]", Whose::System),
            ("/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30", runtime(CPP)),
            ("/usr/lib/jvm/java-17/lib/server/libjvm.so", runtime("java")),
            ("/usr/local/lib/librip_preload.so", library("librip")),
            ("/usr/lib/x86_64-linux-gnu/libcrypto.so.3", library("libcrypto")),
            ("/nix/store/abc-openssl-3.0.12/lib/libssl.so.3", library("libssl")),
            ("/home/me/app/plugin.so", Whose::User),
            ("/opt/app/libapp.so", Whose::User),
            ("", Whose::Unknown),
        ] {
            assert_eq!(object(path), whose, "{path}");
        }
        let program = |path: &str| Whose::of_object(Path::new(path), true);
        assert_eq!(program("/usr/bin/redis-server"), Whose::User);
        assert_eq!(program("/usr/bin/python3.11"), runtime("python"));
        assert_eq!(program("/home/me/nodes"), Whose::User);
        let inside = Whose::of(Some("f"), Some("/src/app/src/f.c"), &object("/lib/libc.so.6"));
        assert_eq!(inside, Whose::System);
    }

    #[test]
    fn the_crate_of_a_method_is_that_of_its_type() {
        for (function, of) in [
            ("librip::sync::f", "librip"),
            ("<&mut server::A as core::fmt::Debug>::fmt", "server"),
            ("librip_tools::f", "librip_tools"),
            ("<dyn core::any::Any>::is", "core"),
        ] {
            assert_eq!(crate_of(function), of);
        }
    }

    #[test]
    fn the_path_of_a_script_tells_whose_it_is() {
        let runtime = Whose::Runtime("python".into());
        assert_eq!(Whose::of_script("/usr/lib/python3.11/threading.py"), runtime);
        assert_eq!(Whose::of_script("<frozen importlib._bootstrap>"), runtime);
        let requests = Whose::Library("requests".into());
        assert_eq!(Whose::of_script("/venv/lib/python3.11/site-packages/requests/api.py"), requests);
        assert_eq!(Whose::of_script("/usr/lib/python3/dist-packages/six.py"), Whose::Library("six".into()));
        assert_eq!(["/srv/app.py", "app.py", "<string>"].map(Whose::of_script), [const { Whose::User }; 3]);
    }
}
