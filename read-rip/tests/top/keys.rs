//! What keys do to the state, without a terminal.

use read_rip::top::{Detail, Input, Request, State, Tab};
use read_rip_report::ThreadKey;

use crate::scene::{SECOND_NS, lock, picture, screen, state};

fn press(state: &mut State, keys: &str) {
    keys.chars().for_each(|key| assert_eq!(state.input(Input::Character(key)), None));
}

fn chosen(state: &State) -> &str {
    &state.locks()[state.at].name
}

#[test]
fn the_chosen_lock_stays_chosen_when_it_moves() {
    let mut state = state();
    press(&mut state, "j");
    assert_eq!(chosen(&state), "INDEX");
    let mut moved = picture(1);
    moved.locks.insert(0, lock(0x40, "NEW", 9, None));
    moved.locks.insert(0, lock(0x50, "NEWER", 10, None));
    state.add(moved);
    assert_eq!((chosen(&state), state.at), ("INDEX", 3));
    press(&mut state, "ss");
    assert_eq!(chosen(&state), "INDEX", "by name");
}

#[test]
fn from_a_lock_the_way_leads_to_its_holder_and_back() {
    let mut state = state();
    assert_eq!(state.input(Input::Enter), None);
    assert!(screen(&mut state, 80, 24).iter().any(|line| line == "CACHE  mutex at 0x10"));
    let holder = ThreadKey { pid: 7, tid: 12 };
    assert_eq!(state.input(Input::Enter), Some(Request::Thread(holder)));
    assert!(screen(&mut state, 80, 24).iter().any(|line| line == "reading ..."));
    state.add_thread(holder, vec!["the stack".to_owned()]);
    assert!(screen(&mut state, 80, 24).iter().any(|line| line == "the stack"));
    assert_eq!(state.input(Input::Character('r')), Some(Request::Thread(holder)));
    state.input(Input::Escape);
    assert!(matches!(state.pages[..], [Detail::Lock(_)]));
    state.input(Input::Escape);
    assert!(state.pages.is_empty());
}

#[test]
fn a_lock_without_a_holder_leads_nowhere_and_says_so() {
    let mut state = state();
    press(&mut state, "jj");
    state.input(Input::Enter);
    assert_eq!(state.input(Input::Enter), None);
    assert_eq!(state.message, "no thread is known to hold it");
}

#[test]
fn a_copy_and_a_page_are_of_a_process_and_not_of_the_list_of_processes() {
    for (key, request) in [('w', Request::Save), ('R', Request::Report)] {
        let mut state = state();
        assert_eq!(state.input(Input::Character(key)), Some(request));
        state.tab = Tab::Processes;
        assert_eq!(state.input(Input::Character(key)), None);
        assert_eq!(state.message, "choose a process first");
    }
}

#[test]
fn a_filter_lists_what_matches_and_a_wrong_one_says_so() {
    let mut state = state();
    press(&mut state, "/IND|worker.11");
    state.input(Input::Enter);
    assert_eq!(state.locks().len(), 1);
    press(&mut state, "2");
    assert_eq!(state.threads().len(), 1);
    press(&mut state, "/(");
    state.input(Input::Enter);
    assert_eq!(state.message, "not a regular expression: (");
    state.input(Input::Escape);
    assert_eq!(state.threads().len(), 2);
}

#[test]
fn a_frozen_screen_stays_and_steps_back_through_what_was_read() {
    let mut state = state();
    for seconds in 1..4 {
        state.add(picture(seconds));
    }
    press(&mut state, " ");
    state.add(picture(4));
    assert_eq!(state.behind_ns(), Some(SECOND_NS));
    state.input(Input::Left);
    assert_eq!(state.behind_ns(), Some(2 * SECOND_NS));
    assert!(screen(&mut state, 80, 24).iter().any(|line| line.starts_with("FROZEN, 2.0 s ago  server[7]")));
    state.input(Input::Right);
    state.input(Input::Right);
    assert_eq!(state.behind_ns(), None, "the newest one is not frozen");
    press(&mut state, " ");
    press(&mut state, " ");
    assert_eq!(state.behind_ns(), None);
}

#[test]
fn pictures_are_kept_for_five_minutes_and_64_mib() {
    let mut state = state();
    state.add(picture(299));
    assert_eq!(state.pictures.len(), 2);
    state.add(picture(301));
    assert_eq!(state.pictures.len(), 2, "the first one is too old");
    let mut large = picture(302);
    large.findings = vec!["x".repeat(40 << 20)];
    state.add(large.clone());
    assert_eq!(state.pictures.len(), 3);
    state.add(large);
    assert_eq!(state.pictures.len(), 1, "both are too large, and the last one stays");
}

#[test]
fn a_click_chooses_a_row() {
    let mut state = state();
    let lines = screen(&mut state, 80, 24);
    let line = lines.iter().position(|line| line.contains("INDEX")).unwrap();
    state.input(Input::Click(u16::try_from(line).unwrap()));
    assert_eq!(chosen(&state), "INDEX");
    state.input(Input::Click(0));
    assert_eq!(chosen(&state), "INDEX");
}

#[test]
fn what_was_read_last_stays_when_the_process_has_ended() {
    let mut state = state();
    state.end("process 7 has ended".to_owned());
    let lines = screen(&mut state, 80, 24);
    assert!(lines[0].starts_with("proven deadlock"), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("ENDED, this is the last reading")), "{lines:#?}");
}
