//! The memory of this library: none of it is from the program's allocator.
//!
//! An allocator may look up functions by `dlsym` the first time that it needs them, under a lock of its own. If that
//! `dlsym` came back to it for the names of new libraries, it would wait for itself. And the C library learns from what
//! it frees: one large block, and from then on it keeps more memory for later.
//!
//! # Method
//!
//! A block has a power of two bytes. Free blocks of one length are a list, and new ones are cut from a static, which
//! costs nothing before it is written to. Blocks that are longer, or find no room, are mappings of their own.
//!
//! # Invariants
//!
//! * Nobody waits. A thread that finds the arena in use maps a block, or leaves one unused: another thread uses the
//!   arena, or this thread does, beneath a signal handler, or a thread did that was left behind by a fork.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The length of the static. A list of a hundred libraries takes a tenth of it.
const LEN_BYTES: usize = 256 << 10;
/// The longest block of the static.
const LONGEST: usize = 32 << 10;
/// The shortest block: it has room for a pointer to the next free one.
const SHORTEST: usize = 16;
/// The lengths from the shortest to the longest.
const LENGTHS: usize = (LONGEST / SHORTEST).ilog2() as usize + 1;
/// Mappings begin at multiples of this, and so does the static.
const PAGE: usize = 4096;

#[repr(align(4096))]
struct Memory(UnsafeCell<[u8; LEN_BYTES]>);

/// See the file's description.
pub(crate) struct Arena {
    memory: Memory,
    is_used: AtomicBool,
    blocks: UnsafeCell<Blocks>,
}

/// Which blocks of the static are free.
struct Blocks {
    /// So many bytes of the static were cut into blocks.
    cut: usize,
    /// The first free block of each length. It has the address of the next one.
    free: [*mut u8; LENGTHS],
}

// SAFETY: `blocks` is only reached by `Arena::blocks`, by one thread at a time. The memory is only reached by the
// owners of blocks, or in `Blocks`.
unsafe impl Sync for Arena {}

impl Arena {
    pub(crate) const fn new() -> Arena {
        Arena {
            memory: Memory(UnsafeCell::new([0; LEN_BYTES])),
            is_used: AtomicBool::new(false),
            blocks: UnsafeCell::new(Blocks { cut: 0, free: [ptr::null_mut(); LENGTHS] }),
        }
    }

    /// Does something with the blocks; `None` if they are in use.
    fn with_blocks<T>(&self, body: impl FnOnce(&mut Blocks) -> T) -> Option<T> {
        // ORDERING: acquire, pairs with the release below: one use ends before the next one begins.
        if self.is_used.compare_exchange(false, true, Acquire, Relaxed).is_err() {
            return None;
        }
        // SAFETY: nobody else uses them before the store below.
        let done = body(unsafe { &mut *self.blocks.get() });
        self.is_used.store(false, Release);
        Some(done)
    }

    fn start(&self) -> *mut u8 {
        self.memory.0.get().cast()
    }
}

/// The index of a length among the lists of free blocks; `None` if such a block is not part of the static.
fn list_of(layout: Layout) -> Option<usize> {
    let len_bytes = layout.size().max(layout.align()).max(SHORTEST);
    (len_bytes <= LONGEST && layout.align() <= PAGE)
        .then(|| (len_bytes.next_power_of_two() / SHORTEST).ilog2() as usize)
}

// SAFETY: a block belongs to one owner until it is freed. It begins at a multiple of its length, or of a page. Nothing
// here unwinds.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let take = |blocks: &mut Blocks, list: usize| {
            let first = blocks.free[list];
            if !first.is_null() {
                // SAFETY: a free block has the address of the next one.
                blocks.free[list] = unsafe { first.cast::<*mut u8>().read() };
                return Some(first);
            }
            let len_bytes = SHORTEST << list;
            let begin = blocks.cut.next_multiple_of(len_bytes.min(PAGE));
            (begin + len_bytes <= LEN_BYTES).then(|| {
                blocks.cut = begin + len_bytes;
                self.start().wrapping_add(begin)
            })
        };
        let block = list_of(layout).and_then(|list| self.with_blocks(|blocks| take(blocks, list))?);
        block.unwrap_or_else(|| map(layout))
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !(self.start().addr()..self.start().addr() + LEN_BYTES).contains(&block.addr()) {
            // SAFETY: it is a mapping of this length, and nobody uses it any more.
            unsafe { libc::syscall(libc::SYS_munmap, block, layout.size()) };
            return;
        }
        let Some(list) = list_of(layout) else { return };
        self.with_blocks(|blocks| {
            // SAFETY: the block is free, and has room for an address.
            unsafe { block.cast::<*mut u8>().write(blocks.free[list]) };
            blocks.free[list] = block;
        });
    }
}

/// A block that is a mapping; null if there is none.
fn map(layout: Layout) -> *mut u8 {
    if layout.align() > PAGE {
        return ptr::null_mut();
    }
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let none = ptr::null_mut::<u8>();
    // SAFETY: new memory, at an address that the kernel chooses.
    let address = unsafe { libc::syscall(libc::SYS_mmap, none, layout.size(), access, kind, -1, 0) };
    match address {
        -1 => ptr::null_mut(),
        address => ptr::with_exposed_provenance_mut(address as usize),
    }
}
