//! Files and folders that get their names when they are complete.
//!
//! Until then they are beside their place under another name. If they cannot be completed, or if a signal ends the
//! program, they are removed; SIGKILL leaves them under the other name.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::error::AppError;
use super::output::remark;
use super::progress::Progress;
use super::signals::{Signals, end_by};
use crate::export::Files;
use crate::report::printable;

/// How long the thread that waits for signals does so at once.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Writes a file. It replaces an earlier one.
pub(super) fn file(
    target: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), AppError> {
    Writing::begin(target)?.file(write)
}

/// Where a file is until it is complete.
pub(super) fn beside(target: &Path) -> PathBuf {
    target.with_file_name(format!(".{}.{}", name_of(target), std::process::id()))
}

/// The name of a file; that of a ring if it has none.
pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or("ring".as_ref()).to_string_lossy().into_owned()
}

/// Says where the result is.
pub(super) fn remark_of(target: &Path) {
    remark(format_args!("Written to {}.", printable(&target.to_string_lossy())));
}

/// A file that is not complete. It is removed unless it is forgotten. A signal leaves it, unlike what is [`Writing`].
pub(super) struct Unfinished(pub(super) PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // There may be no such file yet.
        let _ = fs::remove_file(&self.0);
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
        removable.watch().map_err(|source| AppError::Export { path: target.to_owned(), source })?;
        Ok(Writing { target: target.to_owned(), removable, progress: Progress::begin() })
    }

    /// Writes a file. It replaces an earlier one.
    pub(super) fn file(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), AppError> {
        let beside = beside(&self.target);
        let written = self.removable.begin(&beside, |path| File::create(path));
        let written = written.and_then(|file| self.complete(file, write)).and_then(|()| self.name(&beside));
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
        let beside = beside(&self.target);
        let written = self.removable.begin(&beside, |path| fs::create_dir(path));
        let written = written.and_then(|()| write(&mut Folder { path: &beside, writing: &self }));
        let written = written.and_then(|of_content| self.name(&beside).map(|()| of_content));
        self.end(written)
    }

    /// Writes a file completely.
    fn complete(&self, file: File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut out = BufWriter::new(self.progress.counting(file));
        write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.0.sync_all()
    }

    /// Gives what was written its name.
    fn name(&self, beside: &Path) -> io::Result<()> {
        let mut removable = self.removable.lock();
        fs::rename(beside, &self.target)?;
        *removable = None;
        Ok(())
    }

    fn end<T>(self, written: io::Result<T>) -> Result<T, AppError> {
        let Writing { target, removable, progress } = self;
        drop(progress);
        match written {
            Ok(of_content) => Ok(of_content),
            Err(source) => {
                remove(&mut removable.lock());
                Err(AppError::Export { path: target, source })
            }
        }
    }
}

/// A folder that is being written.
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
            File::create_new(self.path.join(name))?
        };
        self.writing.complete(file, content)
    }
}

/// What is removed if it cannot be completed: a file or a folder.
#[derive(Clone, Default)]
struct Removable(Arc<Mutex<Option<PathBuf>>>);

impl Removable {
    fn lock(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes it. What was there before is not ours.
    fn begin<T>(&self, path: &Path, make: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let mut removable = self.lock();
        let made = make(path)?;
        *removable = Some(path.to_owned());
        Ok(made)
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
