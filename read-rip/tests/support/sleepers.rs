//! Programs whose threads sleep at a known depth of known functions, and their stacks as the reader sees them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use read_rip_evidence::process::live::{LiveMemory, LiveTarget};
use read_rip_evidence::stacks::{Stack, Unwinder};
use read_rip_evidence::target::Target;
use read_rip_files::Module;
use read_rip_symbols::{Options, Resolver};

/// How long a thread may take to sleep, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running program. It ends with the test.
pub(crate) struct Sleepers {
    child: Child,
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Sleepers {
    /// Starts a program, which prints how many threads it starts beside its first one, and waits until all of them
    /// sleep.
    pub(crate) fn start(command: &mut Command) -> Sleepers {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let sleepers = Sleepers { child };
        let threads: usize = line.trim().parse().unwrap();
        let deadline = Instant::now() + PATIENCE;
        let mut last = Vec::new();
        loop {
            let now = sleepers.target().tasks;
            let asleep = now.iter().filter(|task| task.registers.is_some()).count();
            let now: Vec<_> = now.into_iter().map(|task| (task.tid, task.registers)).collect();
            // Twice the same: a thread may sleep for a moment on its way.
            if asleep == threads + 1 && now.len() == asleep && now == last {
                return sleepers;
            }
            assert!(Instant::now() < deadline, "{asleep} of {threads} threads sleep");
            last = now;
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn target(&self) -> Target {
        LiveTarget::open(self.pid()).unwrap().target().unwrap()
    }

    pub(crate) fn memory(&self, target: &Target) -> LiveMemory {
        LiveTarget::open(self.pid()).unwrap().memory(&target.mappings)
    }

    /// The stacks of all threads, each with the names of its functions.
    pub(crate) fn stacks(&self) -> Vec<Named> {
        self.stacks_of(&self.target())
    }

    /// As [`Sleepers::stacks`], of a target that was read earlier.
    pub(crate) fn stacks_of(&self, target: &Target) -> Vec<Named> {
        let memory = self.memory(target);
        let mut unwinder = Unwinder::new(target, &memory, options());
        let mut names = Names::new(target);
        let tasks = target.tasks.iter();
        tasks.map(|task| names.of(unwinder.stack(task.registers.as_ref()))).collect()
    }
}

/// A stack, and the names of its functions, from the innermost.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) stack: Stack,
    pub(crate) names: Vec<String>,
}

pub(crate) struct Names {
    resolver: Resolver,
    modules: Vec<Module>,
}

impl Names {
    pub(crate) fn new(target: &Target) -> Names {
        Names { resolver: Resolver::new(&target.modules, options()), modules: target.modules.clone() }
    }

    pub(crate) fn of(&mut self, stack: Stack) -> Named {
        let mut names = Vec::new();
        for frame in &stack.frames {
            let found = self
                .modules
                .iter()
                .enumerate()
                .find_map(|(index, module)| Some((index, module.relative(frame.lookup())?)));
            let frames =
                found.map(|(module, address)| self.resolver.resolve(module, address)).unwrap_or_default();
            if frames.is_empty() {
                names.push(format!("{:#x}", frame.pc));
            }
            names.extend(frames.into_iter().map(|frame| frame.function.as_deref().unwrap_or("?").to_owned()));
        }
        Named { stack, names }
    }
}

fn options() -> Options {
    Options { debug_dirs: Vec::new(), ..Options::default() }
}
