//! Files and folders that get their names when they are complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::error::AppError;
use super::output::remark;
use crate::export::Files;
use crate::report::printable;

/// Writes a file beside its place, and renames it when it is complete.
pub(super) fn file(
    target: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), AppError> {
    let beside = beside(target);
    let unfinished = Unfinished(beside.clone());
    let written = complete(&beside, write).and_then(|()| fs::rename(&beside, target));
    written.map_err(|source| AppError::Export { path: target.to_owned(), source })?;
    std::mem::forget(unfinished);
    Ok(())
}

/// Writes a folder beside its place, and renames it when it is complete. It replaces nothing.
pub(super) fn folder<T>(
    target: &Path,
    write: impl FnOnce(&mut dyn Files) -> io::Result<T>,
) -> Result<T, AppError> {
    if target.symlink_metadata().is_ok() {
        return Err(AppError::InTheWay { path: target.to_owned() });
    }
    let mut folder = Folder(beside(target));
    let failed = |source| AppError::Export { path: target.to_owned(), source };
    fs::create_dir(&folder.0).map_err(failed)?;
    let of_content = write(&mut folder).map_err(failed)?;
    fs::rename(&folder.0, target).map_err(failed)?;
    std::mem::forget(folder);
    Ok(of_content)
}

/// Where a file is until it is complete.
pub(super) fn beside(target: &Path) -> PathBuf {
    target.with_file_name(format!(".{}.{}", name_of(target), std::process::id()))
}

/// The name of a file; that of a ring if it has none.
pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or("ring".as_ref()).to_string_lossy().into_owned()
}

/// A file that is not complete. It is removed unless it is forgotten.
pub(super) struct Unfinished(pub(super) PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // There may be no such file yet.
        let _ = fs::remove_file(&self.0);
    }
}

/// Says where the result is.
pub(super) fn remark_of(target: &Path) {
    remark(format_args!("Written to {}.", printable(&target.to_string_lossy())));
}

/// Writes a file completely.
fn complete(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

/// A folder that is not complete. It is removed unless it is forgotten.
struct Folder(PathBuf);

impl Files for Folder {
    fn write(
        &mut self,
        name: &str,
        content: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        complete(&self.0.join(name), content)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
