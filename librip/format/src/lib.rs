//! The file format of a ring, version 1.0: the one definition that the recorder and the reader share.
//!
//! This crate defines bytes and what they mean. It does not map, read or write anything, it knows no policy, and it has
//! no dependency, no `std` and no `unsafe` code.
//!
//! # The file
//!
//! A ring is one file, normally on tmpfs. The recorded process maps it `MAP_SHARED`. The file is sparse: only the parts
//! in use occupy memory. All integers have the byte order that [`Header::byte_order`] names. All offsets are bytes from
//! the start of the file.
//!
//! ```text
//! +------------------+ 0
//! | Header           |  identity, geometry, counters, how the process ended   one page of 4096 bytes
//! +------------------+ <- Header::regions locates everything from here on; each region starts on a 4 KiB boundary
//! | Module ...       |  one executable or shared library: path, build id, load bias
//! +------------------+
//! | Site ...         |  one mark in the source: module-relative PC, file:line, kind, operand types
//! +------------------+
//! | texts            |  bytes that modules and sites refer to by offset and length
//! +------------------+
//! | LockName ...     |  one name that the program gave to a lock
//! +------------------+
//! | CallLocation ... |  file:line of one call of a wrapped lock
//! +------------------+
//! | StaticText ...   |  one text that events refer to by its address
//! +------------------+
//! | Channel ...      |  one channel of events; only if the program has channels
//! +------------------+
//! | histories        |  HistoryHeader and the words of one thread in one channel; only with channels
//! +------------------+
//! | PollPlace ...    |  how long the polls of the tasks of a place took; only with tasks, if asked for
//! +------------------+
//! | Slot ...         |  512 bytes of SlotHeader, words, spans, channels, times, task; Header::slot_len_bytes each
//! +------------------+ Header::file_len_bytes
//! ```
//!
//! # Where to find what
//!
//! | module | contents |
//! |---|---|
//! | [`word`] | the 64-bit word: sequence, operand flag, payload |
//! | [`header`] | the start of the file |
//! | [`region`] | the tables that the header lists |
//! | [`module`] | executables and shared libraries, texts, names of locks |
//! | [`site`] | marks in the source, and the kinds of events |
//! | [`call`] | callers of wrapped locks |
//! | [`event`] | events with values |
//! | [`channel`] | words of their own for some events |
//! | [`usage`](mod@usage) | what the kernel counted for a thread in a cycle |
//! | [`printf`] | the syntax of the formats of events in C |
//! | [`span`] | the table of open spans |
//! | [`note`] | the ELF note that describes a site in the program's file |
//! | [`slot`] | one thread's part of the ring, and its life |
//! | [`sampled`] | when some events of a thread happened |
//! | [`task`] | what the slots of tasks and threads say besides |
//! | [`polls`] | how long polls took |
//! | [`incident`] | calls on locks that failed, or that are forbidden |
//! | [`held`] | the table of locks that a thread holds or waits for |
//! | [`clock`] | the unit of times |
//! | [`settings`] | the environment variables of the recorder, and their values |
//! | [`checksum`] | the checksums of what is written once |
//!
//! Everything but [`printf`] is re-exported at the root of the crate.
//!
//! # Who writes what
//!
//! | part | writer | when |
//! |---|---|---|
//! | header, identity and geometry | the process that makes the ring | before [`Header::magic`], which it writes last |
//! | header, counters | any thread of the process or of its forked children, atomically | claims, refusals, exits |
//! | header, incidents | the thread to which it happens, or a later one to count it | `kind` last |
//! | modules, sites, texts | the process that makes the ring, or loads a library later | `state` last |
//! | sites of processes, their texts | the first thread that records an event of the site | `state` last |
//! | locations of calls | a thread that waits for a lock | `state` last |
//! | texts of events | the first thread that records the text | `state` last |
//! | a slot's header | the thread that claims or releases the slot | its `state` last |
//! | who joined a slot's owner | the thread that joined it, after its exit | the joiner's slot last |
//! | a slot's count and words | the owner of the slot | on each mark |
//! | a slot's open spans | the owner of the slot | `begin` last |
//! | a task's part of its slot | the thread that polls the task | at each turn |
//! | a task's wakes | any thread that wakes it | at each wake |
//! | a thread's rests | the thread | when it begins or ends a sleep |
//! | channels | the first thread that records an event of the channel | `state` last |
//! | the level of a channel | whoever may write to the file | at any time |
//! | histories | the owner of the slot | the slot's entry for the channel last; then on each event |
//! | places of polls | the first thread that makes a task there | `state` last |
//! | counts of polls | the thread that polls a task of the place, atomically | at each begin and end of a poll |
//! | the longest polls | the thread that ends a longer one | `state` last |
//!
//! The recorder never reads a value back from the file to decide where it stores, how often it loops, or by how much it
//! shifts. There are two exceptions. The lower bits of a slot's count select a word of the same slot. A slot's entry
//! for a channel selects a place in the region of histories. So another process that scribbles over the file can
//! destroy the record, but it cannot harm the recorded program.
//!
//! # Compatibility
//!
//! A reader refuses another [`VERSION_MAJOR`]. A higher minor version only adds: new regions, new fields in bytes that
//! were reserved and zero, longer entries ([`Region::entry_len_bytes`] says how long), new kinds, and for a slot a
//! trailer after its words ([`Header::slot_len_bytes`] is the length of the whole slot). All bytes from
//! [`Header::header_len_bytes`] to the first region are zero. A reader ignores what it does not know.

#![no_std]
#![forbid(unsafe_code)]

pub mod call;
pub mod channel;
pub mod checksum;
pub mod clock;
pub mod event;
pub mod header;
pub mod held;
pub mod incident;
pub mod module;
pub mod note;
pub mod peer;
pub mod polls;
pub mod printf;
pub mod region;
pub mod sampled;
pub mod settings;
pub mod site;
pub mod slot;
pub mod span;
pub mod task;
pub mod usage;
pub mod word;

pub use call::*;
pub use channel::*;
pub use checksum::*;
pub use clock::*;
pub use event::*;
pub use header::*;
pub use held::*;
pub use incident::*;
pub use module::*;
pub use note::*;
pub use peer::*;
pub use polls::*;
pub use region::*;
pub use sampled::*;
pub use site::*;
pub use slot::*;
pub use span::*;
pub use task::*;
pub use usage::*;
pub use word::*;
