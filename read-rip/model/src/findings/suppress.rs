//! The rules of a suppression file: known findings that are not to be reported.
//!
//! It parses text and opens no file. A rule is a line. Blanks around it do not count, and `#` begins a comment line:
//!
//! ```text
//! # The lock of the log is slow on purpose.
//! contention:^LOG_LOCK$
//! lock-order:bank\.rs:3[57]
//! long-hold
//! ```
//!
//! `KIND` suppresses all findings of a kind. `KIND:REGEX` suppresses the findings in which the regular expression
//! matches somewhere in the name of a lock, in the full name of a function, or in a `PATH:LINE`. Names and paths
//! are those of the program, not the short ones of the text output. So a rule does not depend on what else is in
//! the ring.

use std::fmt;

use regex::Regex;

use super::{Finding, Kind, View};
use crate::locations::Location;
use crate::locks::LockName;

/// A rule: findings that are not to be reported.
#[derive(Debug)]
pub struct Suppression {
    kind: Kind,
    subject: Option<Regex>,
}

/// A line that is not a rule.
#[derive(Debug)]
pub struct BadRule {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: BadRuleReason,
}

/// What is wrong with a rule.
#[derive(Debug)]
pub enum BadRuleReason {
    /// There is no finding of this kind.
    UnknownKind(String),
    /// The regular expression cannot be used.
    Regex(regex::Error),
}

impl fmt::Display for BadRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.why {
            BadRuleReason::UnknownKind(kind) => {
                let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
                write!(f, "unknown kind of finding {kind:?}; the kinds are {}", kinds.join(", "))
            }
            BadRuleReason::Regex(error) => write!(f, "{error}"),
        }
    }
}

impl Suppression {
    /// Parses the rules of a file.
    ///
    /// # Errors
    ///
    /// The first line that is not a rule: its kind is unknown, or its regular expression is invalid.
    pub fn parse(text: &str) -> Result<Vec<Suppression>, BadRule> {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        let rules = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        rules.map(|(line, rule)| Suppression::parse_rule(rule).map_err(|why| BadRule { line, why })).collect()
    }

    fn parse_rule(rule: &str) -> Result<Suppression, BadRuleReason> {
        let (name, subject) = match rule.split_once(':') {
            Some((name, subject)) => (name.trim_end(), Some(subject.trim_start())),
            None => (rule, None),
        };
        let kind = Kind::of_name(name).ok_or_else(|| BadRuleReason::UnknownKind(name.to_owned()))?;
        let subject = subject.map(Regex::new).transpose().map_err(BadRuleReason::Regex)?;
        Ok(Suppression { kind, subject })
    }

    /// Whether it suppresses a finding.
    pub fn applies_to(&self, finding: &Finding, view: &View<'_>) -> bool {
        self.kind == finding.kind
            && self
                .subject
                .as_ref()
                .is_none_or(|regex| subjects(finding, view).iter().any(|subject| regex.is_match(subject)))
    }
}

/// The names of the locks of a finding, and the functions and lines of its locations.
fn subjects(finding: &Finding, view: &View<'_>) -> Vec<String> {
    let mut subjects = Vec::new();
    for &lock in &finding.mentions.locks {
        subjects.extend(view.now.locks[lock].class.clone());
        match &view.now.locks[lock].name {
            LockName::Given(name) | LockName::Symbol(name) => subjects.push(name.clone()),
            LockName::Location(location) => subjects.extend(names_of(view.locations[*location])),
            LockName::None => {}
        }
    }
    for &location in &finding.mentions.locations {
        subjects.extend(names_of(view.locations[location]));
    }
    subjects
}

/// The full names of the function and of the user's function, and every `PATH:LINE` that the location may be.
fn names_of(location: &Location) -> impl Iterator<Item = String> {
    let user = location.users_line().at;
    let lines = location.source.iter().chain(&location.folded).map(|(file, line)| (&**file, *line));
    let lines = lines.chain(user.source).map(|(file, line)| format!("{file}:{line}"));
    [location.full_function.to_string(), user.function.to_owned()].into_iter().chain(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{Scene, finding_about};

    /// Whether some of these rules suppress a finding of this kind about a lock of this name.
    fn is_suppressed(rules: &[Suppression], kind: Kind, name: &str) -> bool {
        let mut scene = Scene::new();
        scene.lock(name);
        scene.location("/src/bank.rs", 35);
        let finding = finding_about(kind, &[0]);
        scene.with_view(|view| rules.iter().any(|rule| rule.applies_to(&finding, view)))
    }

    #[test]
    fn rules_name_a_kind_and_may_name_a_subject() -> Result<(), BadRule> {
        let text =
            "# known\n\n  contention: ^LOG$ \nlock-order:^/src/bank\\.rs:3[57]$\r\nlivelock\nconvoy:^work$";
        let rules = Suppression::parse(text)?;
        assert_eq!(rules.len(), 4);
        assert!(is_suppressed(&rules, Kind::Contention, "LOG"));
        assert!(!is_suppressed(&rules, Kind::Contention, "BLOG"));
        assert!(!is_suppressed(&rules, Kind::PileUp, "LOG"));
        assert!(is_suppressed(&rules, Kind::LockOrder, "any"), "the path and the line");
        assert!(!is_suppressed(&rules[..1], Kind::LockOrder, "any"));
        assert!(is_suppressed(&rules, Kind::Livelock, "any"));
        assert!(is_suppressed(&rules, Kind::Convoy, "any"), "the function");
        Ok(())
    }

    #[test]
    fn a_line_that_is_not_a_rule_is_an_error_with_its_number() {
        let errors =
            ["\n# x\nspaghetti", "deadlock:(", "Deadlock", ":x"].map(|text| Suppression::parse(text).err());
        let lines = errors.map(|error| error.map(|error| error.line));
        assert_eq!(lines, [Some(3), Some(1), Some(1), Some(1)]);
    }
}
