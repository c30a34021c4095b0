//! Findings that are known and not to be reported: the rules of a suppression file.
//!
//! It reads text and opens no file. One rule a line, blanks around it do not count, `#` begins a comment line:
//!
//! ```text
//! # The log's lock is meant to be slow.
//! contention:^LOG_LOCK$
//! lock-order:bank\.rs:3[57]
//! long-hold
//! ```
//!
//! `KIND` suppresses all findings of a kind. `KIND:REGEX` suppresses those in which the regular expression matches
//! somewhere in the name of a lock, in a function, or in a `file:line`.

use std::fmt;

use regex::Regex;

/// What is not to be reported.
#[derive(Debug)]
pub struct Suppression {
    kind: String,
    subject: Option<Regex>,
}

/// A line that is no rule.
#[derive(Debug)]
pub struct BadRule {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for BadRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl Suppression {
    /// Reads the rules of a file.
    ///
    /// # Errors
    ///
    /// The first line that is no rule: of an unknown kind, or with a regular expression that is none.
    pub fn parse(text: &str) -> Result<Vec<Suppression>, BadRule> {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        let rules = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        rules
            .map(|(line, rule)| {
                let (kind, subject) = match rule.split_once(':') {
                    Some((kind, subject)) => (kind.trim_end(), Some(subject.trim_start())),
                    None => (rule, None),
                };
                if !super::kinds().any(|known| known == kind) {
                    let kinds: Vec<&str> = super::kinds().collect();
                    let why = format!("there is no finding {kind:?}; there are {}", kinds.join(", "));
                    return Err(BadRule { line, why });
                }
                let subject = subject.map(Regex::new).transpose();
                let subject = subject.map_err(|error| BadRule { line, why: error.to_string() })?;
                Ok(Suppression { kind: kind.to_owned(), subject })
            })
            .collect()
    }

    /// Whether it suppresses a finding of this kind, with locks, functions and lines of these names.
    pub fn applies_to(&self, kind: &str, subjects: &[String]) -> bool {
        let matches = |regex: &Regex| subjects.iter().any(|subject| regex.is_match(subject));
        self.kind == kind && self.subject.as_ref().is_none_or(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_a_kind_and_perhaps_a_subject() -> Result<(), BadRule> {
        let rules =
            Suppression::parse("# known\n\n  contention: ^LOG$ \nlock-order:bank\\.rs:3[57]\r\nlivelock\n")?;
        assert_eq!(rules.len(), 3);
        let applies = |kind: &str, subject: &str| {
            let subjects = [subject.to_owned()];
            rules.iter().any(|rule| rule.applies_to(kind, &subjects))
        };
        assert!(applies("contention", "LOG"));
        assert!(!applies("contention", "BLOG"));
        assert!(!applies("convoy", "LOG"));
        assert!(applies("lock-order", "src/bank.rs:35"));
        assert!(!applies("lock-order", "src/bank.rs:36"));
        assert!(applies("livelock", "anything"));
        Ok(())
    }

    #[test]
    fn what_is_no_rule_is_an_error_with_its_line() {
        let errors =
            ["\n# x\nspaghetti", "deadlock:(", "Deadlock", ":x"].map(|text| Suppression::parse(text).err());
        let lines = errors.map(|error| error.map(|error| error.line));
        assert_eq!(lines, [Some(3), Some(1), Some(1), Some(1)]);
    }
}
