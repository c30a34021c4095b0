//! The command `read-rip`. The library of the same name does the work.

use std::process::ExitCode;

fn main() -> ExitCode {
    read_rip::app::main()
}
