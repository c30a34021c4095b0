//! Core files made by hand: of both processors, and hostile ones.

use std::fs;

use librip_test_kit::Random;
use librip_test_kit::core::{elf_header, note, program_header, status_of};
use object::elf::{NT_AUXV, NT_FILE, NT_PRPSINFO, NT_PRSTATUS, NT_SIGINFO};

use super::status::Status;
use super::*;
use crate::target::{Architecture, Sleep};

const FUTEX_X86_64: u64 = 202;
const FUTEX_AARCH64: u64 = 98;

/// The registers of x86-64 of a thread in a call, with this result so far.
fn x86_64(number: i64, result: i64) -> Vec<u64> {
    let mut all = vec![0; 27];
    (all[10], all[15], all[16], all[19]) = (result as u64, number as u64, 0x40_1000, 0x7ffe_0000);
    // rdi, rsi, rdx, r10, r8, r9.
    for (argument, at) in [14, 13, 12, 7, 9, 8].into_iter().enumerate() {
        all[at] = 100 + argument as u64;
    }
    all
}

fn aarch64(first: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (100..134).collect();
    (all[0], all[8], all[31], all[32]) = (first, FUTEX_AARCH64, 0x7ffe_0000, 0x40_1000);
    all
}

fn status(registers: &[u64], architecture: Architecture) -> Status {
    Status::read(&status_of(7, 0, registers), architecture).unwrap()
}

#[test]
fn a_thread_of_x86_64_that_was_woken_for_the_core_slept_in_its_call() {
    let of = Architecture::X86_64;
    let call = |number, result| status(&x86_64(number, result), of).call(of, None, None);
    for result in [-512, -513, -514, -516, -4] {
        let call = call(FUTEX_X86_64 as i64, result).expect("asleep");
        assert_eq!((call.name, call.arguments), (Some("futex"), [100, 101, 102, 103, 104, 105]));
    }
    // It was over, or it was no call.
    assert_eq!(call(FUTEX_X86_64 as i64, 0), None);
    assert_eq!(call(FUTEX_X86_64 as i64, -11), None);
    assert_eq!(call(-1, -512), None);
    let registers = status(&x86_64(0, 0), of).registers;
    assert_eq!((registers.pc, registers.sp), (0x40_1000, 0x7ffe_0000));
    // rdi is number 5, rsi 4, rdx 1.
    let all = registers.all.unwrap();
    assert_eq!((all[5], all[4], all[1], all[7]), (100, 101, 102, 0x7ffe_0000));
}

#[test]
fn a_thread_of_aarch64_slept_in_a_call_if_it_is_about_to_start_it_again() {
    let of = Architecture::Aarch64;
    let asleep = status(&aarch64(0x1234), of);
    let call = asleep.call(of, Some(0xd400_0001), None).expect("asleep");
    assert_eq!((call.name, call.arguments), (Some("futex"), [0x1234, 101, 102, 103, 104, 105]));
    assert_eq!(asleep.call(of, Some(0xd503_201f), None), None, "another instruction");
    assert_eq!(asleep.call(of, None, Some(98)), None, "a result");
    // EINTR: the note has the number, and the first argument is lost.
    let interrupted = status(&aarch64(-4_i64 as u64), of).call(of, None, Some(63)).expect("asleep");
    assert_eq!((interrupted.name, interrupted.descriptor()), (Some("read"), None));
    assert_eq!(asleep.registers.lr, Some(130));
}

/// A small core: two threads, a page of memory, one file.
fn small() -> Vec<u8> {
    small_of(elf_header(0), &[[0x40_0000, 0x40_2000, 0]])
}

/// The same with this beginning of the file, and these ranges of it: begin, end, page of the file.
fn small_of(program: Vec<u8>, ranges: &[[u64; 3]]) -> Vec<u8> {
    let registers = if cfg!(target_arch = "x86_64") { x86_64(202, -512) } else { aarch64(1) };
    let mut process = vec![0; 136];
    process[24..28].copy_from_slice(&7_u32.to_le_bytes());
    process[40..44].copy_from_slice(b"prog");
    let mut signal = vec![0; 128];
    (signal[0], signal[8], signal[16]) = (11, 1, 0x10);
    let numbers = [ranges.len() as u64, 4096].into_iter().chain(ranges.iter().copied().flatten());
    let mut files: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
    files.extend(b"/bin/prog\0".repeat(ranges.len()));
    let notes = [
        note(NT_PRSTATUS.0, &status_of(7, 11, &registers)),
        note(NT_PRPSINFO.0, &process),
        note(NT_SIGINFO.0, &signal),
        note(NT_AUXV.0, &[9, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0x40, 0, 0, 0, 0, 0]),
        note(NT_FILE.0, &files),
        note(NT_PRSTATUS.0, &status_of(8, 0, &registers)),
    ]
    .concat();
    let notes_at = 64 + 3 * 56;
    let memory_at = notes_at + notes.len() as u64;
    let mut bytes = elf_header(3);
    bytes.extend(program_header(4, 4, notes_at, 0, notes.len() as u64, 0));
    bytes.extend(program_header(1, 5, memory_at, 0x40_0000, 256, 0x1000));
    bytes.extend(program_header(1, 6, memory_at, 0x7ffe_0000, 256, 0x1000));
    bytes.extend(notes);
    let end = bytes.len() + 256;
    bytes.extend(program);
    bytes.resize(end, 0x5a);
    bytes
}

struct Files(tempfile::TempDir);

impl Files {
    fn open(&self, bytes: &[u8]) -> Result<Core, Error> {
        let path = self.0.path().join("core");
        fs::write(&path, bytes).unwrap();
        Core::open(&path, UnpackLimit::default())
    }
}

fn files() -> Files {
    Files(tempfile::tempdir().unwrap())
}

#[test]
fn a_core_has_threads_files_memory_and_a_cause() {
    let files = files();
    let core = files.open(&small()).unwrap();
    assert_eq!(core.gaps(), []);
    let expected = Death { tid: 7, signal: Some(11), code: Some(1), fault_address: Some(0x10), sender: None };
    assert_eq!(core.death(), &expected);
    let target = core.target(Options::default());
    assert_eq!((target.pid, &*target.name), (7, "prog"));
    let tasks: Vec<_> = target.tasks.iter().map(|task| (task.tid, &*task.name)).collect();
    assert_eq!(tasks, [(7, "prog"), (8, "thread")]);
    // The second range of the file is in no segment: debuggers leave code out.
    let ranges: Vec<_> = target.mappings.iter().map(|mapping| (mapping.begin, mapping.end)).collect();
    assert_eq!(ranges, [(0x40_0000, 0x40_1000), (0x7ffe_0000, 0x7ffe_1000)]);
    assert_eq!(target.mappings[0].path.as_deref(), Some("/bin/prog".as_ref()));
    if cfg!(target_arch = "x86_64") {
        assert!(matches!(target.tasks[0].sleep, Some(Sleep::Call(call)) if call.name == Some("futex")));
    }
    let memory = core.memory(&target.modules, Options::default());
    let mut bytes = [0; 64];
    assert_eq!(memory.read_some(0x7ffe_0000 + 240, &mut bytes), 16);
    assert_eq!(bytes[..16], [0x5a; 16]);
    assert!(memory.read(0x7ffe_0000 + 240, &mut bytes).is_err());
    assert!(memory.read(u64::MAX - 3, &mut bytes).is_err());
    assert_eq!(memory.read_some(0x50_0000, &mut bytes), 0);
}

/// gcore leaves it out, and so frames in such programs were no return addresses. lld lays code out like this.
#[test]
fn code_that_begins_within_a_page_that_the_core_leaves_out_is_code() {
    let program = [
        elf_header(2),
        program_header(1, 4, 0, 0, 0x700, 0x700),
        program_header(1, 5, 0x780, 0x1780, 256, 256),
    ];
    let ranges = [[0x40_0000, 0x40_1000, 0], [0x40_1000, 0x40_2000, 0], [0x40_2000, 0x40_3000, 1]];
    let target = files().open(&small_of(program.concat(), &ranges)).unwrap().target(Options::default());
    let code: Vec<_> = target.mappings.iter().map(|mapping| (mapping.begin, mapping.is_executable)).collect();
    assert_eq!(code, [(0x40_0000, true), (0x40_1000, true), (0x40_2000, false), (0x7ffe_0000, false)]);
}

#[test]
fn what_a_debugger_was_told_is_no_cause_of_death() {
    let mut death = Death::default();
    death.add_thread(7, libc::SIGSTOP);
    let mut note = vec![0; 128];
    (note[0], note[8]) = (19, 128);
    death.add_signal_info(&note);
    assert_eq!(death, Death { tid: 7, ..Death::default() });
}

/// Everything that a reader does with a core.
fn read_all(core: &Core) {
    let target = core.target(Options::default());
    let memory = core.memory(&target.modules, Options::default());
    let mut bytes = [0; 4096];
    for mapping in &target.mappings {
        memory.read_some(mapping.begin, &mut bytes);
        memory.read_some(mapping.end.wrapping_sub(8), &mut bytes);
    }
    core.rings();
}

#[test]
fn hostile_cores_are_no_harm() {
    let (files, sound) = (files(), small());
    for len in 0..sound.len() {
        if let Ok(core) = files.open(&sound[..len]) {
            assert_ne!(core.gaps(), [], "{len} bytes");
            read_all(&core);
        }
    }
    let mut random = Random(11);
    let mut opened = 0;
    for _ in 0..1000 {
        let mut bytes = sound.clone();
        for _ in 0..=random.below(4) {
            let at = random.below(bytes.len() - 256);
            let value = [0, 1, 0x7f, 0x80, 0xff, random.next() as u8][random.below(6)];
            let end = (at + [1, 2, 4, 8][random.below(4)]).min(bytes.len());
            bytes[at..end].fill(value);
        }
        if let Ok(core) = files.open(&bytes) {
            opened += 1;
            read_all(&core);
        }
    }
    assert!(opened > 300, "{opened}");
}

#[test]
fn notes_of_zeros_end_at_once() {
    let files = files();
    let mut bytes = small();
    // The notes' length: all that a sparse file may claim.
    bytes[64 + 32..64 + 40].copy_from_slice(&(1_u64 << 62).to_le_bytes());
    let path = files.0.path().join("core");
    fs::write(&path, &bytes).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    let core = Core::open(&path, UnpackLimit::default()).unwrap();
    assert!(core.gaps().contains(&Gap::Notes), "{:?}", core.gaps());
}
