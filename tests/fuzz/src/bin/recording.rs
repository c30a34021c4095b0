//! What `read-rip record` writes: every byte of a recording. Runs all commands.
//!
//! The blocks of the inputs whose last bit is set get the right checksums: otherwise a reader refuses a changed block
//! before it looks into it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use librip_test_kit::checksum::of_pieces;
use read_rip::ring::{self, Follower, IntoParts, Parts, RecordingWriter, Source};
use read_rip_fuzz::{begin, file, read_everything, ring};

const BLOCK: &[u8; 8] = b"RIPBLOCK";
const HEADER_LEN: usize = 48;
/// The checksum is behind the rest of the header.
const SUMMED_LEN: usize = 40;
const PIECE_LEN: usize = 1 << 16;

/// A recording with two images and the words of all threads between them, and one without words.
fn seeds() -> Vec<Vec<u8>> {
    let path = file("followed", &ring().build().bytes);
    let source = Source::open(&path).expect("a ring");
    let header = ring::present_header(&source).expect("a header");
    let new = Follower::default().new_words(&source, &header).expect("words");
    let mut image = Parts::default();
    ring::write_image(&source, Some(&header), &mut IntoParts(&mut image)).expect("memory");
    let recording = |words: &[_]| {
        let mut bytes = Vec::new();
        let mut writer = RecordingWriter::new(&mut bytes).expect("memory");
        for _ in 0..2 {
            writer.image(&image, 0).expect("memory");
            writer.words(words, 0..0).expect("memory");
        }
        bytes
    };
    vec![recording(&new), recording(&[])]
}

/// Gives each block the checksum of what it has.
fn seal(bytes: &mut [u8]) {
    let mut at = 16;
    while at + HEADER_LEN <= bytes.len() {
        let (head, rest) = bytes[at..].split_at_mut(HEADER_LEN);
        let len = u64::from_le_bytes(head[16..24].try_into().expect("eight bytes"));
        let len = usize::try_from(len).ok().filter(|&len| len <= rest.len());
        match len.filter(|_| head.starts_with(BLOCK)) {
            Some(len) => {
                let sum = of_pieces([&head[..SUMMED_LEN]].into_iter().chain(rest[..len].chunks(PIECE_LEN)));
                head[SUMMED_LEN..].copy_from_slice(&sum.to_le_bytes());
                at += HEADER_LEN + len;
            }
            None => at += 1,
        }
    }
}

fuzz_target!(init: begin(seeds), |bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    if bytes.last().is_some_and(|last| last % 2 == 1) {
        seal(&mut bytes);
    }
    read_everything(&file("recording", &bytes));
});
