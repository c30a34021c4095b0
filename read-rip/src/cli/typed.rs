//! What the user typed: options before or after the command mean the same, and typing errors get a suggestion.
//!
//! It runs nothing.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use read_rip_evidence::core::is_core;
use read_rip_ring as ring;

use super::{CheckArgs, Cli, Command, RingArgs, ShowArgs, StopArgs, TimeArgs};

/// More letters than this are no typing error.
const WRONG_LETTERS_MAX: usize = 2;

/// Parses arguments, of which the first is the name of this program.
///
/// # Errors
///
/// If the arguments contradict one another, or something in them is not known. Help and version are errors too.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let parsed = Cli::try_parse_from(&arguments);
    parsed.map_err(|error| with_suggestion(error, &arguments))?.combined()
}

/// The command that a word resembles.
pub fn similar_command(word: &OsStr) -> Option<String> {
    let word = word.to_str()?;
    let command = Cli::command();
    let names =
        command.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
    let distances = names.map(|name| (strsim::damerau_levenshtein(word, name), name));
    let (distance, name) = distances.min()?;
    // Most of the letters must agree: two wrong ones of three are another word.
    (distance <= WRONG_LETTERS_MAX && 2 * distance < name.len()).then(|| name.to_owned())
}

/// A word that is no command is taken for a ring, and the next one is the error. The user means the first one.
fn with_suggestion(error: clap::Error, arguments: &[OsString]) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let words = arguments.iter().skip(1).take_while(|&word| word != "--");
    let mut unknown = words.filter(|word| !Path::new(word).exists());
    let suggestion = unknown.find_map(|word| Some((word, similar_command(word)?)));
    match suggestion {
        Some((word, command)) if word.to_str() != Some(&*command) => {
            let mut better = clap::Error::new(ErrorKind::InvalidSubcommand).with_cmd(&Cli::command());
            let word = word.to_string_lossy().into_owned();
            better.insert(ContextKind::InvalidSubcommand, ContextValue::String(word));
            better.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![command]));
            better
        }
        _ => error,
    }
}

impl Cli {
    /// Gives the command what stands before it: nothing that the user typed is ignored.
    fn combined(mut self) -> Result<Cli, clap::Error> {
        let Some(command) = &mut self.command else { return Ok(self) };
        let before = std::mem::take(&mut self.ring);
        let ShowArgs { threads, verbose, r#match, time, stop } = std::mem::take(&mut self.show);
        let name = command.name();
        let has_no = |what: &str| conflict(format!("`{name}` has no {what}"));
        let is_check_of_time = match command {
            Command::Check(args) => time.is_limited() || args.time.is_given(),
            _ => false,
        };
        if is_check_of_time {
            return Err(conflict(CHECK_OF_TIME.to_owned()));
        }
        if let Some(named) = before.name().map(|named| named.to_string_lossy().into_owned()) {
            let takes_all = command.takes_all();
            match command.ring() {
                None => return Err(conflict(format!("`{name}` takes no RING, but {named} is one"))),
                Some(_) if takes_all => {
                    return Err(conflict(format!("`check --all` checks all rings, but {named} is one")));
                }
                Some(after) => match after.name() {
                    None => *after = before,
                    Some(other) => {
                        let other = other.to_string_lossy();
                        return Err(conflict(format!("two rings are named: {named} and {other}")));
                    }
                },
            }
        }
        if threads {
            return Err(has_no("option -t"));
        }
        if verbose {
            *command.verbose().ok_or_else(|| has_no("option -v"))? = true;
        }
        if stop.stop && command.takes_all() {
            return Err(conflict("`check --all` stops no threads".to_owned()));
        }
        if stop.stop {
            *command.stop().ok_or_else(|| has_no("option --stop"))? = stop;
        }
        if time.is_limited() {
            let of_command = command.time().ok_or_else(|| has_no("option --since, --until or --last"))?;
            if of_command.is_limited() {
                return Err(conflict("the time is given twice".to_owned()));
            }
            *of_command = time;
        }
        if r#match.is_some() {
            let of_command = command.matching().ok_or_else(|| has_no("option -m"))?;
            if of_command.is_some() {
                return Err(conflict("-m is given twice".to_owned()));
            }
            *of_command = r#match;
        }
        Ok(self)
    }
}

/// Why `check` takes no time.
const CHECK_OF_TIME: &str = "\
    `check` judges the last state and all that led to it: in a part of the time, one side of a problem could be \
    missing; `read-rip locks` and `read-rip -t` show a part of the time";

impl Command {
    fn name(&self) -> &'static str {
        match self {
            Command::Locks(_) => "locks",
            Command::Tasks(_) => "tasks",
            Command::Top(_) => "top",
            Command::Log(_) => "log",
            Command::Spans(_) => "spans",
            Command::Captures(_) => "captures",
            Command::Set(_) => "set",
            Command::Stacks(_) => "stacks",
            Command::Check(_) => "check",
            Command::Diff(_) => "diff",
            Command::Export(_) => "export",
            Command::Save(_) => "save",
            Command::Record(_) => "record",
            Command::Report(_) => "report",
            Command::Run(_) => "run",
            Command::List => "list",
            Command::Gc(_) => "gc",
            Command::Info { .. } => "info",
            Command::Completions { .. } => "completions",
            Command::Man { .. } => "man",
        }
    }

    fn time(&mut self) -> Option<&mut TimeArgs> {
        match self {
            Command::Locks(args) => Some(&mut args.time),
            Command::Log(args) => Some(&mut args.time),
            Command::Spans(args) => Some(&mut args.time),
            Command::Captures(args) => Some(&mut args.time),
            Command::Export(args) => Some(&mut args.time),
            _ => None,
        }
    }

    fn ring(&mut self) -> Option<&mut RingArgs> {
        match self {
            Command::Locks(args) => Some(&mut args.ring),
            Command::Tasks(args) => Some(&mut args.ring),
            Command::Top(args) => Some(&mut args.ring),
            Command::Log(args) => Some(&mut args.ring),
            Command::Spans(args) => Some(&mut args.ring),
            Command::Captures(args) => Some(&mut args.ring),
            Command::Stacks(args) => Some(&mut args.ring),
            Command::Check(args) => Some(&mut args.ring),
            Command::Info { ring } => Some(ring),
            Command::Save(args) => Some(&mut args.ring),
            Command::Diff(args) => Some(&mut args.ring),
            Command::Export(args) => Some(&mut args.ring),
            Command::Record(args) => Some(&mut args.ring),
            Command::Report(args) => Some(&mut args.ring),
            _ => None,
        }
    }

    /// Whether it reads all rings.
    fn takes_all(&self) -> bool {
        matches!(self, Command::Check(CheckArgs { all: true, .. }))
    }

    fn verbose(&mut self) -> Option<&mut bool> {
        match self {
            Command::Locks(args) => Some(&mut args.verbose),
            Command::Tasks(args) => Some(&mut args.verbose),
            Command::Diff(args) => Some(&mut args.verbose),
            _ => None,
        }
    }

    fn stop(&mut self) -> Option<&mut StopArgs> {
        match self {
            Command::Locks(args) => Some(&mut args.stop),
            Command::Tasks(args) => Some(&mut args.stop),
            Command::Stacks(args) => Some(&mut args.stop),
            Command::Check(args) => Some(&mut args.stop),
            Command::Report(args) => Some(&mut args.stop),
            Command::Save(args) => Some(&mut args.stop),
            _ => None,
        }
    }

    fn matching(&mut self) -> Option<&mut Option<regex::Regex>> {
        match self {
            Command::Locks(args) => Some(&mut args.r#match),
            Command::Tasks(args) => Some(&mut args.r#match),
            Command::Log(args) => Some(&mut args.r#match),
            Command::Spans(args) => Some(&mut args.r#match),
            Command::Captures(args) => Some(&mut args.r#match),
            Command::Stacks(args) => Some(&mut args.r#match),
            Command::Check(args) => Some(&mut args.r#match),
            _ => None,
        }
    }
}

impl RingArgs {
    /// The process that the ring is named by, unless a file has that name.
    pub fn process(&self) -> Option<u32> {
        let name = self.name().filter(|_| !self.is_file())?;
        name.to_str()?.parse().ok()
    }

    /// Whether the user named a file. A directory, a program or a text in the present directory hides no process of its
    /// name.
    pub fn is_file(&self) -> bool {
        let Some(path) = self.name().map(Path::new) else { return false };
        match path.components().count() {
            1 if !path.has_root() => is_core(path) || ring::may_be_ring(path),
            _ => path.symlink_metadata().is_ok(),
        }
    }

    /// The ring that the user named.
    pub fn name(&self) -> Option<&OsStr> {
        self.ring.as_deref().or(self.ring_option.as_deref())
    }
}

fn conflict(what: String) -> clap::Error {
    Cli::command().error(ErrorKind::ArgumentConflict, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Cli, String> {
        let words = ["read-rip"].into_iter().chain(line.split_whitespace()).map(OsString::from);
        parse(words).map_err(|error| error.to_string())
    }

    #[test]
    fn a_ring_may_stand_before_or_after_its_command() {
        for line in ["7 check", "check 7", "-r 7 check", "check -r 7", "--json 7 check"] {
            let Some(Command::Check(args)) = parsed(line).unwrap().command else { panic!("{line}") };
            assert_eq!(args.ring.name(), Some(OsStr::new("7")), "{line}");
        }
        assert_eq!(parsed("7").unwrap().ring.name(), Some(OsStr::new("7")));
    }

    #[test]
    fn a_ring_that_no_command_reads_is_an_error() {
        assert!(parsed("7 check 8").unwrap_err().starts_with("error: two rings are named: 7 and 8\n"));
        assert!(parsed("7 list").unwrap_err().starts_with("error: `list` takes no RING, but 7 is one\n"));
        assert!(parsed("7 run true").unwrap_err().contains("`run` takes no RING"));
        // What follows COMMAND belongs to it.
        assert!(parsed("run -- true 7 -t").is_ok());
    }

    #[test]
    fn an_option_before_a_command_belongs_to_it_or_is_an_error() {
        let Some(Command::Locks(args)) = parsed("-v -m main locks").unwrap().command else { panic!() };
        assert!(args.verbose && args.r#match.is_some_and(|pattern| pattern.as_str() == "main"));
        assert!(parsed("-t check").unwrap_err().starts_with("error: `check` has no option -t\n"));
        assert!(parsed("-m a gc").unwrap_err().starts_with("error: `gc` has no option -m\n"));
        assert!(parsed("-m a check -m b").unwrap_err().starts_with("error: -m is given twice\n"));
    }

    #[test]
    fn a_word_like_a_command_gets_a_suggestion() {
        for (typed, meant) in [("chek", "check"), ("lock", "locks"), ("lsit", "list"), ("inof", "info")] {
            assert_eq!(similar_command(OsStr::new(typed)).as_deref(), Some(meant));
        }
        for other in ["server", "4711", "gx", "ring.gz", ""] {
            assert_eq!(similar_command(OsStr::new(other)), None, "{other}");
        }
        let error = parsed("chek 4711").unwrap_err();
        assert!(error.starts_with(
            "error: unrecognized subcommand 'chek'\n\n  tip: a similar subcommand exists: 'check'"
        ));
        let error = parsed("check 4711 4712").unwrap_err();
        assert!(error.starts_with("error: unexpected argument '4712' found\n"), "{error}");
    }
}
