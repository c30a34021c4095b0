//! The program that the end-to-end tests run: it records, and then does what its arguments say.
//!
//! It does not judge: its test reads the ring. What it prints is the same with and without a ring.

#![allow(unsafe_code, reason = "faults, signals and forks on purpose")]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    clippy::undocumented_unsafe_blocks,
    reason = "a program that exists to misbehave: the file that does it says what and why"
)]

mod captures;
mod channels;
mod common;
mod die;
mod dumps;
mod events;
mod harm;
mod locks;
mod mixed;
#[path = "../../spin.rs"]
mod spin;
mod threads;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["die", rest @ ..] => die::main(rest),
        ["threads", rest @ ..] => threads::main(rest),
        ["locks", rest @ ..] => locks::main(rest),
        ["dumps", rest @ ..] => dumps::main(rest),
        ["events", rest @ ..] => events::main(rest),
        ["captures", rest @ ..] => captures::main(rest),
        ["channels", rest @ ..] => channels::main(rest),
        ["mixed", rest @ ..] => mixed::main(rest),
        ["harm", rest @ ..] => harm::main(rest),
        _ => panic!("victim die|threads|harm|locks|events|captures|channels|dumps|mixed WAY"),
    }
}
