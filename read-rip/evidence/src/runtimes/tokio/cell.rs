//! A task of tokio in memory: a cell with a header, the scheduler, the id, the future, and the trailer.
//!
//! ```text
//! header    state, next in the queue, table of functions, id of the list       C layout, in all versions from 1.30
//! table     7 functions, the first of which polls; the offsets of trailer, scheduler and id
//! trailer   links to the next and the previous task of the list, the waker of the `JoinHandle`     in any order
//! ```
//!
//! What is read is believed if the functions are code of the program, the cell is aligned as tokio aligns cells, and
//! the offsets make sense.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hasher};

use foldhash::HashMap;
use read_rip_files::Module;

use super::values::{TaskStage, TokioTask};
use crate::target::{Memory, Target};

/// `#[repr(align(128))]` of `Cell` on x86-64 and aarch64.
const ALIGNMENT: u64 = 128;
/// So much of a task is read to see whether it has changed. A larger future is rare.
const CONTENT_MAX: usize = 4096;
/// No future is larger.
const TRAILER_MAX: u64 = 16 << 20;
/// The words of a trailer: links, waker, hooks.
pub(super) const TRAILER_WORDS: usize = 6;

/// The bits of a state (`tokio/src/runtime/task/state.rs`).
const RUNNING: u64 = 1;
const COMPLETE: u64 = 1 << 1;
const NOTIFIED: u64 = 1 << 2;
const JOIN_INTEREST: u64 = 1 << 3;
const JOIN_WAKER: u64 = 1 << 4;
const CANCELLED: u64 = 1 << 5;
const REFERENCES_SHIFT: u32 = 6;

/// The offsets in a table of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) poll: u64,
    trailer: u64,
    scheduler: u64,
    id: u64,
}

/// A cell that makes sense. Whether the task lives, its list says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) address: u64,
    pub(super) table: Table,
    owner: u64,
}

/// A task that is in its list.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) address: u64,
    pub(super) poll: u64,
    /// The cell of the task that its end wakes, if that is one of tokio.
    pub(super) wakes: Option<u64>,
    pub(super) id: u64,
    state: u64,
    content: u64,
    /// Where its trailer begins in the cell.
    trailer_at: u64,
}

/// A task that makes sense by itself.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) member: Member,
    /// The id of the list that it belongs to.
    pub(super) owner: u64,
    pub(super) scheduler: u64,
    pub(super) trailer: [u64; TRAILER_WORDS],
}

/// The program of a process, and its memory at one reading.
pub(super) struct Program<'a> {
    pub(super) memory: &'a dyn Memory,
    /// Ranges of code and of all modules, ascending.
    code: Vec<(u64, u64)>,
    modules: Vec<(u64, u64)>,
    tables: RefCell<HashMap<u64, Option<Table>>>,
    /// The bytes of the task that was read last.
    content: RefCell<Vec<u8>>,
}

impl<'a> Program<'a> {
    pub(super) fn new(target: &Target, memory: &'a dyn Memory) -> Program<'a> {
        // A core file may leave out the mappings of code.
        let actual = |of: &Module, begin: u64, end: u64| {
            (of.load_bias.wrapping_add(begin), of.load_bias.wrapping_add(end))
        };
        let modules = || target.modules.iter();
        let code = modules().map(|of| actual(of, of.code.start, of.code.end));
        let mut code: Vec<(u64, u64)> = code.collect();
        let mut modules: Vec<(u64, u64)> = modules().map(|of| actual(of, of.begin, of.end)).collect();
        code.sort_unstable();
        modules.sort_unstable();
        Program { memory, code, modules, tables: RefCell::default(), content: RefCell::default() }
    }

    fn is_code(&self, address: u64) -> bool {
        is_within(&self.code, address)
    }

    pub(super) fn words<const LEN: usize>(&self, address: u64) -> Option<[u64; LEN]> {
        let mut bytes = [[0; 8]; LEN];
        self.memory.read(address, bytes.as_flattened_mut()).ok()?;
        Some(bytes.map(u64::from_le_bytes))
    }

    fn table(&self, address: u64) -> Option<Table> {
        if !address.is_multiple_of(8) || !is_within(&self.modules, address) || self.is_code(address) {
            return None;
        }
        if let Some(&known) = self.tables.borrow().get(&address) {
            return known;
        }
        let table = self.words::<10>(address).and_then(|words| {
            let [poll, .., trailer, scheduler, id] = words;
            let are_functions = words[..7].iter().all(|&function| self.is_code(function));
            let are_offsets = [trailer, scheduler, id].iter().all(|offset| offset.is_multiple_of(8));
            let is_in_order = 32 <= scheduler && scheduler < id && id < trailer && trailer < TRAILER_MAX;
            let is_table = are_functions && are_offsets && is_in_order && id - scheduler <= 64;
            is_table.then_some(Table { poll, trailer, scheduler, id })
        });
        self.tables.borrow_mut().insert(address, table);
        table
    }

    pub(super) fn cell(&self, address: u64) -> Option<Cell> {
        if address == 0 || !address.is_multiple_of(ALIGNMENT) {
            return None;
        }
        let [_, _, table, owner] = self.words::<4>(address)?;
        let table = self.table(table)?;
        (owner != 0).then_some(Cell { address, table, owner })
    }

    pub(super) fn scheduler(&self, cell: &Cell) -> Option<u64> {
        self.memory.u64(cell.address.checked_add(cell.table.scheduler)?).ok()
    }

    pub(super) fn trailer(&self, cell: &Cell) -> Option<[u64; TRAILER_WORDS]> {
        self.words(cell.address.checked_add(cell.table.trailer)?)
    }

    /// The task at an address, as far as it makes sense by itself.
    pub(super) fn task(&self, address: u64) -> Option<Task> {
        let cell = self.cell(address)?;
        // What changes while it is read may be of two moments. One read, mostly, makes that rare.
        let trailer_at = cell.table.trailer as usize;
        let whole = trailer_at + 8 * TRAILER_WORDS;
        let mut content = self.content.borrow_mut();
        content.resize(whole.min(CONTENT_MAX), 0);
        self.memory.read(address, &mut content).ok()?;
        let word = |at: u64| {
            let bytes = content.get(at as usize..)?.first_chunk::<8>()?;
            Some(u64::from_le_bytes(*bytes))
        };
        let trailer = match whole <= CONTENT_MAX {
            true => {
                let mut trailer = [0; TRAILER_WORDS];
                let bytes = content[trailer_at..].as_chunks::<8>().0;
                trailer.iter_mut().zip(bytes).for_each(|(word, &bytes)| *word = u64::from_le_bytes(bytes));
                trailer
            }
            false => self.trailer(&cell)?,
        };
        let state = word(0)?;
        let has_waker = state & JOIN_WAKER != 0 && state & (COMPLETE | JOIN_INTEREST) == JOIN_INTEREST;
        // The links in the trailer change with the neighbours in the list.
        let mut hasher = DefaultHasher::new();
        hasher.write(&content[..trailer_at.min(content.len())]);
        let member = Member {
            address,
            poll: cell.table.poll,
            wakes: has_waker.then(|| self.waker(&trailer)).flatten(),
            id: word(cell.table.id)?,
            state,
            content: hasher.finish(),
            trailer_at: cell.table.trailer,
        };
        Some(Task { member, owner: cell.owner, scheduler: word(cell.table.scheduler)?, trailer })
    }

    /// The address that the waker in a trailer has as its data. All fields of a trailer are pairs of words, and the
    /// waker is the one with a table of four functions, first or second.
    fn waker(&self, trailer: &[u64; TRAILER_WORDS]) -> Option<u64> {
        let is_table = |address: u64| {
            let is_data = is_within(&self.modules, address) && !self.is_code(address);
            is_data && self.words::<4>(address).is_some_and(|all| all.iter().all(|&one| self.is_code(one)))
        };
        trailer.as_chunks::<2>().0.iter().find_map(|&[first, second]| {
            match (is_table(first), is_table(second)) {
                (true, false) => Some(second),
                (false, true) => Some(first),
                _ => None,
            }
        })
    }
}

impl Member {
    pub(super) fn task(self, function: usize, wakes: Option<usize>) -> TokioTask {
        let has = |bit: u64| self.state & bit != 0;
        let stage = match () {
            () if has(COMPLETE) => TaskStage::Ended,
            () if has(RUNNING) => TaskStage::Polled,
            () if has(CANCELLED) => TaskStage::Aborted,
            () if has(NOTIFIED) => TaskStage::Ready,
            () => TaskStage::Suspended,
        };
        // The list has one reference, the handle one, and the queue, or the poll, one.
        let is_queued = has(NOTIFIED) || has(RUNNING);
        let of_tokio = 1 + u64::from(has(JOIN_INTEREST)) + u64::from(is_queued);
        TokioTask {
            id: self.id,
            function,
            stage,
            has_handle: has(JOIN_INTEREST),
            wakers: (self.state >> REFERENCES_SHIFT).saturating_sub(of_tokio),
            wakes,
            address: self.address,
            content: self.content,
            trailer: self.trailer_at,
            ..TokioTask::default()
        }
    }
}

/// Whether an address is in one of these ranges, which are in order.
fn is_within(ranges: &[(u64, u64)], address: u64) -> bool {
    let after = ranges.partition_point(|&(begin, _)| begin <= address);
    after.checked_sub(1).is_some_and(|last| address < ranges[last].1)
}
