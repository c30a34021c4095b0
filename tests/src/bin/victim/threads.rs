//! Threads that start and end, forks, signals, destructors: one file each.

mod destructors;
mod forks;
mod registers;
mod signals;
mod slots;
mod state;

use crate::common;

pub(crate) fn main(arguments: &[&str]) {
    if arguments[0] == "look" {
        return state::look();
    }
    if arguments[0] == "destructors" {
        destructors::prepare();
    }
    if arguments[0] == "atfork" {
        forks::prepare();
    }
    if arguments[0] != "begin_together" {
        common::init();
    }
    match arguments[0] {
        "begin_together" => slots::begin_together(),
        "first" => slots::first(),
        "reuse" => slots::reuse(),
        "fresh" => slots::fresh(),
        "same_tid" => slots::same_tid(),
        "crowd" => slots::crowd(arguments[1].parse().unwrap()),
        "storm" => signals::storm(arguments[1].parse().unwrap()),
        "step" => signals::step(),
        "handler_first" => signals::handler_first(0),
        "handler_first_on_stack" => signals::handler_first(arguments[1].parse().unwrap()),
        "destructors" => destructors::destructors(),
        "destructor_first" => destructors::destructor_first(),
        "pthread_exit" => destructors::pthread_exits(),
        "fork" => forks::fork(),
        "daemon" => forks::daemon(),
        "fork_storm" => forks::fork_storm(),
        "fork_signals" => forks::fork_signals(),
        "atfork" => forks::atfork(),
        "crash_loop" => slots::crash_loop(),
        "reclaim" => slots::reclaim(),
        "exec" => state::exec(),
        "name" => state::name(),
        "errno" => state::keeps_errno(),
        "registers" => registers::registers(),
        other => panic!("no way {other}"),
    }
    std::process::exit(3);
}
