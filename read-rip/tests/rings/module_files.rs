//! The `symbols` layer when a module's file is not what was recorded: replaced, moved, no program at all, or damaged.
//!
//! Not tested here: what is read from sound files (`resolve.rs`, `debug_files.rs`).

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use librip_test_kit::victim::torture;
use object::{Object, ObjectSection};
use read_rip_files::Module;
use read_rip_symbols::{Options, Problem, Resolver};

use crate::support::compiled::{Fixture, address, bare, check_c, problems};

#[test]
fn a_program_of_another_build_is_refused_even_if_the_user_names_it() {
    let fixture = Fixture::c("-g");
    let mark = address(&fixture.path("prog"), "c_mark");
    let recorded = fixture.module("prog");
    let other = Fixture::c("-g -O0");
    fs::copy(other.path("prog"), fixture.path("prog")).unwrap();
    for executable in [None, Some(other.path("prog"))] {
        let mut resolver = Resolver::new(std::slice::from_ref(&recorded), Options { executable, ..bare() });
        assert_eq!(resolver.resolve(0, mark), []);
        let expected = recorded.build_id.clone();
        let found = other.module("prog").build_id;
        assert_eq!(problems(&resolver), [Problem::WrongBuildId { expected, found }]);
    }
    // The living process still leads to the right program, even if another file is at its path now.
    let recorded = Module { path: fixture.path("prog"), ..other.module("prog") };
    fs::write(fixture.path("prog"), "replaced").unwrap();
    let options = Options { live_executable: Some(other.path("prog")), ..bare() };
    let mut resolver = Resolver::new(&[recorded], options);
    assert!(!resolver.resolve(0, address(&other.path("prog"), "c_mark")).is_empty());
}

#[test]
fn a_program_that_the_user_names_is_used_instead_of_the_recorded_path() {
    let fixture = Fixture::c("-g");
    let module = Module { path: "/nonexistent/prog".into(), ..fixture.module("prog") };
    let options = Options { executable: Some(fixture.path("prog")), ..bare() };
    let mut resolver = Resolver::new(&[module], options);
    fixture.check_c_frames(&resolver.resolve(0, address(&fixture.path("prog"), "c_mark")));
    assert_eq!(problems(&resolver), []);
}

#[test]
fn a_replaced_program_without_build_id_is_refused_unless_the_user_names_it() {
    let fixture = Fixture::c("-g -Wl,--build-id=none");
    let mark = address(&fixture.path("prog"), "c_mark");
    let recorded = fixture.module("prog");
    assert!(recorded.build_id.is_empty());
    check_c(&fixture, "prog");
    for is_longer in [false, true] {
        let file = File::options().append(true).open(fixture.path("prog")).unwrap();
        if is_longer {
            file.set_len(recorded.file_len_bytes + 1).unwrap();
        }
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        let mut resolver = Resolver::new(std::slice::from_ref(&recorded), bare());
        assert_eq!(resolver.resolve(0, mark), []);
        let found_len_bytes = recorded.file_len_bytes + u64::from(is_longer);
        let expected_len_bytes = recorded.file_len_bytes;
        assert_eq!(problems(&resolver), [Problem::FileChanged { expected_len_bytes, found_len_bytes }]);
    }
    let unknown = Module { file_len_bytes: 0, modified_ns: 0, ..recorded.clone() };
    let mut resolver = Resolver::new(&[unknown], bare());
    assert_eq!(resolver.resolve(0, mark), []);
    assert_eq!(problems(&resolver), [Problem::Unverifiable]);

    let options = Options { executable: Some(fixture.path("prog")), ..bare() };
    let mut resolver = Resolver::new(&[recorded], options);
    fixture.check_c_frames(&resolver.resolve(0, mark));
}

#[test]
fn paths_are_below_the_root_of_the_recorded_process() {
    let fixture = Fixture::c("-g");
    let folder = fixture.path("prog").parent().unwrap().to_owned();
    let path = [Path::new("/.."), folder.strip_prefix("/").unwrap(), Path::new("bin/../link")];
    let module = Module { path: path.iter().collect(), ..fixture.module("prog") };
    fs::create_dir(folder.join("bin")).unwrap();
    symlink(folder.join("prog"), folder.join("link")).unwrap();
    let options = Options { root: Some("/proc/self/root".into()), ..bare() };
    let mut resolver = Resolver::new(&[module], options);
    fixture.check_c_frames(&resolver.resolve(0, address(&fixture.path("prog"), "c_mark")));
    assert_eq!(problems(&resolver), []);
}

type IsExpected = fn(&Problem) -> bool;

#[test]
fn a_path_that_is_not_a_regular_file_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let text = directory.path().join("text");
    fs::write(&text, "x".repeat(5000)).unwrap();
    let huge = directory.path().join("huge");
    File::create(&huge).unwrap().set_len(1 << 42).unwrap();
    let cases: [(&Path, IsExpected); 11] = [
        (&fifo, |problem| *problem == Problem::NotRegularFile),
        (directory.path(), |problem| *problem == Problem::NotRegularFile),
        (Path::new("/dev/zero"), |problem| *problem == Problem::NotRegularFile),
        (Path::new("/dev/tty"), |problem| *problem == Problem::NotRegularFile),
        (Path::new("/dev/null/x"), |problem| *problem == Problem::Missing),
        (Path::new("/nonexistent"), |problem| *problem == Problem::Missing),
        (Path::new("/proc/self/status"), |problem| *problem == Problem::NotRegularFile),
        (&text, |problem| matches!(problem, Problem::NotElf(_))),
        (&huge, |problem| matches!(problem, Problem::TooLarge { .. })),
        (Path::new("linux-vdso.so.1"), |problem| matches!(problem, Problem::BadPath(_))),
        (Path::new("/bin/sh\0"), |problem| matches!(problem, Problem::BadPath(_))),
    ];
    for (path, is_expected) in cases {
        let module =
            Module { path: path.into(), build_id: vec![1; 20], is_executable: true, ..Module::default() };
        let mut resolver = Resolver::new(&[module], bare());
        assert_eq!(resolver.resolve(0, 0x1000), []);
        assert_eq!(resolver.static_at(0, 0x1000), None);
        let found = resolver.problems();
        assert!(found.len() == 1 && is_expected(&found[0].what), "{path:?}: {found:?}");
        assert_eq!((found[0].module, &*found[0].path), (0, path));
    }
}

/// A function with a very deep tree of inlined calls. addr2line walks it by recursion.
const DEEP_SOURCE: &str = r#"
    .text
    .globl deep_mark
    .type deep_mark, @function
deep_mark: nop
    .size deep_mark, 1
.Lend:
    .globl main
main: ret
    .section .debug_abbrev, "", @progbits
    .byte 1, 0x11, 1, UNIT_ATTRIBUTES, 0, 0
    .byte 2, 0x2e, 1, 0x11, 1, 0x12, 7, 0, 0   # subprogram: low_pc, high_pc
    .byte 3, 0x1d, 1, 0, 0                     # inlined subroutine
    .byte 0
    .section .debug_info, "", @progbits
.Linfo:
    .long .Linfo_end - .Linfo_start
.Linfo_start:
    .short 4
    .long 0
    .byte 8
    .byte 1
    UNIT_VALUES
    .byte 2
    .quad deep_mark, 1
    .fill DEPTH, 1, 3
    .fill DEPTH, 1, 0
    .byte 0, 0
.Linfo_end:
"#;

/// A unit's attributes, what they say, and the sections that say where its code is.
const PLACES: [(&str, &str, &str); 4] = [
    ("0x11, 1, 0x12, 7", ".quad deep_mark, 1", ""), // low_pc, high_pc
    ("0x55, 0x17", ".long .Lranges", ".section .debug_ranges\n.Lranges: .quad deep_mark, .Lend, 0, 0"),
    (
        "0x13, 0x0b", // language
        ".byte 2",
        ".section .debug_aranges\n.long 44; .short 2; .long .Linfo; .byte 8, 0; .long 0; .quad deep_mark, 1, 0, 0",
    ),
    (
        "0x10, 0x17", // stmt_list
        ".long .Llines",
        ".section .debug_line
    .Llines: .long .Llines_end - .Llines_start
    .Llines_start: .short 4; .long .Lprogram - .Lheader
    .Lheader: .byte 1, 1, 1, -5, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0
    .asciz \"deep.c\"
    .byte 0, 0, 0, 0
    .Lprogram: .byte 0, 9, 2; .quad deep_mark; .byte 1, 2, 1, 0, 1, 1
    .Llines_end:",
    ),
];

#[test]
fn a_tree_of_calls_that_would_overflow_the_stack_is_refused() {
    for (attributes, values, sections) in PLACES {
        for (depth, is_refused) in [("10", false), ("5000000", true)] {
            let source = DEEP_SOURCE.replace("UNIT_ATTRIBUTES", attributes).replace("UNIT_VALUES", values);
            let source = source.replace("DEPTH", depth) + sections + "\n";
            let fixture = Fixture::new("fixture.s", &source);
            fixture.run("gcc fixture.s -o prog");
            let mut resolver = fixture.resolver("prog");
            let frames = resolver.resolve(0, address(&fixture.path("prog"), "deep_mark"));
            assert_eq!(frames.last().unwrap().function.as_deref(), Some("deep_mark"), "{attributes}");
            let found = problems(&resolver);
            let is_damaged = found.iter().any(|problem| matches!(problem, Problem::Damaged(_)));
            assert_eq!(is_damaged, is_refused, "{attributes}: {found:?}");
        }
    }
}

#[test]
fn a_tree_in_another_unit_refuses_nothing() {
    let (attributes, values, _) = PLACES[0];
    let source = DEEP_SOURCE.replace("UNIT_ATTRIBUTES", attributes).replace("DEPTH", "5000000");
    let source = source.replace("main", "deep_main").replace("UNIT_VALUES", values);
    let fixture = Fixture::new("fixture.s", &source);
    fs::write(
        fixture.path("main.c"),
        "int other(int n) { return n; }\nint main(void) { return other(0); }\n",
    )
    .unwrap();
    fixture.run("gcc -g fixture.s main.c -o prog");
    let mut resolver = fixture.resolver("prog");
    let frames = resolver.resolve(0, address(&fixture.path("prog"), "other"));
    assert_eq!(frames.last().and_then(|frame| frame.line), Some(1), "{frames:?}");
    assert_eq!(problems(&resolver), []);
}

/// Deterministic noise: Marsaglia's xorshift64.
struct Noise(u64);

impl Noise {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// Looks up everything in a file. Returns the number of frames found.
fn ask(path: &Path, addresses: &[u64]) -> usize {
    let module = Module { path: path.into(), is_executable: true, ..Module::default() };
    let options = Options { executable: Some(path.into()), ..bare() };
    let mut resolver = Resolver::new(&[module], options);
    let frames = addresses.iter().map(|&address| resolver.resolve(0, address).len()).sum();
    addresses.iter().for_each(|&address| drop(resolver.static_at(0, address)));
    resolver.problems().iter().for_each(|problem| drop((problem.what.to_string(), problem.hint())));
    frames
}

#[test]
fn a_thousand_damaged_files_neither_panic_nor_hang() {
    let rounds = 250 * torture() as usize;
    for (flags, compression) in [("-gdwarf-4", "none"), ("-gdwarf-5", "none"), ("-g", "zlib"), ("-g", "zstd")]
    {
        let fixture = Fixture::c(flags);
        fixture.run(&format!("objcopy --compress-debug-sections={compression} prog"));
        let path = fixture.path("prog");
        let addresses =
            ["c_mark", "outermost", "entry", "main", "shared_lock"].map(|name| address(&path, name));
        let whole = fs::read(&path).unwrap();
        assert!(ask(&path, &addresses) > 4);
        // Damage what the resolver reads: headers, tables, debug sections.
        let file = object::File::parse(&*whole).unwrap();
        let interesting =
            |name: &str| name.starts_with(".debug") || name.contains("tab") || name.contains("note");
        let mut ranges: Vec<(u64, u64)> = file
            .sections()
            .filter(|section| section.name().is_ok_and(interesting))
            .filter_map(|section| section.file_range())
            .collect();
        let headers = u64::from_le_bytes(whole[40..48].try_into().unwrap());
        ranges.extend([(0, 64), (headers, whole.len() as u64 - headers)]);
        let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
        let mut with_effect = 0;
        let start = Instant::now();
        for round in 0..rounds {
            let mut damaged = whole.clone();
            for _ in 0..=noise.below(4) {
                let (offset, len_bytes) = ranges[noise.below(ranges.len())];
                let at = offset as usize + noise.below(len_bytes as usize);
                damaged[at] =
                    [damaged[at] ^ 1 << noise.below(8), 0xff, 0, noise.below(256) as u8][noise.below(4)];
            }
            if round % 4 == 0 {
                damaged.truncate(noise.below(whole.len()));
            }
            let target = fixture.path("damaged");
            fs::write(&target, damaged).unwrap();
            with_effect += usize::from(ask(&target, &addresses) < 7);
        }
        assert!(with_effect > rounds / 10, "only {with_effect} of the mutations did anything");
        assert!(start.elapsed() < Duration::from_secs(120) * torture(), "{:?}", start.elapsed());
    }
}
