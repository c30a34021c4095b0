//! One reading of a subject, or two of a living process, so that a finding holds for one moment.

use std::time::Instant;

use read_rip_evidence::process::Ends;
use read_rip_evidence::standing::Standings;
use read_rip_model::locations::{Limits, Locations};
use read_rip_model::locks::{self, Input, LockModel};
use read_rip_report::OneReading;
use read_rip_ring::Words;
use read_rip_symbols::Resolver;

use crate::{Error, Inspection, Options, Reading, Subject};

/// One reading, or two of a living process.
pub struct Readings {
    /// The only reading, or the later one.
    pub reading: Reading,
    pub(crate) earlier: Option<Earlier>,
    /// Why there is only one reading, where there should be two.
    pub one_reading: Option<OneReading>,
}

/// The first of two readings, without the words of its slots.
pub(crate) struct Earlier {
    reading: Reading,
    pub(crate) model: LockModel,
    /// The time from its end to the start of the second reading, ns.
    window_ns: u64,
}

impl Earlier {
    fn of(mut reading: Reading, window_ns: u64) -> Earlier {
        let words = reading.snapshot.take_words();
        // Symbols are resolved for the second reading only.
        let resolver = Resolver::new(&[], Default::default());
        let mut locations = Locations::new(&reading.snapshot, resolver);
        let input = Input { wants_steps: false, ..reading.input(None) };
        let model = locks::build_of_words(&input, words, &mut locations);
        Earlier { reading, model, window_ns }
    }
}

impl From<Reading> for Readings {
    /// One reading, where nobody compares.
    fn from(reading: Reading) -> Readings {
        Readings { earlier: None, reading, one_reading: None }
    }
}

impl Readings {
    /// Reads a subject: a living process twice, with `options.window` in between. All processes that share a ring are
    /// read, whichever was asked for: what is judged is the ring, so all who ask get one answer.
    ///
    /// # Errors
    ///
    /// If nothing of it can be read.
    pub fn of(subject: &Subject, options: &Options) -> Result<Readings, Error> {
        Readings::of_ended(subject, &Ends::default(), options)
    }

    /// The same. `ends` says when processes ended, for a parent that knows it.
    ///
    /// # Errors
    ///
    /// Those of [`Readings::of`].
    pub fn of_ended(subject: &Subject, ends: &Ends, options: &Options) -> Result<Readings, Error> {
        let mut readings = Readings::of_one(subject, ends, options)?;
        // Without a pause between two readings, nothing is said of who is stuck.
        if !options.window.is_zero() {
            readings.reading.add_partners(options);
            readings.reading.add_stuck_forks(options);
        }
        Ok(readings)
    }

    /// The same readings with the processes with which the process is stuck, or with what it needs that waits for itself
    /// alone.
    pub fn with_partners(mut self, options: &Options) -> Readings {
        self.reading.add_partners(options);
        self
    }

    fn of_one(subject: &Subject, ends: &Ends, options: &Options) -> Result<Readings, Error> {
        let subject = &subject.clone().of_process(None);
        match *subject {
            Subject::Core(_) => Ok(Reading::of(subject, options)?.into()),
            Subject::Process(pid) => Ok(Reading::of_living(pid, options.window, options)?.into()),
            _ => {
                let first = match Readings::begin(subject, ends, options)? {
                    Begun::Complete(readings) => return Ok(*readings),
                    Begun::First(first) => first,
                };
                // Without rights to inspect a process, the record alone has to do.
                let inspections = Inspection::begin_all(first.processes(), options);
                std::thread::sleep(options.window);
                first.end(Inspection::end_all(inspections), options)
            }
        }
    }

    /// The record as it is now, with what the kernel says of a living process. A process without a ring, and a core file,
    /// are read as [`Readings::of`] reads them.
    ///
    /// # Errors
    ///
    /// Those of [`Readings::of`].
    pub fn at_present(subject: &Subject, options: &Options) -> Result<Readings, Error> {
        match subject.is_ring() {
            true => Ok(Reading::with_process(subject, options)?.with_present_names().into()),
            false => Readings::of(subject, options),
        }
    }

    /// Reads a ring for the first time.
    ///
    /// # Errors
    ///
    /// Those of [`Reading::of`].
    pub fn begin(subject: &Subject, ends: &Ends, options: &Options) -> Result<Begun, Error> {
        let mut reading = Reading::of(subject, options)?;
        reading.ended(ends);
        let complete = |earlier, reading, one_reading| {
            Ok(Begun::Complete(Box::new(Readings { earlier, reading, one_reading })))
        };
        if let Some((earlier, window_ns)) = reading.take_earlier(options)? {
            return complete(Some(Earlier::of(earlier, window_ns)), reading, None);
        }
        if reading.is_copy() {
            return complete(None, reading, Some(OneReading::Copy));
        }
        if reading.is_final() {
            return complete(None, reading, None);
        }
        let processes = reading.living_processes();
        let (subject, read) = (subject.clone(), Instant::now());
        Ok(Begun::First(Box::new(First { subject, reading, processes, read })))
    }

    /// The time between the readings of each thread, ns, about: each takes its time from the first thread to the last.
    pub fn period_ns(&self) -> Option<u64> {
        let earlier = self.earlier.as_ref()?;
        let period_ns = self.reading.now_ns?.checked_sub(earlier.reading.now_ns?);
        period_ns.filter(|&period_ns| period_ns > earlier.window_ns).or(Some(earlier.window_ns))
    }

    /// The model of the locks within these limits, with what the kernel and the memory say.
    pub(crate) fn model(
        &self,
        limits: Limits,
        words: Vec<Words>,
        locations: &mut Locations<'_>,
    ) -> LockModel {
        let earlier = self.earlier.as_ref().map(|earlier| (&earlier.reading, earlier.window_ns));
        let mut model =
            locks::build_of_words(&Input { limits, ..self.reading.input(earlier) }, words, locations);
        locks::observe_all(&mut model, self.reading.standings(), locations);
        model
    }
}

/// A ring that was read once.
pub enum Begun {
    /// Its last state, or all that there is.
    Complete(Box<Readings>),
    /// The first of two readings.
    First(Box<First>),
}

/// The first of two readings of a ring whose process may live.
pub struct First {
    subject: Subject,
    reading: Reading,
    processes: Vec<u32>,
    read: Instant,
}

impl First {
    /// The processes that record in it and live.
    pub fn processes(&self) -> &[u32] {
        &self.processes
    }

    /// Reads the ring again. `seen`: what was seen of these processes meanwhile.
    ///
    /// # Errors
    ///
    /// Those of [`Reading::of`].
    pub fn end(self, seen: Vec<Standings>, options: &Options) -> Result<Readings, Error> {
        let First { subject, reading: first, read, .. } = self;
        let window_ns = u64::try_from(read.elapsed().as_nanos()).unwrap_or(u64::MAX);
        if !first.path.exists() {
            return Ok(Readings { earlier: None, reading: first, one_reading: Some(OneReading::Removed) });
        }
        // The words of both readings at once could be too much for the memory.
        let earlier = Earlier::of(first, window_ns);
        let mut second = Reading::of(&subject, options)?;
        // The last state is one moment by itself. The process lived when it was read first.
        if second.is_final() {
            second.lived_at(earlier.reading.now_ns);
            return Ok(second.into());
        }
        seen.into_iter().for_each(|seen| second.add_seen(seen));
        Ok(Readings { earlier: Some(earlier), reading: second, one_reading: None })
    }
}
