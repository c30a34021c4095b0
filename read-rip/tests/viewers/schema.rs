//! The schema of `--json`, read by Python's library for the standard.

use crate::support::exports::crew;
use crate::support::fixture::{Fixture, Scratch};
use crate::support::run::read_rip;
use crate::tools;

/// Reads a schema and a file of lines. Prints how many lines fit, and how many do once their type is unknown.
const JUDGE: &str = "import json, sys\n\
    from jsonschema import Draft202012Validator\n\
    schema, lines = [open(name).read() for name in sys.argv[1:]]\n\
    Draft202012Validator.check_schema(json.loads(schema))\n\
    is_valid = Draft202012Validator(json.loads(schema)).is_valid\n\
    lines = [json.loads(line) for line in lines.splitlines()]\n\
    print(sum(map(is_valid, lines)), sum(is_valid({**line, 'type': 'opinion'}) for line in lines))";

#[test]
fn the_schema_is_one_of_the_standard_and_lines_fit_it() {
    let Some(mut python) = tools::python("jsonschema") else { return };
    let (fixture, scratch) = (Fixture::of(&crew()), Scratch::new());
    let ring = fixture.path.to_str().unwrap();
    let said = ["check", "locks", "info"].map(|command| read_rip([command, "--json", ring]).stdout);
    let lines = scratch.path("lines");
    std::fs::write(&lines, said.concat()).unwrap();
    let schema = librip_test_kit::tool::repository().join("read-rip/json-schema.json");
    let out = python.args(["-c", JUDGE]).arg(schema).arg(&lines).output().unwrap();
    let judged = String::from_utf8(out.stdout).unwrap();
    let count = said.concat().lines().count();
    assert!(count > 5, "{said:?}");
    assert_eq!(judged, format!("{count} 0\n"), "{}", String::from_utf8_lossy(&out.stderr));
}
