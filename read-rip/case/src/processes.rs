//! The processes of a ring: the one that made it, and the forked children that recorded in it.
//!
//! Each has a heading and threads of its own. It shows nothing: the commands do.

use std::collections::HashMap;

use read_rip_evidence::process::{Child, Liveness, children_in};
use read_rip_model::threads::Thread;
use read_rip_report as report;

use crate::reading::Reading;

/// Why nothing is known of a child's state: a saved ring only says which children had ended.
const NOT_SAVED: &str = "the saved ring does not say whether it was alive";

/// A process that recorded in a ring.
pub struct Process<'a> {
    /// Its id.
    pub pid: u32,
    /// One line about the process and its threads.
    pub heading: String,
    /// Its threads.
    pub threads: Vec<Thread<'a>>,
}

impl Reading {
    /// The processes that these threads are of: first the one that made the ring, then its children by their pids. The
    /// threads are sorted by process. `of_exited` is added to the numbers of exited threads.
    pub fn processes<'a>(&self, threads: &[Thread<'a>], of_exited: &str) -> Vec<Process<'a>> {
        let header = self.snapshot.header.as_ref();
        let Some(header) = header.filter(|header| threads.iter().any(|of| of.slot.pid != header.pid)) else {
            let heading = self.heading_with(threads, of_exited);
            return vec![Process { pid: self.pid().unwrap_or_default(), heading, threads: threads.to_vec() }];
        };
        let program = self.program();
        let mut by_process: HashMap<u32, Vec<Thread<'a>>> = HashMap::new();
        threads.iter().for_each(|of| by_process.entry(of.slot.pid).or_default().push(*of));
        let mut of = |pid| by_process.remove(&pid).unwrap_or_default();
        let own = of(header.pid);
        // That a child lives is said in the heading of the child.
        let liveness = match &self.liveness {
            Some(Liveness::Forked { .. }) => Some(&Liveness::Dead),
            other => other.as_ref(),
        };
        let heading = report::remarks::heading(&self.snapshot, &program, liveness, &own, of_exited);
        let heading = heading + &self.saved_when();
        let mut processes = vec![Process { pid: header.pid, heading, threads: own }];
        for mut child in children_in(header, &self.snapshot.slots) {
            if !self.asks_kernel {
                child.liveness = self.saved_state(&child);
            }
            let threads = of(child.pid);
            let heading =
                report::remarks::heading_of_child(&program, header.pid, &child, &threads, of_exited);
            processes.push(Process { pid: child.pid, heading, threads });
        }
        processes
    }

    /// What is known of a child in a saved ring.
    fn saved_state(&self, child: &Child) -> Liveness {
        match self.is_final() || self.ended.contains(&child.pid) {
            true => Liveness::Dead,
            false => Liveness::Unknown { why: NOT_SAVED },
        }
    }
}
