//! Recordings that are cut, damaged or hostile: what is sound is read, and nothing is invented.

use std::path::Path;

use librip_test_kit::Random;
use read_rip_ring::{
    self as ring, Follower, Header, IntoParts, NewWords, Parts, Period, RecordingWriter, Scheduled, Snapshot,
    Source, Turn, TurnEnd, Word,
};

use crate::support::exports::crew;
use crate::support::fixture::Fixture;
use crate::support::run::{read_rip, show};
use crate::support::synth::{Ring, Site, Slot};

/// The word of a sequence: whoever reads it can tell whether it was recorded.
fn word(sequence: u64) -> Word {
    Word::pc(sequence, 0x5000 + 8 * (sequence % 100_000))
}

fn image_of(source: &Source, header: &Header) -> Parts {
    let mut parts = Parts::default();
    ring::write_image(source, Some(header), &mut IntoParts(&mut parts)).unwrap();
    parts
}

/// A ring with one thread, its image, and another owner of the slot, of whose words the ring has none.
fn former_owner() -> (Fixture, Parts, ring::Slot) {
    let fixture = Fixture::of(&Ring::new().with_slots([Slot::thread("worker", 5).marks([0x10, 0x20])]));
    let source = Source::open(&fixture.path).unwrap();
    let header = ring::present_header(&source).unwrap();
    let [of_slot] = &Follower::default().new_words(&source, &header).unwrap()[..] else {
        panic!("one thread")
    };
    let image = image_of(&source, &header);
    let mut owner = of_slot.owner.clone();
    owner.generation += 1;
    (fixture, image, owner)
}

/// A recording of a ring with one thread, which had recorded so many words before those in the ring, in blocks of a
/// hundred.
fn recording(earlier: u64) -> (Vec<u8>, Fixture) {
    let (fixture, image, owner) = former_owner();
    let mut bytes = Vec::new();
    let mut writer = RecordingWriter::new(&mut bytes).unwrap();
    writer.image(&image, 0).unwrap();
    for from in (0..earlier).step_by(100) {
        let words = (from..from + 100).map(word).collect();
        writer.words(&[NewWords { owner: owner.clone(), from, words, unseen: 0 }], 0..0).unwrap();
    }
    writer.image(&image, 0).unwrap();
    (bytes, fixture)
}

/// Reads a recording. Every word of the earlier owner must be the one that was recorded there.
fn read(path: &Path, bytes: &[u8]) -> Option<(Snapshot, u64)> {
    std::fs::write(path, bytes).unwrap();
    let snapshot = ring::read(path).ok()?;
    let mut count = 0;
    for history in &snapshot.histories {
        for (index, found) in history.words.iter().filter(|(_, word)| !word.is_missing()) {
            assert_eq!(found, word(history.words_from + index as u64));
            count += 1;
        }
    }
    Some((snapshot, count))
}

#[test]
fn a_recording_that_is_cut_anywhere_has_all_complete_blocks() {
    let (bytes, fixture) = recording(1000);
    let path = fixture.path.with_extension("recording");
    let (whole, count) = read(&path, &bytes).unwrap();
    assert_eq!((count, whole.slots.len(), &*whole.defects), (1000, 1, &[][..]));
    let (mut last, mut readable) = (0, 0);
    for cut in (0..bytes.len()).step_by(19) {
        let Some((snapshot, count)) = read(&path, &bytes[..cut]) else { continue };
        assert_eq!(snapshot.defects, [], "an incomplete block at the end is none: {cut}");
        assert!(count >= last && count % 100 == 0, "{cut}: {count}");
        (last, readable) = (count, readable + 1);
    }
    assert_eq!(last, 1000);
    assert!(readable > bytes.len() / 57, "{readable} of {}", bytes.len());
}

#[test]
fn a_recording_shows_tasks_as_its_ring_does() {
    let fixture = Fixture::of(&crew());
    let source = Source::open(&fixture.path).unwrap();
    let header = ring::present_header(&source).unwrap();
    let mut bytes = Vec::new();
    let mut writer = RecordingWriter::new(&mut bytes).unwrap();
    writer.image(&image_of(&source, &header), 0).unwrap();
    let path = fixture.path.with_extension("recording");
    std::fs::write(&path, bytes).unwrap();
    for format in ["folded", "chrome", "ndjson", "openmetrics"] {
        let of = |path: &Path| read_rip(["export", "-f", format, path.to_str().unwrap()]).sound().stdout;
        let recorded = of(&path);
        assert!(recorded.contains("task"), "{recorded}");
        assert_eq!(recorded, of(&fixture.path));
    }
}

#[test]
fn bytes_that_were_changed_cost_their_block_and_are_said_to_be_damaged() {
    let (bytes, fixture) = recording(1000);
    let path = fixture.path.with_extension("recording");
    let mut random = Random(7);
    let mut lost = 0;
    for _ in 0..200 {
        let mut changed = bytes.clone();
        let at = 16 + random.below(bytes.len() - 16);
        changed[at] ^= 1 << random.below(8);
        // One of the two images is sound.
        let (snapshot, count) = read(&path, &changed).unwrap();
        assert!(count >= 900, "{at}: {count}");
        assert!(count == 1000 || !snapshot.defects.is_empty(), "{at}: {:?}", snapshot.defects);
        lost += u64::from(count < 1000);
    }
    assert!(lost > 25, "{lost}");
}

#[test]
fn a_file_that_only_claims_to_be_a_recording_is_an_error_and_takes_no_memory() {
    let (bytes, fixture) = recording(100);
    let path = fixture.path.with_extension("recording");
    for broken in [&bytes[..8], &bytes[..16], &[&bytes[..16], &[0xff; 4096][..]].concat()] {
        std::fs::write(&path, broken).unwrap();
        assert!(ring::read(&path).is_err());
    }
    let mut later = bytes.clone();
    later[8] = 9;
    std::fs::write(&path, &later).unwrap();
    let error = ring::read(&path).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "this version of read-rip does not know its format");
}

#[test]
fn blocks_that_all_claim_the_rest_of_the_file_do_not_keep_the_reader_busy() {
    const BLOCKS: usize = 1 << 18;
    let (bytes, fixture) = recording(100);
    let path = fixture.path.with_extension("recording");
    let mut hostile = bytes[..16].to_vec();
    for rest in (0..BLOCKS as u64).rev() {
        hostile.extend(b"RIPBLOCK");
        hostile.extend([0; 8]);
        hostile.extend((48 * rest).to_le_bytes());
        hostile.extend([0; 24]);
    }
    std::fs::write(&path, &hostile).unwrap();
    show(&[], &path).fails_with("no image of the ring in it is complete");
}

#[test]
fn an_event_that_was_half_written_when_the_image_was_made_is_whole() {
    const EVENT: u64 = 0x1000;
    let mut ring = Ring::new().with_sites(&[]).with_clock(3);
    let site = Site { label: "half {}".into(), ..Site::new(EVENT, "src/said.rs", 7) };
    ring.sites = vec![site.of(14, 4, &[10])];
    // A time, a number, and their shape.
    let operands = [2000, 512, 1 | 2 << 40 | 1 << 46];
    let said = |slot: Slot| slot.event(EVENT, &operands);
    let speaker = || said(Slot::thread("speaker", 9));
    let half = operands.iter().fold(speaker(), |slot, &operand| slot.operand(operand));
    let fixture = Fixture::of(&ring.clone().with_slots([half]));
    let source = Source::open(&fixture.path).unwrap();
    let header = ring::present_header(&source).unwrap();
    let mut follower = Follower::default();
    let mut bytes = Vec::new();
    let mut writer = RecordingWriter::new(&mut bytes).unwrap();
    writer.words(&follower.new_words(&source, &header).unwrap(), 0..0).unwrap();
    writer.image(&image_of(&source, &header), 0).unwrap();
    // The event is complete now, and another one follows.
    let later = ring.with_slots([said(said(speaker()))]).build();
    std::fs::write(&fixture.path, &later.bytes).unwrap();
    writer.words(&follower.new_words(&source, &header).unwrap(), 0..0).unwrap();
    let path = fixture.path.with_extension("recording");
    std::fs::write(&path, &bytes).unwrap();
    let shown = read_rip(["log".as_ref(), path.as_os_str()]).sound().stdout;
    assert_eq!(shown.matches("half 512").count(), 3, "{shown}");
}

#[test]
fn words_that_were_overwritten_while_the_image_was_made_are_taken_from_the_record() {
    // The image has two of the sixteen words before the fortieth, the last ones.
    let slot = Slot::thread("worker", 5).at(38).marks([0x10, 0x20]);
    let fixture = Fixture::of(&Ring { slot_words: 16, ..Ring::new() }.with_slots([slot]));
    let source = Source::open(&fixture.path).unwrap();
    let header = ring::present_header(&source).unwrap();
    let [of_slot] = &Follower::default().new_words(&source, &header).unwrap()[..] else {
        panic!("one thread")
    };
    let recorded = |range: std::ops::Range<u64>| {
        let words = range.clone().map(word).collect();
        NewWords { owner: of_slot.owner.clone(), from: range.start, words, unseen: 0 }
    };
    let mut bytes = Vec::new();
    let mut writer = RecordingWriter::new(&mut bytes).unwrap();
    writer.words(&[recorded(0..36)], 0..0).unwrap();
    writer.image(&image_of(&source, &header), 0).unwrap();
    writer.words(&[recorded(40..50)], 0..0).unwrap();
    let path = fixture.path.with_extension("recording");
    std::fs::write(&path, &bytes).unwrap();
    let snapshot = ring::read(&path).unwrap();
    let [slot] = &snapshot.slots[..] else { panic!("{:#?}", snapshot.slots) };
    assert_eq!((slot.words_from, slot.count, slot.unwritten), (0, 40, 2));
    let missing = |&(_, word): &(usize, Word)| word.is_missing();
    let missing: Vec<usize> = slot.words.iter().filter(missing).map(|(at, _)| at).collect();
    assert_eq!(missing, [36, 37]);
    assert!((0..36).all(|at| slot.words.get(at as usize) == Some(word(at))));
    let [history] = &snapshot.histories[..] else { panic!("{:#?}", snapshot.histories) };
    assert_eq!((history.first_sequence, history.count), (40, 50));
}

#[test]
fn the_words_of_a_slot_that_changes_owners_are_those_of_who_recorded_them() {
    let mut follower = Follower::default();
    // The owner's generation, its first sequence, and which sequences are written. The slot has sixteen words.
    let mut follow = |generation: u32, first: u64, written: &[u64], count: u64| {
        let mut slot = Slot { generation, first_sequence: first, ..Slot::thread("worker", generation) };
        for &sequence in written {
            slot = slot.at(sequence).marks([0x10]);
        }
        let ring = Ring { slot_words: 16, ..Ring::new() }.with_slots([slot.at(count)]);
        let fixture = Fixture::of(&ring);
        let source = Source::open(&fixture.path).unwrap();
        let new = follower.new_words(&source, &ring::present_header(&source).unwrap()).unwrap();
        let of = |new: &NewWords| (new.owner.generation, new.from, new.words.len(), new.unseen);
        new.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(follow(1, 0, &[0, 1], 2), [(1, 0, 2, 0)]);
    assert_eq!(follow(1, 0, &[0, 1], 2), []);
    // The thread has recorded one word more, and has left two that it never wrote. Another one has its slot.
    assert_eq!(follow(2, 5, &[0, 1, 2], 5), [(1, 2, 1, 2)]);
    // What is written before the owner's first sequence is not its own.
    assert_eq!(follow(2, 5, &[3, 4, 5, 6], 8), [(2, 5, 2, 0)]);
    assert_eq!(follow(2, 5, &[5, 6, 7], 8), [(2, 7, 1, 0)], "now it is written");
    // There was an owner in between: nobody knows where its words begin.
    assert_eq!(follow(4, 12, &[8, 9, 10, 11, 12], 13), [(2, 8, 0, 4), (4, 12, 1, 0)]);
    // Faster than the reader.
    assert_eq!(follow(4, 12, &[100], 101), [(4, 100, 1, 87)]);
}

/// A time, ns since boot, and how long after it each block of words begins.
const BEGUN_NS: u64 = 5_000_000_000;
const BLOCK_NS: u64 = 20_000_000;
const BLOCK_WORDS: u64 = 2000;
const BLOCKS: u64 = 64;

/// A recording of more than half a megabyte, and where each block of words begins in it. Its last image is the ring's.
fn long_recording() -> (Vec<u8>, Vec<usize>, Fixture) {
    let (fixture, image, owner) = former_owner();
    let mut bytes = Vec::new();
    let mut begins = Vec::new();
    for block in 0..BLOCKS {
        begins.push(bytes.len());
        let (from, at_ns) = (BLOCK_WORDS * block, BEGUN_NS + BLOCK_NS * block);
        let words = (from..from + BLOCK_WORDS).map(word).collect();
        let new = NewWords { owner: owner.clone(), from, words, unseen: 0 };
        let mut part = Vec::new();
        let mut writer = RecordingWriter::new(&mut part).unwrap();
        writer.words(&[new], at_ns..at_ns + BLOCK_NS).unwrap();
        if block % 16 == 0 {
            writer.image(&image, at_ns + BLOCK_NS).unwrap();
        }
        // The first one has the beginning of the file.
        bytes.extend(&part[if block == 0 { 0 } else { 16 }..]);
    }
    (bytes, begins, fixture)
}

/// The sequences of the words that are read of a period.
fn read_within(path: &Path, since_ns: u64, until_ns: u64) -> Snapshot {
    let source = Source::open(path).unwrap().within(Period { since_ns, until_ns });
    ring::read_source(&source).unwrap()
}

fn has_word(snapshot: &Snapshot, sequence: u64) -> bool {
    snapshot.histories.iter().any(|of| {
        let at = sequence.checked_sub(of.words_from).map(|at| at as usize);
        at.and_then(|at| of.words.get(at)) == Some(word(sequence))
    })
}

#[test]
fn of_a_period_only_the_blocks_around_it_are_read() {
    let (bytes, begins, fixture) = long_recording();
    assert!(bytes.len() > 1 << 19, "{}", bytes.len());
    let path = fixture.path.with_extension("recording");
    // Blocks far from the period are damaged: they are not read.
    let mut damaged = bytes.clone();
    for block in [1, 2, 3] {
        damaged[begins[block] + 100] ^= 1;
    }
    std::fs::write(&path, &damaged).unwrap();
    let block_ns = |block: u64| BEGUN_NS + BLOCK_NS * block;
    let snapshot = read_within(&path, block_ns(50) + 1, u64::MAX);
    assert_eq!((&*snapshot.defects, has_word(&snapshot, 49 * BLOCK_WORDS)), (&[][..], false));
    assert!((50 * BLOCK_WORDS..BLOCKS * BLOCK_WORDS).all(|sequence| has_word(&snapshot, sequence)));
    assert!(!ring::read(&path).unwrap().defects.is_empty(), "all of it is damaged");
    // Each period, at the edges of its blocks and within them, of the whole file and of one whose writer was killed.
    for (bytes, blocks) in [(&bytes[..], BLOCKS), (&bytes[..begins[45] + 2000], 45)] {
        std::fs::write(&path, bytes).unwrap();
        for (first, last) in [(0, 0), (0, 63), (1, 1), (17, 18), (30, 44), (44, 44), (63, 63)] {
            for inside in [0, 1, BLOCK_NS / 2, BLOCK_NS - 1] {
                let snapshot = read_within(&path, block_ns(first) + inside, block_ns(last) + inside);
                for sequence in (first * BLOCK_WORDS..(last + 1).min(blocks) * BLOCK_WORDS).step_by(331) {
                    assert!(has_word(&snapshot, sequence), "{first} to {last}, {inside}: {sequence}");
                }
                let words: usize = snapshot.histories.iter().map(|of| of.words.known()).sum();
                // A second more belongs to it: fifty blocks.
                let most = (last - first + 3 + 50) * BLOCK_WORDS;
                assert!(words as u64 <= most, "{first} to {last}: {words}");
            }
        }
        let after = read_within(&path, block_ns(BLOCKS) + 1, u64::MAX);
        assert_eq!(after.histories.iter().map(|of| of.words.known()).sum::<usize>(), 0);
    }
}

/// The recorder goes on with the words that threads recorded while it wrote an image. They were lost if that took long.
#[test]
fn words_that_were_recorded_while_an_image_was_written_belong_to_their_period() {
    let (fixture, image, owner) = former_owner();
    let path = fixture.path.with_extension("recording");
    let second_ns = |second: u64| BEGUN_NS + second * 1_000_000_000;
    // The ring's clock may not be readable.
    for complete_ns in [second_ns(5), u64::MAX] {
        let mut bytes = Vec::new();
        let mut writer = RecordingWriter::new(&mut bytes).unwrap();
        let words = |writer: &mut RecordingWriter<_>, from: u64, times_ns| {
            let words = (from..from + 10).map(word).collect();
            writer.words(&[NewWords { owner: owner.clone(), from, words, unseen: 0 }], times_ns).unwrap();
        };
        words(&mut writer, 0, second_ns(0)..second_ns(1));
        writer.image(&image, complete_ns).unwrap();
        words(&mut writer, 10, second_ns(1)..second_ns(6).max(complete_ns));
        words(&mut writer, 20, second_ns(5)..second_ns(7).max(complete_ns));
        std::fs::write(&path, &bytes).unwrap();
        let snapshot = read_within(&path, second_ns(0), second_ns(2));
        let read = |from: u64| (from..from + 10).all(|sequence| has_word(&snapshot, sequence));
        assert_eq!([0, 10, 20].map(read), [true, true, false], "{complete_ns}");
    }
}

#[test]
fn log_of_a_part_of_a_recording_shows_what_that_of_all_of_it_shows_of_this_time() {
    const EVENT: u64 = 0x1000;
    let mut ring = Ring::new().with_sites(&[]).with_clock(3);
    let site = Site { label: "number {}".into(), ..Site::new(EVENT, "src/said.rs", 7) };
    ring.sites = vec![site.of(14, 4, &[10])];
    let said =
        |slot: Slot, ticks: u64, number: u64| slot.event(EVENT, &[ticks, number, 1 | 2 << 40 | 1 << 46]);
    let mut random = Random(3);
    let mut bytes = Vec::new();
    let mut follower = Follower::default();
    let mut slot = Slot::thread("speaker", 9);
    let (mut number, mut last, mut begins) = (0, None, Vec::new());
    // A tick takes 8 ns, and the ring's clock began two seconds after the boot.
    let at_ns = |number: u64| 2_000_000_000 + (100_000 * number - 1000) * 8;
    for _ in 0..16 {
        slot = Slot { words: Vec::new(), ..slot };
        let from_ns = at_ns(number + 1);
        for _ in 0..1000 {
            number += 1;
            // The second operand of what follows cannot be packed.
            slot = said(slot, 100_000 * number, random.below(1 << 31) as u64);
        }
        let fixture = Fixture::of(&Ring { slot_words: 4096, ..ring.clone() }.with_slots([slot.clone()]));
        let source = Source::open(&fixture.path).unwrap();
        let header = ring::present_header(&source).unwrap();
        let mut part = Vec::new();
        let mut writer = RecordingWriter::new(&mut part).unwrap();
        let new = follower.new_words(&source, &header).unwrap();
        writer.words(&new, from_ns..at_ns(number)).unwrap();
        writer.image(&image_of(&source, &header), at_ns(number)).unwrap();
        begins.push(bytes.len());
        bytes.extend(&part[if bytes.is_empty() { 0 } else { 16 }..]);
        last = Some(fixture);
    }
    let fixture = last.unwrap();
    let path = fixture.path.with_extension("recording");
    std::fs::write(&path, &bytes).unwrap();
    assert!(bytes.len() > 1 << 19, "{}", bytes.len());
    let log = |options: &[&str]| {
        let arguments = options.iter().copied().chain([path.to_str().unwrap()]);
        let out = read_rip(["log", "--json"].into_iter().chain(arguments)).sound().stdout;
        out.lines().filter(|line| line.contains("number")).map(str::to_owned).collect::<Vec<_>>()
    };
    let all = log(&[]);
    assert_eq!(all.len(), 16 * 1000);
    // The first block is not read.
    bytes[100] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    for (last, count) in [("1s", 1250), ("6s", 7500)] {
        let shown = log(&["--last", last]);
        assert!(shown.len().abs_diff(count) <= 1, "{last}: {}", shown.len());
        assert!(all.ends_with(&shown), "{last}");
    }
    // Nor is a block after a range that ended some time ago.
    bytes[100] ^= 1;
    let late = begins[12] + 100;
    bytes[late] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    for (options, begin, end) in [
        (&["--since", "10s", "--until", "9s"][..], 3500, 4750),
        (&["--until", "9s"], 0, 4750),
        (&["--since", "12s", "--until", "9s"], 1000, 4750),
    ] {
        let shown = log(options);
        let first = all.iter().position(|line| *line == shown[0]).unwrap();
        assert!(first.abs_diff(begin) <= 1 && shown.len().abs_diff(end - begin) <= 1, "{options:?}: {first}");
        assert!(all[first..].starts_with(&shown), "{options:?}");
    }
    bytes[late] ^= 1;
    bytes[100] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    // An export with findings does not read it either, and all of the range is there.
    let path = path.to_str().unwrap();
    let exported = |options: &[&str]| {
        let arguments = ["export", "--format=ndjson", path].into_iter().chain(options.iter().copied());
        let outcome = read_rip(arguments);
        let events = outcome.stdout.lines().filter(|line| line.contains("number"));
        (events.count(), outcome.stderr.contains("damaged"))
    };
    let (count, is_damage_seen) = exported(&["--last", "6s"]);
    assert!(count.abs_diff(7500) <= 1 && !is_damage_seen, "{count} {is_damage_seen}");
    assert!(exported(&[]).1);
}

#[test]
fn turns_of_a_period_are_read_without_the_rest_and_blocks_of_words_are_found_beside_them() {
    const TURNS: u64 = 1000;
    let (fixture, image, owner) = former_owner();
    let path = fixture.path.with_extension("recording");
    let turn = |number: u64| {
        let begin_ns = BEGUN_NS + BLOCK_NS / TURNS * number;
        let tid = number as u32 * 0x9E37 % 5000;
        let turn = Turn { cpu: 3, pid: 9, tid, begin_ns, end_ns: begin_ns + 9000, end: TurnEnd::Blocked };
        Scheduled::Turn(turn)
    };
    let mut bytes = Vec::new();
    let mut begins = Vec::new();
    let mut writer = RecordingWriter::new(&mut bytes).unwrap();
    for block in 0..BLOCKS {
        begins.push(writer.written_bytes() as usize);
        let at_ns = BEGUN_NS + BLOCK_NS * block;
        let turns: Vec<Scheduled> = (TURNS * block..TURNS * (block + 1)).map(turn).collect();
        writer.schedule(&turns, at_ns..at_ns + BLOCK_NS).unwrap();
        let words = (100 * block..100 * (block + 1)).map(word).collect();
        let new = NewWords { owner: owner.clone(), from: 100 * block, words, unseen: 0 };
        writer.words(&[new], at_ns..at_ns + BLOCK_NS).unwrap();
    }
    writer.image(&image, BEGUN_NS + BLOCK_NS * BLOCKS).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    assert!(bytes.len() > 1 << 18, "{}", bytes.len());
    let source = Source::open(&path).unwrap();
    let whole = source.schedule().unwrap();
    assert_eq!((whole.turns.len() as u64, whole.left_out, &*whole.defects), (TURNS * BLOCKS, 0, &[][..]));
    assert_eq!(read(&path, &bytes).unwrap().1, 100 * BLOCKS, "the words are all there");
    // A damaged block that is far from the period is not read.
    bytes[begins[2] + 100] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let source = Source::open(&path).unwrap();
    let (since_ns, until_ns) = (BEGUN_NS + BLOCK_NS * 50 + 1, u64::MAX);
    let part = source.within(Period { since_ns, until_ns }).schedule().unwrap();
    assert_eq!((part.turns.len() as u64, &*part.defects), (TURNS * (BLOCKS - 50), &[][..]));
    assert_eq!(part.turns, whole.turns[TURNS as usize * 50..]);
    let all = source.schedule().unwrap();
    assert_eq!((all.turns.len() as u64, all.defects.len()), (TURNS * (BLOCKS - 1), 1));
}
