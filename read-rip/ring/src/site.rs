//! A site: a mark in the source, and what its events mean.
//!
//! It decodes the numbers of the format and draws no conclusion from them. A number that this version does not know is
//! kept as it is.

use std::ops::{BitAnd, BitOr};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// What its address is relative to.
    pub home: Home,
    /// Module-relative address of the mark. For a site of a process: the actual address.
    pub pc: u64,
    /// Source file, as its path was given to the compiler.
    pub file: Arc<str>,
    /// The module path of the source (Rust), or empty.
    pub module_path: Arc<str>,
    /// The mark's label, or the name of its span; may be empty.
    pub label: Arc<str>,
    /// The format of the values of an event or of a span, or empty.
    pub format: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 when unknown.
    pub column: u32,
    pub kind: SiteKind,
    /// More about the event and its lock.
    pub flags: SiteFlags,
    /// The type of each operand. Empty if the ring claims more operands than an event can have.
    pub operand_types: Vec<OperandType>,
    /// Operand words before the PC word of an event; `None` if the length of an operand is not known.
    pub operand_words: Option<OperandWords>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Home {
    /// A module, by its index.
    Module(usize),
    /// A process, by its id, in which a bridge made the site.
    Process(u32),
}

impl Home {
    pub fn module(self) -> Option<usize> {
        match self {
            Home::Module(module) => Some(module),
            Home::Process(_) => None,
        }
    }
}

/// How many operand words an event has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandWords {
    /// This many.
    Fixed(u32),
    /// The last one says how many there are besides.
    Shaped,
}

impl OperandWords {
    /// Those of operands of these types; `None` if the length of one is not known.
    pub fn of(types: &[OperandType]) -> Option<OperandWords> {
        if types.contains(&OperandType::Shape) {
            return Some(OperandWords::Shaped);
        }
        types.iter().map(|operand| operand.words()).sum::<Option<u32>>().map(OperandWords::Fixed)
    }
}

impl Site {
    /// Whether the site is in a wrapper, which records everything that is done with its locks. Of an event with values,
    /// the flag is a part of its level.
    pub fn is_wrapper(&self) -> bool {
        self.kind.is_of_lock() && self.flags.is_wrapper()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SiteKind {
    /// The thread passed this mark.
    Snap,
    /// The thread did useful work.
    Progress,
    /// The thread is about to block until it acquires the lock.
    LockWait,
    /// The thread has acquired the lock. Marks by hand only.
    LockAcquired,
    LockReleased,
    /// A try, or a wait of limited time, ended without the lock.
    LockTryFailed,
    /// A wrapper begins to acquire the lock. It has succeeded unless a [`SiteKind::LockTryFailed`] follows.
    LockAcquireBegin,
    /// The thread releases the lock and waits on a condition variable.
    ConditionWait,
    /// The wait on the condition variable has ended, and the thread holds the lock again.
    ConditionWoken,
    /// The lock was destroyed. Another lock may be created at its address.
    LockDestroyed,
    /// The lock was initialised: nobody holds it. Another lock may have been at its address.
    LockInitialised,
    /// The thread signals a condition variable, and a thread may wait on it.
    ConditionSignalled,
    /// The thread signals a condition variable, and no thread waits on it.
    ConditionUnheard,
    /// The thread destroys a condition variable on which a thread waits.
    ConditionDestroyed,
    /// The program says that something happened, with values.
    Event,
    SpanBegin,
    SpanEnd,
    /// The thread is about to block at a channel: who uses the other side of it.
    ChannelPeer,
    /// A kind that this version does not know.
    Unknown(u8),
}

impl SiteKind {
    /// Whether an event says something of a lock or of a condition variable.
    pub fn is_of_lock(self) -> bool {
        use SiteKind::{Event, Progress, Snap, SpanBegin, SpanEnd, Unknown};
        !matches!(self, Snap | Progress | Event | SpanBegin | SpanEnd | Unknown(_))
    }
}

impl SiteKind {
    /// Whether an event may have values.
    pub fn has_values(self) -> bool {
        matches!(self, SiteKind::Event | SiteKind::SpanBegin)
    }
}

impl From<u8> for SiteKind {
    /// Decodes the kind of the format.
    fn from(raw: u8) -> SiteKind {
        match raw {
            librip_format::KIND_SNAP => SiteKind::Snap,
            librip_format::KIND_PROGRESS => SiteKind::Progress,
            librip_format::KIND_LOCK_WAIT => SiteKind::LockWait,
            librip_format::KIND_LOCK_ACQUIRED => SiteKind::LockAcquired,
            librip_format::KIND_LOCK_RELEASED => SiteKind::LockReleased,
            librip_format::KIND_LOCK_TRY_FAILED => SiteKind::LockTryFailed,
            librip_format::KIND_LOCK_ACQUIRE_BEGIN => SiteKind::LockAcquireBegin,
            librip_format::KIND_CONDITION_WAIT => SiteKind::ConditionWait,
            librip_format::KIND_CONDITION_WOKEN => SiteKind::ConditionWoken,
            librip_format::KIND_LOCK_DESTROYED => SiteKind::LockDestroyed,
            librip_format::KIND_LOCK_INITIALISED => SiteKind::LockInitialised,
            librip_format::KIND_CONDITION_SIGNALLED => SiteKind::ConditionSignalled,
            librip_format::KIND_CONDITION_UNHEARD => SiteKind::ConditionUnheard,
            librip_format::KIND_CONDITION_DESTROYED => SiteKind::ConditionDestroyed,
            librip_format::KIND_EVENT => SiteKind::Event,
            librip_format::KIND_SPAN_BEGIN => SiteKind::SpanBegin,
            librip_format::KIND_SPAN_END => SiteKind::SpanEnd,
            librip_format::KIND_CHANNEL_PEER => SiteKind::ChannelPeer,
            _ => SiteKind::Unknown(raw),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LockType {
    /// Its marks do not say.
    #[default]
    Unknown,
    Mutex,
    /// A readers-writer lock.
    RwLock,
    Spin,
    /// A semaphore. Nobody owns a semaphore.
    Semaphore,
    /// No lock but a thread, whose end another one waits for.
    Thread,
    Barrier,
    /// A channel, or whatever else brings a message. Nobody owns it.
    Message,
    /// An initialisation that is done once. The thread that runs the initialiser owns it.
    Once,
    /// No lock but the waiting thread itself, which another one wakes.
    Wake,
    /// A notification, or what else anyone may bring about: a future waits for it.
    Notification,
    /// A type that this version does not know.
    Other(u8),
}

impl LockType {
    /// Whether nobody can own it.
    pub const fn is_unowned(self) -> bool {
        use LockType::{Barrier, Message, Notification, Semaphore, Thread, Wake};
        matches!(self, Semaphore | Notification | Thread | Barrier | Message | Wake)
    }

    const fn bits(self) -> u16 {
        let raw = match self {
            LockType::Unknown => librip_format::LOCK_TYPE_UNKNOWN,
            LockType::Mutex => librip_format::LOCK_TYPE_MUTEX,
            LockType::RwLock => librip_format::LOCK_TYPE_RWLOCK,
            LockType::Spin => librip_format::LOCK_TYPE_SPIN,
            // The format has one type for both: see `librip_format::HELD_FOR_UNIT`.
            LockType::Semaphore | LockType::Notification => librip_format::LOCK_TYPE_SEMAPHORE,
            LockType::Thread => librip_format::LOCK_TYPE_THREAD,
            LockType::Barrier => librip_format::LOCK_TYPE_BARRIER,
            LockType::Message => librip_format::LOCK_TYPE_MESSAGE,
            LockType::Once => librip_format::LOCK_TYPE_ONCE,
            LockType::Wake => librip_format::LOCK_TYPE_WAKE,
            LockType::Other(raw) => raw as u16,
        };
        raw << librip_format::SITE_LOCK_TYPE_SHIFT
    }
}

/// How important an event is, the least important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Trace,
    /// For who debugs the program.
    Debug,
    /// The level of an event that names none.
    Info,
    /// Something is not as it should be.
    Warn,
    /// Something has failed.
    Error,
}

impl Level {
    /// All levels, with their numbers in the format.
    const ALL: [(u16, Level); 5] = [
        (librip_format::LEVEL_TRACE, Level::Trace),
        (librip_format::LEVEL_DEBUG, Level::Debug),
        (librip_format::LEVEL_INFO, Level::Info),
        (librip_format::LEVEL_WARN, Level::Warn),
        (librip_format::LEVEL_ERROR, Level::Error),
    ];

    /// Decodes the number of the format; `None` for a number that is no level.
    pub(super) fn from_raw(raw: u16) -> Option<Level> {
        Level::ALL.iter().find(|&&(number, _)| number == raw).map(|&(_, level)| level)
    }

    /// The number of the format.
    pub fn raw(self) -> u16 {
        Level::ALL.iter().find(|&&(_, level)| level == self).map_or(0, |&(number, _)| number)
    }
}

/// The language of the format of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// That of Rust's `std::fmt`.
    Rust,
    /// That of C's `printf`.
    Printf,
}

/// The flags of a site, and the type of its lock. Bits that this version does not know are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteFlags(u16);

impl SiteFlags {
    /// No flag, and no type of lock.
    pub const NONE: SiteFlags = SiteFlags(0);
    pub const SHARED: SiteFlags = SiteFlags(librip_format::SITE_SHARED);
    pub const TRY: SiteFlags = SiteFlags(librip_format::SITE_TRY);
    pub const WRAPPER: SiteFlags = SiteFlags(librip_format::SITE_WRAPPER);
    pub const REENTRANT: SiteFlags = SiteFlags(librip_format::SITE_REENTRANT);
    pub const READERS_FIRST: SiteFlags = SiteFlags(librip_format::SITE_READERS_FIRST);
    pub const UPGRADABLE: SiteFlags = SiteFlags(librip_format::SITE_UPGRADABLE);
    pub const OWNED: SiteFlags = SiteFlags(librip_format::SITE_OWNED);
    pub const OWNED_BY_RULE: SiteFlags = SiteFlags(librip_format::SITE_OWNED_BY_RULE);

    pub const OF_FUTURE: SiteFlags = SiteFlags(librip_format::SITE_OF_FUTURE);

    const LOCK_TYPE: SiteFlags = SiteFlags(librip_format::SITE_LOCK_TYPE);

    /// Decodes the flags of the format.
    pub const fn from_bits(bits: u16) -> SiteFlags {
        SiteFlags(bits)
    }

    /// The flags as the format has them.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether all of these flags are set.
    pub const fn contains(self, flags: SiteFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// The lock is acquired in shared mode.
    pub const fn is_shared(self) -> bool {
        self.contains(Self::SHARED)
    }

    /// The attempt does not block, or ends after a time.
    pub const fn is_try(self) -> bool {
        self.contains(Self::TRY)
    }

    /// The site is in a wrapper: see [`Site::is_wrapper`]. Of sites of locks alone.
    pub const fn is_wrapper(self) -> bool {
        self.contains(Self::WRAPPER)
    }

    /// The owner may acquire the lock again.
    pub const fn is_reentrant(self) -> bool {
        self.contains(Self::REENTRANT)
    }

    /// A shared acquisition passes waiting writers.
    pub const fn is_readers_first(self) -> bool {
        self.contains(Self::READERS_FIRST)
    }

    /// A shared acquisition may become exclusive. A lock grants one of these at a time.
    pub const fn is_upgradable(self) -> bool {
        self.contains(Self::UPGRADABLE)
    }

    /// Only the thread that acquired the lock can release it.
    pub const fn is_owned(self) -> bool {
        self.contains(Self::OWNED)
    }

    /// Only the thread that acquired the lock may release it, and nothing enforces that.
    pub const fn is_owned_by_rule(self) -> bool {
        self.contains(Self::OWNED_BY_RULE)
    }

    /// A future does it, and in the slot of a thread one that belongs to no recorded task.
    pub const fn is_of_future(self) -> bool {
        self.contains(Self::OF_FUTURE)
    }

    /// The values of an event say what the thread used in a cycle.
    pub const fn is_usage(self) -> bool {
        self.0 & librip_format::SITE_USAGE != 0
    }

    pub fn level(self) -> Level {
        Level::from_raw(self.0 & librip_format::SITE_LEVEL).unwrap_or(Level::Info)
    }

    /// The language of the format of an event.
    pub const fn syntax(self) -> Syntax {
        if self.0 & librip_format::SITE_PRINTF == 0 { Syntax::Rust } else { Syntax::Printf }
    }

    pub const fn lock_type(self) -> LockType {
        let raw = librip_format::lock_type(self.0);
        match raw {
            librip_format::LOCK_TYPE_UNKNOWN => LockType::Unknown,
            librip_format::LOCK_TYPE_MUTEX => LockType::Mutex,
            librip_format::LOCK_TYPE_RWLOCK => LockType::RwLock,
            librip_format::LOCK_TYPE_SPIN => LockType::Spin,
            librip_format::LOCK_TYPE_SEMAPHORE => LockType::Semaphore,
            librip_format::LOCK_TYPE_THREAD => LockType::Thread,
            librip_format::LOCK_TYPE_BARRIER => LockType::Barrier,
            librip_format::LOCK_TYPE_MESSAGE => LockType::Message,
            librip_format::LOCK_TYPE_ONCE => LockType::Once,
            librip_format::LOCK_TYPE_WAKE => LockType::Wake,
            _ => LockType::Other(raw as u8),
        }
    }

    /// The same flags with this type of lock.
    pub const fn with_lock_type(self, lock_type: LockType) -> SiteFlags {
        SiteFlags(self.0 & !Self::LOCK_TYPE.0 | lock_type.bits())
    }
}

impl BitOr for SiteFlags {
    type Output = SiteFlags;

    fn bitor(self, other: SiteFlags) -> SiteFlags {
        SiteFlags(self.0 | other.0)
    }
}

impl BitAnd for SiteFlags {
    type Output = SiteFlags;

    fn bitand(self, other: SiteFlags) -> SiteFlags {
        SiteFlags(self.0 & other.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OperandType {
    /// 48 bits.
    Word,
    /// 64 bits, the low 32 bits first.
    Double,
    Lock,
    /// The time of the event, ticks; 0 if it is not known.
    Time,
    /// The time at which the wait or hold began that this event ends, ticks; 0 if it is not known.
    Since,
    /// The address of a condition variable.
    Condition,
    /// The return address of a call that an interposer recorded.
    Caller,
    /// The address of the location of a wrapper's caller.
    Location,
    /// A word of the thread's stack that may be the return address of a caller further out; 0 if there is none.
    Stack,
    /// The shape of an event with values: what stands before it.
    Shape,
    /// Who uses the other side of a channel.
    Peer,
    /// A type that this version does not know.
    Unknown(u8),
}

impl From<u8> for OperandType {
    /// Decodes the operand type of the format.
    fn from(raw: u8) -> OperandType {
        match raw {
            librip_format::OPERAND_WORD => OperandType::Word,
            librip_format::OPERAND_DOUBLE => OperandType::Double,
            librip_format::OPERAND_LOCK => OperandType::Lock,
            librip_format::OPERAND_TIME => OperandType::Time,
            librip_format::OPERAND_SINCE => OperandType::Since,
            librip_format::OPERAND_CONDITION => OperandType::Condition,
            librip_format::OPERAND_CALLER => OperandType::Caller,
            librip_format::OPERAND_LOCATION => OperandType::Location,
            librip_format::OPERAND_STACK => OperandType::Stack,
            librip_format::OPERAND_SHAPE => OperandType::Shape,
            librip_format::OPERAND_PEER => OperandType::Peer,
            _ => OperandType::Unknown(raw),
        }
    }
}

impl OperandType {
    /// How many words an operand of this type takes; `None` if that is not known.
    pub const fn words(self) -> Option<u32> {
        match self {
            OperandType::Word
            | OperandType::Lock
            | OperandType::Time
            | OperandType::Since
            | OperandType::Condition
            | OperandType::Caller
            | OperandType::Location
            | OperandType::Stack
            | OperandType::Shape
            | OperandType::Peer => Some(1),
            OperandType::Double => Some(2),
            OperandType::Unknown(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_numbers_are_kept() {
        assert_eq!(SiteKind::from(200), SiteKind::Unknown(200));
        assert_eq!(OperandType::from(0), OperandType::Unknown(0));
        let flags = SiteFlags::from_bits(0x2a80 | 1);
        assert_eq!(
            (flags.is_shared(), flags.lock_type(), flags.bits()),
            (true, LockType::Other(0x2a), 0x2a81)
        );
    }

    #[test]
    fn operands_have_the_lengths_of_the_format() {
        for raw in 0..=u8::MAX {
            assert_eq!(OperandType::from(raw).words(), librip_format::operand_words(raw), "{raw}");
        }
    }

    #[test]
    fn the_type_of_a_lock_and_its_flags_do_not_overlap() {
        let others = SiteFlags::TRY | SiteFlags::OF_FUTURE;
        for raw in 0..0x80 {
            let of_type = SiteFlags::from_bits(raw << 8);
            let flags = (others | SiteFlags::LOCK_TYPE).with_lock_type(of_type.lock_type());
            assert_eq!(flags, of_type | others);
            assert_eq!((of_type | others).lock_type(), of_type.lock_type());
        }
    }
}
