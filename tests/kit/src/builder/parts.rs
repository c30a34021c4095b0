//! The parts of a ring: modules, sites, slots, held locks, names of locks.
//!
//! Nothing here decides where in the file a part is.

use super::BIAS;
use super::image::{put16, put32, put64};
use crate::checksum;
use crate::format::{
    POLL_COUNTS, POLL_LANES, await_at, call_at, held, lock_name_at, long_poll_at, module_at, pack,
    poll_lane_at, poll_lengths_at, poll_place_at, site_at, slot_state, task_at,
};

/// A program or library.
#[derive(Clone, Debug)]
pub struct Module {
    pub state: u32,
    pub pid: u32,
    pub load_bias: u64,
    pub begin: u64,
    pub end: u64,
    pub path: Vec<u8>,
    pub build_id: Vec<u8>,
    pub is_executable: bool,
    pub file_len: u64,
    pub modified_ns: u64,
    /// Where its code is. Empty: all of it is code.
    pub code: std::ops::Range<u64>,
}

/// The location of a call.
#[derive(Clone, Debug)]
pub struct Call {
    pub pid: u32,
    pub address: u64,
    pub file: String,
    pub line: u32,
}

/// The polls of a place: the length of each, in ticks.
#[derive(Clone, Debug, Default)]
pub struct Polls {
    pub pid: u32,
    pub location: u64,
    pub name: String,
    pub polls: Vec<u64>,
    pub delays: Vec<u64>,
    pub longest: Vec<LongPoll>,
}

/// One of the longest polls of a place.
#[derive(Clone, Debug)]
pub struct LongPoll {
    pub task: u32,
    pub tid: u32,
    pub name: String,
    pub began: u64,
    pub took: u64,
    pub last: u64,
}

impl Polls {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; poll_place_at::LEN];
        put32(&mut bytes, poll_place_at::PID, self.pid);
        put64(&mut bytes, poll_place_at::LOCATION, self.location);
        bytes[poll_place_at::NAME..][..self.name.len()].copy_from_slice(self.name.as_bytes());
        let state = checksum::state(&bytes[..poll_place_at::LONGEST]);
        put32(&mut bytes, poll_place_at::STATE, state);
        for (index, poll) in self.longest.iter().enumerate() {
            let mut entry = vec![0; long_poll_at::LEN];
            put32(&mut entry, long_poll_at::PID, self.pid);
            put32(&mut entry, long_poll_at::TASK, poll.task);
            put32(&mut entry, long_poll_at::TID, poll.tid);
            put64(&mut entry, long_poll_at::BEGAN, poll.began);
            put64(&mut entry, long_poll_at::TOOK, poll.took);
            put64(&mut entry, long_poll_at::LAST, poll.last);
            entry[long_poll_at::NAME..][..poll.name.len()].copy_from_slice(poll.name.as_bytes());
            let state = checksum::state(&entry);
            put32(&mut entry, long_poll_at::STATE, state);
            let at = poll_place_at::LONGEST + index * long_poll_at::LEN;
            bytes[at..at + long_poll_at::LEN].copy_from_slice(&entry);
        }
        for (part, lengths) in [(poll_lane_at::POLLS, &self.polls), (poll_lane_at::DELAYS, &self.delays)] {
            for (number, &ticks) in lengths.iter().enumerate() {
                let at = poll_place_at::LANES + number % POLL_LANES * poll_lane_at::LEN + part;
                let mut add = |at: usize, sum: fn(u64, u64) -> u64, value| {
                    let now = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
                    put64(&mut bytes, at, sum(now, value));
                };
                add(at + poll_lengths_at::COUNTS + 8 * count_of(ticks), |now, more| now + more, 1);
                add(at + poll_lengths_at::GREATEST, u64::max, ticks);
            }
        }
        bytes
    }
}

/// The count of a length: four for each power of two.
fn count_of(ticks: u64) -> usize {
    let mut from = [0, 1, 2, 3].to_vec();
    while from.len() < POLL_COUNTS {
        let power = 1_u64 << (from.len() / 4 - 1);
        from.push((4 + from.len() as u64 % 4) * power);
    }
    from.partition_point(|&from| from <= ticks) - 1
}

impl Call {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; call_at::LEN];
        put32(&mut bytes, call_at::STATE, 1);
        put32(&mut bytes, call_at::PID, self.pid);
        put64(&mut bytes, call_at::ADDRESS, self.address);
        put32(&mut bytes, call_at::LINE, self.line);
        put32(&mut bytes, call_at::COLUMN, 9);
        put32(&mut bytes, call_at::FILE_LEN, self.file.len() as u32);
        let end = &self.file.as_bytes()[self.file.len().saturating_sub(call_at::LEN - call_at::FILE)..];
        bytes[call_at::FILE..][..end.len()].copy_from_slice(end);
        bytes
    }
}

impl Module {
    /// The program, whose file does not exist.
    pub fn program() -> Module {
        Module {
            state: 1,
            pid: 4321,
            load_bias: BIAS,
            begin: 0x1000,
            end: 0x100_0000,
            path: b"/nowhere/server".to_vec(),
            build_id: vec![0xc0, 0xff, 0xee, 0x00, 0x11, 0x22, 0x33, 0x44],
            is_executable: true,
            file_len: 123_456,
            modified_ns: 1_699_999_999_000_000_000,
            code: 0..0,
        }
    }

    /// A library, loaded at another address.
    pub fn library(path: &str, load_bias: u64) -> Module {
        let build_id = vec![0x11, 0xb1, 0xb1, 0xb1];
        Module { load_bias, path: path.into(), is_executable: false, build_id, ..Module::program() }
    }

    pub(super) fn bytes(&self, path: (u32, u32)) -> Vec<u8> {
        let mut bytes = vec![0; module_at::LEN];
        put32(&mut bytes, module_at::STATE, self.state);
        put32(&mut bytes, module_at::PID, self.pid);
        put64(&mut bytes, module_at::LOAD_BIAS, self.load_bias);
        put64(&mut bytes, module_at::BEGIN, self.begin);
        put64(&mut bytes, module_at::END, self.end);
        put32(&mut bytes, module_at::PATH, path.0);
        put32(&mut bytes, module_at::PATH + 4, path.1);
        put32(&mut bytes, module_at::BUILD_ID_LEN, self.build_id.len() as u32);
        put32(&mut bytes, module_at::IS_EXECUTABLE, u32::from(self.is_executable));
        bytes[module_at::BUILD_ID..][..self.build_id.len()].copy_from_slice(&self.build_id);
        put64(&mut bytes, module_at::FILE_LEN, self.file_len);
        put64(&mut bytes, module_at::MODIFIED, self.modified_ns);
        let code = if self.code.is_empty() { self.begin..self.end } else { self.code.clone() };
        put64(&mut bytes, module_at::CODE_BEGIN, code.start);
        put64(&mut bytes, module_at::CODE_END, code.end);
        bytes
    }
}

/// A mark in the source.
#[derive(Clone, Debug)]
pub struct Site {
    pub state: u32,
    pub module: u32,
    pub pc: u64,
    pub file: String,
    pub module_path: String,
    pub label: String,
    pub line: u32,
    pub column: u32,
    pub kind: u8,
    /// 1 shared, 2 try, 4 wrapper, 8 reentrant, 16 readers first; from bit 8 on 1 mutex, 2 readers-writer lock.
    pub flags: u16,
    /// The types of its operands: 1 takes one word, 2 takes two; 3 lock, 4 time, 5 since, 6 condition.
    pub operands: Vec<u8>,
}

impl Site {
    pub fn new(pc: u64, file: &str, line: u32) -> Site {
        Site {
            state: 1,
            module: 0,
            pc,
            file: file.into(),
            module_path: String::new(),
            label: String::new(),
            line,
            column: 5,
            kind: 0,
            flags: 0,
            operands: Vec::new(),
        }
    }

    /// The same with a kind, flags and operands.
    pub fn of(mut self, kind: u8, flags: u16, operands: &[u8]) -> Site {
        (self.kind, self.flags, self.operands) = (kind, flags, operands.to_vec());
        self
    }

    /// The same in a Rust module.
    pub fn within(mut self, module_path: &str) -> Site {
        self.module_path = module_path.into();
        self
    }

    pub(super) fn bytes(&self, text: (u32, u32)) -> Vec<u8> {
        let mut bytes = vec![0; site_at::LEN];
        put32(&mut bytes, site_at::STATE, self.state);
        put32(&mut bytes, site_at::MODULE, self.module);
        put64(&mut bytes, site_at::PC, self.pc);
        put32(&mut bytes, site_at::TEXT, text.0);
        put32(&mut bytes, site_at::TEXT + 4, text.1);
        put32(&mut bytes, site_at::LINE, self.line);
        put32(&mut bytes, site_at::COLUMN, self.column);
        bytes[site_at::KIND] = self.kind;
        bytes[site_at::OPERAND_COUNT] = self.operands.len() as u8;
        put16(&mut bytes, site_at::FLAGS, self.flags);
        bytes[site_at::OPERAND_TYPES..][..self.operands.len()].copy_from_slice(&self.operands);
        bytes
    }
}

/// A thread.
#[derive(Clone, Debug, Default)]
pub struct Slot {
    pub state: u32,
    pub generation: u32,
    /// The process, if it is not the ring's.
    pub pid: Option<u32>,
    pub tid: u32,
    pub claimed_ns: u64,
    /// When it exited, or was kept. If that is 0: 1 ns after the claim.
    pub exited_ns: u64,
    pub name: Vec<u8>,
    /// Whether the program gave the thread this name.
    pub is_named: bool,
    /// A copy that the program has kept.
    pub is_capture: bool,
    /// It is a task. The ring must have [tasks](super::Ring::has_tasks).
    pub task: Option<Task>,
    pub first_sequence: u64,
    pub count: u64,
    /// Entries of the held-lock table: lock, meta, since.
    pub held: Vec<[u64; 3]>,
    pub held_overflowed: u32,
    /// Entries of the table of open spans: begin, since, value.
    pub open: Vec<[u64; 3]>,
    /// Sampled times: sequence and ticks.
    pub sampled: Vec<(u64, u64)>,
    /// Sequence, whether it is an operand, payload.
    pub words: Vec<(u64, bool, u64)>,
}

impl Slot {
    /// A living thread without a mark.
    pub fn thread(name: &str, tid: u32) -> Slot {
        Slot {
            state: slot_state::LIVE,
            generation: 1,
            tid,
            claimed_ns: 1_000 + u64::from(tid),
            name: name.into(),
            ..Slot::default()
        }
    }

    pub fn task(name: &str, number: u32, task: Task) -> Slot {
        Slot { task: Some(task), ..Slot::thread(name, number | 1 << 31) }
    }

    /// The same, starting with this sequence: the earlier ones belong to a former owner.
    pub fn from(mut self, sequence: u64) -> Slot {
        self.first_sequence = sequence;
        self.at(sequence)
    }

    /// The same, about to write this sequence.
    pub fn at(mut self, sequence: u64) -> Slot {
        self.count = sequence;
        self
    }

    pub fn operand(mut self, value: u64) -> Slot {
        self.words.push((self.count, true, value));
        self.count += 1;
        self
    }

    /// An event at this address of [`Module::program`], with its operands.
    pub fn event(self, address: u64, operands: &[u64]) -> Slot {
        operands.iter().fold(self, |slot, &value| slot.operand(value)).marks([address])
    }

    /// An entry of the held-lock table.
    pub fn has(mut self, held: Held) -> Slot {
        self.held.push(held.words());
        self
    }

    /// Marks at these addresses of [`Module::program`].
    pub fn marks(self, addresses: impl IntoIterator<Item = u64>) -> Slot {
        self.actual_marks(addresses.into_iter().map(|address| BIAS + address))
    }

    /// Marks at actual addresses.
    pub fn actual_marks(mut self, pcs: impl IntoIterator<Item = u64>) -> Slot {
        for pc in pcs {
            self.words.push((self.count, false, pc));
            self.count += 1;
        }
        self
    }

    pub fn exited(mut self) -> Slot {
        self.state = slot_state::EXITED;
        self
    }

    /// Another thread reuses the slot: the old words stay in memory.
    pub fn reused_by(mut self, name: &str, tid: u32) -> Slot {
        self.state = slot_state::LIVE;
        self.generation += 1;
        self.tid = tid;
        self.claimed_ns += 10;
        self.name = name.into();
        self.first_sequence = self.count;
        self
    }
}

/// What the slot of a task says besides.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// 1: an async task, 2: a call that blocks, 3: a coroutine.
    pub kind: u64,
    pub is_local: bool,
    pub counts_wakes: bool,
    pub workers: u64,
    pub runtime: u64,
    /// The address of its location.
    pub location: u64,
    pub turn: u64,
    /// Ticks, and whether they are exact.
    pub since: Option<(u64, bool)>,
    /// How many slots after this one the slot is from which it is polled.
    pub poller: Option<i64>,
    pub wakes: u64,
    pub wakes_polled: u64,
    /// How many can wake it.
    pub wakers: Option<u32>,
    /// When it was woken first since the last poll, ticks.
    pub woken: Option<u64>,
    /// Futures: location, index of the outer one, the turn in which it was polled last.
    pub awaits: Vec<(u64, Option<u64>, u64)>,
    /// Futures without room.
    pub left_out: u64,
    /// For each entry of the held-lock table: the turn, whether with the task's own waker, and the future.
    pub entry_turns: Vec<(u64, bool, Option<u64>)>,
}

impl Task {
    /// An async task that was never polled.
    pub fn new() -> Task {
        Task { kind: 1, ..Task::default() }
    }

    /// The same, made at this location, for an executor with two workers. Its wakes are counted, and one can wake it.
    pub fn of_executor(location: u64) -> Task {
        let wakers = Some(1);
        Task { location, runtime: 1, workers: 2, counts_wakes: true, wakers, ..Task::new() }
    }

    pub(super) fn bytes(&self, slot_len: u64) -> Vec<u8> {
        let mut bytes = vec![0; task_at::LEN];
        let flags = u64::from(self.is_local) << 8 | u64::from(self.counts_wakes) << 9;
        put64(&mut bytes, task_at::TURN, self.turn);
        let polled = self.turn.wrapping_sub(1) | 1;
        let since = self.since.map_or(0, |(ticks, is_exact)| ticks & !1 | u64::from(is_exact));
        put64(&mut bytes, task_at::SINCE, if since == 0 { 0 } else { since | polled << 48 });
        let distance = self.poller.map_or(1, |slots| slots * slot_len as i64);
        put64(&mut bytes, task_at::POLLER, distance as u64);
        put64(&mut bytes, task_at::WAKES, self.wakes);
        put32(&mut bytes, task_at::WAKES_POLLED, self.wakes_polled as u32);
        // Less itself, shifted by 16 bits.
        let wakers = self.wakers.unwrap_or(0xffff);
        put32(&mut bytes, task_at::WAKERS, wakers.wrapping_sub(wakers << 16));
        let woken = self.woken.map(|ticks| checksum::sampled_time(self.wakes_polled + 1, ticks | 1));
        put64(&mut bytes, task_at::WOKEN, woken.unwrap_or(0));
        put64(&mut bytes, task_at::LOCATION, self.location | self.left_out << 48);
        put64(&mut bytes, task_at::ORIGIN, self.kind | flags | self.workers << 16 | self.runtime << 32);
        for (index, &(location, outer, turn)) in self.awaits.iter().enumerate() {
            let at = task_at::AWAITS + index * await_at::LEN;
            let place = location | outer.map_or(0, |outer| outer + 1) << 48;
            put64(&mut bytes, at + await_at::PLACE, place);
            put64(&mut bytes, at + await_at::TURN, checksum::sampled_time(place, turn));
        }
        for (index, &(turn, is_direct, future)) in self.entry_turns.iter().enumerate() {
            let future = future.map_or(0, |future| future + 1);
            let entry = turn | u64::from(is_direct) << 27 | future << 28;
            put32(&mut bytes, task_at::ENTRY_TURNS + 4 * index, entry as u32);
        }
        bytes
    }
}

/// An entry of the held-lock table.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub lock: u64,
    /// The address in [`Module::program`].
    pub address: u64,
    /// 1 taking, 2 waiting, 3 held, 4 releasing, 5 condition, 6 destroyed, 7 for what nobody holds.
    pub state: u64,
    pub shared: bool,
    /// In memory that processes share. With state 7: for the end of a thread, or, if it is shared too, for a message.
    pub process_shared: bool,
    pub since: Option<u64>,
    pub recursion: u64,
    /// The sequence in the lock's word.
    pub sequence: u64,
    /// The sequence for which the checksum in the meta word fits, if it differs.
    pub place_sequence: Option<u64>,
}

impl Held {
    pub fn new(state: u64, lock: u64, address: u64) -> Held {
        Held {
            lock,
            address,
            state,
            shared: false,
            process_shared: false,
            since: None,
            recursion: 0,
            sequence: 0,
            place_sequence: None,
        }
    }

    pub fn since(self, ticks: u64) -> Held {
        Held { since: Some(ticks), ..self }
    }

    fn words(&self) -> [u64; 3] {
        let has_since = self.since.is_some() || self.recursion > 0;
        let bits = u64::from(has_since) << held::SINCE_BIT
            | u64::from(self.shared) << held::SHARED_BIT
            | u64::from(self.process_shared) << held::PROCESS_SHARED_BIT
            | self.state << held::STATE_SHIFT;
        let place = pack(self.place_sequence.unwrap_or(self.sequence), true, self.lock);
        let meta = checksum::held_meta(place, bits | (BIAS + self.address) << held::PC_SHIFT);
        // Without its bit, the third word has no meaning.
        let since = match has_since {
            true => checksum::held_since(self.recursion << held::RECURSION_SHIFT | self.since.unwrap_or(0)),
            false => 0x7777_0000_1234_5678,
        };
        [pack(self.sequence, true, self.lock), meta, since]
    }
}

/// An entry of the table of names.
pub(super) fn lock_name((pid, lock, name): &(u32, u64, String)) -> Vec<u8> {
    let mut bytes = vec![0; lock_name_at::LEN];
    put32(&mut bytes, lock_name_at::PID, *pid);
    put64(&mut bytes, lock_name_at::LOCK, *lock);
    bytes[lock_name_at::NAME..][..name.len()].copy_from_slice(name.as_bytes());
    let state = checksum::state(&bytes);
    put32(&mut bytes, lock_name_at::STATE, state);
    bytes
}
