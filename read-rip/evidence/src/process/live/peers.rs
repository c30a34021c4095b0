//! Who has the other ends of pipes and sockets: one search through the descriptors of all processes.

use std::collections::HashMap;

use super::folder::Folder;
use super::text::access;
use crate::target::Peer;

/// A search looks at this many descriptors at most.
const SEARCHED_MAX: usize = 200_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OtherEnd {
    /// What the kernel writes as the target of its link in `/proc/PID/fd`.
    pub(super) link: Vec<u8>,
    /// Both ends of a pipe have one link. The other one is open in another way than this: see [`access`].
    pub(super) unlike: Option<u64>,
}

/// The processes that have each of these ends, by their pids, as far as this reader may know. A process that has an end
/// several times is named once, with its lowest descriptor.
pub(super) fn peers(ends: &[OtherEnd]) -> Vec<Vec<Peer>> {
    let mut found = vec![Vec::new(); ends.len()];
    let mut by_link: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (at, end) in ends.iter().enumerate() {
        by_link.entry(&end.link).or_default().push(at);
    }
    if by_link.is_empty() {
        return found;
    }
    let mut searched = 0;
    let Ok(processes) = Folder::open("/proc") else { return found };
    for pid in processes.numbers().unwrap_or_default() {
        let Ok(descriptors) = processes.folder(&format!("{pid}/fd")) else { continue };
        let numbers = descriptors.numbers().unwrap_or_default();
        searched += numbers.len();
        if searched > SEARCHED_MAX {
            break;
        }
        for descriptor in numbers {
            let Ok(link) = descriptors.link(&descriptor.to_string()) else { continue };
            let Some(ends_at) = by_link.get(&*link) else { continue };
            let information = processes.read(&format!("{pid}/fdinfo/{descriptor}")).unwrap_or_default();
            for &at in ends_at {
                let is_other_end = ends[at]
                    .unlike
                    .is_none_or(|own| access(&information).is_some_and(|access| access != own));
                let is_new = found[at].last().is_none_or(|last: &Peer| last.pid != pid);
                if is_other_end && is_new {
                    found[at].push(Peer { pid, name: name(&processes, pid), descriptor });
                }
            }
        }
    }
    found
}

/// The name of a process's first thread; empty if it has ended.
fn name(processes: &Folder, pid: u32) -> String {
    let bytes = processes.read(&format!("{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(bytes.strip_suffix(b"\n").unwrap_or(&bytes)).into_owned()
}
