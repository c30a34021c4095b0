//! Runs `read-rip` as its users do, with a time limit.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub(crate) use librip_test_kit::run::{Outcome, clean, finish, first_of, of_type, wait};

/// The program, without the settings in the environment of the user who runs the tests.
pub(crate) fn command() -> Command {
    clean(Command::new(env!("CARGO_BIN_EXE_read-rip")))
}

/// `read-rip ARGS`.
pub(crate) fn read_rip<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Outcome {
    let mut command = command();
    command.args(args);
    finish(command)
}

/// A child that is ended with the test.
pub(crate) struct Ended(pub(crate) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a command writes to a terminal of 80 columns as its standard output.
pub(crate) fn on_terminal(mut command: Command) -> String {
    let size = nix::pty::Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = nix::pty::openpty(&size, None).unwrap();
    command.env("TERM", "xterm").stderr(Stdio::null()).stdout(terminal.slave);
    let mut child = command.spawn().unwrap();
    drop(command);
    // Read what the program writes. The read ends with an error once the other end of the terminal is closed.
    let mut shown = Vec::new();
    let _ = File::from(terminal.master).read_to_end(&mut shown);
    wait(&mut child);
    String::from_utf8(shown).unwrap().replace("\r\n", "\n")
}

/// `read-rip OPTIONS RING`.
pub(crate) fn show(options: &[&str], ring: &Path) -> Outcome {
    let options = options.iter().map(OsStr::new);
    read_rip(options.chain([ring.as_os_str()]))
}

/// `read-rip -t RING` with its address space limited.
pub(crate) fn show_within(memory_bytes: u64, path: &Path) -> Outcome {
    let mut command = Command::new("/bin/sh");
    let script = format!("ulimit -v {} && exec \"$@\"", memory_bytes / 1024);
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_read-rip"), "-t"]).arg(path);
    finish(clean(command))
}
