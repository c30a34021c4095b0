//! Pictures made by hand, and what is drawn of them.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use read_rip::top::{Colours, State, draw};
use read_rip_report::{LockKey, LockRow, Picture, Severity, ThreadKey, ThreadRow};

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

pub(crate) fn lock(address: u64, name: &str, waiters: usize, holder: Option<u32>) -> LockRow {
    LockRow {
        key: LockKey { pid: 7, address },
        name: name.to_owned(),
        waiters,
        longest_ns: (waiters > 0).then_some(3 * SECOND_NS),
        acquisitions: 12,
        contended: 4,
        held: holder.map_or_else(String::new, |tid| format!("worker[{tid}] at cache.rs:12")),
        rate: None,
        waits: None,
        holds: None,
        holder: holder.map(|tid| ThreadKey { pid: 7, tid }),
        lines: vec![format!("{name}  mutex at {address:#x}"), "  held by worker[11]".to_owned()],
    }
}

pub(crate) fn thread(tid: u32, doing: u32, advanced: u64) -> ThreadRow {
    ThreadRow {
        key: ThreadKey { pid: 7, tid },
        name: format!("worker[{tid}]").into(),
        is_task: false,
        doing,
        place: 2,
        holds: u32::from(tid == 11),
        is_blocked: doing == 0,
        advanced: Some(advanced),
        processor: None,
    }
}

/// A process with a deadlock, so many seconds after the first reading.
pub(crate) fn picture(seconds: u64) -> Picture {
    Picture {
        taken_ns: (100 + seconds) * SECOND_NS,
        heading: "server[7], alive: 2 threads".to_owned(),
        verdict: "proven deadlock: 2 threads wait for one another, for 3.0 s".to_owned(),
        severity: Severity::Proven,
        doing: "of 2 threads: 2 wait for locks".to_owned(),
        slow_cycles: String::new(),
        is_final: false,
        findings: [
            "proven deadlock: 2 threads wait for one another, for 3.0 s",
            "    worker[11] waits for CACHE, held by worker[12]",
            "    next: acquire these locks in one order everywhere",
        ]
        .map(str::to_owned)
        .to_vec(),
        locks: vec![
            lock(0x10, "CACHE", 2, Some(12)),
            lock(0x20, "INDEX", 1, Some(11)),
            lock(0x30, "LOG", 0, None),
        ],
        more_locks: 5,
        threads: vec![thread(11, 0, 0), thread(12, 1, 40)],
        texts: ["waiting for CACHE", "running", "cache.rs:12"].map(Into::into).to_vec(),
        words_per_second: Some(200),
        is_partial: true,
    }
}

/// A state with one picture.
pub(crate) fn state() -> State {
    let mut state = State::default();
    state.add(picture(0));
    state
}

/// The lines of a screen of this size, without the spaces at their ends.
pub(crate) fn screen(state: &mut State, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state, Colours::No)).unwrap();
    let buffer = terminal.backend().buffer();
    let cell = |x, y| buffer[(x, y)].symbol().to_owned();
    let line = |y| (0..width).map(|x| cell(x, y)).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}
