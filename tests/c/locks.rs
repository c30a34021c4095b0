//! Marks for locks: C leaves the same words and the same table as Rust.
//!
//! Twin programs, `locks.c` and `locks.rs`, do the same; their stories are compared line by line.

use std::path::Path;

use librip_test_kit::format::{operand, word};
use librip_test_kit::oracle::Ring;
use librip_test_kit::victim::Plan;

use crate::{CLANG, CLANGPP, GCC, GPP, build, directory, fixture, installed, parts, run, tool};

/// The content of the only slot of a ring, without what differs between two runs: addresses and durations.
fn story(ring: &Ring, locks: u64) -> Vec<String> {
    let [slot] = &ring.slots[..] else { panic!("{} slots", ring.slots.len()) };
    let lock = |payload: u64| format!("lock {}", payload.wrapping_sub(locks) & word::PAYLOAD);
    let time = |payload: u64| if payload == 0 { "no time" } else { "time" }.to_owned();
    let events = slot.events();
    assert_eq!(events.missing, [0; 0]);
    assert_eq!(slot.first_sequence, 0);
    assert!(slot.count <= slot.words.len() as u64, "nothing is overwritten: RIP_WORDS is large enough");
    let mut story = Vec::new();
    for event in &events.events {
        let site = ring.site_of(event.pc).expect("an event of a known site");
        assert_eq!(site.operand_types.len(), event.operands.len(), "{event:?}");
        let described: Vec<String> = std::iter::zip(&site.operand_types, &event.operands)
            .map(|(&operand_type, &payload)| match operand_type {
                operand::LOCK | operand::CONDITION => lock(payload),
                operand::TIME => time(payload),
                operand::SINCE => format!("since {}", time(payload)),
                other => panic!("operand type {other}"),
            })
            .collect();
        let (sequence, described) = (event.sequence, described.join(", "));
        let class = &site.label;
        story.push(format!("{sequence}: kind {} flags {} {described} {class}", site.kind, site.flags));
    }
    for held in &slot.held {
        let site = ring.site_of(held.pc).expect("an entry of a known site");
        let since =
            held.since.map_or("-".into(), |since| format!("{} again {}", time(since), held.recursion));
        story.push(format!(
            "entry: {}, sequence {}, {:?}, shared {}, since {since}, entered at kind {}",
            lock(held.lock),
            held.sequence,
            held.state,
            held.shared,
            site.kind
        ));
    }
    story.push(format!("overflowed {}", slot.held_overflowed));
    story.extend(
        ring.lock_names.iter().map(|(_, address, name)| format!("{} is called {name}", lock(*address))),
    );
    story
}

fn story_of(program: &Path, clock: &str) -> Vec<String> {
    let remains = Plan::new(program, &[]).env("RIP_CLOCK", clock).env("RIP_WORDS", "512").run();
    assert_eq!(remains.signal(), Some(libc::SIGABRT), "{remains:?}");
    let locks = u64::from_str_radix(remains.stdout.trim().trim_start_matches("0x"), 16).unwrap();
    story(&remains.ring(), locks)
}

#[test]
fn marks_in_c_leave_the_words_and_the_table_that_marks_in_rust_leave() {
    let twin = directory().join("locks-twin");
    tool(parts::rustc().args(["-O", "--crate-name", "locks"]).arg(fixture("locks.rs")).arg("-o").arg(&twin));
    for clock in ["contended", "off", "ticks", "all"] {
        let rust = story_of(&twin, clock);
        assert!(rust.len() > 60, "{rust:#?}");
        let names: Vec<&String> = rust.iter().filter(|line| line.contains("is called")).collect();
        assert_eq!(names, ["lock 4 is called the fourth"], "the sixth has ended");
        assert_eq!(rust.iter().filter(|line| line.ends_with(" queue")).count(), 2, "{rust:#?}");
        for compiler in installed(&[GCC, CLANG, GPP, CLANGPP]) {
            for level in ["-O0", "-O2"] {
                let name = format!("locks-{}{level}", compiler.name);
                let c = story_of(&build(compiler, &["locks.c"], &name, &[level]), clock);
                let differs = std::iter::zip(&c, &rust).find(|(c, rust)| c != rust);
                assert_eq!(c, rust, "{name}, RIP_CLOCK={clock}; first {differs:#?}");
            }
        }
    }
}

#[test]
fn a_thread_with_only_lock_marks_claims_its_slot_with_the_first_one() {
    for level in ["-O0", "-O2"] {
        let program = build(GCC, &["only_locks.c"], &format!("only_locks{level}"), &[level]);
        assert_eq!(run(&program, &[]).stdout, "0 0 1 1\n", "{level}");
    }
}

#[test]
fn marks_and_locks_in_c_take_the_times_that_are_due() {
    for (source, compiler) in ["marks.c", "only_locks.c"]
        .into_iter()
        .flat_map(|source| installed(&[GCC, CLANG]).into_iter().map(move |one| (source, one)))
    {
        for level in ["-O0", "-O2"] {
            let name = format!("sampled-{source}-{}{level}", compiler.name);
            let program = build(compiler, &[source], &name, &[level]);
            let times = |clock| {
                let plan = Plan::new(&program, &[]).env("RIP_CLOCK", clock).env("RIP_KEEP", "always");
                let ring = plan.run().ring();
                let slot = ring.slots.iter().max_by_key(|slot| slot.count).expect("a slot");
                // A plain mark does not look whether a time is due, and the last one in marks.c is one of progress.
                let first = if source == "marks.c" { slot.count - 1 } else { slot.first_sequence };
                (slot.sampled.clone(), first)
            };
            let (sampled, first) = times("ticks");
            assert!(
                sampled.first().is_some_and(|&(sequence, _)| (first..=first + 3).contains(&sequence)),
                "{name}: {sampled:?}"
            );
            assert!(sampled.is_sorted_by_key(|&(_, ticks)| ticks), "{name}: {sampled:?}");
            assert_eq!(times("contended").0, [], "{name}");
        }
    }
}
