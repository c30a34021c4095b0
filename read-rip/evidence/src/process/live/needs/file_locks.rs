//! Locks on files, and who waits for them: `/proc/locks` and the lines `lock:` of `/proc/PID/fdinfo`.
//!
//! The table names the process that acquired a lock. Who can release it is another question: for `flock` and for locks
//! of open file descriptions, all who have the description, which a fork copies. These have the lock in their `fdinfo`.

use std::collections::BTreeSet;
use std::str::SplitAsciiWhitespace;

use super::super::folder::Folder;
use super::super::text::decimal;
use super::ends::{Hidden, Holder, each_descriptor};
use crate::target::FileLockKind;

/// A line of the table, or of a descriptor's `fdinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Locks and those that wait for them have one number.
    number: u64,
    is_waiting: bool,
    kind: FileLockKind,
    is_exclusive: bool,
    /// The process that acquired it, or waits; `None` for a lock of an open file description.
    pid: Option<u32>,
    /// The device and the inode, as the kernel writes them.
    file: String,
    inode: u64,
    range: (String, String),
}

/// The beginning of a line: its number, whether it is one that waits, what it is about, and the words that follow.
struct Line<'t> {
    number: u64,
    is_waiting: bool,
    kind: &'t str,
    words: SplitAsciiWhitespace<'t>,
}

impl Line<'_> {
    fn parse(line: &str) -> Option<Line<'_>> {
        let mut words = line.split_ascii_whitespace();
        let number = words.next()?.strip_suffix(':')?.parse().ok()?;
        let mut kind = words.next()?;
        let is_waiting = kind == "->";
        while kind == "->" {
            kind = words.next()?;
        }
        Some(Line { number, is_waiting, kind, words })
    }
}

impl Entry {
    /// Parses a line, as in `7: -> FLOCK  ADVISORY  WRITE 3409126 fe:00:10028833 0 EOF`.
    fn parse(line: &str) -> Option<Entry> {
        let Line { number, is_waiting, kind, mut words } = Line::parse(line)?;
        let kind = match kind {
            "FLOCK" => FileLockKind::Flock,
            "POSIX" => FileLockKind::Posix,
            "OFDLCK" => FileLockKind::OpenFileDescription,
            _ => return None,
        };
        let is_exclusive = words.nth(1)? != "READ";
        let pid = words.next()?.parse::<i64>().ok()?;
        let file = words.next()?.to_owned();
        let inode = file.rsplit(':').next()?.parse().ok()?;
        let range = (words.next()?.to_owned(), words.next()?.to_owned());
        let pid = u32::try_from(pid).ok().filter(|&pid| pid != 0);
        Some(Entry { number, is_waiting, kind, is_exclusive, pid, file, inode, range })
    }

    /// Whether the line of a descriptor is about this lock. The numbers of both are of different tables.
    fn is_same_lock(&self, of_descriptor: &Entry) -> bool {
        (self.kind, self.pid, &self.file, self.is_exclusive, &self.range)
            == (
                of_descriptor.kind,
                of_descriptor.pid,
                &of_descriptor.file,
                of_descriptor.is_exclusive,
                &of_descriptor.range,
            )
    }
}

#[derive(Debug, Default)]
pub(super) struct FileLocks {
    table: Vec<Entry>,
    /// The locks that descriptors have.
    of_descriptors: Vec<(Holder, Entry)>,
    pub(super) hidden: Hidden,
}

impl FileLocks {
    /// Reads the table, and who has the locks of it.
    pub(super) fn search() -> FileLocks {
        let text = Folder::open("/proc").and_then(|processes| processes.read("locks")).unwrap_or_default();
        let table: Vec<Entry> = String::from_utf8_lossy(&text).lines().filter_map(Entry::parse).collect();
        let mut locks = FileLocks { table, ..FileLocks::default() };
        if !locks.table.iter().any(|entry| entry.is_waiting) {
            return locks;
        }
        let (mut hidden, mut found) = (BTreeSet::new(), Vec::new());
        each_descriptor(&mut hidden, |holder, link, process| {
            if !link.starts_with(b"/") {
                return;
            }
            let information = process.read(&format!("fdinfo/{}", holder.descriptor)).unwrap_or_default();
            let information = String::from_utf8_lossy(&information);
            let entries = information.lines().filter_map(|line| Entry::parse(line.strip_prefix("lock:")?));
            found.extend(entries.map(|entry| (holder, entry)));
        });
        (locks.of_descriptors, locks.hidden) = (found, Hidden(hidden));
        locks
    }

    /// The processes that have locks of their own on files with these inodes, and keep others from writing; or if there
    /// are none, from reading.
    pub(super) fn owners(&self, inodes: &BTreeSet<u64>, but: u32) -> BTreeSet<u32> {
        let of = |is_exclusive: bool| -> BTreeSet<u32> {
            let locks = self.table.iter().filter(|entry| {
                let is_own = entry.kind == FileLockKind::Posix && !entry.is_waiting;
                is_own && entry.is_exclusive == is_exclusive && inodes.contains(&entry.inode)
            });
            locks.filter_map(|entry| entry.pid).filter(|&pid| pid != but).collect()
        };
        let writers = of(true);
        if writers.is_empty() { of(false) } else { writers }
    }

    /// Who can release what a process waits for with a file of this inode; the kind of the lock too. Nobody if the
    /// table does not have the wait.
    pub(super) fn blockers(
        &self,
        pid: u32,
        inode: u64,
        is_flock: bool,
    ) -> Option<(FileLockKind, Vec<Holder>)> {
        let is_wait = |entry: &&Entry| {
            let is_kind = (entry.kind == FileLockKind::Flock) == is_flock;
            entry.is_waiting
                && is_kind
                && entry.inode == inode
                && entry.pid.is_none_or(|waiting| waiting == pid)
        };
        let waits: Vec<&Entry> = self.table.iter().filter(is_wait).collect();
        let kind = waits.first()?.kind;
        let mut holders = Vec::new();
        for wait in waits {
            let mut of_number =
                self.table.iter().filter(|entry| entry.number == wait.number && !entry.is_waiting);
            let lock = of_number.next()?;
            let having = self.of_descriptors.iter().filter(|(_, entry)| lock.is_same_lock(entry));
            let before = holders.len();
            holders.extend(having.map(|&(holder, _)| holder));
            if holders.len() == before {
                // Somebody has it whom this reader does not see.
                return None;
            }
        }
        Some((kind, holders))
    }
}

/// The process that has the lease on a file which another process opens, by the table of locks. The one that opens it
/// waits until the lease is given up, or the kernel takes it.
pub(super) fn lease_owner(table: &str, opens: u32) -> Option<u32> {
    // As `1: LEASE  BREAKING  READ 47 fe:00:33 0 EOF` and `1: -> LEASE  BREAKER   READ 48 <none>:0 0 EOF`.
    let lines = table.lines().filter_map(Line::parse).filter(|line| line.kind == "LEASE");
    let pid = |mut line: Line<'_>| Some((line.number, line.is_waiting, line.words.nth(2)?.parse().ok()?));
    let leases: Vec<(u64, bool, u32)> = lines.filter_map(pid).collect();
    let &(number, ..) = leases.iter().find(|&&(_, is_waiting, pid)| is_waiting && pid == opens)?;
    let lease = leases.iter().find(|&&(of, is_waiting, _)| of == number && !is_waiting);
    lease.map(|&(.., pid)| pid)
}

/// The inode of a file, by the `fdinfo` of a descriptor.
pub(super) fn inode_of(information: &[u8]) -> Option<u64> {
    let mut lines = information.split(|&byte| byte == b'\n');
    decimal(lines.find_map(|line| line.strip_prefix(b"ino:"))?.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_opens_a_file_waits_for_whoever_has_the_lease() {
        let table = "1: LEASE  BREAKING  READ 47 fe:00:33 0 EOF\n1: -> LEASE  BREAKER   READ 48 <none>:0 0 EOF\n\
            2: LEASE  ACTIVE    WRITE 49 fe:00:34 0 EOF\n3: FLOCK  ADVISORY  WRITE 48 fe:00:33 0 EOF\nLEASE\n";
        assert_eq!((lease_owner(table, 48), lease_owner(table, 49)), (Some(47), None));
    }

    #[test]
    fn a_wait_leads_to_whoever_has_the_lock() {
        let table = "7: FLOCK  ADVISORY  WRITE 31 fe:00:33 0 EOF\n\
            7: -> FLOCK  ADVISORY  WRITE 26 fe:00:33 0 EOF\n\
            8: POSIX  ADVISORY  READ 40 fe:00:34 0 9\n\
            8: -> POSIX  ADVISORY  WRITE 26 fe:00:34 0 EOF\n\
            8: -> -> POSIX  ADVISORY  WRITE 27 fe:00:34 0 EOF\n\
            9: OFDLCK ADVISORY  WRITE -1 fe:00:35 0 EOF\n\
            9: -> OFDLCK ADVISORY  WRITE -1 fe:00:35 0 EOF\n\
            10: LEASE  ACTIVE    WRITE 26 fe:00:33 0 EOF\n";
        let table: Vec<Entry> = table.lines().filter_map(Entry::parse).collect();
        assert_eq!(table.len(), 7);
        let have = |pid, line: &str| (Holder { pid, descriptor: 3 }, Entry::parse(line).expect("a lock"));
        let of_descriptors = vec![
            have(31, "1: FLOCK  ADVISORY  WRITE 31 fe:00:33 0 EOF"),
            have(32, "1: FLOCK  ADVISORY  WRITE 31 fe:00:33 0 EOF"),
            have(40, "1: POSIX  ADVISORY  READ 40 fe:00:34 0 9"),
            have(50, "1: OFDLCK ADVISORY  WRITE -1 fe:00:35 0 EOF"),
        ];
        let locks = FileLocks { table, of_descriptors, hidden: Hidden::default() };
        let pids = |found: Option<(FileLockKind, Vec<Holder>)>| {
            found.map(|(kind, holders)| (kind, holders.iter().map(|holder| holder.pid).collect::<Vec<_>>()))
        };
        assert_eq!(pids(locks.blockers(26, 33, true)), Some((FileLockKind::Flock, vec![31, 32])));
        assert_eq!(pids(locks.blockers(27, 34, false)), Some((FileLockKind::Posix, vec![40])));
        assert_eq!(pids(locks.blockers(9, 35, false)), Some((FileLockKind::OpenFileDescription, vec![50])));
        assert_eq!(pids(locks.blockers(31, 33, true)), None, "it does not wait");
        assert_eq!(Entry::parse("7: ->"), None);
        assert_eq!(Entry::parse(""), None);
    }
}
