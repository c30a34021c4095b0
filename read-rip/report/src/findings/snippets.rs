//! The source lines of a finding, as rustc shows them, with the roles of the threads as labels.
//!
//! It reads no files: `app` reads those that are certainly the compiled ones.

use std::collections::HashMap;
use std::sync::Arc;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use read_rip_model::findings::{Finding, Role};
use read_rip_model::locations::LocationId;

use crate::names::LockNames;
use crate::printable::printable;

/// The source files of locations.
#[derive(Debug, Default)]
pub struct Sources(HashMap<LocationId, Arc<str>>);

impl Sources {
    /// Adds the text of the file of a location.
    pub fn insert(&mut self, location: LocationId, text: Arc<str>) {
        self.0.insert(location, text);
    }
}

/// At most this many columns of a line are underlined: the label stands beside them.
const UNDERLINED_MAX: usize = 40;
/// More lines of one finding say little.
const LINES_MAX: usize = 8;

/// The lines of a finding; empty if none is at hand.
pub(super) fn snippets(finding: &Finding, names: &LockNames<'_>, sources: &Sources) -> String {
    if sources.0.is_empty() {
        return String::new();
    }
    let mut roles = finding.roles(names);
    roles.truncate(LINES_MAX);
    // Files in the order of their first role.
    let mut files: Vec<FileRoles<'_>> = Vec::new();
    for role in &roles {
        let Some((file, line)) = names.locations.get(role.location).users_source() else { continue };
        let Some(text) = sources.0.get(&role.location) else { continue };
        match files.iter_mut().find(|known| known.path == file) {
            Some(known) => known.lines.push((line, role)),
            None => files.push(FileRoles { path: file, text, lines: vec![(line, role)] }),
        }
    }
    let mut out = String::new();
    for file in &files {
        out += &snippet(file);
    }
    out
}

/// A source file, and what happens at its lines.
struct FileRoles<'r> {
    path: &'r str,
    text: &'r str,
    lines: Vec<(u32, &'r Role)>,
}

fn snippet(FileRoles { path, text, lines }: &FileRoles<'_>) -> String {
    // Escaped line by line: the numbers of the lines stay.
    let text: Vec<String> =
        text.lines().map(|line| printable(&line.replace('\t', "    ")).into_owned()).collect();
    let text = text.join("\n");
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let span = |line: u32| {
        let start = *starts.get((line as usize).checked_sub(1)?)?;
        let code = text[start..].split('\n').next()?;
        let indent = code.len() - code.trim_start().len();
        let len = code.trim().chars().take(UNDERLINED_MAX).map(char::len_utf8).sum::<usize>();
        (len > 0).then(|| start + indent..start + indent + len)
    };
    // A line with two roles has one label for both.
    let mut annotations: Vec<(u32, bool, String)> = Vec::new();
    for (line, role) in lines {
        match annotations.iter_mut().find(|(known, ..)| known == line) {
            Some((_, is_main, label)) => {
                *is_main |= role.is_main;
                *label += "; ";
                *label += &role.label;
            }
            None => annotations.push((*line, role.is_main, role.label.clone())),
        }
    }
    let annotations: Vec<_> = annotations
        .into_iter()
        .filter_map(|(line, is_main, label)| {
            let kind = if is_main { AnnotationKind::Primary } else { AnnotationKind::Context };
            Some(kind.span(span(line)?).label(label))
        })
        .collect();
    if annotations.is_empty() {
        return String::new();
    }
    let path = printable(path).into_owned();
    let snippet = Snippet::source(&*text).path(path).annotations(annotations);
    // The output removes colours where it is to have none.
    let renderer = Renderer::styled().decor_style(DecorStyle::Ascii);
    renderer.render(&[Group::with_level(Level::ERROR).element(snippet)]) + "\n"
}
