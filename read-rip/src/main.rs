//! The command `read-rip`. The library of the same name does the work.

mod heap;
mod no_memory;

use std::process::ExitCode;

fn main() -> ExitCode {
    no_memory::end_with_an_error();
    heap::grow_in_large_steps();
    read_rip::app::main()
}
