//! A panic of any thread gives the terminal back. This test starts itself as the program that panics.

use librip_test_kit::tmux::Tmux;
use nix::pty::{OpenptyResult, openpty};

use super::*;

/// Which thread of the program panics. Without it, this is the test.
const WHO: &str = "RIP_TEST_PANIC";

#[test]
fn a_panic_gives_the_terminal_back_and_its_message_is_read() {
    if let Ok(who) = std::env::var(WHO) {
        return panic_of(&who);
    }
    let program = std::env::current_exe().unwrap();
    for who in ["screen", "reader"] {
        let name = "app::top::terminal::tests::a_panic_gives_the_terminal_back_and_its_message_is_read";
        let test = format!("{} --exact --nocapture {name}", program.display());
        let environment = format!("RUST_BACKTRACE=0 {WHO}={who}");
        let line = format!("echo before; {environment} {test}; s=$?; stty -a; (exit $s)");
        let Some(tmux) = Tmux::start(&format!("panic-{who}"), (100, 40), &line) else { return };
        let screen = tmux.shows("status 101");
        for wanted in ["before", "the screen was there", " icanon", " echo "] {
            assert!(screen.contains(wanted), "{who}, {wanted:?}: {screen}");
        }
        assert!(!screen.contains("for the first time"), "{who}: {screen}");
        let modes = tmux.knows("#{alternate_on} #{mouse_any_flag} #{cursor_flag}");
        assert_eq!(modes, "0 0 1", "{who}");
    }
}

#[test]
fn a_terminal_that_is_closed_is_noticed_and_keys_are_not_taken_for_it() {
    let OpenptyResult { master, slave } = openpty(None, None).unwrap();
    let (noticed, is_noticed) = std::sync::mpsc::channel();
    let watcher = std::thread::spawn(move || {
        wait_until_gone(slave.as_fd());
        noticed.send(()).unwrap();
    });
    rustix::io::write(&master, b"keys\n").unwrap();
    // Nothing else can be waited for: that the watcher does not wake up.
    assert!(is_noticed.recv_timeout(Duration::from_millis(100)).is_err(), "there are keys to read");
    drop(master);
    is_noticed.recv().unwrap();
    watcher.join().unwrap();
}

fn panic_of(who: &str) {
    let mut terminal = Terminal::start(Signals::catch().unwrap(), true, ColorChoice::Never).unwrap();
    let mut state = State::default();
    terminal.draw(&mut state).unwrap();
    assert!(who == "reader", "the screen was there");
    let reader = std::thread::spawn(|| panic!("the screen was there"));
    assert!(reader.join().is_err());
    // A frame that follows does not reach the terminal.
    state.message = "for the first time".to_owned();
    terminal.draw(&mut state).unwrap();
    drop(terminal);
    std::process::exit(101);
}
