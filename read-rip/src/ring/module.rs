//! A module of the recorded process, as the ring describes it.

use std::path::PathBuf;

/// An executable or shared library that the recorded process had loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    /// The process that registered it.
    pub pid: u32,
    /// Actual address minus module-relative address.
    pub load_bias: u64,
    /// First module-relative address that is mapped.
    pub begin: u64,
    /// Module-relative address behind the last that is mapped.
    pub end: u64,
    /// The file, in the recorded process's own view of the file system. Not to be trusted: the ring is data.
    pub path: PathBuf,
    /// The GNU build id; empty where the module has none.
    pub build_id: Vec<u8>,
    /// Whether it is the program itself.
    pub is_executable: bool,
    /// The file's length when it was registered, bytes; 0 when unknown.
    pub file_len_bytes: u64,
    /// The file's modification time when it was registered, ns since 1970; 0 when unknown.
    pub modified_ns: u64,
}

impl Module {
    /// The module-relative address of an actual one, if it is in this module.
    pub fn relative(&self, actual: u64) -> Option<u64> {
        let relative = actual.wrapping_sub(self.load_bias);
        (self.begin..self.end).contains(&relative).then_some(relative)
    }
}
