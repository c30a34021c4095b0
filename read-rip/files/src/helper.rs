//! Another process, which opens and reads files that may never answer.
//!
//! Who waits for a file system in the kernel cannot be ended by a signal, not even by SIGKILL. So the helper waits, and
//! this process waits for the helper for a while. A helper that does not answer is left behind: it ends when its file
//! system answers, or is gone.
//!
//! # Requests and answers
//!
//! | request | numbers | data | answer |
//! |---|---|---|---|
//! | [`REACH`] | whether links are followed, flags of `open` | a path | a descriptor, or a file's number and facts |
//! | [`READ`] | the number of a file, an offset, a length | | bytes |
//!
//! The first number of an answer is an error number, or 0. A descriptor is that of a file that is known to answer. Any
//! other file stays with the helper, and has a number.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Dev, FileType, OFlags, fstat};
use rustix::io::{Errno, pread};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::content::FileFacts;
use super::mounts::is_remote_magic;
use super::wire::{DATA_MAX_BYTES, Message, NUMBERS, receive, send};
use super::{FOR_READING, Links, again, magic, reached_here};

/// A file system has this long to answer.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The argument by which a program becomes the helper.
const ARGUMENT: &str = "answer-for-files";

const REACH: u64 = 1;
const READ: u64 = 2;

/// Whether this program can be its own helper.
static IS_ENABLED: OnceLock<()> = OnceLock::new();

/// Lets this program be its own helper, for files that may never answer. It calls this first in `main`. If the program
/// was started as the helper, this returns when the helper has nothing more to do, and returns `true`: then `main`
/// returns.
///
/// A program that does not call it waits for such files itself, as long as they take.
pub fn become_helper() -> bool {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() == Some(OsStr::new(ARGUMENT)) && arguments.next().is_none() {
        serve(io::stdin().as_fd());
        return true;
    }
    IS_ENABLED.get_or_init(|| ());
    false
}

/// Whether there is a helper.
pub(crate) fn is_enabled() -> bool {
    IS_ENABLED.get().is_some()
}

#[derive(Debug)]
pub(crate) struct Remote {
    /// Which helper: an earlier one that did not answer does not have it any more.
    helper: u64,
    number: u64,
    device: Option<Dev>,
}

#[derive(Debug)]
pub(crate) enum Found {
    /// A file that is known to answer.
    Local(OwnedFd),
    /// A file that the helper has, and what is known of it.
    Remote(Remote, FileFacts),
}

struct Helper {
    number: u64,
    socket: OwnedFd,
    process: Child,
}

#[derive(Default)]
struct Helpers {
    present: Option<Helper>,
    /// The pids of all helpers that were started.
    started: Vec<u32>,
    /// Devices that have not answered.
    silent: Vec<Dev>,
    /// What has not answered, for people.
    unanswered: Vec<PathBuf>,
    /// What was not asked for, for people.
    unasked: Vec<PathBuf>,
}

static HELPERS: Mutex<Option<Helpers>> = Mutex::new(None);

/// The paths that have not answered so far.
pub fn unanswered() -> Vec<PathBuf> {
    let helpers = HELPERS.lock().unwrap_or_else(PoisonError::into_inner);
    helpers.as_ref().map(|helpers| helpers.unanswered.clone()).unwrap_or_default()
}

/// The pids of the helpers that were started so far. They are children of this process.
pub fn helper_pids() -> Vec<u32> {
    let helpers = HELPERS.lock().unwrap_or_else(PoisonError::into_inner);
    helpers.as_ref().map(|helpers| helpers.started.clone()).unwrap_or_default()
}

/// Notes that a part of a file was not asked for, because its file system may not answer.
pub fn note_unasked(path: &Path) {
    let mut helpers = HELPERS.lock().unwrap_or_else(PoisonError::into_inner);
    let unasked = &mut helpers.get_or_insert_default().unasked;
    if !unasked.iter().any(|known| known == path) {
        unasked.push(path.to_owned());
    }
}

/// The paths that were noted so far: see [`note_unasked`].
pub fn unasked() -> Vec<PathBuf> {
    let helpers = HELPERS.lock().unwrap_or_else(PoisonError::into_inner);
    helpers.as_ref().map(|helpers| helpers.unasked.clone()).unwrap_or_default()
}

/// The error of what does not answer.
fn silence() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("it did not answer within {} s", PATIENCE.as_secs()))
}

/// Whether a file system has not answered in time.
pub(crate) fn is_silence(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut && error.get_ref().is_some()
}

/// What a path leads to, which may be on this device.
pub(crate) fn reach(path: &Path, links: Links, flags: OFlags, device: Option<Dev>) -> io::Result<Found> {
    let numbers = [REACH, u64::from(links == Links::Followed), flags.bits().into(), 0, 0, 0];
    let (helper, answer) = ask(numbers, path.as_os_str().as_bytes(), device, path)?;
    let [_, number, mode, inode, len_bytes, modified_ns] = answer.numbers;
    Ok(match answer.descriptor {
        Some(descriptor) => Found::Local(descriptor),
        None => {
            let facts = FileFacts { mode: mode as u32, inode, len_bytes, modified_ns };
            Found::Remote(Remote { helper, number, device }, facts)
        }
    })
}

impl Remote {
    /// Reads once, as `pread` does. `path` is its name for people.
    pub(crate) fn read_at(&self, into: &mut [u8], offset: u64, path: &Path) -> io::Result<usize> {
        let wanted = into.len().min(DATA_MAX_BYTES);
        let numbers = [READ, self.number, offset, wanted as u64, self.helper, 0];
        let (_, answer) = ask(numbers, &[], self.device, path)?;
        let got = answer.data.len().min(into.len());
        into[..got].copy_from_slice(&answer.data[..got]);
        Ok(got)
    }
}

/// Asks the helper, and starts one if there is none. Returns which helper has answered, and what.
fn ask(numbers: [u64; NUMBERS], data: &[u8], device: Option<Dev>, path: &Path) -> io::Result<(u64, Message)> {
    let mut helpers = HELPERS.lock().unwrap_or_else(PoisonError::into_inner);
    let helpers = helpers.get_or_insert_default();
    let is_silent = device.is_some_and(|device| helpers.silent.contains(&device));
    if is_silent || helpers.unanswered.iter().any(|known| known == path) {
        return Err(silence());
    }
    if helpers.present.is_none() {
        let helper = Helper::start(helpers.started.len() as u64)?;
        helpers.started.push(helper.process.id());
        helpers.present = Some(helper);
    }
    let Some(helper) = &helpers.present else { return Err(silence()) };
    if numbers[0] == READ && numbers[4] != helper.number {
        // The file was that of a helper that has not answered.
        return Err(silence());
    }
    let answer = send(&helper.socket, numbers, data, None).and_then(|()| helper.answer());
    match answer {
        Ok(answer) if answer.numbers[0] == 0 => Ok((helper.number, answer)),
        Ok(answer) => Err(io::Error::from_raw_os_error(answer.numbers[0] as i32)),
        Err(error) => {
            helpers.present = None;
            helpers.silent.extend(device);
            if is_silence(&error) {
                helpers.unanswered.push(path.to_owned());
            }
            Err(error)
        }
    }
}

impl Helper {
    fn start(number: u64) -> io::Result<Helper> {
        let (socket, of_helper) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let process = Command::new("/proc/self/exe")
            .arg(ARGUMENT)
            .stdin(Stdio::from(of_helper))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Helper { number, socket, process })
    }

    fn answer(&self) -> io::Result<Message> {
        let patience = Timespec::try_from(PATIENCE).map_err(io::Error::other)?;
        let mut wait = [PollFd::new(&self.socket, PollFlags::IN)];
        match rustix::io::retry_on_intr(|| poll(&mut wait, Some(&patience)))? {
            0 => Err(silence()),
            _ => receive(&self.socket),
        }
    }
}

/// Answers requests until nobody can ask any more.
fn serve(socket: BorrowedFd<'_>) {
    let mut files: HashMap<u64, OwnedFd> = HashMap::new();
    while let Ok(request) = receive(socket) {
        let number = files.len() as u64 + 1;
        let mut numbers = [0; NUMBERS];
        let mut data = Vec::new();
        let mut descriptor = None;
        let [operation, first, second, third, ..] = request.numbers;
        let done = match operation {
            REACH => {
                let links = if first == 1 { Links::Followed } else { Links::Refused };
                let flags = OFlags::from_bits_retain(second as u32);
                inspect(Path::new(OsStr::from_bytes(&request.data)), links, flags).map(|found| match found {
                    Inspected::Local(found) => descriptor = Some(found),
                    Inspected::Remote(file, FileFacts { mode, inode, len_bytes, modified_ns }) => {
                        numbers = [0, number, mode.into(), inode, len_bytes, modified_ns];
                        files.insert(number, file);
                    }
                })
            }
            _ => files.get(&first).ok_or(Errno::BADF).and_then(|file| {
                data = vec![0; (third as usize).min(DATA_MAX_BYTES)];
                let got = pread(file, &mut data, second)?;
                data.truncate(got);
                Ok(())
            }),
        };
        if let Err(errno) = done {
            numbers = [errno.raw_os_error() as u64, 0, 0, 0, 0, 0];
            data.clear();
        }
        if send(socket, numbers, &data, descriptor.as_ref().map(AsFd::as_fd)).is_err() {
            return;
        }
    }
}

/// What the helper has found.
enum Inspected {
    Local(OwnedFd),
    /// A file that is open for reading if it is a regular one.
    Remote(OwnedFd, FileFacts),
}

fn inspect(path: &Path, links: Links, flags: OFlags) -> rustix::io::Result<Inspected> {
    let reached = reached_here(path, links, flags)?;
    if !is_remote_magic(magic(&reached)?) {
        return Ok(Inspected::Local(reached));
    }
    let found = fstat(&reached)?;
    let file = match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => again(&reached, FOR_READING)?,
        _ => reached,
    };
    Ok(Inspected::Remote(file, FileFacts::of_stat(&found)))
}
