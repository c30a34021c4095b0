//! The logger for `log`.

use librip::bridge::{self, Level, Place};
use log::{Log, Metadata, Record, SetLoggerError};

use crate::event_site::{EventSite, Parts, no_room};
use crate::fields::{Fields, First};
use crate::table::Table;

/// A logger that records: see the [crate](crate).
///
/// [`init_log`] installs one.
#[derive(Default)]
pub struct Logger {
    other: Option<Box<dyn Log>>,
}

/// Installs a [`Logger`] for the crate `log`, for records of all levels.
///
/// It does not start the recording: the program calls [`librip::init`]. `log::set_max_level` makes the records fewer.
///
/// # Errors
///
/// If the program has a logger. See [`Logger::beside`].
pub fn init_log() -> Result<(), SetLoggerError> {
    static LOGGER: Logger = Logger { other: None };
    log::set_logger(&LOGGER)?;
    log::set_max_level(log::LevelFilter::Trace);
    Ok(())
}

impl Logger {
    /// A logger that records.
    pub fn new() -> Logger {
        Logger::default()
    }

    /// A logger that records, and passes each record on to another logger.
    ///
    /// The level of `log::set_max_level` holds for both.
    ///
    /// # Examples
    ///
    /// ```
    /// struct Printer;
    ///
    /// impl log::Log for Printer {
    ///     fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
    ///         metadata.level() <= log::Level::Warn
    ///     }
    ///
    ///     fn log(&self, record: &log::Record<'_>) {
    ///         if self.enabled(record.metadata()) {
    ///             eprintln!("{}: {}", record.level(), record.args());
    ///         }
    ///     }
    ///
    ///     fn flush(&self) {}
    /// }
    ///
    /// let logger = librip_tracing::Logger::beside(Box::new(Printer));
    /// log::set_logger(Box::leak(Box::new(logger)))?;
    /// log::set_max_level(log::LevelFilter::Debug);
    ///
    /// log::debug!("recorded, and not printed");
    /// # Ok::<(), log::SetLoggerError>(())
    /// ```
    pub fn beside(other: Box<dyn Log>) -> Logger {
        Logger { other: Some(other) }
    }
}

impl std::fmt::Debug for Logger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logger").field("has_other", &self.other.is_some()).finish()
    }
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        librip::is_recording() || self.other.as_ref().is_some_and(|other| other.enabled(metadata))
    }

    fn log(&self, record: &Record<'_>) {
        if bridge::is_recording_here() {
            store(record);
        }
        if let Some(other) = &self.other {
            other.log(record);
        }
    }

    fn flush(&self) {
        if let Some(other) = &self.other {
            other.flush();
        }
    }
}

/// The callsites that have recorded something.
static CALLSITES: Table<Known> = Table::new();

/// What is known of a callsite. `log` has no addresses of callsites, so it is found by what its records have in common.
struct Known {
    file: Box<str>,
    module_path: Box<str>,
    target: Box<str>,
    line: u32,
    level: log::Level,
    site: EventSite,
}

fn store(record: &Record<'_>) {
    let place = Place {
        file: record.file().unwrap_or(record.target()),
        line: record.line().unwrap_or(0),
        module_path: record.module_path().unwrap_or(""),
    };
    let (target, level) = (record.target(), record.level());
    let is_it = |known: &Known| {
        known.line == place.line
            && known.level == level
            && *known.file == *place.file
            && *known.module_path == *place.module_path
            && *known.target == *target
    };
    let hash = (u64::from(place.line) << 8 | level as u64) ^ (place.file.len() as u64) << 40;
    let found = CALLSITES.find(hash, is_it);
    let mut fields = Fields::new();
    let mut learnt = None;
    let first = match found {
        Some(known) => known.site.known().map_or(First::Copied, First::Known),
        None => First::Learnt(&mut learnt),
    };
    let is_known = fields.set_message(record.args(), first);
    let known = found.or_else(|| {
        // Its address is the callsite's.
        let identity: &'static [u8; 2] = Box::leak(Box::new([0; 2]));
        let parts = Parts { place, level: of_level(level), target, has_message: true, fields: "" };
        let site = EventSite::new(identity, parts, learnt.as_deref());
        let [file, module_path, target] = [place.file, place.module_path, target].map(Into::into);
        CALLSITES.insert(hash, Known { file, module_path, target, line: place.line, level, site }, is_it)
    });
    match known {
        Some(known) => {
            known.site.record(&fields, 1, is_known || known.site.knows(learnt.as_deref()));
        }
        None => no_room(place.file, place.line),
    }
}

fn of_level(level: log::Level) -> Level {
    match level {
        log::Level::Error => Level::Error,
        log::Level::Warn => Level::Warn,
        log::Level::Info => Level::Info,
        log::Level::Debug => Level::Debug,
        log::Level::Trace => Level::Trace,
    }
}
