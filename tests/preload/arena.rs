//! The interposer's own memory: no block has two owners, whatever threads do at once.

#![allow(unsafe_code, reason = "an allocator is called")]

use std::alloc::{GlobalAlloc, Layout};

use librip_test_kit::Random;

#[path = "../../librip/preload/src/arena.rs"]
mod interposer;

/// More blocks than the arena has room for, of all lengths, some longer than any of its own.
const BLOCKS: usize = 300;

#[test]
fn no_block_has_two_owners() {
    static ARENA: interposer::Arena = interposer::Arena::new();
    std::thread::scope(|scope| {
        for seed in 1..=4u8 {
            scope.spawn(move || own_blocks(&ARENA, seed));
        }
    });
}

/// Allocates and frees blocks, and fills each with a number of this thread and block.
fn own_blocks(arena: &interposer::Arena, seed: u8) {
    let mut random = Random(u64::from(seed));
    let mut blocks: Vec<Option<(*mut u8, Layout)>> = vec![None; BLOCKS];
    for _ in 0..20_000 {
        let at = random.below(BLOCKS);
        let number = seed.wrapping_mul(61).wrapping_add(at as u8);
        match blocks[at].take() {
            Some((block, layout)) => {
                // SAFETY: this thread owns the block, which has this length.
                let bytes = unsafe { std::slice::from_raw_parts(block, layout.size()) };
                assert!(bytes.iter().all(|&byte| byte == number), "{layout:?}");
                // SAFETY: it was allocated with this layout.
                unsafe { arena.dealloc(block, layout) };
            }
            None => {
                let length_bits = random.below(17);
                let len_bytes = 1 + random.below(1 << length_bits);
                let layout = Layout::from_size_align(len_bytes, 1 << random.below(13)).unwrap();
                // SAFETY: the length is not 0.
                let block = unsafe { arena.alloc(layout) };
                assert!(!block.is_null() && block.addr() % layout.align() == 0, "{block:?} {layout:?}");
                // SAFETY: the block is this thread's, and has this length.
                unsafe { block.write_bytes(number, len_bytes) };
                blocks[at] = Some((block, layout));
            }
        }
    }
}
