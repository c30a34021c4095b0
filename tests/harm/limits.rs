//! Limits of the process: size of files, address space, descriptors.

use std::fs;

use nix::sys::resource::Resource;

use crate::survives;

/// `librip_format::SETTING_SLOTS_LIMITED`, as the oracle knows it.
const SLOTS_LIMITED: u32 = 8;

#[test]
fn a_limit_on_file_size_makes_the_ring_smaller_and_raises_no_signal() {
    for limit in [400 << 10, 1 << 20, 64 << 20] {
        let remains =
            survives(&["work"], |plan| plan.env("RIP_SLOTS", "65536").limit(Resource::RLIMIT_FSIZE, limit));
        let ring = remains.ring();
        assert!(fs::metadata(remains.ring_path()).unwrap().len() <= limit);
        assert_eq!(ring.settings_ignored, SLOTS_LIMITED, "{limit}");
        assert!((4..65536).contains(&ring.slot_capacity), "{limit}: {}", ring.slot_capacity);
        assert_eq!((ring.slots.len(), ring.refused_full), (4, 0), "{limit}");
    }
}

#[test]
fn a_limit_on_file_size_below_that_of_any_ring_means_no_ring_and_no_file() {
    for limit in [0, 1, 4096, 100 << 10] {
        let remains = survives(&["work"], |plan| plan.limit(Resource::RLIMIT_FSIZE, limit));
        assert!(remains.files().is_empty(), "{limit}: {:?}", remains.files());
    }
}

#[test]
fn a_program_with_little_address_space_gets_no_ring_and_runs() {
    // The program itself uses 160 MiB of 256 MiB. The default ring would take 70 MiB.
    let remains =
        survives(&["memory"], |plan| plan.env("RIP_SLOTS", "65536").limit(Resource::RLIMIT_AS, 256 << 20));
    assert!(remains.stdout.contains("allocated 167772160"), "{remains:?}");
    let ring = remains.ring();
    assert_eq!(ring.settings_ignored, SLOTS_LIMITED);
    assert!(fs::metadata(remains.ring_path()).unwrap().len() <= 16 << 20);
    assert_eq!(ring.labels(ring.slot_named("late")).len(), 4);
}

#[test]
fn a_program_that_has_used_up_its_descriptors_gets_no_ring_and_runs() {
    let remains = survives(&["no_descriptors"], |plan| plan.limit(Resource::RLIMIT_NOFILE, 20));
    assert!(remains.files().is_empty(), "{:?}", remains.files());
}

#[test]
fn a_daemon_that_closes_all_descriptors_continues_to_record_and_its_files_stay_untouched() {
    let remains = survives(&["closes_all"], |plan| plan);
    let ring = remains.ring();
    assert_eq!((ring.refused_full, ring.refused_memory), (0, 0));
    for index in 0..40 {
        assert_eq!(ring.labels(ring.slot_named(&format!("late{index}"))).len(), 6);
    }
}

#[test]
fn threads_that_a_filter_refuses_system_calls_are_counted_as_such() {
    let ring = survives(&["filtered"], |plan| plan).ring();
    let recorded = ring.slots.iter().filter(|slot| slot.name.starts_with('r')).count();
    assert_eq!((ring.refused_full, ring.refused_memory), (0, 0));
    assert!(recorded < 8, "the page of the thread before them has room for four");
    assert_eq!(recorded as u64 + ring.refused_filter, 8, "each of the 8 has a slot or was counted");
    let without_call = ring.slot_named("i0");
    assert_eq!((without_call.pid, without_call.tid != 0, without_call.count), (ring.pid, true, 1));
}

#[test]
fn a_program_that_restricts_its_system_calls_after_the_start_is_not_killed() {
    let remains = survives(&["strict"], |plan| plan);
    assert_eq!(remains.stdout, "counted 4\n");
    let ring = remains.ring();
    assert_eq!(ring.refused_filter, 3, "the thread that was started before, a new one, and a child");
    assert!(ring.slot_named("victim").count > 2, "the main thread records on");
}
