//! The ranges of the target's memory.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A range of the target's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// Its first address.
    pub begin: u64,
    /// The address after its last one.
    pub end: u64,
    /// Whether it can be written to.
    pub is_writable: bool,
    /// Whether its contents can be executed.
    pub is_executable: bool,
    /// Whether writes reach the file, or other processes.
    pub is_shared: bool,
    /// The offset of `begin` in the file, bytes.
    pub offset: u64,
    /// The device and the inode of the file; `None` if no file is mapped, or if that is not known.
    pub file: Option<(u64, u64)>,
    /// The path of the file, as the target sees it. Special ranges have a name in brackets, as in `[stack]`.
    #[serde(serialize_with = "crate::saved_text::optional_path")]
    pub path: Option<PathBuf>,
    /// Whether the file has been removed since.
    pub is_deleted: bool,
}
