//! A living process without a ring, by its pid here or in its container, or by the name of its program.
//!
//! It looks at no process further.

use std::ffi::OsStr;

use read_rip_evidence::process::live::{Error, LiveTarget, processes, processes_with_pid_in_container};
use read_rip_evidence::target::Hidden;
use read_rip_report::{printable, process_name};

use super::error::AppError;
use super::output::remark;

/// No more processes of one name are listed.
const LISTED_MAX: usize = 20;

/// The process with this pid. A process here comes before one of a container; a thread of the kernel, which has a low
/// pid, does not.
pub(super) fn pid(pid: u32) -> Result<u32, AppError> {
    let here = LiveTarget::open_here(pid);
    let inside = processes_with_pid_in_container(pid);
    match (here, inside.as_slice()) {
        (Ok(here), others) => {
            supported(&here)?;
            let others: Vec<String> =
                others.iter().filter(|&&other| other != here.pid()).map(u32::to_string).collect();
            if !others.is_empty() {
                let others = others.join(", ");
                remark(format_args!(
                    "Chosen: process {pid} of this namespace; in a container, {pid} is also the process that has the \
                     pid {others} here"
                ));
            }
            Ok(here.pid())
        }
        (Err(error @ (Error::NoProcess { .. } | Error::KernelThread { .. })), &[found]) => {
            let name = match &error {
                Error::KernelThread { name, .. } => {
                    format!("; here, {pid} is a thread of the kernel, {name}")
                }
                _ => String::new(),
            };
            remark(format_args!(
                "Chosen: process {found}, which has the pid {pid} in its container{}",
                printable(&name)
            ));
            Ok(found)
        }
        (Err(Error::NoProcess { .. }), [_, _, ..]) => Err(Error::Ambiguous { pid, found: inside }.into()),
        (Err(error), _) => Err(error.into()),
    }
}

/// Refuses a process that runs instructions of another processor.
fn supported(live: &LiveTarget) -> Result<(), AppError> {
    match live.hidden() {
        Some(Hidden::OtherArchitecture(found)) => {
            Err(Error::OtherArchitecture { pid: live.pid(), found: found.clone() }.into())
        }
        _ => Ok(()),
    }
}

/// The only living process whose program, or first thread, has this name; `None` if there is none. Several are listed.
///
/// `rings` is the number of rings of dead processes with this name.
pub(super) fn name(name: &OsStr, rings: usize) -> Result<Option<u32>, AppError> {
    let Some(name) = name.to_str() else { return Ok(None) };
    let mut found: Vec<LiveTarget> = Vec::new();
    let mut count = 0;
    for pid in processes() {
        let Ok(live) = LiveTarget::open_here(pid) else { continue };
        if !live.names().iter().flatten().any(|of| of == name) {
            continue;
        }
        count += 1;
        if found.len() < LISTED_MAX {
            found.push(live);
        }
    }
    match found.as_slice() {
        [] => Ok(None),
        [only] => {
            supported(only)?;
            let pid = only.pid();
            let besides = match rings {
                0 => "",
                1 => "; there is also a ring of a dead process",
                _ => "; there are also rings of dead processes",
            };
            remark(format_args!("Chosen: process {pid}, the only living one of this name{besides}"));
            Ok(Some(pid))
        }
        several => {
            for live in several {
                let own_name = live.names()[0].clone().unwrap_or_else(|| name.to_owned());
                let shown = process_name(&own_name, live.pid(), live.own_pid());
                let command = live.command_line();
                remark(format_args!("{}  {}", printable(&shown), printable(&command)));
            }
            if count > several.len() {
                remark(format_args!("and {} more", count - several.len()));
            }
            Err(AppError::ManyProcesses { name: name.to_owned(), count })
        }
    }
}
