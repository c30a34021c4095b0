//! `--stop`: the exact stacks of threads that were stopped for a moment each, before the first of two readings.
//!
//! A thread that was stopped has run since. So nothing but its stack is taken from that moment, and only if the thread
//! is at the same place in the first reading, or runs. For how long it has slept is read before it is stopped.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use read_rip_evidence::process::live::{LiveTarget, resumes, stop_each};
use read_rip_evidence::stacks::{Stack, Unwinder};
use read_rip_evidence::standing::sleeps_at_same_place;
use read_rip_evidence::target::{CallKind, Registers, RunState, Sleep, Task, Unstopped};
use read_rip_symbols::Options;

use crate::inspection::ASLEEP_MAX;

/// How long the threads that were stopped may take to sleep again.
const PATIENCE: Duration = Duration::from_millis(100);

/// What was seen of threads while each was stopped.
#[derive(Debug, Default)]
pub(crate) struct StoppedStacks {
    /// Registers and stacks by thread id.
    stopped: HashMap<u32, (Registers, Stack)>,
    /// What each thread slept in before.
    before: HashMap<u32, Task>,
    /// Since when each of these threads has slept, at the latest, by thread id.
    asleep: HashMap<u32, Instant>,
    /// Why threads were not stopped.
    pub unstopped: Option<Unstopped>,
}

impl StoppedStacks {
    /// Stops the threads of a process one after the other. Those that would notice it are left alone. `options` say how
    /// files are found.
    pub(crate) fn of(live: &LiveTarget, options: &Options) -> StoppedStacks {
        let Ok(target) = live.target() else { return StoppedStacks::default() };
        if target.hidden.is_some() {
            // The reason is said anyway.
            return StoppedStacks::default();
        }
        let asleep = target.tasks.iter().filter(|task| task.sleep.is_some()).take(ASLEEP_MAX);
        let asleep = asleep.filter_map(|task| {
            let asleep_ns = live.not_run_for(task)?;
            Some((task.tid, Instant::now().checked_sub(Duration::from_nanos(asleep_ns))?))
        });
        let asleep = asleep.collect();
        let memory = live.memory(&target.mappings);
        let tids: Vec<u32> = target.tasks.iter().filter(|task| resumes(task)).map(|task| task.tid).collect();
        let (stopped, unstopped) = stop_each(&tids, || {
            let mut unwinder = Unwinder::new(&target, &memory, options.clone());
            // The unwind tables are read before a thread is stopped.
            let mut places = HashSet::new();
            for registers in target.tasks.iter().filter_map(|task| task.registers.as_ref()) {
                if places.insert(registers.pc) {
                    unwinder.stack(Some(registers));
                }
            }
            move |registers: &Registers| (*registers, unwinder.stack(Some(registers)))
        });
        let slept = target.tasks.iter().filter(|task| task.sleep.is_some() && resumes(task));
        let slept: Vec<u32> = slept.map(|task| task.tid).collect();
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline
            && live.tasks_of(&slept).iter().any(|task| task.state == RunState::Running)
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        let before = target.tasks.into_iter().map(|task| (task.tid, task)).collect();
        StoppedStacks { stopped: stopped.into_iter().collect(), before, asleep, unstopped }
    }

    /// The kernel shows a call that was stopped and goes on as `restart_syscall`: it is the one from before.
    pub(crate) fn restore_calls(&self, tasks: &mut [Task]) {
        for task in tasks {
            if let (Some(Sleep::Call(now)), Some(before)) = (task.sleep, self.before.get(&task.tid))
                && let Some(Sleep::Call(call)) = before.sleep
                && now.kind == CallKind::Restarted
                && now.arguments == call.arguments
                && task.registers == before.registers
            {
                task.sleep = before.sleep;
            }
        }
    }

    /// Since when threads have slept, at the latest, by thread id: those that sleep where they did before. That they
    /// were stopped does not count.
    pub(crate) fn asleep_since(&self, tasks: &[Task]) -> HashMap<u32, Instant> {
        let is_there = |task: &&Task| {
            self.before.get(&task.tid).is_some_and(|before| sleeps_at_same_place(before, task))
        };
        let there = tasks.iter().filter(is_there);
        there.filter_map(|task| Some((task.tid, *self.asleep.get(&task.tid)?))).collect()
    }

    /// The stack of a thread in the first reading, if it is exact.
    pub(crate) fn stack(&self, task: &Task) -> Option<&Stack> {
        let (registers, stack) = self.stopped.get(&task.tid)?;
        let is_there = |now: Registers| (now.pc, now.sp) == (registers.pc, registers.sp);
        let is_exact = task.registers.map_or(task.state == RunState::Running, is_there);
        is_exact.then_some(stack)
    }
}
