//! JUnit's XML: a test case for each process, with a failure for each finding.
//!
//! The form is the one that Jenkins, GitLab and GitHub's actions read:
//! <https://github.com/testmoapp/junitxml>.

use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::events::BytesText;

use super::{CaseFinding, TestCase};

/// Writes a report on these processes.
///
/// # Errors
///
/// Those of `out`.
pub fn junit(out: &mut dyn Write, cases: &[TestCase]) -> io::Result<()> {
    let failures = cases.iter().filter(|case| !case.findings.is_empty()).count().to_string();
    let errors = cases.iter().filter(|case| case.error.is_some()).count().to_string();
    let counts = [("tests", cases.len().to_string()), ("failures", failures), ("errors", errors)];
    let counts = || counts.iter().map(|(name, count)| (*name, &**count));
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    let mut writer = Writer::new_with_indent(&mut *out, b' ', 2);
    writer.create_element("testsuites").with_attributes(counts()).write_inner_content(|suites| {
        let suite = suites.create_element("testsuite").with_attribute(("name", "read-rip check"));
        suite
            .with_attributes(counts())
            .write_inner_content(|suite| cases.iter().try_for_each(|case| test_case(suite, case)))?;
        Ok(())
    })?;
    writeln!(out)
}

fn test_case<W: Write>(suite: &mut Writer<W>, case: &TestCase) -> io::Result<()> {
    let (name, program) = (text(&case.name()), text(&case.program));
    let element = suite.create_element("testcase").with_attribute(("name", &*name));
    let element = element.with_attribute(("classname", &*program));
    if case.findings.is_empty() && case.error.is_none() {
        element.write_empty()?;
        return Ok(());
    }
    element.write_inner_content(|element| {
        case.findings.iter().try_for_each(|finding| failure(element, finding))?;
        if let Some(error) = &case.error {
            element.create_element("error").with_attribute(("message", &*text(error))).write_empty()?;
        }
        Ok(())
    })?;
    Ok(())
}

fn failure<W: Write>(element: &mut Writer<W>, finding: &CaseFinding) -> io::Result<()> {
    let kind = format!("{} {}", finding.confidence.name(), finding.kind.name());
    let message = text(&format!("{kind}: {}", finding.summary));
    let failure = element.create_element("failure").with_attribute(("type", &*kind));
    failure
        .with_attribute(("message", &*message))
        .write_text_content(BytesText::new(&text(&finding.text())))?;
    Ok(())
}

/// XML 1.0 has no control characters but tab and the ends of lines, not even escaped, and neither U+FFFE nor U+FFFF.
fn text(text: &str) -> String {
    let is_possible = |letter: char| {
        matches!(letter, '\t' | '\n') || !(letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}'))
    };
    text.chars().map(|letter| if is_possible(letter) { letter } else { '\u{fffd}' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_a_test_case_and_its_findings_are_failures() {
        let mut out = Vec::new();
        junit(&mut out, &super::super::tests::cases()).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="3" failures="1" errors="1">
  <testsuite name="read-rip check" tests="3" failures="1" errors="1">
    <testcase name="bank[1]" classname="bank">
      <failure type="proven deadlock" message="proven deadlock: 2 threads wait for one another">2 threads wait for one another
a[1] waits for &lt;B&gt; &amp; &quot;C&quot; at main bank.rs:7</failure>
    </testcase>
    <testcase name="bank[2]" classname="bank"/>
    <testcase name="bank[3]" classname="bank">
      <error message="ran for longer than 60 s"/>
    </testcase>
  </testsuite>
</testsuites>
"#
        );
    }

    #[test]
    fn letters_that_xml_does_not_have_are_replaced() {
        assert_eq!(text("a\u{0}b\u{1b}c\u{ffff}\td\n"), "a\u{fffd}b\u{fffd}c\u{fffd}\td\n");
    }
}
