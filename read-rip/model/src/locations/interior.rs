//! The place of a thread by the frames that its language's runtime has for it.
//!
//! It has no address: it is where the interpreter says that the thread is.

use std::sync::Arc;

use read_rip_evidence::runtimes::SourceFrame;
use read_rip_symbols::{Frame, Whose};

use super::{Location, LocationId, Locations};

impl Locations<'_> {
    /// The place of a thread that is in these functions of its language, the innermost first. If its native stack
    /// is at a line of the user's, who has written code that the interpreter calls, that stays the place, and the
    /// language's functions are its callers.
    pub(crate) fn of_interior(
        &mut self,
        native: Option<LocationId>,
        frames: &[SourceFrame],
    ) -> Option<LocationId> {
        let native = native.filter(|&id| self.get(id).has_users_line());
        let key = (native, frames.into());
        if let Some(&known) = self.by_interior.get(&key) {
            return Some(known);
        }
        let mut all = frames.iter().map(frame);
        let location = match native {
            Some(native) => {
                let mut location = self.get(native).clone();
                // The record may have the line of one of the frames.
                let is_same =
                    |frame: &Frame| frame.file.as_deref().zip(frame.line) == location.users_source();
                let known = all.clone().position(|frame| is_same(&frame)).map_or(0, |at| at + 1);
                location.outer.extend(all.skip(known));
                location
            }
            None => {
                let Frame { function, file, line, whose, .. } = all.next()?;
                let function: Arc<str> = function?;
                let full_function = function.clone();
                let (source, outer) = (file.zip(line), all.collect());
                Location { function, full_function, source, outer, whose, ..Location::default() }
            }
        };
        let id = self.add(location);
        self.by_interior.insert(key, id);
        Some(id)
    }
}

/// A frame of a language, as one of a stack.
fn frame(of: &SourceFrame) -> Frame {
    Frame {
        function: Some(of.function.as_str().into()),
        file: Some(of.file.as_str().into()),
        line: of.line,
        column: None,
        is_inlined: false,
        whose: Whose::of_script(&of.file),
    }
}
