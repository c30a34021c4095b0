//! What keeps threads from running that wait for no other thread: the freezer, and what a thread is in in the kernel.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Peer;

/// What the freezer of control groups does to a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Freezer {
    Thawed,
    /// None of the threads runs until somebody thaws the group that is frozen.
    Frozen {
        /// The file of that group by which it is thawed: `cgroup.freeze`, or `freezer.state` of version 1.
        switch: PathBuf,
    },
}

impl Freezer {
    /// The file by which a frozen group is thawed, and what to write to it; `None` if it is not frozen.
    pub fn thaw(&self) -> Option<(&Path, &'static str)> {
        let Freezer::Frozen { switch } = self else { return None };
        let text = if switch.ends_with("freezer.state") { "THAWED" } else { "0" };
        Some((switch, text))
    }
}

/// What a thread that sleeps in the kernel is in there, as far as this reader may know it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelWait {
    /// The functions of the kernel, the innermost first. Without root's rights the innermost one alone.
    pub functions: Vec<String>,
    /// The file that the call is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The file system that has the file, if another program or a server answers for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<RemoteMount>,
}

impl KernelWait {
    /// Whether the thread opens a FIFO, and waits for somebody who opens its other end.
    pub fn is_fifo_open(&self) -> bool {
        self.functions.first().is_some_and(|function| function == "wait_for_partner")
    }

    /// Whether a server, or the program behind a FUSE file system, has not answered yet.
    pub fn awaits_server(&self) -> bool {
        const WAITS: [&str; 4] =
            ["request_wait_answer", "rpc_wait_bit_killable", "fuse_get_req", "wait_for_response"];
        self.functions.iter().any(|function| WAITS.contains(&function.as_str()))
    }
}

/// A file system for which another program or a server answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteMount {
    /// Where it is mounted.
    pub point: PathBuf,
    /// What the kernel calls it, as in `fuse.sshfs` or `nfs4`.
    pub kind: String,
    /// What is mounted, as in `host:/export`.
    pub source: String,
    /// The number by which `/sys/fs/fuse/connections` knows it; `None` if it is no FUSE file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u32>,
    /// The processes that answer for it, as far as they are known.
    pub servers: Vec<Peer>,
}
