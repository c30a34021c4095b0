//! Semaphores and message queues of System V: who changed one last.
//!
//! The kernel keeps no owner of a semaphore. It keeps the process whose operation on it succeeded last: if nothing is
//! left of it, that one took what was there, or set it so. `semctl` reads this and changes nothing.
#![allow(unsafe_code, reason = "no safe library has `semctl`")]

use super::super::folder::Folder;
use super::super::text::decimal;
use crate::target::Memory;

/// No call has more operations: `SEMOPM`.
const OPERATIONS_MAX: usize = 500;

/// The semaphore for which a call of `semop` waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Awaited {
    pub(super) number: u16,
    /// The process that changed it last: its pid in this reader's PID namespace.
    pub(super) changed_by: Option<u32>,
}

/// The first semaphore of a set that keeps a call from going on, by the call's operations. `None` too if nothing does.
pub(super) fn awaited(set: u64, operations: u64, count: u64, memory: &dyn Memory) -> Option<Awaited> {
    let set = i32::try_from(set).ok()?;
    let count = usize::try_from(count).ok().filter(|&count| count <= OPERATIONS_MAX)?;
    let mut bytes = vec![0; 6 * count];
    memory.read(operations, &mut bytes).ok()?;
    let waits = |operation: &[u8; 6]| {
        let [low, high, change_low, change_high, ..] = *operation;
        let number = u16::from_le_bytes([low, high]);
        let change = i32::from(i16::from_le_bytes([change_low, change_high]));
        let value = ask(set, number, libc::GETVAL)?;
        let is_awaited = if change < 0 { value < -change } else { change == 0 && value != 0 };
        is_awaited.then_some(number)
    };
    let number = bytes.as_chunks::<6>().0.iter().find_map(waits)?;
    let changed_by = ask(set, number, libc::GETPID).and_then(|pid| u32::try_from(pid).ok());
    Some(Awaited { number, changed_by: changed_by.filter(|&pid| pid != 0) })
}

/// Asks the kernel for a number of a semaphore; `None` if there is no such semaphore, or if this reader may not ask.
fn ask(set: i32, number: u16, what: libc::c_int) -> Option<i32> {
    // SAFETY: `GETVAL` and `GETPID` take no fourth argument, and so the call touches no memory. Only these are asked.
    let answer = unsafe { libc::semctl(set, i32::from(number), what) };
    (answer >= 0).then_some(answer)
}

/// The process that sent to a message queue last, or received from it: its pid in this reader's PID namespace.
pub(super) fn last_user(queue: u64, receives: bool) -> Option<u32> {
    let table = Folder::open("/proc").and_then(|processes| processes.read("sysvipc/msg")).ok()?;
    last_user_in(&table, queue, receives)
}

/// Parses the table: key, id, rights, bytes, messages, sender, receiver.
fn last_user_in(table: &[u8], queue: u64, receives: bool) -> Option<u32> {
    let mut lines = table.split(|&byte| byte == b'\n').skip(1);
    lines.find_map(|line| {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let id = decimal(words.nth(1)?)?;
        let user = words.nth(if receives { 4 } else { 3 })?;
        let user = decimal(user).and_then(|pid| u32::try_from(pid).ok())?;
        (id == queue && user != 0).then_some(user)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_queue_says_who_sent_and_who_received_last() {
        let table = b"       key      msqid perms      cbytes       qnum lspid lrpid   uid\n\
            \x20        0          7   600           4          1    12    13     0\n\
            \x20        0          8   600           4          1    14     0     0\n";
        assert_eq!((last_user_in(table, 7, false), last_user_in(table, 7, true)), (Some(12), Some(13)));
        assert_eq!((last_user_in(table, 8, true), last_user_in(table, 9, false)), (None, None));
    }
}
