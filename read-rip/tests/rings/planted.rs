//! Where results are written: what others have planted there is not followed, and nobody else may read what is written.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::support::fixture::{Fixture, pile_up};
use crate::support::run::{Outcome, command, finish, read_rip};

/// Each way to write a file, without the name of the file, which comes last.
const WRITERS: [&[&str]; 9] = [
    &["save", "-o"],
    &["report", "-o"],
    &["export", "-f", "chrome", "-o"],
    &["export", "-f", "perfetto", "-o"],
    &["export", "-f", "ndjson", "-o"],
    &["export", "-f", "openmetrics", "-o"],
    &["export", "-f", "folded", "-o"],
    &["check", "--junit"],
    &["check", "--sarif"],
];

/// A ring, and a folder in which nothing is.
fn begin() -> (Fixture, PathBuf) {
    let fixture = Fixture::of(&pile_up());
    let folder = fixture.path.with_extension("results");
    fs::create_dir(&folder).unwrap();
    (fixture, folder)
}

fn write(writer: &[&str], target: &Path, ring: &Path) -> Outcome {
    let words = writer.iter().map(|word| word.as_ref()).chain([target.as_os_str(), ring.as_os_str()]);
    read_rip(words)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_result_is_its_owners_alone_and_the_only_file_that_is_left() {
    let (fixture, folder) = begin();
    let target = folder.join("result");
    for writer in WRITERS {
        let outcome = write(writer, &target, &fixture.path);
        assert!(outcome.status != 2, "{writer:?}: {outcome:?}");
        assert_eq!(mode(&target), 0o600, "{writer:?}");
        assert_eq!(names(&folder), ["result"], "{writer:?}");
        fs::remove_file(&target).unwrap();
    }
}

#[test]
fn a_result_has_the_rights_of_the_file_that_it_replaces() {
    let (fixture, folder) = begin();
    let target = folder.join("metrics.prom");
    fs::write(&target, "old").unwrap();
    fs::set_permissions(&target, Permissions::from_mode(0o644)).unwrap();
    write(&["export", "-f", "openmetrics", "-o"], &target, &fixture.path).sound();
    assert_eq!(mode(&target), 0o644);
    assert!(fs::read_to_string(&target).unwrap().contains("# EOF"));
}

#[test]
fn what_is_no_file_is_neither_followed_nor_replaced() {
    let (fixture, folder) = begin();
    let [victim, link, fifo] = ["victim", "link", "fifo"].map(|name| folder.join(name));
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, &link).unwrap();
    mkfifo(&fifo, Mode::from_bits_truncate(0o600)).unwrap();
    for writer in WRITERS {
        for (target, kind) in [(&link, "a link"), (&fifo, "a FIFO"), (&folder, "a folder")] {
            let outcome = write(writer, target, &fixture.path);
            assert_eq!(outcome.status, 2, "{writer:?} {kind}: {outcome:?}");
            assert!(outcome.stderr.contains(kind), "{writer:?}: {}", outcome.stderr);
        }
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(link.symlink_metadata().unwrap().is_symlink());
    let mut left = names(&folder);
    left.sort();
    assert_eq!(left, ["fifo", "link", "victim"]);
}

#[test]
fn the_folder_of_a_trace_is_its_owners_alone() {
    let (fixture, folder) = begin();
    let target = folder.join("trace");
    write(&["export", "-f", "ctf", "-o"], &target, &fixture.path).sound();
    assert_eq!((mode(&target), mode(&target.join("metadata"))), (0o700, 0o600));
    let planted = folder.join("planted");
    symlink(folder.join("nowhere"), &planted).unwrap();
    write(&["export", "-f", "ctf", "-o"], &planted, &fixture.path)
        .fails_with("a file or folder of this name exists");
}

#[test]
fn a_dash_is_standard_output_and_no_file() {
    let (fixture, folder) = begin();
    for writer in &WRITERS[2..7] {
        let target = folder.join("result");
        write(writer, &target, &fixture.path).sound();
        let (to_stream, written) = (in_folder(writer, &folder, &fixture.path), fs::read(&target).unwrap());
        // Two exports of a moment differ where they say when they were made.
        assert!(to_stream.len().abs_diff(written.len()) < 20, "{writer:?}");
        fs::remove_file(&target).unwrap();
    }
    let page = in_folder(&["report", "-o"], &folder, &fixture.path);
    assert!(page.starts_with(b"<!doctype html>"), "{:?}", page.first_chunk::<40>());
    write(&["check", "--junit"], Path::new("-"), &fixture.path).fails_with("name a file");
    let saved = folder.join("saved");
    fs::write(&saved, in_folder(&["save", "-o"], &folder, &fixture.path)).unwrap();
    let shown = read_rip(["-t".as_ref(), saved.as_os_str()]).sound();
    assert_eq!(shown.stdout, read_rip(["-t".as_ref(), fixture.path.as_os_str()]).sound().stdout);
    assert_eq!(names(&folder), ["saved"]);
}

/// Writes to `-` in a folder, and returns what comes out.
fn in_folder(writer: &[&str], folder: &Path, ring: &Path) -> Vec<u8> {
    let mut command = command();
    command.args(writer).arg("-").arg(ring).current_dir(folder);
    let output = command.output().unwrap();
    assert_ne!(output.status.code(), Some(2), "{writer:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn a_recording_does_not_follow_a_link() {
    let (fixture, folder) = begin();
    let [victim, link] = ["victim", "link"].map(|name| folder.join(name));
    symlink(&victim, &link).unwrap();
    write(&["record", "-o"], &link, &fixture.path).fails_with("exists already");
    assert!(!victim.exists());
    let target = folder.join("recording");
    write(&["record", "-o"], &target, &fixture.path).sound();
    assert_eq!(mode(&target), 0o600);
    let mut command = command();
    command.args(["record", "--max-size", "1M", "-o", "-"]).arg(&fixture.path).current_dir(&folder);
    finish(command).fails_with("standard output is one stream");
    fs::write(folder.join("-"), in_folder(&["record", "-o"], &folder, &fixture.path)).unwrap();
    let shown = read_rip(["-t".as_ref(), folder.join("-").as_os_str()]).sound();
    assert_eq!(shown.stdout, read_rip(["-t".as_ref(), target.as_os_str()]).sound().stdout);
}

#[test]
fn a_copy_belongs_to_the_owner_of_the_ring() {
    const NOBODY: u32 = 65534;
    if !nix::unistd::geteuid().is_root() {
        return println!("skipped: only root may give files away");
    }
    let (fixture, folder) = begin();
    chown(&fixture.path, Some(NOBODY), None).unwrap();
    for writer in [["save", "-o"], ["record", "-o"]] {
        let target = folder.join(writer[0]);
        write(&writer, &target, &fixture.path).sound();
        let found = fs::metadata(&target).unwrap();
        assert_eq!((found.uid(), found.mode() & 0o777), (NOBODY, 0o600), "{writer:?}");
    }
    // What says something about it does not.
    let page = folder.join("page");
    write(&["report", "-o"], &page, &fixture.path).sound();
    assert_eq!(fs::metadata(&page).unwrap().uid(), 0);
}
