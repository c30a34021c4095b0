//! The findings of several rings as files for CI: JUnit and SARIF.
//!
//! A [`TestCase`] keeps what both formats say, so that no ring has to be kept. It opens no files.

mod junit;
mod sarif;

pub use junit::junit;
pub use sarif::sarif;

use read_rip_model::findings::{Confidence, Finding, Kind, Paragraph};

use super::advice::{advice, doubt_text};
use super::names::LockNames;

#[derive(Debug)]
pub struct TestCase {
    pub program: String,
    /// Its id; `None` if the ring has none, or could not be read.
    pub pid: Option<u32>,
    pub findings: Vec<CaseFinding>,
    /// Why it could not be checked, or how it ended.
    pub error: Option<String>,
}

/// A finding of a [`TestCase`].
#[derive(Debug)]
pub struct CaseFinding {
    kind: Kind,
    confidence: Confidence,
    summary: String,
    /// Evidence, doubts and advice.
    lines: Vec<String>,
    /// File and line of each location that it mentions.
    locations: Vec<(String, u32)>,
}

impl CaseFinding {
    /// Keeps what the files say about a finding.
    pub fn of(finding: &Finding, names: &LockNames<'_>) -> CaseFinding {
        let Paragraph { summary, evidence } = finding.paragraph(names);
        let mut lines = evidence;
        lines.extend(finding.doubts.iter().map(|&of| format!("doubt: {}", doubt_text(of, finding, names))));
        lines.extend(advice(finding, names).iter().map(|text| format!("next: {text}")));
        let mut locations: Vec<(String, u32)> = Vec::new();
        for &id in &finding.mentions.locations {
            let Some((file, line)) = names.locations.get(id).users_source() else { continue };
            let source = (file.to_owned(), line);
            if !locations.contains(&source) {
                locations.push(source);
            }
        }
        CaseFinding { kind: finding.kind, confidence: finding.confidence, summary, lines, locations }
    }

    fn text(&self) -> String {
        [std::slice::from_ref(&self.summary), &self.lines].concat().join("\n")
    }
}

impl TestCase {
    /// `PROGRAM[PID]`.
    fn name(&self) -> String {
        match self.pid {
            Some(pid) => format!("{}[{pid}]", self.program),
            None => self.program.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn cases() -> Vec<TestCase> {
        let finding = CaseFinding {
            kind: Kind::Deadlock,
            confidence: Confidence::Proven,
            summary: "2 threads wait for one another".into(),
            lines: vec!["a[1] waits for <B> & \"C\" at main bank.rs:7".into()],
            locations: vec![("src/my bank.rs".into(), 7), ("/rustc/ab/mutex.rs".into(), 9)],
        };
        let case =
            |pid, findings, error| TestCase { program: "bank".into(), pid: Some(pid), findings, error };
        vec![
            case(1, vec![finding], None),
            case(2, Vec::new(), None),
            case(3, Vec::new(), Some("ran for longer than 60 s".into())),
        ]
    }
}
