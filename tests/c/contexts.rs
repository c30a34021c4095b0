//! Coroutines: each has a history of its own, which survives each resume, and locks of its own.
//!
//! It reads the slots of coroutines itself, by offsets that were typed from the description of the format. Of the
//! examples it also says what `read-rip` shows.

use std::path::{Path, PathBuf};
use std::process::Command;

use librip_test_kit::victim::{Plan, Remains};

use crate::examples::{answer, expect};
use crate::{
    CLANG, CLANGPP, Compiler, GCC, GPP, STRICT, build, build_with, can, directory, fixture, installed,
    line_of, package, repository, run, shared, tool,
};

const KIND_THREAD: u64 = 1;
const KIND_TASK: u64 = 3;
const LIVE: u64 = 1;
const EXITED: u64 = 2;
const WAITING: u64 = 2;
const HELD: u64 = 3;
/// The origin of a task that is a coroutine.
const COROUTINE: u64 = 3;
const SLOT_HEADER_LEN: usize = 512;
const TASK_PART_LEN: usize = 256;

/// A thread or a coroutine.
#[derive(Debug)]
struct Owner {
    name: String,
    kind: u64,
    state: u64,
    pid: u64,
    tid: u64,
    /// What it recorded, by the labels of the sites, without those that have none.
    labels: Vec<String>,
    count: u64,
    /// Locks, and what it does with them.
    held: Vec<(String, u64)>,
    /// Of a coroutine.
    turn: u64,
    origin: u64,
    /// The index of the slot from which it was entered last.
    poller: i64,
    /// Where it was made: file and line.
    location: Option<(String, u64)>,
}

struct File(Vec<u8>);

impl File {
    fn number(&self, at: usize, len: usize) -> u64 {
        let bytes = self.0[at..at + len].iter().rev();
        bytes.fold(0, |number, &byte| number << 8 | u64::from(byte))
    }
    fn u32(&self, at: usize) -> u64 {
        self.number(at, 4)
    }
    fn u64(&self, at: usize) -> u64 {
        self.number(at, 8)
    }
    fn text(&self, at: usize, len: usize) -> String {
        let text = self.0[at..at + len].split(|&byte| byte == 0).next().unwrap();
        String::from_utf8(text.to_owned()).unwrap()
    }
    /// The offsets of the used entries of a region.
    fn region(&self, kind: u64) -> Vec<usize> {
        let at = (0..16).map(|index| 192 + 32 * index).find(|&at| self.u32(at) == kind).unwrap();
        let (len, offset, used) = (self.u32(at + 4), self.u64(at + 8), self.u64(at + 24));
        (0..used).map(|index| (offset + index * len) as usize).collect()
    }
    /// The addresses of the sites and their labels.
    fn sites(&self) -> Vec<(u64, String)> {
        let (modules, texts) = (self.region(1), self.region(3)[0]);
        let site = |at: usize| {
            let bias = self.u64(modules[self.u32(at + 4) as usize] + 8);
            let text = texts + self.u32(at + 16) as usize;
            let text = &self.0[text..text + self.u32(at + 20) as usize];
            let label = text.split(|&byte| byte == 0).nth(2).unwrap();
            (bias.wrapping_add(self.u64(at + 8)), String::from_utf8(label.to_owned()).unwrap())
        };
        self.region(2).into_iter().map(site).collect()
    }
    /// Names of locks by their addresses.
    fn lock_name(&self, lock: u64) -> String {
        let named = self.region(5).into_iter().find(|&at| self.u32(at) != 0 && self.u64(at + 8) == lock);
        named.map_or_else(|| format!("{lock:x}"), |at| self.text(at + 16, 48))
    }
    fn location(&self, address: u64) -> Option<(String, u64)> {
        let at = self.region(6).into_iter().find(|&at| self.u32(at) != 0 && self.u64(at + 8) == address)?;
        Some((self.text(at + 32, 96), self.u32(at + 16)))
    }
}

/// Everybody who had a slot.
fn owners(ring: &Path) -> Vec<Owner> {
    const PAYLOAD: u64 = (1 << 48) - 1;
    let file = File(std::fs::read(ring).unwrap());
    let (words, slot_len) = (file.u32(164), file.u64(168) as usize);
    assert_eq!(file.u32(2904) as usize, TASK_PART_LEN, "the ring has room for tasks");
    assert_eq!(file.u64(2920), 0, "no task was refused");
    let sites = file.sites();
    let owner = |at: usize| {
        let (count, first) = (file.u64(at + 504), file.u64(at + 40));
        let payloads = (count.saturating_sub(words).max(first)..count).filter_map(|sequence| {
            let word = file.u64(at + SLOT_HEADER_LEN + 8 * (sequence % words) as usize);
            assert_eq!(word >> 49, sequence & 0x7fff, "each word of {count} is there");
            (word >> 48 & 1 == 0).then_some(word & PAYLOAD)
        });
        let label = |pc: u64| sites.iter().find(|&&(site, _)| site == pc).map(|(_, label)| label.clone());
        let held = (0..16).map(|index| at + 112 + 24 * index).filter(|&entry| file.u64(entry + 8) != 0);
        let task = at + slot_len - TASK_PART_LEN;
        Owner {
            name: file.text(at + 64, 40),
            kind: file.u32(at + 4),
            state: file.u32(at),
            pid: file.u32(at + 12),
            tid: file.u32(at + 16),
            labels: payloads.filter_map(label).filter(|label| !label.is_empty()).collect(),
            count,
            held: held
                .map(|entry| (file.lock_name(file.u64(entry) & PAYLOAD), file.u64(entry + 8) >> 60 & 7))
                .collect(),
            turn: file.u64(task),
            origin: file.u64(task + 56) & 0xff,
            poller: file.u64(task + 16) as i64 / slot_len as i64,
            location: file.location(file.u64(task + 48)),
        }
    };
    file.region(4).into_iter().map(owner).collect()
}

#[track_caller]
fn named<'a>(owners: &'a [Owner], name: &str) -> &'a Owner {
    let mut found = owners.iter().filter(|owner| owner.name == name);
    let first = found.next().unwrap_or_else(|| panic!("nobody is called {name:?}: {owners:#?}"));
    assert!(found.next().is_none(), "{owners:#?}");
    first
}

fn is_suspended(coroutine: &Owner) -> bool {
    assert_eq!((coroutine.kind, coroutine.origin), (KIND_TASK, COROUTINE), "{coroutine:?}");
    coroutine.turn.is_multiple_of(2)
}

fn held(lock: &str, state: u64) -> (String, u64) {
    (lock.to_owned(), state)
}

fn example(source: &str) -> PathBuf {
    repository().join("examples/c").join(source)
}

/// An example that was killed when it was stuck.
struct Left {
    owners: Vec<Owner>,
    remains: Remains,
}

impl Left {
    fn by(program: PathBuf) -> Left {
        let mut victim = Plan::new(program, &[]).start();
        victim.until("stuck");
        let remains = victim.killed();
        Left { owners: owners(&remains.ring_path()), remains }
    }

    fn said(&self, arguments: &[&str]) -> String {
        answer(arguments, &self.remains.ring_path(), 0)
    }

    /// Asserts what `tasks -t` says of a coroutine: the line begins with its name and its state, and has all these
    /// parts. Returns the line below.
    #[track_caller]
    fn shows(&self, name: &str, state: &str, parts: &[&str]) -> String {
        let said = self.said(&["tasks", "-t"]);
        let mut lines = said.lines();
        let is_of_it = |line: &&str| line.starts_with(&format!("{name}[task "));
        let line = lines.by_ref().find(is_of_it).unwrap_or_else(|| panic!("{name}: {said}"));
        assert!(line.contains(&format!("]: {state}")), "{said}");
        expect(line, parts);
        lines.next().unwrap_or_default().to_owned()
    }
}

/// Builds an example.
fn built(compiler: Compiler, source: &str, flags: &[&str], libraries: &[&str]) -> PathBuf {
    let path = example(source);
    let libraries: Vec<String> = libraries.iter().map(|&library| library.to_owned()).collect();
    let (name, flags) = (format!("{source}-{}", compiler.name), [&["-g", "-O2"], flags].concat());
    build_with(compiler, &[path.to_str().unwrap()], &name, &flags, &[shared(), libraries].concat())
}

/// `FILE:LINE` of the line with this text in an example.
fn place(source: &str, text: &str) -> String {
    format!("{source}:{}", line_of(example(source).to_str().unwrap(), text))
}

#[test]
fn deadlocked_coroutines_of_ucontext_have_their_locks_and_what_they_recorded_before_and_after_a_resume() {
    let source = "coroutines.c";
    let [waits, acquired, made] =
        ["RIP_LOCK_WAIT(", "RIP_LOCK_ACQUIRED(", "rip_context_create("].map(|text| place(source, text));
    for compiler in installed(&[GCC, CLANG]) {
        let left = Left::by(built(compiler, source, &[], &[]));
        let groups = left.said(&["tasks"]);
        let check = answer(&["check"], &left.remains.ring_path(), 1);
        expect(
            &check,
            &["potential deadlock: 2 tasks wait for one another", "doubt: a lock is marked by hand"],
        );
        for (name, has, wants) in [("there", "alice", "bob"), ("back", "bob", "alice")] {
            let coroutine = named(&left.owners, name);
            assert!(is_suspended(coroutine) && coroutine.state == LIVE);
            assert_eq!(coroutine.turn, 2 * 1000, "each round resumes it");
            assert_eq!(coroutine.labels, ["begins a transfer", "was resumed"]);
            assert_eq!(coroutine.held, [held(has, HELD), held(wants, WAITING)]);
            let (file, line) = coroutine.location.clone().unwrap();
            assert!(format!("{file}:{line}").ends_with(&made), "{file}:{line}");
            let waiting = format!(", waiting for {wants} at acquire {waits}");
            expect(&groups, &[&format!("suspended{waiting} : 1 coroutine")]);
            let made = format!(", made at {made}, 1000 polls");
            let holds = left.shows(name, "suspended", &[&waiting, &made]);
            assert_eq!(holds, format!("    holds {has}, acquired at acquire {acquired}"));
            // What it holds, and what it waits for.
            let own = format!("    {name}[task ");
            let mut lines = check.lines().filter(|line| line.starts_with(&own));
            let (first, second) = (lines.next().expect(&check), lines.next().expect(&check));
            expect(first, &[&format!("] holds {has}"), &format!(", acquired at acquire {acquired}")]);
            expect(second, &[&format!("] waits for {wants} at acquire {waits}")]);
        }
        let scheduler = named(&left.owners, "scheduler");
        assert_eq!((scheduler.kind, &scheduler.held[..]), (KIND_THREAD, &[][..]));
        assert_eq!(scheduler.labels, ["gives up"], "what coroutines record is not the thread's");
        let index = |name: &str| left.owners.iter().position(|owner| owner.name == name).unwrap() as i64;
        for coroutine in ["there", "back"] {
            assert_eq!(index(coroutine) + named(&left.owners, coroutine).poller, index("scheduler"));
        }
    }
}

#[test]
fn fibers_of_a_switch_in_assembly_have_histories_and_the_one_that_ran_is_known() {
    let source = "fibers.c";
    let places = [r#"RIP_EVENT("made item"#, r#""waits for nothing""#, "rip_context_create("];
    let [made, waits, created] = places.map(|text| place(source, text));
    for compiler in installed(&[GCC, CLANG]) {
        let left = Left::by(built(compiler, source, &[], &[]));
        let producer = named(&left.owners, "producer");
        assert!(is_suspended(producer));
        let [made_item, again] = ["made item %d", "wants to make another"];
        assert_eq!(producer.labels, [made_item, again, made_item, again, made_item]);
        let consumer = named(&left.owners, "consumer");
        assert!(!is_suspended(consumer), "the program died while it ran");
        let [got, another] = ["got item %d", "wants another"];
        assert_eq!(consumer.labels, [got, another, got, another, got, "waits for nothing"]);
        assert_eq!((producer.turn, consumer.turn), (2 * 3, 2 * 3 - 1));
        assert_eq!(named(&left.owners, "thread").labels, ["starts the fibers"]);
        let [at, last] = [format!(" at produce {made}"), format!(", last at consume {waits}")];
        let groups = left.said(&["tasks"]);
        expect(&groups, &[&format!("suspended{at} : 1 coroutine"), &format!("runs{last} : 1 coroutine")]);
        let created = format!(", made at {created}, 3 polls");
        left.shows("producer", "suspended", &[&at, &created]);
        left.shows("consumer", "runs on thread[", &[&last, &created]);
        expect(&left.said(&["check"]), &["no findings in 1 thread, 2 tasks and 0 locks"]);
    }
}

#[test]
fn of_fibers_of_boost_it_is_known_which_one_keeps_the_lock_while_it_is_suspended() {
    let source = "fibers.cc";
    let has_boost = ["-include", "boost/context/fiber.hpp", "-lboost_context"];
    let can_build = |compiler: &Compiler| can(compiler.name, &has_boost, directory());
    let [waits, acquired] = ["RIP_LOCK_WAIT(", "RIP_LOCK_ACQUIRED("].map(|text| place(source, text));
    let [awaits, made] = ["\"awaits the flusher\"", ": context(name)"].map(|text| place(source, text));
    for compiler in installed(&[GPP, CLANGPP]).into_iter().filter(can_build) {
        let left = Left::by(built(compiler, source, &[], &["-lboost_context"]));
        let [writer, flusher] = ["writer", "flusher"].map(|name| named(&left.owners, name));
        assert!(is_suspended(writer) && is_suspended(flusher));
        assert_eq!((&writer.labels[..], writer.turn), (&["awaits the flusher".to_owned()][..], 2));
        assert_eq!((&flusher.labels[..], flusher.turn), (&["wants to flush".to_owned()][..], 2));
        assert_eq!((writer.held.len(), writer.held[0].1), (1, HELD));
        assert_eq!(flusher.held, [held(&writer.held[0].0, WAITING)]);
        assert_eq!(named(&left.owners, "scheduler").labels, ["has nothing to run"]);
        let created = format!(", made at {made}, 1 poll");
        let holds = left.shows("writer", "suspended", &[&format!(" at write {awaits}"), &created]);
        assert_eq!(holds, format!("    holds journal, acquired at Mutex::lock() {acquired}"));
        let waiting = format!(", waiting for journal at Mutex::lock() {waits}");
        left.shows("flusher", "suspended", &[&waiting, &created]);
        expect(&left.said(&["tasks"]), &[&format!("suspended{waiting} : 1 coroutine")]);
        let check = answer(&["check", "--threshold", "1us"], &left.remains.ring_path(), 1);
        expect(
            &check,
            &[
                "suspected long-wait: 1 thread or task waits for journal",
                &format!("] holds it, acquired at Mutex::lock() {acquired}\n"),
                "    meanwhile it is suspended",
                &format!("; it was last at write {awaits}\n"),
                "    next: release the lock before that await",
            ],
        );
    }
}

/// Whether a compiler has coroutines of C++20.
fn has_coroutines(compiler: Compiler) -> bool {
    let source = directory().join("has_coroutines.cc");
    std::fs::write(&source, "#ifndef __cpp_impl_coroutine\n#error\n#endif\n#include <coroutine>\n").unwrap();
    let mut command = Command::new(compiler.name);
    let has = command.args(["-std=c++20", "-fsyntax-only"]).arg(&source).output().unwrap().status.success();
    if !has {
        eprintln!("SKIPPED coroutines of C++20: {} has none", compiler.name);
    }
    has
}

#[test]
fn coroutines_of_cpp_have_histories_whichever_thread_resumes_them() {
    let source = "coroutines.cc";
    let places = [r#"RIP_EVENT("wants page"#, r#"RIP_EVENT("reads page"#, "traced_promise(name)"];
    let [awaits, reads, made] = places.map(|text| place(source, text));
    for compiler in installed(&[GPP, CLANGPP]).into_iter().filter(|&compiler| has_coroutines(compiler)) {
        let left = Left::by(built(compiler, source, &["-std=c++20"], &[]));
        let server = named(&left.owners, "serve");
        let [wants, has] = ["wants page %d", "has pages of %d bytes"];
        assert!(is_suspended(server));
        assert_eq!(server.labels, [wants, has, wants, has, wants]);
        let fetches: Vec<&Owner> = left.owners.iter().filter(|owner| owner.name == "fetch").collect();
        assert_eq!(fetches.iter().map(|fetch| fetch.state).collect::<Vec<_>>(), [EXITED, EXITED, LIVE]);
        for fetch in fetches {
            assert!(is_suspended(fetch));
            assert_eq!(fetch.labels, ["asks for page %d", "reads page %d"]);
        }
        for thread in left.owners.iter().filter(|owner| owner.kind == KIND_THREAD) {
            assert_eq!(thread.labels, [""; 0], "{thread:?}");
        }
        let groups = left.said(&["tasks"]);
        expect(&groups, &["; 2 tasks, and the last 2 that have ended\n"]);
        for (name, at, polls) in [("serve", &awaits, 3), ("fetch", &reads, 2)] {
            expect(&groups, &[&format!("{at} : 1 coroutine")]);
            let made = format!(", made at {made}, {polls} polls");
            left.shows(name, "suspended", &[&format!(" {at},"), &made]);
        }
    }
}

/// Runs a part of the fixture. Returns what it printed too.
fn part(argument: &str) -> (Vec<Owner>, String) {
    // The tests run beside one another.
    let name = format!("contexts-{argument}");
    let remains = run(&build(GCC, &["contexts.c"], &name, &["-g", "-O2"]), &[argument]);
    (owners(&remains.ring_path()), remains.stdout.trim().to_owned())
}

#[test]
fn a_coroutine_that_moves_from_thread_to_thread_takes_its_history_and_its_locks_along() {
    let (owners, other) = part("moves");
    let mover = named(&owners, "mover");
    assert!(is_suspended(mover));
    assert_eq!((mover.turn, &mover.labels[..]), (6, &["first", "second", "third"].map(str::to_owned)[..]));
    assert_eq!(mover.held, [held(&other, HELD)], "another thread released the first lock");
    let threads: Vec<&Owner> = owners.iter().filter(|owner| owner.kind == KIND_THREAD).collect();
    assert_eq!(threads.len(), 3);
    for thread in threads {
        assert_eq!(thread.labels, ["resumes", "has resumed"]);
        assert_eq!(thread.held, []);
    }
}

#[test]
fn a_coroutine_that_was_destroyed_has_ended_with_its_locks() {
    let (owners, lock) = part("ends");
    let holder = named(&owners, "holder");
    assert!(is_suspended(holder));
    assert_eq!((holder.state, &holder.held[..]), (EXITED, &[held(&lock, HELD)][..]));
    let present = named(&owners, "present");
    assert!(is_suspended(present) && present.state == EXITED);
    assert_eq!(present.labels, ["in the coroutine"]);
    assert_eq!(named(&owners, "main").labels, ["after its end"]);
}

#[test]
fn wrong_uses_of_contexts_do_no_harm() {
    let (owners, _) = part("misuse");
    let coroutine = named(&owners, "");
    assert!(is_suspended(coroutine) && coroutine.state == EXITED);
    assert_eq!(coroutine.labels, ["twice", "goes on"]);
    assert_eq!(named(&owners, "intruder").labels, ["intrudes", "has destroyed nothing"]);
    assert_eq!(named(&owners, "absent").labels, [""; 0]);
    assert_eq!(named(&owners, "main").labels, ["alone"]);
}

#[test]
fn of_several_threads_that_switch_to_one_coroutine_one_is_in_it() {
    let (owners, marks) = part("crowd");
    assert!(is_suspended(named(&owners, "crowded")));
    // Two threads that wrote to one slot would lose counts.
    let counted: u64 = owners.iter().map(|owner| owner.count).sum();
    assert_eq!(counted, marks.parse::<u64>().unwrap());
}

#[test]
fn threads_may_stop_recording_and_end_in_a_coroutine() {
    let (owners, _) = part("exits");
    assert_eq!(named(&owners, "left").labels, ["before rip_exit", "in it again"]);
    assert_eq!(named(&owners, "returned").labels, ["after rip_init", "out of it"]);
    assert_eq!(named(&owners, "ended").state, EXITED);
    let tomb = named(&owners, "tomb");
    assert_eq!((&tomb.labels[..], is_suspended(tomb)), (&["the thread's last words".to_owned()][..], false));
    assert_eq!(named(&owners, "main").labels, ["for itself"]);
}

#[test]
fn a_forked_child_records_for_itself_and_nothing_for_the_coroutines_of_its_parent() {
    let (owners, _) = part("forks");
    assert_eq!(named(&owners, "forker").labels, ["forks", "parent"]);
    assert_eq!((named(&owners, "unused").state, named(&owners, "unused").count), (LIVE, 0));
    let parent = named(&owners, "main");
    assert_eq!((parent.labels.len(), parent.tid), (0, parent.pid));
    let mut of_child = owners.iter().filter(|owner| owner.pid != parent.pid);
    let said: Vec<&[String]> = of_child.by_ref().map(|owner| &owner.labels[..]).collect();
    let itself = ["child", "child in a coroutine of the parent", "child in its own"].map(str::to_owned);
    assert_eq!(said, [&itself[..], &["child in a new one".to_owned()][..]]);
}

#[test]
fn a_program_without_coroutines_has_no_room_for_any() {
    let remains = run(&build(GCC, &["marks.c"], "no-contexts", &["-O2"]), &[]);
    assert_eq!(File(std::fs::read(remains.ring_path()).unwrap()).u32(2904), 0);
}

#[test]
#[ignore = "compiles for long: scripts/test-builds"]
fn the_header_for_cpp_compiles_without_a_warning_in_all_standards() {
    for compiler in installed(&[GPP, CLANGPP]) {
        for standard in compiler.standards {
            for disabled in [&["-DRIP_DISABLE"][..], &[]] {
                let mut command = Command::new(compiler.name);
                command.arg(fixture("contexts.cc")).args(STRICT).arg(format!("-std={standard}"));
                command.args(["-O2", "-pedantic", "-Wold-style-cast", "-Wshadow", "-Wconversion"]);
                command.args(disabled).args(package("Cflags")).arg("-c").arg("-o");
                tool(command.arg(directory().join(format!("contexts-{}.o", compiler.name))));
            }
        }
    }
}

#[test]
fn guards_and_promises_of_cpp_return_to_the_coroutine_that_resumed_another() {
    for compiler in installed(&[GPP, CLANGPP]).into_iter().filter(|&compiler| has_coroutines(compiler)) {
        for level in ["-O0", "-O2"] {
            let name = format!("contexts-{}{level}", compiler.name);
            let remains = run(&build(compiler, &["contexts.cc"], &name, &[level, "-std=c++20"]), &[]);
            let owners = owners(&remains.ring_path());
            assert_eq!(named(&owners, "outer").labels, ["outer begins", "outer goes on"]);
            assert_eq!(named(&owners, "inner").labels, ["inner"]);
            let generator = ["begins", "thrown", "ready", "refused", "was resumed", "ends"];
            assert_eq!(named(&owners, "generator").labels, generator, "{name}");
            assert_eq!(named(&owners, "generator").state, EXITED);
            assert_eq!(named(&owners, "consumer").labels, ["got one", "got another", "has ended"]);
            assert_eq!(named(&owners, "eager").labels, ["eager"]);
            assert_eq!(named(&owners, "main").labels, ["in main", "after the eager one"]);
        }
    }
}
