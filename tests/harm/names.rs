//! Paths where no ring can be made, or where something exists already.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use librip_test_kit::oracle::Ring;
use librip_test_kit::tool::copy_program;
use librip_test_kit::victim::{is_root, tempdir};

use crate::{compare, survives};

#[test]
fn a_program_whose_ring_cannot_be_created_runs_as_without_one() {
    for path in ["/no/such/directory/ring", "/proc/ring", "/dev/null/ring", "/proc/self/mem", "\u{1}\u{2}/x"]
    {
        let remains = survives(&["work"], |plan| plan.env("RIP_RING", path));
        // If the path is a file, the recorder may use `PATH.1` instead. In /proc it cannot.
        assert!(!remains.has_ring(), "{path}");
    }
}

#[test]
fn a_program_whose_ring_has_too_long_a_name_runs_as_without_one() {
    let long = format!("/dev/shm/{}", "x".repeat(5000));
    survives(&["work"], |plan| plan.env("RIP_RING", &long));
}

#[test]
fn a_symlink_at_the_path_is_not_followed_and_the_ring_gets_the_next_name() {
    let elsewhere = tempdir();
    let target = elsewhere.path().join("target");
    fs::write(&target, "precious").unwrap();
    let dangling = elsewhere.path().join("dangling");
    let remains = survives(&["work"], |plan| {
        symlink(&target, plan.dir().join("ring")).unwrap();
        symlink(&dangling, plan.dir().join("ring.1")).unwrap();
        plan
    });
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
    assert!(!dangling.exists(), "a file was made through the dangling link");
    let path = remains.dir().join("ring.2");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(Ring::read(path).unwrap().slots.len(), 4);
}

/// FIFOs that nobody writes to, a directory, and a file whose lease somebody holds.
#[test]
#[allow(unsafe_code, reason = "there is no safe function for leases")]
fn hostile_files_at_the_path_do_not_delay_the_start() {
    use std::os::fd::AsRawFd;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    let leased = std::sync::Mutex::new(None);
    let remains = survives(&["work"], |plan| {
        let path = |name: &str| plan.dir().join(name);
        mkfifo(&path("ring"), Mode::S_IRWXU).unwrap();
        mkfifo(&path("ring.1"), Mode::empty()).unwrap();
        fs::write(path("ring.2"), "").unwrap();
        let file = fs::File::open(path("ring.2")).unwrap();
        // SAFETY: takes numbers. Whoever opens the file to write it waits until the lease is given up.
        assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) }, 0);
        *leased.lock().unwrap() = Some(file);
        let socket = std::os::unix::net::UnixListener::bind(path("ring.3")).unwrap();
        drop(socket);
        plan
    });
    drop(leased);
    assert_eq!(Ring::read(remains.dir().join("ring.4")).unwrap().slots.len(), 4);
}

/// The default name can be predicted: the process's id and start time are public.
#[test]
fn a_fifo_with_the_default_name_does_not_delay_the_start() {
    let remains = survives(&["work"], |plan| {
        let dir = plan.dir().to_owned();
        let ring = plan.dir().join("rings/");
        fs::create_dir(&ring).unwrap();
        plan.env("RIP_RING", ring).before(move || {
            let status = fs::read_to_string("/proc/self/stat")?;
            let start: u64 =
                status.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap();
            let name = format!("rings/rip.victim.{}.{start:x}", std::process::id());
            Ok(nix::unistd::mkfifo(&dir.join(name), nix::sys::stat::Mode::S_IRWXU)?)
        })
    });
    let rings: Vec<_> = fs::read_dir(remains.dir().join("rings")).unwrap().flatten().collect();
    assert_eq!(rings.len(), 2, "{rings:?}");
    let ring = rings.iter().find(|entry| entry.file_type().unwrap().is_file()).unwrap();
    assert_eq!(Ring::read(ring.path()).unwrap().slots.len(), 4);
}

#[test]
fn the_ring_of_an_earlier_crash_is_not_overwritten() {
    let remains = survives(&["work"], |plan| {
        fs::write(plan.dir().join("ring"), "evidence").unwrap();
        plan
    });
    assert_eq!(fs::read_to_string(remains.ring_path()).unwrap(), "evidence");
    assert_eq!(Ring::read(remains.dir().join("ring.1")).unwrap().slots.len(), 4);
}

#[test]
fn the_ring_is_readable_and_writable_for_its_owner_only_whatever_the_umask() {
    for umask in [0o000, 0o777] {
        let remains = survives(&["work"], |plan| {
            plan.before(move || {
                nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(umask));
                Ok(())
            })
        });
        assert_eq!(fs::metadata(remains.ring_path()).unwrap().mode() & 0o7777, 0o600);
    }
}

#[test]
fn a_program_on_a_read_only_file_system_runs_as_without_a_ring() {
    if !is_root("a_program_on_a_read_only_file_system_runs_as_without_a_ring") {
        return;
    }
    let remains = survives(&["work"], |plan| {
        let target = plan.dir().to_owned();
        let ring = target.join("mount/ring");
        plan.tmpfs("size=256k")
            .before(move || {
                use nix::mount::{MsFlags, mount};
                let flags = MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
                Ok(mount(None::<&str>, &target.join("mount"), None::<&str>, flags, None::<&str>)?)
            })
            .env("RIP_RING", ring)
    });
    assert!(!remains.has_ring());
}

#[test]
fn a_file_that_is_removed_and_replaced_while_the_program_runs_is_left_alone() {
    let remains = compare(&["removed"], |plan| plan);
    assert_eq!(remains.status.code(), Some(0));
    assert_eq!(fs::read_to_string(remains.ring_path()).unwrap(), "another program's");
}

#[test]
fn a_setuid_program_does_not_let_its_caller_choose_the_path() {
    use std::os::unix::fs::PermissionsExt;

    if !is_root("a_setuid_program_does_not_let_its_caller_choose_the_path") {
        return;
    }
    // Not in /dev/shm, which is mounted nosuid on many machines.
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let program = dir.path().join("setuid-victim");
    copy_program(env!("CARGO_BIN_EXE_victim"), &program);
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).unwrap();
    let nobody = 65534;
    let child = {
        use std::os::unix::process::CommandExt;
        let mut command = std::process::Command::new(&program);
        command.args(["harm", "work"]).env("RIP_RING", dir.path().join("chosen")).env("RIP_KEEP", "always");
        command.env("VICTIM_DIR", dir.path()).uid(nobody).stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    let pid = child.id();
    child.wait_with_output().unwrap();
    assert!(!dir.path().join("chosen").exists(), "its caller chose where it made a file");
    // It recorded at the default path. Its exit status kept the ring there.
    let own = std::fs::read_dir("/dev/shm")
        .unwrap()
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().starts_with(&format!("rip.setuid-victim.{pid}.")));
    let own = own.expect("a ring at the default path");
    std::fs::remove_file(own.path()).unwrap();
}
