//! Asks `read-rip` all that can be asked about a subject, and collects what each output says.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use librip_test_kit::reader;
use librip_test_kit::run::{Outcome, clean, finish};
use librip_test_kit::tmux::Tmux;

use crate::facts::{Answers, Facts, Key};
use crate::names::Names;
use crate::{drawn, lines, page, tables, texts};

/// So many commands run at a time: those about living processes spend most of their time between two readings.
const AT_ONCE: usize = 6;

/// How an output is read.
type Read = fn(&str, &Names) -> Facts;

/// Commands whose output is text. The first words are the command and its options.
const TEXTS: &[(&str, Read)] = &[
    ("", texts::view),
    ("-t", texts::threads),
    ("-t --json", lines::threads),
    ("--json", lines::threads),
    ("locks -av", texts::locks),
    ("locks -a --json", lines::locks),
    ("tasks -v", texts::task_groups),
    ("tasks --each", texts::each_task),
    ("tasks -a --json", lines::tasks),
    ("stacks", texts::stacks),
    ("stacks --json", lines::stacks),
    ("check", texts::check),
    ("check --json", lines::check),
    ("diff --window 20ms", texts::diff),
    ("export -f openmetrics", tables::metrics),
    ("export -f folded", drawn::folded),
    ("export -f dot", drawn::dot),
    ("export -f chrome", drawn::chrome),
    ("export -f firefox", drawn::firefox),
];

/// What is asked about.
pub(crate) struct Subject<'s> {
    /// What outputs are called in messages, before the command.
    pub(crate) name: &'s str,
    /// A file or a pid.
    pub(crate) target: &'s str,
    /// A directory for files that commands write.
    pub(crate) scratch: &'s Path,
    /// The id of the process, if it lives and `check --all` is asked too.
    pub(crate) pid: Option<u32>,
    /// Whether `top` is asked too, which takes a terminal.
    pub(crate) has_top: bool,
}

/// `read-rip ARGUMENTS`.
fn read_rip(arguments: &[&str]) -> Outcome {
    let mut command = clean(Command::new(reader::program()));
    command.args(arguments);
    finish(command)
}

impl Subject<'_> {
    fn run(&self, options: &[&str]) -> Outcome {
        read_rip(&[options, &[self.target]].concat())
    }

    /// What a command about a subject has to say; `None` if that is no question about such a subject: nothing that is
    /// dead has a difference, and no ring alone has stacks.
    fn output(&self, options: &[&str]) -> Option<Outcome> {
        let outcome = self.run(options);
        let may_refuse = ["stacks", "diff"].contains(options.first().unwrap_or(&""));
        if outcome.status == 2 && may_refuse && outcome.stdout.is_empty() {
            return None;
        }
        assert!([0, 1, 3].contains(&outcome.status), "{options:?}: {outcome:#?}");
        Some(outcome)
    }

    /// All answers about it are added.
    pub(crate) fn ask(&self, answers: &mut Answers) {
        let label = |command: &str| format!("{}: read-rip {command}", self.name).trim().to_owned();
        // The tables say what locks are called.
        let ndjson = self.output(&["export", "-f", "ndjson"]).expect("tables of all subjects").stdout;
        let rows = tables::rows(&ndjson);
        let perfetto = self.scratch.join("trace");
        self.output(&["export", "-f", "perfetto", "-o", &perfetto.to_string_lossy()]).expect("a trace");
        let trace = fs::read(&perfetto).unwrap();
        let names = Names::of(&rows, drawn::boot_ns(&trace));
        answers.add(label("export -f ndjson"), tables::facts(&rows, &names));
        answers.add(label("export -f perfetto"), drawn::perfetto(&trace, &names));

        let added = Mutex::new(answers);
        let add = |output: &str, facts: Facts| added.lock().unwrap().add(label(output), facts);
        let mut jobs: Vec<Box<dyn Fn() + Send + Sync + '_>> = Vec::new();
        for (command, read) in TEXTS {
            let (add, names) = (&add, &names);
            jobs.push(Box::new(move || {
                let options: Vec<&str> = command.split_whitespace().collect();
                let Some(outcome) = self.output(&options) else { return };
                let mut facts = read(&outcome.stdout, names);
                if command.starts_with("check") {
                    facts.say(Key::Status, outcome.status.to_string());
                }
                add(command, facts);
            }));
        }
        jobs.push(Box::new(|| {
            let folder = self.scratch.join("tables");
            self.output(&["export", "-f", "parquet", "-o", &folder.to_string_lossy()]).expect("tables");
            add("export -f parquet", tables::facts(&tables::rows_of_parquet(&folder), &names));
        }));
        jobs.push(Box::new(|| {
            let file = self.scratch.join("page.html");
            self.output(&["report", "-o", &file.to_string_lossy()]).expect("a page");
            add("report", page::page(&fs::read_to_string(&file).unwrap(), &names));
        }));
        if let Some(pid) = self.pid {
            let (add, names) = (&add, &names);
            jobs.push(Box::new(move || {
                add("check --all", texts::check_all(&read_rip(&["check", "--all"]).stdout, pid));
            }));
            jobs.push(Box::new(move || {
                add(
                    "check --all --json",
                    lines::check_all(&read_rip(&["check", "--all", "--json"]).stdout, pid, names),
                );
            }));
        }
        if self.has_top {
            jobs.push(Box::new(|| {
                if let Some(facts) = self.top(&names) {
                    add("top", facts);
                }
            }));
        }
        let next = Mutex::new(jobs.iter());
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    loop {
                        let Some(job) = next.lock().unwrap().next() else { return };
                        job();
                    }
                });
            }
        });
    }

    /// The screen of `top`, if there is a terminal to draw it.
    fn top(&self, names: &Names) -> Option<Facts> {
        let line = format!("{} top {}", reader::program().display(), self.target);
        let name: String = self.scratch.file_name()?.to_string_lossy().into_owned();
        let tmux = Tmux::start(&name, (250, 60), &line)?;
        tmux.shows("Enter open");
        // The list of locks has threads below it. The filter, which matches all, says that the other list is shown.
        tmux.keys(&["2", "/", ".", "Enter"]);
        tmux.shows("/.  Enter open");
        Some(page::top(&tmux.shows("WHAT AND WHERE"), names))
    }
}
