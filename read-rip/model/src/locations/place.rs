//! The place in the program where a thread stands, from its stack.
//!
//! A thread that waits is in the C library, and before that in the locks of a standard library. What its user wants to
//! see is the line of the program that called them.

use read_rip_evidence::stacks::{Frame, Stack};
use read_rip_symbols as symbols;

use super::c_library::is_of_c_library;
use super::location::Location;
use super::wrapper::{is_of_wrapper_crate, is_standard_library};
use super::{LocationId, Locations};

/// How many frames are looked at.
const DEPTH: usize = 64;

/// What the files of C libraries, loaders and of other libraries that wait on behalf of a program begin with.
const SYSTEM_LIBRARIES: &[&str] = &[
    "libc.so",
    "libc-",
    "libpthread",
    "ld-linux",
    "ld-musl",
    "ld-2",
    "libstdc++",
    "libc++",
    "libgcc_s",
    "librip_preload",
    "[vdso]",
];

impl Locations<'_> {
    /// The place of a stack of a process: its innermost frame in the program's own code. Where no source of that is
    /// known, the innermost function that is none of a standard library by its name; then the innermost frame outside
    /// of system libraries, or just the innermost one. `None` without frames.
    pub fn place(&mut self, pid: u32, stack: &Stack) -> Option<LocationId> {
        let (mut named, mut outside) = (None, None);
        for frame in stack.frames.iter().take(DEPTH) {
            // Nothing is looked up in the debug information of system libraries: it is large.
            if self.is_of_system(pid, *frame) {
                continue;
            }
            let id = self.of_frame(pid, *frame);
            if is_of_program(self.get(id)) {
                return Some(id);
            }
            if !is_of_library(self.get(id)) {
                named = named.or(Some(id));
            }
            outside = outside.or(Some(id));
        }
        named.or(outside).or_else(|| stack.frames.first().map(|&frame| self.of_frame(pid, frame)))
    }

    /// Whether a function of a stack is the one that has this location, or the one into which that was inlined. True if
    /// that is not known.
    pub fn is_within(&mut self, pid: u32, stack: &Stack, location: LocationId) -> bool {
        let Some((module, function)) = self.get(location).compiled_function() else { return true };
        stack.frames.iter().any(|&frame| {
            // Nothing is looked up in other modules.
            let is_there = self.module_of(pid, frame.lookup()).is_some_and(|(of, _)| of == module);
            is_there && {
                let id = self.of_frame(pid, frame);
                self.get(id).compiled_function().is_none_or(|(_, of)| of == function)
            }
        })
    }

    /// Whether a frame is in a system library.
    fn is_of_system(&mut self, pid: u32, frame: Frame) -> bool {
        let Some((module, _)) = self.module_of(pid, frame.lookup()) else { return false };
        let name = self.module_name(module);
        name.is_some_and(|name| SYSTEM_LIBRARIES.iter().any(|library| name.starts_with(library)))
    }

    /// The frames at an address of a process, the inlined ones first. Empty if nothing is known of it.
    pub fn frames(&mut self, pid: u32, address: u64) -> Vec<symbols::Frame> {
        let Some((module, relative)) = self.module_of(pid, address) else { return Vec::new() };
        let mut frames = self.resolver_mut().resolve(module, relative);
        if frames.is_empty()
            && let Some(name) = self.module_name(module)
        {
            let function = Some(format!("{name}+{relative:#x}").into());
            frames.push(symbols::Frame { function, ..symbols::Frame::default() });
        }
        frames
    }

    /// The location of a frame of a stack.
    pub fn of_frame(&mut self, pid: u32, frame: Frame) -> LocationId {
        match frame.is_return_address {
            true => self.find_call(pid, frame.pc),
            false => self.find_in(pid, frame.pc),
        }
    }
}

/// Whether the source is known, and is not that of a standard library.
fn is_of_program(location: &Location) -> bool {
    location.source.is_some() && !is_of_library(location)
}

/// Whether the source or the function is that of a standard library, or of a wrapper around locks.
fn is_of_library(location: &Location) -> bool {
    match &location.source {
        _ if location.is_in_wrapper || is_of_wrapper_crate(&location.full_function) => true,
        Some((file, _)) => is_standard_library(file) || is_c_library(file),
        None => is_of_c_library(&location.full_function),
    }
}

/// Whether a source file is one of a C library: a static program has their code.
fn is_c_library(file: &str) -> bool {
    file.contains("/sysdeps/")
        || file.contains("/nptl/")
        || file.starts_with("../sysdeps")
        || file.starts_with("./nptl")
}
