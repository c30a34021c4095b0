//! SARIF 2.1.0, the format of analysis results that GitHub and many editors read
//! (<https://docs.oasis-open.org/sarif/sarif/v2.1.0/>).
//!
//! Each kind of finding is a rule. The first location of a finding is its place, and the others are related to it.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use read_rip_model::findings::{Confidence, Kind};
use serde_json::{Value, json};

use super::{CaseFinding, TestCase};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// Writes a report on these processes. Files below `directory` get paths relative to it.
///
/// # Errors
///
/// Those of `out`.
pub fn sarif(out: &mut dyn Write, cases: &[TestCase], directory: &Path) -> io::Result<()> {
    let rules: Vec<Value> = Kind::ALL.iter().map(|kind| json!({"id": kind.name()})).collect();
    let results: Vec<Value> = cases
        .iter()
        .flat_map(|case| case.findings.iter().map(move |finding| result(case, finding, directory)))
        .collect();
    let errors = cases.iter().filter_map(|case| {
        let text = format!("{}: {}", case.name(), case.error.as_ref()?);
        Some(json!({"level": "error", "message": {"text": text}}))
    });
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "read-rip",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "invocations": [{
                "executionSuccessful": cases.iter().all(|case| case.error.is_none()),
                "toolExecutionNotifications": errors.collect::<Vec<Value>>(),
            }],
            "results": results,
        }],
    });
    serde_json::to_writer_pretty(&mut *out, &log)?;
    writeln!(out)
}

fn result(case: &TestCase, finding: &CaseFinding, directory: &Path) -> Value {
    let level = match finding.confidence {
        Confidence::Proven => "error",
        Confidence::Potential => "warning",
        Confidence::Suspected => "note",
    };
    let location = |(file, line): &(String, u32)| {
        // Line 0 is no line.
        json!({"physicalLocation": {
            "artifactLocation": {"uri": uri(file, directory)},
            "region": {"startLine": (*line).max(1)},
        }})
    };
    let mut locations = finding.locations.iter().map(location);
    let first: Vec<Value> = locations.next().into_iter().collect();
    json!({
        "ruleId": finding.kind.name(),
        "ruleIndex": Kind::ALL.iter().position(|&kind| kind == finding.kind),
        "level": level,
        "message": {"text": finding.text()},
        "locations": first,
        "relatedLocations": locations.collect::<Vec<Value>>(),
        "properties": {"confidence": finding.confidence.name(), "process": case.name()},
    })
}

/// A path as a reference of RFC 3986: relative where the file is below the directory, or where the compiler recorded
/// a relative path.
fn uri(file: &str, directory: &Path) -> String {
    let path = Path::new(file);
    let path = path.strip_prefix(directory).unwrap_or(path).to_string_lossy();
    let mut uri = String::from(if path.starts_with('/') { "file://" } else { "" });
    for &byte in path.as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(byte.into())
            }
            _ => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_a_result_with_its_rule_level_and_places() {
        let mut out = Vec::new();
        sarif(&mut out, &super::super::tests::cases(), Path::new("/work")).unwrap();
        let log: Value = serde_json::from_slice(&out).unwrap();
        let run = &log["runs"][0];
        let results = run["results"].as_array().unwrap();
        assert_eq!(results.len(), 1);
        let result = &results[0];
        assert_eq!((&result["ruleId"], &result["level"]), (&json!("deadlock"), &json!("error")));
        let rule = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(run["tool"]["driver"]["rules"][rule]["id"], "deadlock");
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "src/my%20bank.rs");
        assert_eq!(place["region"]["startLine"], 7);
        assert_eq!(result["relatedLocations"].as_array().unwrap().len(), 1);
        assert_eq!(run["invocations"][0]["executionSuccessful"], false);
        let told = &run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"];
        assert_eq!(told, "bank[3]: ran for longer than 60 s");
    }

    #[test]
    fn paths_are_relative_to_the_directory_or_absolute_uris() {
        let directory = Path::new("/home/me/project");
        assert_eq!(uri("/home/me/project/src/a.rs", directory), "src/a.rs");
        assert_eq!(uri("/rustc/1f/ü:.rs", directory), "file:///rustc/1f/%C3%BC%3A.rs");
        assert_eq!(uri("src/a.rs", directory), "src/a.rs");
    }
}
