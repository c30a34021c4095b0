//! The processes beneath a process. It sends no signals and waits for none.

use std::collections::HashMap;

use procfs::process::{Process, all_processes};
use read_rip_files::helper_pids;

/// The children of this process but for its helpers, orphans that were given to it included. Empty if the kernel does
/// not list them.
pub fn children() -> Vec<i32> {
    let tasks = Process::myself().and_then(|own| own.tasks()).into_iter().flatten().flatten();
    let helpers = helper_pids();
    let children = tasks.filter_map(|task| task.children().ok()).flatten();
    children.filter(|pid| !helpers.contains(pid)).map(|pid| pid as i32).collect()
}

/// A living process beneath this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descendant {
    pub pid: i32,
    pub parent: i32,
    /// The name of its first thread: of a program that gives itself no other one, its file's name, at most 15 bytes.
    pub name: String,
}

/// The living processes beneath this one: its children but for its helpers, their children, and so on. Parents come
/// before their children.
pub fn descendants() -> Vec<Descendant> {
    let mut by_parent: HashMap<i32, Vec<Descendant>> = HashMap::new();
    let own = std::process::id() as i32;
    for process in all_processes().into_iter().flatten().flatten() {
        if let Ok(stat) = process.stat()
            && !matches!(stat.state, 'Z' | 'X')
        {
            let found = Descendant { pid: stat.pid, parent: stat.ppid, name: stat.comm };
            by_parent.entry(found.parent).or_default().push(found);
        }
    }
    let helpers = helper_pids();
    let mut found = by_parent.remove(&own).unwrap_or_default();
    found.retain(|child| !helpers.contains(&(child.pid as u32)));
    let mut next = 0;
    while let Some(parent) = found.get(next) {
        found.extend(by_parent.remove(&parent.pid).unwrap_or_default());
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn children_of_children_are_found() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 60 & echo $!; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0; 32];
        let got = shell.stdout.take().unwrap().read(&mut line).unwrap();
        let sleeper: i32 = std::str::from_utf8(&line[..got]).unwrap().trim().parse().unwrap();
        // The shell says the pid of its child before the child has become `sleep`.
        let is_sleeper = |found: &Descendant| found.pid == sleeper && found.name == "sleep";
        let found = loop {
            let found = descendants();
            if found.iter().any(is_sleeper) {
                break found;
            }
            std::thread::yield_now();
        };
        let at = |pid| found.iter().position(|found| found.pid == pid);
        assert!(at(shell.id() as i32) < at(sleeper), "{found:?}");
        assert!(at(shell.id() as i32).is_some(), "{found:?}");
        let sleeps = &found[at(sleeper).unwrap()];
        assert_eq!(sleeps.parent, shell.id() as i32, "{found:?}");
        assert!(Command::new("kill").arg(sleeper.to_string()).status().unwrap().success());
        shell.wait().unwrap();
    }
}
