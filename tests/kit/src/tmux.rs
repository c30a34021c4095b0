//! A real terminal for programs with a screen: tmux draws what they write. It knows no program.

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::victim::{DEADLINE, shared_directory};

/// A terminal of its own; it ends with the test.
#[derive(Debug)]
pub struct Tmux {
    socket: String,
}

impl Tmux {
    /// Runs a line of a shell in a terminal of this size, and then shows its exit status. `None` if there is no tmux.
    pub fn start(name: &str, (width, height): (u16, u16), line: &str) -> Option<Tmux> {
        if Command::new("tmux").arg("-V").output().is_err() {
            eprintln!("SKIPPED {name}: tmux is not installed");
            return None;
        }
        let socket = shared_directory().join(format!("tmux-{name}")).to_string_lossy().into_owned();
        let tmux = Tmux { socket };
        let (width, height) = (width.to_string(), height.to_string());
        let size = ["-x", &width, "-y", &height];
        let shell = format!("{line}; echo \"status $?\"; cat");
        tmux.run(&[&["-f", "/dev/null", "new-session", "-d"], &size[..], &[&shell]].concat());
        Some(tmux)
    }

    /// What a command of tmux writes.
    pub fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(arguments).env_remove("TMUX").env("LC_ALL", "C.UTF-8");
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Presses keys, by their names in tmux.
    pub fn keys(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    /// Sends a text as if it was typed.
    pub fn types(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    /// The screen, once it has this text.
    pub fn shows(&self, wanted: &str) -> String {
        self.until(&format!("{wanted:?}"), &["-p"], |screen| screen.contains(wanted))
    }

    /// The screen with its colours and other attributes, once it is as wanted.
    pub fn looks(&self, wanted: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        self.until(wanted, &["-p", "-e"], is_wanted)
    }

    /// What tmux knows of the terminal: its format of this name.
    pub fn knows(&self, format: &str) -> String {
        self.run(&["display-message", "-p", format]).trim().to_owned()
    }

    fn until(&self, wanted: &str, how: &[&str], is_wanted: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let screen = self.run(&[&["capture-pane"], how].concat());
            if is_wanted(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "no {wanted} in\n{screen}");
            crate::pause();
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}
