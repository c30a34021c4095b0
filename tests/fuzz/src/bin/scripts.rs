//! What `scripts/lock-holders` and `scripts/lock-waiters` read: the input is their standard input.
//!
//! They are programs of another language, which the engine does not see into: it mutates the seeds without guidance.
#![no_main]

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use libfuzzer_sys::fuzz_target;
use read_rip_fuzz::{begin, file};

fn seeds() -> Vec<Vec<u8>> {
    let seeds = [
        "one[1]: {70}a.c:124<0x442bae>, {71}a.c:124<0x442bb6>\ntwo[2]: {0}a.c:124<0x442bae>, {1}b.c:129, EXIT\n",
        "a[b] c[3]: {1}x.rs:1(takes), {2}x.rs:1(waits),\n  {3}x.rs:9(released)\n",
        "t[4] exited: {5}a.c:1|b.c:2|..., {6}0x7f0000001000\n",
    ];
    seeds.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fuzz_target!(init: begin(seeds), |bytes: &[u8]| {
    let input = file("input", bytes);
    for (script, option) in [("lock-holders", "-s"), ("lock-waiters", "-v")] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(script);
        let output = Command::new("perl")
            .arg("-w")
            .arg(path)
            .args(bytes.len().is_multiple_of(2).then_some(option))
            .stdin(Stdio::from(File::open(&input).expect("it was written")))
            .output()
            .expect("perl");
        let said = String::from_utf8_lossy(&output.stderr);
        // 2 is for an input without a thread, with one line that says so. Warnings of perl's name a line of the script.
        let is_refused = output.status.code() == Some(2) && said.lines().count() == 1;
        let is_quiet = !said.contains(" line ") && (is_refused || said.is_empty());
        assert!(is_quiet && (is_refused || output.status.success()), "{script}: {} {said}", output.status);
    }
});
