//! The source lines of a finding, as rustc shows them, with the roles of the threads as labels.
//!
//! It reads no files: `app` reads those that are certainly the compiled ones.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use read_rip_model::findings::{Finding, Role};
use read_rip_model::locations::LocationId;

use crate::names::LockNames;
use crate::printable::printable;

#[derive(Debug, Default)]
pub struct Sources(HashMap<LocationId, Arc<str>>);

impl Sources {
    /// Adds the text of the file of a location.
    pub fn insert(&mut self, location: LocationId, text: Arc<str>) {
        self.0.insert(location, text);
    }
}

/// At most this many columns of a line are underlined where the column of the call is not known.
const UNDERLINED_MAX: usize = 40;
const TAB: &str = "    ";
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
        let spot = names.locations.get(role.location).users_line().at;
        let Some((path, line)) = spot.source else { continue };
        let Some(text) = sources.0.get(&role.location) else { continue };
        let known = files.iter_mut().find(|known| known.path == path);
        let known_line = known.and_then(|file| file.lines.iter_mut().find(|(known, _)| *known == line));
        let role = (spot.column, role);
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

/// A role, and its column if that is known.
type At<'r> = (Option<u32>, &'r Role);

/// A source file, and what happens at its lines.
struct SourceFile<'r> {
    path: &'r str,
    text: &'r str,
    lines: Vec<(u32, Vec<At<'r>>)>,
}

fn snippet(SourceFile { path, text: file, lines }: &SourceFile<'_>) -> String {
    // Escaped line by line: the numbers of the lines stay.
    let text: Vec<String> =
        file.lines().map(|line| printable(&line.replace('\t', TAB)).into_owned()).collect();
    let text = text.join("\n");
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    // The original line says what a column means.
    let original: Vec<&str> = file.lines().collect();
    let span = |line: u32, column: Option<u32>| {
        let at = (line as usize).checked_sub(1)?;
        let (start, shown) = (*starts.get(at)?, text[*starts.get(at)?..].split('\n').next()?);
        let call = column.and_then(|column| call(original.get(at)?, shown, column));
        let Range { start: from, end } = call.or_else(|| whole(shown))?;
        Some(start + from..start + end)
    };
    let mut annotations = Vec::new();
    for (line, roles) in lines {
        for (column, roles) in by_column(roles) {
            let Some(span) = span(*line, column) else { continue };
            annotations.extend(labels(&roles).map(|(is_main, label)| {
                let kind = if is_main { AnnotationKind::Primary } else { AnnotationKind::Context };
                kind.span(span.clone()).label(label)
            }));
        }
    }
    if annotations.is_empty() {
        return String::new();
    }
    let path = printable(path).into_owned();
    let snippet = Snippet::source(&*text).path(path).annotations(annotations);
    // The output removes colours where it is to have none.
    let renderer = Renderer::styled().decor_style(DecorStyle::Ascii);
    renderer.render(&[Group::with_level(Level::ERROR).element(snippet)]) + "\n"
}

/// The roles of one line by their columns, in the order of their first role.
fn by_column<'r>(roles: &[At<'r>]) -> Vec<(Option<u32>, Vec<&'r Role>)> {
    let mut columns: Vec<(Option<u32>, Vec<&Role>)> = Vec::new();
    for &(column, role) in roles {
        match columns.iter_mut().find(|(known, _)| *known == column) {
            Some((_, roles)) => roles.push(role),
            None => columns.push((column, vec![role])),
        }
    }
    columns
}

/// All of a line, up to a limit.
fn whole(shown: &str) -> Option<Range<usize>> {
    let indent = shown.len() - shown.trim_start().len();
    let len = shown.trim().chars().take(UNDERLINED_MAX).map(char::len_utf8).sum::<usize>();
    (len > 0).then(|| indent..indent + len)
}

/// The call at a column of a line, as bytes of the line as it is shown; `None` if no name is there.
///
/// A column is one of bytes or of characters, as the compiler likes, and the shown line may have escapes. So only a
/// line of printable ASCII and tabs has calls. Some compilers name the parenthesis of a call or the dot before its
/// name: the name begins further left or right.
fn call(original: &str, shown: &str, column: u32) -> Option<Range<usize>> {
    if original.chars().any(|letter| !matches!(letter, '\t' | ' '..='~')) {
        return None;
    }
    let column = (column as usize).checked_sub(1).filter(|&column| column < original.len())?;
    let start = column + TAB.len().saturating_sub(1) * original[..column].matches('\t').count();
    let code = shown.as_bytes();
    let is_name =
        |at: usize| code.get(at).is_some_and(|&letter| letter == b'_' || letter.is_ascii_alphanumeric());
    let mut start = if is_name(start) { start } else { (0..start).rev().find(|&at| code[at] != b' ')? };
    if !is_name(start) {
        return None;
    }
    while start > 0 && is_name(start - 1) {
        start -= 1;
    }
    // The name, with what it is a field or method of, up to the first bracket.
    let is_path =
        |&letter: &u8| letter == b'_' || letter.is_ascii_alphanumeric() || b".:!&>-".contains(&letter);
    let mut end = start + code[start..].iter().take_while(|letter| is_path(letter)).count();
    let gap = code[end..].iter().take_while(|&&letter| letter == b' ').count();
    if code.get(end + gap) == Some(&b'(') {
        let mut depth = 0usize;
        let closes = |&letter: &u8| {
            match letter {
                b'(' => depth += 1,
                b')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        };
        let arguments = code[end + gap..].iter().position(closes);
        end = arguments.map_or(shown.trim_end().len(), |len| end + gap + len + 1);
    } else {
        end = start + shown[start..end].trim_end_matches(['.', ':', '!', '&', '>', '-']).len();
    }
    Some(start..end)
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
    fn the_call_at_a_column_is_underlined_and_nothing_else() {
        let underlined = |line: &str, column: u32| {
            let shown = line.replace('\t', TAB);
            call(line, &shown, column).map(|at| shown[at].to_owned())
        };
        let rust = "    let mut payer = from.lock().unwrap_or_else(PoisonError::into_inner);";
        assert_eq!(
            underlined(rust, 26).as_deref(),
            Some("lock()"),
            "where Rust says that a method is called"
        );
        assert_eq!(underlined(rust, 21).as_deref(), Some("from.lock()"), "where the expression begins");
        assert_eq!(underlined(rust, 33).as_deref(), Some("unwrap_or_else(PoisonError::into_inner)"));
        let c = "\tint failed = pthread_mutex_lock (&of[next(at)].lock);";
        assert_eq!(underlined(c, 15).as_deref(), Some("pthread_mutex_lock (&of[next(at)].lock)"));
        assert_eq!(underlined(c, 34).as_deref(), Some("pthread_mutex_lock (&of[next(at)].lock)"), "at `(`");
        assert_eq!(
            underlined("    take(first,", 5).as_deref(),
            Some("take(first,"),
            "it goes on in the next line"
        );
        assert_eq!(underlined("    store.lock().await;", 18).as_deref(), Some("await"));
        assert_eq!(underlined("    self->all.lock();", 5).as_deref(), Some("self->all.lock()"));
        assert_eq!(underlined("    take(é);", 5), None, "a column may count bytes");
        assert_eq!(underlined("    {", 5), None);
        assert_eq!(underlined("x", 7), None);
    }

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
