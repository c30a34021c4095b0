//! The texts of `/proc` that describe a process or a thread, to values.
//!
//! Names may contain anything: spaces, parentheses, newlines. A text that does not parse is `None`.

use crate::target::{Registers, Schedule};

/// `PF_KTHREAD` of Linux: a thread of the kernel.
const FLAG_KERNEL_THREAD: u64 = 0x0020_0000;

/// Signal 14, 26, 27, and those from 34 on. The C library has 32 and 33 for itself.
const TIMER_SIGNALS: u64 = 1 << 13 | 1 << 25 | 1 << 26 | u64::MAX << 33;
/// `SIGINT`. Python handles it in each program.
const INTERRUPT: u64 = 1 << 1;
/// `SIGCHLD`, which the kernel sends when a child ends, or is stopped. Shells handle it.
const CHILD: u64 = 1 << 16;
/// The signals that a thread's own instructions cause (4 to 8, 11, 13, 31), those that nobody can handle (9 and 19),
/// and those of the C library.
const OWN_SIGNALS: u64 = 0b1_1111 << 3 | 1 << 8 | 1 << 10 | 1 << 12 | 1 << 18 | 1 << 30 | 0b11 << 31;

/// What `/proc/PID/stat` says, as far as it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) name: String,
    pub(super) state: char,
    pub(super) parent: u32,
    pub(super) session: u32,
    pub(super) is_kernel_thread: bool,
    /// How often the kernel had to bring a page of memory.
    pub(super) faults: u64,
    /// Whether it was made by fork and has run no program since, or is a thread that another one created.
    pub(super) is_fork: bool,
    pub(super) nice: i32,
    /// When it started, clock ticks since boot.
    pub(super) start_ticks: u64,
    /// The processor on which it ran last.
    pub(super) processor: Option<usize>,
}

impl Stat {
    /// Whether the thread has ended. Other threads of its process may go on.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// What `/proc/PID/task/TID/syscall` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// It runs, or is ready to run.
    Running,
    /// It sleeps, and not in a system call.
    Elsewhere(Registers),
    /// It sleeps in a system call.
    InCall { number: u64, arguments: [u64; 6], registers: Registers },
}

/// What `/proc/PID/status` says, as far as it is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// The process of the thread.
    pub(super) tgid: u32,
    /// The process that traces it; 0 for none.
    pub(super) tracer: u32,
    /// Its user, as the kernel judges its rights.
    pub(super) effective_uid: u32,
    /// Its ids, in the PID namespace of `/proc` first and in its own last.
    pub(super) ids: Vec<u32>,
    /// How often it gave up its processor to sleep.
    pub(super) sleeps: Option<u64>,
    /// The signals that it handles: bit 0 is signal 1.
    pub(super) caught: u64,
}

impl Status {
    /// Whether it handles signals that timers send: `SIGALRM`, `SIGVTALRM`, `SIGPROF` and those of real time.
    pub(super) fn handles_timers(&self) -> bool {
        self.caught & TIMER_SIGNALS != 0
    }

    /// Whether it handles `SIGINT`.
    pub(super) fn handles_interrupt(&self) -> bool {
        self.caught & INTERRUPT != 0
    }

    /// Whether it handles `SIGCHLD`.
    pub(super) fn handles_children(&self) -> bool {
        self.caught & CHILD != 0
    }

    /// Whether it handles another signal that somebody sends: `SIGTERM` and the like.
    pub(super) fn handles_others(&self) -> bool {
        self.caught & !(OWN_SIGNALS | INTERRUPT | CHILD) != 0
    }

    /// Whether it handles no signal that somebody sends.
    pub(super) fn handles_nothing(&self) -> bool {
        self.caught & !OWN_SIGNALS == 0
    }
}

/// Parses `/proc/PID/stat`.
pub(super) fn stat(text: &[u8]) -> Option<Stat> {
    // The name is in parentheses and may have parentheses. No later field has any.
    let begin = text.iter().position(|&byte| byte == b'(')? + 1;
    let end = text.iter().rposition(|&byte| byte == b')')?;
    let name = String::from_utf8_lossy(text.get(begin..end)?).into_owned();
    let mut fields = words(text.get(end + 1..)?);
    let state = char::from(*fields.next()?.first()?);
    // The number of each field is that of proc_pid_stat(5); the state is field 3.
    let parent = decimal(fields.next()?)? as u32;
    let session = decimal(fields.nth(1)?)? as u32;
    let flags = decimal(fields.nth(2)?)?;
    let faults = decimal(fields.next()?)?.wrapping_add(decimal(fields.nth(1)?)?);
    let nice = fields.nth(6)?;
    let nice = match nice.strip_prefix(b"-") {
        Some(digits) => -(decimal(digits)? as i32),
        None => decimal(nice)? as i32,
    };
    let start_ticks = decimal(fields.nth(2)?)?;
    let processor = fields.nth(16).and_then(decimal).and_then(|number| usize::try_from(number).ok());
    let is_kernel_thread = flags & FLAG_KERNEL_THREAD != 0;
    let is_fork = flags & crate::target::FORKED_FLAG != 0;
    Some(Stat {
        name,
        state,
        parent,
        session,
        is_kernel_thread,
        is_fork,
        faults,
        nice,
        start_ticks,
        processor,
    })
}

/// Parses `se.exec_start` of `/proc/PID/task/TID/sched`, ns. The kernel writes milliseconds with six digits.
pub(super) fn exec_start(text: &[u8]) -> Option<i64> {
    let line = text.split(|&byte| byte == b'\n').find(|line| line.starts_with(b"se.exec_start"))?;
    let value = words(line).last()?;
    let (whole, rest) = value.split_at(value.iter().position(|&byte| byte == b'.')?);
    let rest = rest.get(1..).filter(|rest| rest.len() == 6)?;
    let ns = decimal(whole)?.checked_mul(1_000_000)?.checked_add(decimal(rest)?)?;
    i64::try_from(ns).ok()
}

/// Parses `/proc/PID/task/TID/syscall`.
pub(super) fn syscall(text: &[u8]) -> Option<Position> {
    let mut fields = words(text);
    let number = match fields.next()? {
        b"running" => return Some(Position::Running),
        b"-1" => {
            let registers = registers(&mut fields)?;
            return Some(Position::Elsewhere(registers));
        }
        number => decimal(number)?,
    };
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = hexadecimal(fields.next()?)?;
    }
    Some(Position::InCall { number, arguments, registers: registers(&mut fields)? })
}

fn registers<'a>(fields: &mut impl Iterator<Item = &'a [u8]>) -> Option<Registers> {
    let sp = hexadecimal(fields.next()?)?;
    let pc = hexadecimal(fields.next()?)?;
    Some(Registers { pc, sp, ..Registers::default() })
}

/// Parses `/proc/PID/task/TID/schedstat`; `None` too if the kernel keeps no such account.
pub(super) fn schedstat(text: &[u8]) -> Option<Schedule> {
    let mut fields = words(text).map(decimal);
    let schedule = Schedule { ran_ns: fields.next()??, delayed_ns: fields.next()??, turns: fields.next()?? };
    (schedule != Schedule::default()).then_some(schedule)
}

/// Parses `/proc/PID/status`.
pub(super) fn status(text: &[u8]) -> Option<Status> {
    let mut status = Status::default();
    // The kernel escapes newlines and backslashes of the name, which comes first.
    for line in text.split(|&byte| byte == b'\n') {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        let mut values = words(&line[colon + 1..]).map_while(decimal).map(|value| value as u32);
        match &line[..colon] {
            b"Tgid" => status.tgid = values.next()?,
            b"TracerPid" => status.tracer = values.next()?,
            b"Uid" => status.effective_uid = values.nth(1)?,
            b"NSpid" => status.ids = values.collect(),
            b"SigCgt" => {
                status.caught = words(&line[colon + 1..]).next().and_then(hexadecimal).unwrap_or(0);
            }
            b"voluntary_ctxt_switches" => status.sleeps = words(&line[colon + 1..]).next().and_then(decimal),
            _ => {}
        }
    }
    (status.tgid != 0).then_some(status)
}

/// Parses `/proc/PID/task/TID/io`: how many calls have read or written so far.
pub(super) fn reads_and_writes(text: &[u8]) -> Option<u64> {
    let count = |name: &[u8]| {
        let mut lines = text.split(|&byte| byte == b'\n');
        decimal(words(lines.find_map(|line| line.strip_prefix(name))?).next()?)
    };
    count(b"syscr:")?.checked_add(count(b"syscw:")?)
}

/// The numbers of a text, as in `/proc/PID/task/TID/children`.
pub(super) fn numbers(text: &[u8]) -> Vec<u32> {
    words(text).filter_map(|word| u32::try_from(decimal(word)?).ok()).collect()
}

/// Whether `/proc/PID/cgroup` names this control group, or one below it.
pub(super) fn is_in_group(text: &[u8], group: &str) -> bool {
    let group = group.strip_prefix("/sys/fs/cgroup").unwrap_or(group).trim_matches('/').as_bytes();
    text.split(|&byte| byte == b'\n').any(|line| {
        // Number, controllers and path, between colons. The path may have colons too.
        let Some(path) = line.splitn(3, |&byte| byte == b':').nth(2) else { return false };
        let path = path.strip_prefix(b"/").unwrap_or(path);
        let rest = path.strip_prefix(group);
        rest.is_some_and(|rest| group.is_empty() || rest.is_empty() || rest.starts_with(b"/"))
    })
}

/// The words of a text between spaces, tabs and newlines.
fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| matches!(byte, b' ' | b'\t' | b'\n')).filter(|word| !word.is_empty())
}

pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A number in hexadecimal digits, after `0x` or not.
pub(super) fn hexadecimal(digits: &[u8]) -> Option<u64> {
    let digits = digits.strip_prefix(b"0x").unwrap_or(digits);
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// How a descriptor is open, by its `fdinfo`: for reading (0), for writing (1) or for both (2).
pub(super) fn access(information: &[u8]) -> Option<u64> {
    /// `O_ACCMODE`.
    const ACCESS: u64 = 3;
    let mut lines = information.split(|&byte| byte == b'\n');
    let flags = lines.find_map(|line| line.strip_prefix(b"flags:"))?.trim_ascii();
    Some(u64::from_str_radix(std::str::from_utf8(flags).ok()?, 8).ok()? & ACCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = "S 812 4711 4711 34817 4711 4194304 7 0 0 0 12 3 0 0 20 -5 3 0 98765 1234 56 \
                        18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn a_name_may_contain_anything() {
        for name in ["server", "a b", ")", "((", ") R 1 2 3 (", "two\nlines", "", "\u{1b}[31m", "S 1 1"] {
            let found = stat(format!("4711 ({name}) {REST}").as_bytes()).expect("it parses");
            assert_eq!(found.name, name);
            assert_eq!((found.state, found.parent, found.nice, found.start_ticks), ('S', 812, -5, 98765));
            assert!(!found.is_kernel_thread && !found.is_fork);
        }
        let found = stat(format!("4711 (child) {}", REST.replace("4194304", "4194368")).as_bytes());
        assert!(found.expect("it parses").is_fork);
        let found = stat(&[b"1 (\xff\xfe) ", REST.as_bytes()].concat()).expect("it parses");
        assert_eq!(found.name, "\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_cut_text_does_not_parse() {
        let text = format!("4711 (server) {REST}");
        let until_start = text.find(" 98765").expect("the start") + 1;
        for len in 0..until_start {
            assert_eq!(stat(&text.as_bytes()[..len]), None, "{}", &text[..len]);
        }
        let text = b"202 0x7f29b1c26000 0x80 0x2 0x0 0x0 0x0 0x7fff86e420f8 0x7f29b1da22ad\n";
        let last = text.len() - 14;
        for len in 0..last {
            assert_eq!(syscall(&text[..len]), None);
        }
    }

    #[test]
    fn a_thread_runs_or_sleeps_in_a_call_or_elsewhere() {
        let registers = Registers { sp: 0x7fff_86e4_20f8, pc: 0x7f29_b1da_22ad, ..Registers::default() };
        let text = b"202 0x7f29b1c26000 0x80 0x2 0x0 0x0 0xffffffffffffffff 0x7fff86e420f8 0x7f29b1da22ad\n";
        let arguments = [0x7f29_b1c2_6000, 0x80, 2, 0, 0, u64::MAX];
        assert_eq!(syscall(text), Some(Position::InCall { number: 202, arguments, registers }));
        assert_eq!(syscall(b"running\n"), Some(Position::Running));
        assert_eq!(syscall(b"-1 0x7fff86e420f8 0x7f29b1da22ad\n"), Some(Position::Elsewhere(registers)));
        assert_eq!(syscall(b""), None);
        assert_eq!(syscall(b"-2 0x1 0x2\n"), None);
    }

    #[test]
    fn a_process_is_in_its_control_groups_and_in_those_above() {
        let text = b"12:pids:/docker/abc\n1:name=systemd:/a:b/c\n0::/system.slice/web.service\n";
        for group in
            ["/docker/abc", "docker", "/system.slice/", "/sys/fs/cgroup/system.slice", "a:b/c", "/", ""]
        {
            assert!(is_in_group(text, group), "{group}");
        }
        for group in ["/docker/ab", "/abc", "web.service", "/system.slice/web.service/x"] {
            assert!(!is_in_group(text, group), "{group}");
        }
        assert!(!is_in_group(b"", "/"));
        assert!(!is_in_group(b"0:\n", "/"));
    }

    #[test]
    fn the_scheduler_has_an_account_or_none() {
        let schedule = Schedule { ran_ns: 934_282, delayed_ns: 1_331_488, turns: 2 };
        assert_eq!(schedstat(b"934282 1331488 2\n"), Some(schedule));
        assert_eq!(schedstat(b"0 0 0\n"), None);
        assert_eq!(schedstat(b"1 2\n"), None);
        assert_eq!(schedstat(b"99999999999999999999 2 3\n"), None);
    }

    #[test]
    fn the_last_id_is_that_of_the_own_namespace() {
        let text =
            b"Name:\ta\\nTgid:\t1\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t4711\nNgid:\t0\nPid:\t4712\n\
                     PPid:\t1\nTracerPid:\t99\nUid:\t1000\t0\t0\t1000\nNSpid:\t4712\t18\t2\nThreads:\t3\nSigCgt:\t0000000000006002\n\
                     voluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t8\n";
        let ids = vec![4712, 18, 2];
        let expected =
            Status { tgid: 4711, tracer: 99, effective_uid: 0, ids, sleeps: Some(7), caught: 0x6002 };
        assert_eq!(status(text), Some(expected));
        assert_eq!(status(b""), None);
    }
}
