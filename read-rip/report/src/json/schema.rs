//! `read-rip/json-schema.json`: made of the types that are written, with their documentation. It checks no output: the
//! tests of read-rip do.

use std::path::Path;

use read_rip_model::findings::*;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::Line;

/// The schemas of the evidence that findings of a kind have.
fn evidence(kind: Kind, generator: &mut SchemaGenerator) -> Vec<Schema> {
    fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }
    let of: &[fn(&mut SchemaGenerator) -> Schema] = match kind {
        Kind::Deadlock => &[
            of::<WaitCycle>,
            of::<ProcessCycle>,
            of::<TasksInCircle>,
            of::<TasksAwaitLocks>,
            of::<GoroutineCircle>,
            of::<PermitsUsedUp>,
        ],
        Kind::Futurelock => &[of::<WaitCycle>],
        Kind::StarvedRuntime | Kind::LongPoll => &[of::<BusyRuntime>, of::<Undriven>],
        Kind::UnpolledTask => &[of::<Unpolled>],
        Kind::NeverWoken => &[of::<NeverWoken>],
        Kind::AbandonedChannel => &[of::<FullChannel>],
        Kind::Unreleased => &[of::<DeadHolder>, of::<OwnerEnded>],
        Kind::LostOwner => &[of::<Orphan>],
        Kind::DestroyedLock => &[of::<DestroyedWhileHeld>],
        Kind::Misuse => &[of::<RefusedCall>],
        Kind::UnlockWithoutLock => &[of::<StrayRelease>],
        Kind::DoubleLock => &[of::<SecondAcquisition>],
        Kind::LockOrder => &[of::<OrderCycle>],
        Kind::NestedRead => &[of::<NestedReads>],
        Kind::Livelock => &[of::<MutualFailure>, of::<BusyLoops>, of::<Restless>, of::<BusyWaits>],
        Kind::StarvedHolder | Kind::PileUp => &[of::<Standstill>],
        Kind::LongWait => &[of::<Standstill>, of::<Abandoned>, of::<EndOfRuntime>],
        Kind::LostWakeup => &[of::<Unheard>],
        Kind::Stopped | Kind::Traced | Kind::Frozen => &[of::<NotRunning>, of::<StoppedHelpers>],
        Kind::DiskSleep => &[of::<NotRunning>],
        Kind::Stall => &[of::<Stall>],
        Kind::Convoy => &[of::<Queue>],
        Kind::LongHold => &[of::<IdleHolder>],
        Kind::Starvation => &[of::<Overtaken>],
        Kind::Contention => &[of::<Contended>],
        Kind::LockLine => &[of::<CrowdedLine>],
    };
    of.iter().map(|of| of(generator)).collect()
}

/// The schema of all lines.
fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut generator = settings.with_transform(RecursiveTransform(simplify)).into_generator();
    let of_kind = |&kind: &Kind| {
        let evidence = evidence(kind, &mut generator);
        let evidence = if let [one] = &*evidence { json!(one) } else { json!({"anyOf": evidence}) };
        let is_kind = json!({"properties": {"kind": {"const": kind}}});
        json!({"if": is_kind, "then": {"properties": {"evidence": evidence}}})
    };
    let of_kinds: Value = Kind::ALL.iter().map(of_kind).collect();
    let mut schema = generator.into_root_schema_for::<Line<'static>>().to_value();
    schema["$defs"]["Finding"]["allOf"] = of_kinds;
    schema
}

/// Leaves out what readers of JSON need not know, and makes all fields optional but the type of a line.
fn simplify(schema: &mut Schema) {
    let object = schema.ensure_object();
    object.remove("format");
    if object.contains_key("const") {
        object.remove("type");
    }
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = text.replace('\n', " ").replace("`None`", "absent").replace("[`", "`").replace("`]", "`");
    }
    let required = object.remove("required").unwrap_or_default();
    let is_required = |name: &str| required.as_array().is_some_and(|all| all.iter().any(|one| one == name));
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        let left_out = properties.iter_mut().filter(|(name, _)| !is_required(name));
        left_out.for_each(|(_, property)| without_null(property));
        if properties.get("type").is_some_and(|kind| kind.get("const").is_some()) {
            object.insert("required".into(), json!(["type"]));
        }
    }
    merge_variants(object);
}

/// What is absent is left out, and not null.
fn without_null(property: &mut Value) {
    if let Some([kind, Value::String(_)]) = property["type"].as_array().map(Vec::as_slice) {
        property["type"] = kind.clone();
    }
    if let Some(Value::Array(choice)) = property.as_object_mut().expect("a schema").remove("anyOf") {
        property["$ref"] = choice[0]["$ref"].clone();
    }
}

/// An object that has one of several fields may have any of them.
fn merge_variants(object: &mut Map<String, Value>) {
    if !object.contains_key("properties") {
        return;
    }
    let Some(Value::Array(variants)) = object.remove("oneOf") else { return };
    for variant in variants {
        for (name, field) in variant["properties"].as_object().into_iter().flatten() {
            let mut field = field.clone();
            field["description"] = variant["description"].clone();
            object["properties"][name] = field;
        }
    }
}

/// The text of the file: a line for each field, code and case.
fn text(value: &Value, indent: usize) -> String {
    let (open, close, is_list) = match value {
        Value::Object(fields) => ('{', '}', fields.values().any(|value| value["description"].is_string())),
        Value::Array(values) => ('[', ']', values.len() > 2 && values[0].is_object()),
        _ => return value.to_string(),
    };
    let space = format!("\n{:indent$}", "");
    let indent = if is_list { indent + 2 } else { indent };
    let mut entries: Vec<String> = match value {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("\"{name}\": {}", text(value, indent))).collect()
        }
        _ => value.as_array().into_iter().flatten().map(|value| text(value, indent)).collect(),
    };
    if value.is_object() {
        let rank = |entry: &str| (!entry.starts_with("\"description\""), !is_list && entry.contains('\n'));
        entries.sort_by(|one, other| (rank(one), one).cmp(&(rank(other), other)));
    }
    if is_list {
        format!("{open}{space}  {}{space}{close}", entries.join(&format!(",{space}  ")))
    } else {
        format!("{open}{}{close}", entries.join(", "))
    }
}

#[test]
fn the_schema_is_that_of_the_types() {
    let schema = text(&schema(), 0) + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../json-schema.json");
    if std::env::var_os("READ_RIP_BLESS").is_some() {
        std::fs::write(&path, &schema).expect("the schema can be written");
    }
    let present = std::fs::read_to_string(&path).expect("the schema is there");
    assert!(
        schema == present,
        "the types have changed: READ_RIP_BLESS=1 cargo test -p read-rip-report schema"
    );
}

#[test]
fn every_field_has_a_description() {
    let schema = schema();
    for (of, described) in schema["$defs"].as_object().expect("types") {
        for (name, field) in described["properties"].as_object().into_iter().flatten() {
            assert!(field["description"].is_string(), "{of}.{name}");
        }
    }
}
