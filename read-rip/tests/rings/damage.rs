//! Damaged rings: the reader says in one sentence what is wrong, exits with status 2, and shows everything sound.
//!
//! A cut copy, a crash, or a stray write can cause each case. Input made to do harm is in `hostile.rs`, random damage
//! in `fuzz.rs`.

use std::fs::File;

use librip_test_kit::format::{header_at, module_at, region_at, site_at, slot_at};
use read_rip_ring::{self as ring, Error};

use crate::support::fixture::{ONE, QUICK, Scratch, THREE, sound_ring};
use crate::support::run::{Outcome, read_rip, show, show_within};
use crate::support::synth::{BIAS, HEADER, Image, MODULES, Ring, SITES, SLOT_HEADER, SLOTS, TEXTS, word};

/// Damages `sound_ring` and shows it by thread.
#[track_caller]
fn after(damage: impl FnOnce(&mut Image)) -> Outcome {
    let mut image = sound_ring().build();
    damage(&mut image);
    let scratch = Scratch::new();
    let outcome = show(&["-t"], &scratch.file("ring", &image.bytes));
    assert!(outcome.took < QUICK, "{outcome:#?}");
    outcome
}

/// Like `after`, with checksums that fit the damage.
fn after_sealed(damage: impl FnOnce(&mut Image)) -> Outcome {
    after(|image| {
        damage(image);
        image.seal();
    })
}

#[test]
fn the_ring_is_sound_before_it_is_damaged() {
    let outcome = after(|_| ()).sound();
    assert!(outcome.stdout.starts_with(ONE) && outcome.stdout.ends_with(THREE), "{}", outcome.stdout);
}

// Files that are not rings, or rings that this reader does not read.

#[test]
fn an_empty_file_is_empty() {
    let scratch = Scratch::new();
    let path = scratch.file("ring", b"");
    let outcome = show(&[], &path).fails_with(&format!("Error: {} is empty\n", path.display()));
    assert!(outcome.stderr.contains("copy it again"));
}

#[test]
fn a_header_that_is_cut_anywhere_is_short() {
    let scratch = Scratch::new();
    let bytes = sound_ring().build().bytes;
    for len in 1..HEADER {
        let path = scratch.file("ring", &bytes[..len]);
        match ring::read(&path) {
            Err(Error::NotARing { .. }) => assert!(len < 8, "{len}"),
            Err(Error::Short { found_bytes, expected_bytes, .. }) => {
                assert!(len >= 8 && found_bytes == len as u64 && expected_bytes == HEADER as u64, "{len}");
            }
            other => panic!("{len} bytes: {other:?}"),
        }
    }
    show(&[], &scratch.file("ring", &bytes[..7])).fails_with(" is not a ring\n");
    for len in [8, 16, 320, 640, HEADER - 1] {
        let path = scratch.file("ring", &bytes[..len]);
        let expected =
            format!("{} has {len} bytes, fewer than the {HEADER} of a ring's header\n", path.display());
        show(&[], &path).fails_with(&expected);
    }
}

#[test]
fn a_file_with_only_the_header_is_a_truncated_ring() {
    let outcome = after(|image| image.bytes.truncate(HEADER));
    outcome.fails_with(&format!("Damaged: the file was truncated: it has {HEADER} of "));
}

#[test]
fn a_file_of_zeros_of_any_length_is_not_a_ring() {
    let scratch = Scratch::new();
    for len in [1, 8, 320, HEADER, 4096, 20_480] {
        show(&[], &scratch.file("ring", &vec![0; len])).fails_with(" is not a ring\n");
    }
}

#[test]
fn text_is_not_a_ring() {
    let scratch = Scratch::new();
    for text in [&b"#!/bin/sh\n"[..], &[b'x'; 640], &[0xff; 640]] {
        show(&[], &scratch.file("ring", text)).fails_with(" is not a ring\n");
    }
}

#[test]
fn an_unfinished_ring_is_not_taken_for_a_file_that_is_not_a_ring() {
    let expected = " is an unfinished ring\n";
    after(|image| image.set64(header_at::MAGIC, 0)).fails_with(expected);
    // The file has a length that is also possible for a legacy ring, and a host name that could be PCs of such a ring.
    let ring = Ring { host: b"ab".to_vec(), spare_slots: 1, ..sound_ring() };
    let mut image = ring.build();
    image.bytes.resize(image.bytes.len().next_multiple_of(20_480), 0);
    image.set64(header_at::MAGIC, 0);
    show(&[], &Scratch::new().file("ring", &image.bytes)).fails_with(expected);
}

#[test]
fn another_major_version_is_refused() {
    for major in [0u16, 2, 0xffff] {
        let outcome = after(|image| image.bytes[12..14].copy_from_slice(&major.to_le_bytes()));
        outcome
            .fails_with(&format!(" has format version {major}.0, and this read-rip reads version 1 only\n"));
    }
}

#[test]
fn the_other_byte_order_is_refused_before_anything_that_depends_on_it() {
    let outcome = after(|image| {
        image.set32(header_at::BYTE_ORDER, 0x0403_0201);
        image.bytes[12..14].copy_from_slice(&1u16.to_be_bytes());
    });
    outcome.fails_with(" was recorded with the other byte order\n");
    after(|image| image.set32(header_at::BYTE_ORDER, 5)).fails_with(" is damaged: the byte order is 5\n");
}

#[test]
fn an_unknown_architecture_is_refused() {
    after(|image| image.set32(header_at::MACHINE, 243))
        .fails_with(" on an unknown architecture (ELF machine 243)\n");
    // The other known architecture.
    after_sealed(|image| image.set32(header_at::MACHINE, 183)).sound();
}

// Truncated files.

#[test]
fn a_ring_cut_at_the_start_of_any_region_shows_what_is_left() {
    let scratch = Scratch::new();
    let image = sound_ring().build();
    let whole = image.bytes.len();
    for kind in [MODULES, SITES, TEXTS, SLOTS] {
        for len in [image.begin(kind) - 1, image.begin(kind), image.begin(kind) + 1] {
            let outcome = show(&["-t"], &scratch.file("ring", &image.bytes[..len]));
            let expected =
                format!("Damaged: the file was truncated: it has {len} of {whole} bytes, and the rest");
            assert_eq!(outcome.fails_with(&expected).stdout, "");
        }
    }
}

#[test]
fn a_ring_cut_in_the_middle_of_its_slots_shows_the_slots_before_the_cut() {
    let scratch = Scratch::new();
    let image = sound_ring().build();
    for (len, threads) in [
        (image.entry(SLOTS, 0) + 1023, ""),
        (image.entry(SLOTS, 1), ONE),
        (image.entry(SLOTS, 1) + 1, ONE),
        (image.entry(SLOTS, 1) + SLOT_HEADER + 8, ONE),
        (image.entry(SLOTS, 2) - 1, ONE),
    ] {
        let outcome = show(&["-t"], &scratch.file("ring", &image.bytes[..len]));
        assert_eq!(outcome.fails_with("Damaged: the file was truncated: ").stdout, threads, "{len}");
    }
    // Many lengths, through the library: never more slots than the file holds, never fewer than for a shorter file.
    let mut before = 0;
    for len in (HEADER..image.bytes.len()).step_by(97) {
        let snapshot = ring::read(&scratch.file("ring", &image.bytes[..len])).unwrap();
        assert!(!snapshot.defects.is_empty(), "{len}");
        let slots = snapshot.slots.len();
        assert!(slots >= before && slots <= len.saturating_sub(image.begin(SLOTS)) / 1024, "{len}: {slots}");
        before = slots;
    }
    assert_eq!(before, 3);
}

#[test]
fn a_ring_cut_in_a_task_shows_the_tasks_before_the_cut_as_they_are() {
    let scratch = Scratch::new();
    let image = crate::tasks::futurelock().build();
    let whole = ring::read(&scratch.file("ring", &image.bytes)).unwrap();
    let slot_len = image.entry(SLOTS, 1) - image.entry(SLOTS, 0);
    let mut most = 0;
    for len in (image.begin(SLOTS)..image.entry(SLOTS, 4)).step_by(53) {
        let snapshot = ring::read(&scratch.file("ring", &image.bytes[..len])).unwrap();
        assert!(!snapshot.defects.is_empty(), "{len}");
        assert_eq!(snapshot.slots.len(), (len - image.begin(SLOTS)) / slot_len, "{len}");
        for (cut, whole) in snapshot.slots.iter().zip(&whole.slots) {
            assert_eq!((&cut.task, &cut.held), (&whole.task, &whole.held), "{len}");
        }
        most = most.max(snapshot.slots.len());
    }
    assert_eq!(most, 3);
    let path = scratch.file("ring", &image.bytes[..image.entry(SLOTS, 2) + 9]);
    let outcome = read_rip(["tasks".as_ref(), "-t".as_ref(), path.as_os_str()]);
    outcome.fails_with("Damaged: the file was truncated: ");
}

// The list of regions in the header.

#[test]
fn a_region_at_an_impossible_offset_is_refused_and_the_others_are_read() {
    for (kind, name) in
        [(MODULES, "module table"), (SITES, "site table"), (TEXTS, "text table"), (SLOTS, "slot table")]
    {
        for offset in [0, 8, 4095, 4097, 1 << 40, 1 << 63, u64::MAX, u64::MAX - 4095] {
            let outcome = after(|image| image.set64(image.region(kind) + region_at::OFFSET, offset));
            let outcome = outcome.fails_with(&format!("Damaged: the header has an impossible {name}: "));
            let expected = if kind == SLOTS { 0 } else { 3 };
            assert_eq!(outcome.stdout.lines().count(), expected, "{kind} at {offset:#x}: {outcome:#?}");
        }
    }
}

#[test]
fn of_two_overlapping_regions_one_is_refused() {
    for (kind, other) in
        [(MODULES, SITES), (SITES, TEXTS), (TEXTS, SLOTS), (MODULES, SLOTS), (SLOTS, MODULES)]
    {
        let outcome = after(|image| {
            let offset = image.begin(other) as u64;
            image.set64(image.region(kind) + region_at::OFFSET, offset);
        });
        outcome.fails_with("its offset, which is inside another region,");
    }
}

#[test]
fn impossible_capacities_are_refused() {
    for kind in [MODULES, SITES, TEXTS, SLOTS] {
        for capacity in [1 << 33, 1 << 57, 1 << 63, u64::MAX] {
            let outcome = after(|image| image.set64(image.region(kind) + region_at::CAPACITY, capacity));
            outcome.fails_with("its capacity, for which the file is too short,");
        }
    }
}

#[test]
fn a_number_of_entries_beyond_the_capacity_is_cut_to_the_capacity() {
    for kind in [MODULES, SITES, TEXTS, SLOTS] {
        for used in [1 << 20, 1 << 58, u64::MAX] {
            let outcome = after(|image| image.set64(image.region(kind) + region_at::USED, used));
            let outcome = outcome.fails_with(&format!("the number of its entries is {used}\n"));
            assert!(outcome.stdout.contains(ONE), "{outcome:#?}");
        }
    }
}

#[test]
fn an_empty_region_costs_only_what_refers_to_it() {
    // No entries, as in a new ring. The sites then refer to modules that do not exist.
    let outcome = after(|image| image.set64(image.region(MODULES) + region_at::USED, 0));
    let outcome =
        outcome.fails_with("Damaged: 3 damaged entries in the site table: a module or text is impossible\n");
    assert!(outcome.stdout.starts_with("one[1]: {70}0x555555555000, "), "{outcome:#?}");
    let outcome = after(|image| image.set64(image.region(TEXTS) + region_at::USED, 0));
    let outcome = outcome.fails_with("Damaged: 2 damaged entries in the module table: ");
    assert_eq!(outcome.stdout.lines().count(), 3);
    let outcome = after(|image| image.set64(image.region(SITES) + region_at::USED, 0)).sound();
    assert!(outcome.stdout.starts_with("one[1]: {70}server+0x1000, {71}server+0x2000\n"), "{outcome:#?}");
    assert_eq!(after(|image| image.set64(image.region(SLOTS) + region_at::USED, 0)).sound().stdout, "");
}

#[test]
fn entries_that_are_too_short_are_refused() {
    for (kind, lens) in [(MODULES, [0, 1, 127]), (SITES, [0, 1, 47]), (SLOTS, [0, 8, 511])] {
        for len in lens {
            let outcome = after(|image| image.set32(image.region(kind) + region_at::ENTRY_LEN, len));
            outcome.fails_with(&format!("the length of an entry is {len}\n"));
        }
    }
    after(|image| image.set32(image.region(TEXTS) + region_at::ENTRY_LEN, 0))
        .fails_with("the length of an entry is 0\n");
}

#[test]
fn entries_that_are_too_long_do_not_fit_the_file() {
    for kind in [MODULES, SITES, TEXTS, SLOTS] {
        let outcome = after(|image| image.set32(image.region(kind) + region_at::ENTRY_LEN, u32::MAX));
        outcome.fails_with("its capacity, for which the file is too short,");
    }
}

#[test]
fn a_missing_region_is_named() {
    for (kind, name) in
        [(MODULES, "module table"), (SITES, "site table"), (TEXTS, "text table"), (SLOTS, "slot table")]
    {
        let outcome = after(|image| image.set32(image.region(kind), 0));
        outcome.fails_with(&format!("Damaged: the header lists no {name}\n"));
    }
}

#[test]
fn an_impossible_number_of_words_is_refused() {
    for words in [0, 1, 3, 8, 63, 65, 32_768, u32::MAX] {
        let outcome = after(|image| image.set32(header_at::SLOT_WORDS, words));
        let outcome = outcome.fails_with(&format!("the number of words per slot is {words}\n"));
        assert_eq!(outcome.stdout, "");
    }
}

#[test]
fn a_slot_length_that_contradicts_words_or_region_is_refused() {
    for len in [0, 512, 1016, 1025, 1 << 32, u64::MAX] {
        let outcome = after(|image| image.set64(header_at::SLOT_LEN, len));
        outcome.fails_with(&format!("the length of a slot is {len}\n"));
    }
    // A possible length, but too short for that many words.
    after(|image| image.set32(header_at::SLOT_WORDS, 128)).fails_with("the length of a slot is 1024\n");
}

#[test]
fn impossibly_long_slots_need_no_memory() {
    // All numbers agree, and the file is that long: it is sparse.
    let len: u64 = (1 << 32) - 4096;
    let mut image = sound_ring().build();
    image.set64(header_at::SLOT_LEN, len);
    image.set32(image.region(SLOTS) + region_at::ENTRY_LEN, len as u32);
    image.set64(image.region(SLOTS) + region_at::CAPACITY, 3);
    let file_len = image.begin(SLOTS) as u64 + 3 * len;
    image.set64(header_at::FILE_LEN, file_len);
    let scratch = Scratch::new();
    let path = scratch.file("ring", &image.bytes);
    File::options().write(true).open(&path).unwrap().set_len(file_len).unwrap();
    show_within(512 << 20, &path).fails_with(&format!("the length of a slot is {len}\n"));
}

// Values in the entries of the tables.

#[test]
fn modules_with_impossible_values_are_counted() {
    let expected = "Damaged: 1 damaged entry in the module table: a path, range or build id is impossible\n";
    type Damage = fn(&mut Image, usize);
    let cases: [Damage; 7] = [
        |image, at| image.set32(at + module_at::PATH, u32::MAX),
        |image, at| image.set32(at + module_at::PATH + 4, u32::MAX),
        |image, at| image.set32(at + module_at::PATH + 4, 65_537),
        |image, at| image.set32(at + module_at::PATH + 4, 1000),
        |image, at| image.set64(at + module_at::BEGIN, 1 << 50),
        |image, at| image.set32(at + module_at::BUILD_ID_LEN, 33),
        |image, at| image.set32(at + module_at::BUILD_ID_LEN, 4_000_000_000),
    ];
    for damage in cases {
        let outcome = after(|image| damage(image, image.entry(MODULES, 1)));
        let outcome = outcome.fails_with(expected);
        assert!(outcome.stdout.starts_with(ONE), "{outcome:#?}");
    }
}

#[test]
fn modules_at_any_address_are_accepted() {
    for (begin, end) in [(0, u64::MAX), (u64::MAX, u64::MAX), (0, 0)] {
        let outcome = after_sealed(|image| {
            let at = image.entry(MODULES, 1);
            image.set64(at + module_at::LOAD_BIAS, u64::MAX);
            image.set64(at + module_at::BEGIN, begin);
            image.set64(at + module_at::END, end);
        });
        outcome.sound();
    }
}

#[test]
fn a_module_that_was_being_written_is_skipped() {
    let outcome = after(|image| image.set32(image.entry(MODULES, 1), 0)).sound();
    assert!(outcome.stdout.starts_with(ONE));
    assert!(outcome.stdout.ends_with("three[3]: {0}0x7f0000001000\n"), "{}", outcome.stdout);
}

#[test]
fn sites_that_point_at_nothing_are_counted() {
    let expected = "Damaged: 1 damaged entry in the site table: a module or text is impossible\n";
    for (field, values) in [
        // The greatest number is that of no module, but of a process.
        (site_at::MODULE, [2, u32::MAX - 1]),
        (site_at::TEXT, [100_000, u32::MAX]),
        (site_at::TEXT + 4, [100_000, u32::MAX]),
    ] {
        for value in values {
            let outcome = after(|image| image.set32(image.entry(SITES, 1) + field, value));
            assert!(
                outcome.fails_with(expected).stdout.starts_with("one[1]: {70}a.rs:1, {71}server+0x2000\n")
            );
        }
    }
}

#[test]
fn a_site_with_too_many_operands_keeps_its_location() {
    let outcome = after_sealed(|image| {
        let at = image.entry(SITES, 0);
        image.bytes[at + site_at::OPERAND_COUNT] = 255;
    });
    assert!(outcome.sound().stdout.starts_with(ONE));
}

#[test]
fn a_line_number_may_be_anything() {
    let outcome = after_sealed(|image| image.set32(image.entry(SITES, 0) + site_at::LINE, u32::MAX));
    assert!(outcome.sound().stdout.starts_with("one[1]: {70}a.rs:4294967295, "));
}

// Values in slots.

#[test]
fn a_slot_in_an_unknown_state_is_shown_and_counted() {
    let outcome = after(|image| image.set32(image.entry(SLOTS, 0), 77));
    let expected = "Damaged: 1 damaged slot, the first is number 0: an unknown state\n";
    assert!(outcome.fails_with(expected).stdout.starts_with(ONE));
    let outcome = after(|image| {
        for index in [1, 2] {
            image.set32(image.entry(SLOTS, index), u32::MAX);
        }
    });
    outcome.fails_with("Damaged: 2 damaged slots, the first is number 1: an unknown state\n");
}

#[test]
fn a_slot_whose_owner_begins_after_its_count_has_no_words() {
    for first in [73, 1 << 40, u64::MAX] {
        let outcome = after(|image| image.set64(image.entry(SLOTS, 0) + slot_at::FIRST_SEQUENCE, first));
        let expected = "1 damaged slot, the first is number 0: the owner's first word is after its last\n";
        assert!(outcome.fails_with(expected).stdout.starts_with("one[1]:\ntwo[2]: "), "{first}");
    }
}

#[test]
fn words_of_a_slot_with_an_impossible_count_are_rejected() {
    for count in [71 + 5000, 1 << 40, u64::MAX - 1, u64::MAX] {
        let outcome = after(|image| image.set64(image.entry(SLOTS, 0) + slot_at::COUNT, count));
        let expected =
            "1 damaged slot, the first is number 0: words at indices that contradict their sequences\n";
        let outcome = outcome.fails_with(expected);
        assert!(
            outcome.stdout.starts_with("one[1]:\n") && outcome.stdout.ends_with(THREE),
            "{count}: {outcome:#?}"
        );
    }
}

#[test]
fn words_at_a_wrong_index_are_rejected_and_the_others_are_shown() {
    let outcome = after(|image| {
        let at = image.entry(SLOTS, 0) + SLOT_HEADER + 8 * (71 % 64);
        image.set64(at, word(72, false, BIAS + 0x2000));
    });
    let outcome = outcome.fails_with(
        "1 damaged slot, the first is number 0: words at indices that contradict their sequences\n",
    );
    assert!(outcome.stdout.starts_with("one[1]: {70}a.rs:1\n"), "{outcome:#?}");
}

#[test]
fn words_that_were_reserved_and_not_written_are_not_damage() {
    // Killed between the count and the store: the word is from the lap before, or empty.
    let outcome = after(|image| {
        image.set64(image.entry(SLOTS, 0) + slot_at::COUNT, 73);
        image.set64(image.entry(SLOTS, 1) + slot_at::COUNT, 82);
    });
    let outcome = outcome.sound();
    assert!(outcome.stdout.starts_with(ONE), "{outcome:#?}");
    assert!(outcome.stderr.contains(", 2 not written."), "{outcome:#?}");
}

#[test]
fn a_word_that_an_interrupted_event_has_written_late_is_not_damage() {
    // Signal handlers have recorded for laps before the event went on.
    for laps in [2, 3, 511] {
        let outcome = after(|image| {
            let at = image.entry(SLOTS, 0) + SLOT_HEADER + 8 * (71 % 64);
            image.set64(at, word((1 << 15) + 71 - 64 * laps, false, BIAS + 0x2000));
        });
        let outcome = outcome.sound();
        assert!(outcome.stdout.starts_with("one[1]: {70}a.rs:1\n"), "{laps}: {outcome:#?}");
        assert!(outcome.stderr.contains(", 1 not written."), "{laps}: {outcome:#?}");
    }
}

#[test]
fn a_slot_of_an_unknown_kind_is_shown() {
    assert!(
        after(|image| image.set32(image.entry(SLOTS, 0) + slot_at::KIND, 9)).sound().stdout.starts_with(ONE)
    );
}

#[test]
fn a_used_slot_that_is_all_zeros_is_skipped() {
    // The slot was claimed, and its thread died before it wrote its ids.
    let outcome = after(|image| {
        let at = image.entry(SLOTS, 1);
        image.bytes[at..at + 1024].fill(0);
    });
    assert_eq!(outcome.sound().stdout, format!("{ONE}{THREE}"));
}
