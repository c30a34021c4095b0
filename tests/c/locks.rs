//! Marks for locks: C leaves the words and the table that Rust leaves.
//!
//! The ring is read here, with offsets written from the text of `librip_format`; `oracle` reads rings without lock
//! events only.

use std::collections::BTreeMap;
use std::path::Path;

use librip_tests::harness::Plan;
use librip_tests::oracle::{header_at, site_at, slot_at};

use crate::{CLANG, CLANGPP, GCC, GPP, build, directory, fixture, installed, parts, run, tool};

const LOCK_NAMES: u32 = 6;
const HELD_AT: usize = 112;
const HELD_BEYOND_AT: usize = 60;

struct Raw(Vec<u8>);

struct Site {
    kind: u8,
    flags: u16,
    operands: Vec<u8>,
}

impl Raw {
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.0[at..at + 2].try_into().unwrap())
    }
    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().unwrap())
    }
    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().unwrap())
    }

    /// Where a region's entries in use begin.
    fn entries(&self, kind: u32) -> impl Iterator<Item = usize> {
        let at =
            (0..16).map(|index| header_at::REGIONS + 32 * index).find(|&at| self.u32(at) == kind).unwrap();
        let (len, offset, used) =
            (self.u32(at + 4) as usize, self.u64(at + 8) as usize, self.u64(at + 24) as usize);
        (0..used).map(move |index| offset + len * index)
    }

    /// Sites by their actual addresses.
    fn sites(&self) -> BTreeMap<u64, Site> {
        let biases: Vec<u64> = self.entries(1).map(|at| self.u64(at + 8)).collect();
        let entries = self.entries(2).map(|at| {
            let count = usize::from(self.0[at + site_at::OPERAND_COUNT]);
            let site = Site {
                kind: self.0[at + site_at::KIND],
                flags: self.u16(at + 34),
                operands: self.0[at + 36..at + 36 + count].to_vec(),
            };
            (biases[self.u32(at + site_at::MODULE) as usize].wrapping_add(self.u64(at + site_at::PC)), site)
        });
        entries.collect()
    }
}

/// What the one slot of a ring says, without what differs between two runs: addresses, and how long things took.
fn story(ring: &Path, locks: u64) -> Vec<String> {
    let raw = Raw(std::fs::read(ring).unwrap());
    let sites = raw.sites();
    let slots: Vec<usize> = raw.entries(5).collect();
    let [slot] = slots[..] else { panic!("{} slots", slots.len()) };
    let lock = |payload: u64| format!("lock {}", payload.wrapping_sub(locks) & 0xffff_ffff_ffff);
    let time = |payload: u64| if payload == 0 { "no time" } else { "time" }.to_owned();
    let count = raw.u64(slot + slot_at::COUNT);
    let words = raw.u64(slot + slot_at::MASK) + 1;
    assert!(count <= words, "nothing is overwritten: RIP_WORDS is large enough");
    let mut story = Vec::new();
    let mut operands = Vec::new();
    for sequence in 0..count {
        let word = raw.u64(slot + slot_at::WORDS + 8 * (sequence % words) as usize);
        assert_eq!(word >> 49, sequence & 0x7fff);
        let payload = word & 0xffff_ffff_ffff;
        if word >> 48 & 1 == 1 {
            operands.push(payload);
            continue;
        }
        let site = &sites[&payload];
        assert_eq!(site.operands.len(), operands.len(), "event {sequence}");
        let described: Vec<String> = std::iter::zip(&site.operands, operands.drain(..))
            .map(|(kind, payload)| match kind {
                3 => lock(payload),
                4 => time(payload),
                5 => format!("since {}", time(payload)),
                other => panic!("operand type {other}"),
            })
            .collect();
        story.push(format!("{sequence}: kind {} flags {} {}", site.kind, site.flags, described.join(", ")));
    }
    for index in 0..16 {
        let at = slot + HELD_AT + 24 * index;
        let [held, place, since] = [0, 8, 16].map(|field| raw.u64(at + field));
        let state = place >> 48 & 7;
        let (is_shared, has_since) = (place >> 51 & 1, place >> 52 & 1);
        if state == 0 {
            continue;
        }
        assert_eq!(place >> 56, held >> 49 & 0xff, "entry {index} is whole");
        let site = &sites[&(place & 0xffff_ffff_ffff)];
        let since = if has_since == 1 {
            format!("{} again {}", time(since & 0xffff_ffff_ffff), since >> 48)
        } else {
            "-".into()
        };
        story.push(format!(
            "entry {index}: {}, sequence {}, state {state}, shared {is_shared}, since {since}, taken at kind {}",
            lock(held & 0xffff_ffff_ffff),
            held >> 49,
            site.kind
        ));
    }
    story.push(format!("beyond {}", raw.u32(slot + HELD_BEYOND_AT)));
    for at in raw.entries(LOCK_NAMES) {
        let name = String::from_utf8_lossy(&raw.0[at + 16..at + 64]).trim_end_matches('\0').to_owned();
        story.push(format!("{} is called {name}", lock(raw.u64(at + 8))));
    }
    story
}

fn story_of(program: &Path, clock: &str) -> Vec<String> {
    let remains = Plan::new(program, &[]).env("RIP_CLOCK", clock).env("RIP_WORDS", "512").run();
    assert_eq!(remains.signal(), Some(libc::SIGABRT), "{remains:?}");
    let locks = u64::from_str_radix(remains.stdout.trim().trim_start_matches("0x"), 16).unwrap();
    story(&remains.ring_path(), locks)
}

#[test]
fn marks_in_c_leave_the_words_and_the_table_that_marks_in_rust_leave() {
    let twin = directory().join("locks-twin");
    tool(parts::rustc().args(["-O", "--crate-name", "locks"]).arg(fixture("locks.rs")).arg("-o").arg(&twin));
    for clock in ["contended", "off", "all"] {
        let rust = story_of(&twin, clock);
        assert!(rust.len() > 60, "{rust:#?}");
        assert!(rust.contains(&"lock 4 is called the fourth".to_owned()), "{rust:#?}");
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
fn a_thread_that_makes_only_lock_marks_enters_with_the_first() {
    for level in ["-O0", "-O2"] {
        let program = build(GCC, &["only_locks.c"], &format!("only_locks{level}"), &[level]);
        assert_eq!(run(&program, &[]).stdout, "0 0 1 1\n", "{level}");
    }
}
