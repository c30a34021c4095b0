//! The command `read-rip`; see the library of the same name.

use std::process::ExitCode;

fn main() -> ExitCode {
    read_rip::app::main()
}
