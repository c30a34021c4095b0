//! The source lines of a finding, as rustc shows them, with the roles of the threads as labels.
//!
//! It reads no files: `app` reads those that are certainly the compiled ones.

use std::collections::HashMap;
use std::sync::Arc;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::words::Words;
use crate::findings::{Blocker, Evidence, Finding, HoldFact, OrderEdge, WaitEdge, WaitFact, Waiters};
use crate::locations::LocationId;
use crate::printable::printable;
use crate::report::names::LockNames;

/// The source files of locations.
#[derive(Debug, Default)]
pub struct Sources(HashMap<LocationId, Arc<str>>);

impl Sources {
    /// Adds the text of the file of a location.
    pub fn insert(&mut self, location: LocationId, text: Arc<str>) {
        self.0.insert(location, text);
    }
}

/// More lines of one finding say little.
const LINES_MAX: usize = 8;

/// What happens at a line.
struct Role {
    location: LocationId,
    /// Whether a thread is stuck there.
    is_wait: bool,
    label: String,
}

/// The lines of a finding; empty if none is at hand.
pub(super) fn snippets(finding: &Finding, names: &LockNames<'_>, sources: &Sources) -> String {
    if sources.0.is_empty() {
        return String::new();
    }
    let mut words = Words::new(names, &finding.mentions.locks);
    let mut roles = roles(&finding.evidence, &mut words);
    roles.truncate(LINES_MAX);
    // Files in the order of their first role.
    let mut files: Vec<FileRoles<'_>> = Vec::new();
    for role in &roles {
        let Some((file, line)) = &names.locations.get(role.location).source else { continue };
        let Some(text) = sources.0.get(&role.location) else { continue };
        match files.iter_mut().find(|known| *known.path == **file) {
            Some(known) => known.lines.push((*line, role)),
            None => files.push(FileRoles { path: file, text, lines: vec![(*line, role)] }),
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
        let len = code.trim().len();
        (len > 0).then(|| start + indent..start + indent + len)
    };
    // A line with two roles has one label for both.
    let mut annotations: Vec<(u32, bool, String)> = Vec::new();
    for (line, role) in lines {
        match annotations.iter_mut().find(|(known, ..)| known == line) {
            Some((_, is_wait, label)) => {
                *is_wait |= role.is_wait;
                *label += "; ";
                *label += &role.label;
            }
            None => annotations.push((*line, role.is_wait, role.label.clone())),
        }
    }
    let annotations: Vec<_> = annotations
        .into_iter()
        .filter_map(|(line, is_wait, label)| {
            let kind = if is_wait { AnnotationKind::Primary } else { AnnotationKind::Context };
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

/// What threads do at the lines of a finding.
fn roles(evidence: &Evidence, words: &mut Words<'_>) -> Vec<Role> {
    let mut roles = Roles { words, all: Vec::new() };
    match evidence {
        Evidence::WaitCycle(cycle) => cycle.edges.iter().for_each(|edge| roles.wait_edge(edge)),
        Evidence::OrderCycle(cycle) => cycle.edges.iter().for_each(|edge| roles.order_edge(edge)),
        Evidence::DeadHolder(holder) => {
            roles.hold(&holder.hold);
            roles.waiters(&holder.waiters);
        }
        Evidence::IdleHolder(holder) => {
            roles.hold(&holder.hold);
            roles.waiters(&holder.waiters);
        }
        Evidence::Orphan(orphan) => {
            roles.waiters(&orphan.waiters);
            orphan.parent.iter().for_each(|hold| roles.hold(hold));
        }
        Evidence::DestroyedWhileHeld(destroyed) => roles.hold(&destroyed.hold),
        Evidence::StrayRelease(release) => {
            let label = format!(
                "{} releases {} here",
                roles.words.thread(release.thread),
                roles.words.short_lock(release.lock)
            );
            roles.add(release.location, true, label);
        }
        Evidence::SecondAcquisition(second) => {
            let (thread, lock) = (roles.words.thread(second.thread), roles.words.short_lock(second.lock));
            roles.add(second.first, false, format!("{thread} acquires {lock} here"));
            if let Some(location) = second.second {
                roles.add(location, true, "and again here".to_owned());
            }
        }
        Evidence::Queue(queue) => {
            queue.holder.iter().for_each(|holder| roles.hold(&holder.hold));
            roles.waiters(&queue.waiters);
        }
        _ => {}
    }
    roles.all
}

struct Roles<'w, 'a> {
    words: &'w mut Words<'a>,
    all: Vec<Role>,
}

impl Roles<'_, '_> {
    fn add(&mut self, location: LocationId, is_wait: bool, label: String) {
        self.all.push(Role { location, is_wait, label });
    }

    fn wait_edge(&mut self, edge: &WaitEdge) {
        self.wait(&edge.wait);
        if let Blocker::Holder(hold) = &edge.blocker {
            self.hold(hold);
        }
    }

    fn order_edge(&mut self, edge: &OrderEdge) {
        let thread = self.words.thread(edge.thread);
        let (held, acquired) =
            (self.words.short_lock(edge.held.lock), self.words.short_lock(edge.acquired.lock));
        self.add(edge.held.location, false, format!("{thread} acquires {held} here"));
        self.add(edge.acquired.location, true, format!("{thread} acquires {acquired} here"));
    }

    fn wait(&mut self, wait: &WaitFact) {
        let label =
            format!("{} waits for {} here", self.words.thread(wait.thread), self.words.short_lock(wait.lock));
        self.add(wait.location, true, label);
    }

    fn hold(&mut self, hold: &HoldFact) {
        let label = format!(
            "{} holds {} since here",
            self.words.thread(hold.thread),
            self.words.short_lock(hold.lock)
        );
        self.add(hold.location, false, label);
    }

    /// The first one: others wait at the same few lines.
    fn waiters(&mut self, waiters: &Waiters) {
        waiters.first.first().into_iter().for_each(|wait| self.wait(wait));
    }
}
