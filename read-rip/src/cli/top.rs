//! The arguments of `top`.

use clap::Args;

use super::RingArgs;

/// What `top` shows.
#[derive(Args, Debug)]
#[command(after_help = TOP_KEYS)]
pub struct TopArgs {
    /// Which ring.
    #[command(flatten)]
    pub ring: RingArgs,
    /// Leave the mouse to the terminal. Otherwise a click chooses a row and the wheel scrolls; text is selected with
    /// shift held
    #[arg(long)]
    pub no_mouse: bool,
}

const TOP_KEYS: &str = "\
Keys: 1 locks, 2 threads and tasks, 3 findings; Enter opens a lock, its holder, and the holder's history and stack, \
or the awaits of a task; Esc goes back; / lists what a regular expression matches; s sorts; Space freezes; Left and \
Right step through the last minutes; w saves a copy of the ring, and R a page for browsers; ? shows all keys; q quits.
Reading takes at most an eighth of a processor: the more threads a process has, the rarer the judgements. Between \
two of them, the waiters, the holders and the rates are those of the record, four times a second.";
