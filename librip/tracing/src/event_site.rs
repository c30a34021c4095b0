//! [`EventSite`]: a callsite of events, with and without its usual message in the format.
//!
//! It makes formats. It knows neither `tracing` nor `log`.

use librip::bridge::{Callsite, Level, Place};

use crate::fields::Fields;

/// A callsite of events.
///
/// Most messages have no arguments. The first message of a callsite becomes a part of a format, if it may be such a
/// one. If another message comes later, it is a value.
#[derive(Debug)]
pub(crate) struct EventSite {
    /// The message that is in the format, and the callsite with that format.
    known: Option<(Box<str>, Callsite)>,
    any: Callsite,
    place: (Box<str>, u32),
}

/// What an event of a callsite consists of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) place: Place<'a>,
    pub(crate) level: Level,
    pub(crate) target: &'a str,
    /// Whether there is a message. It comes before the fields.
    pub(crate) has_message: bool,
    /// The places of the other fields.
    pub(crate) fields: &'a str,
}

impl EventSite {
    /// `message` is the first one, if it may be one without arguments.
    pub(crate) fn new<I: Sync>(identity: &'static I, parts: Parts<'_>, message: Option<&str>) -> EventSite {
        let Parts { place, level, target, has_message, fields } = parts;
        let target = if target == place.module_path { String::new() } else { escaped(target) + ": " };
        let format = |message: &str| {
            let said = format!("{target}{message}{fields}");
            said.trim_start().to_owned()
        };
        let any = format(if has_message { "{}" } else { "" });
        let known = message.map(|message| {
            let format = format(&escaped(message));
            (message.into(), Callsite::event(identity, 0, place, level, &format))
        });
        let any = Callsite::event(identity, 1, place, level, &any);
        EventSite { known, any, place: (place.file.into(), place.line) }
    }

    /// Whether a message that was learnt is the one in the format.
    pub(crate) fn knows(&self, learnt: Option<&str>) -> bool {
        learnt.is_some() && learnt == self.known()
    }

    /// The message that is in the format.
    #[inline]
    pub(crate) fn known(&self) -> Option<&str> {
        self.known.as_ref().map(|(message, _)| &**message)
    }

    /// Records an event with the values of the first places. If its message is the known one, it is no value.
    #[inline]
    pub(crate) fn record(&self, fields: &Fields, count: usize, is_known: bool) {
        let (callsite, places) = match &self.known {
            Some((_, callsite)) if is_known => (callsite, 1..count),
            _ => (&self.any, 0..count),
        };
        if fields.with_values(places, |values| callsite.record(values)).is_err() {
            no_room(&self.place.0, self.place.1);
        }
    }
}

/// Records that something is not recorded, and where.
#[cold]
#[inline(never)]
pub(crate) fn no_room(file: &str, line: u32) {
    librip::rip_event!(level warn, "an event of {}:{} is not recorded: no room for its site", file, line);
}

/// A text as a format has it.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}
