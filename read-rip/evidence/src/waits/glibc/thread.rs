//! `struct pthread`, which has the id of a thread: `nptl/descr.h`.
//!
//! Its offset depends on the processor, but not on the version: 720 on x86-64 and 208 on aarch64, in all versions from
//! 2.17 to 2.42. It is not believed, but checked: 24 bytes after the id is a number that never changes, the distance
//! between two fields of a mutex (`robust_head.futex_offset`), which the kernel reads. On x86-64, the third pointer
//! points to the structure itself, too.

use super::super::case::{Case, Found};
use super::super::wait::{Owner, UnknownOwner, WaitKind};
use crate::target::{Architecture, Memory};

/// `offsetof (pthread_mutex_t, __data.__lock) - offsetof (pthread_mutex_t, __data.__list.__next)`.
const FUTEX_OFFSET: i64 = -32;
/// From the id to that number.
const AFTER_ID: usize = 24;

/// A thread that joins another one waits at that one's id, which the kernel sets to 0 when the thread has ended.
///
/// The kernel wakes whoever waits by a call that is not private. The words of robust mutexes have ids too, but they
/// have a bit that an id has not while somebody waits.
pub(super) fn join(case: &Case<'_>) -> Option<Found> {
    let mut bytes = [0; AFTER_ID + 8];
    case.memory.read(case.object_at(0)?, &mut bytes).ok()?;
    let joined = case.futex.expected;
    let id = has_id(&bytes)?;
    if case.futex.is_private || joined == 0 || (id != joined && id != 0) {
        return None;
    }
    // An id of 0: it has just ended.
    let owner = if id == 0 { Owner::Unknown(UnknownOwner::Changing) } else { case.owner(id) };
    matches!(owner, Owner::Tid(_) | Owner::Unknown(UnknownOwner::Changing)).then_some(Found {
        kind: WaitKind::Join,
        object: None,
        owner,
        is_exclusive: false,
    })
}

/// From the beginning of a `struct pthread` to the thread's id.
pub(in crate::waits) fn id_offset(architecture: Architecture) -> u64 {
    match architecture {
        Architecture::X86_64 => 720,
        Architecture::Aarch64 => 208,
    }
}

/// Returns the id of the thread whose `struct pthread` is at this address, if it is one.
pub(in crate::waits) fn id_at(memory: &dyn Memory, architecture: Architecture, address: u64) -> Option<u32> {
    const LONGEST: usize = 720;
    let offset = id_offset(architecture) as usize;
    let mut bytes = [0; LONGEST + AFTER_ID + 8];
    let bytes = &mut bytes[..offset + AFTER_ID + 8];
    memory.read(address, bytes).ok()?;
    let points_to_itself = bytes[16..24] == address.to_le_bytes();
    (architecture != Architecture::X86_64 || points_to_itself).then_some(())?;
    has_id(&bytes[offset..])
}

/// The id at the beginning of these bytes, if the number after it is right.
fn has_id(bytes: &[u8]) -> Option<u32> {
    let number = i64::from_le_bytes(bytes[AFTER_ID..AFTER_ID + 8].try_into().ok()?);
    (number == FUTEX_OFFSET).then_some(())?;
    Some(u32::from_le_bytes(bytes[..4].try_into().ok()?))
}
