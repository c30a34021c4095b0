//! A program that was written for the earlier C header, compiled with `librip.h`.

use librip_test_kit::victim::Plan;

use crate::{CLANG, CLANGPP, GCC, GPP, build, installed, line_of};

#[test]
fn a_program_for_the_earlier_header_compiles_unchanged_and_its_ring_explains_its_death() {
    for compiler in installed(&[GCC, CLANG, GPP, CLANGPP]) {
        for standard in compiler.standards {
            let name = format!("legacy-{}", compiler.name);
            // With these standards, pthread.h declares barriers only if _GNU_SOURCE is defined.
            let flags = ["-O2", "-D_GNU_SOURCE", &format!("-std={standard}")];
            let program = build(compiler, &["legacy.c"], &name, &flags);
            // RIP_RING overrides the path in the program, so that the test finds the ring.
            let mut victim = Plan::new(&program, &["/dev/shm/not-this"]).start();
            let pc = u64::from_str_radix(&victim.line(), 16).unwrap();
            // Wait until both workers have recorded the mark before their second lock.
            let waits = line_of("legacy.c", "/* waits */");
            loop {
                let ring = victim.ring_now(&victim.ring_path()).unwrap();
                let waiting = ring.slots.iter().filter(|slot| {
                    let last = slot.events().events.last().and_then(|event| ring.site_of(event.pc));
                    last.is_some_and(|site| site.line == waits)
                });
                if waiting.count() == 2 {
                    break;
                }
                std::thread::yield_now();
            }
            let remains = victim.killed();
            let ring = remains.ring();
            assert_eq!((ring.slot_capacity, ring.slots.len()), (64, 3), "RIP_SLOTS overrides");
            let lines = |name: &str| -> Vec<u32> {
                let events = ring.slot_named(name).events().events;
                events.iter().map(|event| ring.site_of(event.pc).unwrap().line).collect()
            };
            let [first, unlock, holds] =
                ["/* first */", "/* first unlock */", "/* holds */"].map(|text| line_of("legacy.c", text));
            for worker in ["one", "two"] {
                assert_eq!(lines(worker), [first, first, unlock, waits], "{name} {standard}");
            }
            assert_eq!(lines("main"), [line_of("legacy.c", "/* main */"), holds, holds], "{name} {standard}");
            let main = ring.slot_named("main").events().events;
            assert_eq!(main[0].pc, pc, "what rip_snap() returned");
            assert_ne!(main[1].pc, main[2].pc, "before and after the lock");
        }
    }
}

#[test]
fn the_program_names_the_ring_unless_the_operator_overrides_it() {
    let program = build(GCC, &["legacy.c"], "legacy-path", &["-O2"]);
    let plan = Plan::new(&program, &[]);
    let ring = plan.dir().join("named-by-the-program");
    let plan = Plan::new(&program, &[ring.to_str().unwrap()]).env("RIP_RING", "");
    let mut victim = plan.start();
    victim.line();
    let remains = victim.killed();
    assert!(!remains.has_ring());
    assert_eq!(librip_test_kit::oracle::Ring::read(&ring).unwrap().slots_named("main").count(), 1);
    // The operator switches recording off: the program still runs.
    let mut victim = Plan::new(&program, &[]).env("RIP_RING", "off").start();
    victim.line();
    assert!(!victim.killed().has_ring());
}
