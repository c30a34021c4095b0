//! Tables in DuckDB: from lines of JSON, from Parquet, and the questions of `scripts/fleet` over many hosts.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::tools;
use crate::support::fixture::{Fixture, Scratch};
use crate::support::locks::*;
use crate::support::run::read_rip;
use crate::support::synth::{Held, Ring, Slot};

/// What breaks out of strings of the formats, and what a terminal would obey.
const NASTY: &str = "a\"b\\\n;x \u{1b}[2J\u{202e}</'";

/// A thread that held A from 3 to 6 s and holds B since 8 s, and one that waited for A and waits for B.
fn ring_of_two() -> Ring {
    let holder = Slot::thread(NASTY, 1)
        .event(TAKES, &[at(3.0), A])
        .event(RELEASED, &[at(6.0), at(3.0), A])
        .event(TAKES, &[at(8.0), B])
        .has(Held::new(HELD, B, TAKES).since(at(8.0)));
    let waiter = Slot::thread("waiter", 2)
        .event(WAIT, &[at(5.0), A])
        .event(RELEASED, &[at(6.5), at(6.0), A])
        .event(WAIT, &[at(9.0), B])
        .has(Held::new(WAITING, B, WAIT).since(at(9.0)));
    let names = vec![(4321, A, NASTY.to_owned()), (4321, B, "queue".to_owned())];
    Ring { exit_status: Some(3), lock_names: names, ..ring().with_slots([holder, waiter]) }
}

/// `read-rip export -f FORMAT -o TARGET RING`.
fn export(ring: &Path, format: &str, target: &Path) {
    let args = ["export", "--format", format, "--output"].map(Path::new);
    read_rip(args.into_iter().chain([target, ring])).sound();
}

/// What DuckDB answers to each question, as rows of JSON values.
fn query(mut python: Command, questions: &[String]) -> Vec<Vec<Vec<Value>>> {
    let program = "import duckdb, json, sys\n\
        connection = duckdb.connect()\n\
        connection.execute(\"SET TimeZone = 'UTC'\")\n\
        answers = [connection.execute(question).fetchall() for question in sys.argv[1:]]\n\
        print(json.dumps(answers, default=str))";
    let out = python.args(["-c", program]).args(questions).output().unwrap();
    assert!(out.status.success(), "{questions:?}: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

#[test]
fn lines_of_json_and_parquet_have_the_same_rows_and_values() {
    let Some(python) = tools::python("duckdb") else { return };
    let fixture = Fixture::of(&ring_of_two());
    let scratch = Scratch::new();
    let (lines, folder) = (scratch.path("lines.ndjson"), scratch.path("tables"));
    export(&fixture.path, "ndjson", &lines);
    export(&fixture.path, "parquet", &folder);
    let (lines, folder) = (lines.display(), folder.display());
    let of_waits = "thread, waits_for, object, epoch_us(w.began) - epoch_us(p.made), for_ns, is_open, holder";
    let waits = |from: &str, of: &str| {
        format!(
            "SELECT {of_waits} FROM {from} AS w, (SELECT ring_made AS made FROM {of}) AS p ORDER BY w.began"
        )
    };
    let of_json = |table: &str| format!("(SELECT * FROM read_ndjson('{lines}') WHERE \"table\" = '{table}')");
    let of_parquet = |table: &str| format!("read_parquet('{folder}/{table}/*/*.parquet')");
    let with_rows = ["processes", "threads", "locks", "waits", "holds", "findings", "modules"];
    // No event is in the ring, and the tables are there all the same.
    let without = ["events", "spans"];
    let count = |from: String| format!("SELECT count(*) FROM {from}");
    let mut questions = vec![
        waits(&of_json("waits"), &of_json("processes")),
        waits(&of_parquet("waits"), &of_parquet("processes")),
    ];
    questions.extend(with_rows.map(|table| count(of_json(table))));
    questions.extend(with_rows.map(|table| count(of_parquet(table))));
    questions.extend(without.map(|table| count(of_parquet(table))));
    let answers = query(python, &questions);
    let (json, parquet) = (&answers[0], &answers[1]);
    assert_eq!(json, parquet);
    let (json_counts, parquet_counts) = answers[2..].split_at(with_rows.len());
    assert_eq!(json_counts, &parquet_counts[..with_rows.len()]);
    for (table, count) in with_rows.iter().zip(parquet_counts) {
        assert_ne!(count[0][0], 0, "{table}");
    }
    assert!(parquet_counts[with_rows.len()..].iter().all(|count| count[0][0] == 0), "{parquet_counts:?}");
    // Nothing in a name moves the cursor of a terminal.
    let shown = r#"a"b\\n;x \u{1b}[2J\u{202e}</'"#;
    let waited = |object: &str, for_ns: u64, is_open: bool, holder: Value| {
        let known: Vec<Value> = vec!["waiter".into(), "lock".into(), object.into()];
        (known, vec![Value::from(for_ns), is_open.into(), holder])
    };
    let found: Vec<_> = parquet.iter().map(|row| (row[..3].to_vec(), row[4..].to_vec())).collect();
    let expected = [
        waited(shown, 1_000_000_000, false, Value::Null),
        waited("queue", 57_000_000_000, true, shown.into()),
    ];
    assert_eq!(found, expected);
}

#[test]
fn exports_into_one_folder_add_up_and_the_same_record_replaces_itself() {
    let Some(python) = tools::python("duckdb") else { return };
    let scratch = Scratch::new();
    let folder = scratch.path("tables");
    let count = || {
        let sql = format!("SELECT count(*) FROM read_parquet('{}/threads/*/*.parquet')", folder.display());
        query(clone(&python), &[sql]).remove(0)
    };
    let (first, second) = (Fixture::of(&ring_of_two()), Fixture::of(&Ring { pid: 77, ..ring_of_two() }));
    export(&first.path, "parquet", &folder);
    assert_eq!(count(), [[Value::from(2)]]);
    export(&second.path, "parquet", &folder);
    export(&first.path, "parquet", &folder);
    assert_eq!(count(), [[Value::from(4)]]);
}

/// What `scripts/fleet/ask` answers, as one object a row.
fn ask(question: &str, folder: &Path, engine: &str) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/fleet/ask");
    let mut python = tools::python("duckdb").unwrap();
    let out = python.arg(script).args([question, folder.to_str().unwrap(), "--json", "--engine", engine]);
    let out = out.output().unwrap();
    assert!(out.status.success(), "{question}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The questions, over simulated hosts and one record of a real ring in the same folder.
fn answers(engine: &str) {
    let Some(mut python) = tools::python("duckdb") else { return };
    let scratch = Scratch::new();
    let folder = scratch.path("fleet");
    let simulate = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/fleet/simulate");
    let out = python.arg(simulate).args([folder.to_str().unwrap(), "--hosts", "8", "--waits", "100000"]);
    let out = out.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    export(&Fixture::of(&ring_of_two()).path, "parquet", &folder);

    let locks = ask("costly-locks", &folder, engine);
    let number =
        |row: &Value, column: &str| row[column].to_string().trim_matches('"').parse::<f64>().unwrap();
    let of_shop: Vec<&Value> = locks.iter().filter(|row| row["program"] == "shop").collect();
    let names: Vec<&str> = of_shop.iter().map(|row| row["lock"].as_str().unwrap()).collect();
    assert_eq!(names, ["sessions", "cache", "config"]);
    // 520 waits in each of 24 records of 8 hosts. Each record but the first of a process repeats one: 23 of hosts with
    // one process, 22 of the four with two.
    let waits: f64 = of_shop.iter().map(|row| number(row, "waits")).sum();
    assert_eq!(waits as u64, 8 * 24 * 520 - 4 * 23 - 4 * 22);
    let queue = locks.iter().find(|row| row["lock"] == "queue").unwrap();
    assert_eq!((number(queue, "waits"), number(queue, "waited_s")), (1.0, 57.0));

    let stuck = ask("stuck-hosts", &folder, engine);
    let hosts: Vec<&str> = stuck.iter().map(|row| row["host"].as_str().unwrap()).collect();
    assert_eq!(hosts, ["host7"]);
    assert_eq!((&stuck[0]["confidence"], &stuck[0]["kind"]), (&"proven".into(), &"deadlock".into()));

    let mut changed = ask("new-build", &folder, engine);
    changed.retain(|row| row["program"] == "shop");
    assert_eq!((&changed[0]["lock"], number(&changed[0], "times")), (&"cache".into(), 10.0), "{changed:?}");
    assert!(changed[1..].iter().all(|row| number(row, "times") == 1.0));

    let holders = ask("holders", &folder, engine);
    let share = |function: &str| {
        let of = holders.iter().find(|row| row["lock"] == "sessions" && row["holder"] == function).unwrap();
        (of["line"].to_string(), number(of, "share_percent"))
    };
    // One of the waits 100, 200, 300, 400 and 500 of a record is at another place.
    assert_eq!((share("flush"), share("take")), (("88".into(), 80.0), ("52".into(), 20.0)));
}

#[test]
fn the_questions_of_a_fleet_are_answered_in_duckdb() {
    answers("duckdb");
}

#[test]
fn the_questions_of_a_fleet_are_answered_in_clickhouse() {
    if tools::python("chdb").is_some() {
        answers("clickhouse");
    }
}

fn clone(python: &Command) -> Command {
    let mut command = Command::new(python.get_program());
    command.envs(python.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}
