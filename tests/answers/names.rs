//! Who and what texts are about: the words for threads, tasks and locks become the same for all outputs.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::Value;

/// The id of a task is a thread's id with this bit.
const TASK: u64 = 1 << 31;

/// A thread or task by its id: `thread 10`, `task 7`.
pub(crate) fn by_tid(tid: u64) -> String {
    match tid & TASK {
        0 => format!("thread {tid}"),
        _ => format!("task {}", tid & !TASK),
    }
}

/// The locks of a subject: their names in texts, by their addresses.
#[derive(Default)]
pub(crate) struct Names {
    /// When the host was started, ns since 1970, if that is known.
    pub(crate) boot_ns: Option<u64>,
    by_address: BTreeMap<String, String>,
    /// The longest ones first.
    locks: Vec<String>,
}

impl Names {
    /// Those of the rows of `export -f ndjson`.
    pub(crate) fn of(rows: &[Value], boot_ns: Option<u64>) -> Names {
        let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
        let rows = rows.iter().filter(|row| row["table"] == "locks");
        let by_address: BTreeMap<String, String> =
            rows.map(|row| (text(row, "address"), text(row, "lock"))).collect();
        let all: BTreeSet<String> = by_address.values().cloned().collect();
        let mut locks: Vec<String> = all.into_iter().collect();
        locks.sort_by_key(|name| std::cmp::Reverse(name.len()));
        Names { boot_ns, by_address, locks }
    }

    /// A time since boot, ns, as us since 1970.
    pub(crate) fn date_us(&self, ns: u64) -> Option<u64> {
        Some((ns + self.boot_ns?) / 1000)
    }

    /// The name of the lock at an address.
    pub(crate) fn lock_at(&self, address: &str) -> String {
        self.by_address.get(address).cloned().unwrap_or_else(|| format!("the unknown lock {address}"))
    }

    /// The lock with which a text begins, and the rest.
    pub(crate) fn lock<'t>(&self, text: &'t str) -> Option<(&str, &'t str)> {
        self.locks.iter().find_map(|name| Some((&**name, text.strip_prefix(&**name)?)))
    }

    /// The thread or task with which a text begins, and the rest: `name[10]`, `name[task 7]`, `task 7`, and
    /// `task 7 of main.rs:9`.
    pub(crate) fn who<'t>(&self, text: &'t str) -> Option<(String, &'t str)> {
        let form = Regex::new(
            r"^(?:[^\[\]]*\[(task )?([0-9]+)\]|(task) ([0-9]+))( of [^ :]+:[0-9]+(?:<0x[0-9a-f]+>)?)?",
        )
        .unwrap();
        let found = form.captures(text)?;
        let number = found.get(2).or(found.get(4))?.as_str();
        let is_task = found.get(1).is_some() || found.get(3).is_some();
        let who = format!("{} {number}", if is_task { "task" } else { "thread" });
        Some((who, &text[found.get(0)?.end()..]))
    }

    /// The name before the brackets.
    pub(crate) fn name_in(text: &str) -> &str {
        text.split_once('[').map_or("", |(name, _)| name)
    }

    /// What somebody waits for, by the words after "waits" or "waiting": `for L`, `on a condition variable, with L`,
    /// `for the end of W`. `None` if these words are about something else, as those of the kernel are.
    pub(crate) fn awaited<'t>(&self, words: &'t str) -> Option<(String, &'t str)> {
        if let Some(of) = words.strip_prefix("for the end of ") {
            let (who, rest) = self.who(of)?;
            return Some((end_of(&who), rest));
        }
        if let Some(of) = words.strip_prefix("on a condition variable, with ") {
            let (lock, rest) = self.lock(of)?;
            return Some((condition(lock), rest));
        }
        let (lock, rest) = self.lock(words.strip_prefix("for ")?)?;
        Some((for_lock(lock), rest))
    }

    /// The same, if nothing follows.
    pub(crate) fn all_awaited(&self, words: &str) -> Option<String> {
        self.awaited(words).filter(|(_, rest)| rest.is_empty()).map(|(what, _)| what)
    }
}

pub(crate) fn for_lock(lock: &str) -> String {
    format!("for {lock}")
}

pub(crate) fn condition(lock: &str) -> String {
    format!("on a condition variable, with {lock}")
}

pub(crate) fn end_of(who: &str) -> String {
    format!("for the end of {who}")
}
