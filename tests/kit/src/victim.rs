//! Runs victims: starts them, talks to them, kills them, collects what they leave.
//!
//! It does not interpret rings: [`oracle`](crate::oracle) does. A test waits for lines and for the ends of processes,
//! never for a time. Everything has a deadline: a victim that hangs is killed, and its test fails.

#![allow(unsafe_code, reason = "poll, pidfd, prctl and atexit")]

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::oracle::{Damage, Ring};

/// How long a program may take for anything before its test fails: more than any sound one takes on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(300);

/// A directory on tmpfs. It is removed when the test ends.
pub fn tempdir() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("rip-test.").tempdir_in("/dev/shm").unwrap()
}

/// A directory on tmpfs for all tests of a program, which removes it when it exits: values in statics are not dropped.
pub fn shared_directory() -> &'static Path {
    static DIRECTORY: OnceLock<tempfile::TempDir> = OnceLock::new();
    extern "C" fn remove() {
        if let Some(directory) = DIRECTORY.get() {
            // Nobody could be told.
            let _ = std::fs::remove_dir_all(directory.path());
        }
    }
    let make = || {
        // SAFETY: the function may run at any time: what it uses is never dropped.
        let status = unsafe { libc::atexit(remove) };
        assert_eq!(status, 0, "atexit");
        tempdir()
    };
    DIRECTORY.get_or_init(make).path()
}

/// Multiplies the number of rounds of tests that look for races: `RIP_TORTURE`, 1 by default.
pub fn torture() -> u32 {
    std::env::var("RIP_TORTURE").ok().and_then(|value| value.parse().ok()).unwrap_or(1)
}

/// Whether the test runs as root, which may mount. Prints a line on standard error if not.
pub fn is_root(test: &str) -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        eprintln!("SKIPPED {test}: mounting takes root");
    }
    is_root
}

/// A victim to run, and its working directory.
#[derive(Debug)]
pub struct Plan {
    command: Command,
    dir: tempfile::TempDir,
}

/// A running victim.
#[derive(Debug)]
pub struct Victim {
    child: Child,
    pidfd: OwnedFd,
    stdin: Option<ChildStdin>,
    stdout: Vec<u8>,
    /// How much of `stdout` was consumed by [`Victim::line`].
    taken: usize,
    stderr: Vec<u8>,
    pipes: [Option<OwnedFd>; 2],
    group: Group,
    dir: tempfile::TempDir,
    deadline: Instant,
}

/// The process group of a victim, which leads a session. It ends with its owner: a test leaves no forked child behind.
#[derive(Debug)]
struct Group(u32);

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: a signal to the group that was made for the victim. If nobody is left in it, nothing happens.
        unsafe { libc::kill(-(self.0 as i32), libc::SIGKILL) };
    }
}

/// What a victim left.
#[derive(Debug)]
pub struct Remains {
    /// How it ended.
    pub status: ExitStatus,
    /// All that it wrote to standard output.
    pub stdout: String,
    /// All that it wrote to standard error.
    pub stderr: String,
    #[expect(dead_code, reason = "ends the victim's children when it is dropped")]
    group: Group,
    dir: tempfile::TempDir,
}

impl Plan {
    /// Runs `program` with these arguments, in an environment where its ring is `ring` in a new directory.
    pub fn new(program: impl AsRef<OsStr>, arguments: &[&str]) -> Plan {
        let dir = tempdir();
        let mut command = Command::new(program);
        command.args(arguments);
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"RIP_") {
                command.env_remove(name);
            }
        }
        command.env("RIP_RING", dir.path().join("ring"));
        // A small file is read quickly. Tests that need more slots set the number.
        command.env("RIP_SLOTS", "64");
        command.env("VICTIM_DIR", dir.path());
        command.env_remove("RUST_BACKTRACE");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Plan { command, dir }.before(|| {
            // It shares no session with whoever runs the tests: whether the reader may look at those is theirs to say.
            nix::unistd::setsid()?;
            // SAFETY: takes plain numbers. If the test dies, the victim dies too.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            // What the tests have inherited stays with them: they know the numbers of the victim's own descriptors.
            // SAFETY: takes plain numbers. Kernels before 5.11 refuse it.
            unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
            Ok(())
        })
    }

    /// Adds an argument.
    pub fn argument(mut self, argument: impl AsRef<OsStr>) -> Plan {
        self.command.arg(argument);
        self
    }

    /// Sets a variable of its environment.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Plan {
        self.command.env(name, value);
        self
    }

    /// Runs something in the child, before the victim starts.
    pub fn before(mut self, body: impl FnMut() -> std::io::Result<()> + Send + Sync + 'static) -> Plan {
        // SAFETY: callers make system calls only.
        unsafe { self.command.pre_exec(body) };
        self
    }

    /// Limits a resource of the victim.
    pub fn limit(self, resource: nix::sys::resource::Resource, value: u64) -> Plan {
        self.before(move || Ok(nix::sys::resource::setrlimit(resource, value, value)?))
    }

    /// Mounts a tmpfs with these options (`size=256k`) on the directory `mount` in [`Plan::dir`], in a mount
    /// namespace of the victim alone. The mount ends with the victim.
    pub fn tmpfs(self, options: &str) -> Plan {
        use nix::mount::{MsFlags, mount};
        let target = self.dir.path().join("mount");
        std::fs::create_dir(&target).unwrap();
        let options = options.to_owned();
        self.before(move || {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS)?;
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(None::<&str>, "/", None::<&str>, private, None::<&str>)?;
            mount(Some("tmpfs"), &target, Some("tmpfs"), MsFlags::empty(), Some(options.as_str()))?;
            Ok(())
        })
    }

    /// The victim's directory, which it knows as `VICTIM_DIR`.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn start(mut self) -> Victim {
        let mut child = self.command.spawn().unwrap();
        let group = Group(child.id());
        // SAFETY: asks for a descriptor of our own child, which has not been waited for.
        let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
        assert!(pidfd >= 0, "pidfd_open: {}", std::io::Error::last_os_error());
        // SAFETY: a descriptor that is ours alone.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd as i32) };
        let pipes = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
        Victim {
            stdin: child.stdin.take(),
            child,
            pidfd,
            stdout: Vec::new(),
            taken: 0,
            stderr: Vec::new(),
            pipes,
            group,
            dir: self.dir,
            deadline: Instant::now() + DEADLINE,
        }
    }

    /// Starts it, and waits for its end.
    pub fn run(self) -> Remains {
        self.start().wait()
    }
}

/// Waits until one of these descriptors is ready.
fn poll(descriptors: &mut [libc::pollfd], deadline: Instant) -> bool {
    let left = deadline.saturating_duration_since(Instant::now());
    // SAFETY: the slice is that long, and the kernel writes to `revents` only.
    let ready = unsafe {
        libc::poll(descriptors.as_mut_ptr(), descriptors.len() as libc::nfds_t, left.as_millis() as i32 + 1)
    };
    ready > 0 || Instant::now() < deadline
}

impl Victim {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where its ring is.
    pub fn ring_path(&self) -> PathBuf {
        self.dir.path().join("ring")
    }

    /// The victim's directory.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Reads the available output. Waits for some unless `ended`.
    fn pump(&mut self, ended: bool) -> bool {
        let descriptor = |pipe: &Option<OwnedFd>| libc::pollfd {
            fd: pipe.as_ref().map_or(-1, AsRawFd::as_raw_fd),
            events: libc::POLLIN,
            revents: 0,
        };
        let mut polled = [
            descriptor(&self.pipes[0]),
            descriptor(&self.pipes[1]),
            libc::pollfd { fd: self.pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 },
        ];
        let deadline = if ended { Instant::now() } else { self.deadline };
        if !poll(&mut polled, deadline) && !ended {
            // Our own child, by its id.
            let _ = self.child.kill();
            panic!(
                "the victim hangs; stdout {:?}, stderr {:?}",
                String::from_utf8_lossy(&self.stdout),
                String::from_utf8_lossy(&self.stderr)
            );
        }
        let mut any = false;
        for (index, buffer) in [&mut self.stdout, &mut self.stderr].into_iter().enumerate() {
            if polled[index].revents == 0 {
                continue;
            }
            let mut chunk = [0; 65536];
            let pipe = self.pipes[index].take().expect("it was polled");
            let mut file = std::fs::File::from(pipe);
            let len = file.read(&mut chunk).unwrap();
            if len > 0 {
                buffer.extend_from_slice(&chunk[..len]);
                self.pipes[index] = Some(file.into());
                any = true;
            }
        }
        // Its end counts only once all of its output is read.
        any || polled[2].revents == 0 && !ended
    }

    /// Sets how long the victim may take from now on.
    pub fn patience(&mut self, patience: Duration) {
        self.deadline = Instant::now() + patience;
    }

    /// The next line of its standard output; none if it ends before.
    ///
    /// # Panics
    ///
    /// When it hangs.
    pub fn next_line(&mut self) -> Option<String> {
        loop {
            if let Some(len) = self.stdout[self.taken..].iter().position(|&byte| byte == b'\n') {
                let line = String::from_utf8_lossy(&self.stdout[self.taken..self.taken + len]).into_owned();
                self.taken += len + 1;
                return Some(line);
            }
            if !self.pump(false) {
                return None;
            }
        }
    }

    /// The next line of its standard output.
    ///
    /// # Panics
    ///
    /// When it ends, or hangs, before.
    pub fn line(&mut self) -> String {
        self.next_line().unwrap_or_else(|| {
            panic!(
                "the victim ended; stdout {:?}, stderr {:?}",
                String::from_utf8_lossy(&self.stdout),
                String::from_utf8_lossy(&self.stderr)
            )
        })
    }

    /// Reads lines up to and including this one.
    pub fn until(&mut self, wanted: &str) {
        while self.line() != wanted {}
    }

    /// Writes a line to its standard input: what `victim`'s `pause` waits for.
    pub fn go_on(&mut self) {
        self.stdin.as_mut().expect("open until the end").write_all(b"\n").unwrap();
    }

    pub fn kill(&mut self) {
        self.signal(libc::SIGKILL);
    }

    /// Kills it this many microseconds from now. A sleep would be longer than that.
    pub fn kill_after(&mut self, micros: u64) {
        let end = Instant::now() + Duration::from_micros(micros);
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        self.kill();
    }

    /// Sends it a signal.
    pub fn signal(&mut self, signal: i32) {
        // SAFETY: a signal to our own child, which has not been waited for, so the id is still its.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    /// Stops it, and waits until all of its threads are stopped.
    pub fn stop(&mut self) {
        self.signal(libc::SIGSTOP);
        let is_stopped = |task: std::io::Result<std::fs::DirEntry>| {
            // A thread that has just ended is none.
            let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
        };
        let tasks = format!("/proc/{}/task", self.pid());
        while !std::fs::read_dir(&tasks).unwrap().all(is_stopped) {
            crate::pause();
        }
    }

    /// Reads the ring as it is now, through the victim's own view of the file system.
    pub fn ring_now(&self, path: &Path) -> Result<Ring, Damage> {
        let root = PathBuf::from(format!("/proc/{}/root", self.pid()));
        Ring::read(root.join(path.strip_prefix("/").unwrap()))
    }

    /// Kills it, and waits for its end.
    pub fn killed(mut self) -> Remains {
        self.kill();
        self.wait()
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Remains {
        while self.pump(false) {}
        while self.pump(true) {}
        let status = self.child.wait().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&self.stdout), text(&self.stderr));
        Remains { status, stdout, stderr, group: self.group, dir: self.dir }
    }
}

impl Remains {
    /// The path of the ring, which may be missing.
    pub fn ring_path(&self) -> PathBuf {
        self.dir.path().join("ring")
    }

    /// The victim's directory.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The ring.
    ///
    /// # Panics
    ///
    /// When it is missing or incomplete.
    pub fn ring(&self) -> Ring {
        match Ring::read(self.ring_path()) {
            Ok(ring) => ring,
            Err(damage) => panic!("{damage}; {self:?}"),
        }
    }

    /// The ring of a victim whose signal handlers record: see [`Ring::read_interrupted`].
    ///
    /// # Panics
    ///
    /// When it is missing or damaged.
    pub fn interrupted_ring(&self) -> Ring {
        match Ring::read_interrupted(self.ring_path()) {
            Ok(ring) => ring,
            Err(damage) => panic!("{damage}; {self:?}"),
        }
    }

    /// Whether it left a file at the path of the ring.
    pub fn has_ring(&self) -> bool {
        self.ring_path().exists()
    }

    /// The signal that ended it.
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// Fails the test unless the victim ended with status 0.
    pub fn expect_success(&self) -> &Remains {
        assert!(self.status.success(), "{self:?}");
        self
    }

    /// The names of the files in its directory.
    pub fn files(&self) -> Vec<OsString> {
        let mut files: Vec<OsString> =
            std::fs::read_dir(self.dir()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        files.sort();
        files
    }
}

/// Fails the test unless two runs had the same output and status.
pub fn expect_same(with: &Remains, without: &Remains) {
    assert_eq!(
        (with.status, &with.stdout, &with.stderr),
        (without.status, &without.stdout, &without.stderr),
        "with a ring (left), and with RIP_RING=off (right)"
    );
}
