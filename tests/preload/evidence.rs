//! More evidence never makes an answer worse: programs that nothing prepared, interposed, with marks by hand, as
//! copies, as core files and after their death are compared.
//!
//! A program is judged with less and with more evidence. What is found with less must be found with more: of the same
//! kind or of one that explains more, as surely, and about the same threads. Nothing that is found, or that cannot be
//! judged, becomes sound.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

use librip_test_kit::tool::{is_installed, tool};
use librip_test_kit::victim::DEADLINE;
use librip_test_kit::{core, reader};
use serde_json::Value;

use crate::{c_archive, compile_as, directory, plan, preload};

/// The stories of `fixtures/evidence.c`, and what is found of each living one, whatever prepared it.
const STORIES: [(&str, &[&str]); 10] = [
    ("circle", &["proven deadlock"]),
    ("circle of many", &["proven deadlock"]),
    ("again", &["proven deadlock"]),
    ("joins", &["proven deadlock"]),
    ("writer", &["proven deadlock"]),
    ("keeper with a child", &["suspected long-wait"]),
    ("keeper at a pipe", &["suspected long-wait"]),
    ("keeper in a monitor", &["suspected long-wait"]),
    ("early return", &["suspected long-wait"]),
    ("pool", &[]),
];

/// What prepared a program, and how else than by its pid it is judged.
const PREPARATIONS: [(&str, &[&str]); 4] = [
    ("unprepared", &["core"]),
    ("interposed", &["ring", "core", "saved", "dead"]),
    ("by hand", &["ring", "dead"]),
    ("by hand, beside", &["dead"]),
];

/// Which answer rests on less evidence, and which on more: the same, and something besides.
const ORDER: [(&str, &str); 12] = [
    ("unprepared", "interposed"),
    ("unprepared", "by hand"),
    ("unprepared", "by hand, beside"),
    ("unprepared, core", "interposed, core"),
    ("interposed, dead", "interposed"),
    ("by hand, dead", "by hand"),
    ("by hand, beside, dead", "by hand, beside"),
    // These are the same.
    ("interposed, ring", "interposed"),
    ("interposed", "interposed, ring"),
    ("interposed, saved", "interposed"),
    ("interposed", "interposed, saved"),
    ("by hand", "by hand, ring"),
];

/// What `check` says of a program.
#[derive(Clone, Debug)]
struct Answer {
    found: Vec<Finding>,
    status: i32,
}

#[derive(Clone, Debug)]
struct Finding {
    confidence: String,
    kind: String,
    /// How many threads it names, and their names as far as they are known.
    threads: usize,
    names: BTreeSet<String>,
}

/// `read-rip check` of a process or a file.
fn check(of: impl AsRef<Path>) -> Answer {
    let outcome = reader::ask(&["check", "--json", "--threshold", "100ms"], of.as_ref());
    let finding = |finding: Value| {
        let field = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
        let threads = finding["threads"].as_array().map_or(&[][..], Vec::as_slice);
        let names = threads.iter().filter_map(|thread| thread["name"].as_str().map(str::to_owned));
        Finding {
            confidence: field("confidence"),
            kind: field("kind"),
            threads: threads.len(),
            names: names.collect(),
        }
    };
    let found = outcome.data("finding").into_iter().map(finding).collect();
    Answer { found, status: outcome.status }
}

impl Finding {
    fn certainty(&self) -> usize {
        let all = ["suspected", "potential", "proven"];
        all.iter().position(|known| *known == self.confidence).expect("a confidence")
    }

    /// How much it explains: of a stall, only that nobody moves; of a long wait, who waits; of the others, why.
    fn depth(&self) -> usize {
        match &*self.kind {
            "stall" => 0,
            "long-wait" | "pile-up" | "convoy" | "long-hold" => 1,
            _ => 2,
        }
    }

    /// Whether it says all that another one says.
    fn has(&self, less: &Finding) -> bool {
        let is_of_kind = self.kind == less.kind || self.depth() > less.depth();
        // A stall names one thread of each place.
        let has_threads =
            less.kind == "stall" || self.names.is_superset(&less.names) && self.threads >= less.threads;
        is_of_kind && self.certainty() >= less.certainty() && has_threads
    }
}

impl Answer {
    /// What is lost of this answer in one that rests on more evidence.
    fn lost_in(&self, more: &Answer) -> Option<String> {
        let lost = self.found.iter().find(|less| !more.found.iter().any(|more| more.has(less)));
        let lost = lost.map(|lost| format!("{lost:?}"));
        lost.or_else(|| (self.status != 0 && more.status == 0).then(|| format!("status {}", self.status)))
    }

    fn kinds(&self) -> Vec<String> {
        self.found.iter().map(|finding| format!("{} {}", finding.confidence, finding.kind)).collect()
    }
}

/// The programs that the stories run, and what is preloaded.
struct Programs {
    plain: PathBuf,
    by_hand: PathBuf,
    beside: PathBuf,
}

impl Programs {
    fn build() -> Programs {
        let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../librip/capi");
        let include = format!("-I{}", header.display());
        let archive = c_archive();
        let flags = ["-DBY_HAND", &include, archive.to_str().unwrap(), "-lm"];
        Programs {
            plain: compile_as("evidence", "evidence", &[]),
            by_hand: compile_as("evidence", "evidence-by-hand", &flags),
            beside: compile_as("evidence", "evidence-beside", &[&["-DBY_HAND_BESIDE"], &flags[..]].concat()),
        }
    }

    fn of(&self, preparation: &str) -> (&Path, Vec<&Path>) {
        match preparation {
            "unprepared" => (&self.plain, vec![]),
            "interposed" => (&self.plain, vec![preload()]),
            "by hand" => (&self.by_hand, vec![]),
            _ => (&self.beside, vec![]),
        }
    }

    /// Starts a story, asks about it in these ways, the last of which may be after its death. The answers by name.
    fn tell(&self, story: &str, preparation: &str, ways: &[&str]) -> Vec<(String, Answer)> {
        let (program, libraries) = self.of(preparation);
        let mut victim = plan(program, &[story], &libraries).start();
        victim.until("ready");
        let mut told = vec![(preparation.to_owned(), check(victim.pid().to_string()))];
        for &way in ways {
            let file = victim.dir().join(way);
            let answer = match way {
                "core" => {
                    core::write(victim.pid(), 0, &file);
                    check(&file)
                }
                "saved" => {
                    let mut save = Command::new(reader::program());
                    tool(save.arg("save").arg(victim.ring_path()).arg("-o").arg(&file));
                    check(&file)
                }
                "ring" => check(victim.ring_path()),
                _ => {
                    let remains = victim.killed();
                    told.push((format!("{preparation}, {way}"), check(remains.ring_path())));
                    break;
                }
            };
            told.push((format!("{preparation}, {way}"), answer));
        }
        told
    }

    /// All answers about a story, by name.
    fn ask(&self, story: &str) -> BTreeMap<String, Answer> {
        thread::scope(|scope| {
            let told = PREPARATIONS.map(|(name, ways)| scope.spawn(move || self.tell(story, name, ways)));
            told.into_iter().flat_map(|told| told.join().unwrap()).collect()
        })
    }
}

/// What is wrong with the answers about a story.
fn wrong(story: &str, expected: &[&str], told: &BTreeMap<String, Answer>) -> Vec<String> {
    let worse = ORDER.iter().filter_map(|&(less, more)| {
        let lost = told[less].lost_in(&told[more])?;
        // What the ring of a dead process leaves open, the kernel may settle.
        let is_settled = less.ends_with(", dead") && told[less].found.is_empty();
        (!is_settled).then(|| format!("{story}: {less}: {lost}, and {more}: {:?}", told[more]))
    });
    let other = PREPARATIONS.iter().filter(|(name, _)| told[*name].kinds() != expected);
    let other = other.map(|(name, _)| format!("{story}: {name}: {:?}, and not {expected:?}", told[*name]));
    let sound = told.iter().filter(|(_, answer)| answer.status == 0 && !expected.is_empty());
    let sound = sound.map(|(name, _)| format!("{story}: {name}: a stuck program is called sound"));
    worse.chain(other).chain(sound).collect()
}

#[test]
fn more_evidence_never_makes_an_answer_worse() {
    let programs = &Programs::build();
    let wrong: Vec<String> = thread::scope(|scope| {
        let told = STORIES
            .map(|(story, expected)| scope.spawn(move || wrong(story, expected, &programs.ask(story))));
        told.into_iter().flat_map(|wrong| wrong.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The copy had no waits between processes, so it was called sound.
#[test]
fn a_copy_has_the_waits_between_processes() {
    let program = compile_as("evidence", "evidence", &[]);
    let mut victim = plan(&program, &["reaps writer"], &[preload()]).start();
    victim.until("ready");
    let began = Instant::now();
    let lives = || check(victim.pid().to_string()).kinds();
    while lives() != ["proven deadlock"] {
        assert!(began.elapsed() < DEADLINE, "{:?}", lives());
    }
    let saved = victim.dir().join("saved.gz");
    tool(Command::new(reader::program()).arg("save").arg(victim.ring_path()).arg("-o").arg(&saved));
    assert_eq!(check(&saved).kinds(), lives());
}

/// A Java virtual machine with a deadlock of monitors; `None` without Java.
fn java() -> Option<Vec<&'static str>> {
    if !is_installed("javac") || !is_installed("java") {
        eprintln!("SKIPPED java: javac and java are not installed");
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../read-rip/tests/programs/Deadlock.java");
    tool(Command::new("javac").arg("-d").arg(directory()).arg(source));
    let classes = directory().to_str().expect("a path of this machine");
    Some(vec!["-Xint", "-Xmx64m", "-XX:+UseSerialGC", "-cp", classes, "Deadlock"])
}

#[test]
fn a_managed_runtime_is_not_judged_whatever_prepared_it() {
    let Some(arguments) = java() else { return };
    let judged = |of: &Path| {
        let output = Command::new(reader::program()).arg("check").arg(of).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let says_so = |(status, said): (Option<i32>, String)| {
        assert_eq!(status, Some(3), "{said}");
        assert!(said.contains("not judged: Java's monitors and locks are not seen"), "{said}");
    };
    let mut stuck =
        [&[][..], &[preload()]].map(|libraries| plan("java".as_ref(), &arguments, libraries).start());
    for victim in &mut stuck {
        victim.until("ready");
        says_so(judged(Path::new(&victim.pid().to_string())));
    }
    let [_, interposed] = stuck;
    let saved = interposed.dir().join("saved.gz");
    tool(Command::new(reader::program()).arg("save").arg(interposed.ring_path()).arg("-o").arg(&saved));
    says_so(judged(&saved));
    says_so(judged(&interposed.killed().ring_path()));
}

/// Scenarios with the recorder's own locks. An idle pool is none of them: without a record it looks stuck.
const SCENARIOS: [&str; 11] = [
    "cycle-2",
    "cycle-through-a-condition",
    "cycle-through-an-unrecorded-mutex",
    "join-under-a-lock",
    "holder-joins",
    "holder-receives",
    "holder-reads-a-socket",
    "guard-forgotten",
    "chain-of-locks",
    "idle-pool",
    "nobody-left",
];

#[test]
fn what_is_found_without_the_recorders_locks_is_found_with_them() {
    let ask = |scenario: &str, is_recorded: bool| {
        let plan = plan(env!("CARGO_BIN_EXE_scenario").as_ref(), &[scenario], &[]);
        let mut victim = if is_recorded { plan } else { plan.env("RIP_RING", "off") }.start();
        victim.until("ready");
        // `main` waits too, after it has said so.
        until_all_sleep(victim.pid());
        check(victim.pid().to_string())
    };
    let compare = |scenario: &str| {
        let [less, more] = [false, true].map(|is_recorded| ask(scenario, is_recorded));
        less.lost_in(&more).map(|lost| format!("{scenario}: {lost}, and recorded: {more:?}"))
    };
    let wrong: Vec<String> = thread::scope(|scope| {
        let all = SCENARIOS.map(|scenario| scope.spawn(move || compare(scenario)));
        all.into_iter().filter_map(|wrong| wrong.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns when all threads of a process sleep in system calls.
fn until_all_sleep(pid: u32) {
    let deadline = Instant::now() + DEADLINE;
    let sleeps = |task: std::fs::DirEntry| {
        let call = std::fs::read_to_string(task.path().join("syscall")).unwrap_or_default();
        call.starts_with(|first: char| first.is_ascii_digit())
    };
    while !std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten().all(sleeps) {
        assert!(Instant::now() < deadline, "{pid} does not sleep");
        librip_test_kit::pause();
    }
}
