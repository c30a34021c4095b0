//! The commands, from their arguments to their exit status.
//!
//! The commands connect the layers. They decode, analyse and format nothing themselves.

mod captures;
mod check;
mod collect;
mod diff;
mod error;
mod export;
mod gc;
mod install;
mod judged;
mod limits;
mod locks;
mod log;
mod machine;
mod matching;
mod output;
#[cfg(feature = "parquet")]
mod parquet;
mod picture;
mod processes_by;
mod progress;
mod record;
mod remarks;
mod report;
mod rings;
mod run;
mod save;
mod set;
mod show;
mod signals;
mod source;
mod tasks;
mod timelines;
#[cfg(feature = "top")]
mod top;
mod unrecorded;
mod verdict;
mod wrap;
mod written;

use std::io;
use std::process::ExitCode;

use crate::cli::{self, Cli, Command};
use error::AppError;
use output::{ERROR, remark, unanswered};

/// Gives the terminal back, if a screen is shown, in a signal handler that ends the program.
pub fn give_back_terminal() {
    #[cfg(feature = "top")]
    top::terminal::give_back_in_signal();
}

/// Runs the command that the arguments ask for.
pub fn main() -> ExitCode {
    if read_rip_files::become_helper() {
        return ExitCode::SUCCESS;
    }
    match cli::parse(std::env::args_os()) {
        Ok(cli) => run_command(cli),
        Err(error) => error.exit(),
    }
}

/// Runs a command. Writes to standard output and standard error, as the program does.
pub fn run_command(cli: Cli) -> ExitCode {
    let result = match cli.command {
        None => show::show(&cli.ring, &cli.show, &cli.common),
        Some(Command::List) => rings::list(&cli.common),
        Some(Command::Gc(args)) => gc::gc(&args, &cli.common),
        Some(Command::Info { ring }) => show::info(&ring, &cli.common),
        Some(Command::Locks(args)) => locks::locks(&args, &cli.common),
        Some(Command::Tasks(args)) => tasks::tasks(&args, &cli.common),
        Some(Command::Log(args)) => log::log(&args, &cli.common),
        Some(Command::Spans(args)) => log::spans(&args, &cli.common),
        Some(Command::Captures(args)) => captures::captures(&args, &cli.common),
        Some(Command::Set(args)) => set::set(&args, &cli.common),
        Some(Command::Stacks(args)) => unrecorded::stacks(&args, &cli.common),
        Some(Command::Check(args)) if args.all && cli.common.is_default_dir() => {
            machine::check(&args, &cli.common)
        }
        Some(Command::Check(args)) => collect::check(&args, &cli.common),
        Some(Command::Save(args)) => save::save(&args, &cli.common),
        #[cfg(not(feature = "top"))]
        Some(Command::Top { .. }) => Err(AppError::NotBuilt { what: "live screen", feature: "top" }),
        #[cfg(feature = "top")]
        Some(Command::Top(args)) => top::top(&args, &cli.common),
        Some(Command::Diff(args)) => diff::diff(&args, &cli.common),
        Some(Command::Export(args)) => export::export(&args, &cli.common),
        Some(Command::Report(args)) => report::report(&args, &cli.common),
        Some(Command::Record(args)) => record::record(&args, &cli.common),
        Some(Command::Run(args)) => run::run(&args, &cli.common),
        Some(Command::Completions { shell }) => install::completions(shell),
        Some(Command::Man { command }) => install::man(command.as_deref()),
        Some(Command::Version) => install::version(),
    };
    for what in unanswered() {
        remark(format_args!("Warning: {what}"));
    }
    match result {
        Ok(status) => ExitCode::from(status),
        // The program that reads the output has closed it. That is not an error.
        Err(AppError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            error.report();
            ExitCode::from(ERROR)
        }
    }
}
