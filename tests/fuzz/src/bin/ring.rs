//! The whole file: every byte of a ring, plain or compressed, in the present or the legacy format. Runs all commands.
//!
//! An input whose last bit is set gets the right checksums for what is written once: otherwise a reader refuses most
//! changes of tables before it looks at them.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use librip_test_kit::builder::{Image, Ring};
use librip_test_kit::{gzip, legacy};
use read_rip_fuzz::{begin, file, read_everything, ring};

fn seeds() -> Vec<Vec<u8>> {
    let sound = ring().build().bytes;
    let compressed = file("compressed", &[]);
    gzip(&sound, &compressed);
    let more = Ring { unknown_regions: true, extra_bytes: 16, exit_status: Some(3), ..ring() };
    let threads = [(3, legacy::Slot::new("a").marks([0x40_1000; 40])), (5, legacy::Slot::new("b").exit())];
    vec![
        sound,
        fs::read(compressed).expect("it was written"),
        more.build().bytes,
        Ring::new().build().bytes,
        legacy::build(&threads),
    ]
}

fuzz_target!(init: begin(seeds), |bytes: &[u8]| {
    let mut image = Image { bytes: bytes.to_vec(), file_len: bytes.len() };
    if bytes.last().is_some_and(|last| last % 2 == 1) {
        image.seal();
    }
    read_everything(&file("ring", &image.bytes));
});
