//! The command line: what can be asked, and how it is explained. No work is done here.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ColorChoice, Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  read-rip                          the ring there is, by function: where threads pile up
  read-rip 1234                     the ring of process 1234, living or dead
  read-rip -t RING | less           every thread's history
  read-rip list                     the rings there are, and how their processes ended
  read-rip -e ./server RING.gz      a compressed copy, with the program given by hand
  read-rip --json RING | jq .       for programs";

const TEMPLATE: &str = "\
{about}

{before-help}{usage-heading} {usage}

{all-args}{after-help}";

const EXIT_STATUS: &str = "\
Exit status: 0 read and sound; 2 an error, or part of the ring could not be read.
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
    #[arg(long, value_name = "DIR", default_value = librip::layout::DEFAULT_DIRECTORY, global = true)]
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
