//! What a resolver has found, to be kept with a saved ring: on another machine the files may be missing.
//!
//! It looks nothing up.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::whose::Whose;
use super::{CallerLine, Frame};

/// An address, relative to a module that is given by its index.
type At = (usize, u64);

/// What is known of addresses. An address that was asked about and has no answer is kept too.
#[derive(Debug, Default)]
pub struct Answers {
    frames: HashMap<At, Vec<Frame>>,
    namesakes: HashMap<At, Vec<String>>,
    statics: HashMap<At, Option<(String, u64)>>,
    caller_lines: HashMap<At, Option<CallerLine>>,
    call_targets: HashMap<At, Option<u64>>,
    function_begins: HashMap<At, Option<u64>>,
    called_imports: HashMap<At, Option<String>>,
    debug_info: HashMap<usize, bool>,
    packages: HashMap<usize, Arc<[String]>>,
}

impl Answers {
    /// The kept answer, or the one that `find` gives, which is kept if `keeps`.
    pub(super) fn frames(&mut self, at: At, keeps: bool, find: impl FnOnce() -> Vec<Frame>) -> Vec<Frame> {
        kept(&mut self.frames, at, keeps, find)
    }

    /// As [`Answers::frames`].
    pub(super) fn namesakes(
        &mut self,
        at: At,
        keeps: bool,
        find: impl FnOnce() -> Vec<String>,
    ) -> Vec<String> {
        kept(&mut self.namesakes, at, keeps, find)
    }

    /// As [`Answers::frames`].
    pub(super) fn static_at(
        &mut self,
        at: At,
        keeps: bool,
        find: impl FnOnce() -> Option<(String, u64)>,
    ) -> Option<(String, u64)> {
        kept(&mut self.statics, at, keeps, find)
    }

    /// As [`Answers::frames`].
    pub(super) fn caller_line(
        &mut self,
        at: At,
        keeps: bool,
        find: impl FnOnce() -> Option<CallerLine>,
    ) -> Option<CallerLine> {
        kept(&mut self.caller_lines, at, keeps, find)
    }

    /// As [`Answers::frames`].
    pub(super) fn call_target(
        &mut self,
        at: At,
        keeps: bool,
        find: impl FnOnce() -> Option<u64>,
    ) -> Option<u64> {
        kept(&mut self.call_targets, at, keeps, find)
    }

    /// As [`Answers::frames`].
    pub(super) fn called_import(
        &mut self,
        at: At,
        keeps: bool,
        find: impl FnOnce() -> Option<String>,
    ) -> Option<String> {
        kept(&mut self.called_imports, at, keeps, find)
    }

    /// As [`Answers::frames`].
    pub(super) fn function_begin(
        &mut self,
        at: At,
        keeps: bool,
        find: impl FnOnce() -> Option<u64>,
    ) -> Option<u64> {
        kept(&mut self.function_begins, at, keeps, find)
    }

    /// As [`Answers::frames`], for a module. They are looked for once.
    pub(super) fn packages(&mut self, module: usize, find: impl FnOnce() -> Vec<String>) -> Arc<[String]> {
        kept(&mut self.packages, module, true, || find().into())
    }

    /// As [`Answers::frames`], for a module.
    pub(super) fn has_debug_info(&mut self, module: usize, keeps: bool, find: impl FnOnce() -> bool) -> bool {
        kept(&mut self.debug_info, module, keeps, find)
    }
}

fn kept<K: Eq + Hash, T: Clone>(
    known: &mut HashMap<K, T>,
    at: K,
    keeps: bool,
    find: impl FnOnce() -> T,
) -> T {
    if let Some(answer) = known.get(&at) {
        return answer.clone();
    }
    let answer = find();
    if keeps {
        known.insert(at, answer.clone());
    }
    answer
}

/// `Answers` as a file has them.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct SavedAnswers {
    frames: Vec<(At, Vec<SavedFrame>)>,
    namesakes: Vec<(At, Vec<String>)>,
    statics: Vec<(At, Option<(String, u64)>)>,
    caller_lines: Vec<(At, Option<CallerLine>)>,
    #[serde(default)]
    call_targets: Vec<(At, Option<u64>)>,
    #[serde(default)]
    function_begins: Vec<(At, Option<u64>)>,
    #[serde(default)]
    called_imports: Vec<(At, Option<String>)>,
    debug_info: Vec<(usize, bool)>,
    #[serde(default)]
    packages: Vec<(usize, Vec<String>)>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct SavedFrame {
    function: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    is_inlined: bool,
}

impl From<&Answers> for SavedAnswers {
    fn from(answers: &Answers) -> SavedAnswers {
        let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        let frame = |frame: &Frame| SavedFrame {
            function: text(&frame.function),
            file: text(&frame.file),
            line: frame.line,
            column: frame.column,
            is_inlined: frame.is_inlined,
        };
        let frames = answers.frames.iter().map(|(&at, frames)| (at, frames.iter().map(frame).collect()));
        let mut saved = SavedAnswers {
            frames: frames.collect(),
            namesakes: answers.namesakes.iter().map(|(&at, names)| (at, names.clone())).collect(),
            statics: answers.statics.iter().map(|(&at, found)| (at, found.clone())).collect(),
            caller_lines: answers.caller_lines.iter().map(|(&at, found)| (at, found.clone())).collect(),
            call_targets: answers.call_targets.iter().map(|(&at, &found)| (at, found)).collect(),
            function_begins: answers.function_begins.iter().map(|(&at, &found)| (at, found)).collect(),
            called_imports: answers.called_imports.iter().map(|(&at, found)| (at, found.clone())).collect(),
            debug_info: answers.debug_info.iter().map(|(&module, &has)| (module, has)).collect(),
            packages: answers.packages.iter().map(|(&module, of)| (module, of.to_vec())).collect(),
        };
        // So that equal rings make equal files.
        saved.frames.sort_by_key(|&(at, _)| at);
        saved.namesakes.sort_by_key(|&(at, _)| at);
        saved.statics.sort_by_key(|&(at, _)| at);
        saved.caller_lines.sort_by_key(|&(at, _)| at);
        saved.call_targets.sort_unstable();
        saved.function_begins.sort_unstable();
        saved.called_imports.sort_unstable();
        saved.debug_info.sort_unstable();
        saved.packages.sort_unstable();
        saved
    }
}

impl From<SavedAnswers> for Answers {
    fn from(saved: SavedAnswers) -> Answers {
        let text = |text: Option<String>| text.map(Arc::from);
        let frame = |frame: SavedFrame| Frame {
            function: text(frame.function),
            file: text(frame.file),
            line: frame.line,
            column: frame.column,
            is_inlined: frame.is_inlined,
            // It follows from the rest: the resolver says it.
            whose: Whose::Unknown,
        };
        let frames = saved.frames.into_iter();
        Answers {
            frames: frames.map(|(at, frames)| (at, frames.into_iter().map(frame).collect())).collect(),
            namesakes: saved.namesakes.into_iter().collect(),
            statics: saved.statics.into_iter().collect(),
            caller_lines: saved.caller_lines.into_iter().collect(),
            call_targets: saved.call_targets.into_iter().collect(),
            function_begins: saved.function_begins.into_iter().collect(),
            called_imports: saved.called_imports.into_iter().collect(),
            debug_info: saved.debug_info.into_iter().collect(),
            packages: saved.packages.into_iter().map(|(module, of)| (module, of.into())).collect(),
        }
    }
}
