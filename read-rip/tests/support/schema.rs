//! Whether lines of `--json` fit `json-schema.json`.
//!
//! Readers of the output must accept fields that later versions add, so the schema allows them. The tests do not: they
//! close every object of the schema first.
//!
//! What judges lines here knows the keywords of this schema, and fails at any other. `viewers/schema.rs` asks a library
//! of Python whether the schema and the lines are as the standard wants. Rust's library for it, with what it needs,
//! takes 18 s of processor time to build.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

/// A schema that judges lines.
pub(crate) struct Schema {
    whole: Value,
    patterns: BTreeMap<String, Regex>,
}

impl Schema {
    fn new(whole: Value) -> Schema {
        let mut patterns = BTreeMap::new();
        let mut pending = vec![&whole];
        while let Some(value) = pending.pop() {
            match value {
                Value::Array(values) => pending.extend(values),
                Value::Object(object) => pending.extend(object.values()),
                _ => {}
            }
            if let Some(pattern) = value["pattern"].as_str() {
                patterns.insert(pattern.to_owned(), Regex::new(pattern).unwrap());
            }
        }
        Schema { whole, patterns }
    }

    pub(crate) fn is_valid(&self, line: &Value) -> bool {
        self.misfit(&self.whole, line).is_none()
    }

    /// The first thing in a value that does not fit a part of the schema: its place, and the keyword.
    fn misfit(&self, part: &Value, value: &Value) -> Option<String> {
        match part {
            Value::Bool(allows) => (!allows).then(|| " is not described".to_owned()),
            Value::Object(part) => part.iter().find_map(|keyword| self.breaks(keyword, part, value)),
            _ => panic!("{part} is no schema"),
        }
    }

    fn breaks(
        &self,
        (keyword, wanted): (&String, &Value),
        part: &Map<String, Value>,
        value: &Value,
    ) -> Option<String> {
        let parts = || wanted.as_array().unwrap().iter();
        let fits = |part: &&Value| self.misfit(part, value).is_none();
        let number = |value: &Value| value.as_f64();
        let has = |name: &Value| value.get(name.as_str().unwrap()).is_some();
        let within = |name: &str, misfit: Option<String>| misfit.map(|misfit| format!("/{name}{misfit}"));
        let is_kept = match keyword.as_str() {
            "$defs" | "$schema" | "description" | "then" | "title" => true,
            "type" => {
                wanted.as_str().map_or_else(|| parts().any(|name| is_a(value, name)), |_| is_a(value, wanted))
            }
            "const" => value == wanted,
            "enum" => parts().any(|one| value == one),
            "minimum" => number(value).is_none_or(|value| value >= number(wanted).unwrap()),
            "maximum" => number(value).is_none_or(|value| value <= number(wanted).unwrap()),
            "pattern" => {
                value.as_str().is_none_or(|text| self.patterns[wanted.as_str().unwrap()].is_match(text))
            }
            "required" => !value.is_object() || parts().all(has),
            "oneOf" => parts().filter(fits).count() == 1,
            "anyOf" => parts().any(|part| fits(&part)),
            "allOf" => return parts().find_map(|part| self.misfit(part, value)),
            "if" if !fits(&wanted) => true,
            "if" => return self.misfit(&part["then"], value),
            "$ref" => {
                let place = wanted.as_str().unwrap().strip_prefix('#').unwrap();
                return self.misfit(self.whole.pointer(place).unwrap(), value);
            }
            "properties" => {
                let mut described = wanted.as_object().unwrap().iter();
                return described.find_map(|(name, part)| within(name, self.misfit(part, value.get(name)?)));
            }
            "additionalProperties" => {
                let is_other = |name: &str| part.get("properties").is_none_or(|of| of.get(name).is_none());
                let mut others = value.as_object()?.iter().filter(|(name, _)| is_other(name));
                return others.find_map(|(name, value)| within(name, self.misfit(wanted, value)));
            }
            "items" => {
                let mut items = value.as_array()?.iter().enumerate();
                return items.find_map(|(at, value)| within(&at.to_string(), self.misfit(wanted, value)));
            }
            _ => panic!("the keyword {keyword} is new"),
        };
        (!is_kept).then(|| format!(": {keyword} {wanted}"))
    }
}

/// Whether a value has a type of JSON.
fn is_a(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        name => panic!("{name} is no type"),
    }
}

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
pub(crate) static PUBLISHED: LazyLock<Schema> = LazyLock::new(|| Schema::new(schema()));

pub(crate) static CLOSED: LazyLock<Schema> = LazyLock::new(|| Schema::new(closed(schema())));

/// Asserts that a line fits the schema. If not, says what in it does not fit the case for its type.
#[track_caller]
pub(crate) fn assert_valid(line: &Value) {
    if !CLOSED.is_valid(line) {
        let mut cases = CLOSED.whole["oneOf"].as_array().unwrap().iter();
        let case = cases.find(|case| *type_of(case) == line["type"]);
        panic!("{:?}\n{line:#}", case.map(|case| CLOSED.misfit(case, line)));
    }
    assert!(PUBLISHED.is_valid(line), "the published schema: {line:#}");
}
