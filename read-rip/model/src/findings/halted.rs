//! Threads that do not run, and that wait for no other thread.
//!
//! # Question
//!
//! Has somebody stopped the process, or does a disk or a server not answer it?
//!
//! # Method
//!
//! The kernel says which threads a signal or a tracer has stopped, which control group is frozen, and what a thread
//! sleeps in that no signal wakes. It must have been so in two readings, and the thread must not have run in between.
//! One that sleeps in the kernel must have done so for a second: a disk takes milliseconds.
//!
//! # Blind spots
//!
//! Somebody may have stopped the process on purpose: a debugger does. A kernel that does not show when a thread ran
//! last makes the time between the readings count. Without root's rights, only the innermost function of the kernel is
//! known.
//!
//! # Example output
//!
//! ```text
//! proven frozen: the freezer of control groups keeps all 3 threads from running
//!     `echo 0 > /sys/fs/cgroup/batch/cgroup.freeze` thaws the group
//! suspected disk-sleep: 1 thread sleeps in the kernel, for at least 41 s
//!     in request_wait_answer of the kernel, about /mnt/a, of the file system fuse.sshfs at /mnt (host:/home)
//!     sshfs[812] answers for it; `echo 1 > /sys/fs/fuse/connections/57/abort` ends all its requests with errors
//! ```

use read_rip_evidence::target::KernelWait;
use serde::Serialize;

use super::LATELY_NS;
use super::words::lasting;
use super::{About, Advice, Analysis, Basis, Confidence, Doubt, Finding, Kind, Paragraph, View, Words};
use crate::locks::{Halt, HaltCause, ThreadId};
use crate::units::agree;

/// See the file's description.
pub(super) struct Halted;

/// At most this many threads are listed.
const LISTED_MAX: usize = 5;

/// Threads that do not run, and that wait for no other thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotRunning {
    /// The process, if it is another one than was asked about: its pid in its own PID namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How many threads.
    pub count: usize,
    /// How many threads the process has.
    pub threads: usize,
    /// Some of them.
    pub first: Vec<ThreadId>,
    /// For how long the one that ran last has not run, ns, at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub still_ns: Option<u64>,
    /// The process that traces them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracer: Option<u32>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracer_name: Option<String>,
    /// The file by which the frozen control group is thawed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thawed_by: Option<String>,
    /// The functions of the kernel that they sleep in, the innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kernel_functions: Vec<String>,
    /// The file that their call is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Where the file system is mounted that has the file, if another program or a server answers for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount: Option<String>,
    /// The processes that answer for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<u32>,
    /// What to say of the cause, a line each.
    #[serde(skip)]
    lines: Vec<String>,
    /// What to say of one thread, and of several.
    #[serde(skip)]
    verbs: [&'static str; 2],
}

impl Analysis for Halted {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        // Who waits for another process is told what has stopped that one.
        let is_partner = |pid: u32| {
            let partners = view.now.stopped_partners.iter().flat_map(|of| &of.stopped);
            pid != view.now.pid && partners.into_iter().any(|partner| partner.own_pid == pid)
        };
        // So is who waits for the program behind a file system, in a deadlock with it.
        let links = || view.now.knots.iter().flat_map(|knot| &knot.links);
        let is_told = |halt: &Halt| {
            matches!(halt.cause, HaltCause::Kernel(_))
                && halt.threads.iter().all(|&thread| links().any(|link| link.thread == thread))
        };
        let pid_of = |halt: &Halt| halt.threads.first().map(|&thread| view.now.threads[thread].pid);
        let halts = view.now.halts.iter();
        let halts = halts.filter(|halt| !pid_of(halt).is_some_and(is_partner) && !is_told(halt));
        found.extend(halts.filter_map(|halt| finding(view, halt)));
    }
}

fn finding(view: &View<'_>, halt: &Halt) -> Option<Finding> {
    let threads = &halt.threads;
    let pid = view.now.threads[*threads.first()?].pid;
    let exists = |thread: &&crate::locks::ThreadLocks| thread.pid == pid && thread.seen.is_some();
    let asleep_ns = |&id: &ThreadId| view.now.threads[id].seen?.asleep_ns.map(std::num::NonZeroU64::get);
    let still_ns = threads.iter().filter_map(asleep_ns).min().max(view.now.window_ns);
    let mut evidence = NotRunning {
        pid: (pid != view.now.pid).then_some(pid),
        count: threads.len(),
        threads: view.now.threads.iter().filter(exists).count(),
        first: threads.iter().copied().take(LISTED_MAX).collect(),
        still_ns,
        verbs: ["is stopped by a signal", "are stopped by a signal"],
        ..NotRunning::default()
    };
    let (kind, confidence, advice) = match &halt.cause {
        HaltCause::Signal => (Kind::Stopped, Confidence::Proven, Advice::Continue),
        HaltCause::Tracer(tracer, name) => {
            evidence.verbs = ["is stopped by its tracer", "are stopped by their tracer"];
            evidence.lines.extend(tracer.map(|pid| match name {
                Some(name) => format!("{name}[{pid}] traces the process"),
                None => format!("process {pid} traces it"),
            }));
            (evidence.tracer, evidence.tracer_name) = (*tracer, name.clone());
            (Kind::Traced, Confidence::Proven, Advice::Detach)
        }
        HaltCause::Freezer(freezer) => {
            let (switch, text) = freezer.thaw()?;
            evidence.verbs = ["is frozen by its control group", "are frozen by their control group"];
            evidence.lines.push(format!("`echo {text} > {}` thaws the group", switch.display()));
            evidence.thawed_by = Some(switch.display().to_string());
            (Kind::Frozen, Confidence::Proven, Advice::Thaw)
        }
        HaltCause::Kernel(wait) => {
            if still_ns.is_none_or(|still_ns| still_ns < LATELY_NS) {
                return None;
            }
            evidence.verbs = ["sleeps in the kernel", "sleep in the kernel"];
            describe(&mut evidence, wait);
            (Kind::DiskSleep, Confidence::Suspected, Advice::AskServer)
        }
    };
    // Advice names the process that was asked about.
    let advice = match (pid == view.now.pid, kind) {
        (true, _) | (false, Kind::DiskSleep) => advice,
        (false, _) => {
            let command = (kind == Kind::Stopped).then(|| format!("`kill -CONT {pid}` lets it run on"));
            evidence.lines.extend(command);
            Advice::LetPartnerRun
        }
    };
    let mut finding = Finding::new(kind, confidence, evidence, advice);
    finding.doubts.extend((kind == Kind::DiskSleep).then_some(Doubt::SlowAnswer));
    finding.threads_hurt = threads.len();
    Some(finding)
}

/// Adds what threads are in in the kernel.
fn describe(evidence: &mut NotRunning, wait: &KernelWait) {
    let mut line = match wait.functions.as_slice() {
        [] => "in the kernel".to_owned(),
        functions => format!("in {} of the kernel", functions.join(", called from ")),
    };
    if let Some(path) = &wait.path {
        line += &format!(", about {}", path.display());
        evidence.path = Some(path.display().to_string());
    }
    evidence.kernel_functions.clone_from(&wait.functions);
    if let Some(mount) = &wait.mount {
        line +=
            &format!(", of the file system {} at {} ({})", mount.kind, mount.point.display(), mount.source);
        evidence.mount = Some(mount.point.display().to_string());
        evidence.servers = mount.servers.iter().map(|server| server.pid).collect();
    }
    evidence.lines.push(line);
    let Some(mount) = &wait.mount else { return };
    let abort = mount.connection.map(|number| {
        format!("`echo 1 > /sys/fs/fuse/connections/{number}/abort` ends all its requests with errors")
    });
    let servers: Vec<String> =
        mount.servers.iter().map(|server| format!("{}[{}]", server.name, server.pid)).collect();
    let answers = (!servers.is_empty())
        .then(|| format!("{} {} for it", servers.join(", "), agree(servers.len(), "answers", "answer")));
    let line: Vec<String> = answers.into_iter().chain(abort).collect();
    evidence.lines.extend((!line.is_empty()).then(|| line.join("; ")));
}

impl Basis for NotRunning {
    fn about(&self, all: &mut About<'_>) {
        self.first.iter().for_each(|&thread| all.thread(thread, None));
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let which = match (self.count, self.threads) {
            (1, 1) => "the only thread".to_owned(),
            (count, all) if count == all => format!("all {all} threads"),
            (count, all) => format!("{count} of {all} threads"),
        };
        let verb = agree(self.count, self.verbs[0], self.verbs[1]);
        let of = self.pid.map_or_else(String::new, |pid| format!(" of process {pid}"));
        let summary = format!("{which}{of} {verb}{}", lasting(", for at least ", self.still_ns));
        let names: Vec<String> = self.first.iter().map(|&thread| words.thread(thread)).collect();
        let more = if self.count > self.first.len() { ", ..." } else { "" };
        let who = (self.count < self.threads).then(|| format!("{}{more}", names.join(", ")));
        Paragraph {
            summary,
            evidence: who.into_iter().chain(self.lines.iter().map(|line| words.text(line))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::findings::testing::{SECOND, Scene, seen};
    use crate::locks::Doing;

    fn scene(cause: HaltCause, asleep_ns: u64) -> Scene {
        let mut scene = Scene::new();
        let thread = scene.thread("worker");
        let seen = seen(Doing::Stopped, true);
        scene.model.threads[thread].seen =
            Some(crate::locks::Seen { asleep_ns: NonZeroU64::new(asleep_ns), ..seen });
        scene.model.halts.push(Halt { cause, threads: vec![thread] });
        scene
    }

    #[test]
    fn what_has_stopped_a_process_is_said_with_what_lets_it_run() {
        let found = scene(HaltCause::Tracer(Some(7), Some("gdb".into())), SECOND).run(&Halted);
        assert_eq!((found[0].kind, found[0].confidence), (Kind::Traced, Confidence::Proven));
        let frozen =
            read_rip_evidence::target::Freezer::Frozen { switch: "/sys/fs/cgroup/a/cgroup.freeze".into() };
        let found = scene(HaltCause::Freezer(frozen), SECOND).run(&Halted);
        assert_eq!((found[0].kind, &*found[0].advice), (Kind::Frozen, &[Advice::Thaw][..]));
        let found = scene(HaltCause::Signal, SECOND).run(&Halted);
        assert_eq!((found[0].kind, &*found[0].advice), (Kind::Stopped, &[Advice::Continue][..]));
    }

    #[test]
    fn another_process_is_named() {
        let mut scene = scene(HaltCause::Tracer(Some(7), Some("gdb".into())), SECOND);
        scene.model.threads[0].pid += 1;
        let [found] = &scene.run(&Halted)[..] else { panic!("one finding") };
        assert_eq!(
            scene.says(found).0,
            "the only thread of process 4243 is stopped by its tracer, for at least 1.0 s"
        );
        assert_eq!(found.advice, [Advice::LetPartnerRun]);
    }

    #[test]
    fn a_disk_may_take_a_moment() {
        let wait = || {
            HaltCause::Kernel(KernelWait {
                functions: vec!["folio_wait_bit".into()],
                ..KernelWait::default()
            })
        };
        assert!(scene(wait(), SECOND / 2).run(&Halted).is_empty());
        let found = scene(wait(), 2 * SECOND).run(&Halted);
        assert_eq!((found[0].kind, found[0].confidence), (Kind::DiskSleep, Confidence::Suspected));
    }
}
