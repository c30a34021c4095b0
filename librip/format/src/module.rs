//! Modules (executables and shared libraries), texts, and names of locks.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// Names of locks are cut to this length, bytes.
pub const NAME_LEN_BYTES: usize = 48;

/// A string in the text region.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Text {
    /// Bytes from the start of the text region.
    pub offset: u32,
    /// Length, bytes; there is no terminator.
    pub len_bytes: u32,
}

/// An executable or shared library of the recorded process.
#[repr(C)]
#[derive(Debug)]
pub struct Module {
    /// The entry's [checksum](crate::checksum), written last; 0 before.
    pub state: AtomicU32,
    /// The process that has loaded it. A forked child may load another library at the same address.
    pub pid: u32,
    /// Actual address minus module-relative address.
    pub load_bias: u64,
    /// The first module-relative address that is mapped.
    pub begin: u64,
    /// The module-relative address after the last one that is mapped.
    pub end: u64,
    /// The path that the dynamic linker or `/proc/self/exe` gave.
    pub path: Text,
    /// Length of `build_id`, bytes; 0 if the module has none.
    pub build_id_len_bytes: u32,
    /// 1 for the program itself, 0 for libraries.
    pub is_executable: u32,
    /// The GNU build id, padded with zeros.
    pub build_id: [u8; 32],
    /// The file's length when it was registered, bytes. Together with `modified_ns` it recognises a replaced file that
    /// has no build id. 0 if the recorder could not look at the file.
    pub file_len_bytes: u64,
    /// The file's modification time when it was registered, ns since 1970.
    pub modified_ns: u64,
    /// The first module-relative address of the module's code.
    pub code_begin: u64,
    /// The module-relative address after the module's code: its executable segments are before it.
    pub code_end: u64,
    /// Zero.
    pub reserved: [u64; 2],
}

/// A name that the program gave to a lock.
#[repr(C)]
#[derive(Debug)]
pub struct LockName {
    /// [`NAME_FREE`], [`NAME_CLAIMED`], or the [checksum](crate::checksum) of a complete entry. The other fields change
    /// only while it is [`NAME_CLAIMED`].
    pub state: AtomicU32,
    /// The process.
    pub pid: AtomicU32,
    /// The lock's address.
    pub lock: AtomicU64,
    /// The name, padded with zeros.
    pub name: [AtomicU64; NAME_LEN_BYTES / 8],
}

/// [`LockName::state`]: free, or the lock was destroyed.
pub const NAME_FREE: u32 = 0;
/// [`LockName::state`]: a thread is writing the entry.
pub const NAME_CLAIMED: u32 = 2;

const _: () = {
    assert!(size_of::<Module>() == 128);
    assert!(size_of::<LockName>() == 64);
};
