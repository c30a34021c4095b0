//! Why a process died: the signal, and what the kernel said about it.

/// Why a process died, as values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Death {
    /// The thread that got the signal: the first one in the core.
    pub tid: u32,
    /// The signal; `None` if there was none that ends a process with a core: a debugger made it of a living process.
    pub signal: Option<i32>,
    /// `si_code`: where the signal came from; `None` if the core does not have it.
    pub code: Option<i32>,
    /// The address that could not be accessed, or at which the instruction is.
    pub fault_address: Option<u64>,
    /// The process that sent the signal, and its user.
    pub sender: Option<(u32, u32)>,
}

/// The signals whose default is to end the process with a core.
const WITH_CORE: [i32; 10] = [
    libc::SIGQUIT,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGSYS,
];

impl Death {
    /// Adds the thread that got the signal, and the signal; 0 is none.
    pub(super) fn add_thread(&mut self, tid: u32, signal: i32) {
        (self.tid, self.signal) = (tid, Some(signal).filter(|signal| WITH_CORE.contains(signal)));
    }

    /// Reads `NT_SIGINFO`: the `siginfo_t` of 64-bit processes.
    pub(super) fn add_signal_info(&mut self, note: &[u8]) {
        let number = |at: usize| Some(i32::from_le_bytes(note.get(at..at + 4)?.try_into().ok()?));
        let (Some(signal), Some(code)) = (number(0), number(8)) else { return };
        if self.signal != Some(signal) {
            return;
        }
        self.code = Some(code);
        const FAULTS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];
        if code > 0 && code != libc::SI_KERNEL && FAULTS.contains(&signal) {
            self.fault_address =
                note.get(16..24).and_then(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)));
        }
        if code == libc::SI_USER || code == libc::SI_TKILL || code == libc::SI_QUEUE {
            self.sender = number(16).zip(number(20)).map(|(pid, uid)| (pid as u32, uid as u32));
        }
    }
}
