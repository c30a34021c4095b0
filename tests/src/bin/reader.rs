//! `read-rip`, under a name that the tests of this package can ask cargo for. It does nothing of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    read_rip::app::main()
}
