//! Input made to do harm, or that is far from a ring: the reader answers promptly, in bounded memory, and writes no
//! control characters of the input to a terminal.
//!
//! Rings damaged by accident are in `damage.rs`, random damage is in `fuzz.rs`.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use flate2::Compression;
use librip_test_kit::format::{header_at, module_at, region_at};
use librip_test_kit::tool::copy_program;
use read_rip_ring::{self as ring, Error};

use crate::support::fixture::{ONE, QUICK, Scratch, sound_ring};
use crate::support::run::{clean, command, finish, read_rip, show, show_within};
use crate::support::synth::{BIAS, MODULES, Module, Ring, SITES, SLOTS, Site, Slot, TEXTS};

// Huge files.

#[test]
fn a_sparse_file_of_terabytes_takes_only_the_time_of_its_content() {
    const SLOT_COUNT: u64 = 1 << 24;
    let ring = Ring { slot_words: 16_384, spare_slots: 0, ..sound_ring() };
    let mut image = ring.build();
    let slot_len: u64 = 512 + 8 * 16_384;
    let begin = image.begin(SLOTS) as u64;
    let file_len = begin + SLOT_COUNT * slot_len;
    image.set64(header_at::FILE_LEN, file_len);
    image.set64(image.region(SLOTS) + region_at::CAPACITY, SLOT_COUNT);
    image.set64(image.region(SLOTS) + region_at::USED, SLOT_COUNT);
    image.seal();
    let scratch = Scratch::new();
    let path = scratch.file("ring", &image.bytes);
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(file_len).unwrap();
    let last = ring.slot_bytes(&Slot::thread("last", 9).marks([0x2000]));
    file.write_all_at(&last, file_len - slot_len).unwrap();
    let outcome = show_within(512 << 20, &path).sound();
    assert!(outcome.took < QUICK, "{:?}", outcome.took);
    assert_eq!(outcome.stdout.lines().count(), 4);
    assert!(outcome.stdout.ends_with("last[9]: {0}b.rs:2\n"));
}

#[test]
fn tables_of_terabytes_are_refused() {
    for kind in [MODULES, SITES, TEXTS] {
        let mut image = sound_ring().build();
        let begin = image.bytes.len() as u64;
        let capacity = 1 << 31;
        let file_len = begin + capacity * 128;
        image.set64(header_at::FILE_LEN, file_len);
        image.set64(image.region(kind) + region_at::OFFSET, begin);
        image.set64(image.region(kind) + region_at::CAPACITY, capacity);
        image.set64(image.region(kind) + region_at::USED, capacity);
        let scratch = Scratch::new();
        let path = scratch.file("ring", &image.bytes);
        File::options().write(true).open(&path).unwrap().set_len(file_len).unwrap();
        let outcome = show_within(2 << 30, &path).fails_with("its length in bytes is ");
        assert_eq!(outcome.stdout.lines().count(), 3, "the slots are still read");
    }
}

// Paths that are not regular files.

#[test]
fn anything_but_a_regular_file_is_named_and_not_read() {
    let scratch = Scratch::new();
    let fifo = scratch.path("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(scratch.path("socket")).unwrap();
    for (path, found) in [
        (fifo.as_path(), "a FIFO"),
        (scratch.0.path(), "a directory"),
        (Path::new("/dev/zero"), "a device"),
        (Path::new("/dev/null"), "a device"),
        (Path::new("/dev/random"), "a device"),
    ] {
        let outcome =
            show(&[], path).fails_with(&format!("Error: {} is {found}, not a ring\n", path.display()));
        assert!(outcome.took < QUICK);
        let link = scratch.path("link");
        symlink(path, &link).unwrap();
        show(&[], &link).fails_with(&format!(" is {found}, not a ring\n"));
        fs::remove_file(link).unwrap();
    }
    show(&[], &scratch.path("socket")).fails_with(" is a socket, not a ring\n");
    let outcome = show(&[], &scratch.path("missing")).fails_with("/missing\nCaused by: No such file");
    assert!(outcome.stderr.contains("Hint: `read-rip list` shows the rings\n"));
}

#[test]
fn files_of_the_kernel_are_not_rings() {
    // Their type is that of regular files and their length is 0. Some of them never end.
    for path in
        ["/proc/self/status", "/proc/self/mem", "/proc/self/environ", "/proc/kmsg", "/sys/kernel/notes"]
    {
        if Path::new(path).exists() {
            let outcome = show(&[], Path::new(path));
            assert_eq!(outcome.status, 2, "{path}: {outcome:#?}");
            assert!(outcome.took < QUICK && outcome.stderr.contains("\nHint: "), "{path}: {outcome:#?}");
        }
    }
}

#[test]
fn a_ring_is_read_through_symbolic_links() {
    let scratch = Scratch::new();
    scratch.file("ring", &sound_ring().build().bytes);
    symlink("ring", scratch.path("link")).unwrap();
    symlink(scratch.path("link"), scratch.path("again")).unwrap();
    assert!(show(&["-t"], &scratch.path("again")).sound().stdout.starts_with(ONE));
    symlink("loop", scratch.path("loop")).unwrap();
    show(&[], &scratch.path("loop")).fails_with("/loop\nCaused by: Too many levels of symbolic links");
}

#[test]
fn a_ring_of_another_user_needs_that_users_rights() {
    const NOBODY: u32 = 65_534;
    let scratch = Scratch::new();
    let path = scratch.file("ring", &sound_ring().build().bytes);
    let mut command = command();
    if nix::unistd::geteuid().is_root() {
        // Root may read every file, so run as another user, who must be able to run the program.
        let program = scratch.path("read-rip");
        copy_program(env!("CARGO_BIN_EXE_read-rip"), &program);
        fs::set_permissions(scratch.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        command = clean(Command::new(program));
        command.uid(NOBODY).gid(NOBODY);
    } else {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    }
    let outcome = finish({
        command.arg(&path);
        command
    });
    let outcome = outcome.fails_with("/ring\nCaused by: Permission denied (os error 13)\n");
    assert!(outcome.stderr.contains("Hint: a ring belongs to the user who ran the program: "));
}

// Compressed copies.

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

type Compress = fn(&[u8]) -> Vec<u8>;
const FORMATS: [(&str, Compress); 4] = [("gzip", gzip), ("zlib", zlib), ("zstd", zstd), ("xz", xz)];

#[test]
fn compressed_copies_are_read_like_the_ring_itself() {
    let scratch = Scratch::new();
    let bytes = sound_ring().build().bytes;
    let plain = show(&["-t"], &scratch.file("ring", &bytes)).sound();
    for (format, compress) in FORMATS {
        let outcome = show(&["-t"], &scratch.file(format, &compress(&bytes))).sound();
        assert_eq!(outcome.stdout, plain.stdout, "{format}");
    }
    // One stream with two members, as `cat a.gz b.gz` writes.
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let outcome = show(&["-t"], &scratch.file("members", &[gzip(first), gzip(second)].concat())).sound();
    assert_eq!(outcome.stdout, plain.stdout);
}

/// A ring that does not compress well, so that half of the compressed copy is about half of the ring.
fn large_ring() -> Ring {
    let mut random = crate::support::Random(1);
    let mut ring = sound_ring();
    ring.slot_words = 1024;
    let slots = (10..100).map(|tid| {
        let marks: Vec<u64> = (0..1024).map(|_| 0x1000 + random.next() % 0xf0_0000).collect();
        Slot::thread("worker", tid).at(random.next() % 1_000_000).marks(marks)
    });
    ring.with_slots(slots)
}

#[test]
fn a_cut_compressed_copy_shows_what_can_be_decompressed() {
    let scratch = Scratch::new();
    let bytes = large_ring().build().bytes;
    for (format, compress) in FORMATS {
        let compressed = compress(&bytes);
        let outcome = show(&["-t"], &scratch.file("cut", &compressed[..compressed.len() * 2 / 3]));
        let outcome = outcome.fails_with(&format!("Damaged: the {format} data "));
        assert!(outcome.stderr.contains("Damaged: the file was truncated: "), "{outcome:#?}");
        let threads = outcome.stdout.lines().count();
        assert!((10..90).contains(&threads), "{format}: {threads} threads");
        assert!(outcome.stdout.starts_with(ONE));
    }
}

#[test]
fn a_compressed_copy_cut_at_any_length_is_read_or_refused() {
    let scratch = Scratch::new();
    let bytes = sound_ring().build().bytes;
    for (format, compress) in FORMATS {
        let compressed = compress(&bytes);
        // Each beginning of a format, and of the rest every third length.
        for len in (4..64).chain((64..compressed.len()).step_by(3)) {
            match ring::read(&scratch.file("cut", &compressed[..len])) {
                Ok(snapshot) => {
                    assert!(!snapshot.defects.is_empty(), "{format}: {len} of {}", compressed.len())
                }
                Err(Error::Decompress { .. } | Error::NotARing { .. } | Error::Short { .. }) => {}
                Err(other) => panic!("{format}: {len} of {}: {other}", compressed.len()),
            }
        }
    }
}

#[test]
fn rubbish_that_begins_like_compressed_data_is_refused() {
    let scratch = Scratch::new();
    for (format, start) in [
        ("gzip", &b"\x1f\x8b\x08"[..]),
        ("zlib", b"\x78\x9c"),
        ("zstd", b"\x28\xb5\x2f\xfd"),
        ("gzip", b"\x1f\x8b\x08\xff"),
    ] {
        for rubbish in [&[][..], &[0xff; 1000], b"rubbish, and more of it than any header takes", &[0; 100]] {
            let path = scratch.file("rubbish", &[start, rubbish].concat());
            let outcome = show(&[], &path);
            assert_eq!(outcome.status, 2, "{format}: {outcome:#?}");
            let is_refused = outcome
                .stderr
                .contains(&format!("Error: could not decompress {} as {format}\n", path.display()))
                || outcome.stderr.contains(" is not a ring\n");
            assert!(is_refused && outcome.stderr.contains("\nHint: "), "{format} {rubbish:?}: {outcome:#?}");
        }
    }
    show(&[], &scratch.file("rubbish", b"\x1f\x8b\x08rubbish and no more"))
        .fails_with("Error: could not decompress ");
}

#[test]
fn a_copy_that_decompresses_to_gigabytes_of_zeros_takes_no_memory() {
    const MEMBER_BYTES: usize = 64 << 20;
    let member = gzip(&vec![0; MEMBER_BYTES]);
    let scratch = Scratch::new();
    let bomb = |name: &str, start: &[u8]| {
        let path = scratch.path(name);
        let mut file = File::create(&path).unwrap();
        file.write_all(&gzip(start)).unwrap();
        for _ in 0..(5 << 30) / MEMBER_BYTES {
            file.write_all(&member).unwrap();
        }
        path
    };
    show_within(512 << 20, &bomb("zeros", b"\0")).fails_with(" is not a ring\n");
    // A copy that starts with a sound ring.
    let outcome = show_within(512 << 20, &bomb("ring", &sound_ring().build().bytes));
    let outcome = outcome.fails_with("unpacks to more than 4096 MiB");
    assert!(outcome.stdout.starts_with(ONE));
}

/// A ring, and then this many bytes that are no zeros, compressed.
fn dense(scratch: &Scratch, bytes: usize) -> PathBuf {
    let mut ring = sound_ring().build();
    ring.bytes.resize(ring.file_len, 0);
    let member = gzip(&vec![7; 1 << 20]);
    let members = (0..bytes >> 20).flat_map(|_| member.clone());
    scratch.file("dense", &gzip(&ring.bytes).into_iter().chain(members).collect::<Vec<u8>>())
}

#[test]
fn a_small_copy_that_unpacks_to_much_is_read_up_to_a_limit_that_the_user_can_set() {
    let scratch = Scratch::new();
    let path = dense(&scratch, 300 << 20);
    let limited =
        show(&["-t"], &path).fails_with("the gzip data unpacks to more than 256 MiB: only the first ");
    assert!(limited.stdout.contains(ONE), "{limited:#?}");
    let hint = "if you trust the file, let it take more memory: --unpack-limit SIZE";
    assert!(limited.stderr.contains(hint), "{limited:#?}");
    let whole = show(&["-t", "--unpack-limit", "1G"], &path);
    assert!(whole.stdout.contains(ONE) && !whole.stderr.contains("unpacks to"), "{whole:#?}");
    let less =
        show(&["-t", "--unpack-limit", "1M"], &path).fails_with("the gzip data unpacks to more than 1 MiB");
    assert!(less.stdout.contains(ONE), "{less:#?}");
}

#[test]
fn what_takes_more_memory_than_there_is_is_said_and_ends_in_no_signal() {
    let scratch = Scratch::new();
    let path = dense(&scratch, 300 << 20);
    let mut command = Command::new("/bin/sh");
    let script = "ulimit -d 65536; exec \"$0\" --unpack-limit 1G \"$1\"";
    command.args(["-c", script, env!("CARGO_BIN_EXE_read-rip")]).arg(&path);
    let outcome = finish(clean(command)).fails_with("Error: there is no memory for ");
    assert!(outcome.stderr.contains("\nHint: "), "{outcome:#?}");
}

#[test]
fn list_and_gc_do_not_decompress_files() {
    let scratch = Scratch::new();
    let path = scratch.path("bomb.gz");
    let mut file = File::create(&path).unwrap();
    file.write_all(&gzip(&sound_ring().build().bytes)).unwrap();
    let member = gzip(&vec![0; 64 << 20]);
    for _ in 0..80 {
        file.write_all(&member).unwrap();
    }
    for action in ["list", "gc"] {
        let outcome = read_rip([action.as_ref(), "--dir".as_ref(), scratch.0.path().as_os_str()]).sound();
        assert!(outcome.took < Duration::from_secs(2), "{action}: {:?}", outcome.took);
    }
    assert!(path.exists());
}

// Control characters for a terminal.

/// Moves the cursor, sets the title, breaks the line and reverses the text, with one-byte and two-byte controls.
const NASTY: &str = "\x1b[2J\x1b]0;x\x07\r\n\t\u{7f}\u{9b}31m\u{85}\u{202e}\u{2066}\u{200f}\u{feff}";

fn assert_harmless(what: &str, text: &str) {
    let is_harmful = |letter: char| {
        let turns_text =
            matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}'..='\u{200f}');
        letter.is_control() && letter != '\n' || turns_text || letter == '\u{feff}'
    };
    assert!(!text.contains(is_harmful), "{what}: {text:?}");
}

#[test]
fn no_control_character_of_a_ring_reaches_the_terminal() {
    let mut ring = Ring::new();
    ring.host = NASTY.into();
    ring.modules.push(Module { path: format!("/nowhere/{NASTY}").into(), ..Module::program() });
    ring.modules.push(Module::library(&format!("relative{NASTY}"), 0x7f00_0000_0000));
    let site = |pc, line| Site {
        label: format!("label{NASTY}"),
        ..Site::new(pc, &format!("src/{NASTY}.rs"), line).within(&format!("module{NASTY}"))
    };
    ring.sites = vec![site(0x1000, 1), site(0x2000, 2), Site { module: 1, ..site(0x1000, 3) }];
    // The name is also cut in the middle of a character.
    let name = [&b"\xe2\x80"[..], &NASTY.as_bytes()[..30], b"\xff\xfe\xe2\x80"].concat();
    let slot = |tid| Slot { name: name.clone(), ..Slot::thread("", tid) };
    let ring = ring.with_slots([
        slot(1).marks([0x1000, 0x2000]),
        slot(2).actual_marks([0x7f00_0000_1000]),
        slot(3).exited(),
        slot(4).operand(1),
    ]);
    let scratch = Scratch::new();
    let name = format!("ring{NASTY}");
    let path = scratch.file(&name, &ring.build().bytes);
    let broken = scratch.path(&format!("broken{NASTY}"));
    let mut image = ring.build();
    image.bytes.truncate(image.entry(SLOTS, 3));
    image.file_len = 0;
    image.set32(image.entry(MODULES, 1) + module_at::BUILD_ID_LEN, 99);
    image.set32(image.entry(SLOTS, 0), 9);
    image.write(&broken);
    let fifo = scratch.path(&format!("fifo{NASTY}"));
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let missing = scratch.path(&format!("missing{NASTY}"));

    for options in
        [&[][..], &["-v"], &["-t"], &["-tv"], &["--json"], &["-tv", "--json"], &["info"], &["info", "--json"]]
    {
        for path in [&path, &broken, &fifo, &missing] {
            let outcome = show(options, path);
            assert_harmless(&format!("{options:?} stdout"), &outcome.stdout);
            assert_harmless(&format!("{options:?} stderr"), &outcome.stderr);
            if options.contains(&"--json") {
                let names: Vec<_> = outcome.json().iter().map(|line| line["data"]["path"].clone()).collect();
                assert!(path == &fifo || path == &missing || names[0] == path.to_str().unwrap(), "{names:?}");
            } else if path == &broken {
                assert_eq!(outcome.status, 2, "{outcome:#?}");
            }
        }
    }
    // A newline in a name does not make a second line.
    assert_eq!(show(&["-t"], &path).stdout.lines().count(), 3);
    for args in [&["list"][..], &["list", "--json"], &["gc", "-n"], &["gc", "-n", "--json"], &[], &["12345"]]
    {
        let args = args.iter().map(|arg| arg.as_ref());
        let outcome = read_rip(args.chain(["--dir".as_ref(), scratch.0.path().as_os_str()]));
        assert_harmless("stdout", &outcome.stdout);
        assert_harmless("stderr", &outcome.stderr);
    }
}

#[test]
fn paths_and_names_that_are_not_utf8_are_shown_in_all_views() {
    let mut ring = Ring::new().with_sites(&[(0x1000, "a.rs", 1)]);
    ring.modules[0].path = b"/nowhere/s\xffrver".to_vec();
    ring.slots = vec![Slot { name: b"n\xffme".to_vec(), ..Slot::thread("", 1).marks([0x1000]) }];
    let scratch = Scratch::new();
    let path = scratch.file("ring", &ring.build().bytes);
    assert_eq!(show(&["-t"], &path).sound().stdout, "n\u{fffd}me[1]: {0}a.rs:1\n");
    let lines = show(&["-t", "--json"], &path).sound().json();
    assert_eq!(lines[0]["data"]["program"], "s\u{fffd}rver");
    assert_eq!(lines[0]["data"]["executable"], "/nowhere/s\u{fffd}rver");
    assert_eq!(lines[1]["data"]["events"][0]["location"]["module"], "/nowhere/s\u{fffd}rver");
    assert!(show(&["info"], &path).sound().stdout.contains("executable  /nowhere/s\u{fffd}rver\n"));
}

// Hostile paths and tables of modules.

#[test]
fn module_paths_that_lead_elsewhere_are_answered_promptly() {
    let scratch = Scratch::new();
    let fifo = scratch.path("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let sparse = scratch.path("sparse");
    File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
    let sparse_elf = scratch.file("elf", b"\x7fELF\x02\x01\x01");
    File::options().write(true).open(&sparse_elf).unwrap().set_len(1 << 40).unwrap();
    for path in [
        fifo.as_os_str().as_bytes(),
        sparse.as_os_str().as_bytes(),
        sparse_elf.as_os_str().as_bytes(),
        b"/dev/zero",
        b"/dev/tty",
        b"/proc/self/mem",
        b"/proc/kmsg",
        b"/",
        b"",
        b"relative/path",
        b"../../../../etc/passwd",
        b"/etc/passwd",
        b"/nowhere/\0/zero",
        &[b'a'; 60_000],
        &[&b"/"[..], &[b'a'; 300]].concat(),
    ] {
        let mut ring = sound_ring();
        // As the program and as a library, with and without a build id.
        ring.modules[0].path = path.to_vec();
        ring.modules[1].path = path.to_vec();
        ring.modules[1].build_id.clear();
        let file = scratch.file("ring", &ring.build().bytes);
        let outcome = show(&["-t"], &file).sound();
        assert!(outcome.took < QUICK, "{:?}: {:?}", String::from_utf8_lossy(path), outcome.took);
        assert!(outcome.stdout.starts_with(ONE), "{outcome:#?}");
        assert!(
            outcome.stderr.contains("\nWarning: ") && outcome.stderr.contains("\nHint: "),
            "{outcome:#?}"
        );
    }
}

#[test]
fn hundreds_of_thousands_of_overlapping_modules_are_handled_in_time() {
    // This ring is sound by the format, but no recorder writes such a module table.
    let mut ring = sound_ring();
    ring.slot_words = 1024;
    let whole = Module { path: b"/nowhere/all".to_vec(), ..Module::library("", 0) };
    ring.modules.extend((1..300_000).map(|n| Module { begin: n, end: (1 << 47) - n, ..whole.clone() }));
    let slots = (10..30).map(|tid| {
        Slot::thread("w", tid).actual_marks((0..1024).map(|n| (n * 40_503 + u64::from(tid)) << 12))
    });
    let image = ring.with_slots(slots).build();
    let outcome = show(&["-t"], &Scratch::new().file("ring", &image.bytes)).sound();
    assert_eq!(outcome.stdout.lines().count(), 23);
}

#[test]
fn thousands_of_files_of_one_name_are_handled_in_time() {
    let mut ring = Ring::new().with_sites(&[]);
    ring.slot_words = 16_384;
    ring.sites = (0..16_000)
        .map(|n| Site::new(0x1000 + n, &format!("d{n}/{}f.rs", "x/".repeat(n as usize % 40)), 1))
        .collect();
    let image = ring.with_slots([Slot::thread("w", 1).marks((0..16_000).map(|n| 0x1000 + n))]).build();
    let outcome = show(&["-t"], &Scratch::new().file("ring", &image.bytes)).sound();
    assert!(outcome.stdout.contains("{15999}d15999/x/x/"), "the shortest names that differ");
}

#[test]
fn tasks_and_futures_that_lead_in_circles_are_answered_promptly() {
    let mut ring = crate::tasks::futurelock();
    let task = ring.slots[1].clone();
    let of = |number: u32, poller, awaits: &[(Option<u64>, u64)]| {
        let mut slot = Slot { name: "round".into(), tid: number | 1 << 31, ..task.clone() };
        let part = slot.task.as_mut().unwrap();
        part.awaits = awaits.iter().map(|&(outer, turn)| (BIAS + 0x1000, outer, turn)).collect();
        // Each is polled by the next one, and is the first of a line.
        (part.poller, part.turn) = (Some(poller), 5);
        slot
    };
    let circle = [(Some(1), 5), (Some(0), 5), (Some(2), 5), (Some(7), 5)];
    ring.slots.truncate(1);
    ring.slots.extend((0..500).map(|number| of(number, if number == 499 { -499 } else { 1 }, &circle)));
    let fixture = Scratch::new();
    let path = fixture.file("ring", &ring.build().bytes);
    for command in [&["tasks", "-t"][..], &["tasks", "-v"], &["tasks", "--json"], &["check"], &["locks"]] {
        let outcome = read_rip(command.iter().map(OsStr::new).chain([path.as_os_str()]));
        assert!(outcome.took < QUICK && outcome.status <= 1, "{command:?}: {outcome:#?}");
        assert!(!outcome.stdout.contains("proven"), "{command:?}: {}", outcome.stdout);
    }
    let text = read_rip(["tasks".as_ref(), "-t".as_ref(), path.as_os_str()]).stdout;
    // All four futures of each, although no other leads to three of them.
    let futures = text.lines().filter(|line| line.trim_start() == "save::? save.rs:7");
    assert_eq!(futures.count(), 4 * 500, "{text}");
}

// Numbers that no process has.

#[test]
fn a_process_whose_number_no_process_has_is_gone() {
    for pid in [0, 1 << 31, u32::MAX] {
        let scratch = Scratch::new();
        let of_this_boot = sound_ring().of_a_dead_process();
        let ring = Ring { pid, children: (2, vec![pid, 1 << 31]), ..of_this_boot };
        let path = scratch.path("ring");
        ring.build().write(&path);
        for command in ["show", "check", "list"] {
            let outcome = read_rip([OsStr::new(command), path.as_os_str()]);
            assert!(
                outcome.status < 4 && !outcome.stderr.contains("panicked"),
                "{pid} {command}: {outcome:#?}"
            );
        }
        let outcome = read_rip([path.as_os_str()]).sound();
        assert!(outcome.heading().contains(&format!("[{pid}], dead")), "{outcome:#?}");
    }
}
