//! Whether lines of `--json` fit `json-schema.json`.
//!
//! Readers of the output must accept fields that later versions add, so the schema allows them. The tests do not: they
//! close every object of the schema first.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};

/// The schema, as users have it.
pub(crate) fn schema() -> Value {
    let path = librip_test_kit::tool::repository().join("read-rip/json-schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The same schema, closed to fields that it does not describe.
fn closed(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(object) => {
            if object.get("type") == Some(&json!("object")) && object.contains_key("properties") {
                object.insert("additionalProperties".into(), json!(false));
            }
            object.values_mut().for_each(|value| *value = closed(value.take()));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| *value = closed(value.take())),
        _ => {}
    }
    schema
}

/// The type of lines that a case of the schema describes.
pub(crate) fn type_of(line: &Value) -> &Value {
    &line["properties"]["type"]["const"]
}

/// The schema that users have.
pub(crate) static PUBLISHED: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::validator_for(&schema()).unwrap());

pub(crate) static CLOSED: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::validator_for(&closed(schema())).unwrap());

/// Asserts that a line fits the schema. If not, checks it against the case for its type: those errors say more.
#[track_caller]
pub(crate) fn assert_valid(line: &Value) {
    if !CLOSED.is_valid(line) {
        let mut of_type = closed(schema());
        let cases = of_type["oneOf"].as_array_mut().unwrap();
        cases.retain(|case| *type_of(case) == line["type"]);
        of_type["allOf"] = of_type["oneOf"].take();
        of_type.as_object_mut().unwrap().remove("oneOf");
        let of_type = jsonschema::validator_for(&of_type).unwrap();
        let errors = of_type.iter_errors(line);
        let errors: Vec<_> = errors.map(|error| format!("{error} (at {})", error.instance_path())).collect();
        panic!("{errors:#?}\n{line:#}");
    }
    assert!(PUBLISHED.is_valid(line), "the published schema: {line:#}");
}
