//! The file of findings not to be reported, over a ring with findings.
#![no_main]

use libfuzzer_sys::fuzz_target;
use read_rip_fuzz::{begin, file, read_rip, ring};

fn seeds() -> Vec<Vec<u8>> {
    let seeds = [
        "# known\ndeadlock\ncontention:^LOG$\n",
        "lock-order:bank\\.rs:3[57]\nlong-hold : cache|log\n",
        "deadlock:(a|b)*c{2,3}[^x-z]\\d\\pL(?i)q\n",
        "double-lock\r\n\t starvation:.\n",
    ];
    seeds.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fuzz_target!(init: begin(seeds), |bytes: &[u8]| {
    let suppressions = file("suppressions", bytes);
    let ring = file("ring", &ring().build().bytes);
    let suppressions = suppressions.to_str().expect("a path in ASCII");
    read_rip(&["check", "--threshold", "1us", "--suppress", suppressions], &ring);
});
