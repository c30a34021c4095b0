//! What ring to make: the program's wishes, then the operator's.
//!
//! It reads the environment and computes nothing else. Precedence: the environment, then the [`Builder`],
//! then defaults; whoever runs the program at three in the morning has the last word. A setting that is not
//! understood is left out, and recorded in the ring's header, where `read-rip info` shows it. Programs that run with
//! more rights than their caller (setuid, file capabilities) do not look at the environment.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::clock::Clock;
use crate::error::InitError;
use librip_format::{
    SETTING_CLOCK, SETTING_KEEP, SETTING_SLOTS, SETTING_WORDS, SLOT_WORDS_MAX, SLOT_WORDS_MIN,
};

/// The slots of a ring unless told otherwise. The file is sparse: unused slots take no memory.
pub const DEFAULT_SLOTS: u32 = 65_536;
/// The most slots a ring can have.
pub const SLOTS_MAX: u32 = 1 << 24;

/// What becomes of the ring when the process calls `exit` or returns from `main`.
///
/// A process that ends in any other way (a signal, `abort`, `_exit`, out of memory) always leaves it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// It stays.
    Always,
    /// It is removed when the exit status is 0, or nothing was ever marked, and stays otherwise.
    #[default]
    OnFailure,
    /// It is removed.
    Never,
}

/// Makes a ring that differs from [`init`](crate::init)'s.
///
/// # Examples
///
/// ```
/// use librip::{Builder, Keep};
///
/// let made = Builder::new().words(256).slots(1000).keep(Keep::Never).create();
/// if let Err(error) = made {
///     eprintln!("not recording: {error}"); // the program runs as well without
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) path: Option<PathBuf>,
    pub(crate) words: u32,
    pub(crate) slots: u32,
    pub(crate) keep: Keep,
    pub(crate) clock: Clock,
    pub(crate) guards_sigbus: bool,
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
            slots: DEFAULT_SLOTS,
            keep: Keep::default(),
            clock: Clock::default(),
            guards_sigbus: true,
            settings_ignored: 0,
        }
    }

    /// Where to make the ring: a file, or a directory in which it gets its usual name. `RIP_RING` overrides.
    ///
    /// A file that is there already is left alone, and the new one called `PATH.1`, `PATH.2`, and so on: it
    /// may be what is left of the last crash.
    #[must_use]
    pub fn path(mut self, path: impl AsRef<Path>) -> Builder {
        self.path = Some(path.as_ref().to_owned());
        self
    }

    /// Words a slot: how much history a thread has. Rounded up to a power of two from 16 to 16384; a slot
    /// takes 512 bytes and 8 a word. `RIP_WORDS` overrides.
    #[must_use]
    pub fn words(mut self, words: u32) -> Builder {
        self.words = words.clamp(SLOT_WORDS_MIN, SLOT_WORDS_MAX).next_power_of_two();
        self
    }

    /// How many threads can record at a time, from 1 to 16777216. `RIP_SLOTS` overrides.
    #[must_use]
    pub fn slots(mut self, slots: u32) -> Builder {
        self.slots = slots.clamp(1, SLOTS_MAX);
        self
    }

    /// What becomes of the ring at exit. `RIP_KEEP` (`always`, `failure`, `never`) overrides.
    #[must_use]
    pub fn keep(mut self, keep: Keep) -> Builder {
        self.keep = keep;
        self
    }

    /// Which events carry times. `RIP_CLOCK` (`off`, `contended`, `all`) overrides.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Builder {
        self.clock = clock;
        self
    }

    /// Whether to handle the SIGBUS that marks raise once somebody has truncated the ring's file (default:
    /// yes).
    ///
    /// The handler replaces the lost part of the mapping by private memory, and passes every other SIGBUS on
    /// to whatever handled it before. It works unless the program installs a handler of its own later that
    /// does not chain, or blocks SIGBUS.
    #[must_use]
    pub fn guard_sigbus(mut self, guard: bool) -> Builder {
        self.guards_sigbus = guard;
        self
    }

    /// Applies `RIP_*`.
    pub(crate) fn with_environment(
        mut self,
        get: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Builder, InitError> {
        if let Some(path) = get("RIP_RING").filter(|path| !path.is_empty()) {
            if path == "off" {
                return Err(InitError::Disabled);
            }
            self.path = Some(path.into());
        }
        let mut ignored = 0;
        if let Some(value) = get("RIP_WORDS") {
            match number(&value, SLOT_WORDS_MIN, SLOT_WORDS_MAX) {
                Some(words) => self = self.words(words),
                None => ignored |= SETTING_WORDS,
            }
        }
        if let Some(value) = get("RIP_SLOTS") {
            match number(&value, 1, SLOTS_MAX) {
                Some(slots) => self = self.slots(slots),
                None => ignored |= SETTING_SLOTS,
            }
        }
        if let Some(value) = get("RIP_KEEP") {
            match value.to_str() {
                Some("always") => self.keep = Keep::Always,
                Some("failure") => self.keep = Keep::OnFailure,
                Some("never") => self.keep = Keep::Never,
                _ => ignored |= SETTING_KEEP,
            }
        }
        if let Some(value) = get("RIP_CLOCK") {
            match value.to_str() {
                Some("off") => self.clock = Clock::Off,
                Some("contended") => self.clock = Clock::Contended,
                Some("all") => self.clock = Clock::All,
                _ => ignored |= SETTING_CLOCK,
            }
        }
        self.settings_ignored |= ignored;
        Ok(self)
    }
}

fn number(value: &OsStr, min: u32, max: u32) -> Option<u32> {
    let number = value.to_str()?.trim().parse().ok()?;
    (min..=max).contains(&number).then_some(number)
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
        ])
        .unwrap();
        assert_eq!(made.path.as_deref(), Some(Path::new("/dev/shm/here")));
        assert_eq!((made.words, made.slots, made.keep, made.clock), (128, 9, Keep::Always, Clock::All));
        assert_eq!(made.settings_ignored, 0);
    }

    #[test]
    fn settings_that_make_no_sense_are_ignored_and_remembered() {
        let settings = [("RIP_WORDS", "many"), ("RIP_SLOTS", "0"), ("RIP_KEEP", ""), ("RIP_CLOCK", "on")];
        let made = configured(&settings).unwrap();
        assert_eq!((made.words, made.slots, made.keep), (32, 7, Keep::OnFailure));
        assert_eq!(made.clock, Clock::Contended);
        assert_eq!(made.settings_ignored, SETTING_WORDS | SETTING_SLOTS | SETTING_KEEP | SETTING_CLOCK);
    }

    #[test]
    fn the_operator_can_switch_recording_off() {
        assert!(matches!(configured(&[("RIP_RING", "off")]), Err(InitError::Disabled)));
    }
}
