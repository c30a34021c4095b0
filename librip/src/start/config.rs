//! What ring to make: what the program asks for, then what the environment says.
//!
//! It reads the environment and does nothing else. The environment overrides the [`Builder`], which overrides the
//! defaults: the operator has the last word. A setting that is not understood is ignored and recorded in the ring's
//! header, where `read-rip info` shows it. Programs that run with more rights than their caller (setuid, file
//! capabilities) ignore the environment.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::error::InitError;
use crate::process::clock::Clock;
use crate::process::exit::Keep;
use crate::process::polls::Polls;
use crate::process::usage::Usage;
use crate::sys;
use librip_format::settings::{self, CLOCK, KEEP, POLLS, SETTINGS, SLOTS, USAGE, WORDS};
use librip_format::{SLOT_WORDS_MAX, SLOT_WORDS_MIN};

/// The slots of a ring by default. The file is sparse: unused slots take no memory.
pub const DEFAULT_SLOTS: u32 = 65_536;
/// The slots of a ring by default if the program has [tasks](crate::task). Seven of eight are for tasks, one is for
/// threads alone.
pub const DEFAULT_SLOTS_WITH_TASKS: u32 = 131_072;
/// The most slots a ring can have.
pub const SLOTS_MAX: u32 = settings::SLOTS_MAX;

/// Makes a ring with settings of your own; [`init`](crate::init) makes one with the defaults.
///
/// # Examples
///
/// ```
/// use librip::{Builder, Keep};
///
/// let made = Builder::new().words(256).slots(1000).keep(Keep::Never).create();
/// if let Err(error) = made {
///     eprintln!("not recording: {error}"); // the program runs without it
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) path: Option<PathBuf>,
    pub(crate) words: u32,
    /// `None`: the default.
    pub(crate) slots: Option<u32>,
    pub(crate) keep: Keep,
    pub(crate) clock: Clock,
    pub(crate) usage: Usage,
    pub(crate) polls: Polls,
    pub(crate) handles_sigbus: bool,
    pub(crate) settings_ignored: u32,
}

impl Default for Builder {
    fn default() -> Self {
        Builder::new()
    }
}

impl Builder {
    /// The defaults: `/dev/shm/rip.PROGRAM.PID.START`, 64 words a slot, 65536 slots, kept on failure.
    pub fn new() -> Builder {
        Builder {
            path: None,
            words: librip_format::SLOT_WORDS_DEFAULT,
            slots: None,
            keep: Keep::default(),
            clock: Clock::default(),
            usage: Usage::default(),
            polls: Polls::default(),
            handles_sigbus: true,
            settings_ignored: 0,
        }
    }

    /// Where to make the ring: a file, or a directory in which the ring gets its default name. `RIP_RING` overrides.
    ///
    /// A file that exists already stays, because it may be the ring of the last crash. The new ring is then `PATH.1`,
    /// `PATH.2`, and so on.
    #[must_use]
    pub fn path(mut self, path: impl AsRef<Path>) -> Builder {
        self.path = Some(path.as_ref().to_owned());
        self
    }

    /// Words of a slot: how much history a thread has. Rounded up to a power of two from 16 to 16384. A slot takes 512
    /// bytes, 8 bytes for each word, 384 if a module has spans, and 256 if one has tasks. `RIP_WORDS` overrides.
    #[must_use]
    pub fn words(mut self, words: u32) -> Builder {
        self.words = words.clamp(SLOT_WORDS_MIN, SLOT_WORDS_MAX).next_power_of_two();
        self
    }

    /// How many threads and tasks can record at a time, from 1 to 16777216. One slot in eight is for threads alone.
    /// `RIP_SLOTS` overrides.
    #[must_use]
    pub fn slots(mut self, slots: u32) -> Builder {
        self.slots = Some(slots.clamp(1, SLOTS_MAX));
        self
    }

    /// What becomes of the ring at exit. `RIP_KEEP` (`always`, `failure`, `never`) overrides.
    #[must_use]
    pub fn keep(mut self, keep: Keep) -> Builder {
        self.keep = keep;
        self
    }

    /// Which events have times. `RIP_CLOCK` (`off`, `contended`, `ticks`, `all`) overrides.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Builder {
        self.clock = clock;
        self
    }

    /// What the recorder asks the kernel about cycles, so that a reader knows why a slow one was slow. `RIP_USAGE`
    /// (`off`, `counts`, `delays`) overrides.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Builder {
        self.usage = usage;
        self
    }

    /// Whether the recorder counts how long polls of tasks take, and how long tasks wait for them. `RIP_POLLS` (`off`,
    /// `times`) overrides.
    #[must_use]
    pub fn polls(mut self, polls: Polls) -> Builder {
        self.polls = polls;
        self
    }

    /// Whether to handle the SIGBUS that marks raise after somebody has truncated the ring's file (default: yes).
    ///
    /// The handler replaces the lost part of the mapping by private memory, and passes every other SIGBUS to the
    /// handler that was in place before. It does not work if the program blocks SIGBUS, or later installs a handler
    /// that does not pass signals on.
    #[must_use]
    pub fn handle_sigbus(mut self, handle: bool) -> Builder {
        self.handles_sigbus = handle;
        self
    }

    /// Applies the `RIP_*` variables of the process, unless the process has rights that its caller may not have: a
    /// setuid program must not let its caller choose where it makes a file.
    pub(crate) fn with_process_environment(self) -> Result<Builder, InitError> {
        self.with_environment(|name| if sys::is_privileged() { None } else { std::env::var_os(name) })
    }

    /// Applies the `RIP_*` variables that `get` gives.
    fn with_environment(mut self, get: impl Fn(&str) -> Option<OsString>) -> Result<Builder, InitError> {
        if let Some(path) = get("RIP_RING").filter(|path| !path.is_empty()) {
            if path == "off" {
                return Err(InitError::Disabled);
            }
            self.path = Some(path.into());
        }
        let number = |setting: settings::Setting| setting.number(get(setting.name)?.to_str()?);
        if let Some(words) = number(WORDS) {
            self = self.words(words);
        }
        if let Some(slots) = number(SLOTS) {
            self = self.slots(slots);
        }
        match get(KEEP.name).as_deref().and_then(OsStr::to_str) {
            Some("always") => self.keep = Keep::Always,
            Some("failure") => self.keep = Keep::OnFailure,
            Some("never") => self.keep = Keep::Never,
            _ => {}
        }
        match get(CLOCK.name).as_deref().and_then(OsStr::to_str) {
            Some("off") => self.clock = Clock::Off,
            Some("contended") => self.clock = Clock::Contended,
            Some("ticks") => self.clock = Clock::Ticks,
            Some("all") => self.clock = Clock::All,
            _ => {}
        }
        match get(USAGE.name).as_deref().and_then(OsStr::to_str) {
            Some("off") => self.usage = Usage::Off,
            Some("counts") => self.usage = Usage::Counts,
            Some("delays") => self.usage = Usage::Delays,
            _ => {}
        }
        match get(POLLS.name).as_deref().and_then(OsStr::to_str) {
            Some("off") => self.polls = Polls::Off,
            Some("times") => self.polls = Polls::Times,
            _ => {}
        }
        self.settings_ignored |= ignored(&get).fold(0, |bits, setting| bits | setting.bit);
        Ok(self)
    }
}

fn ignored(get: &impl Fn(&str) -> Option<OsString>) -> impl Iterator<Item = settings::Setting> {
    let is_ignored = move |setting: &settings::Setting| {
        get(setting.name).is_some_and(|value| !value.to_str().is_some_and(|value| setting.accepts(value)))
    };
    SETTINGS.into_iter().filter(is_ignored)
}

/// Returns the names of the `RIP_*` variables of this process whose values the recorder does not understand, and so
/// ignores. For a program that wants to tell its operator.
///
/// A program that runs with more rights than its caller ignores all of them, and the list is empty.
///
/// # Examples
///
/// ```
/// for name in librip::ignored_settings() {
///     eprintln!("{name} has a value that is ignored");
/// }
/// ```
pub fn ignored_settings() -> Vec<&'static str> {
    if sys::is_privileged() {
        return Vec::new();
    }
    ignored(&|name: &str| std::env::var_os(name)).map(|setting| setting.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured(settings: &[(&str, &str)]) -> Result<Builder, InitError> {
        Builder::new().words(32).slots(7).with_environment(|name| {
            settings.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into())
        })
    }

    #[test]
    fn the_environment_overrides_the_program() {
        let made = configured(&[
            ("RIP_RING", "/dev/shm/here"),
            ("RIP_WORDS", "100"),
            ("RIP_SLOTS", "9"),
            ("RIP_KEEP", "always"),
            ("RIP_CLOCK", "all"),
            ("RIP_USAGE", "delays"),
            ("RIP_POLLS", "times"),
        ])
        .unwrap();
        assert_eq!(made.path.as_deref(), Some(Path::new("/dev/shm/here")));
        assert_eq!((made.words, made.slots, made.keep, made.clock), (128, Some(9), Keep::Always, Clock::All));
        assert_eq!((made.usage, made.polls), (Usage::Delays, Polls::Times));
        assert_eq!(made.settings_ignored, 0);
    }

    #[test]
    fn settings_that_are_not_understood_are_ignored_and_noted() {
        let settings = [
            ("RIP_WORDS", "many"),
            ("RIP_SLOTS", "0"),
            ("RIP_KEEP", ""),
            ("RIP_CLOCK", "on"),
            ("RIP_USAGE", "1"),
            ("RIP_POLLS", "all"),
        ];
        let made = configured(&settings).unwrap();
        assert_eq!((made.words, made.slots, made.keep), (32, Some(7), Keep::OnFailure));
        assert_eq!((made.clock, made.usage, made.polls), (Clock::Contended, Usage::Off, Polls::Off));
        assert_eq!(made.settings_ignored, SETTINGS.iter().fold(0, |bits, setting| bits | setting.bit));
    }

    #[test]
    fn the_operator_can_switch_recording_off() {
        assert!(matches!(configured(&[("RIP_RING", "off")]), Err(InitError::Disabled)));
    }
}
