//! Records of all processors become the turns and wake-ups of one process.
//!
//! A turn begins when a thread gets a processor and ends when it leaves it. If a thread has a processor when the watch
//! begins, or after a gap, it is known when it leaves: until then its turn has no parts. What another process does is a
//! turn too if it took the processor from this one. Ids and times are those of the ring.

use std::collections::{HashMap, HashSet};

use read_rip_ring::{Gap, Header, Scheduled, Turn, TurnEnd, WakeUp};

use super::Watched;
use super::records::{Ids, Record, What};
use crate::process::{boottime_in_ring_ns, innermost_id, living_threads, sees_ids_of, thread_name};

/// A turn that is longer is written in parts, ns. A reader of a range of time reads a second after it too.
const PART_NS: u64 = 500_000_000;
/// A record may be written so long after its time, ns: a part ends before.
const LATE_NS: u64 = 1_000_000;
/// So many threads are asked for their names at a time.
const NAMES_MAX: usize = 256;

/// What one process does.
#[derive(Debug)]
pub struct Turns {
    /// The process, as this reader numbers it, and as the ring does.
    pid: u32,
    pid_in_ring: u32,
    /// Its threads, as this reader numbers them.
    threads: HashSet<u32>,
    /// Those that have ended and have a processor yet.
    ending: HashSet<u32>,
    /// Those that have ended since the last records.
    ended: Vec<u32>,
    /// Processes and threads whose names were written, as the ring numbers them.
    named: HashSet<(u32, u32)>,
    /// Threads as the ring numbers them, if it numbers them as this reader does not.
    translated: Option<HashMap<u32, Option<u32>>>,
    processors: HashMap<u32, Processor>,
    /// When the last records were taken, ns since boot as this reader has it.
    until_ns: u64,
    /// What must be added to this reader's time since boot to get the ring's, ns.
    ahead_ns: i64,
}

/// What a processor does.
#[derive(Clone, Copy, Debug)]
enum Does {
    /// Not known since then: the thread that leaves it has had it since then.
    Unknown(u64),
    /// Nothing for this process.
    Other,
    /// It has this thread since then.
    Runs(Ids, u64),
}

#[derive(Clone, Copy, Debug)]
struct Processor {
    does: Does,
    /// The time of the last record.
    last_ns: u64,
    /// Whether a thread of this process could have gone on when it left.
    was_taken: bool,
}

impl Turns {
    /// Those of the living process of a ring. `pid`: its id for this reader. `None` if the ring's times mean nothing here.
    pub fn of(header: &Header, pid: i32) -> Option<Turns> {
        /// Any moment.
        const MOMENT_NS: u64 = 1 << 60;
        let ahead_ns = boottime_in_ring_ns(header, MOMENT_NS)?.wrapping_sub(MOMENT_NS) as i64;
        let translated = (!sees_ids_of(header)).then(HashMap::new);
        let threads = living_threads(pid);
        Some(Turns::new((u32::try_from(pid).ok()?, header.pid), threads, translated, ahead_ns))
    }

    fn new(
        (pid, pid_in_ring): (u32, u32),
        threads: HashSet<u32>,
        translated: Option<HashMap<u32, Option<u32>>>,
        ahead_ns: i64,
    ) -> Turns {
        Turns {
            pid,
            pid_in_ring,
            threads,
            ending: HashSet::new(),
            ended: Vec::new(),
            named: HashSet::new(),
            translated,
            processors: HashMap::new(),
            until_ns: 0,
            ahead_ns,
        }
    }

    /// When the last records were taken, ns since boot as the ring has it.
    pub fn until_ns(&self) -> u64 {
        self.until_ns.saturating_add_signed(self.ahead_ns)
    }

    /// What is new, in no order.
    pub fn take(&mut self, watched: &Watched) -> Vec<Scheduled> {
        let mut all = Vec::new();
        for (cpu, records) in &watched.processors {
            let begun = Processor {
                does: Does::Unknown(watched.since_ns),
                last_ns: watched.since_ns,
                was_taken: false,
            };
            let mut processor = *self.processors.entry(*cpu).or_insert(begun);
            for record in records {
                self.record(*cpu, &mut processor, record, &mut all);
            }
            self.processors.insert(*cpu, processor);
        }
        // All threads are known now, and those that have ended were woken before.
        for (cpu, records) in &watched.processors {
            all.extend(records.iter().filter_map(|record| self.wake_up(*cpu, record)));
        }
        self.until_ns = watched.until_ns;
        self.end_parts(PART_NS, &mut all);
        self.add_names(&mut all);
        // Another thread may get the id.
        for tid in std::mem::take(&mut self.ended) {
            self.threads.remove(&tid);
            self.named.remove(&(self.pid_in_ring, tid));
            self.translated.as_mut().and_then(|translated| translated.remove(&tid));
        }
        all
    }

    /// From now on, names are written again: what was written before may be in another file, or removed.
    pub fn forget_names(&mut self) {
        self.named.clear();
    }

    /// The parts of turns that go on.
    pub fn cut(&mut self) -> Vec<Scheduled> {
        let mut all = Vec::new();
        self.end_parts(0, &mut all);
        all
    }

    fn record(&mut self, cpu: u32, processor: &mut Processor, record: &Record, all: &mut Vec<Scheduled>) {
        let Record { at_ns, mut who, what } = *record;
        let mut is_gone = false;
        if let (Does::Runs(runs, _), What::Out { .. }) = (processor.does, what)
            && who == Ids::default()
            && runs.pid == self.pid
            && self.ending.contains(&runs.tid)
        {
            // It has ended, so the kernel has no ids for it.
            (who, is_gone) = (runs, true);
        }
        let is_own = who.pid == self.pid;
        match what {
            What::In => {
                if is_own {
                    self.threads.insert(who.tid);
                }
                // A turn of another process counts if that took the processor.
                let is_told = is_own || processor.was_taken && who.tid != 0 && self.translated.is_none();
                processor.does = if is_told { Does::Runs(who, at_ns) } else { Does::Other };
                processor.was_taken = false;
            }
            What::Out { could_go_on } => {
                let begin_ns = match processor.does {
                    Does::Runs(runs, begin_ns) if runs == who => Some(begin_ns),
                    Does::Unknown(since_ns) => Some(since_ns).filter(|_| is_own),
                    _ => None,
                };
                let end = if could_go_on && !is_gone {
                    TurnEnd::Preempted
                } else if is_own && self.ending.remove(&who.tid) {
                    self.ended.push(who.tid);
                    TurnEnd::Exited
                } else {
                    TurnEnd::Blocked
                };
                if let Some(begin_ns) = begin_ns {
                    all.extend(self.turn(cpu, who, (begin_ns, at_ns), end));
                }
                processor.does = Does::Other;
                processor.was_taken = is_own && end == TurnEnd::Preempted;
            }
            What::Exit if is_own => {
                self.ending.insert(who.tid);
                if let Does::Unknown(since_ns) = processor.does {
                    processor.does = Does::Runs(who, since_ns);
                }
            }
            What::Lost(records) => {
                if let Does::Runs(runs, begin_ns) = processor.does {
                    all.extend(self.turn(cpu, runs, (begin_ns, processor.last_ns), TurnEnd::Lost));
                    if runs.pid == self.pid && self.ending.remove(&runs.tid) {
                        // Its last turn is lost.
                        self.ended.push(runs.tid);
                    }
                }
                let [begin_ns, end_ns] = [processor.last_ns, at_ns].map(|at_ns| self.in_ring_ns(at_ns));
                all.push(Scheduled::Gap(Gap { cpu, records, begin_ns, end_ns: end_ns.max(begin_ns) }));
                processor.does = Does::Unknown(at_ns);
                processor.was_taken = false;
            }
            What::Exit | What::Woke { .. } => {}
        }
        processor.last_ns = processor.last_ns.max(at_ns);
    }

    fn wake_up(&mut self, cpu: u32, record: &Record) -> Option<Scheduled> {
        let What::Woke { tid, is_by_interrupt } = record.what else { return None };
        if !self.threads.contains(&tid) {
            return None;
        }
        let woken_tid = self.tid_in_ring(tid)?;
        // A thread that the ring has no id for has none.
        let is_own = record.who.pid == self.pid;
        let (waker_pid, waker_tid) = match self.tid_in_ring(record.who.tid) {
            Some(tid) if is_own => (self.pid_in_ring, tid),
            _ if self.translated.is_some() => (0, 0),
            _ => (record.who.pid, record.who.tid),
        };
        let at_ns = self.in_ring_ns(record.at_ns);
        Some(Scheduled::WakeUp(WakeUp { cpu, waker_pid, waker_tid, is_by_interrupt, woken_tid, at_ns }))
    }

    fn turn(&mut self, cpu: u32, who: Ids, times_ns: (u64, u64), end: TurnEnd) -> Option<Scheduled> {
        let is_own = who.pid == self.pid;
        let pid = if is_own { self.pid_in_ring } else { who.pid };
        let tid = if is_own { self.tid_in_ring(who.tid)? } else { who.tid };
        let begin_ns = self.in_ring_ns(times_ns.0);
        let end_ns = self.in_ring_ns(times_ns.1).max(begin_ns);
        Some(Scheduled::Turn(Turn { cpu, pid, tid, begin_ns, end_ns, end }))
    }

    /// Ends parts of turns that are this long, ns, and begins their next parts.
    fn end_parts(&mut self, len_ns: u64, all: &mut Vec<Scheduled>) {
        let until_ns = self.until_ns.saturating_sub(LATE_NS);
        let mut processors = std::mem::take(&mut self.processors);
        for (&cpu, processor) in &mut processors {
            if let Does::Runs(who, begin_ns) = processor.does
                && until_ns.saturating_sub(begin_ns) > len_ns
            {
                all.extend(self.turn(cpu, who, (begin_ns, until_ns), TurnEnd::GoesOn));
                processor.does = Does::Runs(who, until_ns);
            }
        }
        self.processors = processors;
    }

    /// Adds the names of threads that had no turn since names were forgotten.
    fn add_names(&mut self, all: &mut Vec<Scheduled>) {
        let mut names = Vec::new();
        for scheduled in &*all {
            let Scheduled::Turn(turn) = scheduled else { continue };
            if names.len() == NAMES_MAX {
                break;
            }
            // If the ring has ids of its own, it also has the names.
            if self.translated.is_none()
                && self.named.insert((turn.pid, turn.tid))
                && let Some(name) = thread_name(turn.pid, turn.tid)
            {
                names.push(Scheduled::Name { pid: turn.pid, tid: turn.tid, name });
            }
        }
        all.extend(names);
    }

    fn tid_in_ring(&mut self, tid: u32) -> Option<u32> {
        let pid = self.pid;
        let Some(translated) = &mut self.translated else { return Some(tid) };
        *translated.entry(tid).or_insert_with(|| innermost_id(pid, tid))
    }

    fn in_ring_ns(&self, at_ns: u64) -> u64 {
        at_ns.saturating_add_signed(self.ahead_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PID: u32 = 40;

    fn turns() -> Turns {
        Turns::new((PID, PID), HashSet::from([41, 42]), None, 0)
    }

    fn of(pid: u32, tid: u32, at_ns: u64, what: What) -> Record {
        Record { at_ns, who: Ids { pid, tid }, what }
    }

    fn own(tid: u32, at_ns: u64, what: What) -> Record {
        of(PID, tid, at_ns, what)
    }

    const BLOCKS: What = What::Out { could_go_on: false };
    const COULD_GO_ON: What = What::Out { could_go_on: true };

    fn watched(processors: Vec<(u32, Vec<Record>)>, until_ns: u64) -> Watched {
        Watched { processors, since_ns: 100, until_ns }
    }

    fn turn(cpu: u32, pid: u32, tid: u32, times_ns: (u64, u64), end: TurnEnd) -> Scheduled {
        Scheduled::Turn(Turn { cpu, pid, tid, begin_ns: times_ns.0, end_ns: times_ns.1, end })
    }

    #[test]
    fn a_turn_has_its_processor_and_says_why_it_ended_and_who_took_the_processor() {
        let first = vec![
            // It had the processor when the watch began.
            own(41, 150, BLOCKS),
            of(0, 0, 151, What::In),
            of(0, 0, 200, COULD_GO_ON),
            own(42, 201, What::In),
            own(42, 300, COULD_GO_ON),
            of(7, 8, 301, What::In),
            of(7, 8, 400, BLOCKS),
            // It took the processor from another process.
            of(9, 9, 401, What::In),
            of(9, 9, 402, BLOCKS),
            own(42, 403, What::In),
        ];
        let second = vec![of(9, 9, 120, COULD_GO_ON), own(41, 500, What::In)];
        let mut turns = turns();
        let all = turns.take(&watched(vec![(0, first), (3, second)], 600));
        let expected = [
            turn(0, PID, 41, (100, 150), TurnEnd::Blocked),
            turn(0, PID, 42, (201, 300), TurnEnd::Preempted),
            turn(0, 7, 8, (301, 400), TurnEnd::Blocked),
        ];
        assert_eq!(all, expected);
        // The rest comes with the next records.
        let woken = of(0, 0, 650, What::Woke { tid: 42, is_by_interrupt: false });
        let end = vec![woken, own(42, 700, What::Exit), own(42, 705, COULD_GO_ON)];
        let end = [end, vec![own(42, 708, What::In), own(42, 710, BLOCKS)]].concat();
        let all = turns.take(&watched(vec![(0, end)], 800));
        let [turns @ .., Scheduled::WakeUp(woken)] = &all[..] else { panic!("{all:?}") };
        let preempted = turn(0, PID, 42, (403, 705), TurnEnd::Preempted);
        assert_eq!(turns, [preempted, turn(0, PID, 42, (708, 710), TurnEnd::Exited)]);
        assert_eq!(woken.woken_tid, 42, "it was woken before it ended");
    }

    #[test]
    fn a_thread_that_has_ended_has_no_ids_in_its_last_record() {
        let gone = |at_ns, what| Record { at_ns, who: Ids::default(), what };
        let records = vec![
            own(41, 200, What::In),
            own(41, 210, What::Exit),
            gone(220, BLOCKS),
            gone(221, What::In),
            gone(230, BLOCKS),
            // The kernel takes the processor from it after that.
            own(42, 300, What::In),
            own(42, 310, What::Exit),
            gone(320, COULD_GO_ON),
        ];
        let mut turns = turns();
        // This one had a processor when the watch began.
        let other = vec![own(43, 150, What::Exit), gone(160, BLOCKS)];
        turns.threads.insert(43);
        let all = turns.take(&watched(vec![(0, records), (1, other)], 1000));
        let exited = [
            turn(0, PID, 41, (200, 220), TurnEnd::Exited),
            turn(0, PID, 42, (300, 320), TurnEnd::Exited),
            turn(1, PID, 43, (100, 160), TurnEnd::Exited),
        ];
        assert_eq!(all, exited);
        assert!(turns.threads.is_empty() && turns.ending.is_empty() && turns.named.is_empty());
    }

    #[test]
    fn names_are_written_again_when_they_are_forgotten() {
        let pid = std::process::id();
        let mut turns = Turns::new((pid, pid), HashSet::from([pid]), None, 0);
        let mut names = |begin_ns| {
            let records = vec![of(pid, pid, begin_ns, What::In), of(pid, pid, begin_ns + 1, BLOCKS)];
            let all = turns.take(&watched(vec![(0, records)], begin_ns + 2));
            if begin_ns == 300 {
                turns.forget_names();
            }
            all.iter().filter(|one| matches!(one, Scheduled::Name { .. })).count()
        };
        assert_eq!([200, 300, 400].map(&mut names), [1, 0, 1]);
    }

    #[test]
    fn a_turn_that_goes_on_is_written_in_parts() {
        let mut turns = turns();
        let begin = 1_000_000_000;
        let all = turns.take(&watched(vec![(1, vec![own(41, begin, What::In)])], begin + PART_NS));
        assert_eq!(all, []);
        let until = begin + PART_NS + 2 * LATE_NS;
        let part = (begin, until - LATE_NS);
        let all = turns.take(&watched(vec![(1, vec![])], until));
        assert_eq!(all, [turn(1, PID, 41, part, TurnEnd::GoesOn)]);
        turns.until_ns += 10 * LATE_NS;
        let next = (part.1, part.1 + 10 * LATE_NS);
        assert_eq!(turns.cut(), [turn(1, PID, 41, next, TurnEnd::GoesOn)]);
        let end = vec![own(41, next.1 + 5, BLOCKS)];
        let all = turns.take(&watched(vec![(1, end)], until + PART_NS));
        assert_eq!(all, [turn(1, PID, 41, (next.1, next.1 + 5), TurnEnd::Blocked)]);
    }

    #[test]
    fn a_gap_ends_a_turn_and_who_leaves_the_processor_next_had_it_since_the_gap() {
        let records = vec![
            own(41, 200, What::In),
            own(41, 250, What::Woke { tid: 42, is_by_interrupt: true }),
            of(7, 8, 900, What::Lost(12)),
            own(42, 950, BLOCKS),
        ];
        let all = turns().take(&watched(vec![(0, records)], 1000));
        let woken = WakeUp {
            cpu: 0,
            waker_pid: PID,
            waker_tid: 41,
            is_by_interrupt: true,
            woken_tid: 42,
            at_ns: 250,
        };
        let expected = [
            turn(0, PID, 41, (200, 250), TurnEnd::Lost),
            Scheduled::Gap(Gap { cpu: 0, records: 12, begin_ns: 250, end_ns: 900 }),
            turn(0, PID, 42, (900, 950), TurnEnd::Blocked),
            Scheduled::WakeUp(woken),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn wake_ups_of_others_are_left_out_and_one_may_come_before_the_threads_first_turn() {
        let woke = |tid| What::Woke { tid, is_by_interrupt: false };
        // Thread 50 is new. It is woken on one processor, and gets another one.
        let first = vec![of(7, 8, 200, woke(50)), of(7, 8, 201, woke(99))];
        let second = vec![own(50, 210, What::In), own(50, 220, BLOCKS)];
        let all = turns().take(&watched(vec![(0, first), (1, second)], 1000));
        let wake_ups: Vec<_> = all.iter().filter(|one| matches!(one, Scheduled::WakeUp(_))).collect();
        let [Scheduled::WakeUp(one)] = wake_ups[..] else { panic!("{all:?}") };
        assert_eq!((one.woken_tid, one.waker_pid, one.waker_tid, one.at_ns), (50, 7, 8, 200));
    }

    #[test]
    fn ids_and_times_are_those_of_the_ring() {
        let translated = HashMap::from([(41, Some(1)), (42, None)]);
        let mut turns = Turns::new((PID, 1), HashSet::from([41, 42]), Some(translated), -50);
        let records = vec![
            own(41, 150, COULD_GO_ON),
            // The ring has no id for these.
            of(7, 8, 160, What::In),
            of(7, 8, 170, BLOCKS),
            own(42, 180, What::In),
            own(42, 190, BLOCKS),
            of(7, 8, 195, What::Woke { tid: 41, is_by_interrupt: false }),
        ];
        let all = turns.take(&watched(vec![(0, records)], 1000));
        let woken =
            WakeUp { cpu: 0, waker_pid: 0, waker_tid: 0, is_by_interrupt: false, woken_tid: 1, at_ns: 145 };
        assert_eq!(all, [turn(0, 1, 1, (50, 100), TurnEnd::Preempted), Scheduled::WakeUp(woken)]);
        assert_eq!(turns.until_ns(), 950);
    }
}
