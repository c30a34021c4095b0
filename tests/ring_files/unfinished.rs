//! `read-rip gc` and files of rings that are not complete: a killed process leaves one where a file has its name from
//! the start. The recorder keeps it locked while it makes it.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use librip_test_kit::builder::Ring;
use librip_test_kit::reader;
use librip_test_kit::victim::tempdir;

const NAME: &str = "rip.server.4194303.1f769a";

/// A ring without the magic, which its maker writes last.
fn without_magic(path: &Path) {
    Ring::new().of_this_process().build().write(path);
    let mut bytes = fs::read(path).unwrap();
    bytes[..8].fill(0);
    fs::write(path, bytes).unwrap();
}

/// What `gc` says of a directory.
fn gc(directory: &Path, arguments: &[&str]) -> String {
    let mut gc = Command::new(reader::program());
    let output = gc.arg("gc").args(arguments).arg("--dir").arg(directory).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What `list` says of a directory besides its rings.
fn remarks_of_list(directory: &Path) -> String {
    let output = Command::new(reader::program()).arg("list").arg("--dir").arg(directory).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Whether an unfinished file stays while its maker lives, and whether it goes afterwards.
#[track_caller]
fn stays_until_its_maker_is_dead(name: &str, make: impl FnOnce(&Path)) {
    let directory = tempdir();
    let path = directory.path().join(name);
    make(&path);
    let maker = File::open(&path).unwrap();
    maker.lock().unwrap();
    assert_eq!(gc(directory.path(), &[]), "", "it is being made");
    assert!(path.exists(), "it is being made");
    assert!(!remarks_of_list(directory.path()).contains("Unfinished"), "it is being made");
    // As its death does. A program that another test forks at this moment has the file open too, so closing would not
    // do.
    maker.unlock().unwrap();
    let listed = remarks_of_list(directory.path());
    assert!(listed.contains(&format!("Unfinished: {}: its process died", path.display())), "{listed}");
    let told = format!("{}: unfinished, nothing was recorded\n", path.display());
    assert_eq!(gc(directory.path(), &["-n"]), format!("would remove {told}"));
    assert!(path.exists(), "only said");
    assert_eq!(gc(directory.path(), &[]), format!("removed {told}"));
    assert!(!path.exists());
}

#[test]
fn a_ring_without_its_magic_stays_until_its_maker_is_dead_whatever_its_name() {
    stays_until_its_maker_is_dead("ring", without_magic);
    stays_until_its_maker_is_dead(NAME, without_magic);
}

#[test]
fn an_empty_file_with_the_name_of_a_ring_stays_until_its_maker_is_dead() {
    stays_until_its_maker_is_dead(NAME, |path| drop(File::create_new(path).unwrap()));
    stays_until_its_maker_is_dead(NAME, |path| File::create_new(path).unwrap().set_len(1 << 20).unwrap());
}

#[test]
fn files_that_may_be_of_others_stay() {
    let directory = tempdir();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("empty"), "").unwrap();
    fs::write(at("zeros"), [0; 8192]).unwrap();
    fs::write(at(NAME), "a text with the name of a ring").unwrap();
    // The byte order alone does not make it a ring.
    without_magic(&at("damaged"));
    let mut bytes = fs::read(at("damaged")).unwrap();
    bytes[40] ^= 1;
    fs::write(at("damaged"), bytes).unwrap();
    assert_eq!(gc(directory.path(), &[]), "");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 4);
}
