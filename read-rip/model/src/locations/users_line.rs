//! The line of the user: which of a location's frames a person wants to see.
//!
//! A location has frames: its own function, those into which that was inlined, and calls further out that a stack
//! shows. Where a thread waits in a library, the user wants to know which line of his own program has called it, and
//! what it called. Whose code a frame is, [`Whose`] says.

use std::borrow::Cow;

use read_rip_symbols::{Frame, Whose};

use super::Location;
use super::function_name::without_arguments;
use super::location::is_no_function;

/// At most this many calls further out are shown.
const CALLERS_MAX: usize = 2;

/// A function of a location, with its line.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'a> {
    /// The function with its type arguments; empty if nothing names it.
    pub function: &'a str,
    pub source: Option<(&'a str, u32)>,
    /// The column of that line, from 1; `None`: not known.
    pub column: Option<u32>,
    pub whose: &'a Whose,
}

#[derive(Clone, Debug)]
pub struct UsersLine<'a> {
    /// The innermost function of the user. If there is none, the innermost function of the location.
    pub at: Spot<'a>,
    /// Its place among the frames of the location; 0: the location's own function.
    pub index: usize,
    /// The function of a library that the user's function has called, in which the thread is.
    pub called: Option<Spot<'a>>,
    /// The user's function into which that function was inlined.
    pub inlined_into: Option<Spot<'a>>,
    /// The user's functions further out that a stack shows.
    pub callers: Vec<Spot<'a>>,
}

impl<'a> Spot<'a> {
    fn of(frame: &'a Frame) -> Spot<'a> {
        Spot {
            function: frame.function.as_deref().unwrap_or_default(),
            source: frame.file.as_deref().zip(frame.line),
            column: frame.column,
            whose: &frame.whose,
        }
    }

    /// Whether it is the user's and has a line.
    fn is_line_of_user(&self) -> bool {
        self.whose.may_be_users() && self.source.is_some()
    }

    /// Whether the last part of its name is like that of a lock: `my::mutex::lock()`, `Guard::Guard(my::mutex&)`.
    fn is_named_like_a_lock(&self) -> bool {
        let path = without_arguments(self.function);
        let path = path.split('(').next().unwrap_or_default();
        let name = path.rsplit("::").next().unwrap_or_default().to_ascii_lowercase();
        // A block or a clock is none.
        let is_lock = |(at, _): (usize, &str)| !name[..at].ends_with(['b', 'c']);
        name.match_indices("lock").any(is_lock)
            || ["mutex", "acquire", "guard", "wait"].iter().any(|word| name.contains(word))
    }

    /// Whether it is the user's and has a name.
    fn is_function_of_user(&self) -> bool {
        self.whose.may_be_users() && !is_no_function(self.function)
    }
}

/// Whether a frame is the user's and has a line.
pub(super) fn is_users_line(frame: &Frame) -> bool {
    Spot::of(frame).is_line_of_user()
}

/// Whether a frame is the user's and has a name.
pub(super) fn is_users_function(frame: &Frame) -> bool {
    Spot::of(frame).is_function_of_user()
}

/// Whether a function of the user is named like one of a lock: who has called it says more.
pub(super) fn is_named_like_a_lock(frame: &Frame) -> bool {
    Spot::of(frame).is_named_like_a_lock()
}

impl Location {
    /// All frames, the innermost first.
    pub fn spots(&self) -> impl Iterator<Item = Spot<'_>> {
        let own = Spot {
            function: &self.full_function,
            source: self.source.as_ref().map(|(file, line)| (&**file, *line)),
            column: self.column,
            whose: &self.whose,
        };
        std::iter::once(own).chain(self.callers.iter().chain(&self.outer).map(Spot::of))
    }

    pub fn users_line(&self) -> UsersLine<'_> {
        let index = self.users_index();
        let is_around = |spot: &Spot<'_>| !spot.whose.is_around_locks() && spot.whose.package().is_some();
        let called = self.spots().take(index).filter(is_around).last();
        let at = self.spots().nth(index).unwrap_or_else(|| self.own());
        let (inlined_into, callers) = self.users_callers(index);
        UsersLine { at, index, called, inlined_into, callers }
    }

    pub fn users_source(&self) -> Option<(&str, u32)> {
        self.users_line().at.source
    }

    /// The function for the user, without type arguments; empty if nothing names it. If the linker folded several: all
    /// that symbols name.
    pub fn users_function(&self) -> Cow<'_, str> {
        let line = self.users_line();
        if line.index > 0 { without_arguments(line.at.function) } else { Cow::Borrowed(&self.function) }
    }

    /// Whether the line of the user is known, and says where the user is: not in a lock of his own.
    pub(super) fn tells_users_line(&self) -> bool {
        let line = self.users_line();
        line.at.is_line_of_user() && (line.inlined_into.is_some() || !line.at.is_named_like_a_lock())
    }

    /// Whether one of the frames is known to be the user's, or may be.
    pub fn has_users_line(&self) -> bool {
        self.spots().any(|spot| spot.is_line_of_user())
    }

    fn own(&self) -> Spot<'_> {
        Spot { function: &self.full_function, source: None, column: None, whose: &self.whose }
    }

    /// The innermost line of the user, or else the innermost function of the user, or else the innermost frame. A
    /// location without a name may be the user's.
    fn users_index(&self) -> usize {
        let line = self.spots().position(|spot| spot.is_line_of_user());
        let function = || match self.whose.may_be_users() {
            true => Some(0),
            false => self.spots().position(|spot| spot.is_function_of_user()),
        };
        line.or_else(function).unwrap_or(0)
    }

    /// The user's functions further out than a frame: the one into which it was inlined, and one for each call.
    fn users_callers(&self, index: usize) -> (Option<Spot<'_>>, Vec<Spot<'_>>) {
        let is_users = |frame: &&Frame| frame.whose.may_be_users();
        let inlined = self.callers.get(index..).unwrap_or_default().iter().find(is_users);
        let beyond = index.saturating_sub(self.callers.len());
        // A frame that was not inlined is the last one of its call: one of each call is enough.
        let mut rest = self.outer.get(beyond..).unwrap_or_default();
        if index > self.callers.len() {
            // The functions into which the frame itself was inlined are those of the same call.
            let own = &self.outer[beyond - 1];
            let end = rest.iter().position(|frame| !frame.is_inlined).map_or(rest.len(), |last| last + 1);
            rest = &rest[if own.is_inlined { end } else { 0 }..];
        }
        let calls = rest.split_inclusive(|frame| !frame.is_inlined);
        // Who has called the function that has called a library says little, unless that is a lock of the user's own.
        let at = self.spots().nth(index);
        let is_told = index <= self.callers.len() || at.is_some_and(|at| at.is_named_like_a_lock());
        let calls = calls.filter_map(|call| call.iter().find(is_users)).take(CALLERS_MAX);
        let calls = calls.filter(|_| is_told);
        (inlined.map(Spot::of), calls.map(Spot::of).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, file: &str, line: u32, is_inlined: bool) -> Frame {
        Frame {
            function: Some(function.into()),
            file: Some(file.into()),
            line: Some(line),
            column: None,
            is_inlined,
            whose: Whose::of(Some(function), Some(file), &Whose::User),
        }
    }

    fn location(own: &Frame, callers: &[Frame], outer: &[Frame]) -> Location {
        Location {
            full_function: own.function.clone().unwrap(),
            source: own.file.clone().zip(own.line),
            whose: own.whose.clone(),
            callers: callers.to_vec(),
            outer: outer.to_vec(),
            ..Location::default()
        }
    }

    const REGISTRY: &str = "/home/me/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f";

    fn dashmap() -> [Frame; 3] {
        let file = format!("{REGISTRY}/dashmap-6.1.0/src/lib.rs");
        [
            frame("dashmap::lock::RawRwLock::lock_exclusive_slow", &file, 127, false),
            frame("_insert<u64>", &file, 950, false),
            frame("insert<u64>", &file, 473, true),
        ]
    }

    #[test]
    fn the_line_is_the_users_and_the_library_function_is_the_one_that_it_called() {
        let [slow, inner, insert] = dashmap();
        let user = frame("app::fork_session", "/src/app/src/main.rs", 8, true);
        let closure = frame("app::main::{closure#0}", "/src/app/src/main.rs", 26, false);
        let begin = frame("std::thread::start", "/rustc/abc/library/std/src/thread/mod.rs", 1, false);
        let found = location(&slow, &[], &[inner, insert, user, closure, begin]);
        let line = found.users_line();
        assert_eq!(line.at.source, Some(("/src/app/src/main.rs", 8)));
        assert_eq!(line.called.map(|spot| spot.function), Some("insert<u64>"));
        assert_eq!(line.called.and_then(|spot| spot.whose.package()), Some("dashmap"));
        assert_eq!((line.index, line.callers.len()), (3, 0));
    }

    #[test]
    fn a_lock_of_a_standard_library_is_not_told() {
        let own =
            frame("std::sync::mpsc::Receiver::recv", "/rustc/abc/library/std/src/sync/mpsc.rs", 1, false);
        let user = frame("app::take", "/src/app/src/main.rs", 8, false);
        let found = location(&own, &[], &[user]);
        let line = found.users_line();
        assert_eq!((line.at.function, line.called.is_none()), ("app::take", true));
    }

    #[test]
    fn the_users_own_line_comes_with_what_it_was_inlined_into_and_with_the_calls_of_a_stack() {
        let own = frame("my::mutex::lock()", "/src/mutex.hpp", 13, true);
        let callers =
            [frame("std::f", "/usr/include/c++/12/mutex", 3, true), frame("inner", "/src/a.cc", 4, false)];
        let outer = [
            frame("std::g", "/usr/include/c++/12/mutex", 3, true),
            frame("middle", "/src/a.cc", 5, true),
            frame("same", "/src/a.cc", 6, false),
            frame("outer", "/src/a.cc", 7, false),
            frame("main", "/src/a.cc", 8, false),
        ];
        let found = location(&own, &callers, &outer);
        let line = found.users_line();
        let callers = line.inlined_into.iter().chain(&line.callers);
        let callers: Vec<&str> = callers.map(|spot| spot.function).collect();
        assert_eq!((line.index, line.at.function), (0, "my::mutex::lock()"));
        assert_eq!(callers, ["inner", "middle", "outer"]);
    }

    #[test]
    fn in_a_stripped_program_the_location_is_the_innermost_address() {
        let address = |name: &str| Frame { file: None, line: None, ..frame(name, "", 0, false) };
        let own =
            Location { outer: vec![address("prog+0x15"), address("prog+0x25")], ..Location::unknown(5) };
        let line = own.users_line();
        assert_eq!((line.index, line.callers.len()), (0, 2));
    }

    #[test]
    fn functions_that_are_named_like_those_of_locks_are_known() {
        for (function, is_like) in [
            ("my::mutex::lock()", true),
            ("Guard::Guard(my::mutex&)", true),
            ("ReadLock<my::lock>::ReadLock", true),
            ("app::Table::lock_rows", true),
            ("SpinAcquire", true),
            ("wait_for_room", true),
            ("app::block_on", false),
            ("clock_tick(lock&)", false),
            ("transfer", false),
            ("my::mutex::size", false),
        ] {
            assert_eq!(is_named_like_a_lock(&frame(function, "/src/a.cc", 1, false)), is_like, "{function}");
        }
    }

    #[test]
    fn without_a_line_of_the_user_his_function_counts_and_else_the_innermost_one() {
        let [slow, inner, _] = dashmap();
        let nameless =
            Frame { file: None, line: None, whose: Whose::User, ..frame("app::main", "", 0, false) };
        let found = location(&slow, &[], &[inner.clone(), nameless]);
        assert_eq!(found.users_line().at.function, "app::main");
        let found = location(&slow, &[], &[inner]);
        let line = found.users_line();
        assert_eq!((line.index, line.called.is_none()), (0, true));
        assert_eq!(line.at.whose.package(), Some("dashmap"));
    }
}
