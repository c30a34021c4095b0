//! Finds rings: in directories, or mapped by a process; and the directories where processes may have rings.
//!
//! It decides by the header alone whether a file is a ring, and does not choose among rings.

use std::cell::LazyCell;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use procfs::process::{MMPermissions, MMapPath, MemoryMap, Process};
use read_rip_files::{Directory, Links};
use read_rip_ring::{self as ring, DEFAULT_DIRECTORY, FileName, Header};

use super::children::{Child, children_in, liveness_of_children};
use super::liveness::{Liveness, liveness};
use super::mapped::{MappedFiles, Recorder, maps_of, of_each_process};

#[derive(Debug)]
pub struct Found {
    pub path: PathBuf,
    pub header: Header,
    /// Whether the process that made it is alive.
    pub liveness: Liveness,
    /// The memory that it occupies, bytes.
    pub memory_bytes: u64,
    /// The forked children that have recorded in it: see [`Found::with_children`].
    pub children: Vec<Child>,
}

/// The name of a user, for people.
fn user_name(uid: u32) -> String {
    match nix::unistd::User::from_uid(uid.into()) {
        Ok(Some(user)) => format!("user {}", user.name),
        _ => format!("user {uid}"),
    }
}

/// A file with the name of a ring that this reader may not read.
#[derive(Debug)]
pub struct Unreadable {
    pub path: PathBuf,
    /// The user that it belongs to, for people.
    pub owner: String,
    /// The program that made it, by the file's name.
    pub program: String,
    /// The pid of that program, by the file's name.
    pub pid: u32,
    /// The memory that it occupies, bytes.
    pub memory_bytes: u64,
}

/// The files of a directory that have the default names of rings, and may not be read.
pub fn unreadable_in(directory: &Path) -> Vec<Unreadable> {
    let Ok(directory) = Directory::open(directory) else { return Vec::new() };
    let names = directory.files().unwrap_or_default();
    names.into_iter().filter_map(|name| unreadable(&directory, &name)).collect()
}

fn unreadable(directory: &Directory, name: &OsStr) -> Option<Unreadable> {
    let FileName { program, pid } = FileName::parse(name.to_str()?)?;
    let path = directory.path().join(name);
    let error = ring::read_header(&path).err()?;
    if !error.is_denied() {
        return None;
    }
    let found = directory.stat(name).ok()?;
    Some(Unreadable {
        path,
        owner: user_name(found.st_uid),
        program,
        pid,
        memory_bytes: found.st_blocks as u64 * 512,
    })
}

impl Found {
    /// Whether the file belongs to the user of this reader.
    pub fn is_own(&self) -> bool {
        self.header.read_from.is_some_and(|file| file.owner == nix::unistd::geteuid().as_raw())
    }

    /// The user that the file belongs to, for people.
    pub fn owner(&self) -> String {
        self.header.read_from.map_or_else(|| "nobody".to_owned(), |file| user_name(file.owner))
    }

    fn at(path: PathBuf) -> Option<Found> {
        let header = ring::read_header(&path).ok()?;
        let liveness = liveness(&header);
        let memory_bytes = read_rip_files::open(&path, Links::Refused).ok()?.occupied_bytes();
        Some(Found { path, header, liveness, memory_bytes, children: Vec::new() })
    }

    /// Whether a forked child may record in it, though the process that made it is dead. It does not read the ring.
    pub fn may_have_child(&self, mapped: &LazyCell<MappedFiles>) -> bool {
        self.header.forks > 0 && mapped.recorder(&self.header, true, None) != Recorder::None
    }

    /// Lists forked children, and looks for living ones if the process itself does not record any more. See
    /// `liveness_of_children`.
    ///
    /// This reads the whole ring, so only callers that show or remove the ring do it.
    pub fn with_children(mut self, mapped: &LazyCell<MappedFiles>, is_thorough: bool) -> Found {
        if self.liveness.is_final() || self.header.forks > 0 {
            let slots = ring::read(&self.path).map(|snapshot| snapshot.slots).unwrap_or_default();
            self.children = children_in(&self.header, &slots);
            if !self.liveness.is_final() {
                return self;
            }
            let children = liveness_of_children(&self.header, &slots, mapped, is_thorough);
            if children != Liveness::Dead {
                self.liveness = children;
            }
        }
        self
    }
}

/// All rings of a directory, the newest first. Other files are skipped.
///
/// # Errors
///
/// If the directory cannot be read.
pub fn rings_in(directory: &Path) -> std::io::Result<Vec<Found>> {
    let directory = Directory::open(directory)?;
    let found = directory.files()?.into_iter().filter_map(|name| Found::at(directory.path().join(name)));
    Ok(newest_first(found.collect()))
}

/// Sorts rings by age.
pub fn newest_first(mut rings: Vec<Found>) -> Vec<Found> {
    rings.sort_by(|a, b| {
        b.header.created_realtime_ns.cmp(&a.header.created_realtime_ns).then_with(|| a.path.cmp(&b.path))
    });
    rings
}

/// The directories where processes may have rings, without those that are `known`: `/dev/shm` as the processes of
/// containers see it, and where `RIP_RING` of this user's processes leads.
///
/// A hostile container cannot lead anywhere: its `/dev/shm` must be a tmpfs, and no link leads to it.
pub fn directories_of_processes(known: &[PathBuf]) -> Vec<PathBuf> {
    let id = |path: &Path| Directory::open(path).and_then(|directory| directory.id()).ok();
    let mut ids: HashSet<_> = known.iter().filter_map(|path| id(path)).collect();
    // One of each view of the file system: a mount namespace, and a root directory in it.
    let view = |pid: &str| {
        let namespace = std::fs::metadata(format!("/proc/{pid}/ns/mnt")).ok()?.ino();
        Some((namespace, id(Path::new(&format!("/proc/{pid}/root/")))?))
    };
    let mut views: HashSet<_> = view("self").into_iter().collect();
    let mut found = Vec::new();
    let own_uid = nix::unistd::geteuid().as_raw();
    let ring_of_own =
        move |process: &Process| if process.uid().ok()? == own_uid { rip_ring_of(process) } else { None };
    for (process, ring) in of_each_process(ring_of_own).into_iter().flatten() {
        let root = PathBuf::from(format!("/proc/{}/root", process.pid));
        let mut candidates = Vec::new();
        if view(&process.pid.to_string()).is_some_and(|view| views.insert(view)) {
            let default = root.join(DEFAULT_DIRECTORY.trim_start_matches('/'));
            let is_in_memory = Directory::open(&default).and_then(|directory| directory.is_in_memory());
            candidates.extend(is_in_memory.is_ok_and(|is| is).then_some(default));
        }
        if let Some(path) = ring.flatten()
            && let Ok(within) = Path::new(&path).strip_prefix("/")
        {
            let path = root.join(within);
            let is_directory = Directory::open(&path).is_ok();
            candidates.extend(if is_directory { Some(path) } else { path.parent().map(Path::to_owned) });
        }
        found.extend(candidates.into_iter().filter(|path| id(path).is_some_and(|id| ids.insert(id))));
    }
    found
}

/// The value of `RIP_RING` in the environment of a process.
fn rip_ring_of(process: &Process) -> Option<OsString> {
    process.environ().ok()?.remove(OsStr::new("RIP_RING"))
}

/// Whether a process has a slot in a ring.
fn has_recorded(ring: &Found, pid: u32) -> bool {
    ring::read(&ring.path).is_ok_and(|snapshot| snapshot.slots.iter().any(|slot| slot.pid == pid))
}

/// The rings of a process: those that it has mapped, in any directory, and those in `directories` that it made.
pub fn rings_of_process(pid: u32, directories: &[PathBuf]) -> Vec<Found> {
    let mut found: Vec<Found> =
        directories.iter().flat_map(|directory| rings_in(directory).unwrap_or_default()).collect();
    // Anybody may make a file that says that it is of this process.
    found.retain(|ring| !ring.liveness.is_foreign());
    found.retain(|ring| {
        ring.header.pid == pid
            || matches!(ring.liveness, Liveness::Alive { pid: alive, .. } if alive == pid as i32)
            || ring.header.forks > 0 && has_recorded(ring, pid)
    });
    let Some(maps) = maps_of(pid as i32) else { return found };
    let mut known: HashSet<_> =
        found.iter().filter_map(|ring| ring.header.read_from).map(|file| file.id).collect();
    // A recorder writes to a shared mapping. Other files are not looked at: they may be on a file system that does not
    // answer.
    let is_ring_like =
        |map: &MemoryMap| map.offset == 0 && map.perms.contains(MMPermissions::SHARED | MMPermissions::WRITE);
    for map in maps.into_iter().filter(is_ring_like) {
        let MMapPath::Path(path) = &map.pathname else { continue };
        // In a container, the process sees another root directory. `map_files` leads to removed files too.
        let within = path.strip_prefix("/").unwrap_or(path);
        let candidates = [
            Path::new("/proc").join(pid.to_string()).join("root").join(within),
            PathBuf::from(format!("/proc/{pid}/map_files/{:x}-{:x}", map.address.0, map.address.1)),
        ];
        let shown = candidates.into_iter().find_map(|candidate| {
            let found = Found::at(candidate)?;
            // The path may lead to another file by now.
            let file = found.header.read_from?;
            (file.id == found.header.file && file.id.inode == map.inode && known.insert(file.id))
                .then_some(found)
        });
        found.extend(shown);
    }
    found
}
