//! A trace in the Common Trace Format, version 1.8 (<https://diamon.org/ctf/v1.8.3/>): a folder that `babeltrace2` and
//! Trace Compass read.
//!
//! It has each event of each history, and nothing of locks that are held now.
//!
//! * **Streams.** The threads are dealt to 16 files, so a file is one thread's if there are no more than 16. A reader
//!   opens all files at once, and compares the times of all files for each event: babeltrace2 2.0 takes 0.1 µs a file
//!   for that, which is twenty minutes for 10,000 threads with 64 words. Each event says whose it is: the field
//!   `task` has the number of a task, and 0 for a thread.
//! * **Times** are nanoseconds since boot, of a clock that knows the date. Within a file they do not go back. An event
//!   without a recorded time has the earliest time that it can have: that of the last event before it in its thread
//!   that has one. `is_exact` tells the two apart, and `latest_time` is the latest time that the event can have; 0 if
//!   that is not known. A time before that of an earlier event of its thread is moved to that, and is not exact.
//! * **Losses.** The history of a thread begins with an event `overwritten` if later words have replaced earlier ones.
//!   A packet counts these words as `events_discarded`.
//! * **Places.** Each event has its function and its file as texts. Enumerations would make a trace smaller, but
//!   babeltrace2 looks for a name among all of them, 10 ns each, and a program may have thousands.
//!
//! | file | answers |
//! |---|---|
//! | `classes` | which classes of events are there? |
//! | `body` | what are the bytes of an event? |
//! | `packets` | how does a stream become packets? |
//! | `metadata` | how are the bytes described? |

mod body;
mod classes;
mod metadata;
mod packets;

use std::io::{self, Write};

use md5::{Digest, Md5};
use read_rip_model::locations::{Dated, Horizon, Limits, Locations, dated_history};
use read_rip_report::printable;
use read_rip_report::realtime_ns;
use read_rip_ring::events::Leftover;
use read_rip_ring::{Header, Snapshot};

use self::body::{Moment, Owner, Places};
use self::metadata::{Description, metadata};
use self::packets::Packets;
use super::Files;

/// At most this many files have events.
const STREAMS: usize = 16;

struct Encoded {
    at_ns: u64,
    /// The index after its last byte.
    end: usize,
    /// How many words are missing before it.
    discarded: u64,
}

/// Writes the files of a trace with the events of all threads in that time. Returns the words that belong to no event.
///
/// # Errors
///
/// Those of `files`.
pub fn ctf(
    files: &mut dyn Files,
    program: &str,
    snapshot: &Snapshot,
    locations: &mut Locations<'_>,
    horizon: Horizon,
    limits: Limits,
) -> io::Result<Leftover> {
    let header = snapshot.header.as_ref();
    let booted_ns = realtime_ns(snapshot, 0);
    let uuid = uuid(header, horizon);
    // Readers count signed nanoseconds since 1970, and take the largest number for an overflow.
    let last_ns = (i64::MAX as u64 - 1).saturating_sub(booted_ns.unwrap_or(0));
    let mut places = Places::default();
    let mut leftover = Leftover::default();
    for stream in 0..STREAMS {
        let mut bytes = Vec::new();
        let mut events: Vec<Encoded> = Vec::new();
        for index in snapshot.all_recorded().skip(stream).step_by(STREAMS) {
            let slot = snapshot.recorded(index);
            let (mut history, of_slot) = dated_history(slot, locations, horizon);
            // A recording has words before those of a history, for an event that begins there.
            history.retain(|dated| dated.event.sequence >= slot.first_sequence);
            if slot.words_from >= slot.first_sequence {
                leftover += of_slot;
            }
            history.retain(|dated| limits.has(&dated.when));
            let channel =
                slot.channel().and_then(|channel| snapshot.channel_name(channel)).unwrap_or_default();
            let owner = Owner { slot, channel };
            let mut clock = Times { at_ns: 0, last_ns };
            for (nth, dated) in history.iter().enumerate() {
                let moment = clock.next(dated);
                locations.find_lock(slot, &dated.event);
                if nth == 0 && slot.overwritten() > 0 {
                    let before = Moment { is_exact: false, latest_ns: moment.at_ns, ..moment };
                    body::overwritten(&mut bytes, owner, before);
                    let discarded = slot.overwritten();
                    events.push(Encoded { at_ns: moment.at_ns, end: bytes.len(), discarded });
                }
                body::event(&mut bytes, owner, dated, moment, locations, &mut places, horizon.now_ns);
                events.push(Encoded { at_ns: moment.at_ns, end: bytes.len(), discarded: 0 });
            }
        }
        write(files, uuid, stream, &bytes, &events)?;
    }
    let host = header.map_or("", |header| &header.host);
    let trace = Description {
        uuid,
        host: &printable(host),
        program: &printable(program),
        pid: header.map_or(0, |header| header.pid),
        booted_ns,
    };
    files.write("metadata", &mut |out| metadata(out, &trace))?;
    Ok(leftover)
}

/// Writes a stream, its events by their times. Those of a thread, and those of one time, keep their order.
fn write(
    files: &mut dyn Files,
    uuid: [u8; 16],
    stream: usize,
    bytes: &[u8],
    events: &[Encoded],
) -> io::Result<()> {
    let mut order: Vec<usize> = (0..events.len()).collect();
    order.sort_by_key(|&index| events[index].at_ns);
    let Some(&first) = order.first() else { return Ok(()) };
    files.write(&format!("stream_{stream}"), &mut |out: &mut dyn Write| {
        let mut packets = Packets::begin(out, uuid, stream as u64, events[first].at_ns)?;
        for &index in &order {
            let begin = index.checked_sub(1).map_or(0, |before| events[before].end);
            let Encoded { at_ns, end, discarded } = events[index];
            packets.event(at_ns, &bytes[begin..end], discarded)?;
        }
        packets.end()
    })
}

/// The times of a thread, one after the other.
struct Times {
    /// The time of the last event.
    at_ns: u64,
    /// No time is after this one.
    last_ns: u64,
}

impl Times {
    fn next(&mut self, dated: &Dated) -> Moment {
        let when = &dated.when;
        let wanted_ns = when.time_ns.or(when.after_ns).unwrap_or(self.at_ns);
        self.at_ns = wanted_ns.clamp(self.at_ns, self.last_ns);
        let is_exact = when.time_ns == Some(self.at_ns);
        let latest_ns = when.before_ns.map_or(0, |before_ns| before_ns.max(self.at_ns));
        Moment { at_ns: self.at_ns, is_exact, latest_ns }
    }
}

/// The identifier of the trace: readings of one ring at two times have different ones, because readers take files with
/// one identifier for parts of one trace.
fn uuid(header: Option<&Header>, horizon: Horizon) -> [u8; 16] {
    let mut of = Md5::new();
    if let Some(header) = header {
        of.update(header.boot_id);
        for number in [header.pid.into(), header.start_time_ticks, header.created_boottime_ns] {
            of.update(number.to_le_bytes());
        }
    }
    of.update(horizon.now_ns.unwrap_or(0).to_le_bytes());
    of.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use read_rip_model::locations::When;
    use read_rip_ring::events::Event;

    fn moments(whens: &[When], last_ns: u64) -> Vec<(u64, bool, u64)> {
        let mut times = Times { at_ns: 0, last_ns };
        let dated = |&when| Dated { event: Event { sequence: 0, pc: 0, operands: 0..0 }, location: 0, when };
        whens
            .iter()
            .map(|when| times.next(&dated(when)))
            .map(|Moment { at_ns, is_exact, latest_ns }| (at_ns, is_exact, latest_ns))
            .collect()
    }

    #[test]
    fn what_has_no_time_gets_the_earliest_one_and_no_time_goes_back() {
        let seen = moments(
            &[
                When::between(Some(5), Some(9)),
                When::at(9),
                When::between(Some(9), None),
                When::at(7),
                When::at(u64::MAX),
                When::default(),
            ],
            100,
        );
        assert_eq!(
            seen,
            [
                (5, false, 9),
                (9, true, 9),
                (9, false, 0),
                (9, false, 9),
                (100, false, u64::MAX),
                (100, false, 0)
            ]
        );
    }
}
