//! Rings as files: listed, chosen, removed. It does not show what is in them.

use std::cell::LazyCell;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::error::AppError;
use super::output::{ERROR, SOUND, now_ns, output, remark};
use crate::cli::{Common, RingArgs};
use crate::process::{
    Found, Liveness, MappedFiles, is_of_another_boot, living_threads, rings_in, rings_of_process,
};
use crate::report::{self, Json, printable};

/// `read-rip list`.
pub(super) fn list(wanted: &Common) -> Result<u8, AppError> {
    let rings = with_programs(look_in(&wanted.dir)?);
    let mut out = output(wanted);
    if wanted.json {
        let mut json = Json(&mut out);
        for (ring, program) in &rings {
            json.found(ring, program)?;
        }
    } else if rings.is_empty() {
        let directory = wanted.dir.to_string_lossy();
        remark(format_args!("No readable rings in {}", printable(&directory)));
    } else {
        report::list(&mut out, &rings, now_ns())?;
    }
    out.flush()?;
    Ok(SOUND)
}

/// `read-rip gc`.
pub(super) fn gc(dry_run: bool, wanted: &Common) -> Result<u8, AppError> {
    let mut out = output(wanted);
    let mut status = SOUND;
    let mapped = LazyCell::new(MappedFiles::search as fn() -> MappedFiles);
    for ring in look_in(&wanted.dir)?.into_iter().map(|ring| ring.with_children(&mapped, true)) {
        let path = printable(&ring.path.to_string_lossy()).into_owned();
        match &ring.liveness {
            // Rings are in memory, which a restart clears. So this file is a copy, or comes from another machine.
            Liveness::Dead if is_of_another_boot(&ring.header) => {
                remark(format_args!(
                    "kept {path}: it is a copy from another boot or another machine; remove it yourself"
                ));
                continue;
            }
            Liveness::Dead | Liveness::Replaced { .. } => {}
            Liveness::Alive { .. } | Liveness::Dying { .. } | Liveness::Forked { .. } => continue,
            Liveness::Unknown { why } => {
                remark(format_args!("kept {path}: {why}"));
                continue;
            }
        }
        if !dry_run && let Err(error) = std::fs::remove_file(&ring.path) {
            remark(format_args!("could not remove {path}: {error}"));
            status = ERROR;
            continue;
        }
        if wanted.json {
            Json(&mut out).removed(&ring.path, dry_run)?;
        } else {
            let done = if dry_run { "would remove" } else { "removed" };
            writeln!(out, "{done} {path}")?;
        }
    }
    out.flush()?;
    Ok(status)
}

/// The ring that the arguments name; without any, the only one there is.
pub(super) fn choose(args: &RingArgs, dir: &Path) -> Result<PathBuf, AppError> {
    let (rings, error) = match args.name() {
        Some(name) => {
            let path = PathBuf::from(name);
            let number = name.to_str().and_then(|name| name.parse::<u32>().ok());
            let pid = number.filter(|_| std::fs::symlink_metadata(&path).is_err());
            let Some(pid) = pid else { return Ok(path) };
            let is_alive = !living_threads(pid as i32).is_empty();
            (rings_of_process(pid, dir), AppError::NoRingOf { pid, is_alive, dir: dir.to_owned() })
        }
        None => (look_in(dir)?, AppError::NoRing { dir: dir.to_owned() }),
    };
    match <[Found; 1]>::try_from(rings) {
        Ok([ring]) => Ok(ring.path),
        Err(rings) if rings.is_empty() => Err(error),
        Err(rings) => {
            let count = rings.len();
            // If standard error cannot be written, nobody needs the list.
            let _ = report::list(&mut std::io::stderr(), &with_programs(rings), now_ns());
            Err(AppError::ManyRings { count })
        }
    }
}

/// All rings of a directory, the newest first.
pub(super) fn all(dir: &Path) -> Result<Vec<PathBuf>, AppError> {
    let rings: Vec<PathBuf> = look_in(dir)?.into_iter().map(|ring| ring.path).collect();
    if rings.is_empty() { Err(AppError::NoRing { dir: dir.to_owned() }) } else { Ok(rings) }
}

fn look_in(dir: &Path) -> Result<Vec<Found>, AppError> {
    rings_in(dir).map_err(|source| AppError::Directory { path: dir.to_owned(), source })
}

/// Each ring with the name of its program.
fn with_programs(rings: Vec<Found>) -> Vec<(Found, String)> {
    let mapped = LazyCell::new(MappedFiles::search as fn() -> MappedFiles);
    rings
        .into_iter()
        .map(|ring| ring.with_children(&mapped, false))
        .map(|ring| {
            let program = crate::ring::read_program(&ring.path).unwrap_or_default();
            let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (ring, name)
        })
        .collect()
}
