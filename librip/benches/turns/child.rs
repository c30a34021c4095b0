//! Measures in processes of their own what needs its own: a ring, a level of the clock, a subscriber.

use std::process::Command;

/// Measures a group in a process of its own, which prints its own rows. `variable` names the group.
pub(crate) fn child(variable: &str, group: &str) {
    let run = std::env::current_exe().and_then(|program| Command::new(program).env(variable, group).status());
    match run {
        Ok(status) if status.success() => {}
        Ok(status) => eprintln!("the measurement {group} ended with {status}"),
        Err(error) => eprintln!("the measurement {group} could not be started: {error}"),
    }
}
