//! No reader ever reports an event that was not recorded, however fast the writers are.
//!
//! Threads write into a ring at full speed, by the recorder's protocol, while the test reads it in a loop. Each word's
//! payload is a hash of its slot, its owner and its sequence. So the test notices a word with a wrong sequence or a
//! wrong owner, and a mixture of two words.
//!
//! `READ_RIP_TORTURE_SECONDS` sets the duration, three seconds by default. The test can fail: see the sabotages at
//! [`words_are_what_was_recorded_however_fast_the_writers_are`].

#![allow(unsafe_code, reason = "the ring is written through a mapping, as the recorder does")]

mod support;

use std::path::Path;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, compiler_fence};
use std::thread;
use std::time::{Duration, Instant};

use librip_test_kit::format::slot_at;
use memmap2::MmapRaw;
use read_rip_ring::{self as ring, SlotState, Snapshot, Source};

use support::synth::{CLAIMING, EXITED, Image, LIVE, Ring, SLOT_HEADER, SLOTS, Slot};
use support::{Random, setting};

/// An odd number without a pattern, the same as in [`MappedSlot::plain_marks`]: the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A key that makes the words of one owner differ from those of another owner with the same sequences.
fn owner_key(slot: u64, (generation, tid): (u32, u32), is_operand: bool) -> u64 {
    Random(slot << 56 ^ u64::from(generation) << 24 ^ u64::from(tid) << 1 ^ u64::from(is_operand)).next()
}

/// The payload that a word must have: multiplicative hashing (Knuth, "Sorting and Searching", 6.4), and never zero.
fn payload(owner_key: u64, sequence: u64) -> u64 {
    sequence.wrapping_add(owner_key).wrapping_mul(FACTOR) >> 16 | 1
}

/// The id of the thread that owns a slot in this generation.
fn owner_tid(slot: u64, generation: u32) -> u32 {
    1000 * (slot as u32 + 1) + generation % 1000
}

fn owner_name(slot: u64, generation: u32) -> String {
    format!("writer {slot}, owner {generation}")
}

/// The bytes of one slot in the mapping.
struct MappedSlot<'a> {
    mapping: &'a MmapRaw,
    index: u64,
    offset: usize,
    words: u64,
}

impl MappedSlot<'_> {
    fn at64(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && self.offset + at + 8 <= self.mapping.len());
        let field = self.mapping.as_mut_ptr().wrapping_add(self.offset + at).cast::<u64>();
        // SAFETY: within the mapping (checked above), which outlives `self`; aligned, because mappings and slots are;
        // all accesses to it in this process are atomic.
        unsafe { AtomicU64::from_ptr(field) }
    }

    fn at32(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && self.offset + at + 4 <= self.mapping.len());
        let field = self.mapping.as_mut_ptr().wrapping_add(self.offset + at).cast::<u32>();
        // SAFETY: as in `at64`; no part is accessed in both widths.
        unsafe { AtomicU32::from_ptr(field) }
    }

    fn count(&self) -> &AtomicU64 {
        self.at64(slot_at::COUNT)
    }

    fn reserve(&self, words: u64) -> u64 {
        let first = self.count().load(Relaxed);
        self.count().store(first + words, Relaxed);
        // The recorder's assembly has these stores in this order.
        compiler_fence(SeqCst);
        first
    }

    fn store(&self, owner: (u32, u32), sequence: u64, is_operand: bool) {
        let payload = payload(owner_key(self.index, owner, is_operand), sequence);
        let index = (sequence % self.words) as usize;
        let word = support::synth::word(sequence, is_operand, payload);
        // ORDERING: relaxed, as the recorder's.
        self.at64(SLOT_HEADER + 8 * index).store(word, Relaxed);
    }

    /// An event of that many words, the last of which commits it.
    fn event(&self, owner: (u32, u32), words: u64, interrupted_by: u64) {
        let first = self.reserve(words);
        for sequence in first..first + words - 1 {
            self.store(owner, sequence, true);
        }
        // A signal handler records in the middle of it.
        if interrupted_by > 0 {
            let inner = self.reserve(interrupted_by);
            for sequence in inner..inner + interrupted_by {
                self.store(owner, sequence, false);
            }
        }
        self.store(owner, first + words - 1, false);
    }

    /// Marks without operands, with the recorder's instructions and at its speed, even in an unoptimised test.
    #[cfg(target_arch = "x86_64")]
    fn plain_marks(&self, owner: (u32, u32), how_many: u64) {
        assert!(self.offset + SLOT_HEADER + 8 * self.words as usize <= self.mapping.len());
        let cursor = self.mapping.as_mut_ptr().wrapping_add(self.offset + SLOT_HEADER);
        // SAFETY: it writes the count, 8 bytes before the cursor, and words from the cursor on, as many as the mask
        // says: all within the mapping (checked above).
        unsafe {
            core::arch::asm!(
                "2:",
                "mov {word}, qword ptr [{cursor} - 8]",
                "lea {index}, [{word} + 1]",
                "add qword ptr [{cursor} - 8], 1",
                "cmp qword ptr [{cursor} - 8], {index}",
                "jne 3f",
                "mov {index}, {word}",
                "and {index}, {mask}",
                "lea {payload}, [{word} + {key}]",
                "imul {payload}, {factor}",
                "shr {payload}, 16",
                "or {payload}, 1",
                "shl {word}, 49",
                "or {word}, {payload}",
                "mov qword ptr [{cursor} + 8*{index}], {word}",
                "dec {left}",
                "jnz 2b",
                "jmp 4f",
                // Nobody else records in this slot.
                "3:",
                "ud2",
                "4:",
                cursor = in(reg) cursor,
                mask = in(reg) self.words - 1,
                key = in(reg) owner_key(self.index, owner, false),
                factor = in(reg) FACTOR,
                left = inout(reg) how_many => _,
                word = out(reg) _,
                index = out(reg) _,
                payload = out(reg) _,
                options(nostack),
            );
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn plain_marks(&self, owner: (u32, u32), how_many: u64) {
        for _ in 0..how_many {
            self.event(owner, 1, 0);
        }
    }

    /// The owner exits and another thread claims the slot.
    fn change_owner(&self) -> (u32, u32) {
        self.at64(slot_at::EXITED).store(2, Relaxed);
        self.at32(slot_at::STATE).store(EXITED, Release);
        self.at32(slot_at::STATE).store(CLAIMING, Relaxed);
        compiler_fence(SeqCst);
        let generation = self.at32(slot_at::GENERATION).load(Relaxed) + 1;
        let tid = owner_tid(self.index, generation);
        self.at32(slot_at::GENERATION).store(generation, Relaxed);
        self.at32(slot_at::TID).store(tid, Relaxed);
        self.at64(slot_at::CLAIMED).store(u64::from(generation), Relaxed);
        self.at64(slot_at::EXITED).store(0, Relaxed);
        self.at64(slot_at::FIRST_SEQUENCE).store(self.count().load(Relaxed), Relaxed);
        let mut name = [0; 40];
        let text = owner_name(self.index, generation);
        name[..text.len()].copy_from_slice(text.as_bytes());
        for (part, bytes) in name.chunks_exact(8).enumerate() {
            self.at64(slot_at::NAME + 8 * part).store(u64::from_le_bytes(bytes.try_into().unwrap()), Relaxed);
        }
        self.at32(slot_at::STATE).store(LIVE, Release);
        (generation, tid)
    }

    /// Writes until the test is over.
    fn write(&self, pace: Pace, is_over: &AtomicBool) {
        let mut random = Random(self.index);
        let mut owner = (1, owner_tid(self.index, 1));
        while !is_over.load(Relaxed) {
            for _ in 0..random.below(500) {
                match random.below(64) {
                    0 => self.event(owner, 1, 2),
                    1..8 => self.event(owner, 2, 0),
                    8..12 => self.event(owner, 4, 0),
                    12 => self.event(owner, 3, 1),
                    _ => self.event(owner, 1, 0),
                }
                if pace == Pace::Brisk {
                    (0..10).for_each(|_| std::hint::spin_loop());
                }
            }
            if pace != Pace::Brisk {
                self.plain_marks(owner, 1 + random.below(100_000) as u64);
            }
            if random.below(8) == 0 {
                owner = self.change_owner();
            }
            if pace == Pace::Bursts {
                thread::sleep(Duration::from_micros(300));
            }
        }
    }
}

/// How fast a thread writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// At full speed: a slot of 64 words wraps in a tenth of a microsecond.
    Full,
    /// Like a busy program: about half a microsecond an event, without a pause.
    Brisk,
    /// At full speed, with pauses: the slot does not change half of the time.
    Bursts,
}

/// What the readers have seen.
#[derive(Debug, Default)]
struct Seen {
    reads: u64,
    slots: u64,
    checked: u64,
    wrong: u64,
    torn: u64,
    unwritten: u64,
    damaged: u64,
    claiming: u64,
    owners: u64,
    /// Capacity of all slots that were read, in words.
    room: u64,
    /// For writers with [`Pace::Brisk`]: words that were checked, and words that the slots could hold.
    brisk: (u64, u64),
}

/// Copies the bytes of the ring, as `read-rip save` does, and reads the copy.
fn read_image(path: &Path) -> Snapshot {
    let header = ring::read_header(path).unwrap();
    let mut copy = tempfile::NamedTempFile::new().unwrap();
    ring::write_image(&Source::open(path).unwrap(), Some(&header), &mut copy).unwrap();
    ring::read(copy.path()).unwrap()
}

/// Reads the ring once, or a copy of it, and checks every word.
fn check(path: &Path, words: u32, paces: &[Pace], newest: &mut [(u64, u32)], seen: &mut Seen) {
    let snapshot = if seen.reads % 4 == 3 { read_image(path) } else { ring::read(path).unwrap() };
    assert_eq!(snapshot.defects, [], "a sound ring has no defects, however fast it changes");
    seen.reads += 1;
    for slot in &snapshot.slots {
        seen.slots += 1;
        seen.room += u64::from(words);
        if paces[slot.index as usize] == Pace::Brisk {
            seen.brisk.0 += slot.words.known() as u64;
            seen.brisk.1 += u64::from(words).min(slot.count - slot.first_sequence.min(slot.count));
        }
        seen.torn += u64::from(slot.torn);
        seen.unwritten += u64::from(slot.unwritten);
        seen.damaged += u64::from(slot.damaged);
        let (count, generation) = &mut newest[slot.index as usize];
        assert!(slot.generation >= *generation, "an earlier owner came back");
        seen.owners += u64::from(slot.generation != *generation);
        *generation = slot.generation;
        // The newest word of a moving slot may be older than its count was, by what was not written yet.
        *count = slot.count.max(*count);
        assert!(slot.words.len() <= words as usize);
        assert!(slot.words.is_empty() || slot.words_from >= slot.first_sequence, "words of an earlier owner");
        if slot.state == SlotState::Claiming {
            seen.claiming += 1;
            assert!(slot.words.is_empty());
            continue;
        }
        assert_eq!(slot.tid, owner_tid(slot.index, slot.generation), "ids of two owners");
        assert_eq!(slot.name, owner_name(slot.index, slot.generation), "the name of another owner");
        let owner = (slot.generation, slot.tid);
        let keys = [false, true].map(|is_operand| owner_key(slot.index, owner, is_operand));
        let words = slot.words.iter().map(|(at, word)| (slot.words_from + at as u64, word));
        let known = words.filter(|(_, word)| !word.is_missing());
        for (sequence, word) in known.map(|(sequence, word)| (sequence, word.raw())) {
            let is_operand = word & 1 << 48 != 0;
            let payload = payload(keys[usize::from(is_operand)], sequence);
            seen.checked += 1;
            if word != support::synth::word(sequence, is_operand, payload) {
                seen.wrong += 1;
                if seen.wrong < 10 {
                    eprintln!("slot {} sequence {sequence} (count {}): {word:#x}", slot.index, slot.count);
                }
            }
        }
    }
}

/// So many readings make a test, however long they take.
const LEAST_READS: u64 = 20;

fn torture(slot_words: u32, writers: &[Pace], time: Duration) -> Seen {
    let ring = Ring { slot_words, spare_slots: 0, ..Ring::new() };
    // Close to the limits of 15, 16 and 32 bits, and far from all of them.
    let starts = [0, (1 << 15) - 100, (1 << 32) - 100_000, (1 << 47) + 12_345, 1];
    let slots = (0..writers.len() as u64).map(|index| {
        let tid = owner_tid(index, 1);
        Slot::thread(&owner_name(index, 1), tid).from(starts[index as usize % starts.len()])
    });
    let image: Image = ring.with_slots(slots).build();
    // In /dev/shm, where rings normally are, if it exists.
    let shared_memory = Path::new("/dev/shm");
    let directory =
        if shared_memory.is_dir() { tempfile::tempdir_in(shared_memory) } else { tempfile::tempdir() }
            .unwrap();
    let path = directory.path().join("ring");
    image.write(&path);
    let mapping = support::map(&path);
    let is_over = AtomicBool::new(false);
    let mut seen = Seen::default();
    thread::scope(|scope| {
        for (index, &pace) in writers.iter().enumerate() {
            let offset = image.entry(SLOTS, index);
            let slot =
                MappedSlot { mapping: &mapping, index: index as u64, offset, words: u64::from(slot_words) };
            let is_over = &is_over;
            scope.spawn(move || slot.write(pace, is_over));
        }
        // A failed assertion must stop the writers too.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut newest = vec![(0, 0); writers.len()];
            let deadline = Instant::now() + time;
            while Instant::now() < deadline || seen.reads <= LEAST_READS {
                check(&path, slot_words, writers, &mut newest, &mut seen);
            }
            newest
        }));
        is_over.store(true, Relaxed);
        let newest = result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        for (index, (count, generation)) in newest.into_iter().enumerate() {
            assert!(count > 10_000 && generation > 1, "writer {index} hardly wrote: {count} words");
        }
    });
    eprintln!("{slot_words} words a slot: {seen:?}");
    seen
}

/// Sabotages of `ring/copy.rs` that this test caught within 24 seconds, on x86-64 with two processors:
///
/// * every slot counts as unchanging;
/// * words are accepted without a second copy (wrong: 20 of 4 million words);
/// * the sequences of a piece end at the count before its copy, not at the count after it;
/// * the owner is not compared before and after the words;
/// * words before the owner's first word are kept;
/// * a slot that is changing owners shows its words.
///
/// It did not catch this one: a piece is accepted however far the writer has advanced. Both copies are then equal only
/// if the reader was interrupted in the few instructions between the second copy and the count.
#[test]
fn words_are_what_was_recorded_however_fast_the_writers_are() {
    let time = Duration::from_secs(setting("READ_RIP_TORTURE_SECONDS", 3)) / 3;
    for slot_words in [16, 64, 16_384] {
        let seen = torture(slot_words, &[Pace::Full, Pace::Full, Pace::Brisk, Pace::Bursts], time);
        assert_eq!((seen.wrong, seen.damaged), (0, 0), "{seen:?}");
        // The test checked enough: many words of many owners, and most words of the writer with a usual pace.
        assert!(seen.owners > 10, "{seen:?}");
        assert!(seen.checked > seen.room / 10 && seen.brisk.0 > seen.brisk.1 / 2, "{seen:?}");
    }
}
