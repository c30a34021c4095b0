//! Files and mappings by system call: what making a ring and removing it need. It allocates nothing.

#![allow(unsafe_code, reason = "system calls")]

use core::ffi::{CStr, c_int, c_long};
use core::fmt;
use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr::NonNull;

use super::raw;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

impl From<Errno> for std::io::Error {
    fn from(error: Errno) -> Self {
        std::io::Error::from_raw_os_error(error.0)
    }
}

fn checked(result: isize) -> Result<usize, Errno> {
    if result < 0 { Err(Errno(-result as i32)) } else { Ok(result as usize) }
}

/// An open file, closed when dropped.
#[derive(Debug)]
pub(crate) struct File(c_int);

/// A file, whatever its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: this value owns the descriptor.
        unsafe { raw::call(libc::SYS_close, [self.0 as usize]) };
    }
}

impl File {
    /// Opens a file. It is closed by `exec`, is no symlink, and opening it waits for nobody: not for the writer of a
    /// FIFO, and not for the holder of a lease.
    pub(crate) fn open(path: &CStr, flags: c_int) -> Result<File, Errno> {
        let flags = flags | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let mode = libc::S_IRUSR | libc::S_IWUSR;
        let arguments =
            [libc::AT_FDCWD as usize, path.as_ptr().expose_provenance(), flags as usize, mode as usize];
        // SAFETY: the path is terminated.
        let result = unsafe { raw::call(libc::SYS_openat, arguments) };
        checked(result).map(|descriptor| File(descriptor as c_int))
    }

    /// Creates a file, and locks it as [`try_lock`](File::try_lock) does. The lock stays as long as the file is open,
    /// or mapped through this value.
    ///
    /// # Errors
    ///
    /// EEXIST if the name is taken, or if somebody has locked or removed the file before it was locked here. On a file
    /// system without locks, the file is not locked.
    pub(crate) fn create_locked(path: &CStr) -> Result<File, Errno> {
        let file = File::open(path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL)?;
        match file.lock() {
            Err(Errno(libc::EWOULDBLOCK)) => Err(Errno(libc::EEXIST)),
            _ if id_at(path, false) != file.id() => Err(Errno(libc::EEXIST)),
            _ => Ok(file),
        }
    }

    /// Creates a file beside the one at a path, for its owner alone. Its name is the path, a dot, and random digits: so
    /// nobody can have made it before. `name` gets it.
    ///
    /// # Errors
    ///
    /// ENAMETOOLONG if `name` has no room for it. Those of getrandom and openat.
    pub(crate) fn create_beside<const N: usize>(
        path: &CStr,
        name: &mut Terminated<N>,
    ) -> Result<File, Errno> {
        let too_long = |_| Errno(libc::ENAMETOOLONG);
        name.clear();
        name.push(path.to_bytes()).map_err(too_long)?;
        fmt::Write::write_fmt(name, format_args!(".{:016x}", random()?)).map_err(too_long)?;
        File::open(name.as_c_str(), libc::O_RDWR | libc::O_CREAT | libc::O_EXCL)
    }

    pub(crate) fn descriptor(&self) -> c_int {
        self.0
    }

    /// Reads from the file's position on.
    pub(crate) fn read(&self, bytes: &mut [u8]) -> Result<usize, Errno> {
        let arguments = [self.0 as usize, bytes.as_mut_ptr().expose_provenance(), bytes.len()];
        // SAFETY: the bytes are writable.
        checked(unsafe { raw::call(libc::SYS_read, arguments) })
    }

    /// Locks the file for this process alone (`flock`), until it is closed; false if somebody else has locked it.
    pub(crate) fn try_lock(&self) -> bool {
        self.lock().is_ok()
    }

    fn lock(&self) -> Result<(), Errno> {
        let operation = libc::LOCK_EX | libc::LOCK_NB;
        // SAFETY: takes numbers.
        checked(unsafe { raw::call(libc::SYS_flock, [self.0 as usize, operation as usize]) }).map(drop)
    }

    /// Gives its owner, and nobody else, the right to read and write it, whatever the umask.
    pub(crate) fn restrict_to_owner(&self) {
        let mode = libc::S_IRUSR | libc::S_IWUSR;
        // SAFETY: takes numbers.
        unsafe { raw::call(libc::SYS_fchmod, [self.0 as usize, mode as usize]) };
    }

    /// Sets the length.
    ///
    /// # Errors
    ///
    /// EFBIG above the limit on the length of files (`RLIMIT_FSIZE`), which is read now: the program may have lowered
    /// it. The kernel would raise SIGXFSZ, which kills.
    pub(crate) fn set_len(&self, len_bytes: u64) -> Result<(), Errno> {
        if len_bytes > len_max() {
            return Err(Errno(libc::EFBIG));
        }
        // SAFETY: takes numbers.
        checked(unsafe { raw::call(libc::SYS_ftruncate, [self.0 as usize, len_bytes as usize]) }).map(drop)
    }

    pub(crate) fn id(&self) -> Result<FileId, Errno> {
        status_at(self.0, c"", libc::AT_EMPTY_PATH).map(|status| id_of(&status))
    }

    pub(crate) fn owner(&self) -> Result<u32, Errno> {
        status_at(self.0, c"", libc::AT_EMPTY_PATH).map(|status| status.st_uid)
    }

    /// The `statfs` type of its file system; 0 if that is not known.
    pub(crate) fn file_system(&self) -> u64 {
        let mut status = MaybeUninit::<libc::statfs>::zeroed();
        let arguments = [self.0 as usize, status.as_mut_ptr().expose_provenance()];
        // SAFETY: `status` is writable.
        unsafe { raw::call(libc::SYS_fstatfs, arguments) };
        // SAFETY: zeroed, which is a valid `statfs`, or filled by the kernel.
        unsafe { status.assume_init() }.f_type as u64
    }

    /// The next part of the file from an offset on that has data: its start and its end. `None` after the last one.
    fn data_from(&self, offset: u64) -> Option<(u64, u64)> {
        let seek = |offset: u64, what: c_int| {
            // SAFETY: takes numbers.
            checked(unsafe { raw::call(libc::SYS_lseek, [self.0 as usize, offset as usize, what as usize]) })
                .ok()
        };
        let begin = seek(offset, libc::SEEK_DATA)? as u64;
        Some((begin, seek(begin, libc::SEEK_HOLE)? as u64))
    }

    /// Copies what this file has data of within a range to `target`. `base` is where this file is mapped.
    pub(crate) fn copy_data(&self, base: *const u8, range: Range<u64>, target: &File) -> Result<(), Errno> {
        let mut offset = range.start;
        while let Some((begin, end)) = self.data_from(offset).filter(|&(begin, _)| begin < range.end) {
            offset = end.min(range.end);
            target.write_mapped(base, begin..offset)?;
        }
        Ok(())
    }

    /// Writes a range of another file, which is mapped at `base`, to the same range of this one.
    pub(crate) fn write_mapped(&self, base: *const u8, range: Range<u64>) -> Result<(), Errno> {
        let from = base.wrapping_add(range.start as usize);
        self.each_part(libc::SYS_pwrite64, from.expose_provenance(), range)
    }

    /// Writes words at an offset.
    pub(crate) fn write_words(&self, words: &[u64], offset: u64) -> Result<(), Errno> {
        let len_bytes = size_of_val(words) as u64;
        self.each_part(libc::SYS_pwrite64, words.as_ptr().expose_provenance(), offset..offset + len_bytes)
    }

    /// Reads words at an offset.
    ///
    /// # Errors
    ///
    /// EIO if the file ends before. Those of pread.
    pub(crate) fn read_words(&self, words: &mut [u64], offset: u64) -> Result<(), Errno> {
        let len_bytes = size_of_val(words) as u64;
        self.each_part(libc::SYS_pread64, words.as_mut_ptr().expose_provenance(), offset..offset + len_bytes)
    }

    /// Calls pread or pwrite for memory at an address and a range of the file, until all of it is done.
    fn each_part(&self, call: c_long, memory: usize, range: Range<u64>) -> Result<(), Errno> {
        let mut offset = range.start;
        while offset < range.end {
            let from = memory + (offset - range.start) as usize;
            let arguments = [self.0 as usize, from, (range.end - offset) as usize, offset as usize];
            // SAFETY: the callers read from a mapping, or from words, and write to words that they may write to. The
            // kernel reports an error if it cannot access the memory.
            match checked(unsafe { raw::call(call, arguments) })? {
                0 => return Err(Errno(libc::EIO)),
                done => offset += done as u64,
            }
        }
        Ok(())
    }

    /// Maps the file in place of another mapping.
    ///
    /// # Safety
    ///
    /// There is such a mapping, the caller's, of this length. The file has the contents that its users expect.
    #[cfg(feature = "interpose")]
    pub(crate) unsafe fn map_over(&self, base: NonNull<u8>, len_bytes: usize) -> Result<(), Errno> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
        let arguments = [
            base.as_ptr().expose_provenance(),
            len_bytes,
            access as usize,
            flags as usize,
            self.0 as usize,
            0,
        ];
        // SAFETY: the caller's promise.
        checked(unsafe { raw::call(libc::SYS_mmap, arguments) }).map(drop)
    }

    /// Maps the file, shared, for reading and writing. Swap is not reserved for it.
    pub(crate) fn map(&self, len_bytes: usize) -> Result<NonNull<u8>, Errno> {
        map(self.0, len_bytes, libc::MAP_SHARED | libc::MAP_NORESERVE)
    }
}

/// A number that nobody can guess.
fn random() -> Result<u64, Errno> {
    let mut number = 0u64;
    let arguments = [(&raw mut number).expose_provenance(), size_of::<u64>(), libc::GRND_NONBLOCK as usize];
    // SAFETY: the number is writable, and each of its values is valid. So few bytes come all at once.
    checked(unsafe { raw::call(libc::SYS_getrandom, arguments) })?;
    Ok(number)
}

/// The limit on the length of files, bytes. `RLIM_INFINITY` is the largest number.
fn len_max() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    let arguments = [0, libc::RLIMIT_FSIZE as usize, 0, (&raw mut limit).expose_provenance()];
    // SAFETY: for this process, it changes no limit, and `limit` is writable.
    unsafe { raw::call(libc::SYS_prlimit64, arguments) };
    limit.rlim_cur
}

/// Maps memory that forked children share. It takes memory only where it is used.
pub(crate) fn map_shared(len_bytes: usize) -> Result<NonNull<u8>, Errno> {
    map(-1, len_bytes, libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE)
}

/// Maps memory that forked children do not share.
pub(crate) fn map_private(len_bytes: usize) -> Result<NonNull<u8>, Errno> {
    map(-1, len_bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)
}

fn map(descriptor: c_int, len_bytes: usize, flags: c_int) -> Result<NonNull<u8>, Errno> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let arguments = [0, len_bytes, access as usize, flags as usize, descriptor as usize, 0];
    // SAFETY: without MAP_FIXED, the kernel chooses unused addresses.
    let address = checked(unsafe { raw::call(libc::SYS_mmap, arguments) })?;
    NonNull::new(core::ptr::with_exposed_provenance_mut(address)).ok_or(Errno(libc::ENOMEM))
}

/// Unmaps a mapping.
///
/// # Safety
///
/// The mapping is the caller's, has this length, and nobody uses it any more.
pub(crate) unsafe fn unmap(base: NonNull<u8>, len_bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { raw::call(libc::SYS_munmap, [base.as_ptr().expose_provenance(), len_bytes]) };
}

/// Makes another name of a file. The old path may be a link of `/proc` to an open file.
pub(crate) fn link(old: &CStr, new: &CStr) -> Result<(), Errno> {
    let arguments = [
        libc::AT_FDCWD as usize,
        old.as_ptr().expose_provenance(),
        libc::AT_FDCWD as usize,
        new.as_ptr().expose_provenance(),
        libc::AT_SYMLINK_FOLLOW as usize,
    ];
    // SAFETY: both paths are terminated.
    checked(unsafe { raw::call(libc::SYS_linkat, arguments) }).map(drop)
}

/// Gives a file another name. A file that has that name already loses it.
pub(crate) fn rename(old: &CStr, new: &CStr) -> Result<(), Errno> {
    let [old, new] = [old, new].map(|path| path.as_ptr().expose_provenance());
    let arguments = [libc::AT_FDCWD as usize, old, libc::AT_FDCWD as usize, new];
    // SAFETY: the paths are terminated.
    checked(unsafe { raw::call(libc::SYS_renameat, arguments) }).map(drop)
}

/// Removes a name of a file.
pub(crate) fn unlink(path: &CStr) {
    let arguments = [libc::AT_FDCWD as usize, path.as_ptr().expose_provenance(), 0];
    // SAFETY: the path is terminated.
    unsafe { raw::call(libc::SYS_unlinkat, arguments) };
}

/// The identity of the file at a path. A symlink is followed if `follows`.
pub(crate) fn id_at(path: &CStr, follows: bool) -> Result<FileId, Errno> {
    let flags = if follows { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
    status_at(libc::AT_FDCWD, path, flags).map(|status| id_of(&status))
}

/// How many links the file at a path has.
#[cfg(feature = "interpose")]
pub(crate) fn links_at(path: &CStr) -> Result<u64, Errno> {
    #[allow(clippy::useless_conversion, reason = "it has 32 bits on aarch64")]
    status_at(libc::AT_FDCWD, path, 0).map(|status| u64::from(status.st_nlink))
}

/// Whether a regular file is there, and no link to one.
pub(crate) fn is_regular_file(path: &CStr) -> bool {
    status_at(libc::AT_FDCWD, path, libc::AT_SYMLINK_NOFOLLOW)
        .is_ok_and(|status| status.st_mode & libc::S_IFMT == libc::S_IFREG)
}

/// The length and the modification time of the file at a path, bytes and ns since 1970.
pub(crate) fn len_and_time(path: &CStr) -> Result<(u64, u64), Errno> {
    let status = status_at(libc::AT_FDCWD, path, 0)?;
    let modified_ns =
        (status.st_mtime as u64).wrapping_mul(1_000_000_000).wrapping_add(status.st_mtime_nsec as u64);
    Ok((status.st_size as u64, modified_ns))
}

fn id_of(status: &libc::stat) -> FileId {
    FileId { device: status.st_dev, inode: status.st_ino }
}

fn status_at(directory: c_int, path: &CStr, flags: c_int) -> Result<libc::stat, Errno> {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    let arguments = [
        directory as usize,
        path.as_ptr().expose_provenance(),
        status.as_mut_ptr().expose_provenance(),
        flags as usize,
    ];
    // SAFETY: the path is terminated and `status` is writable.
    checked(unsafe { raw::call(libc::SYS_newfstatat, arguments) })?;
    // SAFETY: zeroed, which is a valid `stat`, and filled by the kernel.
    Ok(unsafe { status.assume_init() })
}

/// A text in a buffer, terminated. What does not fit is an error, and leaves the text cut.
#[derive(Debug)]
pub(crate) struct Terminated<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Terminated<N> {
    pub(crate) const fn new() -> Terminated<N> {
        Terminated { bytes: [0; N], len: 0 }
    }

    /// A formatted text; `None` if it does not fit.
    pub(crate) fn formatted(text: fmt::Arguments<'_>) -> Option<Terminated<N>> {
        let mut written = Terminated::new();
        fmt::Write::write_fmt(&mut written, text).ok()?;
        Some(written)
    }

    pub(crate) fn clear(&mut self) {
        self.cut(0);
    }

    /// Cuts the text to a length that it had before.
    pub(crate) fn cut(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.bytes[self.len] = 0;
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> fmt::Result {
        let end = self.len + bytes.len();
        // The last byte stays zero.
        if end >= N || bytes.contains(&0) {
            return Err(fmt::Error);
        }
        self.bytes[self.len..end].copy_from_slice(bytes);
        self.bytes[end] = 0;
        self.len = end;
        Ok(())
    }

    pub(crate) fn as_c_str(&self) -> &CStr {
        // SANITY: `push` ends the text with a zero, and `new` and `cut` do.
        CStr::from_bytes_until_nul(&self.bytes).expect("terminated")
    }
}

impl<const N: usize> fmt::Write for Terminated<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_terminated_and_never_overflows() {
        let mut text = Terminated::<6>::new();
        assert_eq!(text.as_c_str(), c"");
        text.push(b"abc").unwrap();
        assert!(text.push(b"def").is_err());
        text.push(b"de").unwrap();
        assert_eq!(text.as_c_str(), c"abcde");
        text.cut(1);
        assert_eq!((text.as_c_str(), text.len()), (c"a", 1));
        assert!(Terminated::<3>::formatted(format_args!("{}", 1234)).is_none());
    }

    #[test]
    fn opening_does_not_wait_for_the_writer_of_a_fifo() {
        let path = format!("/dev/shm/librip-fifo-{}", std::process::id());
        let path = std::ffi::CString::new(path).unwrap();
        nix::unistd::mkfifo(path.as_c_str(), nix::sys::stat::Mode::S_IRUSR).unwrap();
        let opened = File::open(&path, libc::O_RDONLY).unwrap();
        assert_eq!(opened.read(&mut [0; 8]), Ok(0));
        unlink(&path);
        assert_eq!(id_at(&path, false), Err(Errno(libc::ENOENT)));
    }

    #[test]
    fn a_created_file_is_locked_while_it_is_open_or_mapped() {
        let path = std::env::temp_dir().join(format!("librip-locked.{}", std::process::id()));
        let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
        let file = File::create_locked(&name).unwrap();
        assert_eq!(File::create_locked(&name).err(), Some(Errno(libc::EEXIST)));
        let other = File::open(&name, libc::O_RDONLY).unwrap();
        assert!(!other.try_lock());
        file.set_len(4096).unwrap();
        let base = file.map(4096).unwrap();
        drop(file);
        assert!(!other.try_lock(), "the mapping keeps the lock");
        // SAFETY: mapped above, and not used.
        unsafe { unmap(base, 4096) };
        assert!(other.try_lock());
        std::fs::remove_file(path).unwrap();
    }
}
