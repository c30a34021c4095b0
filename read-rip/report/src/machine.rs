//! Findings in one line: what `check --all` says of each process or ring, with what was examined, and the verdict at
//! the end of a view. It counts nothing.
//!
//! ```text
//! proven deadlock: bank[4711]: 2 threads wait for one another, for 203 ms; next: read-rip check 4711
//! not judged: the async tasks of tokio are not seen: web[4712] and 2 more; next: read-rip check 4712
//! Examined 412 processes with 3120 threads and 3 rings: 1 has findings, and 3 could not be judged.
//! Skipped: 31 that this user may not read.
//! ```

use std::collections::BTreeMap;
use std::io::{self, Write};

use read_rip_model::findings::Finding;
use serde::Serialize;

use super::findings::style;
use super::names::LockNames;
use super::units::counted;
use crate::printable;

/// No more processes are named that could not be judged for one reason.
const LISTED_MAX: usize = 8;

/// Why a process was not judged that may be stuck with others, if there are many such groups.
pub const MANY_GROUPS: &str =
    "not judged: many processes may wait for one another, so read-rip has to examine each by itself";

/// `check --all`: what was looked at. The lines before are of processes and rings with findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Examined {
    /// The processes whose threads and memory may be read, without threads of the kernel.
    pub processes: usize,
    /// Their threads.
    pub threads: usize,
    /// The rings, of living and of dead processes.
    pub rings: usize,
    /// How many of both have findings.
    pub stuck: usize,
    /// How many of both could not be judged.
    pub unjudged: usize,
    /// The processes that this user may not read.
    pub hidden: usize,
    /// The processes that did not answer.
    pub silent: usize,
    /// The processes that run code of another processor, or of a 32-bit one.
    pub unsupported: usize,
    /// The threads of the kernel.
    pub of_kernel: usize,
    /// The processes that have ended, and that their parents have not waited for.
    pub zombies: usize,
}

impl Examined {
    /// What to do about the processes that this user may not read.
    pub fn hint(&self) -> Option<&'static str> {
        (self.hidden > 0)
            .then_some("run read-rip as root, outside of any container, to look into all processes")
    }
}

/// Writes the worst finding of a process or ring, how many more there are, and the command that shows them.
///
/// # Errors
///
/// Those of `out`.
pub fn stuck(
    out: &mut dyn Write,
    findings: &[Finding],
    names: &LockNames<'_>,
    process: &str,
    name: &str,
) -> io::Result<()> {
    let Some(Brief { worst, kind, summary }) = Brief::of(findings, names) else { return Ok(()) };
    let (style, process, name) = (style(worst.confidence), printable(process), printable(name));
    writeln!(out, "{style}{kind}{style:#}: {process}: {summary}; next: read-rip check {name}")
}

/// The worst finding in a sentence, and how many there are besides; `None` if there is none.
pub fn brief(findings: &[Finding], names: &LockNames<'_>) -> Option<String> {
    Brief::of(findings, names).map(|Brief { kind, summary, .. }| format!("{kind}: {summary}"))
}

struct Brief<'a> {
    worst: &'a Finding,
    /// `proven deadlock`.
    kind: String,
    summary: String,
}

impl Brief<'_> {
    fn of<'a>(findings: &'a [Finding], names: &LockNames<'_>) -> Option<Brief<'a>> {
        let worst = findings.first()?;
        let kind = format!("{} {}", worst.confidence.name(), worst.kind.name());
        let mut summary = worst.paragraph(names).summary;
        if findings.len() > 1 {
            summary += &format!("; {}", counted(findings.len() as u64 - 1, "more finding"));
        }
        Some(Brief { worst, kind, summary })
    }
}

/// `check --all`: a process or a ring that could not be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unjudged {
    /// What it is called.
    pub process: String,
    /// What to type for it.
    pub name: String,
    /// Why, in words.
    pub why: String,
}

/// Writes which processes could not be judged, in one line for each reason: the most frequent first.
///
/// # Errors
///
/// Those of `out`.
pub fn unjudged(out: &mut dyn Write, all: &[Unjudged]) -> io::Result<()> {
    let mut by_reason: BTreeMap<&str, Vec<&Unjudged>> = BTreeMap::new();
    all.iter().for_each(|one| by_reason.entry(&one.why).or_default().push(one));
    let mut by_reason: Vec<(&str, Vec<&Unjudged>)> = by_reason.into_iter().collect();
    by_reason.sort_by_key(|(_, of)| std::cmp::Reverse(of.len()));
    for (why, of) in by_reason {
        let listed = of.iter().take(LISTED_MAX).map(|one| &*one.process);
        let more = (of.len() > LISTED_MAX).then(|| format!(" and {} more", of.len() - LISTED_MAX));
        let (listed, more) = (listed.collect::<Vec<_>>().join(", "), more.unwrap_or_default());
        let line = format!("{why}: {listed}{more}; next: read-rip check {}", of[0].name);
        writeln!(out, "{}", printable(&line))?;
    }
    Ok(())
}

/// Writes what was looked at.
///
/// # Errors
///
/// Those of `out`.
pub fn examined(out: &mut dyn Write, examined: &Examined) -> io::Result<()> {
    let count = |count: usize, thing| counted(count as u64, thing);
    let processes = match examined.processes {
        1 => "1 process".to_owned(),
        processes => format!("{processes} processes"),
    };
    let rings = match examined.rings {
        0 => String::new(),
        rings => format!(" and {}", count(rings, "ring")),
    };
    let stuck = match examined.stuck {
        0 => "no findings".to_owned(),
        1 => "1 has findings".to_owned(),
        stuck => format!("{stuck} have findings"),
    };
    let unjudged = match examined.unjudged {
        0 => String::new(),
        unjudged => format!(", and {unjudged} could not be judged"),
    };
    writeln!(
        out,
        "Examined {processes} with {}{rings}: {stuck}{unjudged}.",
        count(examined.threads, "thread")
    )?;
    let others = [
        (examined.hidden, "that this user may not read", "that this user may not read"),
        (examined.silent, "that did not answer within 2 s", "that did not answer within 2 s"),
        (examined.unsupported, "that runs code of another processor", "that run code of another processor"),
        (examined.zombies, "that has ended", "that have ended"),
    ];
    let others: Vec<String> = others
        .into_iter()
        .filter(|&(count, ..)| count > 0)
        .map(|(count, one, several)| format!("{count} {}", if count == 1 { one } else { several }))
        .chain((examined.of_kernel > 0).then(|| count(examined.of_kernel, "thread") + " of the kernel"))
        .collect();
    if !others.is_empty() {
        writeln!(out, "Skipped: {}.", others.join(", "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(of: &Examined) -> String {
        let mut out = Vec::new();
        examined(&mut out, of).expect("memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn what_was_not_looked_into_is_counted() {
        let healthy = Examined { processes: 412, threads: 3120, ..Examined::default() };
        assert_eq!(text(&healthy), "Examined 412 processes with 3120 threads: no findings.\n");
        assert_eq!(healthy.hint(), None);
        let one = Examined {
            processes: 1,
            threads: 1,
            rings: 1,
            stuck: 1,
            unjudged: 1,
            hidden: 1,
            silent: 1,
            unsupported: 1,
            of_kernel: 1,
            zombies: 1,
        };
        let expected = "Examined 1 process with 1 thread and 1 ring: 1 has findings, and 1 could not be judged.\n\
            Skipped: 1 that this user may not read, 1 that did not answer within 2 s, \
            1 that runs code of another processor, 1 that has ended, 1 thread of the kernel.\n";
        assert_eq!(text(&one), expected);
        assert!(one.hint().is_some());
        let several = Examined { stuck: 2, hidden: 31, silent: 2, zombies: 2, of_kernel: 210, ..healthy };
        assert!(text(&several).contains(": 2 have findings.\nSkipped: 31 that"), "{}", text(&several));
    }

    #[test]
    fn what_could_not_be_judged_is_listed_by_its_reason() {
        let one = |process: &str, why: &str| Unjudged {
            process: format!("{process}[1]"),
            name: process.to_owned(),
            why: format!("not judged: {why}"),
        };
        let mut all = vec![one("java", "locks")];
        all.extend((0..10).map(|at| one(&format!("web{at}"), "tasks")));
        let mut out = Vec::new();
        unjudged(&mut out, &all).expect("memory");
        let expected = "not judged: tasks: web0[1], web1[1], web2[1], web3[1], web4[1], web5[1], web6[1], web7[1] and 2 \
            more; next: read-rip check web0\n\
            not judged: locks: java[1]; next: read-rip check java\n";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }
}
