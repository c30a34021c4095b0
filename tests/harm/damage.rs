//! Another process truncates the file while forty threads mark and others start and end.

use std::fs;

use librip_test_kit::format::header_at;
use librip_test_kit::oracle::Ring;
use librip_test_kit::progress;
use librip_test_kit::victim::torture;

use crate::survives;

/// Runs the victim a few times with and without its own SIGBUS handler, which must not see these faults.
fn check(what: &str) {
    for _ in 0..3 * torture() {
        let remains = survives(&["damage", what], |plan| plan);
        assert_eq!(remains.stdout, "survived\n");
        let remains = survives(&["damage_with_handler", what], |plan| plan);
        assert_eq!(remains.stdout, "survived\nthe program's own handler ran 0 times\n");
    }
}

#[test]
fn a_program_survives_the_truncation_of_its_ring_to_nothing() {
    check("truncate");
}

#[test]
fn a_program_survives_the_loss_of_half_of_its_slots() {
    check("halve");
}

#[test]
fn a_program_survives_a_cut_in_the_middle_of_a_slot() {
    check("odd");
}

#[test]
fn a_program_survives_a_truncation_and_an_extension() {
    // The file then contains only zeros, and no thread gets a SIGBUS: the recorder hands out slots that have owners.
    check("extend_again");
}

#[test]
fn a_program_survives_many_truncations_and_extensions() {
    check("again_and_again");
}

#[test]
fn a_program_survives_a_hole_of_the_size_of_the_ring() {
    check("punch");
}

#[test]
fn slots_before_the_cut_keep_recording_and_later_threads_are_counted() {
    let remains = survives(&["damage", "halve"], |plan| plan);
    let mut bytes = fs::read(remains.ring_path()).unwrap();
    let wanted = u64::from_le_bytes(bytes[header_at::FILE_LEN..][..8].try_into().unwrap()) as usize;
    let slot_len = u64::from_le_bytes(bytes[header_at::SLOT_LEN..][..8].try_into().unwrap()) as usize;
    assert_eq!(bytes.len(), wanted - 32 * slot_len);
    // The oracle requires the whole file: append zeros for the lost part.
    bytes.resize(wanted, 0);
    let ring = Ring::parse(bytes).unwrap();
    let cells = progress::read(&remains.dir().join("progress"));
    let mut kept = 0;
    for (index, cell) in cells.iter().enumerate() {
        let name = format!("w{index}");
        let Some(slot) = ring.slots_named(&name).next() else { continue };
        assert_eq!(slot.count, cell[2], "{name}");
        for event in slot.events().events {
            assert_eq!(ring.label(event.pc), format!("cycle {}", event.sequence % 7));
        }
        assert!(slot.events().missing.is_empty());
        kept += 1;
    }
    assert_eq!(kept, 32, "32 of 64 slots were cut off, and 40 threads had taken the first 40");
    assert!(ring.refused_memory >= 5, "the five that came last: {}", ring.refused_memory);
    assert_eq!(ring.exit_status, Some(3));
}
