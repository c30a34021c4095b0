//! Functions that a linker folds into one because their instructions are equal: the marks in them share a PC.

use crate::{CLANG, build, installed, is_installed, line_of, run};
use librip_test_kit::reader;

#[test]
fn marks_that_a_linker_has_folded_are_all_shown() {
    if installed(&[CLANG]).is_empty() || !is_installed("ld.lld") {
        eprintln!("SKIPPED: it takes clang and lld");
        return;
    }
    let flags = ["-O2", "-g", "-ffunction-sections", "-fuse-ld=lld", "-Wl,--icf=all"];
    let remains = run(&build(CLANG, &["folded.c"], "folded", &flags), &[]);
    let ring = remains.ring_path();
    let line = |text: &str| line_of("folded.c", &format!("/* {text} */"));
    let location =
        format!("folded.c:{}|folded.c:{}|folded.c:{}", line("opens"), line("closes"), line("answers"));
    let threads = reader::ask(&["-t"], &ring).stdout;
    assert!(
        threads.ends_with(&format!(": {{0}}{location}, {{1}}{location}, {{2}}{location}\n")),
        "{threads}"
    );
    let condensed = reader::ask(&["-v"], &ring);
    let text = &condensed.stdout;
    assert!(text.contains("\nanswer|close_session|open_session : 1 thread"), "{text}");
    assert!(text.contains("\"opens\"|\"closes\""), "{text}");
    let remarks = &condensed.stderr;
    assert!(
        remarks.contains(&format!("Warning: {location}: the linker has folded marks of different meaning")),
        "{remarks}"
    );
}
