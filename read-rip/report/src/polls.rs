//! How long polls of tasks took, as text: by place, and the longest ones.
//!
//! ```text
//!                      count        p50        p90        p99        max
//! GET /orders/{id}, made at main.rs:29
//!   polls              15232    10.2 us    15.3 us    52.4 ms    51.9 ms
//!   wake to poll       15107     6.1 us    20.4 us    41.9 ms    43.1 ms
//! ```
//!
//! ```text
//! length    began (UTC)                 task
//! 51.9 ms   2026-11-26 20:33:00.123456  GET /orders/{id}[task 812] by tokio-rt-worker[4713]
//!           made at main.rs:29, last at total main.rs:44
//! ```
//!
//! It orders nothing and computes nothing.

use std::io::{self, Write};

use read_rip_model::locks::{PollPlace, Polls, PollsAt, Quantiles, SlowPoll};
use read_rip_ring::Snapshot;

use super::log::wall_clock;
use super::names::{LockNames, who};
use super::printable::printable;
use super::units::duration;

/// Writes how long the polls of each place took. `is_wanted` gets what a place is called.
///
/// # Errors
///
/// Those of `out`.
pub fn polls(
    out: &mut dyn Write,
    polls: &Polls,
    names: &LockNames<'_>,
    is_wanted: impl Fn(&str) -> bool,
) -> io::Result<()> {
    let bold = anstyle::Style::new().bold();
    let mut is_first = true;
    for PollsAt { place, polls, delays } in &polls.places {
        let name = poll_place(place, names);
        if !is_wanted(&name) || polls.is_none() && delays.is_none() {
            continue;
        }
        if is_first {
            let [count, p50, p90, p99, max] = ["count", "p50", "p90", "p99", "max"];
            writeln!(out, "{:14}{count:>12} {p50:>10} {p90:>10} {p99:>10} {max:>10}", "")?;
            is_first = false;
        }
        writeln!(out, "{bold}{name}{bold:#}")?;
        for (what, of) in [("polls", polls), ("wake to poll", delays)] {
            let Some(Quantiles { count, p50_ns, p90_ns, p99_ns, max_ns }) = of else { continue };
            let [p50, p90, p99, max] = [p50_ns, p90_ns, p99_ns, max_ns].map(|&ns| duration(ns));
            writeln!(out, "  {what:12}{count:>12} {p50:>10} {p90:>10} {p99:>10} {max:>10}")?;
        }
    }
    Ok(())
}

/// What a place is called: `GET /orders/{id}, made at main.rs:29`.
pub fn poll_place(place: &PollPlace, names: &LockNames<'_>) -> String {
    let of = if place.pid == names.model.pid { String::new() } else { format!(" of process {}", place.pid) };
    let Some(made_at) = place.made_at else { return format!("tasks of other places{of}") };
    let line = names.line(made_at);
    if place.name.is_empty() {
        format!("tasks made at {line}{of}")
    } else {
        format!("{}, made at {line}{of}", printable(&place.name))
    }
}

/// What the task of a poll is called: `GET /orders/{id}[task 812]`.
pub fn poll_task(poll: &SlowPoll, names: &LockNames<'_>) -> String {
    let of = if poll.pid == names.model.pid { String::new() } else { format!(" of process {}", poll.pid) };
    format!("{}{of}", who(&poll.name, poll.task))
}

/// Writes the longest polls, at most so many. Returns how many more there are.
///
/// # Errors
///
/// Those of `out`.
pub fn slow_polls(
    out: &mut dyn Write,
    polls: &[&SlowPoll],
    names: &LockNames<'_>,
    snapshot: &Snapshot,
    at_most: usize,
) -> io::Result<usize> {
    let bold = anstyle::Style::new().bold();
    if !polls.is_empty() {
        writeln!(out, "{:8}  {:26}  task", "length", "began (UTC)")?;
    }
    for poll in polls.iter().take(at_most) {
        let began = poll.began_ns.and_then(|ns| wall_clock(snapshot, ns));
        let began =
            began.map_or_else(|| "at an unknown time".to_owned(), |(day, time)| format!("{day} {time}"));
        let by = poll.tid.map(|tid| match poll.thread {
            Some(thread) => names.thread(thread),
            None => who("", tid),
        });
        let by = by.map_or_else(String::new, |by| format!(" by {by}"));
        let task = poll_task(poll, names);
        writeln!(out, "{bold}{:8}{bold:#}  {began:26}  {bold}{task}{bold:#}{by}", duration(poll.took_ns))?;
        let so_far = (!poll.has_ended).then(|| match names.model.is_final {
            true => "it had not ended when the process did".to_owned(),
            false => "it has not ended".to_owned(),
        });
        let made_at = poll.made_at.map(|at| format!("made at {}", names.line(at)));
        let last = poll.location.map(|at| format!("last at {}", names.location(at)));
        let about: Vec<String> = so_far.into_iter().chain(made_at).chain(last).collect();
        if !about.is_empty() {
            writeln!(out, "          {}", about.join(", "))?;
        }
    }
    Ok(polls.len().saturating_sub(at_most))
}
