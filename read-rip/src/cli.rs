//! The command line: what can be asked, and how it is explained. No work is done here.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  read-rip                          the ring there is, by function: where threads pile up
  read-rip 1234                     the ring of process 1234, living or dead
  read-rip -t RING | less           every thread's history
  read-rip locks RING               who has each lock, who waits for it, and where
  read-rip check RING               deadlocks and other trouble with locks
  read-rip list                     the rings there are, and how their processes ended
  read-rip -e ./server RING.gz      a compressed copy, with the program given by hand
  read-rip --json RING | jq .       for programs";

const TEMPLATE: &str = "\
{about}

{before-help}{usage-heading} {usage}

{all-args}{after-help}";

const EXIT_STATUS: &str = "\
Exit status: 0 read and sound; 1 `check` has found something; 2 an error, or part of the ring could not be read.
Results go to standard output, remarks on them to standard error.";

/// Says where every thread of a process is, from the ring that librip keeps: live, without stopping it, or
/// after its death.
#[derive(Debug, Parser)]
#[command(
    name = "read-rip",
    version,
    subcommand_precedence_over_arg = true,
    before_help = EXAMPLES,
    after_help = EXIT_STATUS,
    help_template = TEMPLATE,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// What to do instead of showing a ring.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Which ring.
    #[command(flatten)]
    pub ring: RingArgs,
    /// How to show it.
    #[command(flatten)]
    pub view: View,
    /// Options of all commands.
    #[command(flatten)]
    pub common: Common,
}

/// Which ring.
#[derive(Args, Debug)]
pub struct RingArgs {
    /// A ring's file (or a gzip, zlib or zstd copy), or a pid; may be left out where there is just one ring
    #[arg(value_name = "RING")]
    pub ring: Option<OsString>,
    /// The ring's file, as an option
    #[arg(short = 'r', value_name = "RING", conflicts_with = "ring")]
    pub ring_option: Option<OsString>,
}

/// How a ring is shown.
#[derive(Args, Debug)]
pub struct View {
    /// One line a thread, with its history
    #[arg(short = 't', long)]
    pub threads: bool,
    /// Addresses, labels and thread ids; with -t exited threads too
    #[arg(short, long)]
    pub verbose: bool,
    /// Only threads whose `name[tid]`, function or `file:line` (of the last mark) matches this
    #[arg(short, long, value_name = "REGEX")]
    pub r#match: Option<regex::Regex>,
}

/// Options of all commands.
#[derive(Args, Debug)]
pub struct Common {
    /// The program that was recorded, if it is not where it was (its build id must be the recorded one)
    #[arg(short, long, value_name = "EXE", global = true)]
    pub exe: Option<PathBuf>,
    /// A directory of separate debug files, with .build-id/ below it (may be given more than once)
    #[arg(long, value_name = "DIR", global = true)]
    pub debug_dir: Vec<PathBuf>,
    /// Where rings are looked for
    #[arg(long, value_name = "DIR", default_value = crate::ring::DEFAULT_DIRECTORY, global = true)]
    pub dir: PathBuf,
    /// JSON, one object a line
    #[arg(long, global = true)]
    pub json: bool,
    /// Colours: on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    pub color: ColorChoice,
}

/// The commands besides showing a ring.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Shows each lock: who has it, who waits for it and where, and how it was used
    Locks(LocksArgs),
    /// Looks for deadlocks and other trouble with locks
    Check(CheckArgs),
    /// Runs a program, and shows its ring and what is wrong if it is killed or crashes
    Run(RunArgs),
    /// Lists the rings there are: program, pid, age, and how the process ended
    List,
    /// Removes the rings of dead processes
    Gc {
        /// Only say what would be removed
        #[arg(short = 'n', long)]
        dry_run: bool,
    },
    /// Shows what a ring says of itself: process, geometry, counters, modules, damage
    Info {
        /// Which ring.
        #[command(flatten)]
        ring: RingArgs,
    },
}

/// What `locks` shows.
#[derive(Args, Debug)]
pub struct LocksArgs {
    /// Which ring.
    #[command(flatten)]
    pub ring: RingArgs,
    /// Locks too that nobody has or waits for and that were always free, however many they are
    #[arg(short, long)]
    pub all: bool,
    /// Addresses, and the threads that wait
    #[arg(short, long)]
    pub verbose: bool,
}

/// What `check` looks for.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Which ring.
    #[command(flatten)]
    pub ring: RingArgs,
    /// Report only what is at least so sure
    #[arg(long, value_name = "CONFIDENCE", default_value = "suspected")]
    pub min_confidence: MinConfidence,
    /// A file of findings not to report, a line each: KIND, or KIND:REGEX for a lock, function or file:line in it
    #[arg(long, value_name = "FILE")]
    pub suppress: Vec<PathBuf>,
    /// A living process is read twice, with so much time in between
    #[arg(long, value_name = "DURATION", default_value = "200ms", value_parser = duration)]
    pub window: Duration,
    /// A lock held, or waited for, so long is worth a word
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub threshold: Duration,
}

impl CheckArgs {
    /// The defaults, for this ring.
    pub fn of(ring: RingArgs) -> CheckArgs {
        CheckArgs {
            ring,
            min_confidence: MinConfidence::Suspected,
            suppress: Vec::new(),
            window: WINDOW,
            threshold: THRESHOLD,
        }
    }
}

/// What `run` runs. Its exit status is the program's, or 128 and the number of the signal that ended it.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Record the pthread locks of a program that was built without librip, by librip_preload.so
    #[arg(long)]
    pub preload: bool,
    /// Where librip_preload.so is, if neither beside this program nor in /usr/local/lib or /usr/lib
    #[arg(long, value_name = "FILE", requires = "preload")]
    pub preload_library: Option<PathBuf>,
    /// The program and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

/// The default of `--window`.
const WINDOW: Duration = Duration::from_millis(200);
/// The default of `--threshold`.
const THRESHOLD: Duration = Duration::from_secs(10);

/// The values of `--min-confidence`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "they would make the help three times as long")]
pub enum MinConfidence {
    Suspected,
    Potential,
    Proven,
}

/// A length of time: a number and its unit.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "it takes a number and a unit, as in 500ms".to_owned())?;
    match unit {
        "us" => Ok(Duration::from_micros(number)),
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "min" => Ok(Duration::from_secs(number.saturating_mul(60))),
        "h" => Ok(Duration::from_secs(number.saturating_mul(3600))),
        _ => Err("its unit is us, ms, s, min or h, as in 500ms".to_owned()),
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
    fn lengths_of_time_have_a_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        for wrong in ["", "5", "ms", "-1s", "1.5s", "3 s", "99999999999999999999s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
