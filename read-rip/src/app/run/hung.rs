//! What still runs at the time limit of `run --check`: the processes beneath the program.
//!
//! The rings are checked already. Each process without a ring is checked here as `read-rip check PID` does. A process
//! with children waits for them, as a shell, make or cargo does: only findings of it are shown. The others hang
//! themselves. If nothing was found in one of these, its command line is shown, and where its threads stand.

use std::collections::HashSet;

use read_rip_case::{Error, Subject};
use read_rip_evidence::process::live::LiveTarget;
use read_rip_evidence::process::{Descendant, Ends, descendants};
use read_rip_report::printable;

use super::super::collect::Collection;
use super::super::error::AppError;
use super::super::output::remark;
use super::super::unrecorded;
use super::ring_directory::RingDirectory;
use crate::cli::{Common, RingArgs, StacksArgs};

/// No more processes are looked at: each takes the time of a window.
const LOOKED_AT_MAX: usize = 64;

/// Checks them. Returns how many there were.
pub(super) fn check(
    rings: &RingDirectory,
    collection: &mut Collection<'_>,
    common: &Common,
) -> Result<usize, AppError> {
    let living = descendants();
    let parents: HashSet<i32> = living.iter().map(|process| process.parent).collect();
    let is_parent = |process: &Descendant| parents.contains(&process.pid);
    let mut unrecorded: Vec<&Descendant> = Vec::new();
    for process in &living {
        match rings.findings_of(process.pid as u32) {
            Some(false) if !is_parent(process) => {
                passed_over(
                    name(process.pid as u32, common).and_then(|()| stacks(process.pid as u32, common)),
                )?;
            }
            Some(_) => {}
            None => unrecorded.push(process),
        }
    }
    // What hangs itself is at the ends of the tree.
    unrecorded.sort_by_key(|process| is_parent(process));
    if unrecorded.len() > LOOKED_AT_MAX {
        let left_out = unrecorded.len() - LOOKED_AT_MAX;
        remark(format_args!("read-rip has not examined {left_out} more processes without a ring"));
        unrecorded.truncate(LOOKED_AT_MAX);
    }
    for process in &unrecorded {
        passed_over(look(process.pid as u32, is_parent(process), collection, common))?;
    }
    Ok(unrecorded.len())
}

/// A process that has ended meanwhile, or may not be looked into, is passed over.
fn passed_over(looked: Result<(), AppError>) -> Result<(), AppError> {
    match looked {
        Err(AppError::Read(Error::Process(_)) | AppError::NoStacks { .. }) => Ok(()),
        looked => looked,
    }
}

fn look(pid: u32, is_parent: bool, collection: &mut Collection<'_>, common: &Common) -> Result<(), AppError> {
    if !is_parent {
        name(pid, common)?;
    }
    let before = collection.with_findings();
    collection.check(Subject::Process(pid), &Ends::default())?;
    if collection.with_findings() == before && !is_parent {
        stacks(pid, common)?;
    }
    Ok(())
}

/// Says which process it is.
fn name(pid: u32, common: &Common) -> Result<(), AppError> {
    if !common.json {
        let target = LiveTarget::open_here(pid)?;
        remark(format_args!("{pid}: {}", printable(&target.command_line())));
    }
    Ok(())
}

fn stacks(pid: u32, common: &Common) -> Result<(), AppError> {
    let ring = RingArgs { ring: Some(pid.to_string().into()), ..RingArgs::default() };
    unrecorded::stacks(&StacksArgs { ring, ..StacksArgs::default() }, common).map(drop)
}
