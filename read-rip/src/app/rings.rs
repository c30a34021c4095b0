//! Rings as files: listed and chosen. It does not show what is in them.

use std::cell::LazyCell;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use read_rip_evidence::process::live::Error;
use read_rip_evidence::process::{
    Found, MappedFiles, Removal, Unfinished, Unreadable, directories_of_processes, has_threads, newest_first,
    rings_in, rings_of_process, unfinished_in, unreadable_in,
};
use read_rip_report::{self as report, Json, printable};
use read_rip_ring::Header;

use super::error::AppError;
use super::look::path_of;
use super::output::{SOUND, now_ns, output, remark, width};
use super::processes_by;
use crate::cli::{Common, RingArgs};

/// `read-rip list`.
pub(super) fn list(wanted: &Common) -> Result<u8, AppError> {
    let rings = with_programs(look_everywhere(wanted)?);
    let unreadable = unreadable(wanted);
    let mut out = output(wanted);
    if wanted.json {
        let mut json = Json(&mut out);
        for (ring, program) in &rings {
            json.found(ring, program)?;
            for child in &ring.children {
                json.child(ring, child)?;
            }
        }
        for ring in &unreadable {
            json.unreadable(ring)?;
        }
    } else if rings.is_empty() && unreadable.is_empty() {
        remark(format_args!("No rings in {}", printable(&names(wanted))));
    } else {
        report::list(&mut out, &rings, &unreadable, now_ns(), width(std::io::stdout()))?;
    }
    out.flush()?;
    if !wanted.json {
        leftovers(wanted)?;
    }
    Ok(SOUND)
}

/// Says which unfinished rings dead processes of this user have left.
fn leftovers(wanted: &Common) -> Result<(), AppError> {
    for file in unfinished(wanted)?.iter().filter(|file| file.is_own()) {
        // Whether its maker is dead is asked as `gc` asks it.
        if matches!(file.remove(true), Ok(Removal::Removed)) {
            let path = file.path.to_string_lossy();
            remark(format_args!(
                "Unfinished: {}: its process died while it made it; read-rip gc removes it",
                printable(&path)
            ));
        }
    }
    Ok(())
}

/// The ring that the arguments name; without any, the only one there is, or the only one of a living process.
pub(super) fn choose(args: &RingArgs, wanted: &Common) -> Result<PathBuf, AppError> {
    let Some(name) = args.name() else {
        let rings = look_in(wanted)?;
        let rings = if rings.is_empty() { look_everywhere(wanted)? } else { rings };
        return only(rings, AppError::NoRing { dir: names(wanted).into() });
    };
    let path = PathBuf::from(name);
    if args.is_file() {
        return Ok(path);
    }
    match args.process() {
        Some(pid) => of_process(pid, wanted),
        None => Ok(of_program(name, wanted)?.unwrap_or(path)),
    }
}

/// The ring of a process.
fn of_process(pid: u32, wanted: &Common) -> Result<PathBuf, AppError> {
    let is_alive = has_threads(pid as i32);
    let owner = unreadable(wanted).into_iter().find(|ring| ring.pid == pid).map(|ring| ring.owner);
    let rings = rings_of_process(pid, &wanted.directories());
    if rings.is_empty() && (is_alive || owner.is_none()) {
        // The process itself will do. If there is none, the user should know where rings were searched, too.
        match processes_by::pid(pid) {
            Err(AppError::Process(Error::NoProcess { .. })) => {}
            found => {
                if let Some(owner) = &owner {
                    remark(format_args!(
                        "Process {pid} has a ring, which belongs to {} and cannot be read: run read-rip as that \
                         user, or as root",
                        printable(owner)
                    ));
                }
                return found.map(path_of);
            }
        }
    }
    let none = AppError::NoRingOf { pid, is_alive, dir: names(wanted).into(), owner };
    let rings = newest_first(originals(rings));
    match rings.first() {
        // Several processes have had this pid.
        Some(newest) if rings.iter().all(|ring| ring.liveness.is_final()) => {
            Ok(newest_of(newest, rings.len()))
        }
        _ => only(rings, none),
    }
}

/// The rings that are no copies; all of them if there are only copies. A copy says what its original said, or what
/// somebody has made of it.
fn originals(rings: Vec<Found>) -> Vec<Found> {
    let (copies, originals) = rings.into_iter().partition::<Vec<_>, _>(|ring| ring.header.is_copy());
    if originals.is_empty() { copies } else { originals }
}

/// The path of the newest of `count` rings of dead processes. Writes which one it chose, if there are others.
fn newest_of(newest: &Found, count: usize) -> PathBuf {
    if count > 1 {
        let shown = newest.path.to_string_lossy();
        remark(format_args!("Chosen: {}, the newest of {count} rings", printable(&shown)));
    }
    newest.path.clone()
}

/// The ring of a program with this name: that of a living process, or else the newest.
fn of_program(name: &OsStr, wanted: &Common) -> Result<Option<PathBuf>, AppError> {
    // The name of a ring whose program is unknown is empty: an empty argument does not ask for it.
    if name.is_empty() || name.as_encoded_bytes().contains(&b'/') {
        return Ok(None);
    }
    let mut rings = look_everywhere(wanted)?;
    rings.retain(|ring| is_of_program(ring, name));
    if rings.iter().all(|ring| ring.liveness.is_final())
        && wanted.is_default_dir()
        && let Some(pid) = processes_by::name(name, rings.len())?
    {
        return Ok(Some(path_of(pid)));
    }
    let rings = originals(rings);
    let Some(newest) = rings.first() else { return Ok(None) };
    if rings.iter().any(|ring| !ring.liveness.is_final()) {
        return only(rings, AppError::NoRing { dir: names(wanted).into() }).map(Some);
    }
    Ok(Some(newest_of(newest, rings.len())))
}

/// Whether the program that made a ring has this name, or was started by it.
pub(super) fn is_of_program(ring: &Found, name: &OsStr) -> bool {
    let executable = read_rip_ring::read_program(&ring.path).unwrap_or_default();
    executable.file_name() == Some(name) || *program_of(ring) == *name
}

/// The only ring, or the only one whose process may be alive. Several are listed.
fn only(rings: Vec<Found>, none: AppError) -> Result<PathBuf, AppError> {
    let mut rings = originals(rings);
    let count = rings.len();
    let mut living: Vec<usize> = (0..count).filter(|&at| !rings[at].liveness.is_final()).collect();
    if living.len() != 1 && count == 1 {
        living = vec![0];
    }
    match living[..] {
        [at] => {
            let path = rings.swap_remove(at).path;
            if count > 1 {
                let shown = path.to_string_lossy();
                remark(format_args!(
                    "Chosen: {}, the only one of {count} rings whose process may be alive",
                    printable(&shown)
                ));
            }
            Ok(path)
        }
        _ if count == 0 => Err(none),
        _ => {
            // If standard error cannot be written, nobody needs the list.
            let _ = report::list(
                &mut std::io::stderr(),
                &with_programs(rings),
                &[],
                now_ns(),
                width(std::io::stderr()),
            );
            Err(AppError::ManyRings { count })
        }
    }
}

/// The rings of the directories that are searched, the newest first.
pub(super) fn look_in(wanted: &Common) -> Result<Vec<Found>, AppError> {
    let mut found = Vec::new();
    for directory in wanted.directories() {
        let rings =
            rings_in(&directory).map_err(|source| AppError::Directory { path: directory.clone(), source })?;
        found.extend(rings);
    }
    Ok(newest_first(found))
}

/// The files of these directories that look like unfinished rings.
pub(super) fn unfinished(wanted: &Common) -> Result<Vec<Unfinished>, AppError> {
    let mut found = Vec::new();
    for directory in wanted.directories() {
        let files = unfinished_in(&directory)
            .map_err(|source| AppError::Directory { path: directory.clone(), source })?;
        found.extend(files);
    }
    Ok(found)
}

/// The rings of these directories, and if the user names no directory, the rings that containers and other processes
/// have elsewhere.
pub(super) fn look_everywhere(wanted: &Common) -> Result<Vec<Found>, AppError> {
    let mut found = look_in(wanted)?;
    for directory in others(wanted) {
        // The process may have ended.
        found.extend(rings_in(&directory).unwrap_or_default());
    }
    Ok(newest_first(found))
}

/// Directories where other processes may have rings.
fn others(wanted: &Common) -> Vec<PathBuf> {
    if wanted.is_default_dir() { directories_of_processes(&wanted.directories()) } else { Vec::new() }
}

/// The files of other users that have the names of rings.
fn unreadable(wanted: &Common) -> Vec<Unreadable> {
    let mut directories = wanted.directories();
    directories.extend(others(wanted));
    directories.iter().flat_map(|directory| unreadable_in(directory)).collect()
}

/// The directories that are searched, for people.
fn names(wanted: &Common) -> String {
    let names: Vec<String> =
        wanted.directories().iter().map(|directory| directory.to_string_lossy().into_owned()).collect();
    names.join(" and ")
}

/// All rings of the directories that are searched, the newest first.
pub(super) fn all(wanted: &Common) -> Result<Vec<PathBuf>, AppError> {
    let rings: Vec<PathBuf> = look_in(wanted)?.into_iter().map(|ring| ring.path).collect();
    if rings.is_empty() { Err(AppError::NoRing { dir: names(wanted).into() }) } else { Ok(rings) }
}

/// Each ring with the name of its program.
fn with_programs(rings: Vec<Found>) -> Vec<(Found, String)> {
    let mapped = LazyCell::new(MappedFiles::search as fn() -> MappedFiles);
    rings
        .into_iter()
        .map(|ring| ring.with_children(&mapped, false))
        .map(|ring| {
            let program = program_of(&ring);
            (ring, program)
        })
        .collect()
}

/// The name of the program that made a ring; empty if the ring does not say.
pub(super) fn program_of(ring: &Found) -> String {
    program_of_ring(&ring.path, &ring.header)
}

/// The same, of the ring at a path.
pub(super) fn program_of_ring(path: &Path, header: &Header) -> String {
    let executable = read_rip_ring::read_program(path).unwrap_or_default();
    read_rip_ring::program_name(path, header.pid, &executable)
}
