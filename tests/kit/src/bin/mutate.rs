//! Writes damaged copies of a ring, a compressed copy, a recording, a core or any other file, for `scripts/fuzz`.
//!
//! ```text
//! mutate FILE NUMBER TARGET
//! ```
//!
//! The damage depends on the file and the number alone. A compressed copy is damaged within, mostly. What is written
//! once gets the right checksums in half of the rings: otherwise a reader refuses most changes of tables before it
//! looks at them.

use std::io::{self, Read, Write};
use std::path::Path;
use std::{env, fs};

use librip_test_kit::Random;
use librip_test_kit::builder::Image;

/// Only such parts of a file are damaged, and those that are all zeros are not: most of a ring is holes.
const BLOCK: usize = 64;
/// More changes leave nothing to read.
const CHANGES_MAX: usize = 12;

/// What breaks out of strings of the formats, and what a terminal would obey.
const NASTY: [&str; 6] = [
    "\u{1b}]0;x\u{7}\u{1b}[2J",
    "\"</script><script>alert(1)</script>",
    "a\\\"b\r\n,;|#{}",
    "\u{202e}\u{2066}\u{feff}\u{9b}",
    "../../../../etc/passwd\0",
    "'; DROP TABLE x; --\u{fffd}",
];
const NUMBERS: [u64; 12] = [
    0,
    1,
    7,
    u64::MAX,
    u32::MAX as u64,
    1 << 31,
    1 << 63,
    i64::MAX as u64,
    1 << 47,
    1 << 32,
    4096,
    0x7265_7465_6d61_726b,
];

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [file, number, target] = arguments.as_slice() else {
        return Err(io::Error::other("usage: mutate FILE NUMBER TARGET"));
    };
    let bytes = fs::read(file)?;
    let mut random = Random(number.parse().map_err(io::Error::other)?);
    let is_gzip = bytes.starts_with(&[0x1f, 0x8b]);
    if is_gzip && random.below(4) > 0 {
        let mut unpacked = Vec::new();
        flate2::read::MultiGzDecoder::new(&*bytes).read_to_end(&mut unpacked)?;
        librip_test_kit::gzip(&damaged(unpacked, &mut random), Path::new(target));
        return Ok(());
    }
    write_sparse(&damaged(bytes, &mut random), Path::new(target))
}

/// Changes a few places, and perhaps the length.
fn damaged(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    let blocks: Vec<usize> =
        (0..bytes.len() / BLOCK).filter(|at| bytes[at * BLOCK..][..BLOCK] != [0; BLOCK]).collect();
    let texts = texts(&bytes);
    for _ in 0..1 + random.below(CHANGES_MAX) {
        let Some(&block) = blocks.get(random.below(blocks.len().max(1))) else { break };
        let at = block * BLOCK + random.below(BLOCK);
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => put(&mut bytes, at & !7, &NUMBERS[random.below(NUMBERS.len())].to_le_bytes()),
            2 => put(&mut bytes, at & !3, &random.next().to_le_bytes()[..4]),
            3 => {
                // Another place's number, or text.
                let from = blocks[random.below(blocks.len())] * BLOCK;
                let part = bytes[from..][..8 << random.below(4)].to_vec();
                put(&mut bytes, at & !7, &part);
            }
            4 if !texts.is_empty() => {
                let (at, len) = texts[random.below(texts.len())];
                let text = NASTY[random.below(NASTY.len())].as_bytes();
                put(&mut bytes, at, &text[..text.len().min(len)]);
            }
            _ => {
                let end = bytes.len().min(at + (1 << random.below(12)));
                bytes[at..end].fill(0);
            }
        }
    }
    match random.below(12) {
        0 => bytes.truncate(random.below(bytes.len().max(1))),
        1 => bytes.extend((0..random.below(5000)).map(|_| random.0 as u8)),
        _ => {}
    }
    if random.below(2) == 0 {
        let mut image = Image { file_len: bytes.len(), bytes };
        image.seal();
        return image.bytes;
    }
    bytes
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    let end = bytes.len().min(at + value.len());
    if at < end {
        bytes[at..end].copy_from_slice(&value[..end - at]);
    }
}

/// Where texts are, and how long: names and paths.
fn texts(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut begin = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if !(b' '..=b'~').contains(byte) {
            if at - begin >= 5 {
                found.push((begin, at - begin));
            }
            begin = at + 1;
        }
    }
    found
}

/// Writes a file whose pages of zeros are holes.
fn write_sparse(bytes: &[u8], path: &Path) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let file = fs::File::create(path)?;
    for (index, page) in bytes.chunks(4096).enumerate() {
        if page.iter().any(|&byte| byte != 0) {
            file.write_all_at(page, 4096 * index as u64)?;
        }
    }
    file.set_len(bytes.len() as u64)?;
    (&file).flush()
}
