//! The place in the program where a thread stands, from its stack.
//!
//! A thread that waits is in the C library, and before that in the locks of a standard library or of a package. A place
//! begins with the innermost function around those locks. If that is not the user's, the calls further out are part of
//! the place, up to the user's own code: [`Location::users_line`](super::Location::users_line) says which line that is.

use read_rip_evidence::stacks::{Frame, Stack};
use read_rip_symbols::{self as symbols, Whose};

use super::users_line::{is_named_like_a_lock, is_users_function, is_users_line};
use super::wrapper::is_same_file;
use super::{LocationId, Locations};

/// How many frames are looked at.
const DEPTH: usize = 64;
/// How many calls of the user are kept that lead to a lock of the user's own.
const CALLERS_MAX: usize = 2;

impl Locations<'_> {
    /// The place of a stack of a process: its innermost frame in the program's own code, or in a package, but for those
    /// around locks. Where no source of that is known, the innermost function that is none of a standard library by its
    /// name; then the innermost frame outside of system libraries, or just the innermost one. The calls further out
    /// follow, up to the user's own code. `None` without frames.
    pub fn place(&mut self, pid: u32, stack: &Stack) -> Option<LocationId> {
        let (mut named, mut outside) = (None, None);
        for (at, &frame) in stack.frames.iter().enumerate().take(DEPTH) {
            // Nothing is looked up in the debug information of system libraries: it is large.
            if self.object_of(pid, frame).is_some_and(|object| is_below(&object)) {
                continue;
            }
            let id = self.of_frame(pid, frame);
            let location = self.get(id);
            if !is_below(&location.whose) && !location.is_in_wrapper {
                if location.source.is_some() {
                    return Some(self.up_to_user(pid, id, &stack.frames[at + 1..]));
                }
                named = named.or(Some((at, id)));
            }
            outside = outside.or(Some((at, id)));
        }
        let innermost = || Some((0, self.of_frame(pid, *stack.frames.first()?)));
        let (at, id) = named.or(outside).or_else(innermost)?;
        Some(self.up_to_user(pid, id, &stack.frames[at + 1..]))
    }

    /// Whether a function of a stack is the one that has this location, or the one into which that was inlined. True if
    /// that is not known.
    pub fn is_within(&mut self, pid: u32, stack: &Stack, location: LocationId) -> bool {
        let Some(function) = self.get(location).compiled_function() else { return true };
        stack.frames.iter().any(|&frame| {
            // Nothing is looked up in other modules.
            let is_there = self.module_of(pid, frame.lookup()).is_some_and(|(of, _)| of == function.0);
            is_there && {
                let id = self.of_frame(pid, frame);
                self.get(id).compiled_function().is_none_or(|of| of == function)
            }
        })
    }

    /// The location at which a thread waits by the record, with the calls further out that its stack shows. It is the
    /// same location if the stack does not lead there, or if there is nothing to add.
    pub(crate) fn on_stack(&mut self, pid: u32, id: LocationId, stack: &Stack) -> LocationId {
        let location = self.get(id);
        if location.tells_users_line() || !location.outer.is_empty() {
            return id;
        }
        // If the location's function was inlined into the user's, its own frame has the user's.
        let after = usize::from(location.has_users_line());
        let at = stack.frames.iter().take(DEPTH).position(|&frame| self.leads_to(pid, id, frame));
        at.map_or(id, |at| self.up_to_user(pid, id, &stack.frames[at + after..]))
    }

    /// Whether a frame of a stack is the function of a location, or is at its line.
    fn leads_to(&mut self, pid: u32, id: LocationId, frame: Frame) -> bool {
        let Some((module, address)) = self.module_of(pid, frame.lookup()) else { return false };
        let location = self.get(id);
        let (own_module, own, source) = (location.module, location.address, location.source.clone());
        if own_module == Some(module) && self.modules()[module].code.contains(&own) {
            let resolver = self.resolver_mut();
            let begin = resolver.function_begin(module, own);
            if begin.is_some() && begin == resolver.function_begin(module, address) {
                return true;
            }
        }
        let Some((file, line)) = source else { return false };
        let is_there = |frame: &symbols::Frame| {
            frame.line == Some(line) && frame.file.as_deref().is_some_and(|whole| is_same_file(whole, &file))
        };
        self.resolver_mut().resolve(module, address).iter().any(is_there)
    }

    /// A location with the calls further out, up to the user's own code, and beyond a function of the user that is
    /// named like a lock's.
    fn up_to_user(&mut self, pid: u32, id: LocationId, further: &[Frame]) -> LocationId {
        let location = self.get(id);
        if location.tells_users_line() {
            return id;
        }
        // How many of the user's calls are still looked for.
        let mut missing = if location.has_users_line() { CALLERS_MAX } else { 1 + CALLERS_MAX };
        let is_of_user = location.whose.may_be_users();
        let (mut calls, mut useful, mut named) = (Vec::new(), 0, 0);
        for &frame in further.iter().take(DEPTH).filter(|frame| frame.is_return_address) {
            calls.push(frame.pc);
            // Nothing is looked up in system libraries.
            if self.object_of(pid, frame).is_some_and(|object| is_below(&object)) {
                continue;
            }
            let frames = self.frames_of_call(pid, frame.pc);
            let mut of_user = frames.iter().filter(|frame| is_users_line(frame));
            if named == 0 && frames.iter().any(is_users_function) {
                named = calls.len();
            }
            let Some(first) = of_user.next() else { continue };
            useful = calls.len();
            let is_first = missing > CALLERS_MAX;
            let is_told = is_first && (!is_named_like_a_lock(first) || of_user.next().is_some());
            missing -= 1;
            if missing == 0 || is_told {
                break;
            }
        }
        // Without debug information, a function of the user says where it is.
        calls.truncate(if useful == 0 && !is_of_user { named } else { useful });
        if calls.is_empty() { id } else { self.with_calls(pid, id, calls, true) }
    }

    fn object_of(&self, pid: u32, frame: Frame) -> Option<Whose> {
        let (module, _) = self.module_of(pid, frame.lookup())?;
        Some(self.resolver.object(module))
    }

    /// The frames at an address of a process, the inlined ones first. Empty if nothing is known of it.
    pub fn frames(&mut self, pid: u32, address: u64) -> Vec<symbols::Frame> {
        let Some((module, relative)) = self.module_of(pid, address) else { return Vec::new() };
        let mut frames = self.resolver_mut().resolve(module, relative);
        if frames.is_empty()
            && let Some(name) = self.module_name(module)
        {
            let function = Some(format!("{name}+{relative:#x}").into());
            let whose = self.resolver.object(module);
            frames.push(symbols::Frame { function, whose, ..symbols::Frame::default() });
        }
        frames
    }

    pub fn of_frame(&mut self, pid: u32, frame: Frame) -> LocationId {
        match frame.is_return_address {
            true => self.find_call(pid, frame.pc),
            false => self.find_in(pid, frame.pc),
        }
    }
}

/// Whether code is below the program and its packages: the thread is there because one of these has called it.
fn is_below(whose: &Whose) -> bool {
    matches!(whose, Whose::System) || whose.is_around_locks()
}
