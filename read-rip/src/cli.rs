//! The command line: arguments and help texts. It does no work.

mod diff;
mod export;
mod log;
mod record;
mod report;
#[cfg(feature = "top")]
mod top;
mod typed;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum};
use read_rip_case::Options;
use read_rip_ring::UnpackLimit;

pub use diff::DiffArgs;
pub use export::{ExportArgs, ExportFormat};
pub use log::{
    CapturesArgs, LogArgs, MinLevel, Moment, RefusedTimeArgs, SetArgs, Setting, SpansArgs, TimeArgs,
};
use record::size;
pub use record::{RecordArgs, RotationArgs};
pub use report::ReportArgs;
#[cfg(feature = "top")]
pub use top::TopArgs;
pub use typed::{parse, similar_command};

const EXAMPLES: &str = "\
Examples:
  read-rip                          where threads pile up, by function (if there is only one ring)
  read-rip 1234                     the ring of process 1234, alive or dead; without one, where its
                                    threads stand and what they wait for
  read-rip stacks 1234              the stacks of its threads, grouped
  read-rip core.1234                why a process died, and the same from its core file
  read-rip server                   the ring of the program server: the living one, or the newest
  read-rip -t RING | less           the history of each thread
  read-rip locks RING               who holds each lock, who waits for it, and where
  read-rip log RING                 what threads and tasks said with rip_event!, in one order
  read-rip spans RING               how long spans took, and which are open
  read-rip tasks RING               what its async tasks do, and where they are suspended
  read-rip check RING               deadlocks and other problems with locks, and with tasks
  read-rip check --all              which processes of this machine are stuck
  read-rip run --preload ./server   record the locks of a program, and explain a crash
  read-rip run --check -- make test record all processes of a test, and check each of them
  read-rip top 1234                 a live screen of its locks, threads and tasks
  read-rip save -o FILE RING        a copy for another machine, with two readings and all locations
  read-rip report -o FILE.html RING a page for any browser
  read-rip list                     all rings, and how their processes ended
  read-rip -e ./server RING.gz      a compressed copy, with the program that was recorded
  read-rip --json RING | jq .       output for programs; see json-schema.json";

const TEMPLATE: &str = "\
{about}

{before-help}{usage-heading} {usage}

{all-args}{after-help}";

const EXIT_STATUS: &str = "\
Exit status: 0 success; 1 `check` has findings; 2 an error, or part of the ring could not be read; 3 `check` found \
nothing in the ring that it could judge.
Results go to standard output, remarks to standard error.";

const RUN_EXIT_STATUS: &str = "\
Exit status: that of the program, or 128 plus the number of the signal that ended it; 2 if it could not be run.
With --check: 124 after the time-out. If the program ended with 0: 1 if there are findings, 2 if a ring could not be \
read, 3 if no process recorded anything.";

/// Shows where each thread of a process is, from the ring that librip records, or without a ring from the kernel and
/// its memory, or from a core file. The process may be alive or dead; it is not stopped.
#[derive(Debug, Parser)]
#[command(
    name = "read-rip",
    version,
    subcommand_precedence_over_arg = true,
    before_help = EXAMPLES,
    after_help = EXIT_STATUS,
    help_template = TEMPLATE
)]
pub struct Cli {
    /// What to do instead of showing threads.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Which ring.
    #[command(flatten)]
    pub ring: RingArgs,
    /// What to show of it.
    #[command(flatten)]
    pub show: ShowArgs,
    /// Options of all commands.
    #[command(flatten)]
    pub common: Common,
}

/// Which ring.
#[derive(Args, Debug, Default)]
pub struct RingArgs {
    /// The file of a ring, a core file, a compressed copy of either (gzip, zlib, zstd, xz, lz4), a pid, the name of a
    /// program, or - for a ring on standard input; not needed if there is one ring, or one of a living process
    #[arg(value_name = "RING")]
    pub ring: Option<OsString>,
    /// The same as an option: a pid, or whatever RING may be
    #[arg(
        short = 'p',
        long = "pid",
        visible_short_alias = 'r',
        value_name = "RING",
        conflicts_with = "ring"
    )]
    pub ring_option: Option<OsString>,
}

/// What is shown of a ring.
#[derive(Args, Debug, Default)]
pub struct ShowArgs {
    /// One line per thread, with its history and what it does now
    #[arg(short = 't', long)]
    pub threads: bool,
    /// Also addresses, labels and thread ids; with -t also exited threads
    #[arg(short, long)]
    pub verbose: bool,
    /// Only threads that REGEX matches: in `name[tid]`, in the function or `file:line` of the last mark, or where
    /// several processes share the ring, in `process PID`
    #[arg(short, long, value_name = "REGEX")]
    pub r#match: Option<regex::Regex>,
    /// Which time is shown: threads whose last mark is of that time, or with -t, events of that time.
    #[command(flatten)]
    pub time: TimeArgs,
    /// Whether threads are stopped.
    #[command(flatten)]
    pub stop: StopArgs,
}

/// How the threads of a living process are looked at.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct StopArgs {
    /// Stop each thread of a living process for a moment, one after the other (ptrace): for exact stacks, also of
    /// threads that run. The risk: if a thread begins one of these calls at that moment, the call may fail with EINTR,
    /// which the program may not expect: epoll_wait, semop, sigtimedwait, or a call on a socket with a time limit.
    /// Threads that already sleep in such a call are not stopped. No thread stays stopped, also if read-rip is killed
    #[arg(long)]
    pub stop: bool,
}

/// Options of all commands.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// The program that was recorded, if it is not at its recorded path (its build id must match)
    #[arg(short, long, value_name = "EXE", global = true)]
    pub exe: Option<PathBuf>,
    /// A directory of separate debug files that contains .build-id/ (can be repeated)
    #[arg(long, value_name = "DIR", global = true)]
    pub debug_dir: Vec<PathBuf>,
    /// The directory to search for rings, besides the one that RIP_RING names
    #[arg(long, value_name = "DIR", default_value = read_rip_ring::DEFAULT_DIRECTORY, global = true)]
    pub dir: PathBuf,
    /// With a core file: the ring of the same process, if it is not where the process had it
    #[arg(id = "core_ring", long = "ring", value_name = "FILE", global = true)]
    pub core_ring: Option<PathBuf>,
    /// How much memory a compressed file may take, as in 8G; without this, 64 times its length, at least
    /// 256M and at most 4G
    #[arg(long, value_name = "SIZE", value_parser = size, global = true)]
    pub unpack_limit: Option<u64>,
    /// Write JSON, one object per line
    #[arg(long, global = true)]
    pub json: bool,
    /// Use colours; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    pub color: ColorChoice,
}

impl Common {
    /// How a ring, a process or a core file is read.
    pub fn options(&self) -> Options {
        Options {
            executable: self.exe.clone(),
            debug_dirs: self.debug_dir.clone(),
            core_ring: self.core_ring.clone(),
            unpack_limit: UnpackLimit(self.unpack_limit),
            ..Options::default()
        }
    }

    /// Whether the user names no directory.
    pub fn is_default_dir(&self) -> bool {
        self.dir == Path::new(read_rip_ring::DEFAULT_DIRECTORY)
    }

    /// The directories to search for rings. Without `--dir`, the one that `RIP_RING` names is the first.
    pub fn directories(&self) -> Vec<PathBuf> {
        let mut directories = Vec::new();
        if self.is_default_dir()
            && let Some(path) =
                std::env::var_os("RIP_RING").map(PathBuf::from).filter(|path| path.is_absolute())
        {
            let directory = if path.is_dir() { Some(&*path) } else { path.parent() };
            directories.extend(directory.filter(|directory| directory.is_dir()).map(Path::to_owned));
        }
        if !directories.contains(&self.dir) {
            directories.push(self.dir.clone());
        }
        directories
    }
}

/// What `gc` removes.
#[derive(Args, Debug)]
pub struct GcArgs {
    /// Only print what would be removed
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Also the rings of other users
    #[arg(long)]
    pub all: bool,
    /// Only rings that were made longer ago than this
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub older_than: Option<Duration>,
    /// Keep this many rings of each program and user, the newest ones
    #[arg(long, value_name = "COUNT", default_value = "0")]
    pub keep: usize,
}

/// The commands besides showing threads.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Shows each lock: who holds it, who waits for it and where, and how it was used
    Locks(LocksArgs),
    /// Shows the async tasks: what they do, since when, and where they are suspended
    Tasks(TasksArgs),
    /// Shows the events of all threads and tasks in one order: what the program said with rip_event!, and its spans
    Log(LogArgs),
    /// Shows how long spans took, and which are open
    Spans(SpansArgs),
    /// Shows the histories that the program kept: rip_capture! and slow cycles
    Captures(CapturesArgs),
    /// Switches channels of a living process off and on: what rip_channel! has declared
    Set(SetArgs),
    /// Shows the stacks of a living process or of a core file: which threads do what, and in which functions
    Stacks(StacksArgs),
    /// Finds deadlocks and other problems with locks, and with tasks
    Check(CheckArgs),
    /// A live screen: locks, threads, tasks and findings as they change. Without RING: the processes of this machine
    #[cfg(feature = "top")]
    Top(TopArgs),
    /// Not in this build
    #[cfg(not(feature = "top"))]
    #[command(hide = true)]
    Top {
        /// Whatever the user wants to see
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Shows what has changed between two readings: which threads moved, and which did not
    Diff(DiffArgs),
    /// Writes a file for another program: a timeline, a graph of who waits for whom, or a flame graph's input
    Export(ExportArgs),
    /// Writes one HTML file with the verdict, the locks, the threads and tasks and what they did, for any browser
    Report(ReportArgs),
    /// Saves a compressed copy of a ring, which another machine reads with the same result
    Save(SaveArgs),
    /// Follows a living ring into a file, so that no history is too short: every command reads it like a ring
    Record(RecordArgs),
    /// Runs a program; explains a crash, and with --check all problems with locks, and with tasks
    #[command(after_help = RUN_EXIT_STATUS)]
    Run(RunArgs),
    /// Lists all rings: program, pid, age, and how the process ended
    #[command(visible_alias = "ps")]
    List,
    /// Removes the rings of dead processes, and unfinished rings
    Gc(GcArgs),
    /// Shows what a ring says about itself: process, geometry, counters, modules, damage
    Info {
        /// Which ring.
        #[command(flatten)]
        ring: RingArgs,
    },
    /// Writes completions for a shell to standard output
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Writes a manual page to standard output
    Man {
        /// The command that the page describes, instead of read-rip itself
        command: Option<String>,
    },
    /// Prints the version
    Version,
}

/// What `locks` shows.
#[derive(Args, Debug)]
pub struct LocksArgs {
    /// Which ring.
    #[command(flatten)]
    pub ring: RingArgs,
    /// Also all idle, uncontended locks
    #[arg(short, long)]
    pub all: bool,
    /// Also addresses, and the names of all threads
    #[arg(short, long)]
    pub verbose: bool,
    /// Only locks that REGEX matches: in their name, in the `name[tid]` of a holder or waiter, in the function or
    /// `file:line` of a holder or waiter, or where several processes share the ring, in `process PID`
    #[arg(short, long, value_name = "REGEX")]
    pub r#match: Option<regex::Regex>,
    /// Which time is shown: what overlaps it of holds, waits and uses.
    #[command(flatten)]
    pub time: TimeArgs,
    /// Whether threads are stopped.
    #[command(flatten)]
    pub stop: StopArgs,
}

/// What `tasks` shows.
#[derive(Args, Debug)]
pub struct TasksArgs {
    /// Which ring.
    #[command(flatten)]
    pub ring: RingArgs,
    /// A line for each task, and the tree of its awaits
    #[arg(short, long = "each")]
    pub tasks: bool,
    /// Also tasks that have ended
    #[arg(short, long)]
    pub all: bool,
    /// Also the names of all tasks
    #[arg(short, long)]
    pub verbose: bool,
    /// How long polls took, and how long after a wake they began, by the place where tasks are made. The program counts
    /// that with RIP_POLLS=times
    #[arg(long, conflicts_with_all = ["tasks", "slow"])]
    pub polls: bool,
    /// The longest polls: of which task, when, how long, and where the task was
    #[arg(long, conflicts_with = "tasks")]
    pub slow: bool,
    /// Only tasks that REGEX matches: in `name[task NUMBER]`, or in the function or `file:line` where they are
    #[arg(short, long, value_name = "REGEX")]
    pub r#match: Option<regex::Regex>,
    /// Whether threads are stopped.
    #[command(flatten)]
    pub stop: StopArgs,
}

/// What `stacks` shows.
#[derive(Args, Debug, Default)]
pub struct StacksArgs {
    /// Which ring, which process, or which core file.
    #[command(flatten)]
    pub ring: RingArgs,
    /// Only threads that REGEX matches: in `name[tid]`, or in the function or `file:line` where they stand
    #[arg(short, long, value_name = "REGEX")]
    pub r#match: Option<regex::Regex>,
    /// Also the functions of libraries, of languages and of the system
    #[arg(short, long)]
    pub verbose: bool,
    /// Whether threads are stopped.
    #[command(flatten)]
    pub stop: StopArgs,
}

/// What `check` looks for.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Which ring.
    #[command(flatten)]
    pub ring: RingArgs,
    /// Check all processes of this machine, with rings and without, and the rings of dead ones: one line for each that
    /// is stuck, the most certain first. With --dir: check all rings of that directory
    #[arg(short, long, conflicts_with_all = ["ring", "ring_option", "stop"])]
    pub all: bool,
    /// With --all: only the processes of this control group, and of those below it
    #[arg(long, value_name = "PATH", requires = "all", conflicts_with = "dir")]
    pub cgroup: Option<String>,
    /// Also addresses, and the functions of libraries, of languages and of the system
    #[arg(short, long)]
    pub verbose: bool,
    /// Files for CI.
    #[command(flatten)]
    pub ci: CiArgs,
    /// Which source lines are shown.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Only findings that REGEX matches: in the name of a lock, in the `name[tid]` of a thread or task, in a function,
    /// in `file:line`, or where several processes share the ring, in `process PID`
    #[arg(short, long, value_name = "REGEX")]
    pub r#match: Option<regex::Regex>,
    /// Report only findings that are at least this certain
    #[arg(long, value_name = "CONFIDENCE", default_value = "suspected")]
    pub min_confidence: MinConfidence,
    /// A file of rules for findings not to report, one per line: KIND or KIND:REGEX. REGEX matches the name of a lock,
    /// a full function name, or PATH:LINE (can be repeated)
    #[arg(long, value_name = "FILE")]
    pub suppress: Vec<PathBuf>,
    /// Whether threads are stopped.
    #[command(flatten)]
    pub stop: StopArgs,
    /// The time between the two readings of a living process
    #[arg(long, value_name = "DURATION", default_value = "200ms", value_parser = duration)]
    pub window: Duration,
    /// Report holds and waits that last longer than this; a tenth of it is enough for a wait whose holder records
    /// nothing
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub threshold: Duration,
    /// Refused: `check` takes no time range.
    #[command(flatten)]
    pub time: RefusedTimeArgs,
}

impl CheckArgs {
    /// How a ring, a process or a core file is read.
    pub fn options(&self, common: &Common) -> Options {
        Options { window: self.window, stops_threads: self.stop.stop, ..common.options() }
    }
}

/// Which source lines are shown.
#[derive(Args, Clone, Debug, Default)]
pub struct SourceArgs {
    /// A directory to search for source files; findings show their lines on a terminal (can be repeated)
    #[arg(long, value_name = "DIR")]
    pub source_dir: Vec<PathBuf>,
    /// Show no source lines
    #[arg(long, conflicts_with = "source_dir")]
    pub no_source: bool,
}

/// Files for CI.
#[derive(Args, Clone, Debug, Default)]
pub struct CiArgs {
    /// Also write the findings to FILE as JUnit's XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Also write the findings to FILE as SARIF 2.1.0
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
}

/// What `save` saves.
#[derive(Args, Debug)]
pub struct SaveArgs {
    /// Which ring.
    #[command(flatten)]
    pub ring: RingArgs,
    /// The file to write; an existing file is replaced. Default: the name of the ring and `.saved.gz`, in the present
    /// directory
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Whether threads are stopped.
    #[command(flatten)]
    pub stop: StopArgs,
    /// The time between the two readings of a living process
    #[arg(long, value_name = "DURATION", default_value = "200ms", value_parser = duration)]
    pub window: Duration,
}

/// What `run` runs.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Record the program and all processes beneath it, check each, and fail if one has findings
    #[arg(long)]
    pub check: bool,
    /// With --check: explain and end what still runs after this time, with a ring or without; the exit status is then
    /// 124. Time in which a compiler runs (of Rust, C or C++) does not count
    #[arg(long, value_name = "DURATION", requires = "check", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// The time between SIGTERM and SIGKILL for what is ended
    #[arg(long, value_name = "DURATION", requires = "timeout", default_value = "5s", value_parser = duration)]
    pub grace: Duration,
    /// With --check: report only findings that are at least this certain; without this, potential, and suspected for
    /// what still runs after the time-out
    #[arg(long, value_name = "CONFIDENCE", requires = "check")]
    pub min_confidence: Option<MinConfidence>,
    /// With --check: a file of rules for findings not to report, as for `check` (can be repeated)
    #[arg(long, value_name = "FILE", requires = "check")]
    pub suppress: Vec<PathBuf>,
    /// With --check: where all rings are kept; otherwise only rings with findings stay, in a directory of their own
    #[arg(long, value_name = "DIR", requires = "check")]
    pub rings: Option<PathBuf>,
    /// Files for CI.
    #[command(flatten)]
    pub ci: CiArgs,
    /// Which source lines are shown.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Preload librip_preload.so: it records the pthread locks of a program that was built without librip
    #[arg(long)]
    pub preload: bool,
    /// The path of librip_preload.so, if it is not beside this program, in /usr/local/lib or in /usr/lib
    #[arg(long, value_name = "FILE", requires = "preload")]
    pub preload_library: Option<PathBuf>,
    /// The program and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

/// The default of `--threshold`.
pub(crate) const THRESHOLD: Duration = Duration::from_secs(10);

/// The values of `--min-confidence`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "they would make the help three times as long")]
pub enum MinConfidence {
    Suspected,
    Potential,
    Proven,
}

/// Parses a number and a unit.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "expected a number and a unit, as in 500ms".to_owned())?;
    match unit {
        "us" => Ok(Duration::from_micros(number)),
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "min" => Ok(Duration::from_secs(number.saturating_mul(60))),
        "h" => Ok(Duration::from_secs(number.saturating_mul(3600))),
        _ => Err("the unit must be us, ms, s, min or h, as in 500ms".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        for wrong in ["", "5", "ms", "-1s", "1.5s", "3 s", "99999999999999999999s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
