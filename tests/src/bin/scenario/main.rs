//! Small programs that get into trouble with locks, or only seem to. `verdicts` asks `read-rip check` about them.
//!
//! ```text
//! scenario NAME
//! ```
//!
//! Each gets into its state, says `ready`, and stays until it is killed. It judges nothing. Whether a thread is really
//! stuck is asked of the kernel: see [`stage`]. Those that mark progress are in `progressing`: to mark none means
//! something else in a program that marks some.

mod busy;
mod cycles;
mod forks;
mod hand;
mod order;
mod readers;
mod rounds;
mod stage;
mod stuck;

fn main() {
    stage::run(
        &[cycles::ALL, readers::ALL, order::ALL, stuck::ALL, forks::ALL, busy::ALL, hand::ALL].concat(),
    );
}
