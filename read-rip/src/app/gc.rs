//! `read-rip gc`: removes the rings of dead processes, and what processes have left that were killed while they made
//! theirs. It decides which; it finds none itself.

use std::cell::LazyCell;
use std::collections::HashMap;
use std::io::Write;

use read_rip_case::now_ns;
use read_rip_evidence::process::{Found, Liveness, MappedFiles, Removal, is_of_another_boot, remove};
use read_rip_report::{self as report, Json, printable};

use super::error::AppError;
use super::output::{ERROR, SOUND, output, remark};
use super::rings::{program_of, search_directories, unfinished};
use crate::cli::{Common, GcArgs};

/// `read-rip gc`.
pub(super) fn gc(args: &GcArgs, common: &Common) -> Result<u8, AppError> {
    let mut out = output(common);
    let mut status = SOUND;
    let mapped = LazyCell::new(MappedFiles::search as fn() -> MappedFiles);
    let mut kept_of_program = HashMap::new();
    // The newest first.
    for ring in search_directories(common)?.into_iter().map(|ring| ring.with_children(&mapped, true)) {
        let path = printable(&ring.path.to_string_lossy()).into_owned();
        let program = program_of(&ring);
        let kept = kept_of_program.entry((program.clone(), ring.header.uid)).or_insert(0);
        match fate(&ring, args, kept) {
            Fate::Stays => continue,
            Fate::StaysBecause(why) => {
                remark(format_args!("kept {path}: {why}"));
                continue;
            }
            Fate::Goes => {}
        }
        let Some(file) = ring.header.read_from else { continue };
        match if args.dry_run { Ok(Removal::Removed) } else { remove(&ring.path, file.id) } {
            Ok(Removal::Removed) => {}
            // Another `gc` was faster.
            Ok(Removal::Gone | Removal::Busy) => continue,
            Err(error) => {
                remark(format_args!("could not remove {path}: {error}"));
                status = ERROR;
                continue;
            }
        }
        if common.json {
            Json(&mut out).removed(&ring.path, args.dry_run)?;
        } else {
            report::removed(&mut out, &ring, &program, args.dry_run, now_ns())?;
        }
    }
    for file in unfinished(common)? {
        let path = printable(&file.path.to_string_lossy()).into_owned();
        if !args.all && !file.is_own() {
            remark(format_args!(
                "kept {path}: it is unfinished and belongs to another user; --all removes it"
            ));
            continue;
        }
        match file.remove(args.dry_run) {
            Ok(Removal::Removed) if common.json => Json(&mut out).removed(&file.path, args.dry_run)?,
            Ok(Removal::Removed) => report::removed_unfinished(&mut out, &file.path, args.dry_run)?,
            // Its process makes it at this moment, or somebody else has removed it.
            Ok(Removal::Gone | Removal::Busy) => {}
            Err(error) => {
                remark(format_args!("could not remove {path}: {error}"));
                status = ERROR;
            }
        }
    }
    out.flush()?;
    Ok(status)
}

/// What becomes of a ring.
enum Fate {
    Goes,
    Stays,
    StaysBecause(String),
}

/// What becomes of a ring. `kept` counts the rings of dead processes of the same program and user that stay.
fn fate(ring: &Found, args: &GcArgs, kept: &mut usize) -> Fate {
    match &ring.liveness {
        Liveness::Alive { .. } | Liveness::Dying { .. } | Liveness::Forked { .. } => return Fate::Stays,
        Liveness::Unknown { why } => return Fate::StaysBecause((*why).to_owned()),
        Liveness::Dead | Liveness::Replaced { .. } => {}
    }
    // Rings are in memory, which a restart clears.
    if is_of_another_boot(&ring.header) {
        let why = "it is a copy from another boot or another machine; remove it yourself";
        return Fate::StaysBecause(why.to_owned());
    }
    if ring.header.is_copy() {
        return Fate::StaysBecause("it is a copy of a ring; remove it yourself".to_owned());
    }
    if !args.all && !ring.is_own() {
        return Fate::StaysBecause(format!("it belongs to {}; --all removes it", ring.owner()));
    }
    let age_ns = now_ns().saturating_sub(ring.header.created_realtime_ns);
    if args.older_than.is_some_and(|least| u128::from(age_ns) < least.as_nanos()) {
        return Fate::Stays;
    }
    if *kept < args.keep {
        *kept += 1;
        return Fate::Stays;
    }
    Fate::Goes
}
