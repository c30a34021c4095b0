//! `read-rip top`: a live screen of a process, or of all processes of this machine.
//!
//! A thread reads (`reader`), this one waits for keys and for what was read, and draws. What keys do and how it looks
//! is in `crate::top`.

mod detail;
mod processes;
mod reader;
pub(super) mod terminal;
mod update;

use std::io;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use read_rip_case::{Options, Subject};
use read_rip_evidence::process::Ends;
use terminal::{Event, Terminal};

use super::error::AppError;
use super::output::SOUND;
use super::rings;
use super::signals::Signals;
use crate::cli::{Common, RingArgs, TopArgs};
use crate::top::{Request, State, Tab};
use processes::Processes;
use reader::{Ask, Found, Reader, WINDOW};

/// How long it waits for a key before it looks for what was read.
const TICK: Duration = Duration::from_millis(100);

/// `read-rip top`.
pub(super) fn top(args: &TopArgs, common: &Common) -> Result<u8, AppError> {
    terminal::check(common)?;
    let subject = args.ring.name().map(|_| rings::choose(&args.ring, common)).transpose()?;
    let mut state = State::default();
    state.has_processes = subject.is_none();
    if subject.is_none() {
        state.tab = Tab::Processes;
    }
    // The threads that are started later block these signals too.
    let signals = Signals::catch()?;
    let (ask, asked) = channel();
    let (send, found) = channel();
    let of_reader = common.clone();
    // Files that are open cannot change threads, so the reader is made where it reads.
    let read = move || {
        Reader {
            options: Options { window: WINDOW, settles: false, ..of_reader.options() },
            common: of_reader,
            asked,
            found: send,
            subject,
            processes: Processes::default(),
            unanswered: Vec::new(),
            ends: Ends::default(),
        }
        .run()
    };
    thread::Builder::new().spawn(read)?;
    let mut screen = Screen { state, ask, found, common };
    let mut terminal = Terminal::start(signals, !args.no_mouse, common.color)?;
    let ended = screen.run(&mut terminal);
    // The terminal is as it was before an error is written.
    drop(terminal);
    ended.map(|()| SOUND)
}

struct Screen<'a> {
    state: State,
    ask: Sender<Ask>,
    found: Receiver<Found>,
    common: &'a Common,
}

impl Screen<'_> {
    fn run(&mut self, terminal: &mut Terminal) -> Result<(), AppError> {
        terminal.draw(&mut self.state)?;
        loop {
            let mut has_changed = false;
            match terminal.next(TICK)? {
                Event::Input(input) => {
                    let was = self.state.tab;
                    match self.state.input(input) {
                        Some(Request::Quit) => return Ok(()),
                        Some(request) => self.request(request),
                        None => {}
                    }
                    if self.state.tab == Tab::Processes && was != Tab::Processes {
                        self.state.clear();
                        // The reader has ended if nobody hears this.
                        let _ = self.ask.send(Ask::Processes);
                    }
                    has_changed = true;
                }
                Event::Resized => has_changed = true,
                Event::End => return Ok(()),
                Event::Nothing => {}
            }
            loop {
                match self.found.try_recv() {
                    Ok(found) => self.take(found),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => {
                        return Err(AppError::Output(io::Error::other("the reading thread has failed")));
                    }
                }
                has_changed = true;
            }
            if has_changed {
                terminal.draw(&mut self.state)?;
            }
        }
    }

    fn request(&mut self, request: Request) {
        let ask = match request {
            Request::Quit => return,
            Request::Thread(key) => Ask::Thread(key),
            Request::Save => {
                self.state.message = "saving a copy ...".to_owned();
                Ask::Save
            }
            Request::Report => {
                self.state.message = "writing a page ...".to_owned();
                Ask::Report
            }
            Request::Process(name) => match self.choose(&name) {
                Ok(subject) => {
                    self.state.clear();
                    self.state.tab = Tab::Locks;
                    Ask::Process(Box::new(subject))
                }
                Err(error) => {
                    self.state.message = error.sentence();
                    return;
                }
            },
        };
        // The reader has ended if nobody hears this.
        let _ = self.ask.send(ask);
    }

    fn choose(&self, name: &str) -> Result<Subject, AppError> {
        let ring = RingArgs { ring: Some(name.into()), ring_option: None };
        rings::choose(&ring, self.common)
    }

    fn take(&mut self, found: Found) {
        match found {
            // A reading that began before the user went back to the processes is of no use.
            Found::Picture(picture) if self.state.tab != Tab::Processes => self.state.add(*picture),
            Found::ProcessTable(machine) if self.state.tab == Tab::Processes => {
                self.state.machine = Some(machine);
            }
            Found::Update(update) if self.state.tab != Tab::Processes => self.state.update = Some(*update),
            Found::Picture(_) | Found::Update(_) | Found::ProcessTable(_) => {}
            Found::Thread(key, lines) => self.state.add_thread(key, lines),
            Found::Message(message) => self.state.message = message,
            Found::Ended(why) => self.state.end(why),
        }
    }
}
