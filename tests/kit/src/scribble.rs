//! A hostile process: it maps a ring that another process records into, and scribbles over it at full speed.
//!
//! The host must continue as if nothing happened. The attack does not judge that: the host checks its own results and
//! the memory around its ring, and [`survives`] checks that the host continues, and how it ends.

#![allow(unsafe_code, reason = "atomic stores into a shared mapping")]

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use memmap2::MmapRaw;

use crate::checksum;
use crate::format::{
    Field, HELD_ENTRIES, REGIONS, channel_entry_at, header_at, held, held_at, history_at, lock_name_at,
    module_at, region, region_at, site_at, slot_at, span_at, static_text_at, task_at,
};
use crate::victim::{Plan, torture};
use crate::{Random, map};

/// What the attack writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// The worst values into each field, one field after the other, and then into several at once.
    WorstValues,
    /// Random words everywhere.
    RandomWords,
}

impl Manner {
    /// How long the attack of a test lasts. `RIP_TORTURE` multiplies it.
    fn budget(self) -> Duration {
        match self {
            // Each field has its turn.
            Manner::WorstValues => Duration::from_secs(2),
            Manner::RandomWords => Duration::from_millis(500),
        }
    }
}

/// A host that writes no line for this long hangs: a line takes it some milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// The attack stays with a field for this long.
const STAY: Duration = Duration::from_millis(10);

/// Attacks hosts until the time is over, at least two of them, and fails unless all survive.
///
/// `plan` gets the exit status that the host is to end with. A host writes `ready`, waits for a line on its standard
/// input, writes a line from time to time, writes `done`, and exits.
///
/// # Panics
///
/// When a host crashes, hangs, or ends in another way.
pub fn survives(manner: Manner, plan: impl Fn(i32) -> Plan) {
    let end = Instant::now() + manner.budget() * torture();
    let mut first_field = 0;
    for host in 0.. {
        // The recorder keeps the ring in one case and removes it in the other.
        let status = if host % 2 == 0 { 3 } else { 0 };
        let mut victim = plan(status).start();
        victim.patience(PATIENCE);
        victim.until("ready");
        let attack = Attack::start(&victim.ring_path(), manner, host, first_field);
        victim.go_on();
        loop {
            victim.patience(PATIENCE);
            match victim.next_line() {
                Some(line) if line == "done" => break,
                Some(_) => {}
                // It ended too early: the status below says how.
                None => break,
            }
        }
        victim.patience(PATIENCE);
        let remains = victim.wait();
        assert_eq!(remains.status.code(), Some(status), "host {host}, under {attack:?}: {remains:#?}");
        assert!(remains.stdout.ends_with("done\n"), "host {host}, under {attack:?}: {remains:#?}");
        first_field = attack.stop();
        if host > 0 && Instant::now() > end {
            return;
        }
    }
}

/// An attack under way.
struct Attack {
    stop: Arc<AtomicBool>,
    /// What it attacks at the moment.
    now: Arc<Mutex<String>>,
    thread: Option<JoinHandle<usize>>,
}

impl std::fmt::Debug for Attack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.now.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Attack {
    fn start(ring: &Path, manner: Manner, seed: u64, first_field: usize) -> Attack {
        let (stop, now) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(String::new())));
        let target = Target::new(map(ring));
        let thread = std::thread::spawn({
            let (stop, now) = (stop.clone(), now.clone());
            move || match manner {
                Manner::WorstValues => target.worst_values(&stop, &now, seed, first_field),
                Manner::RandomWords => target.random_words(&stop, &now, seed),
            }
        });
        Attack { stop, now, thread: Some(thread) }
    }

    /// Ends the attack, and returns the field that the next one is to begin with.
    fn stop(mut self) -> usize {
        self.stop.store(true, Relaxed);
        self.thread.take().expect("it is taken here only").join().unwrap()
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if std::thread::panicking() {
            eprintln!("the attack was at: {self:?}");
        }
    }
}

/// A field, with every offset at which the file has it.
struct Spot {
    name: String,
    len: usize,
    offsets: Vec<usize>,
}

struct Region {
    kind: u32,
    entry_len: usize,
    offset: usize,
    capacity: usize,
}

/// A ring in memory, and the layout before the attack.
struct Target {
    map: MmapRaw,
    regions: Vec<Region>,
}

impl Target {
    fn new(map: MmapRaw) -> Target {
        let mut target = Target { map, regions: Vec::new() };
        for index in 0..REGIONS {
            let at = header_at::REGIONS + region_at::LEN * index;
            let region = Region {
                kind: target.get(at + region_at::KIND, 4) as u32,
                entry_len: target.get(at + region_at::ENTRY_LEN, 4) as usize,
                offset: target.get(at + region_at::OFFSET, 8) as usize,
                capacity: target.get(at + region_at::CAPACITY, 8) as usize,
            };
            if region.kind != 0 {
                target.regions.push(region);
            }
        }
        assert!(target.regions.iter().any(|region| region.kind == region::SLOTS), "no ring to attack");
        target
    }

    /// Where the entries of a region start, at most that many.
    fn entries(&self, kind: u32, most: usize) -> Vec<usize> {
        let regions = self.regions.iter().filter(|region| region.kind == kind);
        let starts =
            regions.flat_map(|it| (0..it.capacity.min(most)).map(|index| it.offset + it.entry_len * index));
        starts.filter(|start| start + 8 <= self.map.len()).collect()
    }

    /// An atomic integer in the file. Callers name no other type.
    fn atomic<T>(&self, at: usize) -> &T {
        assert!(at.is_multiple_of(size_of::<T>()) && at + size_of::<T>() <= self.map.len());
        let field_at = self.map.as_mut_ptr().wrapping_add(at).cast_const().cast::<T>();
        // SAFETY: within the mapping, which outlives the reference, and aligned: checked above. All bits are an
        // integer. This process makes atomic accesses only, from one thread, so never of two lengths at one time.
        unsafe { &*field_at }
    }

    fn get(&self, at: usize, len: usize) -> u64 {
        match len {
            1 => self.atomic::<AtomicU8>(at).load(Relaxed).into(),
            2 => self.atomic::<AtomicU16>(at).load(Relaxed).into(),
            4 => self.atomic::<AtomicU32>(at).load(Relaxed).into(),
            _ => self.atomic::<AtomicU64>(at).load(Relaxed),
        }
    }

    fn set(&self, at: usize, len: usize, value: u64) {
        match len {
            1 => self.atomic::<AtomicU8>(at).store(value as u8, Relaxed),
            2 => self.atomic::<AtomicU16>(at).store(value as u16, Relaxed),
            4 => self.atomic::<AtomicU32>(at).store(value as u32, Relaxed),
            _ => self.atomic::<AtomicU64>(at).store(value, Relaxed),
        }
    }

    /// All fields by name, with the offsets of each.
    fn spots(&self) -> Vec<Spot> {
        let mut spots = Vec::new();
        let mut add = |structure: &str, fields: &[Field], starts: &[usize]| {
            for field in fields {
                // Arrays are attacked word by word.
                let len = if matches!(field.len, 1 | 2 | 4) { field.len } else { 8 };
                let len = if field.at.is_multiple_of(len) { len } else { 4 };
                let parts = (0..field.len / len).map(|part| field.at + len * part);
                let offsets = parts.flat_map(|at| starts.iter().map(move |start| start + at)).collect();
                spots.push(Spot { name: format!("{structure} {}", field.name), len, offsets });
            }
        };
        let slots = self.entries(region::SLOTS, 64);
        let regions: Vec<usize> =
            (0..REGIONS).map(|index| header_at::REGIONS + region_at::LEN * index).collect();
        let held: Vec<usize> = slots
            .iter()
            .flat_map(|slot| (0..HELD_ENTRIES).map(move |entry| slot + slot_at::HELD + held_at::LEN * entry))
            .collect();
        add("slot", slot_at::FIELDS, &slots);
        add("held", held_at::FIELDS, &held);
        add("span", span_at::FIELDS, &self.spans(&slots));
        add("channel of slot", &[Field { name: "HISTORY", at: 0, len: 8 }], &self.channels(&slots));
        add("task", task_at::FIELDS, &self.tasks(&slots));
        add("channel", channel_entry_at::FIELDS, &self.entries(region::CHANNELS, 8));
        // The first histories of a ring of the scribbled program have 64 words each.
        let histories: Vec<usize> =
            self.entries(region::HISTORIES, 64 * 72).into_iter().step_by(72).collect();
        add("history", history_at::FIELDS, &histories);
        add("text", static_text_at::FIELDS, &self.entries(region::STRINGS, 64));
        add("header", header_at::FIELDS, &[0]);
        add("region", region_at::FIELDS, &regions);
        add("name", lock_name_at::FIELDS, &self.entries(region::LOCK_NAMES, 64));
        add("module", module_at::FIELDS, &self.entries(region::MODULES, 16));
        add("site", site_at::FIELDS, &self.entries(region::SITES, 64));
        add("words", &[Field { name: "WORDS", at: slot_at::LEN, len: 128 }], &slots);
        spots.retain(|spot| !spot.offsets.is_empty());
        spots
    }

    /// Where the entries of the open spans of these slots are.
    fn spans(&self, slots: &[usize]) -> Vec<usize> {
        let words = self.get(header_at::SLOT_WORDS, 4) as usize;
        let entries = self.get(header_at::SPAN_ENTRIES, 4) as usize;
        let of_slot = |slot: &usize| slot + slot_at::LEN + 8 * words;
        let starts = slots.iter().map(of_slot);
        starts.flat_map(|start| (0..entries).map(move |entry| start + span_at::LEN * entry)).collect()
    }

    /// Where the entries of these slots for channels are.
    fn channels(&self, slots: &[usize]) -> Vec<usize> {
        let words = self.get(header_at::SLOT_WORDS, 4) as usize;
        let spans = self.get(header_at::SPAN_ENTRIES, 4) as usize;
        let entries = self.get(header_at::CHANNEL_ENTRIES, 4) as usize;
        let of_slot = |slot: &usize| slot + slot_at::LEN + 8 * words + span_at::LEN * spans;
        slots.iter().map(of_slot).flat_map(|start| (0..entries).map(move |entry| start + 8 * entry)).collect()
    }

    /// Where the parts of these slots for tasks are.
    fn tasks(&self, slots: &[usize]) -> Vec<usize> {
        let (slot_len, task_len) = (self.get(header_at::SLOT_LEN, 8), self.get(header_at::TASK_LEN, 4));
        let starts = slots.iter().map(|slot| slot + (slot_len - task_len) as usize);
        starts.filter(|_| task_len > 0).collect()
    }

    /// Stays with each field for some milliseconds, then puts it back as it was, so that the host reaches the code that
    /// depends on the next field. Every fourth time it attacks several fields together instead.
    fn worst_values(self, stop: &AtomicBool, now: &Mutex<String>, seed: u64, first_field: usize) -> usize {
        let spots = self.spots();
        let mut random = Random(seed);
        let mut field = first_field;
        while !stop.load(Relaxed) {
            if field % 4 == 3 {
                *now.lock().unwrap() = "several fields at once".into();
                self.together(&mut random);
            }
            let spot = &spots[field % spots.len()];
            now.lock().unwrap().clone_from(&spot.name);
            let before: Vec<u64> = spot.offsets.iter().map(|&at| self.get(at, spot.len)).collect();
            let end = Instant::now() + STAY;
            while Instant::now() < end && !stop.load(Relaxed) {
                for &value in WORST {
                    spot.offsets.iter().for_each(|&at| self.set(at, spot.len, value));
                }
            }
            std::iter::zip(&spot.offsets, before).for_each(|(&at, value)| self.set(at, spot.len, value));
            field += 1;
        }
        field
    }

    /// Fields that are worse together.
    fn together(&self, random: &mut Random) {
        let slots = self.entries(region::SLOTS, 64);
        let lock = slots.iter().map(|slot| self.get(slot + slot_at::HELD, 8)).max().unwrap_or(0);
        let end = Instant::now() + STAY;
        while Instant::now() < end {
            for slot in &slots {
                // The word that the count selects is far away, if the recorder takes a mask from before the words.
                self.set(slot + slot_at::COUNT, 8, 1 << (33 + random.below(8)));
                self.set(slot + slot_at::LEN - 8, 8, (1 << 40) - 1);
                // All entries hold one lock, which the host uses: a search never finds the last.
                for entry in 0..HELD_ENTRIES {
                    let at = slot + slot_at::HELD + held_at::LEN * entry;
                    let state =
                        [held::HELD, held::WAITING, held::ACQUIRING, held::RELEASING][random.below(4)];
                    let flags = (random.next() & 0x8f) << held::SHARED_BIT;
                    self.set(at + held_at::LOCK, 8, lock);
                    let meta = checksum::held_meta(lock, flags | state << held::STATE_SHIFT);
                    self.set(at + held_at::META, 8, meta);
                    self.set(at + held_at::SINCE, 8, u64::MAX);
                }
                self.set(slot + slot_at::STATE, 4, random.below(5) as u64);
                self.set(slot + slot_at::HELD_OVERFLOWED, 4, u32::MAX.into());
            }
            // Every slot is used, has memory, and has just been released.
            for index in 0..REGIONS {
                let at = header_at::REGIONS + region_at::LEN * index;
                self.set(at + region_at::CAPACITY, 8, u64::MAX);
                self.set(at + region_at::USED, 8, [0, 1 << 33, 1 << 63][random.below(3)]);
            }
        }
    }

    /// Stores random words, most of them where the recorder looks.
    fn random_words(self, stop: &AtomicBool, now: &Mutex<String>, seed: u64) -> usize {
        *now.lock().unwrap() = "random words".into();
        let mut random = Random(seed);
        let slots = self.entries(region::SLOTS, 64);
        let tasks = self.tasks(&slots);
        let words = self.map.len() / 8;
        while !stop.load(Relaxed) {
            let at = match random.below(5) {
                0 => random.below(header_at::LEN / 8) * 8,
                1 => slots[random.below(slots.len())] + random.below(slot_at::LEN / 8) * 8,
                2 => slots[random.below(slots.len())] + slot_at::LEN + random.below(16) * 8,
                3 if !tasks.is_empty() => {
                    tasks[random.below(tasks.len())] + random.below(task_at::LEN / 8) * 8
                }
                _ => random.below(words) * 8,
            };
            let value = match random.below(4) {
                0 => random.next(),
                1 => (1u64 << random.below(64)).wrapping_sub(random.next() & 1),
                2 => random.below(300) as u64,
                // A plausible value: a word from another offset.
                _ => self.get(random.below(words) * 8, 8),
            };
            self.set(at, 8, value);
        }
        0
    }
}

/// Values that a program is likely to trip over: as a number of slots, an offset, a mask, a shift, a state, an id.
const WORST: &[u64] = &[
    0,
    1,
    2,
    3,
    4,
    15,
    63,
    64,
    65,
    255,
    0x7fff,
    0xffff,
    1 << 16,
    (1 << 24) + 1,
    0x7fff_ffff,
    1 << 31,
    0xffff_fff8,
    0xffff_ffff,
    1 << 32,
    1 << 33,
    (1 << 40) - 1,
    1 << 47,
    0x7fff_ffff_ffff_f000,
    0x4000_0003_0002_0001,
    1 << 62,
    (1 << 63) - 1,
    1 << 63,
    (1 << 63) + 1,
    u64::MAX - 8,
    u64::MAX - 1,
    u64::MAX,
];
