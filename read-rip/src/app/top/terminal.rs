//! The terminal: taken over at the start, and given back however the program ends.

use std::io::{self, IsTerminal, Stdout};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anstream::AutoStream;
use clap::ColorChoice;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{
    self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind,
};
use ratatui::crossterm::execute;
use ratatui::crossterm::style::Print;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::app::error::AppError;
use crate::app::signals::Signals;
use crate::cli::Common;
use crate::top::{Colours, Input, State, draw};

/// Asks for buttons and the wheel, in numbers without a limit; not for each motion, which is much over a network. With
/// shift held, terminals select text as always.
const MOUSE: &str = "\x1b[?1000h\x1b[?1006h";
const NO_MOUSE: &str = "\x1b[?1006l\x1b[?1000l";

/// Whether the terminal is taken over.
///
/// ORDERING: from the first frame on it is used only while standard output is locked, so relaxed is enough.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// How the terminal was before.
static MODES: OnceLock<Termios> = OnceLock::new();

/// What `poll` reports of a terminal that is closed.
const GONE: PollFlags = PollFlags::POLLHUP.union(PollFlags::POLLERR).union(PollFlags::POLLNVAL);
/// How long the thread of the screen has to end the program after that.
const GRACE: Duration = Duration::from_secs(1);

/// What `LeaveAlternateScreen` and `Show` write.
const LEAVE: &str = "\x1b[?1049l\x1b[?25h";

/// Gives the terminal back in a signal handler, before the program ends there. It takes no memory and no lock.
pub(in crate::app) fn give_back_in_signal() {
    if IS_TAKEN.swap(false, Ordering::Relaxed) {
        for text in [NO_MOUSE, LEAVE] {
            let _ = rustix::io::write(io::stdout(), text.as_bytes());
        }
        if let Some(modes) = MODES.get() {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, modes);
        }
    }
}

pub(super) enum Event {
    Input(Input),
    Resized,
    /// The user, or a signal, ends the program.
    End,
    Nothing,
}

/// A terminal that shows this program alone. Given back when it is dropped, and by a panic.
pub(super) struct Terminal {
    screen: ratatui::Terminal<CrosstermBackend<Stdout>>,
    signals: Signals,
    colours: Colours,
}

/// Whether there is a terminal on which a screen can be drawn.
pub(super) fn check(common: &Common) -> Result<(), AppError> {
    let refuse = |why| Err(AppError::NoTerminal { why });
    match std::env::var("TERM").as_deref() {
        _ if common.json => refuse("writes no JSON"),
        _ if !io::stdout().is_terminal() => refuse("standard output is not a terminal"),
        _ if !io::stdin().is_terminal() => refuse("standard input is not a terminal"),
        Err(_) | Ok("") => refuse("TERM does not say what the terminal is"),
        Ok("dumb") => refuse("the terminal cannot move its cursor (TERM=dumb)"),
        Ok(_) => Ok(()),
    }
}

impl Terminal {
    pub(super) fn start(signals: Signals, has_mouse: bool, color: ColorChoice) -> Result<Terminal, AppError> {
        let has_colours = match color {
            ColorChoice::Auto => AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never,
            ColorChoice::Always => true,
            ColorChoice::Never => false,
        };
        let screen = ratatui::Terminal::new(CrosstermBackend::new(io::stdout()))?;
        let colours = if has_colours { Colours::Yes } else { Colours::No };
        let terminal = Terminal { screen, signals, colours };
        // A message of a panic would be lost with the screen. Another thread panics between two frames.
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let _between = io::stdout().lock();
            give_back();
            report(panic);
        }));
        // Without it, `give_back_in_signal` does not change the modes.
        if let Ok(modes) = tcgetattr(io::stdin()) {
            let _ = MODES.set(modes);
        }
        IS_TAKEN.store(true, Ordering::Relaxed);
        watch(io::stdin().as_fd().try_clone_to_owned()?)?;
        enable_raw_mode()?;
        // crossterm hears of a new size from its first poll on. The first picture takes the size after it.
        event::poll(Duration::ZERO)?;
        execute!(io::stdout(), EnterAlternateScreen, Print(if has_mouse { MOUSE } else { "" }))?;
        Ok(terminal)
    }

    pub(super) fn draw(&mut self, state: &mut State) -> Result<(), AppError> {
        let colours = self.colours;
        let _whole = io::stdout().lock();
        if IS_TAKEN.load(Ordering::Relaxed) {
            self.screen.draw(|frame| draw(frame, state, colours))?;
        }
        Ok(())
    }

    /// Waits for a key or a signal, for this time at most.
    pub(super) fn next(&mut self, limit: Duration) -> Result<Event, AppError> {
        if is_gone(limit)? || self.signals.wait(Duration::ZERO)? {
            return Ok(Event::End);
        }
        if !event::poll(Duration::ZERO)? {
            return Ok(Event::Nothing);
        }
        Ok(match event::read()? {
            event::Event::Key(key) => of_key(key),
            event::Event::Mouse(mouse) => match mouse.kind {
                MouseEventKind::Down(MouseButton::Left) => Event::Input(Input::Click(mouse.row)),
                MouseEventKind::ScrollUp => Event::Input(Input::Up),
                MouseEventKind::ScrollDown => Event::Input(Input::Down),
                _ => Event::Nothing,
            },
            event::Event::Resize(..) => Event::Resized,
            _ => Event::Nothing,
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Ends the program soon after the terminal is gone, whatever the thread of the screen does then.
///
/// FOLKLORE: if the terminal is closed after `is_gone` has examined, `crossterm` reads nothing from it again and again,
/// for ever, in `poll` too. Two of some hundred screens on a machine with ten times its load ended so.
fn watch(terminal: OwnedFd) -> io::Result<()> {
    let ends = move || {
        wait_until_gone(terminal.as_fd());
        // Usually the thread of the screen notices it too, and ends what it does.
        thread::sleep(GRACE);
        std::process::exit(0);
    };
    thread::Builder::new().name("terminal".into()).spawn(ends).map(drop)
}

fn wait_until_gone(terminal: BorrowedFd<'_>) {
    let is_gone = |polled: &PollFd<'_>| polled.revents().is_some_and(|events| events.intersects(GONE));
    loop {
        // What `poll` reports unasked is that the other side is closed.
        let mut polled = [PollFd::new(terminal, PollFlags::empty())];
        match poll(&mut polled, PollTimeout::NONE) {
            Ok(_) if is_gone(&polled[0]) => return,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}

/// Waits until something can be read, for this time at most. Returns whether the terminal is gone.
///
/// FOLKLORE: of a terminal that is closed, only the leader of its session hears by SIGHUP, and `crossterm` reads
/// nothing from it again and again. `poll` reports that it is closed.
fn is_gone(limit: Duration) -> Result<bool, AppError> {
    let stdin = io::stdin();
    let mut polled = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    match poll(&mut polled, PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX)) {
        // A signal of another size of the terminal interrupts it.
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => return Err(io::Error::from(error).into()),
    }
    Ok(polled[0].revents().is_some_and(|events| events.intersects(GONE)))
}

/// The terminal as it was, once. If it is gone, nobody misses that.
fn give_back() {
    let _between = io::stdout().lock();
    // A second time, the cursor would go back to where it was before the message of a panic.
    if IS_TAKEN.swap(false, Ordering::Relaxed) {
        let _ = execute!(io::stdout(), Print(NO_MOUSE), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

fn of_key(key: KeyEvent) -> Event {
    if key.kind == KeyEventKind::Release {
        return Event::Nothing;
    }
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    Event::Input(match key.code {
        KeyCode::Char('c') if is_control => return Event::End,
        KeyCode::Char(_) if is_control => return Event::Nothing,
        KeyCode::Char(character) => Input::Character(character),
        KeyCode::Up => Input::Up,
        KeyCode::Down => Input::Down,
        KeyCode::PageUp => Input::PageUp,
        KeyCode::PageDown => Input::PageDown,
        KeyCode::Home => Input::Home,
        KeyCode::End => Input::End,
        KeyCode::Left => Input::Left,
        KeyCode::Right => Input::Right,
        KeyCode::Enter => Input::Enter,
        KeyCode::Esc => Input::Escape,
        KeyCode::Backspace => Input::Backspace,
        KeyCode::Tab => Input::Tab,
        _ => return Event::Nothing,
    })
}

#[cfg(test)]
#[path = "terminal_tests.rs"]
mod tests;
