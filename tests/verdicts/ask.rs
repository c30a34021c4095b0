//! Runs a scenario and asks `read-rip` about it. What it answers must fit the schema. Judges nothing else.

#[path = "../../read-rip/tests/support/schema.rs"]
mod schema;

use std::path::Path;

use librip_test_kit::reader;
use librip_test_kit::run::{first_of, of_type};
use librip_test_kit::victim::{Plan, Victim};
use serde_json::Value;

/// A scenario that has reached its state.
pub(crate) fn start(scenario: &str) -> Victim {
    let progressing =
        ["polite-neighbours-with-progress-marks", "moving-queue", "busy-with-progress", "ordered"];
    let program = if progressing.contains(&scenario) || scenario == "in-the-critical-section" {
        env!("CARGO_BIN_EXE_progressing")
    } else {
        env!("CARGO_BIN_EXE_scenario")
    };
    let plan = Plan::new(program, &[scenario]);
    // Counting overtakes needs times, and a longer history than the other scenarios.
    let plan = match scenario {
        "overtaken" => plan.env("RIP_WORDS", "512").env("RIP_CLOCK", "all"),
        _ => plan,
    };
    let mut victim = plan.start();
    victim.until("ready");
    victim
}

/// What `read-rip ARGUMENTS RING` prints.
pub(crate) fn printed(arguments: &[&str], ring: &Path) -> String {
    reader::ask(arguments, ring).stdout
}

/// What `read-rip check` found.
#[derive(Debug)]
pub(crate) struct Answer {
    /// `confidence kind`, in the order of the findings.
    pub(crate) findings: Vec<String>,
    /// Its whole output.
    pub(crate) lines: Vec<Value>,
    pub(crate) status: i32,
    #[expect(dead_code, reason = "shown when a test fails")]
    pub(crate) stderr: String,
}

impl Answer {
    /// Whether there is a finding of one of these kinds, however sure.
    pub(crate) fn accuses(&self, kinds: &[&str]) -> bool {
        let is_of = |found: &String| kinds.iter().any(|kind| found.split_once(' ').unwrap().1 == *kind);
        self.findings.iter().any(is_of)
    }

    /// The data of the lines of this type.
    pub(crate) fn data<'a>(&'a self, kind: &'a str) -> Vec<&'a Value> {
        of_type(&self.lines, kind).collect()
    }

    /// The first finding.
    #[track_caller]
    pub(crate) fn finding(&self) -> &Value {
        first_of(&self.lines, "finding")
    }

    /// What was read, and the balance.
    #[track_caller]
    pub(crate) fn checked(&self) -> &Value {
        first_of(&self.lines, "checked")
    }

    /// The names of the threads of a finding, sorted.
    pub(crate) fn threads(&self, finding: usize) -> Vec<String> {
        self.names(finding, "threads")
    }

    /// The names of the locks of a finding, sorted.
    pub(crate) fn locks(&self, finding: usize) -> Vec<String> {
        self.names(finding, "locks")
    }

    fn names(&self, finding: usize, field: &str) -> Vec<String> {
        let finding = self.data("finding")[finding];
        let things = finding[field].as_array().unwrap_or_else(|| panic!("no {field}: {finding}"));
        let name = |thing: &Value| thing["name"].as_str().map(str::to_owned);
        let mut names: Vec<String> =
            things.iter().map(|thing| name(thing).unwrap_or_else(|| panic!("no name: {thing}"))).collect();
        names.sort();
        names
    }
}

/// The codes of a list of doubts, premises or advice.
pub(crate) fn codes(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|item| item["code"].as_str()).collect()
}

/// Asks about a ring; `more` goes before it on the command line.
pub(crate) fn check(ring: &Path, more: &[&str]) -> Answer {
    let mut arguments = vec!["check", "--json"];
    arguments.extend(more);
    let output = reader::ask(&arguments, ring);
    let lines = output.json();
    lines.iter().for_each(schema::assert_valid);
    let findings = of_type(&lines, "finding").map(|finding| {
        let field = |name: &str| finding[name].as_str().unwrap_or("?").to_owned();
        format!("{} {}", field("confidence"), field("kind"))
    });
    let findings = findings.collect();
    Answer { findings, lines, status: output.status, stderr: output.stderr }
}
