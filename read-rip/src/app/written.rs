//! Files and folders that get their names when they are complete.
//!
//! Until then they are in the same folder, under a name that nobody can guess, and only their owner may read them. A
//! link or a file that somebody has planted is never followed. If they cannot be completed, or if a signal ends the
//! program, they are removed; SIGKILL leaves them under the other name.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use read_rip_export::Files;
use read_rip_report::printable;
use read_rip_ring::STANDARD_INPUT as STANDARD_STREAM;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::{NamedTempFile, TempDir};

use super::error::AppError;
use super::output::remark;
use super::progress::Progress;
use super::signals::{Signals, end_by};

/// How long the thread that waits for signals does so at once.
const PATIENCE: Duration = Duration::from_secs(3600);
/// The rights of a file, less the umask.
pub(super) const FILE_MODE: u32 = 0o600;
/// The rights of a folder, less the umask.
pub(super) const FOLDER_MODE: u32 = 0o700;

/// Writes a file, which replaces an earlier one, or standard output.
pub(super) fn file(
    target: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), AppError> {
    if !is_standard_output(target) {
        return Writing::begin(target)?.file(write);
    }
    let mut out = BufWriter::new(io::stdout());
    write(&mut out)
        .and_then(|()| out.flush())
        .map_err(|source| AppError::Export { path: "standard output".into(), source })
}

/// Whether the user names standard output. A file of this name is `./-`.
pub(super) fn is_standard_output(target: &Path) -> bool {
    target == Path::new(STANDARD_STREAM)
}

/// The file that an option names; `None` for standard output, which is the default.
pub(super) fn target(option: &Option<PathBuf>) -> Option<&Path> {
    option.as_deref().filter(|target| !is_standard_output(target))
}

/// The name of a file; that of a ring if it has none.
pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or("ring".as_ref()).to_string_lossy().into_owned()
}

/// Says where the result is.
pub(super) fn remark_of(target: &Path) {
    if !is_standard_output(target) {
        remark(format_args!("Written to {}.", printable(&target.to_string_lossy())));
    }
}

/// A file that is not complete. Dropped, it is removed. A signal leaves it, unlike what is [`Writing`].
pub(super) struct Unfinished {
    file: NamedTempFile,
    target: PathBuf,
}

impl Unfinished {
    /// Makes a file beside the one that it will replace; for standard output, among the temporary files.
    pub(super) fn new(target: &Path) -> io::Result<Unfinished> {
        check(target)?;
        let beside = if is_standard_output(target) { &std::env::temp_dir().join("ring") } else { target };
        let (folder, prefix) = place(beside);
        let mut builder = tempfile::Builder::new();
        let file =
            builder.prefix(&prefix).permissions(Permissions::from_mode(FILE_MODE)).tempfile_in(folder)?;
        Ok(Unfinished { file, target: target.to_owned() })
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// The file, opened for reading and writing.
    pub(super) fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Gives the file its name, and the rights of the file that it replaces, if that is the user's own. Or copies it to
    /// standard output.
    pub(super) fn complete(self) -> io::Result<()> {
        if is_standard_output(&self.target) {
            return io::copy(&mut self.file.reopen()?, &mut io::stdout()).map(drop);
        }
        self.file().sync_all()?;
        let own = nix::unistd::geteuid().as_raw();
        if let Ok(replaced) = self.target.symlink_metadata()
            && replaced.is_file()
            && replaced.uid() == own
        {
            self.file().set_permissions(Permissions::from_mode(replaced.mode() & 0o777))?;
        }
        self.file.persist(&self.target).map(drop).map_err(|failed| failed.error)
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The folder of what is written, and how its name begins until it is complete.
fn place(target: &Path) -> (&Path, String) {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    (folder.unwrap_or(Path::new(".")), format!(".{}.", name_of(target)))
}

/// Whether a file may replace what has the name now: nothing, or a file.
///
/// # Errors
///
/// It is something else, as `/dev/stdout` is.
fn check(target: &Path) -> io::Result<()> {
    match target.symlink_metadata() {
        Ok(found) if !found.is_file() && !is_standard_output(target) => {
            let kind = match found.file_type() {
                kind if kind.is_dir() => "a folder",
                kind if kind.is_symlink() => "a link",
                _ => "a device, a socket or a FIFO",
            };
            Err(io::Error::other(format!(
                "it is {kind}, and read-rip replaces files only; - is standard output"
            )))
        }
        _ => Ok(()),
    }
}

/// A result that is being made.
pub(super) struct Writing {
    target: PathBuf,
    removable: Removable,
    progress: Progress,
}

impl Writing {
    /// From now on, a signal that ends the program removes what was written. A long wait is shown on a terminal.
    ///
    /// No other thread that lives may let signals through: one thread waits for them.
    pub(super) fn begin(target: &Path) -> Result<Writing, AppError> {
        let removable = Removable::default();
        let failed = |source| AppError::Export { path: target.to_owned(), source };
        removable.watch().map_err(failed)?;
        Ok(Writing { target: target.to_owned(), removable, progress: Progress::of_file() })
    }

    /// Writes a file. It replaces an earlier one.
    pub(super) fn file(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), AppError> {
        let written = self.removable.begin(|| {
            let unfinished = Unfinished::new(&self.target)?;
            Ok((unfinished.path().to_owned(), unfinished))
        });
        let written = written.and_then(|unfinished| {
            self.write(unfinished.file().try_clone()?, write)?;
            self.removable.end(|| unfinished.complete())
        });
        self.end(written)
    }

    /// Writes a folder. It replaces nothing.
    pub(super) fn folder<T>(
        self,
        write: impl FnOnce(&mut dyn Files) -> io::Result<T>,
    ) -> Result<T, AppError> {
        if self.target.symlink_metadata().is_ok() {
            return Err(AppError::InTheWay { path: self.target });
        }
        let (folder, prefix) = place(&self.target);
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).permissions(Permissions::from_mode(FOLDER_MODE));
        let written = self.removable.begin(|| {
            let unfinished = builder.tempdir_in(folder)?;
            Ok((unfinished.path().to_owned(), unfinished))
        });
        let written = written.and_then(|unfinished| {
            let of_content = write(&mut Folder { path: unfinished.path(), writing: &self })?;
            self.removable.end(|| name_folder(unfinished, &self.target)).map(|()| of_content)
        });
        self.end(written)
    }

    fn write(&self, file: File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut out = BufWriter::new(self.progress.counting(file));
        write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.0.sync_all()
    }

    fn end<T>(self, written: io::Result<T>) -> Result<T, AppError> {
        let Writing { target, progress, .. } = self;
        drop(progress);
        written.map_err(|source| AppError::Export { path: target, source })
    }
}

/// Gives a file or a folder a name that nothing else has.
pub(super) fn rename_without_replacing(from: &Path, to: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

/// Gives a folder its name, if nothing else has it.
fn name_folder(unfinished: TempDir, target: &Path) -> io::Result<()> {
    rename_without_replacing(unfinished.path(), target)?;
    _ = unfinished.keep();
    Ok(())
}

struct Folder<'w> {
    path: &'w Path,
    writing: &'w Writing,
}

impl Files for Folder<'_> {
    fn write(
        &mut self,
        name: &str,
        content: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let file = {
            // Nothing gets into a folder that is being removed.
            let _not_removed = self.writing.removable.lock();
            File::options().write(true).create_new(true).mode(FILE_MODE).open(self.path.join(name))?
        };
        self.writing.write(file, content)
    }
}

/// What is removed if it cannot be completed: a file or a folder.
#[derive(Clone, Default)]
struct Removable(Arc<Mutex<Option<PathBuf>>>);

impl Removable {
    fn lock(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes it, and notes where it is.
    fn begin<T>(&self, make: impl FnOnce() -> io::Result<(PathBuf, T)>) -> io::Result<T> {
        let mut removable = self.lock();
        let (path, made) = make()?;
        *removable = Some(path);
        Ok(made)
    }

    /// It gets its name, and is not removed any more; or it is removed as it is dropped.
    fn end(&self, name: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let mut removable = self.lock();
        name()?;
        *removable = None;
        Ok(())
    }

    /// Starts the thread that removes it when a signal ends the program. The thread lives as long as the program.
    fn watch(&self) -> io::Result<()> {
        let signals = Signals::catch()?;
        let removable = self.clone();
        let watch = move || {
            loop {
                match signals.next(PATIENCE) {
                    Ok(None) => {}
                    Ok(Some(signal)) => {
                        // Locked to the end: nobody gives it its name any more.
                        let mut removable = removable.lock();
                        remove(&mut removable);
                        end_by(signal);
                    }
                    Err(_) => return,
                }
            }
        };
        thread::Builder::new().name("signals".into()).spawn(watch).map(drop)
    }
}

fn remove(removable: &mut Option<PathBuf>) {
    if let Some(path) = removable.take() {
        // There is nobody to tell that it cannot be removed either.
        let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
}
