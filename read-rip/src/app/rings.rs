//! Rings as files: listed and chosen. It does not show what is in them.

use std::cell::LazyCell;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use read_rip_case::{Error as ReadError, Subject, now_ns};
use read_rip_evidence::process::live::Error;
use read_rip_evidence::process::{
    Found, MappedFiles, Removal, Unfinished, Unreadable, directories_of_processes, has_threads, newest_first,
    rings_in, rings_of_process, unfinished_in, unreadable_in,
};
use read_rip_report::{self as report, Json, printable};
use read_rip_ring::Header;

use super::error::{AppError, NO_RING_HINT};
use super::output::{SOUND, output, remark, width};
use super::processes_by;
use crate::cli::{Common, RingArgs};

/// `read-rip list`.
pub(super) fn list(common: &Common) -> Result<u8, AppError> {
    let rings = with_programs(search_everywhere(common)?);
    let unreadable = unreadable(common);
    let mut out = output(common);
    if common.json {
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
        remark(format_args!("No rings in {}\nHint: {NO_RING_HINT}", printable(&names(common))));
    } else {
        report::list(&mut out, &rings, &unreadable, now_ns(), width(std::io::stdout()))?;
    }
    out.flush()?;
    if !common.json {
        leftovers(common)?;
    }
    Ok(SOUND)
}

/// Says which unfinished rings dead processes of this user have left.
fn leftovers(common: &Common) -> Result<(), AppError> {
    for file in unfinished(common)?.iter().filter(|file| file.is_own()) {
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

/// What the arguments name; without any, the only ring there is, or the only one of a living process.
pub(super) fn choose(args: &RingArgs, common: &Common) -> Result<Subject, AppError> {
    let of_file = |path: &Path| Ok(Subject::of_file(path, &common.options())?);
    let Some(name) = args.name() else {
        let rings = search_directories(common)?;
        let rings = if rings.is_empty() { search_everywhere(common)? } else { rings };
        return of_file(&only(rings, AppError::NoRing { dir: names(common).into() })?);
    };
    if args.is_file() {
        return of_file(Path::new(name));
    }
    let chosen = match args.process() {
        Some(pid) => of_process(pid, common)?,
        None => match of_program(name, common)? {
            Some(chosen) => chosen,
            None if may_be_name(name) && Path::new(name).symlink_metadata().is_err() => {
                return Err(AppError::Nothing { name: name.to_owned() });
            }
            None => Chosen::File(name.into()),
        },
    };
    match chosen {
        Chosen::Process(pid) => Ok(Subject::Process(pid)),
        Chosen::File(path) => Ok(of_file(&path)?.of_process(args.process())),
    }
}

/// What a pid or a name means.
enum Chosen {
    File(PathBuf),
    /// A living process without one.
    Process(u32),
}

/// The ring of a process, or the process itself.
fn of_process(pid: u32, common: &Common) -> Result<Chosen, AppError> {
    let is_alive = has_threads(pid as i32);
    let owner = unreadable(common).into_iter().find(|ring| ring.pid == pid).map(|ring| ring.owner);
    let rings = rings_of_process(pid, &common.directories());
    if rings.is_empty() && (is_alive || owner.is_none()) {
        // The process itself will do. If there is none, the user should know where rings were searched, too.
        match processes_by::pid(pid) {
            Err(AppError::Read(ReadError::Process(Error::NoProcess { .. }))) => {}
            found => {
                if let Some(owner) = &owner {
                    remark(format_args!(
                        "Process {pid} has a ring, which belongs to {} and cannot be read: run read-rip as that \
                         user, or as root",
                        printable(owner)
                    ));
                }
                return found.map(Chosen::Process);
            }
        }
    }
    let none = AppError::NoRingOf { pid, is_alive, dir: names(common).into(), owner };
    let rings = newest_first(originals(rings));
    match rings.first() {
        // Several processes have had this pid.
        Some(newest) if rings.iter().all(|ring| ring.liveness.is_final()) => {
            Ok(Chosen::File(newest_of(newest, rings.len())))
        }
        _ => only(rings, none).map(Chosen::File),
    }
}

/// The rings that are no copies; all of them if there are only copies. A copy says what its original logged, or what
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
fn of_program(name: &OsStr, common: &Common) -> Result<Option<Chosen>, AppError> {
    if !may_be_name(name) {
        return Ok(None);
    }
    let mut rings = search_everywhere(common)?;
    rings.retain(|ring| is_of_program(ring, name));
    if rings.iter().all(|ring| ring.liveness.is_final())
        && common.is_default_dir()
        && let Some(pid) = processes_by::name(name, rings.len())?
    {
        return Ok(Some(Chosen::Process(pid)));
    }
    let rings = originals(rings);
    let Some(newest) = rings.first() else { return Ok(None) };
    if rings.iter().any(|ring| !ring.liveness.is_final()) {
        let only = only(rings, AppError::NoRing { dir: names(common).into() })?;
        return Ok(Some(Chosen::File(only)));
    }
    Ok(Some(Chosen::File(newest_of(newest, rings.len()))))
}

/// Whether a program may have this name. That of a ring whose program is unknown is empty: an empty argument does not
/// ask for it.
fn may_be_name(name: &OsStr) -> bool {
    !name.is_empty() && name != "-" && !name.as_encoded_bytes().contains(&b'/')
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
pub(super) fn search_directories(common: &Common) -> Result<Vec<Found>, AppError> {
    let mut found = Vec::new();
    for directory in common.directories() {
        let rings =
            rings_in(&directory).map_err(|source| AppError::Directory { path: directory.clone(), source })?;
        found.extend(rings);
    }
    Ok(newest_first(found))
}

/// The files of these directories that look like unfinished rings.
pub(super) fn unfinished(common: &Common) -> Result<Vec<Unfinished>, AppError> {
    let mut found = Vec::new();
    for directory in common.directories() {
        let files = unfinished_in(&directory)
            .map_err(|source| AppError::Directory { path: directory.clone(), source })?;
        found.extend(files);
    }
    Ok(found)
}

/// The rings of these directories, and if the user names no directory, the rings that containers and other processes
/// have elsewhere.
pub(super) fn search_everywhere(common: &Common) -> Result<Vec<Found>, AppError> {
    let mut found = search_directories(common)?;
    for directory in others(common) {
        // The process may have ended.
        found.extend(rings_in(&directory).unwrap_or_default());
    }
    Ok(newest_first(found))
}

/// Directories where other processes may have rings.
fn others(common: &Common) -> Vec<PathBuf> {
    if common.is_default_dir() { directories_of_processes(&common.directories()) } else { Vec::new() }
}

/// The files of other users that have the names of rings.
fn unreadable(common: &Common) -> Vec<Unreadable> {
    let mut directories = common.directories();
    directories.extend(others(common));
    directories.iter().flat_map(|directory| unreadable_in(directory)).collect()
}

/// The directories that are searched, for people.
fn names(common: &Common) -> String {
    let names: Vec<String> =
        common.directories().iter().map(|directory| directory.to_string_lossy().into_owned()).collect();
    names.join(" and ")
}

/// All rings of the directories that are searched, the newest first.
pub(super) fn all(common: &Common) -> Result<Vec<PathBuf>, AppError> {
    let rings: Vec<PathBuf> = search_directories(common)?.into_iter().map(|ring| ring.path).collect();
    if rings.is_empty() { Err(AppError::NoRing { dir: names(common).into() }) } else { Ok(rings) }
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
