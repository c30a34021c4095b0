//! What the user typed: options before or after the command mean the same, and typing errors get a suggestion.
//!
//! It runs nothing.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, ValueEnum};
use read_rip_evidence::core::is_core;
use read_rip_ring as ring;

use super::export::ExportFormat;
use super::{Cli, Command, RingArgs};

/// More letters than this are no typing error.
const WRONG_LETTERS_MAX: usize = 2;

/// Parses arguments, of which the first is the name of this program.
///
/// # Errors
///
/// If the arguments contradict one another, or something in them is not known. Help and version are errors too.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let arguments = command_first(arguments.into_iter().collect())?;
    let cli = Cli::try_parse_from(&arguments).map_err(|error| with_suggestion(error, &arguments))?;
    match &cli.command {
        Some(Command::Check(args)) if args.time.is_given() => Err(conflict(CHECK_OF_TIME.to_owned())),
        _ => Ok(cli),
    }
}

/// The arguments with the command before all others. So what stands before the command means the same as after it, or
/// is the same error.
fn command_first(mut arguments: Vec<OsString>) -> Result<Vec<OsString>, clap::Error> {
    let cli = Cli::command();
    let mut is_value = false;
    let mut ring = None;
    let mut found = None;
    for (at, word) in arguments.iter().enumerate().skip(1) {
        if std::mem::take(&mut is_value) {
            continue;
        }
        let text = word.to_string_lossy();
        if text == "--" || text == HELP {
            break;
        } else if is_command(&cli, &text) {
            found = Some((at, text == RUN));
            break;
        } else if text.len() > 1 && text.starts_with('-') {
            is_value = awaits_value(&cli, &text);
        } else {
            ring.get_or_insert(text);
        }
    }
    let Some((at, is_run)) = found else { return Ok(arguments) };
    if let Some(ring) = ring.filter(|_| is_run) {
        // After the command, it would be the program.
        return Err(conflict(format!("`run` takes no RING, but {ring} is one")));
    }
    arguments[1..=at].rotate_right(1);
    Ok(arguments)
}

/// The command before which nothing is moved: its argument is a command too.
const HELP: &str = "help";
/// The command that takes no ring.
const RUN: &str = "run";

/// The command that takes a format.
const EXPORT: &str = "export";

fn is_command(cli: &clap::Command, word: &str) -> bool {
    cli.get_subcommands().any(|of| of.get_name() == word || of.get_all_aliases().any(|alias| alias == word))
}

/// Whether the word after this option is its value.
fn awaits_value(cli: &clap::Command, option: &str) -> bool {
    let all = || cli.get_arguments().chain(cli.get_subcommands().flat_map(clap::Command::get_arguments));
    let takes_value = |arg: &clap::Arg| arg.get_action().takes_values();
    if let Some(name) = option.strip_prefix("--") {
        let is_named =
            |arg: &clap::Arg| arg.get_long_and_visible_aliases().is_some_and(|all| all.contains(&name));
        return all().any(|arg| is_named(arg) && takes_value(arg));
    }
    // If a word has several letters, the first one that takes a value takes the rest of the word.
    let is_named = |arg: &clap::Arg, letter| {
        arg.get_short_and_visible_aliases().is_some_and(|all| all.contains(&letter))
    };
    let mut letters = option.chars().skip(1);
    let taker = letters.find(|&letter| all().any(|arg| is_named(arg, letter) && takes_value(arg)));
    taker.is_some() && letters.next().is_none()
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
    let error = with_format(error, arguments);
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

/// A format of `export` that stands where a ring does.
fn with_format(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let lacks_option =
        matches!(error.kind(), ErrorKind::MissingRequiredArgument | ErrorKind::UnknownArgument);
    let is_export = arguments.get(1).is_some_and(|word| word == EXPORT);
    let text = |word: &OsString| word.to_str().map(str::to_owned);
    let mut words = arguments.windows(2).filter_map(|pair| text(&pair[0]).zip(text(&pair[1])));
    let format = words.find_map(|(before, word)| {
        (!before.starts_with('-') && ExportFormat::from_str(&word, false).is_ok()).then_some(word)
    });
    if let Some(format) = format.filter(|_| lacks_option && is_export) {
        let tip = format!("the format is the value of an option: '--format {format}'");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Why `check` takes no time.
const CHECK_OF_TIME: &str = "\
    `check` needs the whole record: in a part of the time, one side of a problem could be \
    missing; `read-rip locks` and `read-rip -t` show a part of the time";

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
        assert!(parsed("7 check 8").unwrap_err().starts_with("error: unexpected argument '8' found\n"));
        assert!(parsed("7 list").unwrap_err().starts_with("error: unexpected argument '7' found\n"));
        assert!(parsed("7 run true").unwrap_err().contains("`run` takes no RING"));
        // What follows COMMAND belongs to it.
        assert!(parsed("run -- true 7 -t").is_ok());
    }

    #[test]
    fn an_option_before_a_command_belongs_to_it_or_is_an_error() {
        let Some(Command::Locks(args)) = parsed("-v -m main locks").unwrap().command else { panic!() };
        assert!(args.verbose && args.r#match.is_some_and(|pattern| pattern.as_str() == "main"));
        let Some(Command::Check(args)) = parsed("--all --window 1s -v check").unwrap().command else {
            panic!()
        };
        assert!(args.all && args.verbose && args.window == std::time::Duration::from_secs(1));
        assert!(parsed("-t check").unwrap_err().starts_with("error: unexpected argument '-t' found\n"));
        assert!(parsed("-m a gc").unwrap_err().starts_with("error: unexpected argument '-m' found\n"));
        let twice = "error: the argument '--match <REGEX>' cannot be used multiple times\n";
        assert!(parsed("-m a check -m b").unwrap_err().starts_with(twice));
    }

    #[test]
    fn the_value_of_an_option_is_no_command() {
        for line in ["-m check locks", "-vm check locks", "--match check locks", "locks -m check"] {
            let Some(Command::Locks(args)) = parsed(line).unwrap().command else { panic!("{line}") };
            assert_eq!(args.r#match.unwrap().as_str(), "check", "{line}");
        }
        for line in ["--match=check locks", "-mcheck locks", "-v locks"] {
            assert!(matches!(parsed(line).unwrap().command, Some(Command::Locks(_))), "{line}");
        }
        let Some(Command::Save(args)) = parsed("-o check save").unwrap().command else { panic!() };
        assert_eq!(args.output.as_deref(), Some(Path::new("check")));
    }

    #[test]
    fn a_process_may_be_named_as_other_programs_take_it() {
        for line in ["-p 7 check", "check -p 7", "check --pid 7", "--pid=7 check", "-p7 check", "-r 7 check"]
        {
            let Some(Command::Check(args)) = parsed(line).unwrap().command else { panic!("{line}") };
            assert_eq!(args.ring.process(), Some(7), "{line}");
        }
        assert_eq!(parsed("-p 7").unwrap().ring.process(), Some(7));
        assert!(matches!(parsed("-v ps").unwrap_err(), error if error.contains("'-v'")));
        assert!(matches!(parsed("ps").unwrap().command, Some(Command::List)));
    }

    #[test]
    fn help_and_version_may_be_words() {
        let of = |line: &str| {
            let words = ["read-rip"].into_iter().chain(line.split_whitespace()).map(OsString::from);
            parse(words).map_err(|error| (error.kind(), error.to_string()))
        };
        for line in ["help", "help check", "-v help check", "help help"] {
            let (kind, _) = of(line).unwrap_err();
            assert_eq!(kind, ErrorKind::DisplayHelp, "{line}");
        }
        assert!(of("help check").unwrap_err().1.contains("--min-confidence"));
        assert!(matches!(of("version").unwrap().command, Some(Command::Version)));
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
        let tip = "\n\n  tip: the format is the value of an option: '--format folded'\n\n";
        for typed in ["export folded 7", "export folded", "7 export folded", "export 7 folded"] {
            let error = parsed(typed).unwrap_err();
            assert!(error.contains(tip), "{typed}: {error}");
        }
        assert!(!parsed("export -f folded 7 8").unwrap_err().contains("tip: the format"));
        let error = parsed("check 4711 4712").unwrap_err();
        assert!(error.starts_with("error: unexpected argument '4712' found\n"), "{error}");
    }
}
