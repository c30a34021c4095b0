//! What is on the screen, at several sizes, without a terminal.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use read_rip::top::{Colours, Input, LockUpdate, State, Tab, Update, draw};
use read_rip_model::locks::{Quantiles, Rate};
use read_rip_report::{LockKey, Picture, ProcessRow, ProcessTable, ProcessorUse, Severity, ThreadKey};

use crate::scene::{SECOND_NS, picture, screen, state};

#[test]
fn the_answer_is_in_the_first_lines_of_80_columns_and_24_lines() {
    let lines = screen(&mut state(), 80, 24);
    let expected = [
        "proven deadlock: 2 threads wait for one another, for 3.0 s",
        "    worker[11] waits for CACHE, held by worker[12]",
        "    next: acquire these locks in one order everywhere",
        "server[7], alive: 2 threads",
        "200 words/s recorded; of 2 threads: 2 wait for locks",
        "  WAIT  LONGEST CONTENDED LOCK                       HELD BY",
        "     2    3.0 s      33 % CACHE                      worker[12] at cache.rs:12",
        "     1    3.0 s      33 % INDEX                      worker[11] at cache.rs:12",
        "     0               33 % LOG",
        "5 more locks",
    ];
    assert_eq!(lines[..10], expected);
    assert!(
        lines[23].starts_with("Enter open  Esc back  1 locks 2 threads") && lines[23].ends_with("q quit")
    );
}

#[test]
fn slow_cycles_are_above_the_list_of_a_healthy_process() {
    let cycles = "55 slow cycles were kept; the worst took 341 ms: 98 % in `grow`, 10240 page faults; next: read-rip \
                  captures 7";
    let mut state = State::default();
    state.add(Picture { slow_cycles: cycles.to_owned(), ..picture(0) });
    let lines = screen(&mut state, 80, 24);
    assert_eq!(lines[5], "55 slow cycles were kept; the worst took 341 ms: 98 % in `grow`, 10240 page");
    assert_eq!(lines[6].trim(), "faults; next: read-rip captures 7");
    assert!(lines[7].starts_with("  WAIT  LONGEST"), "{lines:#?}");
}

#[test]
fn ten_lines_of_40_columns_are_enough_for_the_verdict_and_a_list() {
    let lines = screen(&mut state(), 40, 10);
    assert_eq!(lines[..2], ["proven deadlock: 2 threads wait for one", "another, for 3.0 s"]);
    assert_eq!(lines[2], "server[7], alive: 2 threads");
    assert!(lines[4].contains("CACHE"), "{lines:#?}");
    for (width, height) in [(1, 1), (3, 2), (12, 4), (500, 3)] {
        assert_eq!(screen(&mut state(), width, height).len(), usize::from(height));
    }
}

#[test]
fn a_long_sentence_of_the_evidence_goes_on_below() {
    let lines = screen(&mut state(), 40, 24);
    let expected = [
        "    worker[11] waits for CACHE, held by",
        "        worker[12]",
        "    next: acquire these locks in one",
        "        order everywhere",
    ];
    assert_eq!(lines[2..6], expected);
}

#[test]
fn how_often_locks_are_acquired_is_shown_where_it_is_known_and_there_is_room() {
    let mut rated = picture(0);
    let rate = |acquired, contended, is_estimate| Some(Rate { acquired, contended, is_estimate });
    rated.locks[0].rate = rate(12_345, 7, true);
    rated.locks[1].rate = rate(250_999, 0, false);
    rated.locks[2].rate = rate(0, 0, true);
    let mut state = State::default();
    state.add(rated);
    let cells = |state: &mut State, width| {
        let rows = screen(state, width, 24);
        let is_of_list =
            |line: &&String| ["HELD BY", " CACHE ", " INDEX ", " LOG"].iter().any(|it| line.contains(it));
        let rows = rows.iter().filter(is_of_list).filter(|line| !line.contains("waits for"));
        rows.map(|row| row.chars().skip(25).take(17).collect::<String>()).collect::<Vec<_>>()
    };
    let wide = cells(&mut state, 120);
    assert_eq!(wide, ["   ACQ/S  CONT/S ", "  ~12.3k      ~7 ", "    250k       0 ", "                 "]);
    let usual = cells(&mut state, 80);
    assert_eq!(usual[..2], ["   ACQ/S LOCK    ", "  ~12.3k CACHE   "]);
    assert_eq!(cells(&mut state, 69)[1], " CACHE           ".to_owned());
}

/// A busy and healthy process, so many seconds after the first reading.
fn busy(seconds: u64) -> Picture {
    let mut busy =
        Picture { severity: Severity::None, verdict: "no findings".to_owned(), ..picture(seconds) };
    busy.findings.clear();
    let acquired = [0, 50, 400, 800][seconds as usize];
    busy.locks[0].rate = Some(Rate { acquired, contended: 7, is_estimate: false });
    busy.locks[0].waits =
        Some(Quantiles { count: 9, p50_ns: 1500, p90_ns: 2000, p99_ns: 3500, max_ns: 9000 });
    busy.locks[0].holds = Some(Quantiles { count: 9, p50_ns: 40, p90_ns: 50, p99_ns: 60, max_ns: 70 });
    let percent = [100, 25, 0, 50][seconds as usize];
    busy.threads[1].processor = Some(ProcessorUse { percent, last: Some(3) });
    busy
}

#[test]
fn lengths_of_waits_and_holds_and_the_last_readings_are_shown_where_there_is_room() {
    let mut state = State::default();
    (0..4).for_each(|seconds| state.add(busy(seconds)));
    let row = |state: &mut State, width| {
        let lines = screen(state, width, 24);
        let at = lines.iter().position(|line| line.contains("HELD BY")).unwrap();
        assert!(lines[at + 1].contains("CACHE"), "{lines:#?}");
        [lines[at].clone(), lines[at + 1].clone()]
    };
    let rows = row(&mut state, 120);
    let expected = [
        " WAIT P99 HELD P99 LAST READINGS LOCK                     HELD BY",
        "  ~3.5 us   ~60 ns          ·▁▄█ CACHE                    worker[12] at cache.r",
    ];
    assert_eq!(rows.map(|row| row.chars().skip(41).collect::<String>()), expected);
    let [headings, rows] = row(&mut state, 200);
    assert!(headings.contains(" WAIT P50 WAIT P99 HELD P50 HELD P99 "), "{headings}");
    assert!(rows.contains("  ~1.5 us  ~3.5 us   ~40 ns   ~60 ns "), "{rows}");
    let usual = row(&mut state, 80);
    assert_eq!(usual[0], "  WAIT  LONGEST CONTENDED   ACQ/S LOCK                       HELD BY");
    // A reading before the last one has the history until then.
    state.input(Input::Left);
    assert!(row(&mut state, 120)[1].contains("      ·▁█ CACHE"));
    // What was not replaced is exact.
    let mut exact = State::default();
    exact.add(Picture { is_partial: false, ..busy(0) });
    assert!(row(&mut exact, 120)[1].contains("   3.5 us    60 ns "), "{:#?}", row(&mut exact, 120));
}

#[test]
fn threads_have_their_share_of_a_processor_and_are_below_the_locks_where_these_leave_room() {
    let mut state = State::default();
    (0..4).for_each(|seconds| state.add(busy(seconds)));
    let below = screen(&mut state, 120, 24);
    state.input(Input::Character('2'));
    let alone = screen(&mut state, 120, 24);
    let of_threads = |lines: &[String]| {
        let at = lines.iter().position(|line| line.contains("WHAT AND WHERE")).unwrap();
        lines[at..at + 3].to_vec()
    };
    let expected = [
        "  WORDS HOLDS   CPU  ON LAST READINGS THREAD                         WHAT AND WHERE",
        "      0     1                         worker[11]                     waiting for CACHE, at cache.rs:12",
        "     40        50 %   3          █▂·▄ worker[12]                     running, at cache.rs:12",
    ];
    assert_eq!(of_threads(&below), expected);
    assert_eq!(of_threads(&alone), expected);
    let usual = of_threads(&screen(&mut state, 80, 24));
    assert_eq!(usual[2], "     40        50 %   3 worker[12]                 running, at cache.rs:12");
    // What the page of the chosen lock says is below both lists.
    let at = below.iter().position(|line| line.contains("worker[12]  ")).unwrap();
    assert_eq!(below[at + 2..at + 4], ["CACHE  mutex at 0x10", "  held by worker[11]"]);
    // Without room, there is neither.
    state.input(Input::Character('1'));
    assert!(!screen(&mut state, 80, 12).iter().any(|line| line.contains("WHAT AND WHERE")));
}

#[test]
fn a_large_screen_has_the_whole_rows() {
    let lines = screen(&mut state(), 200, 60);
    let row = lines.iter().find(|line| line.contains("INDEX")).unwrap();
    assert!(row.ends_with("worker[11] at cache.rs:12"), "{row}");
    assert!(lines[59].starts_with("Enter open"), "{lines:#?}");
}

#[test]
fn only_the_rows_on_the_screen_are_made_of_40000_threads() {
    let mut state = State::default();
    let mut many = picture(0);
    many.threads = (0..40_000).map(|tid| crate::scene::thread(tid, 0, 0)).collect();
    state.add(many);
    state.input(Input::Character('2'));
    let of_threads = |lines: &[String]| lines.iter().filter(|line| line.contains("worker[")).count();
    let lines = screen(&mut state, 80, 24);
    assert!(of_threads(&lines) <= 24 && lines[6].contains("worker[0]"), "{lines:#?}");
    state.input(Input::End);
    let lines = screen(&mut state, 80, 24);
    assert!(lines.iter().any(|line| line.contains("worker[39999]")), "{lines:#?}");
}

#[test]
fn the_list_of_threads_says_that_it_has_tasks() {
    let heading = |state: &mut State| {
        state.input(Input::Character('2'));
        screen(state, 80, 24).into_iter().find(|line| line.contains("WHAT AND WHERE")).unwrap()
    };
    let of_threads = heading(&mut state());
    assert!(of_threads.contains(" THREAD ") && !of_threads.contains("TASK"), "{of_threads}");
    let mut picture = picture(0);
    picture.threads[1].is_task = true;
    let mut state = State::default();
    state.add(picture);
    let of_both = heading(&mut state);
    assert!(of_both.contains(" THREAD OR TASK "), "{of_both}");
}

#[test]
fn a_proven_finding_is_red_and_nothing_has_a_colour_without_colours() {
    for (colours, expected) in [(Colours::Yes, Color::Red), (Colours::No, Color::Reset)] {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, &mut state(), colours)).unwrap();
        let buffer = terminal.backend().buffer();
        assert_eq!(buffer[(0, 0)].fg, expected);
        if colours == Colours::No {
            assert!(buffer.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
        }
    }
}

#[test]
fn what_was_looked_at_and_what_was_not_is_above_the_list_of_processes() {
    let row = |program: &str, severity, text: &str| ProcessRow {
        name: "4711".to_owned(),
        program: program.to_owned(),
        severity,
        is_unjudged: false,
        text: text.to_owned(),
    };
    let mut state = State::default();
    state.tab = Tab::Processes;
    let rows = vec![
        row("bank[4711]", Severity::Proven, "proven deadlock"),
        row("idle[9]", Severity::None, "no findings"),
    ];
    let examined =
        ["Examined 2 processes with 5 threads: 1 has findings.", "Skipped: 31 that this user may not read."];
    state.machine = Some(ProcessTable { rows, examined: examined.map(str::to_owned).to_vec() });
    let machine = state.machine.take();
    assert!(screen(&mut state, 80, 24)[0].starts_with("reading the processes"), "nothing is known yet");
    state.machine = machine;
    let lines = screen(&mut state, 80, 24);
    assert_eq!(lines[..2], examined);
    assert!(lines[3].starts_with("bank[4711]") && lines[3].ends_with("proven deadlock"), "{lines:#?}");
}

#[test]
fn what_moved_since_a_picture_is_on_the_screen_and_the_age_of_the_judgement() {
    let mut state = state();
    let lock = |address| LockKey { pid: 7, address };
    let thread = |tid| ThreadKey { pid: 7, tid };
    let held = |waiters, tid| LockUpdate { waiters, holder: Some(thread(tid)) };
    state.update = Some(Update {
        taken_ns: 112 * SECOND_NS,
        period_ns: Some(SECOND_NS / 4),
        waiting: 4,
        holding: 1,
        locks: [(lock(0x10), held(4, 11)), (lock(0x99), held(9, 99))].into_iter().collect(),
        advanced: [(thread(11), 30)].into_iter().collect(),
    });
    let lines = screen(&mut state, 120, 24);
    let doing = "120 words/s recorded; now 4 wait for locks and 1 hold some; judged 12.0 s ago; \
        of 2 threads: 2 wait for locks";
    let now = [
        "     4    3.0 s      33 % CACHE                                    worker[11]",
        "     0    3.0 s      33 % INDEX                                    worker[11] at cache.rs:12",
    ];
    assert_eq!((&*lines[4], &lines[6..8]), (doing, &now.map(str::to_owned)[..]));
    state.input(Input::Character('2'));
    let lines = screen(&mut state, 120, 24);
    let words: Vec<&str> = lines[6..8].iter().map(|line| line[..7].trim()).collect();
    assert_eq!(words, ["30", "0"]);
    // A frozen screen shows its picture.
    state.input(Input::Character(' '));
    let lines = screen(&mut state, 120, 24);
    assert!(lines[4].starts_with("200 words/s recorded; of 2 threads"), "{lines:#?}");
    // A new picture knows all of it.
    state.input(Input::Character(' '));
    state.add(picture(13));
    let lines = screen(&mut state, 120, 24);
    assert!(lines[4].starts_with("200 words/s recorded; of 2 threads"), "{lines:#?}");
}
