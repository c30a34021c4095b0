//! What `read-rip` writes, to the letter, for rings made by hand. No recorded program is needed.
//!
//! Not tested here: which ring it reads (`choice.rs`), where the output goes (`streams.rs`), symbols (`resolve.rs`),
//! damaged input (`damage.rs`).

use std::fs;
use std::path::Path;

use librip_test_kit::format::header_at;

use crate::support::fixture::{DONE, Fixture, HOLDS, WAITS, lock_sites, pile_up};
use crate::support::run::{command, finish, read_rip};
use crate::support::synth::{BIAS, Module, Ring, Site, Slot};

#[test]
fn the_line_of_a_thread_has_the_form_that_scripts_rely_on() {
    let ring = lock_sites().with_slots([
        Slot::thread("worker 7", 4711).at(82).marks([WAITS, DONE, HOLDS]),
        Slot::thread("main", 4321).marks([DONE]),
    ]);
    let outcome = Fixture::of(&ring).show(&["-t"]).sound();
    assert_eq!(
        outcome.stdout,
        "main[4321]: {0}source_a.c:129\n\
         worker 7[4711]: {82}source_a.c:124<0x442bae>, {83}source_a.c:129, {84}source_a.c:124<0x442bb6>\n"
    );
    let heading = outcome.stderr.lines().next().unwrap();
    assert_eq!(heading, "server[4321], dead (killed, crashed or _exit): 2 threads");
}

#[test]
fn an_address_is_shown_only_where_several_share_a_line_that_is_shown() {
    // Line 124 has two marks, but no thread passed the second one, so the line alone is clear.
    let ring = lock_sites().with_slots([Slot::thread("a", 1).marks([WAITS, DONE])]);
    let outcome = Fixture::of(&ring).show(&["-t"]).sound();
    assert_eq!(outcome.stdout, "a[1]: {0}source_a.c:124, {1}source_a.c:129\n");
    let outcome = Fixture::of(&ring).show(&["-t", "-v"]).sound();
    assert_eq!(outcome.stdout, "a[1]: {0}source_a.c:124<0x442bae>, {1}source_a.c:129<0x442c00>\n");
}

#[test]
fn the_condensed_view_counts_threads_by_function_and_location() {
    let outcome = Fixture::of(&pile_up()).show(&[]).sound();
    assert_eq!(
        outcome.result(),
        "server::cache::? : 3 threads, 2 locations: cache.rs:10 (2); cache.rs:12 (1)\n\
         server::net::? : 1 thread, 1 location: net.rs:7 (1)\n"
    );
    let heading = outcome.heading();
    assert_eq!(
        heading,
        "server[4321], dead (killed, crashed or _exit): 5 threads, 1 of them exited (-tv shows them)"
    );
    assert_eq!(
        outcome.stderr,
        "8 recorded words were read, 0 older ones were overwritten.\n\
         Warning: /nowhere/server: no such file\n\
         Hint: the file was moved or removed, or is in a container: name the program with -e, or the directory \
         of its debug files with --debug-dir\n"
    );
}

#[test]
fn the_verbose_condensed_view_adds_addresses_labels_and_thread_ids() {
    let outcome = Fixture::of(&pile_up()).show(&["-v"]).sound();
    assert_eq!(
        outcome.result(),
        "server::cache::? : 3 threads, 2 locations: cache.rs:10<0x1100> [12, 13]; cache.rs:12<0x1200> [11]\n\
         server::net::? : 1 thread, 1 location: net.rs:7<0x1300> \"to the peer\" [10]\n"
    );
}

#[test]
fn the_function_with_most_threads_comes_first_and_equal_ones_by_name() {
    let mut ring = Ring::new().with_sites(&[]);
    for (index, name) in ["b", "a", "c"].into_iter().enumerate() {
        ring.sites.push(Site::new(0x1000 + index as u64, "x.rs", 1 + index as u32).within(name));
    }
    let pcs = [0x1000, 0x1001, 0x1002, 0x1002];
    let slots = (1u32..).zip(pcs).map(|(tid, pc)| Slot::thread("t", tid).marks([pc]));
    let outcome = Fixture::of(&ring.with_slots(slots)).show(&[]).sound();
    let functions: Vec<&str> = outcome.result().lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(functions, ["c::?", "a::?", "b::?"]);
}

#[test]
fn counts_of_one_are_singular() {
    let ring = Ring { slot_words: 16, ..lock_sites() };
    let ring = ring.with_slots([Slot::thread("a", 1).at(1).marks([DONE; 16])]);
    let outcome = Fixture::of(&ring).show(&[]).sound();
    assert_eq!(outcome.heading(), "server[4321], dead (killed, crashed or _exit): 1 thread");
    let first = outcome.stderr.lines().next().unwrap();
    assert_eq!(first, "16 recorded words were read, 1 older one was overwritten.");
    let ring = lock_sites().with_slots([Slot::thread("a", 1).marks([DONE]), Slot::thread("b", 2)]);
    let outcome = Fixture::of(&ring).show(&[]).sound();
    let lines: Vec<&str> = outcome.stderr.lines().take(2).collect();
    assert_eq!(
        lines,
        ["1 thread has no known mark.", "1 recorded word was read, 0 older ones were overwritten."]
    );
}

#[test]
fn only_tv_shows_exited_threads_and_their_lines_end_in_exit() {
    let ring = lock_sites().with_slots([
        Slot::thread("gone", 1).marks([DONE, WAITS]).exited(),
        Slot::thread("here", 2).marks([WAITS]),
        Slot::thread("gone without a mark", 3).exited(),
    ]);
    let fixture = Fixture::of(&ring);
    assert_eq!(fixture.show(&["-t"]).sound().stdout, "here[2]: {0}source_a.c:124\n");
    assert_eq!(
        fixture.show(&["-tv"]).sound().stdout,
        "gone[1]: {0}source_a.c:129<0x442c00>, {1}source_a.c:124<0x442bae>, EXIT\n\
         here[2]: {0}source_a.c:124<0x442bae>\n\
         gone without a mark[3]: EXIT\n"
    );
}

#[test]
fn sequences_are_shown_in_full_however_large() {
    let ring = Ring { slot_words: 16, ..lock_sites() };
    let ring = ring.with_slots([
        Slot::thread("a", 1).at(32_767).marks([WAITS, DONE, HOLDS]),
        Slot::thread("b", 2).at((1 << 32) - 1).marks([DONE, DONE]),
        Slot::thread("c", 3).at(1 << 62).marks([DONE]),
        // Every word is used, and the oldest one is still there.
        Slot::thread("d", 4).at(100_000).marks([DONE; 16]),
    ]);
    let outcome = Fixture::of(&ring).show(&["-t"]);
    let firsts: Vec<String> = outcome
        .stdout
        .lines()
        .map(|line| line.split(['{', '}']).skip(1).step_by(2).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(firsts[0], "32767 32768 32769");
    assert_eq!(firsts[1], "4294967295 4294967296");
    assert_eq!(firsts[2], "4611686018427387904");
    assert_eq!(firsts[3], (100_000..100_016).map(|n| n.to_string()).collect::<Vec<_>>().join(" "));
}

#[test]
fn words_before_the_oldest_one_left_are_counted_as_overwritten() {
    let ring = Ring { slot_words: 16, ..lock_sites() };
    let ring = ring.with_slots([Slot::thread("a", 1).at(1_000).marks([DONE; 20])]);
    let outcome = Fixture::of(&ring).show(&["-t"]).sound();
    assert!(outcome.stdout.starts_with("a[1]: {1004}source_a.c:129, {1005}"), "{}", outcome.stdout);
    assert!(
        outcome.stderr.contains("16 recorded words were read, 1004 older ones were overwritten."),
        "{outcome:#?}"
    );
}

#[test]
fn a_reused_slot_shows_nothing_of_its_former_owner() {
    let ring = lock_sites().with_slots([
        Slot::thread("first", 1).at(500).marks([WAITS, HOLDS, WAITS]).reused_by("second", 2).marks([DONE]),
        Slot::thread("third", 3).marks([WAITS]).reused_by("silent", 4),
    ]);
    let outcome = Fixture::of(&ring).show(&["-t"]).sound();
    assert_eq!(outcome.stdout, "second[2]: {503}source_a.c:129\nsilent[4]:\n");
}

#[test]
fn a_slot_that_was_changing_owners_shows_no_words_of_either_owner() {
    // Killed in the middle of the claim: the ids are the new owner's, the words and the first sequence the old owner's.
    let mut slot = Slot::thread("first", 1).marks([WAITS, HOLDS]);
    slot.state = crate::support::synth::CLAIMING;
    slot.generation = 2;
    slot.tid = 9;
    let outcome = Fixture::of(&lock_sites().with_slots([slot])).show(&["-t"]).sound();
    assert_eq!(outcome.stdout, "first[9]:\n");
}

#[test]
fn unknown_pcs_are_shown_as_addresses() {
    let ring = lock_sites().with_slots([Slot::thread("a", 1).actual_marks([
        // Outside of all modules, in the program without a site, and in the program with a site.
        0x7fff_1234_5678,
        BIAS + 0x2000,
        BIAS + DONE,
    ])]);
    let fixture = Fixture::of(&ring);
    let outcome = fixture.show(&["-t"]).sound();
    assert_eq!(outcome.stdout, "a[1]: {0}0x7fff12345678, {1}server+0x2000, {2}source_a.c:129\n");
    let outcome = fixture.show(&["-t", "-v"]).sound();
    assert_eq!(outcome.stdout, "a[1]: {0}0x7fff12345678, {1}server+0x2000, {2}source_a.c:129<0x442c00>\n");
}

#[test]
fn a_thread_whose_last_pc_is_unknown_counts_as_unknown() {
    let ring = lock_sites().with_slots([Slot::thread("a", 1).actual_marks([0x7fff_1234_5678])]);
    let outcome = Fixture::of(&ring).show(&[]).sound();
    assert_eq!(outcome.result(), "unknown : 1 thread, 1 location: 0x7fff12345678 (1)\n");
}

#[test]
fn one_address_in_two_modules_is_two_locations() {
    let library_bias = 0x7f00_0000_0000;
    let mut ring = lock_sites();
    ring.modules.push(Module::library("/nowhere/liblock.so", library_bias));
    ring.sites.push(Site { module: 1, ..Site::new(DONE, "lib/lock.c", 77) });
    let ring = ring.with_slots([Slot::thread("a", 1).actual_marks([BIAS + DONE, library_bias + DONE])]);
    let outcome = Fixture::of(&ring).show(&["-t"]).sound();
    assert_eq!(outcome.stdout, "a[1]: {0}source_a.c:129, {1}lock.c:77\n");
}

#[test]
fn files_of_one_name_are_shown_with_their_directories() {
    let ring = Ring::new().with_sites(&[
        (0x1000, "src/cache/mod.rs", 5),
        (0x1001, "src/net/mod.rs", 5),
        (0x1002, "src/main.rs", 5),
        (0x1003, "mod.rs", 5),
    ]);
    let ring = ring.with_slots([Slot::thread("a", 1).marks([0x1000, 0x1001, 0x1002])]);
    let outcome = Fixture::of(&ring).show(&["-t"]).sound();
    assert_eq!(outcome.stdout, "a[1]: {0}cache/mod.rs:5, {1}net/mod.rs:5, {2}main.rs:5\n");
}

#[test]
fn match_selects_threads_by_name_tid_function_or_location() {
    let fixture = Fixture::of(&pile_up());
    let threads = |pattern: &str| {
        let outcome = fixture.show(&["-t", "-m", pattern]).sound();
        let names = outcome.stdout.lines().map(|line| line.split(':').next().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(threads("^worker [12]"), ["worker 1[11]", "worker 2[12]"]);
    assert_eq!(threads(r"\[13\]"), ["worker 3[13]"]);
    assert_eq!(threads("server::net"), ["net[10]"]);
    // Only the last mark counts.
    assert_eq!(threads(r"cache\.rs:10$"), ["worker 2[12]", "worker 3[13]"]);
    assert_eq!(threads("nothing"), [""; 0]);
    let condensed = fixture.show(&["-m", "cache.rs:12"]).sound();
    assert_eq!(condensed.result(), "server::cache::? : 1 thread, 1 location: cache.rs:12 (1)\n");
    let outcome = fixture.show(&["-m", "(oops"]);
    assert_eq!(outcome.status, 2);
    assert!(outcome.stderr.contains("unclosed group"), "{outcome:#?}");
}

#[test]
fn operands_are_not_shown_as_marks_and_incomplete_events_are_counted() {
    let mut ring = Ring::new().with_sites(&[(0x1000, "a.rs", 1)]);
    ring.sites.push(Site { operands: vec![1, 2], ..Site::new(0x2000, "a.rs", 2) });
    let ring = ring.with_slots([
        Slot::thread("whole", 1).operand(1).operand(2).operand(3).marks([0x2000, 0x1000]),
        // The first operand was overwritten or never written. The last operand has no PC yet.
        Slot::thread("parts", 2).operand(2).operand(3).marks([0x2000, 0x1000]).operand(1),
    ]);
    let fixture = Fixture::of(&ring);
    let outcome = fixture.show(&["-t"]).sound();
    assert_eq!(outcome.stdout, "whole[1]: {3}a.rs:2, {4}a.rs:1\nparts[2]: {3}a.rs:1\n");
    assert!(
        outcome.stderr.contains(
            "\n1 event is not shown: operands were overwritten or not read.\n\
             1 operand is not shown: the event was not written or not read.\n"
        ),
        "{outcome:#?}"
    );
    let outcome = fixture.show(&[]).sound();
    assert_eq!(outcome.result(), "unknown : 2 threads, 1 location: a.rs:1 (2)\n");
}

#[test]
fn the_known_parts_of_a_later_minor_version_are_read() {
    let mut ring = lock_sites();
    ring.version = (1, 9);
    ring.extra_bytes = 24;
    ring.unknown_regions = true;
    // Kinds of sites and operands that 1.0 does not know. Their PC words still count.
    ring.sites.push(Site { kind: 200, operands: vec![1, 99], ..Site::new(0x3000, "new.rs", 3) });
    let mut slot = Slot::thread("a", 1).marks([WAITS]).operand(1).operand(2).marks([0x3000, DONE]);
    slot.generation = 3;
    let ring = ring.with_slots([slot, Slot::thread("b", 2).marks([HOLDS])]);
    let fixture = Fixture::of(&ring);
    let outcome = fixture.show(&["-t"]).sound();
    assert_eq!(
        outcome.stdout,
        "a[1]: {0}source_a.c:124<0x442bae>, {3}new.rs:3, {4}source_a.c:129\n\
         b[2]: {0}source_a.c:124<0x442bb6>\n"
    );
    let info = read_rip(["info".as_ref(), fixture.path.as_os_str()]).sound();
    assert!(info.stdout.contains("format      1.9, x86-64\n"), "{}", info.stdout);
}

#[test]
fn slots_of_all_sizes_are_read() {
    for slot_words in [16, 32, 64, 1024, 16_384] {
        let ring = Ring { slot_words, ..lock_sites() };
        let marks = slot_words as usize + 5;
        let slots = (1..4).map(|tid| Slot::thread("a", tid).at(7).marks(vec![DONE; marks]));
        let outcome = Fixture::of(&ring.with_slots(slots)).show(&["-t"]).sound();
        let counts: Vec<usize> = outcome.stdout.lines().map(|line| line.matches("{").count()).collect();
        assert_eq!(counts, [slot_words as usize; 3]);
        assert!(outcome.stdout.contains(": {12}"), "the oldest word left");
    }
}

#[test]
fn json_has_one_object_a_line_with_schema_and_addresses_as_strings() {
    let fixture = Fixture::of(&pile_up());
    let outcome = fixture.show(&["--json"]).sound();
    let lines = outcome.json();
    assert_eq!(lines[0]["type"], "ring");
    assert_eq!(
        lines[0]["data"],
        serde_json::json!({
            "schema": 1,
            "path": fixture.path,
            "program": "server",
            "executable": "/nowhere/server",
            "pid": 4321,
            "state": "dead",
            "state_text": "dead (killed, crashed or _exit)",
            "threads": 5,
            "created_realtime_ns": "1700000000000000000",
            "refused_full": 0,
            "refused_memory": 0,
            "refused_filter": 0,
            "words": 8,
            "overwritten": 0,
            "torn": 0,
            "unwritten": 0,
            "damaged": 0,
        })
    );
    assert_eq!(
        lines[1],
        serde_json::json!({"type": "function", "data": {
            "pid": 4321,
            "function": "server::cache::?",
            "threads": 3,
            "locations": [
                {"threads": 2, "tids": [12, 13], "location": {
                    "function": "server::cache::?", "file": "src/cache.rs", "line": 10, "kind": "snap",
                    "whose": "user",
                    "address": "0x1100", "pc": format!("{:#x}", BIAS + 0x1100), "module": "/nowhere/server"}},
                {"threads": 1, "tids": [11], "location": {
                    "function": "server::cache::?", "file": "src/cache.rs", "line": 12, "kind": "snap",
                    "whose": "user",
                    "address": "0x1200", "pc": format!("{:#x}", BIAS + 0x1200), "module": "/nowhere/server"}},
            ],
        }})
    );
    assert_eq!(lines[2]["data"]["locations"][0]["location"]["label"], "to the peer");
    assert_eq!(lines[2]["data"]["locations"][0]["location"]["kind"], "snap");
    assert_eq!(lines[3]["type"], "problem");
    assert_eq!(lines[3]["data"]["about"], "/nowhere/server");
    assert_eq!(lines.len(), 4);
    assert_eq!(outcome.stderr, "");
}

#[test]
fn json_of_threads_has_names_states_and_whole_sequences() {
    let ring = lock_sites().with_slots([
        Slot::thread("a", 1).at(1 << 40).marks([WAITS]),
        Slot::thread("b", 2).marks([DONE]).exited(),
    ]);
    let lines = Fixture::of(&ring).show(&["-tv", "--json"]).sound().json();
    assert_eq!(
        lines[1],
        serde_json::json!({"type": "thread", "data": {
            "name": "a", "pid": 4321, "tid": 1, "state": "present", "generation": 1,
            "overwritten": (1u64 << 40) - 63,
            "events": [{"sequence": 1u64 << 40, "after_boottime_ns": "1001", "location": {
                "function": "unknown", "file": "src/source_a.c", "line": 124, "kind": "snap",
                "whose": "user", "address": "0x442bae",
                "pc": format!("{:#x}", BIAS + WAITS), "module": "/nowhere/server",
            }}],
        }})
    );
    assert_eq!(lines[2]["data"]["state"], "exited");
}

#[test]
fn info_shows_what_the_header_and_the_tables_say() {
    let mut ring = pile_up();
    ring.refused_full = 3;
    ring.refused_memory = 2;
    ring.refused_filter = 1;
    ring.without_exit = 4;
    ring.reused = 6;
    ring.metadata_refused = 1;
    ring.file_system = 0xef53;
    ring.settings_ignored = 2;
    ring.modules.push(Module { build_id: Vec::new(), ..Module::library("/lib/libx.so", 0x7f00_0000_0000) });
    let fixture = Fixture::of(&ring);
    let outcome = read_rip(["info".as_ref(), fixture.path.as_os_str()]).sound();
    let made = outcome.stdout.lines().find(|line| line.starts_with("made ")).unwrap();
    assert!(made.ends_with(" h ago"), "{made}");
    let expected = format!(
        "ring        {}\n\
         format      1.0, x86-64\n\
         program     server\n\
         executable  /nowhere/server\n\
         process     pid 4321, user 1000 on build-host\n\
         state       dead (killed, crashed or _exit)\n\
         {made}\n\
         file system 0xef53, not tmpfs: the kernel writes it to disk, and marks may wait for that\n\
         geometry    7 slots of 1024 bytes, 64 words each; 5 used\n\
         threads     5 in the ring, 1 of them exited; 6 slots were reused\n\
         refused     3 threads because no slot was free, 2 because no memory was available\n\
         filtered    1 thread under a filter of system calls (seccomp)\n\
         unwatched   the exit of 4 threads cannot be noticed\n\
         metadata    1 record of modules, sites or texts did not fit in the ring\n\
         setting     RIP_SLOTS was ignored: it is not a number from 1 to 16777216\n\
         sites       3\n\
         words       8 read, 0 overwritten, 0 changed while being read, 0 not written, 0 damaged\n\
         module      0x555555554000 /nowhere/server c0ffee0011223344\n\
         module      0x7f0000000000 /lib/libx.so no build id\n",
        fixture.path.display()
    );
    assert_eq!(outcome.stdout, expected);
}

#[test]
fn modules_and_names_that_did_not_fit_are_mentioned() {
    let mut ring = pile_up();
    ring.metadata_refused = 1;
    let fixture = Fixture::of(&ring);
    let mut image = ring.build();
    image.set64(header_at::LOCK_NAMES_REFUSED, 12);
    image.write(&fixture.path);
    for args in [&[][..], &["check"], &["locks"]] {
        let said = fixture.show(args).stderr;
        for what in [
            "1 record of modules, sites or texts did not fit in the ring: their marks are shown by address, or not \
             recorded.",
            "12 names of locks did not fit in the ring: those locks are shown by address.",
        ] {
            assert!(said.contains(&format!("\n{what}\n")), "{said}");
        }
    }
}

#[test]
fn threads_without_a_slot_are_mentioned() {
    let mut ring = pile_up();
    ring.refused_full = 3;
    ring.refused_memory = 2;
    ring.refused_filter = 1;
    let outcome = Fixture::of(&ring).show(&[]).sound();
    let expected = "6 threads were not recorded: no free slot for 3 (RIP_SLOTS), no memory for 2, system calls refused to 1 (seccomp).\n";
    assert!(outcome.stderr.contains(expected), "{outcome:#?}");
}

#[test]
fn the_end_of_a_process_is_shown_if_it_was_recorded() {
    let ring = Ring { exit_status: Some(-3), ..pile_up() };
    let outcome = Fixture::of(&ring).show(&[]).sound();
    assert!(outcome.stdout.starts_with("server[4321], exited with status -3: 5 threads"), "{outcome:#?}");
}

#[test]
fn the_help_is_as_in_the_snapshot() {
    // To update the snapshot: `READ_RIP_BLESS=1 cargo test -p read-rip --test rings help`.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help.txt");
    let mut found = String::new();
    for args in [
        &["--help"][..],
        &["list", "--help"],
        &["gc", "--help"],
        &["info", "--help"],
        &["locks", "--help"],
        &["log", "--help"],
        &["spans", "--help"],
        &["stacks", "--help"],
        &["check", "--help"],
        &["top", "--help"],
        &["save", "--help"],
        &["run", "--help"],
    ] {
        let mut command = command();
        command.args(args).env("COLUMNS", "100");
        found += &format!("$ read-rip {}\n{}\n", args.join(" "), finish(command).sound().stdout);
    }
    if std::env::var_os("READ_RIP_BLESS").is_some() {
        fs::write(&path, &found).unwrap();
    }
    assert_eq!(found, fs::read_to_string(&path).unwrap_or_default());
}

#[test]
fn a_wrong_command_line_says_so_with_status_2() {
    for args in [&["--nonsense"][..], &["-t", "a", "b"], &["-r", "a", "b"]] {
        let outcome = read_rip(args);
        assert_eq!(outcome.status, 2, "{outcome:#?}");
        assert!(outcome.stderr.contains("Usage: read-rip"), "{outcome:#?}");
    }
    let version = read_rip(["--version"]).sound();
    assert_eq!(version.stdout, format!("read-rip {}\n", env!("CARGO_PKG_VERSION")));
}
