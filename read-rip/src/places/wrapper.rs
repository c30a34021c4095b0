//! Where a wrapper around a lock was called.
//!
//! The marks of a wrapper are in its own source, which is inlined into the program's functions: to say that a thread
//! is in `Mutex::lock` helps nobody. It knows functions and files only, and nothing of locks.

use super::without_arguments;
use crate::resolve::Frame;

/// The crates that wrappers are made of, and that their callers are not in.
const WRAPPERS: [&str; 7] = ["librip", "lock_api", "parking_lot", "parking_lot_core", "core", "std", "alloc"];

/// Removes the frames of the wrapper, so that the first is the function that called it, and says where in its source
/// the call is. `frames` begin with the innermost; `wrapper_file` is the source of the wrapper's mark.
///
/// If all frames are the wrapper's, because it was not inlined or there is no debug information, the outermost alone
/// remains, and its line is in the wrapper: `None`.
pub(super) fn leave(frames: &mut Vec<Frame>, wrapper_file: &str) -> Option<(String, u32)> {
    let caller = frames.iter().position(|frame| !is_wrapper(frame, wrapper_file));
    frames.drain(..caller.unwrap_or(frames.len().saturating_sub(1)));
    caller?;
    let caller = frames.first()?;
    Some((caller.file.clone()?, caller.line?))
}

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
        // Where rustc found the standard library's source, the directory is that of the toolchain, else /rustc/HASH.
        || ["core", "alloc", "std"].iter().any(|name| file.contains(&format!("/library/{name}/src/")))
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
        assert_eq!(leave(&mut frames, FILE), Some(("/src/server/cache.rs".into(), 12)));
        assert_eq!(functions(&frames), ["server::cache::get", "server::main"]);
    }

    #[test]
    fn a_guard_that_is_dropped_is_dropped_by_its_owner() {
        let mut frames = vec![
            frame("<librip::sync::MutexGuard<T> as core::ops::drop::Drop>::drop", "mutex.rs", 1),
            frame("core::ptr::drop_in_place<librip::sync::MutexGuard<u32>>", "mod.rs", 2),
            frame("<server::Cache as core::ops::drop::Drop>::drop", "cache.rs", 3),
        ];
        assert_eq!(leave(&mut frames, FILE), Some(("cache.rs".into(), 3)));
        assert_eq!(functions(&frames).len(), 1);
    }

    #[test]
    fn a_wrapper_that_was_not_inlined_stays_the_place() {
        let mut frames = vec![
            frame("librip::lock::enter", "enter.rs", 1),
            frame("librip::sync::Mutex<T>::lock", "mutex.rs", 2),
        ];
        assert_eq!(leave(&mut frames, FILE), None);
        assert_eq!(functions(&frames), ["librip::sync::Mutex<T>::lock"]);
        assert_eq!(leave(&mut Vec::new(), FILE), None);
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
        assert_eq!(leave(&mut frames, FILE), Some(("/src/server/cache.rs".into(), 3)));
        for (file, is_ours) in
            [("/x/librip/src/a.rs", true), ("/x/mylibrip/src/a.rs", false), ("librip/src/a.rs", true)]
        {
            assert_eq!(is_of_crate(file, FILE), is_ours, "{file}");
        }
        assert!(is_of_crate("/r/librip-0.1.0/src/arch/x.rs", "/r/librip-0.1.0/src/sync/mutex.rs"));
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
