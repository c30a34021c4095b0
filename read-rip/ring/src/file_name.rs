//! The default name of a ring's file: `rip.PROGRAM.PID.START`, and a number if that name was taken.
//!
//! The recorder makes it of the name by which the program was started. It may be a link to the executable.

use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName {
    /// The program, by the name by which it was started. Letters that are unusual in names of files are replaced.
    pub program: String,
    pub pid: u32,
}

impl FileName {
    /// Takes a name apart; `None` if it is no default name.
    pub fn parse(name: &str) -> Option<FileName> {
        let mut parts = name.strip_prefix("rip.")?.rsplit('.').peekable();
        let is_start = |part: &&str| part.len() > 3 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_number = |part: &&str| part.parse::<u32>().is_ok();
        if parts.clone().nth(2).is_some_and(|part| is_number(&part))
            && parts.clone().nth(1).is_some_and(|part| is_start(&part))
        {
            parts.next();
        }
        parts.next_if(is_start)?;
        let pid = parts.next()?.parse().ok()?;
        let program: Vec<&str> = parts.collect();
        Some(FileName { program: program.into_iter().rev().collect::<Vec<_>>().join("."), pid })
    }

    /// The name by which the program was started, if it is not the one of its executable.
    pub fn link_to(self, executable: &str) -> Option<String> {
        let letters = executable.chars().map(librip_format::letter_in_file_name);
        let own: String = letters.take(librip_format::PROGRAM_LETTERS_MAX).collect();
        (!self.program.is_empty() && self.program != own).then_some(self.program)
    }
}

/// What the program of a ring is called: by the name by which it was started, if the name of the file says it, or else
/// by the name of its executable. Empty if neither is known.
pub fn program_name(ring: &Path, pid: u32, executable: &Path) -> String {
    let executable = executable.file_name().unwrap_or_default().to_string_lossy();
    let of_file = ring.file_name().and_then(|name| FileName::parse(name.to_str()?));
    let link = of_file.filter(|name| name.pid == pid).and_then(|name| name.link_to(&executable));
    link.unwrap_or_else(|| executable.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_name_says_which_program_was_started() {
        let name = |program: &str, pid| Some(FileName { program: program.into(), pid });
        assert_eq!(FileName::parse("rip.redis-server.123.ab12cd"), name("redis-server", 123));
        assert_eq!(FileName::parse("rip.python3.11.123.ab12cd"), name("python3.11", 123));
        assert_eq!(FileName::parse("rip.server.123.ab12cd.1"), name("server", 123));
        assert_eq!(FileName::parse("rip.server.123"), None);
        assert_eq!(FileName::parse("ring"), None);
    }

    #[test]
    fn the_name_of_a_link_differs_from_that_of_the_executable() {
        let started = |program: &str| FileName { program: program.into(), pid: 1 };
        assert_eq!(started("redis-server").link_to("redis-check-rdb").as_deref(), Some("redis-server"));
        assert_eq!(started("a_server").link_to("a server"), None);
        assert_eq!(started("x".repeat(64).as_str()).link_to(&"x".repeat(80)), None);
    }
}
