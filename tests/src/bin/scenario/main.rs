//! Small programs with locking bugs, or that only seem to have them. `verdicts` runs `read-rip check` on them.
//!
//! ```text
//! scenario NAME
//! ```
//!
//! Each reaches its state, prints `ready`, and stays there until it is killed. It judges nothing. It asks the kernel
//! whether a thread is really stuck: see [`stage`]. Scenarios with progress marks are in `progressing`, because
//! `check` judges a thread without progress marks differently if the program contains such marks.

mod busy;
mod conditions;
mod cycles;
mod drop_ins;
mod forks;
mod hand;
mod library;
mod order;
mod owners;
mod readers;
mod rounds;
mod stage;
mod stuck;
mod unrecorded;
mod waits;

fn main() {
    stage::run(
        &[
            cycles::ALL,
            readers::ALL,
            order::ALL,
            owners::ALL,
            stuck::ALL,
            forks::ALL,
            busy::ALL,
            hand::ALL,
            library::ALL,
            conditions::ALL,
            waits::ALL,
            unrecorded::ALL,
            drop_ins::ALL,
        ]
        .concat(),
    );
}
