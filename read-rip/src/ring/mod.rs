//! Rings as bytes: opened, checked, copied. The result is a [`Snapshot`].
//!
//! It knows no symbols and asks no process. Whatever the bytes say is checked before it is believed: a damaged
//! part is a [`Defect`], counted and described, and the rest is read all the same.

mod clock;
mod copy;
mod error;
mod header;
mod held;
mod legacy;
mod metadata;
mod module;
mod names;
mod parse;
mod site;
mod slot;
mod snapshot;
mod source;
mod unpacked;
mod word;

pub use clock::{Clock, ClockLevel, ClockSource};
pub use error::{Defect, Error};
pub use header::{Ending, FileSystem, Header, IgnoredSettings, Machine, Region, RegionKind, Setting};
pub use held::{HELD_LOCKS_MAX, HeldLock, HeldState};
pub use module::Module;
pub use site::{LockType, OperandType, Site, SiteFlags, SiteKind};
pub use slot::{Slot, SlotKind, SlotState};
pub use snapshot::Snapshot;
pub use source::Source;
pub use word::{SequenceBits, Word};

/// Where recorders make rings unless told otherwise.
pub const DEFAULT_DIRECTORY: &str = librip_format::DEFAULT_DIRECTORY;

use std::path::Path;

/// Opens and copies a ring: a file, or a gzip, zlib or zstd copy of one; librip's or its C ancestor's.
///
/// # Errors
///
/// When nothing of it can be read; see [`Error`].
pub fn read(path: &Path) -> Result<Snapshot, Error> {
    let source = Source::open(path)?;
    if legacy::is_one(&source) {
        return legacy::read(&source);
    }
    let (header, mut defects) = parse::header(&source)?;
    let (modules, sites) = metadata::read(&source, &header, &mut defects);
    let slots = copy::slots(&source, &header, &mut defects);
    let lock_names = names::read(&source, &header, &mut defects);
    Ok(Snapshot { header: Some(header), modules, sites, slots, lock_names, defects, sequence_mask: u64::MAX })
}

/// Reads no more than a ring's header: enough to list it.
///
/// # Errors
///
/// As [`read`]; a ring of the C ancestor has no header and is [`Error::NotARing`] here, and so is a compressed
/// copy: it is somebody's evidence, not a ring in use, and unpacking all that lies around would take its time.
pub fn read_header(path: &Path) -> Result<Header, Error> {
    parse::header(&Source::open_packed(path)?).map(|(header, _)| header)
}

/// Reads only which program made a ring.
///
/// # Errors
///
/// As [`read_header`].
pub fn read_program(path: &Path) -> Result<std::path::PathBuf, Error> {
    let source = Source::open_packed(path)?;
    let (header, mut defects) = parse::header(&source)?;
    let (modules, _) = metadata::read(&source, &header, &mut defects);
    let program = modules.into_iter().find(|module| module.is_executable);
    Ok(program.map(|module| module.path).unwrap_or_default())
}
