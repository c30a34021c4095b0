//! What the tables say, as NDJSON and as Parquet, and the numbers of OpenMetrics.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Map, Value, json};

use crate::facts::{Facts, Key, NOTHING};
use crate::names::{Names, by_tid, condition, end_of, for_lock};
use crate::texts::kinds;

pub(crate) fn rows(ndjson: &str) -> Vec<Value> {
    ndjson.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// The rows of a folder of Parquet files.
pub(crate) fn rows_of_parquet(folder: &Path) -> Vec<Value> {
    let mut rows = Vec::new();
    for table in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = table.file_name().unwrap().to_string_lossy().into_owned();
        let days = fs::read_dir(&table).unwrap().map(|entry| entry.unwrap().path());
        for file in days.flat_map(|day| fs::read_dir(day).unwrap()).map(|entry| entry.unwrap().path()) {
            let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
            for row in reader.get_row_iter(None).unwrap() {
                let row = row.unwrap();
                let fields = row.get_column_iter().filter(|(_, field)| **field != Field::Null);
                let mut fields: Map<String, Value> =
                    fields.map(|(name, field)| (name.clone(), value(field))).collect();
                fields.insert("table".into(), name.clone().into());
                rows.push(fields.into());
            }
        }
    }
    rows
}

fn value(field: &Field) -> Value {
    match field {
        Field::Str(text) => text.clone().into(),
        Field::Long(number) => (*number).into(),
        Field::Bool(is_true) => (*is_true).into(),
        Field::TimestampMicros(us) => json!({ "us": us }),
        other => panic!("a field of another type: {other:?}"),
    }
}

/// A moment, us since 1970.
fn us(of: &Value) -> Option<u64> {
    match of {
        Value::String(text) => {
            let time = humantime::parse_rfc3339(text).unwrap().duration_since(std::time::UNIX_EPOCH).unwrap();
            Some(time.as_micros() as u64)
        }
        of => of["us"].as_u64(),
    }
}

fn text<'v>(row: &'v Value, field: &str) -> &'v str {
    row[field].as_str().unwrap_or_default()
}

/// What rows say.
pub(crate) fn facts(rows: &[Value], names: &Names) -> Facts {
    let mut facts = Facts::default();
    let of_table = |table: &'static str| rows.iter().filter(move |row| row["table"] == table);
    let who = |row: &Value| by_tid(row["tid"].as_u64().unwrap());
    let what = |row: &Value, kind: &str| match kind {
        "condition" => condition(text(row, "object")),
        "thread" => {
            let (who, _) = names.who(text(row, "object")).unwrap_or_else(|| panic!("{row}"));
            end_of(&who)
        }
        _ => for_lock(text(row, "object")),
    };
    let mut open: BTreeMap<(String, &str), Vec<String>> = BTreeMap::new();
    for row in of_table("waits").filter(|row| row["is_open"] == true) {
        let (who, kind) = (who(row), text(row, "waits_for"));
        let what = what(row, kind);
        facts.waits(&who, &what);
        facts.since(&who, &what, us(&row["began"]));
        open.entry((who, kind)).or_default().push(what);
        if let (Some(tid), Some(_)) = (row["holder_tid"].as_u64(), row["address"].as_str()) {
            facts.holds(&by_tid(tid), text(row, "object"));
        }
    }
    for row in of_table("threads") {
        let who = who(row);
        facts.name(&who, text(row, "thread"));
        facts.holds_count(&who, row["holds"].as_u64().unwrap());
        let is_present = row["state"] == "present";
        let answer = match row["waits_for"].as_str() {
            None => NOTHING.to_owned(),
            Some(kind) => match open.get(&(who.clone(), kind)).map_or(&[][..], Vec::as_slice) {
                [one] => one.clone(),
                // Several of a kind, or one that no row explains.
                [] => format!("a {kind} that is in no row"),
                _ => continue,
            },
        };
        facts.answer(&who, &answer);
        facts.add("threads present", u64::from(is_present));
        if is_present && answer != NOTHING {
            facts.add(answer, 1);
            facts.add("threads waiting", 1);
        }
    }
    for row in of_table("tasks") {
        let (who, state) = (who(row), text(row, "state"));
        facts.name(&who, text(row, "task"));
        facts.holds_count(&who, row["holds"].as_u64().unwrap());
        facts.say(Key::Does { task: who.clone() }, state);
        facts.does_since(&who, us(&row["since"]));
        let answer = row["waits_for"].as_str().map_or(NOTHING.to_owned(), |kind| what(row, kind));
        facts.answer(&who, &answer);
        if state == "suspended" && answer != NOTHING {
            facts.add(answer, 1);
        }
        if state != "ended" {
            facts.add(format!("tasks {state}"), 1);
        }
    }
    for row in of_table("holds").filter(|row| row["is_open"] == true) {
        facts.holds(&who(row), text(row, "lock"));
        facts.count(format!("waiters of {}", text(row, "address")), row["waiters"].as_u64().unwrap());
    }
    for row in of_table("locks") {
        let (waiters, holders) = (row["waiters"].as_u64().unwrap(), row["holders"].as_u64().unwrap());
        facts.count(format!("waiters of {}", text(row, "address")), waiters);
        facts.add(format!("waiters of {}", text(row, "lock")), waiters);
        facts.add(format!("holders of {}", text(row, "lock")), holders);
    }
    let kind = |row: &Value| format!("{} {}", text(row, "confidence"), text(row, "kind"));
    let found: Vec<String> = of_table("findings").map(kind).collect();
    let process = of_table("processes").next().expect("the row of the process");
    facts.count("findings", process["findings"].as_u64().unwrap());
    facts.count("threads present", process["present"].as_u64().unwrap());
    facts.count("threads waiting", process["waiting"].as_u64().unwrap());
    facts.count("tasks suspended", process["tasks_suspended"].as_u64().unwrap());
    facts.say(Key::Outcome, text(process, "outcome"));
    kinds(&mut facts, found);
    // Each wait and each hold that goes on has a row.
    facts.lists(|key| matches!(key, Key::Waits { .. } | Key::Holds { .. }));
    facts.lists(|key| matches!(key, Key::Count { what } if is_awaited(what)));
    facts
}

/// Whether a number is that of threads and tasks that wait for something.
pub(crate) fn is_awaited(what: &str) -> bool {
    what.starts_with("for ") || what.starts_with("on a condition variable, with ")
}

/// `export -f openmetrics`.
pub(crate) fn metrics(text: &str, _: &Names) -> Facts {
    let mut facts = Facts::default();
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_once('{').expect(line);
        let (labels, value) = rest.rsplit_once("} ").expect(line);
        let label = |name: &str| {
            let (_, of) = labels.split_once(&format!(",{name}=\""))?;
            Some(of.split_once('"')?.0.replace("\\\\", "\\"))
        };
        let value = value.parse::<f64>().unwrap() as u64;
        match (name, label("state"), label("lock")) {
            ("rip_threads", Some(state), _) if state == "waiting" => facts.count("threads waiting", value),
            ("rip_tasks", Some(state), _) => facts.count(format!("tasks {state}"), value),
            ("rip_lock_waiters", _, Some(lock)) if lock != "other locks" => {
                facts.count(format!("waiters of {lock}"), value);
            }
            ("rip_lock_holders", _, Some(lock)) if lock != "other locks" => {
                facts.count(format!("holders of {lock}"), value);
            }
            ("rip_findings", ..) => {
                let kind = format!("{} {}", label("confidence").unwrap(), label("kind").unwrap());
                found.extend(vec![kind; value as usize]);
            }
            _ => {}
        }
    }
    kinds(&mut facts, found);
    facts
}
