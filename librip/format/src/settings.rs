//! The environment variables with which an operator chooses settings of the recorder: which values they take.
//!
//! It reads no environment. `RIP_RING` takes any value.

use crate::{
    SETTING_CLOCK, SETTING_KEEP, SETTING_POLLS, SETTING_SLOTS, SETTING_USAGE, SETTING_WORDS, SLOT_WORDS_MAX,
    SLOT_WORDS_MIN,
};

/// The most slots that a ring can have.
pub const SLOTS_MAX: u32 = 1 << 24;

/// A setting that takes some values only. The recorder ignores any other value.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The name of the environment variable.
    pub name: &'static str,
    /// The bit of [`Header::settings_ignored`](crate::Header::settings_ignored).
    pub bit: u32,
    /// What a value has to be, in words.
    pub takes: &'static str,
    /// Which values it takes.
    pub values: Values,
}

/// The values of a setting.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// A number from the first to the second.
    Number(u32, u32),
    /// One of these words.
    Word(&'static [&'static str]),
}

impl Setting {
    /// The number that a value stands for; `None` if the setting does not take it.
    pub fn number(&self, value: &str) -> Option<u32> {
        let Values::Number(min, max) = self.values else { return None };
        value.trim().parse().ok().filter(|number| (min..=max).contains(number))
    }

    /// Whether the setting takes a value.
    pub fn accepts(&self, value: &str) -> bool {
        match self.values {
            Values::Number(..) => self.number(value).is_some(),
            Values::Word(words) => words.contains(&value),
        }
    }
}

/// How many words a slot has.
pub const WORDS: Setting = Setting {
    name: "RIP_WORDS",
    bit: SETTING_WORDS,
    takes: "a number from 16 to 16384",
    values: Values::Number(SLOT_WORDS_MIN, SLOT_WORDS_MAX),
};
/// How many slots a ring has.
pub const SLOTS: Setting = Setting {
    name: "RIP_SLOTS",
    bit: SETTING_SLOTS,
    takes: "a number from 1 to 16777216",
    values: Values::Number(1, SLOTS_MAX),
};
/// Which rings stay.
pub const KEEP: Setting = Setting {
    name: "RIP_KEEP",
    bit: SETTING_KEEP,
    takes: "always, failure or never",
    values: Values::Word(&["always", "failure", "never"]),
};
/// Which events have times.
pub const CLOCK: Setting = Setting {
    name: "RIP_CLOCK",
    bit: SETTING_CLOCK,
    takes: "off, contended, ticks or all",
    values: Values::Word(&["off", "contended", "ticks", "all"]),
};

/// What the recorder asks the kernel about cycles that may be slow.
pub const USAGE: Setting = Setting {
    name: "RIP_USAGE",
    bit: SETTING_USAGE,
    takes: "off, counts or delays",
    values: Values::Word(&["off", "counts", "delays"]),
};

/// Whether the recorder counts how long polls of tasks take.
pub const POLLS: Setting = Setting {
    name: "RIP_POLLS",
    bit: SETTING_POLLS,
    takes: "off or times",
    values: Values::Word(&["off", "times"]),
};

/// All of them.
pub const SETTINGS: [Setting; 6] = [WORDS, SLOTS, KEEP, CLOCK, USAGE, POLLS];

const _: () = assert!(SLOT_WORDS_MIN == 16 && SLOT_WORDS_MAX == 16384 && SLOTS_MAX == 16_777_216);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_take_numbers_in_their_range_and_their_words() {
        assert_eq!(WORDS.number(" 100 "), Some(100));
        assert_eq!(["15", "16385", "many", ""].map(|value| WORDS.number(value)), [None; 4]);
        assert_eq!((SLOTS.number("16777216"), SLOTS.number("0")), (Some(SLOTS_MAX), None));
        for setting in [KEEP, CLOCK, USAGE, POLLS] {
            let Values::Word(words) = setting.values else { panic!("{setting:?}") };
            assert!(words.iter().all(|word| setting.accepts(word) && setting.takes.contains(word)));
            assert!(!setting.accepts("") && !setting.accepts("on") && setting.number("1").is_none());
        }
    }
}
