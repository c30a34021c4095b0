//! The towers of Hanoi, printed and then recorded: what it costs to say what a program does.
//!
//! `read-rip log` shows the moves that were recorded, and `read-rip spans` how long printing and recording took. With
//! `stop`, the program ends in the middle by SIGABRT, and the spans show at which disks it was.
//!
//! ```text
//! hanoi [DISKS] [stop]          default 6
//! ```
//!
//! It prints the moves, then `running: pid P, ring PATH`, then how long printing and recording took.

use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

use librip::{Builder, Keep, Text, Value, rip_event, rip_span};
use librip_examples::{ring, say, say_running};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Post {
    Left,
    Middle,
    Right,
}

impl Post {
    fn name(self) -> &'static str {
        match self {
            Post::Left => "left",
            Post::Middle => "middle",
            Post::Right => "right",
        }
    }
}

impl Value for Post {
    type Recorded<'a> = Text;

    fn recorded(&self) -> Text {
        Text(self.name())
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let disks = arguments.next().map_or(Some(6), |disks| disks.parse().ok());
    let stops = arguments.next();
    let (Some(disks @ 1..=20), None | Some("stop")) = (disks, stops.as_deref()) else {
        eprintln!("hanoi: DISKS must be a number from 1 to 20\nusage: hanoi [DISKS] [stop]");
        return ExitCode::from(2);
    };
    if let Err(error) = Builder::new().words(4096).keep(Keep::Always).create() {
        eprintln!("not recording: {error}");
    }
    let printed = Instant::now();
    rip_span!("print", || print(disks, Post::Left, Post::Right, Post::Middle));
    let printed = printed.elapsed();
    say_running(&ring());
    let recorded = Instant::now();
    {
        let _span = rip_span!("record", "{} disks", disks);
        record(disks, Post::Left, Post::Right, Post::Middle, stops.is_some());
    }
    let recorded = recorded.elapsed();
    say(format_args!("printed in {printed:?}, recorded in {recorded:?}"));
    ExitCode::SUCCESS
}

fn print(disks: u32, from: Post, to: Post, other: Post) {
    if disks == 1 {
        let mut out = std::io::stdout().lock();
        // Whoever reads it may have closed it.
        let _ = writeln!(out, "move a disk from {} to {}", from.name(), to.name());
        return;
    }
    print(disks - 1, from, other, to);
    print(1, from, to, other);
    print(disks - 1, other, to, from);
}

fn record(disks: u32, from: Post, to: Post, other: Post, stops: bool) {
    rip_event!(level debug, "{} disks from {:6} to {:6}", disks, from, to);
    if disks == 1 {
        rip_event!("move a disk from {} to {}", from, to);
        if stops && to == Post::Middle {
            rip_event!(level error, "no disk may lie on the {} post", to);
            std::process::abort();
        }
        return;
    }
    let _span = rip_span!("tower", "{} disks", disks);
    record(disks - 1, from, other, to, stops);
    record(1, from, to, other, stops);
    record(disks - 1, other, to, from, stops);
}
