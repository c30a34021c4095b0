//! Waits for one of several descriptors: `epoll`, `poll` and `select`.
//!
//! All who could make any of the descriptors ready can end such a wait. So each descriptor must be one whose other end
//! is known: a pipe, a connected socket of this machine, an eventfd, or a process whose end it reports. A
//! listening socket, a timer, a terminal or a file that reports changes becomes ready from outside. Then nothing is said
//! of the wait.

use std::collections::BTreeMap;

use super::super::folder::Folder;
use super::super::text::{decimal, hexadecimal};
use super::ends::{Holder, Kind, PARTIES_MAX, key_of};
use super::{EVENTFD, Machine, Of};
use crate::target::{Call, CallKind, DescriptorKind, Memory, Need, Needed};

/// More descriptors are not followed.
const DESCRIPTORS_MAX: usize = 64;
/// No process that sets `FD_SETSIZE` itself has more descriptors.
const SELECTED_MAX: u64 = 1 << 16;
/// The events of `poll` and `epoll`: `POLLIN`, `POLLRDNORM`, `POLLRDBAND`, `POLLPRI` and `POLLRDHUP`.
const READABLE: u32 = 0x1 | 0x40 | 0x80 | 0x2 | 0x2000;
/// `POLLOUT`, `POLLWRNORM` and `POLLWRBAND`.
const WRITABLE: u32 = 0x4 | 0x100 | 0x200;

/// A descriptor for which a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Awaited {
    descriptor: u32,
    events: u32,
    /// The inode of the file that was registered, if the kernel says it.
    inode: Option<u64>,
}

/// What is behind such a descriptor.
enum End {
    Pipe(u64),
    /// A socket, and its peer.
    Socket(u64, u64),
    /// An eventfd, by its number.
    Event(u64),
    /// A process: a pidfd is ready when it has ended.
    Process(u32),
}

impl Machine {
    /// Who can end a wait for one of several descriptors; `None` if that is not known of one of them.
    pub(super) fn one_of_many(&self, of: &Of<'_>, call: Call) -> Option<Need> {
        if call.is_timed() != Some(false) {
            return None;
        }
        let awaited = match call.kind {
            CallKind::Epoll => registered(of, call)?,
            CallKind::Select => selected(call, &of.live.memory(&of.live.mappings()))?,
            _ => polled(call, &of.live.memory(&of.live.mappings()))?,
        };
        if awaited.is_empty() || awaited.len() > DESCRIPTORS_MAX {
            return None;
        }
        // The search through all descriptors takes longest, and mostly is not needed.
        let ends: Vec<(Awaited, End)> =
            awaited.iter().map(|&one| Some((one, self.end(of, one)?))).collect::<Option<_>>()?;
        let (mut by, mut ending): (Vec<Holder>, Vec<u32>) = Default::default();
        for (one, end) in &ends {
            let (reads, writes) = (one.events & READABLE != 0, one.events & WRITABLE != 0);
            match *end {
                End::Pipe(inode) => {
                    // It waits for those that write, for those that read, or without either for the end of all.
                    let sides = [(true, reads || !writes), (false, writes || !reads)];
                    for (for_writing, _) in sides.into_iter().filter(|&(_, is_awaited)| is_awaited) {
                        by.extend(self.ends().of_pipe(inode, for_writing)?);
                    }
                }
                End::Socket(inode, peer) => {
                    by.extend(self.ends().of_socket(peer));
                    let own = self.ends().of_socket(inode).iter();
                    by.extend(own.filter(|holder| holder.pid != of.live.pid));
                }
                End::Event(number) => by.extend(self.writers_of_event(number)?),
                End::Process(pid) => ending.push(pid),
            }
        }
        let what = Needed::OneOfMany(u32::try_from(ends.len()).unwrap_or(u32::MAX));
        let mut need = self.by_holders(of, what, by);
        ending.retain(|pid| need.by.iter().all(|party| party.pid != *pid));
        need.by.extend(ending.into_iter().map(|pid| self.party(pid, None)));
        (1..=PARTIES_MAX).contains(&need.by.len()).then_some(need)
    }

    /// Those that can write to an eventfd; `None` if the kernel may do so, too.
    pub(super) fn writers_of_event(&self, number: u64) -> Option<&[Holder]> {
        let holders = self.ends().of_event(number);
        let is_plain = |holder: &Holder| {
            Folder::open(&format!("/proc/{}", holder.pid)).is_ok_and(|of| has_plain_events(&of))
        };
        (holders.len() <= PARTIES_MAX && holders.iter().all(is_plain)).then_some(holders)
    }

    fn end(&self, of: &Of<'_>, one: Awaited) -> Option<End> {
        let link = of.live.thread.link(&format!("fd/{}", one.descriptor)).ok()?;
        if link == EVENTFD {
            let information = of.live.thread.read(&format!("fdinfo/{}", one.descriptor)).ok()?;
            return event_number(&information).map(End::Event);
        }
        if link.starts_with(b"anon_inode:[pidfd]") || link.starts_with(b"pidfd:") {
            let kind = of.live.descriptors().get(one.descriptor)?.kind;
            let DescriptorKind::Process { pid } = kind else { return None };
            // The kernel is about to tell the end of one that has ended.
            return pid.filter(|&pid| super::has_ended(pid) == Some(false)).map(End::Process);
        }
        let (kind, inode) = key_of(&link)?;
        // Another file may have the number of one that was closed and is still registered.
        if one.inode.is_some_and(|registered| registered != inode) {
            return None;
        }
        match kind {
            Kind::Pipe => Some(End::Pipe(inode)),
            Kind::Socket => Some(End::Socket(inode, self.peer(of, inode, true)?)),
            Kind::Event => None,
        }
    }
}

/// The number of an eventfd, by its `fdinfo`. Kernels before 5.2 do not say it.
pub(in super::super) fn event_number(information: &[u8]) -> Option<u64> {
    let mut lines = information.split(|&byte| byte == b'\n');
    decimal(lines.find_map(|line| line.strip_prefix(b"eventfd-id:"))?.trim_ascii())
}

/// Whether threads alone write to the eventfds of a process, as far as that is seen: it has nothing whose events the
/// kernel may write to one, as an `io_uring`, a context of `io_setup`, a virtual machine, or a file of a control group.
/// A control group goes on to write after its files are closed.
pub(in super::super) fn has_plain_events(process: &Folder) -> bool {
    const PLAIN: [&[u8]; 6] =
        [b"[eventfd]", b"[eventpoll]", b"[timerfd]", b"[signalfd]", b"[pidfd]", b"inotify"];
    const WRITERS: [&[u8]; 5] = [b"/dev/kvm", b"/dev/vfio", b"/dev/vhost", b"/dev/xen", b"/sys/fs/cgroup"];
    let writes = |link: &[u8]| {
        let is_plain = |name: &[u8]| PLAIN.contains(&name);
        WRITERS.iter().any(|path| link.starts_with(path))
            || link.strip_prefix(b"anon_inode:").is_some_and(|name| !is_plain(name))
    };
    let has_context = || {
        let maps = process.read("maps").unwrap_or_default();
        maps.split(|&byte| byte == b'\n').any(|line| line.ends_with(b" /[aio] (deleted)"))
    };
    !may_have(process, &writes) && !has_context()
}

/// Whether a process has a descriptor of a file whose name is so. `true` if its descriptors are not known.
pub(super) fn may_have(process: &Folder, is_so: &dyn Fn(&[u8]) -> bool) -> bool {
    let numbers = process.folder("fd").and_then(|folder| folder.numbers());
    let is_one = |number: u32| process.link(&format!("fd/{number}")).is_ok_and(|link| is_so(&link));
    numbers.map_or(true, |numbers| numbers.into_iter().any(is_one))
}

/// What an epoll instance watches.
fn registered(of: &Of<'_>, call: Call) -> Option<Vec<Awaited>> {
    Some(targets(&of.live.thread.read(&format!("fdinfo/{}", call.descriptor()?)).ok()?))
}

/// The lines `tfd:` of an epoll instance's `fdinfo`.
fn targets(information: &[u8]) -> Vec<Awaited> {
    let target = |line: &[u8]| {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        (words.next()? == b"tfd:").then_some(())?;
        let descriptor = u32::try_from(decimal(words.next()?)?).ok()?;
        (words.next()? == b"events:").then_some(())?;
        let events = hexadecimal(words.next()?)? as u32;
        let inode = words.find_map(|word| hexadecimal(word.strip_prefix(b"ino:")?));
        Some(Awaited { descriptor, events, inode })
    };
    information.split(|&byte| byte == b'\n').filter_map(target).collect()
}

/// What a call of `poll` waits for.
fn polled(call: Call, memory: &dyn Memory) -> Option<Vec<Awaited>> {
    let [address, count, ..] = call.arguments;
    let count = usize::try_from(count).ok().filter(|&count| count <= DESCRIPTORS_MAX)?;
    let mut bytes = vec![0; 8 * count];
    memory.read(address, &mut bytes).ok()?;
    let one = |entry: &[u8; 8]| {
        let [a, b, c, d, low, high, ..] = *entry;
        // A negative number is left out by the kernel.
        let descriptor = u32::try_from(i32::from_le_bytes([a, b, c, d])).ok()?;
        let events = u32::from(u16::from_le_bytes([low, high]));
        Some(Awaited { descriptor, events, inode: None })
    };
    Some(bytes.as_chunks::<8>().0.iter().filter_map(one).collect())
}

/// What a call of `select` waits for. The kernel changes the sets when the call returns.
fn selected(call: Call, memory: &dyn Memory) -> Option<Vec<Awaited>> {
    let [count, sets @ .., _, _] = call.arguments;
    let count = u64::from(count as u32);
    if count > SELECTED_MAX {
        return None;
    }
    let mut all: BTreeMap<u32, u32> = BTreeMap::new();
    for (set, events) in sets.into_iter().zip([READABLE, WRITABLE, READABLE]).filter(|&(set, _)| set != 0) {
        // The kernel reads whole words.
        let mut bytes = vec![0; 8 * count.div_ceil(64) as usize];
        memory.read(set, &mut bytes).ok()?;
        let is_set = |descriptor: u32| bytes[descriptor as usize / 8] >> (descriptor % 8) & 1 != 0;
        for descriptor in (0..count as u32).filter(|&descriptor| is_set(descriptor)) {
            *all.entry(descriptor).or_default() |= events;
        }
    }
    let awaited = |(descriptor, events)| Awaited { descriptor, events, inode: None };
    Some(all.into_iter().map(awaited).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoll_instance_says_what_it_watches_and_for_what() {
        let text = b"pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t10\n\
            tfd:        5 events: 80000019 data: ffffffffffffffff  pos:0 ino:1f sdev:9\ntfd: x\n";
        assert_eq!(targets(text), [Awaited { descriptor: 5, events: 0x8000_0019, inode: Some(0x1f) }]);
        assert_eq!(event_number(b"pos:\t0\neventfd-count:                0\neventfd-id: 37\n"), Some(37));
        assert_eq!(event_number(b"pos:\t0\n"), None);
    }
}
