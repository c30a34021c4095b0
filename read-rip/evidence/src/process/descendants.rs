//! The processes beneath a process. It sends no signals and waits for none.

use std::collections::HashMap;

use procfs::process::{Process, all_processes};

/// The children of this process, orphans that were given to it included. Empty if the kernel does not list them.
pub fn children() -> Vec<i32> {
    let tasks = Process::myself().and_then(|own| own.tasks()).into_iter().flatten().flatten();
    tasks.filter_map(|task| task.children().ok()).flatten().map(|pid| pid as i32).collect()
}

/// The living processes beneath this one: its children, their children, and so on. Parents come before their children.
pub fn descendants() -> Vec<i32> {
    let mut by_parent: HashMap<i32, Vec<i32>> = HashMap::new();
    let own = std::process::id() as i32;
    for process in all_processes().into_iter().flatten().flatten() {
        if let Ok(stat) = process.stat()
            && !matches!(stat.state, 'Z' | 'X')
        {
            by_parent.entry(stat.ppid).or_default().push(stat.pid);
        }
    }
    let mut found = by_parent.remove(&own).unwrap_or_default();
    let mut next = 0;
    while let Some(parent) = found.get(next) {
        found.extend(by_parent.remove(parent).unwrap_or_default());
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
        let found = descendants();
        let at = |pid| found.iter().position(|&found| found == pid);
        assert!(at(shell.id() as i32) < at(sleeper), "{found:?}");
        assert!(at(shell.id() as i32).is_some(), "{found:?}");
        assert!(Command::new("kill").arg(sleeper.to_string()).status().unwrap().success());
        shell.wait().unwrap();
    }
}
