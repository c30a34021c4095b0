//! Runtimes whose locks are objects of a heap that this reader does not interpret.

use crate::ring::Module;

/// A runtime of a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// How the name of its library begins.
    library: &'static str,
    /// Its locks.
    pub locks: &'static str,
    /// The program that shows their owners; it takes the process's id.
    pub tool: &'static str,
}

const RUNTIMES: [Runtime; 2] = [
    Runtime { library: "libjvm.", locks: "Java's monitors and locks", tool: "jstack" },
    Runtime { library: "libcoreclr.", locks: ".NET's monitors", tool: "dotnet-stack report -p" },
];

impl Runtime {
    /// The runtime among the modules of a process.
    pub fn of(modules: &[Module]) -> Option<Runtime> {
        let names = || modules.iter().filter_map(|module| module.path.file_name()?.to_str());
        RUNTIMES.into_iter().find(|runtime| names().any(|name| name.starts_with(runtime.library)))
    }
}
