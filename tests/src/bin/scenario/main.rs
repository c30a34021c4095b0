//! Small programs that get into trouble with locks, or only seem to. `verdicts` asks `read-rip check` about them.
//!
//! ```text
//! scenario NAME
//! ```
//!
//! Each gets into its state, says `ready`, and stays until it is killed. It judges nothing. Whether a thread is really
//! stuck is asked of the kernel: see [`stage`].

mod busy;
mod cycles;
mod hand;
mod order;
mod readers;
mod stage;
mod stuck;

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    if let Err(error) = librip::init() {
        panic!("not recording: {error}");
    }
    let all = [cycles::ALL, readers::ALL, order::ALL, stuck::ALL, busy::ALL, hand::ALL].concat();
    let Some((_, run)) = all.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = all.iter().map(|&(name, _)| name).collect();
        panic!("scenario NAME, one of: {}", names.join(" "));
    };
    run();
    stage::ready();
}
