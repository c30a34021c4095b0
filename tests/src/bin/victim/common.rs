//! The cycle of marks, and how a victim communicates with its test.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

use librip::rip_snap;
use librip_test_kit::progress::{self, Cell};

/// Marks the site of this step: one of seven in turn. Seven has no factor in common with any number of words,
/// so a word from the lap before has the wrong site.
#[inline(never)]
pub(crate) fn cycle(step: u64) {
    match step % 7 {
        0 => rip_snap!("cycle 0"),
        1 => rip_snap!("cycle 1"),
        2 => rip_snap!("cycle 2"),
        3 => rip_snap!("cycle 3"),
        4 => rip_snap!("cycle 4"),
        5 => rip_snap!("cycle 5"),
        _ => rip_snap!("cycle 6"),
    }
}

/// Repeats the cycle forever, at full speed, and counts each mark in its cell.
pub(crate) fn cycle_forever(cell: &Cell) -> ! {
    loop {
        rip_snap!("cycle 0");
        cell.advance();
        rip_snap!("cycle 1");
        cell.advance();
        rip_snap!("cycle 2");
        cell.advance();
        rip_snap!("cycle 3");
        cell.advance();
        rip_snap!("cycle 4");
        cell.advance();
        rip_snap!("cycle 5");
        cell.advance();
        rip_snap!("cycle 6");
        cell.advance();
    }
}

/// Makes the first `marks` marks of the cycle.
pub(crate) fn cycle_through(cell: &Cell, marks: u64) {
    for step in 0..marks {
        cycle(step);
        cell.advance();
    }
}

/// The progress file in the victim's directory.
pub(crate) fn cells() -> &'static [Cell] {
    progress::map(&dir().join("progress"))
}

pub(crate) fn dir() -> PathBuf {
    std::env::var_os("VICTIM_DIR").expect("the harness sets it").into()
}

/// The path of the ring, if the victim records.
pub(crate) fn ring() -> Option<PathBuf> {
    std::env::var_os("RIP_RING").filter(|path| path != "off").map(PathBuf::from)
}

/// Starts recording. A failure is neither fatal nor printed.
pub(crate) fn init() {
    let _ = librip::init();
}

/// Enters the calling thread in its cell.
pub(crate) fn begin(cell: &Cell) {
    cell.tid.store(tid().into(), Relaxed);
    cell.state.store(progress::RUNNING, Relaxed);
}

/// Starts threads at full speed, which count in their cells: the n-th is named `wN`. Returns their cells.
pub(crate) fn storm(threads: usize, work: fn(u64, &Cell) -> !) -> &'static [Cell] {
    let cells = &cells()[..threads];
    for (index, cell) in cells.iter().enumerate() {
        named(&format!("w{index}"))
            .spawn(move || {
                begin(cell);
                work(index as u64, cell)
            })
            .expect("a thread");
    }
    cells
}

pub(crate) fn tid() -> u32 {
    (unsafe { libc::syscall(libc::SYS_gettid) }) as u32
}

pub(crate) fn set_errno(value: i32) {
    unsafe { *libc::__errno_location() = value };
}

pub(crate) fn errno() -> i32 {
    unsafe { *libc::__errno_location() }
}

pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Lets the test read the ring, and waits until the test continues the victim.
pub(crate) fn pause() {
    say("paused");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

/// Sleeps until the process is killed.
pub(crate) fn sleep_forever() -> ! {
    loop {
        std::thread::park();
    }
}

pub(crate) fn named(name: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(name.to_owned())
}

/// Runs `body` on a thread of this name, and joins it.
pub(crate) fn run(name: &str, body: impl FnOnce() + Send + 'static) {
    named(name).spawn(body).unwrap().join().unwrap();
}

/// Installs a handler in the plain form.
pub(crate) fn handle(signal: i32, handler: extern "C" fn(i32), flags: i32) {
    install(signal, handler as usize, flags);
}

/// Installs a handler in the form that its flags ask for.
pub(crate) fn install(signal: i32, handler: usize, flags: i32) {
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    assert_eq!(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) }, 0);
}

pub(crate) fn rename(name: &str) {
    let name = std::ffi::CString::new(name).unwrap();
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Continues the cycle at its last step.
pub(crate) fn cycle_through_again(cell: &Cell, marks: u64) {
    for _ in 0..marks {
        cycle(cell.marks.load(Relaxed));
        cell.advance();
    }
}
