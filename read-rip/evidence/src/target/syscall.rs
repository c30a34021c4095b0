//! The system call that a thread sleeps in: its name, what it is for, and what its arguments say.
//!
//! Numbers differ between processors; names and kinds do not. Arguments of the C type `int` are the lower half of
//! their register. It follows a pointer only to read a time limit.

use serde::{Deserialize, Serialize};

use super::Memory;
use crate::saved_text::Constant;

/// The processor that a target was built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Architecture {
    X86_64,
    Aarch64,
}

impl Architecture {
    /// The one of this program; `None` if it is another.
    pub const fn own() -> Option<Architecture> {
        if cfg!(target_arch = "x86_64") {
            Some(Architecture::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Architecture::Aarch64)
        } else {
            None
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    pub number: u64,
    pub arguments: [u64; 6],
    /// The kernel's name for it; `None` if this program does not know the number.
    #[serde(deserialize_with = "crate::saved_text::optional_constant")]
    pub name: Option<Constant>,
    pub kind: CallKind,
}

/// What a system call that can sleep is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CallKind {
    /// To wait for a word of memory, or to change who waits for it: see [`Call::futex`].
    Futex,
    /// To wait for one of several words of memory: `futex_waitv`.
    FutexMany,
    /// To wait for events of an epoll instance: `epoll_wait` and its like.
    Epoll,
    /// To wait for one of several descriptors: `poll`, `ppoll`.
    Poll,
    /// To wait for one of several descriptors: `select`, `pselect6`.
    Select,
    Read,
    Write,
    Receive,
    Send,
    Accept,
    Connect,
    Sleep,
    /// To wait for a child process: see [`Call::child`].
    WaitChild,
    /// To create a thread or a process. After `vfork`, the parent sleeps here until the child calls `exec` or ends.
    Spawn,
    /// To wait for a signal: `pause`, `rt_sigsuspend`, `rt_sigtimedwait`.
    SignalWait,
    /// To lock a file: `flock`, and `fcntl` with `F_SETLKW` or `F_OFD_SETLKW`.
    FileLock,
    /// To wait until data are on the disk: `fsync` and its like.
    Sync,
    /// To wait for completions of `io_uring` or of asynchronous input and output.
    Completion,
    /// To wait for a semaphore of System V.
    Semaphore,
    /// To wait for a message queue, of System V or of POSIX.
    MessageQueue,
    /// To wait until all processors have passed a memory barrier.
    Membarrier,
    /// To trace another process.
    Ptrace,
    /// To open or close a file, or to look at one by its path or descriptor.
    File,
    /// To change the process's memory.
    Memory,
    /// To ask a device for something: `ioctl`.
    Device,
    /// To run another program: `execve`.
    Exec,
    /// To end the thread or the process.
    Exit,
    /// To go on with a call that a signal has interrupted: `restart_syscall`. Which one that was is not known.
    Restarted,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child {
    Any,
    /// This one; its id in the target's own PID namespace.
    Process(u32),
    /// Any child of this process group; its id in the target's own PID namespace.
    Group(u32),
    /// Any child of the caller's process group.
    OwnGroup,
    /// The process of this descriptor, a pidfd.
    Descriptor(u32),
}

/// A wait for a word of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Futex {
    pub address: u64,
    /// The value that the word had to have for the thread to sleep; 0 for a lock that the kernel hands over.
    pub expected: u32,
    /// What the thread does there.
    pub operation: FutexOperation,
    /// Whether only threads of this process can wake it.
    pub is_private: bool,
    /// Whether the wait ends by itself after a time.
    pub is_timed: bool,
}

/// What a thread does at a futex that it sleeps in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FutexOperation {
    /// It waits until another thread wakes it.
    Wait,
    /// It waits for a lock with priority inheritance. The word has the id of the lock's owner.
    LockPi,
    /// It waits until another thread wakes it or moves it to the lock at this address, which has priority inheritance.
    WaitRequeuePi(u64),
}

impl Call {
    pub fn new(architecture: Architecture, number: u64, arguments: [u64; 6]) -> Call {
        let name = name(architecture, number);
        Call { number, arguments, name, kind: kind(name.unwrap_or_default(), &arguments) }
    }

    /// The wait for a word of memory that it is; `None` if it is none.
    pub fn futex(&self) -> Option<Futex> {
        const PRIVATE: u32 = 128;
        let [address, second, third, fourth, fifth, _] = self.arguments;
        if self.name == Some("futex_wait") {
            // Value, mask, flags, timeout.
            let is_private = fourth as u32 & PRIVATE != 0;
            let operation = FutexOperation::Wait;
            return Some(Futex {
                address,
                expected: second as u32,
                operation,
                is_private,
                is_timed: fifth != 0,
            });
        }
        if self.name != Some("futex") {
            return None;
        }
        let operation = match second as u32 & 0x7F {
            0 | 9 => FutexOperation::Wait,
            6 | 13 => FutexOperation::LockPi,
            11 => FutexOperation::WaitRequeuePi(fifth),
            _ => return None,
        };
        let expected = if operation == FutexOperation::LockPi { 0 } else { third as u32 };
        let is_private = second as u32 & PRIVATE != 0;
        Some(Futex { address, expected, operation, is_private, is_timed: fourth != 0 })
    }

    /// The descriptor that it is about; `None` if it is about none, about several, or about a path.
    pub fn descriptor(&self) -> Option<u32> {
        use CallKind as Kind;
        let is_first = match self.kind {
            Kind::Epoll
            | Kind::Read
            | Kind::Write
            | Kind::Receive
            | Kind::Send
            | Kind::Accept
            | Kind::Connect => true,
            Kind::Device | Kind::FileLock => true,
            Kind::Sync => matches!(self.name?, "fsync" | "fdatasync" | "sync_file_range" | "syncfs"),
            Kind::MessageQueue => matches!(self.name?, "mq_timedsend" | "mq_timedreceive"),
            Kind::Completion => self.name? == "io_uring_enter",
            Kind::File => matches!(
                self.name?,
                "close"
                    | "fstat"
                    | "fstatfs"
                    | "getdents"
                    | "getdents64"
                    | "fallocate"
                    | "ftruncate"
                    | "fcntl"
            ),
            _ => false,
        };
        // A negative number is an error of the program.
        (is_first && self.arguments[0] as i32 >= 0).then_some(self.arguments[0] as u32)
    }

    /// The child that it waits for; `None` if it waits for none.
    pub fn child(&self) -> Option<Child> {
        let [first, second, ..] = self.arguments;
        match (self.name?, first as i32) {
            ("wait4", -1) | ("waitid", 0) => Some(Child::Any),
            ("wait4", 0) => Some(Child::OwnGroup),
            ("wait4", pid @ 1..) => Some(Child::Process(pid as u32)),
            ("wait4", group) => Some(Child::Group(group.unsigned_abs())),
            ("waitid", 1) => Some(Child::Process(second as u32)),
            ("waitid", 2) if second as u32 == 0 => Some(Child::OwnGroup),
            ("waitid", 2) => Some(Child::Group(second as u32)),
            ("waitid", 3) => Some(Child::Descriptor(second as u32)),
            _ => None,
        }
    }

    /// Whether it ends by itself after a time; `None` if its arguments do not tell. A socket can have a time limit of
    /// its own, and `restart_syscall` does not say what it goes on with.
    pub fn is_timed(&self) -> Option<bool> {
        let argument = |index: usize| self.arguments[index];
        // Milliseconds, or a negative number for no limit.
        let milliseconds = |index: usize| argument(index) as i32 >= 0;
        Some(match self.name? {
            "poll" => milliseconds(2),
            "epoll_wait" | "epoll_pwait" => milliseconds(3),
            "ppoll" | "rt_sigtimedwait" => argument(2) != 0,
            "epoll_pwait2" | "semtimedop" | "futex_waitv" => argument(3) != 0,
            "select" | "pselect6" | "mq_timedsend" | "mq_timedreceive" | "io_getevents" | "io_pgetevents" => {
                argument(4) != 0
            }
            "nanosleep" | "clock_nanosleep" => true,
            "futex" | "futex_wait" => self.futex()?.is_timed,
            "restart_syscall" | "io_uring_enter" | "ioctl" => return None,
            _ => match self.kind {
                CallKind::Receive | CallKind::Send | CallKind::Accept | CallKind::Connect => return None,
                CallKind::Read | CallKind::Write => return None,
                _ => false,
            },
        })
    }

    /// Whether it sleeps for a time, and waits for no descriptor.
    pub fn is_at_timer(&self) -> bool {
        self.is_pause() || self.kind == CallKind::Futex && self.is_timed() == Some(true)
    }

    /// Whether it only lets time pass: nobody can end it but a signal.
    pub fn is_pause(&self) -> bool {
        let has_no_descriptor = match self.kind {
            CallKind::Sleep => true,
            CallKind::Poll => self.arguments[1] == 0,
            CallKind::Select => self.arguments[0] as i32 == 0,
            _ => false,
        };
        has_no_descriptor && self.is_timed() == Some(true)
    }

    /// For how long it sleeps at most, ns, counted from its begin; `None` if it has no such limit, or if that is not
    /// known. Limits that are moments are not read.
    pub fn limit_ns(&self, memory: &dyn Memory) -> Option<u64> {
        const TIMER_ABSTIME: u64 = 1;
        let milliseconds = |index: usize| {
            let limit = self.arguments[index] as i32;
            u64::try_from(limit).ok()?.checked_mul(1_000_000)
        };
        // Seconds, and a part of one.
        let time = |index: usize, unit_ns: u64| {
            let address = self.arguments[index];
            let seconds = memory.u64(address).ok()?;
            let part = memory.u64(address.checked_add(8)?).ok()?;
            seconds.checked_mul(1_000_000_000)?.checked_add(part.checked_mul(unit_ns)?)
        };
        match self.name? {
            "nanosleep" => time(0, 1),
            "clock_nanosleep" if self.arguments[1] & TIMER_ABSTIME == 0 => time(2, 1),
            "poll" => milliseconds(2),
            "epoll_wait" | "epoll_pwait" => milliseconds(3),
            "ppoll" if self.is_timed()? => time(2, 1),
            "epoll_pwait2" if self.is_timed()? => time(3, 1),
            "pselect6" if self.is_timed()? => time(4, 1),
            "select" if self.is_timed()? => time(4, 1000),
            _ => None,
        }
    }
}

fn name(architecture: Architecture, number: u64) -> Option<&'static str> {
    let number = usize::try_from(number).ok()?;
    match architecture {
        Architecture::X86_64 => syscalls::x86_64::Sysno::new(number).map(|found| found.name()),
        Architecture::Aarch64 => syscalls::aarch64::Sysno::new(number).map(|found| found.name()),
    }
}

fn kind(name: &str, arguments: &[u64; 6]) -> CallKind {
    /// `F_SETLKW` and `F_OFD_SETLKW`, which wait for a lock.
    const LOCK_AND_WAIT: [u32; 2] = [7, 38];
    use CallKind as Kind;
    match name {
        "futex" | "futex_wait" => Kind::Futex,
        "futex_waitv" => Kind::FutexMany,
        "epoll_wait" | "epoll_pwait" | "epoll_pwait2" => Kind::Epoll,
        "poll" | "ppoll" => Kind::Poll,
        "select" | "pselect6" => Kind::Select,
        "read" | "readv" | "pread64" | "preadv" | "preadv2" | "splice" | "tee" => Kind::Read,
        "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" | "sendfile" | "vmsplice" => Kind::Write,
        "recvfrom" | "recvmsg" | "recvmmsg" => Kind::Receive,
        "sendto" | "sendmsg" | "sendmmsg" => Kind::Send,
        "accept" | "accept4" => Kind::Accept,
        "connect" => Kind::Connect,
        "nanosleep" | "clock_nanosleep" => Kind::Sleep,
        "wait4" | "waitid" => Kind::WaitChild,
        "vfork" | "fork" | "clone" | "clone3" => Kind::Spawn,
        "pause" | "rt_sigsuspend" | "rt_sigtimedwait" => Kind::SignalWait,
        "flock" => Kind::FileLock,
        "fcntl" if LOCK_AND_WAIT.contains(&(arguments[1] as u32)) => Kind::FileLock,
        "fsync" | "fdatasync" | "sync_file_range" | "syncfs" | "sync" | "msync" => Kind::Sync,
        "io_uring_enter" | "io_getevents" | "io_pgetevents" => Kind::Completion,
        "semop" | "semtimedop" => Kind::Semaphore,
        "msgsnd" | "msgrcv" | "mq_timedsend" | "mq_timedreceive" => Kind::MessageQueue,
        "membarrier" => Kind::Membarrier,
        "ptrace" => Kind::Ptrace,
        "open" | "openat" | "openat2" | "creat" | "close" | "fcntl" | "getdents" | "getdents64" => Kind::File,
        "stat" | "lstat" | "fstat" | "newfstatat" | "statx" | "access" | "faccessat" | "faccessat2" => {
            Kind::File
        }
        "statfs" | "fstatfs" | "truncate" | "ftruncate" | "fallocate" | "readlink" | "readlinkat" => {
            Kind::File
        }
        "unlink" | "unlinkat" | "rename" | "renameat" | "renameat2" | "mkdir" | "mkdirat" | "rmdir" => {
            Kind::File
        }
        "mmap" | "munmap" | "mremap" | "mprotect" | "madvise" | "brk" | "mlock" | "mlockall" => Kind::Memory,
        "ioctl" => Kind::Device,
        "execve" | "execveat" => Kind::Exec,
        "exit" | "exit_group" => Kind::Exit,
        "restart_syscall" => Kind::Restarted,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Unreadable;

    fn call(name: &str, arguments: [u64; 6]) -> Call {
        let number = (0..1000).find(|&number| super::name(Architecture::X86_64, number) == Some(name));
        Call::new(Architecture::X86_64, number.expect("a system call"), arguments)
    }

    #[test]
    fn numbers_have_the_names_of_their_architecture() {
        let name = |architecture, number| Call::new(architecture, number, [0; 6]).name;
        assert_eq!(name(Architecture::X86_64, 202), Some("futex"));
        assert_eq!(name(Architecture::Aarch64, 98), Some("futex"));
        assert_eq!(name(Architecture::Aarch64, 202), Some("accept"));
        assert_eq!(name(Architecture::X86_64, 1 << 40), None);
        let own = Call::new(Architecture::own().expect("a known one"), libc::SYS_ppoll as u64, [0; 6]);
        assert_eq!((own.name, own.kind), (Some("ppoll"), CallKind::Poll));
    }

    #[test]
    fn a_futex_says_what_the_thread_does_there() {
        let join = call("futex", [0x7f00_0000_0990, 0x109, 4711, 0, 0, 0xffff_ffff]).futex().expect("a wait");
        assert_eq!(
            (join.address, join.expected, join.operation),
            (0x7f00_0000_0990, 4711, FutexOperation::Wait)
        );
        assert!(!join.is_private && !join.is_timed);
        let mutex = call("futex", [0x1000, 0x80, 2, 0, 0, 0]).futex().expect("a wait");
        assert!(mutex.is_private && !mutex.is_timed);
        let timed = call("futex", [0x1000, 0x189, 0, 0x7fff_0000, 0, 0xffff_ffff]).futex().expect("a wait");
        assert!(timed.is_private && timed.is_timed);
        let inheriting = call("futex", [0x1000, 0x86, 0xdead_beef, 0, 0, 0]).futex().expect("a wait");
        assert_eq!((inheriting.operation, inheriting.expected), (FutexOperation::LockPi, 0));
        let requeue = call("futex", [0x1000, 0x8b, 7, 0, 0x2000, 0]).futex().expect("a wait");
        assert_eq!(requeue.operation, FutexOperation::WaitRequeuePi(0x2000));
        let second =
            call("futex_wait", [0x1000, 3, 0xffff_ffff, 0x82, 0x7fff_0000, 1]).futex().expect("a wait");
        assert!(second.is_private && second.is_timed && second.expected == 3);
        assert_eq!(call("futex", [0x1000, 0x81, 1, 0, 0, 0]).futex(), None, "a wake");
        assert_eq!(call("read", [0x1000, 0x80, 2, 0, 0, 0]).futex(), None);
    }

    #[test]
    fn a_call_names_its_descriptor() {
        assert_eq!(call("recvfrom", [12, 0, 0, 0, 0, 0]).descriptor(), Some(12));
        // The upper half of a register may have anything.
        assert_eq!(call("read", [0xdead_beef_0000_0003, 0, 0, 0, 0, 0]).descriptor(), Some(3));
        assert_eq!(call("read", [u64::MAX, 0, 0, 0, 0, 0]).descriptor(), None);
        assert_eq!(call("poll", [3, 0, 0, 0, 0, 0]).descriptor(), None);
        assert_eq!(call("sync", [3, 0, 0, 0, 0, 0]).descriptor(), None);
        assert_eq!(call("msgrcv", [3, 0, 0, 0, 0, 0]).descriptor(), None);
        assert_eq!(call("mq_timedreceive", [3, 0, 0, 0, 0, 0]).descriptor(), Some(3));
        let lock = call("fcntl", [5, libc::F_SETLKW as u64, 0, 0, 0, 0]);
        assert_eq!((lock.kind, lock.descriptor()), (CallKind::FileLock, Some(5)));
        assert_eq!(call("fcntl", [5, libc::F_GETFL as u64, 0, 0, 0, 0]).kind, CallKind::File);
    }

    #[test]
    fn a_wait_names_its_child() {
        let child =
            |name, first: i32, second: u64| call(name, [first as u32 as u64, second, 0, 0, 0, 0]).child();
        assert_eq!(child("wait4", -1, 0), Some(Child::Any));
        assert_eq!(child("wait4", 4711, 0), Some(Child::Process(4711)));
        assert_eq!(child("wait4", -4711, 0), Some(Child::Group(4711)));
        assert_eq!(child("wait4", 0, 0), Some(Child::OwnGroup));
        assert_eq!(child("wait4", i32::MIN, 0), Some(Child::Group(1 << 31)));
        assert_eq!(child("waitid", libc::P_ALL as i32, 0), Some(Child::Any));
        assert_eq!(child("waitid", libc::P_PID as i32, 4711), Some(Child::Process(4711)));
        assert_eq!(child("waitid", libc::P_PGID as i32, 0), Some(Child::OwnGroup));
        assert_eq!(child("waitid", libc::P_PIDFD as i32, 9), Some(Child::Descriptor(9)));
        assert_eq!(child("read", 1, 0), None);
    }

    #[test]
    fn a_call_says_whether_it_ends_by_itself() {
        let forever = u64::from(u32::MAX);
        assert_eq!(call("poll", [0, 1, forever, 0, 0, 0]).is_timed(), Some(false));
        assert_eq!(call("poll", [0, 1, 1000, 0, 0, 0]).is_timed(), Some(true));
        assert_eq!(call("epoll_wait", [3, 0, 1, forever, 0, 0]).is_timed(), Some(false));
        assert_eq!(call("ppoll", [0, 1, 0, 0, 0, 0]).is_timed(), Some(false));
        assert_eq!(call("select", [1, 0, 0, 0, 0x7fff_0000, 0]).is_timed(), Some(true));
        assert_eq!(call("clock_nanosleep", [0; 6]).is_timed(), Some(true));
        assert_eq!(call("futex", [0x1000, 0x80, 2, 0, 0, 0]).is_timed(), Some(false));
        assert_eq!(call("wait4", [0; 6]).is_timed(), Some(false));
        assert_eq!(call("recvfrom", [0; 6]).is_timed(), None);
        assert_eq!(call("restart_syscall", [0; 6]).is_timed(), None);
    }

    /// Memory that has a time everywhere: so many seconds, and this part of one.
    struct Times(u64, u64);

    impl Memory for Times {
        fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
            let word = if address.is_multiple_of(16) { self.0 } else { self.1 };
            into.copy_from_slice(&word.to_le_bytes());
            Ok(())
        }

        fn read_some(&self, _: u64, _: &mut [u8]) -> usize {
            0
        }
    }

    #[test]
    fn a_call_with_a_time_limit_and_no_descriptor_is_a_timer() {
        let is_at_timer = |name, arguments| call(name, arguments).is_at_timer();
        assert!(is_at_timer("nanosleep", [0x1000; 6]));
        assert!(is_at_timer("poll", [0, 0, 250, 0, 0, 0]));
        assert!(is_at_timer("pselect6", [0, 0, 0, 0, 0x1000, 0]));
        assert!(is_at_timer("futex", [0x1000, 0, 0, 0x2000, 0, 0]));
        assert!(!is_at_timer("futex", [0x1000, 0, 0, 0, 0, 0]), "without a limit");
        assert!(!is_at_timer("poll", [0x1000, 1, 250, 0, 0, 0]), "a descriptor");
        assert!(!is_at_timer("select", [4, 0x1000, 0, 0, 0x1000, 0]), "descriptors");
        assert!(!is_at_timer("epoll_wait", [3, 0x1000, 8, 250, 0, 0]));
    }

    #[test]
    fn a_call_says_for_how_long_it_sleeps_at_most() {
        let memory = Times(2, 600_000);
        let limit_ns = |name, arguments| call(name, arguments).limit_ns(&memory);
        assert_eq!(limit_ns("clock_nanosleep", [1, 0, 0x1000, 0, 0, 0]), Some(2_000_600_000));
        assert_eq!(limit_ns("clock_nanosleep", [1, 1, 0x1000, 0, 0, 0]), None, "until a moment");
        assert_eq!(limit_ns("select", [0, 0, 0, 0, 0x1000, 0]), Some(2_600_000_000));
        assert_eq!(limit_ns("ppoll", [0; 6]), None);
        assert_eq!(limit_ns("poll", [0, 0, 250, 0, 0, 0]), Some(250_000_000));
        assert_eq!(limit_ns("poll", [0, 0, u64::MAX, 0, 0, 0]), None);
        assert_eq!(call("nanosleep", [0x1000; 6]).limit_ns(&Times(u64::MAX, 0)), None);
    }
}
