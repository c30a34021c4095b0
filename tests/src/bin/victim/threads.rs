//! Threads that come and go, forks, signals, destructors.

use std::cell::{Cell as LocalCell, RefCell};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64};
use std::sync::{Arc, Barrier, mpsc};

use librip::rip_snap;
use librip_test_kit::progress::{self, Cell};

use crate::common::{
    self, begin, cells, cycle, cycle_through, errno, handle, named, pause, run, say, set_errno,
    sleep_forever, tid,
};

pub(crate) fn main(arguments: &[&str]) {
    if arguments[0] == "look" {
        return look();
    }
    if arguments[0] == "destructors" {
        KEY_BEFORE.store(key(before_round), Relaxed);
    }
    if arguments[0] == "atfork" {
        unsafe { libc::pthread_atfork(None, None, Some(early_child)) };
    }
    common::init();
    match arguments[0] {
        "first" => first(),
        "reuse" => reuse(),
        "fresh" => fresh(),
        "same_tid" => same_tid(),
        "crowd" => crowd(arguments[1].parse().unwrap()),
        "storm" => storm(arguments[1].parse().unwrap()),
        "step" => step(),
        "handler_first" => handler_first(0),
        "handler_first_on_stack" => handler_first(arguments[1].parse().unwrap()),
        "destructors" => destructors(),
        "destructor_first" => destructor_first(),
        "pthread_exit" => pthread_exits(),
        "fork" => fork(),
        "daemon" => daemon(),
        "fork_storm" => fork_storm(),
        "fork_signals" => fork_signals(),
        "atfork" => atfork(),
        "reclaim" => reclaim(),
        "exec" => exec(),
        "name" => name(),
        "errno" => keeps_errno(),
        "registers" => registers(),
        other => panic!("no way {other}"),
    }
    std::process::exit(3);
}

fn first() {
    run("quiet", || ());
    run("marks", || {
        begin(&cells()[0]);
        rip_snap!("first");
        rip_snap!("second");
    });
}

/// A thread that marks when told to, and exits when told to.
struct Puppet {
    sender: mpsc::Sender<u64>,
    done: mpsc::Receiver<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Puppet {
    fn new(name: &str) -> Puppet {
        let (sender, orders) = mpsc::channel();
        let (report, done) = mpsc::channel();
        let thread = named(name).spawn(move || {
            for marks in orders {
                (0..marks).for_each(cycle);
                report.send(()).unwrap();
            }
        });
        Puppet { sender, done, thread: thread.unwrap() }
    }
    fn marks(&self, marks: u64) {
        self.sender.send(marks).unwrap();
        self.done.recv().unwrap();
    }
    fn exits(self) {
        drop(self.sender);
        self.thread.join().unwrap();
    }
}

/// Four slots; their owners exit in the order c, a, d, b; four others come.
fn reuse() {
    let first = ["a", "b", "c", "d"].map(|name| {
        let puppet = Puppet::new(name);
        puppet.marks(5);
        puppet
    });
    let [a, b, c, d] = first;
    for puppet in [c, a, d, b] {
        puppet.exits();
    }
    let second = ["e", "f", "g", "h"].map(|name| {
        let puppet = Puppet::new(name);
        puppet.marks(3);
        puppet
    });
    pause();
    second.into_iter().for_each(Puppet::exits);
}

/// As many slots as threads: no evidence is overwritten.
fn fresh() {
    for index in 0..64 {
        let puppet = Puppet::new(&format!("t{index}"));
        puppet.marks(index + 1);
        puppet.exits();
    }
}

/// Threads that have the same id, one after the other.
fn same_tid() {
    let wanted = Arc::new(AtomicU32::new(0));
    run("dies", {
        let wanted = wanted.clone();
        move || {
            (0..5).for_each(cycle);
            wanted.store(tid(), Relaxed);
        }
    });
    let wanted = wanted.load(Relaxed);
    for _ in 0..200 {
        if std::fs::write("/proc/sys/kernel/ns_last_pid", (wanted - 1).to_string()).is_err() {
            say("cannot");
            return;
        }
        let hit = named("lives").spawn(move || {
            let hit = tid() == wanted;
            if hit {
                (0..3).for_each(cycle);
            }
            hit
        });
        if hit.unwrap().join().unwrap() {
            say(&format!("{wanted}"));
            return;
        }
    }
    say("unlucky");
}

/// All at once.
fn crowd(threads: usize) {
    let barrier = Arc::new(Barrier::new(threads + 1));
    let cells = cells();
    for (index, cell) in cells[..threads].iter().enumerate() {
        let barrier = barrier.clone();
        std::thread::Builder::new()
            .name(format!("w{index}"))
            .stack_size(32 << 10)
            .spawn(move || {
                begin(cell);
                barrier.wait();
                cycle_through(cell, 3);
                barrier.wait();
                barrier.wait();
            })
            .unwrap();
    }
    barrier.wait();
    barrier.wait();
    pause();
}

thread_local! {
    /// How many marks the handler may still make in this thread, and how many it made. Without destructor
    /// and with constant initial value: a handler may use it.
    static HANDLER: (LocalCell<u64>, LocalCell<u64>) = const { (LocalCell::new(0), LocalCell::new(0)) };
}

extern "C" fn marks_in_handler(_signal: i32) {
    HANDLER.with(|(left, made)| {
        if left.get() == 0 {
            return;
        }
        left.set(left.get() - 1);
        match made.get() % 3 {
            0 => rip_snap!("handler 0"),
            1 => rip_snap!("handler 1"),
            _ => rip_snap!("handler 2"),
        }
        made.set(made.get() + 1);
    });
}

/// Threads that mark 12000 times each, under a storm of signals whose handler marks too: at most 4000 times.
fn storm(threads: usize) {
    handle(libc::SIGUSR1, marks_in_handler, libc::SA_RESTART);
    let cells = cells();
    for (index, cell) in cells[..threads].iter().enumerate() {
        let target = Arc::new(AtomicU32::new(0));
        let thread = named(&format!("w{index}")).spawn({
            let target = target.clone();
            move || {
                begin(cell);
                HANDLER.with(|(left, _)| left.set(4000));
                target.store(tid(), Relaxed);
                cycle_through(cell, 12_000);
                HANDLER.with(|(left, made)| {
                    left.set(0);
                    cell.extra.store(made.get(), Relaxed);
                });
                cell.state.store(progress::FINISHED, Relaxed);
            }
        });
        while target.load(Relaxed) == 0 {
            std::hint::spin_loop();
        }
        let target = target.load(Relaxed);
        while cell.state.load(Relaxed) != progress::FINISHED {
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), target, libc::SIGUSR1) };
        }
        thread.unwrap().join().unwrap();
    }
}

/// Marks with a signal, whose handler marks too, between each two instructions: the processor's own
/// single-step flag raises it, so no instant is left out.
#[cfg(target_arch = "x86_64")]
fn step() {
    handle(libc::SIGTRAP, marks_in_handler, 0);
    let cell = &cells()[0];
    run("thread", move || {
        begin(cell);
        // The first mark blocks signals, and a blocked trap kills.
        cycle_through(cell, 1);
        HANDLER.with(|(left, _)| left.set(16_000));
        unsafe { std::arch::asm!("pushfq", "or dword ptr [rsp], 0x100", "popfq") };
        for _ in 0..30 {
            cycle_through_again(cell, 1);
        }
        unsafe { std::arch::asm!("pushfq", "and dword ptr [rsp], 0xfffffeff", "popfq") };
        HANDLER.with(|(left, made)| {
            assert!(left.get() > 0, "the handler could not always mark");
            cell.extra.store(made.get(), Relaxed);
        });
    });
}

#[cfg(not(target_arch = "x86_64"))]
fn step() {}

static HANDLER_RAN: AtomicBool = AtomicBool::new(false);

extern "C" fn first_mark_in_handler(_signal: i32) {
    set_errno(77);
    rip_snap!("in the handler");
    HANDLER_RAN.store(errno() == 77, Relaxed);
}

/// A thread's first mark is made by a handler, on an alternate stack of that size if it is not 0.
fn handler_first(stack_len: usize) {
    let flags = if stack_len > 0 { libc::SA_ONSTACK } else { 0 };
    handle(libc::SIGUSR1, first_mark_in_handler, flags);
    run("thread", move || {
        if stack_len > 0 {
            // With nothing below it, so that an overflow is a fault.
            let (none, both) = (libc::PROT_NONE, libc::PROT_READ | libc::PROT_WRITE);
            let map_flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let guard = 1 << 16;
            unsafe {
                let start = libc::mmap(ptr::null_mut(), guard + stack_len, none, map_flags, -1, 0);
                let stack = start.byte_add(guard);
                assert_eq!(libc::mprotect(stack, stack_len, both), 0);
                let stack = libc::stack_t { ss_sp: stack, ss_flags: 0, ss_size: stack_len };
                assert_eq!(libc::sigaltstack(&raw const stack, ptr::null_mut()), 0);
            }
        }
        unsafe { libc::raise(libc::SIGUSR1) };
        assert!(HANDLER_RAN.load(Relaxed));
        rip_snap!("after the handler");
        if stack_len > 0 {
            let stack = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
            unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) };
        }
    });
}

struct MarksWhenDropped(&'static str);

impl Drop for MarksWhenDropped {
    fn drop(&mut self) {
        match self.0 {
            "early" => rip_snap!("dropped early"),
            _ => rip_snap!("dropped late"),
        }
    }
}

thread_local! {
    static EARLY: RefCell<Option<MarksWhenDropped>> = const { RefCell::new(None) };
    static LATE: RefCell<Option<MarksWhenDropped>> = const { RefCell::new(None) };
}

/// A thread-specific key, made before librip's or after: glibc runs destructors by number.
static KEY_BEFORE: AtomicI32 = AtomicI32::new(-1);
static KEY_AFTER: AtomicI32 = AtomicI32::new(-1);

fn key(destructor: unsafe extern "C" fn(*mut c_void)) -> i32 {
    let mut key = 0;
    assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(destructor)) }, 0);
    key as i32
}

fn set_key(key: &AtomicI32, round: usize) {
    let value = ptr::without_provenance(round);
    assert_eq!(unsafe { libc::pthread_setspecific(key.load(Relaxed) as u32, value) }, 0);
}

unsafe extern "C" fn before_round(round: *mut c_void) {
    match round.addr() {
        1 => rip_snap!("before, round 1"),
        2 => rip_snap!("before, round 2"),
        3 => rip_snap!("before, round 3"),
        _ => rip_snap!("before, round 4"),
    }
    set_key(&KEY_BEFORE, round.addr() + 1);
}

unsafe extern "C" fn after_round(round: *mut c_void) {
    match round.addr() {
        1 => rip_snap!("after, round 1"),
        2 => rip_snap!("after, round 2"),
        3 => rip_snap!("after, round 3"),
        _ => rip_snap!("after, round 4"),
    }
    set_key(&KEY_AFTER, round.addr() + 1);
}

unsafe extern "C" fn after_first(_value: *mut c_void) {
    rip_snap!("first in a destructor");
}

fn destructors() {
    KEY_AFTER.store(key(after_round), Relaxed);
    run("thread", || {
        EARLY.set(Some(MarksWhenDropped("early")));
        set_key(&KEY_BEFORE, 1);
        rip_snap!("first");
        LATE.set(Some(MarksWhenDropped("late")));
        set_key(&KEY_AFTER, 1);
    });
}

/// The first mark of a thread is made when it ends: in the drop of a thread-local, in a key's destructor.
fn destructor_first() {
    KEY_AFTER.store(key(after_first), Relaxed);
    run("drop", || EARLY.set(Some(MarksWhenDropped("early"))));
    run("key", || set_key(&KEY_AFTER, 1));
}

/// A thread that ends itself, without returning from its function.
fn pthread_exits() {
    extern "C-unwind" fn start(_argument: *mut c_void) -> *mut c_void {
        rename("leaver");
        (0..5).for_each(cycle);
        unsafe { libc::pthread_exit(ptr::null_mut()) }
    }
    let mut thread = 0;
    // Unwinds through `start`, which its type allows; the C library's declaration knows no such types.
    let start: extern "C" fn(*mut c_void) -> *mut c_void =
        unsafe { std::mem::transmute(start as extern "C-unwind" fn(*mut c_void) -> *mut c_void) };
    unsafe {
        assert_eq!(libc::pthread_create(&raw mut thread, ptr::null(), start, ptr::null_mut()), 0);
        assert_eq!(libc::pthread_join(thread, ptr::null_mut()), 0);
    }
}

/// Forks; the child runs `body` and exits with status 0. Waits for it.
fn child(body: impl FnOnce()) {
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        body();
        std::process::exit(0);
    }
    reap(pid);
}

fn reap(pid: i32) -> i32 {
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    status
}

fn rename(name: &str) {
    let name = std::ffi::CString::new(name).unwrap();
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// The parent marks before, between and after; one child marks and exits, one does so and has a child of its
/// own and a thread, one does not mark, one ends with `_exit`.
fn fork() {
    rip_snap!("parent 1");
    child(|| {
        rename("child");
        rip_snap!("child 1");
        rip_snap!("child 2");
    });
    rip_snap!("parent 2");
    child(|| {
        rename("second");
        rip_snap!("second 1");
        child(|| {
            rename("grandchild");
            rip_snap!("grandchild");
        });
        run("thread", || rip_snap!("thread of the second"));
        rip_snap!("second 2");
    });
    child(|| ());
    child(|| {
        rename("leaves");
        rip_snap!("leaves");
        unsafe { libc::_exit(0) }
    });
    rip_snap!("parent 3");
}

/// Forks 60 times while two threads mark at full speed.
/// Goes into the background as daemons do: the process that was started ends with status 0 once its child has
/// marked, and the child marks again when it is alone, and dies.
fn daemon() {
    let mut marked = [0; 2];
    let mut alone = [0; 2];
    unsafe { libc::pipe(marked.as_mut_ptr()) };
    unsafe { libc::pipe(alone.as_mut_ptr()) };
    if unsafe { libc::fork() } == 0 {
        unsafe { libc::close(alone[1]) };
        rename("daemon");
        rip_snap!("in the background");
        assert_eq!(unsafe { libc::write(marked[1], c"".as_ptr().cast(), 1) }, 1);
        // The other end is the parent's: this is the end of its file when the parent has gone.
        let mut byte = 0u8;
        assert_eq!(unsafe { libc::read(alone[0], (&raw mut byte).cast(), 1) }, 0);
        rip_snap!("alone");
        std::fs::write(common::dir().join("done"), "alone").unwrap();
        std::process::abort();
    }
    let mut byte = 0u8;
    assert_eq!(unsafe { libc::read(marked[0], (&raw mut byte).cast(), 1) }, 1);
    std::process::exit(0);
}

fn fork_storm() {
    let cells = cells();
    for (index, cell) in cells[..2].iter().enumerate() {
        named(&format!("w{index}"))
            .spawn(move || {
                begin(cell);
                common::cycle_forever(cell)
            })
            .unwrap();
    }
    begin(&cells[2]);
    rename("w2");
    for index in 3..63 {
        cycle_through_again(&cells[2], 3);
        let cell = &cells[index];
        child(|| {
            rename(&format!("w{index}"));
            begin(cell);
            cycle_through(cell, 5);
            cell.state.store(progress::FINISHED, Relaxed);
        });
    }
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

/// Goes on in the cycle where it was.
fn cycle_through_again(cell: &Cell, marks: u64) {
    for _ in 0..marks {
        cycle(cell.marks.load(Relaxed));
        cell.advance();
    }
}

static PARENT: AtomicI32 = AtomicI32::new(0);
static MADE_IN_PARENT: AtomicU64 = AtomicU64::new(0);

extern "C" fn marks_by_process(_signal: i32) {
    if unsafe { libc::getpid() } == PARENT.load(Relaxed) {
        rip_snap!("handler in the parent");
        MADE_IN_PARENT.fetch_add(1, Relaxed);
    } else {
        rip_snap!("handler in a child");
    }
}

/// Forks while somebody sends signals, whose handler marks, to the whole process group.
fn fork_signals() {
    unsafe { libc::setpgid(0, 0) };
    PARENT.store(unsafe { libc::getpid() }, Relaxed);
    handle(libc::SIGUSR1, marks_by_process, libc::SA_RESTART);
    static STOP: AtomicBool = AtomicBool::new(false);
    let sender = named("sender").spawn(|| unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut set, libc::SIGUSR1);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut());
        while !STOP.load(Relaxed) {
            libc::kill(0, libc::SIGUSR1);
        }
    });
    let cell = &cells()[0];
    begin(cell);
    for _ in 0..1500 {
        cycle_through_again(cell, 1);
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            unsafe { libc::_exit(0) };
        }
        reap(pid);
    }
    STOP.store(true, Relaxed);
    sender.unwrap().join().unwrap();
    cell.extra.store(MADE_IN_PARENT.load(Relaxed), Relaxed);
}

unsafe extern "C" fn early_child() {
    rip_snap!("in the child's own fork handler");
}

/// A handler for the child of a fork, registered before librip's, marks.
fn atfork() {
    rip_snap!("parent");
    child(|| rip_snap!("child"));
}

/// Two slots; the owner of one is killed.
fn reclaim() {
    rip_snap!("parent");
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        (0..5).for_each(cycle);
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    reap(pid);
    run("heir", || (0..3).for_each(cycle));
    rip_snap!("parent again");
}

/// Becomes another program, which tells what it has open and mapped.
fn exec() {
    rip_snap!("before");
    use std::os::unix::process::CommandExt;
    let error = std::process::Command::new("/proc/self/exe").args(["threads", "look"]).exec();
    panic!("{error}");
}

fn look() {
    let mut open: Vec<String> = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .map(|path| path.display().to_string())
        .filter(|path| !path.starts_with("pipe:") && !path.starts_with("/proc/"))
        .collect();
    open.sort();
    say(&format!("open: {open:?}"));
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let shm: Vec<&str> = maps.lines().filter(|line| line.contains("/dev/shm")).collect();
    say(&format!("mapped: {shm:?}"));
}

fn name() {
    let long = "a name of more than 48 bytes, which is what fits into a slot";
    run("kernel", move || {
        librip::set_thread_name(long);
        rip_snap!("named first");
    });
    run("kernel", || {
        rip_snap!("marked first");
        librip::set_thread_name("new name");
        rip_snap!("named");
    });
}

fn keeps_errno() {
    for _ in 0..3 {
        run("thread", || {
            set_errno(123);
            rip_snap!("first");
            assert_eq!(errno(), 123);
            librip::set_thread_name("other");
            assert_eq!(errno(), 123);
        });
    }
    say("errno was kept");
    sleepers();
}

/// Uses up the slots, and looks at `errno` of a thread that gets none.
fn sleepers() {
    let (sender, receiver) = mpsc::channel();
    for _ in 0..4 {
        let sender = sender.clone();
        named("sleeper")
            .spawn(move || {
                set_errno(123);
                rip_snap!("sleeps");
                sender.send(errno()).unwrap();
                sleep_forever()
            })
            .unwrap();
    }
    for _ in 0..4 {
        assert_eq!(receiver.recv().unwrap(), 123);
    }
}

/// Fills every register with a pattern, takes the cold path, and looks.
///
/// It calls what a mark calls: the symbol is hidden, which is no hindrance within an executable.
#[cfg(target_arch = "x86_64")]
fn registers() {
    /// Offsets below are those of the fields.
    #[repr(C)]
    struct Area {
        /// 0: rax, rbx, rcx, rdx, rsi, one unused, rbp, r8 to r15.
        before: [u64; 16],
        /// 128: the same without the unused one; then two mask registers.
        after: [u64; 16],
        /// 256
        wide_before: *const u8,
        /// 264: MXCSR and x87 control word; 272: the same afterwards; 280: MXCSR to go on with.
        control: [u32; 6],
        /// 288
        wide_after: *mut u8,
        /// 296
        stack: u64,
    }
    macro_rules! call_with {
        ($area:expr, $load:expr, $store:expr) => {
            std::arch::asm!(
                "push rbx",
                "push rbp",
                "mov [rdi + 296], rsp",
                "and rsp, -64",
                "ldmxcsr [rdi + 264]",
                "fldcw [rdi + 268]",
                "mov rax, [rdi + 256]",
                $load,
                "mov rax, [rdi]",
                "mov rbx, [rdi + 8]",
                "mov rcx, [rdi + 16]",
                "mov rdx, [rdi + 24]",
                "mov rsi, [rdi + 32]",
                "mov rbp, [rdi + 48]",
                "mov r8, [rdi + 56]",
                "mov r9, [rdi + 64]",
                "mov r10, [rdi + 72]",
                "mov r11, [rdi + 80]",
                "mov r12, [rdi + 88]",
                "mov r13, [rdi + 96]",
                "mov r14, [rdi + 104]",
                "mov r15, [rdi + 112]",
                "call librip_enter_1",
                "mov [rdi + 128], rax",
                "mov [rdi + 136], rbx",
                "mov [rdi + 144], rcx",
                "mov [rdi + 152], rdx",
                "mov [rdi + 160], rsi",
                "mov [rdi + 168], rbp",
                "mov [rdi + 176], r8",
                "mov [rdi + 184], r9",
                "mov [rdi + 192], r10",
                "mov [rdi + 200], r11",
                "mov [rdi + 208], r12",
                "mov [rdi + 216], r13",
                "mov [rdi + 224], r14",
                "mov [rdi + 232], r15",
                "stmxcsr [rdi + 272]",
                "fnstcw [rdi + 276]",
                "mov rax, [rdi + 288]",
                $store,
                "ldmxcsr [rdi + 280]",
                "fninit",
                "mov rsp, [rdi + 296]",
                "pop rbp",
                "pop rbx",
                in("rdi") $area,
                out("r12") _,
                out("r13") _,
                out("r14") _,
                out("r15") _,
                clobber_abi("C"),
            )
        };
    }
    run("thread", || {
        let wide_before: Vec<[u8; 64]> = (0..32u8)
            .map(|register| std::array::from_fn(|byte| register.wrapping_mul(37).wrapping_add(byte as u8)))
            .collect();
        let mut wide_after = vec![[0u8; 64]; 32];
        let mut area = Area {
            before: std::array::from_fn(|index| 0x0101_0101_0101_0101 * (index as u64 + 3)),
            after: [0; 16],
            wide_before: wide_before.as_ptr().cast(),
            // Round down, flush denormals; single precision: nothing that anybody sets by default.
            control: [0xbf80, 0x047f, 0, 0, 0x1f80, 0],
            wide_after: wide_after.as_mut_ptr().cast(),
            stack: 0,
        };
        let (registers, width): (&[usize], usize);
        if std::arch::is_x86_feature_detected!("avx512f") {
            (registers, width) = (&[0, 1, 7, 15, 16, 31], 64);
            unsafe {
                call_with!(
                    &raw mut area,
                    "vmovdqu64 zmm0, [rax]
                     vmovdqu64 zmm1, [rax + 64]
                     vmovdqu64 zmm7, [rax + 448]
                     vmovdqu64 zmm15, [rax + 960]
                     vmovdqu64 zmm16, [rax + 1024]
                     vmovdqu64 zmm31, [rax + 1984]
                     mov ecx, 0x5a5a
                     kmovw k1, ecx
                     mov ecx, 0xa5a5
                     kmovw k7, ecx",
                    "vmovdqu64 [rax], zmm0
                     vmovdqu64 [rax + 64], zmm1
                     vmovdqu64 [rax + 448], zmm7
                     vmovdqu64 [rax + 960], zmm15
                     vmovdqu64 [rax + 1024], zmm16
                     vmovdqu64 [rax + 1984], zmm31
                     kmovw ecx, k1
                     mov [rdi + 240], rcx
                     kmovw ecx, k7
                     mov [rdi + 248], rcx
                     vzeroupper"
                )
            };
            assert_eq!(area.after[14..], [0x5a5a, 0xa5a5], "mask registers");
        } else if std::arch::is_x86_feature_detected!("avx") {
            (registers, width) = (&[0, 1, 7, 15], 32);
            unsafe {
                call_with!(
                    &raw mut area,
                    "vmovdqu ymm0, [rax]
                     vmovdqu ymm1, [rax + 64]
                     vmovdqu ymm7, [rax + 448]
                     vmovdqu ymm15, [rax + 960]",
                    "vmovdqu [rax], ymm0
                     vmovdqu [rax + 64], ymm1
                     vmovdqu [rax + 448], ymm7
                     vmovdqu [rax + 960], ymm15
                     vzeroupper"
                )
            };
        } else {
            (registers, width) = (&[0, 1, 7, 15], 16);
            unsafe {
                call_with!(
                    &raw mut area,
                    "movdqu xmm0, [rax]
                     movdqu xmm1, [rax + 64]
                     movdqu xmm7, [rax + 448]
                     movdqu xmm15, [rax + 960]",
                    "movdqu [rax], xmm0
                     movdqu [rax + 64], xmm1
                     movdqu [rax + 448], xmm7
                     movdqu [rax + 960], xmm15"
                )
            };
        }
        let expected: Vec<u64> =
            (0..15).filter(|&index| index != 5).map(|index| area.before[index]).collect();
        assert_eq!(area.after[..14], expected, "general registers");
        for &register in registers {
            assert_eq!(wide_after[register][..width], wide_before[register][..width], "vector {register}");
        }
        assert_eq!(area.control[2], area.control[0], "MXCSR");
        assert_eq!(area.control[3] & 0xffff, area.control[1], "x87 control word");
        rip_snap!("after all that");
    });
    say("registers were kept");
}

#[cfg(not(target_arch = "x86_64"))]
fn registers() {
    run("thread", || rip_snap!("after all that"));
    say("registers were kept");
}
