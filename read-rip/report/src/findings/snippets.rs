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
/// At most this many labels stand below a line: the evidence has said the same.
const LABELS_MAX: usize = 4;

/// The lines of a finding; empty if none is at hand.
pub(super) fn snippets(finding: &Finding, names: &LockNames<'_>, sources: &Sources) -> String {
    if sources.0.is_empty() {
        return String::new();
    }
    let roles = finding.roles(names);
    // Files and lines in the order of their first role.
    let mut files: Vec<SourceFile<'_>> = Vec::new();
    let mut left = LINES_MAX;
    for role in &roles {
        let Some((path, line)) = names.locations.get(role.location).users_source() else { continue };
        let Some(text) = sources.0.get(&role.location) else { continue };
        let known = files.iter_mut().find(|known| known.path == path);
        let known_line = known.and_then(|file| file.lines.iter_mut().find(|(known, _)| *known == line));
        if let Some((_, roles)) = known_line {
            roles.push(role);
            continue;
        }
        let Some(fewer) = left.checked_sub(1) else { continue };
        left = fewer;
        match files.iter_mut().find(|known| known.path == path) {
            Some(known) => known.lines.push((line, vec![role])),
            None => files.push(SourceFile { path, text, lines: vec![(line, vec![role])] }),
        }
    }
    files.iter().map(snippet).collect()
}

/// A source file, and what happens at its lines.
struct SourceFile<'r> {
    path: &'r str,
    text: &'r str,
    lines: Vec<(u32, Vec<&'r Role>)>,
}

fn snippet(SourceFile { path, text, lines }: &SourceFile<'_>) -> String {
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
    let annotations: Vec<_> = lines
        .iter()
        .filter_map(|(line, roles)| Some((span(*line)?, roles)))
        .flat_map(|(span, roles)| {
            labels(roles).map(move |(is_main, label)| {
                let kind = if is_main { AnnotationKind::Primary } else { AnnotationKind::Context };
                kind.span(span.clone()).label(label)
            })
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

/// The labels of a line, and whether each is of a thread that is stuck there: the first ones, and how many more there
/// are.
fn labels(roles: &[&Role]) -> impl Iterator<Item = (bool, String)> {
    let shown = if roles.len() > LABELS_MAX { LABELS_MAX - 1 } else { roles.len() };
    let more = roles.len() - shown;
    let more = (more > 0).then(|| (roles[shown].is_main, format!("and {more} more")));
    let first = roles[..shown].iter().map(|role| (role.is_main, role.label.clone()));
    first.chain(more).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_many_roles_has_labels_for_the_first_and_counts_the_others() {
        let role = |at: usize| Role { location: 0, is_main: at == 3, label: format!("thread {at}") };
        let roles: Vec<Role> = (0..9).map(role).collect();
        let of = |count: usize| {
            let roles: Vec<&Role> = roles.iter().take(count).collect();
            labels(&roles).map(|(_, label)| label).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(of(4), "thread 0, thread 1, thread 2, thread 3");
        assert_eq!(of(5), "thread 0, thread 1, thread 2, and 2 more");
        assert_eq!(of(9), "thread 0, thread 1, thread 2, and 6 more");
    }
}
