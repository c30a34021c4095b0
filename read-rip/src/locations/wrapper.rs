//! Where a wrapper around a lock was called.
//!
//! The marks of a wrapper are in its own source, which is inlined into the program's functions: to say that a thread
//! is in `Mutex::lock` helps nobody. Neither do the headers of C++'s standard library, whose locks call the functions that the
//! interposer stands in for. It knows functions and files only, and nothing of locks.

use super::without_arguments;
use crate::symbols::Frame;

/// The crates that wrappers are made of, and that their callers are not in.
const WRAPPERS: [&str; 7] = ["librip", "lock_api", "parking_lot", "parking_lot_core", "core", "std", "alloc"];

/// Removes the frames of the wrapper and of the standard library, so that the first is the function that called them, and
/// says where in its source the call is. `frames` begin with the innermost; `wrapper_file` is the source of the wrapper's
/// mark, if there is one.
///
/// If no frame is left, because they were not inlined or there is no debug information, the outermost alone remains, and
/// its line is theirs: `None`.
pub(super) fn leave(frames: &mut Vec<Frame>, wrapper_file: Option<&str>) -> Option<(String, u32)> {
    let is_left = |frame: &Frame| {
        frame.file.as_deref().is_some_and(is_standard)
            || wrapper_file.is_some_and(|file| is_wrapper(frame, file))
    };
    let caller = frames.iter().position(|frame| !is_left(frame));
    frames.drain(..caller.unwrap_or(frames.len().saturating_sub(1)));
    caller?;
    let caller = frames.first()?;
    Some((caller.file.clone()?, caller.line?))
}

/// Whether a source is that of Rust's or C++'s standard library.
pub(super) fn is_standard(file: &str) -> bool {
    // Where rustc found the standard library's source, the directory is that of the toolchain, else /rustc/HASH.
    let is_rust =
        || ["core", "alloc", "std"].iter().any(|name| file.contains(&format!("/library/{name}/src/")));
    is_rust() || is_cpp_header(file)
}

/// Whether a file is a header of libstdc++ or libc++: `include/c++/12/mutex`, `include/x86_64-linux-gnu/c++/12/bits/...`,
/// `include/c++/v1/mutex`.
fn is_cpp_header(file: &str) -> bool {
    let Some((before, behind)) = file.rsplit_once("/c++/") else { return false };
    let is_version = behind.trim_start_matches('v').starts_with(|digit: char| digit.is_ascii_digit());
    is_version && before.split('/').any(|directory| directory == "include")
}

/// Whether a frame is that of a wrapper, or of what it is made of.
fn is_wrapper(frame: &Frame, wrapper_file: &str) -> bool {
    let Some(function) = &frame.function else {
        return true;
    };
    let function = without_arguments(function);
    if function.contains("::") {
        return WRAPPERS.contains(&crate_of(&function));
    }
    // Debug information with line tables only has functions' last names; then the source tells.
    let Some(file) = &frame.file else { return false };
    is_of_crate(file, wrapper_file)
        || file.split('/').any(|directory| {
            let (name, version) = directory.split_once('-').unwrap_or_default();
            WRAPPERS.contains(&name) && version.starts_with(|digit: char| digit.is_ascii_digit())
        })
}

/// Whether a file is of the wrapper's crate: below the directory `src` that the wrapper's own source is in.
fn is_of_crate(file: &str, wrapper_file: &str) -> bool {
    let Some(at) = wrapper_file.rfind("/src/") else { return file == wrapper_file };
    let root = &wrapper_file[..at + "/src/".len()];
    file.rfind(root).is_some_and(|at| at == 0 || root.starts_with('/') || file[..at].ends_with('/'))
}

/// The crate of a function's path: of the type, where it is `<some::Type as some::Trait>::function`.
fn crate_of(function: &str) -> &str {
    let mut path = function.trim_start_matches(['<', '&', '*', ' ', '(', '[']);
    for prefix in ["mut ", "const ", "dyn "] {
        path = path.strip_prefix(prefix).unwrap_or(path);
    }
    path.split("::").next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, file: &str, line: u32) -> Frame {
        Frame {
            function: Some(function.into()),
            file: Some(file.into()),
            line: Some(line),
            column: None,
            is_inlined: true,
        }
    }

    fn functions(frames: &[Frame]) -> Vec<&str> {
        frames.iter().filter_map(|frame| frame.function.as_deref()).collect()
    }

    const FILE: &str = "librip/src/sync/mutex.rs";

    #[test]
    fn the_place_is_where_the_wrapper_was_called() {
        let mut frames = vec![
            frame("<librip::sync::mutex::Mutex<u32>>::lock", "/src/librip/src/sync/mutex.rs", 70),
            frame("core::result::Result<T,E>::unwrap", "/rustc/abc/library/core/src/result.rs", 1),
            frame("server::cache::get", "/src/server/cache.rs", 12),
            frame("server::main", "/src/server/main.rs", 5),
        ];
        assert_eq!(leave(&mut frames, Some(FILE)), Some(("/src/server/cache.rs".into(), 12)));
        assert_eq!(functions(&frames), ["server::cache::get", "server::main"]);
    }

    #[test]
    fn a_guard_that_is_dropped_is_dropped_by_its_owner() {
        let mut frames = vec![
            frame("<librip::sync::MutexGuard<T> as core::ops::drop::Drop>::drop", "mutex.rs", 1),
            frame("core::ptr::drop_in_place<librip::sync::MutexGuard<u32>>", "mod.rs", 2),
            frame("<server::Cache as core::ops::drop::Drop>::drop", "cache.rs", 3),
        ];
        assert_eq!(leave(&mut frames, Some(FILE)), Some(("cache.rs".into(), 3)));
        assert_eq!(functions(&frames).len(), 1);
    }

    #[test]
    fn a_wrapper_that_was_not_inlined_stays_the_place() {
        let mut frames = vec![
            frame("librip::lock::enter", "enter.rs", 1),
            frame("librip::sync::Mutex<T>::lock", "mutex.rs", 2),
        ];
        assert_eq!(leave(&mut frames, Some(FILE)), None);
        assert_eq!(functions(&frames), ["librip::sync::Mutex<T>::lock"]);
        assert_eq!(leave(&mut Vec::new(), Some(FILE)), None);
    }

    #[test]
    fn without_paths_the_source_tells() {
        let registry = "/home/me/registry/lock_api-0.4.14/src/mutex.rs";
        let mut frames = vec![
            frame("{closure#0}<u32>", "/src/librip/src/arch/x86_64.rs", 69),
            frame("begin<librip::sync::mutex::{closure_env#0}<u32>>", "/src/librip/src/lock/wrap.rs", 69),
            frame("lock<u32>", "/src/librip/src/sync/mutex.rs", 1),
            frame("lock<u32>", registry, 1),
            frame("unwrap<T>", "/rustc/abc/library/core/src/result.rs", 2),
            frame("get", "/src/server/cache.rs", 3),
        ];
        assert_eq!(leave(&mut frames, Some(FILE)), Some(("/src/server/cache.rs".into(), 3)));
        for (file, is_ours) in
            [("/x/librip/src/a.rs", true), ("/x/mylibrip/src/a.rs", false), ("librip/src/a.rs", true)]
        {
            assert_eq!(is_of_crate(file, FILE), is_ours, "{file}");
        }
        assert!(is_of_crate("/r/librip-0.1.0/src/arch/x.rs", "/r/librip-0.1.0/src/sync/mutex.rs"));
    }

    #[test]
    fn headers_of_the_standard_library_are_left_for_the_function_that_uses_them() {
        let call = |user: &[Frame]| {
            let mut frames = vec![
                frame(
                    "__gthread_mutex_lock",
                    "/usr/include/x86_64-linux-gnu/c++/12/bits/gthr-default.h",
                    749,
                ),
                frame("std::mutex::lock()", "/usr/include/c++/12/bits/std_mutex.h", 100),
                frame("std::lock_guard<std::mutex>::lock_guard", "/usr/include/c++/12/bits/std_mutex.h", 229),
            ];
            frames.extend_from_slice(user);
            frames
        };
        let mut frames = call(&[
            frame("std::unique_lock<std::mutex> taken<int>(std::mutex&)", "/src/bank.cc", 12),
            frame("void std::__invoke_impl<void, f>(f&&)", "/usr/include/c++/12/bits/invoke.h", 61),
        ]);
        assert_eq!(leave(&mut frames, None), Some(("/src/bank.cc".into(), 12)));
        assert_eq!(frames.len(), 2);
        let mut frames = call(&[]);
        assert_eq!(leave(&mut frames, None), None);
        assert_eq!(functions(&frames), ["std::lock_guard<std::mutex>::lock_guard"], "somewhere it is");
        // In the library itself, which is no header, or where there is no debug information.
        let mut frames =
            vec![Frame { file: None, line: None, ..frame("std::condition_variable::wait", "", 0) }];
        assert_eq!(leave(&mut frames, None), None);
        assert_eq!(functions(&frames), ["std::condition_variable::wait"]);
        // A call of a program in C, whatever its functions are called.
        let mut frames = vec![frame("core::lock", "core.c", 3), frame("main", "main.c", 9)];
        assert_eq!(leave(&mut frames, None), Some(("core.c".into(), 3)));
    }

    #[test]
    fn sources_of_the_standard_library_are_known_by_their_directories() {
        for (file, is_its) in [
            ("/usr/include/c++/12/mutex", true),
            ("/usr/lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/bits/std_mutex.h", true),
            ("/usr/lib/llvm-19/bin/../include/c++/v1/__mutex/lock_guard.h", true),
            ("/opt/cross/aarch64-linux-gnu/include/c++/14.2.0/aarch64-linux-gnu/bits/gthr-default.h", true),
            ("/home/me/c++/include/c++/v1/mutex", true),
            ("/rustc/abc/library/core/src/result.rs", true),
            ("/home/me/c++/12/mutex.cc", false),
            ("/src/include/c++/vector.h", false),
            ("/usr/include/boost/thread/mutex.hpp", false),
            ("/home/me/library/core.rs", false),
        ] {
            assert_eq!(is_standard(file), is_its, "{file}");
        }
    }

    #[test]
    fn crates_are_those_of_the_type() {
        for (function, of) in [
            ("librip::sync::f", "librip"),
            ("<&mut server::A as core::fmt::Debug>::fmt", "server"),
            ("librip_tools::f", "librip_tools"),
            ("<dyn core::any::Any>::is", "core"),
        ] {
            assert_eq!(crate_of(function), of);
        }
    }
}
