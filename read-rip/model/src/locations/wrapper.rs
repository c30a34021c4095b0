//! Where a wrapper around a lock was called.
//!
//! The marks of a wrapper are in its own source, which is inlined into the program's functions. A report that a
//! thread is in `Mutex::lock` does not help. Neither does one that it is in a header of C++'s standard library,
//! whose locks call the interposed functions. Whose code a frame is, [`Whose`](read_rip_symbols::Whose) says. This file
//! compares files besides, and knows nothing of locks.

use read_rip_symbols::Frame;

/// Removes the frames of wrappers and of standard libraries, so that the first frame is that of their caller. Returns
/// the source of the call.
///
/// `frames` begin with the innermost one. `wrapper_file` is the source of the wrapper's mark, if there is a mark.
///
/// If all frames would be removed, because the wrapper was not inlined or there is no debug information, the
/// outermost frame stays and the result is `None`.
pub(super) fn remove_wrapper_frames(
    frames: &mut Vec<Frame>,
    wrapper_file: Option<&str>,
) -> Option<(std::sync::Arc<str>, u32)> {
    let is_removed = |frame: &Frame| {
        frame.whose.is_around_locks() || wrapper_file.is_some_and(|file| is_wrapper(frame, file))
    };
    let caller = frames.iter().position(|frame| !is_removed(frame));
    frames.drain(..caller.unwrap_or(frames.len().saturating_sub(1)));
    caller?;
    let caller = frames.first()?;
    Some((caller.file.clone()?, caller.line?))
}

/// Whether a frame belongs to a wrapper with a mark in this file, or to a function that the wrapper calls.
fn is_wrapper(frame: &Frame, wrapper_file: &str) -> bool {
    frame.function.is_none() || frame.file.as_deref().is_some_and(|file| is_of_crate(file, wrapper_file))
}

/// Whether a file belongs to the wrapper's crate: it is below the directory `src` of the wrapper's own source.
fn is_of_crate(file: &str, wrapper_file: &str) -> bool {
    let Some(at) = wrapper_file.rfind("/src/") else { return file == wrapper_file };
    let root = &wrapper_file[..at + "/src/".len()];
    file.rfind(root).is_some_and(|at| at == 0 || root.starts_with('/') || file[..at].ends_with('/'))
}

/// Whether two names mean one source file: `src/a.rs`, as a wrapper names it, and `/home/me/src/a.rs`, as debug
/// information does.
pub(super) fn is_same_file(whole: &str, end: &str) -> bool {
    let end = end.strip_prefix("./").unwrap_or(end);
    whole.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use read_rip_symbols::Whose;

    fn frame(function: &str, file: &str, line: u32) -> Frame {
        Frame {
            function: Some(function.into()),
            file: Some(file.into()),
            line: Some(line),
            column: None,
            is_inlined: true,
            whose: Whose::of(Some(function), Some(file), &Whose::User),
        }
    }

    fn functions(frames: &[Frame]) -> Vec<&str> {
        frames.iter().filter_map(|frame| frame.function.as_deref()).collect()
    }

    const FILE: &str = "librip/src/sync/mutex.rs";

    #[test]
    fn the_location_is_that_of_the_wrappers_caller() {
        let mut frames = vec![
            frame("<librip::sync::mutex::Mutex<u32>>::lock", "/src/librip/src/sync/mutex.rs", 70),
            frame("core::result::Result<T,E>::unwrap", "/rustc/abc/library/core/src/result.rs", 1),
            frame("server::cache::get", "/src/server/cache.rs", 12),
            frame("server::main", "/src/server/main.rs", 5),
        ];
        assert_eq!(remove_wrapper_frames(&mut frames, Some(FILE)), Some(("/src/server/cache.rs".into(), 12)));
        assert_eq!(functions(&frames), ["server::cache::get", "server::main"]);
    }

    #[test]
    fn the_location_of_a_dropped_guard_is_that_of_its_owner() {
        let mut frames = vec![
            frame("<librip::sync::MutexGuard<T> as core::ops::drop::Drop>::drop", "mutex.rs", 1),
            frame("core::ptr::drop_in_place<librip::sync::MutexGuard<u32>>", "mod.rs", 2),
            frame("<server::Cache as core::ops::drop::Drop>::drop", "cache.rs", 3),
        ];
        assert_eq!(remove_wrapper_frames(&mut frames, Some(FILE)), Some(("cache.rs".into(), 3)));
        assert_eq!(functions(&frames).len(), 1);
    }

    #[test]
    fn the_location_of_a_wrapper_that_was_not_inlined_is_the_wrapper() {
        let mut frames = vec![
            frame("librip::lock::enter", "enter.rs", 1),
            frame("librip::sync::Mutex<T>::lock", "mutex.rs", 2),
        ];
        assert_eq!(remove_wrapper_frames(&mut frames, Some(FILE)), None);
        assert_eq!(functions(&frames), ["librip::sync::Mutex<T>::lock"]);
        assert_eq!(remove_wrapper_frames(&mut Vec::new(), Some(FILE)), None);
    }

    #[test]
    fn without_function_paths_the_source_file_decides() {
        let registry = "/home/me/registry/lock_api-0.4.14/src/mutex.rs";
        let mut frames = vec![
            frame("{closure#0}<u32>", "/src/librip/src/arch/x86_64.rs", 69),
            frame("begin<librip::sync::mutex::{closure_env#0}<u32>>", "/src/librip/src/lock/wrap.rs", 69),
            frame("lock<u32>", "/src/librip/src/sync/mutex.rs", 1),
            frame("lock<u32>", registry, 1),
            frame("unwrap<T>", "/rustc/abc/library/core/src/result.rs", 2),
            frame("get", "/src/server/cache.rs", 3),
        ];
        assert_eq!(remove_wrapper_frames(&mut frames, Some(FILE)), Some(("/src/server/cache.rs".into(), 3)));
        for (file, is_ours) in
            [("/x/librip/src/a.rs", true), ("/x/mylibrip/src/a.rs", false), ("librip/src/a.rs", true)]
        {
            assert_eq!(is_of_crate(file, FILE), is_ours, "{file}");
        }
        assert!(is_of_crate("/r/librip-0.1.0/src/arch/x.rs", "/r/librip-0.1.0/src/sync/mutex.rs"));
    }

    #[test]
    fn the_location_of_code_in_standard_headers_is_that_of_its_caller() {
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
            frame("std::unique_lock<std::mutex> guarded<int>(std::mutex&)", "/src/bank.cc", 12),
            frame("void std::__invoke_impl<void, f>(f&&)", "/usr/include/c++/12/bits/invoke.h", 61),
        ]);
        assert_eq!(remove_wrapper_frames(&mut frames, None), Some(("/src/bank.cc".into(), 12)));
        assert_eq!(frames.len(), 2);
        let mut frames = call(&[]);
        assert_eq!(remove_wrapper_frames(&mut frames, None), None);
        assert_eq!(
            functions(&frames),
            ["std::lock_guard<std::mutex>::lock_guard"],
            "the outermost frame stays"
        );
        // A function of the library itself, not of a header, or one without debug information.
        let mut frames =
            vec![Frame { file: None, line: None, ..frame("std::condition_variable::wait", "", 0) }];
        assert_eq!(remove_wrapper_frames(&mut frames, None), None);
        assert_eq!(functions(&frames), ["std::condition_variable::wait"]);
        // A program in C whose function has the name of a Rust crate.
        let mut frames = vec![frame("core::lock", "core.c", 3), frame("main", "main.c", 9)];
        assert_eq!(remove_wrapper_frames(&mut frames, None), Some(("core.c".into(), 3)));
    }
}
