//! The runtimes of languages that have locks, threads or tasks of their own: which one a process has, and who knows
//! more of it.
//!
//! A runtime keeps what its threads wait for in objects of its own heap. Native stacks show that a thread waits, and
//! not for whom. So a process with a runtime is not called sound because its pthread locks are.
//!
//! | file | what it has |
//! |---|---|
//! | `interior` | the values: threads, frames and locks as a runtime knows them |
//! | `python` | those of CPython |
//! | `go` | those of Go |
//! | `tokio` | the tasks of tokio, which is no language, but as much of a runtime |
//! | `pages` | memory that is read by pages |
//! | `exported` | the address of a symbol that a module exports, from memory alone |

mod exported;
mod go;
mod interior;
mod pages;
mod python;
mod tokio;

pub use interior::{
    InnerDoing, InnerHold, InnerLock, InnerTasks, InnerThread, InnerWait, Interior, SourceFrame,
};
pub(crate) use tokio::{APART_MIN_NS as TOKIO_APART_NS, TokioLists};
pub use tokio::{
    AwaitChain, AwaitStep, AwaitedLock, HeldLock, PolledFunction, PoolWait, TaskStage, TokioLock,
    TokioLockKind, TokioTask, TokioTasks, UsedUp, pools_among,
};

use std::path::Path;

use read_rip_files::Module;
use serde::{Deserialize, Serialize};

use crate::target::{Memory, Target, has_note};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runtime {
    /// A Java virtual machine.
    Java,
    DotNet,
    Mono,
    Python,
    /// Node.js, and what is built like it.
    Node,
    /// Ruby's own interpreter.
    Ruby,
    /// The virtual machine of Erlang and Elixir.
    Erlang,
    /// The runtime that is in each program in Go.
    Go,
}

/// What a runtime is recognised by, and what is said of it.
struct Row {
    runtime: Runtime,
    name: &'static str,
    /// How the names of its libraries begin.
    libraries: &'static [&'static str],
    /// The names of its programs, but for a version at the end.
    programs: &'static [&'static str],
    /// What its library exports, or a program that has it inside.
    symbol: Option<&'static str>,
    unseen: &'static str,
    tool: &'static str,
    shows: &'static str,
}

/// To add a runtime: a line here, and one in `docs/limits.md`.
const ROWS: [Row; 8] = [
    Row {
        runtime: Runtime::Java,
        name: "Java",
        libraries: &["libjvm."],
        programs: &[],
        symbol: Some("JNI_CreateJavaVM"),
        unseen: "Java's monitors and locks",
        tool: "jstack PID",
        shows: "shows who has them",
    },
    Row {
        runtime: Runtime::DotNet,
        name: ".NET",
        libraries: &["libcoreclr."],
        programs: &[],
        symbol: None,
        unseen: ".NET's monitors",
        tool: "dotnet-stack report -p PID",
        shows: "shows where its threads are",
    },
    Row {
        runtime: Runtime::Mono,
        name: "Mono",
        libraries: &["libmono"],
        programs: &["mono", "mono-sgen"],
        symbol: Some("mono_jit_init"),
        unseen: "Mono's monitors",
        tool: "kill -QUIT PID",
        shows: "makes it print where its threads are",
    },
    Row {
        runtime: Runtime::Python,
        name: "Python",
        libraries: &["libpython"],
        programs: &["python"],
        symbol: Some("_PyRuntime"),
        unseen: "Python's locks and tasks",
        tool: "py-spy dump --pid PID",
        shows: "shows where its threads are",
    },
    Row {
        runtime: Runtime::Node,
        name: "JavaScript",
        libraries: &["libnode"],
        programs: &["node", "nodejs", "electron"],
        symbol: Some("node_module_register"),
        unseen: "the promises and workers of Node.js",
        tool: "node inspect -p PID",
        shows: "attaches its debugger",
    },
    Row {
        runtime: Runtime::Ruby,
        name: "Ruby",
        libraries: &["libruby"],
        programs: &["ruby"],
        symbol: Some("ruby_init"),
        unseen: "Ruby's locks and queues",
        tool: "rbspy dump --pid PID",
        shows: "shows where its threads are",
    },
    Row {
        runtime: Runtime::Erlang,
        name: "Erlang",
        libraries: &[],
        programs: &["beam.smp", "beam"],
        symbol: Some("erl_drv_mutex_lock"),
        unseen: "Erlang's processes",
        tool: "erl -sname look -remsh NODE",
        shows: "shows them, with `i().`",
    },
    Row {
        runtime: Runtime::Go,
        name: "Go",
        libraries: &[],
        programs: &[],
        symbol: None,
        unseen: "the owners of Go's locks",
        tool: "dlv attach PID",
        shows: "shows its goroutines, with `goroutines -t`; `kill -QUIT PID` prints them and ends the process",
    },
];

impl Runtime {
    /// The runtime among the modules of a process, by the names of their files.
    pub fn of_modules(modules: &[Module]) -> Option<Runtime> {
        let is_of = |row: &Row, module: &Module| {
            let Some(name) = module.path.file_name().and_then(|name| name.to_str()) else { return false };
            row.libraries.iter().any(|begin| name.starts_with(begin))
                || module.is_executable && row.programs.iter().any(|program| is_version_of(name, program))
        };
        let found = ROWS.iter().find(|row| modules.iter().any(|module| is_of(row, module)));
        found.map(|row| row.runtime)
    }

    /// The runtime of a process: by the names of its files, or else by what its program has in memory.
    pub fn of(target: &Target, memory: &dyn Memory) -> Option<Runtime> {
        let of_modules = Runtime::of_modules(&target.modules);
        let program = || target.modules.iter().find(|module| module.is_executable);
        of_modules.or_else(|| Runtime::of_program(program()?, memory))
    }

    /// The runtime that a program has inside, whatever its name is.
    fn of_program(program: &Module, memory: &dyn Memory) -> Option<Runtime> {
        if has_note(program, b"Go\0\0", memory) {
            return Some(Runtime::Go);
        }
        let exports = exported::Exports::of(program, memory)?;
        let has = |row: &&Row| row.symbol.is_some_and(|symbol| exports.address_of(symbol).is_some());
        ROWS.iter().find(has).map(|row| row.runtime)
    }

    /// Whether the data of some versions of it are understood.
    pub fn has_interior(self) -> bool {
        matches!(self, Runtime::Python | Runtime::Go)
    }

    /// What the runtime's own data say of a process; `None` if they are not understood.
    pub fn interior(self, target: &Target, memory: &dyn Memory) -> Option<Interior> {
        match self {
            Runtime::Python => python::interior(target, memory),
            Runtime::Go => go::interior(target, memory),
            _ => None,
        }
    }

    fn row(self) -> &'static Row {
        // SANITY: each runtime has a row: a test compares.
        ROWS.iter().find(|row| row.runtime == self).expect("a row for each runtime")
    }

    /// What the language is called.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What of it is not seen.
    pub fn unseen(self) -> &'static str {
        self.row().unseen
    }

    /// The command that shows what is not seen in a process, and what it does: "`jstack 12` shows who has them".
    pub fn advice(self, pid: u32) -> String {
        let Row { tool, shows, .. } = self.row();
        format!("`{tool}` {shows}").replace("PID", &pid.to_string())
    }
}

/// Whether the name of a file is a program's, with a version perhaps: `python3.11`.
fn is_version_of(name: &str, program: &str) -> bool {
    let rest = Path::new(name).to_str().and_then(|name| name.strip_prefix(program));
    rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &str, is_executable: bool) -> Module {
        Module { path: path.into(), is_executable, ..Module::default() }
    }

    #[test]
    fn the_names_of_files_tell_the_runtime() {
        let of = |path: &str, is_executable| Runtime::of_modules(&[module(path, is_executable)]);
        assert_eq!(of("/usr/lib/jvm/java-17/lib/server/libjvm.so", false), Some(Runtime::Java));
        assert_eq!(of("/usr/share/dotnet/libcoreclr.so", false), Some(Runtime::DotNet));
        assert_eq!(of("/usr/bin/python3.11", true), Some(Runtime::Python));
        assert_eq!(of("/usr/lib/libpython3.12.so.1.0", false), Some(Runtime::Python));
        assert_eq!(of("/usr/bin/node", true), Some(Runtime::Node));
        assert_eq!(of("/usr/lib/erlang/erts-13/bin/beam.smp", true), Some(Runtime::Erlang));
        assert_eq!(of("/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1", false), Some(Runtime::Ruby));
        for other in ["/usr/bin/pythonista", "/usr/bin/nodemon", "/opt/monopoly", "/usr/bin/ls"] {
            assert_eq!(of(other, true), None, "{other}");
        }
        // A file that is mapped, but is not the program.
        assert_eq!(of("/usr/share/node", false), None);
    }

    #[test]
    fn each_runtime_has_advice_with_the_pid() {
        for row in &ROWS {
            let advice = row.runtime.advice(12);
            assert!(advice.contains("12") || row.runtime == Runtime::Erlang, "{advice}");
            assert!(!row.runtime.unseen().is_empty());
        }
        assert_eq!(Runtime::Java.advice(12), "`jstack 12` shows who has them");
    }
}
