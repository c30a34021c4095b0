//! A module of the recorded process, as a ring or the process's memory describes it.
//!
//! It does not open the module's file.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};

/// An executable or shared library that the recorded process had loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// The process that registered it.
    pub pid: u32,
    /// Actual address minus module-relative address.
    pub load_bias: u64,
    /// The first module-relative address that is mapped.
    pub begin: u64,
    /// The module-relative address after the last one that is mapped.
    pub end: u64,
    /// The module-relative addresses of its code. Outside of it are constants and variables.
    pub code: Range<u64>,
    /// The file, in the recorded process's view of the file system. Do not trust it: it comes from the ring.
    #[serde(serialize_with = "lossy_path")]
    pub path: PathBuf,
    /// The GNU build id; empty if the module has none.
    pub build_id: Vec<u8>,
    /// Whether it is the program itself.
    pub is_executable: bool,
    /// The file's length when it was registered, bytes; 0 when unknown.
    pub file_len_bytes: u64,
    /// The file's modification time when it was registered, ns since 1970; 0 when unknown.
    pub modified_ns: u64,
}

impl Module {
    /// The module-relative address of an actual address; `None` if the address is not in this module.
    pub fn relative(&self, actual: u64) -> Option<u64> {
        let relative = actual.wrapping_sub(self.load_bias);
        (self.begin..self.end).contains(&relative).then_some(relative)
    }
}

/// What is no text in a path is replaced.
fn lossy_path<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.to_string_lossy())
}
