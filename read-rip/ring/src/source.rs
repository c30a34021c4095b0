//! Where a ring's bytes come from: a file that is read piece by piece, or a decompressed copy in memory.
//!
//! It reads regular files and standard input only. It maps nothing: if a mapped file is truncated, an access kills the
//! reader.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lzma_rust2::XzReader;
use nix::unistd::{Whence, geteuid, lseek};
use read_rip_files::{Links, OpenError, Opened};

use super::recording::{MAGIC, Period, RecordedWords, Recording, Schedule};
use super::unpacked::{TooLong, UnpackLimit, Unpacked};
use super::{Cut, Defect, Error, OpenedFile};

/// The name of standard input. A file of this name is `./-`.
pub const STANDARD_INPUT: &str = "-";

/// A file says how much memory its unpacking takes. The strongest level of `xz` needs 65 MiB.
const XZ_MEMORY_MAX_KIB: u32 = 128 << 10;

#[derive(Clone, Debug)]
pub struct Source {
    path: PathBuf,
    data: Arc<Data>,
    /// Where it begins in the data, bytes.
    base: u64,
    len_bytes: u64,
    /// Whether it is an image in the file that `read-rip save` has written.
    is_saved: bool,
    /// Whether nothing writes to it any more.
    is_settled: bool,
    /// The file; none if its data was unpacked.
    opened: Option<OpenedFile>,
    /// Set if not all of the compressed data could be unpacked: its format, and why.
    cut: Option<(&'static str, Cut)>,
    /// What a recording has besides an image of the ring.
    recording: Option<Arc<Recording>>,
    /// The part of a recording that is read; `None`: all of it.
    period: Option<Period>,
}

#[derive(Debug)]
enum Data {
    File(File),
    Memory(Unpacked),
}

impl Source {
    /// Opens a file, and unpacks it if it is compressed.
    ///
    /// # Errors
    ///
    /// [`Error::Open`], [`Error::NotRegular`], [`Error::Empty`], [`Error::Decompress`].
    pub fn open(path: &Path) -> Result<Source, Error> {
        Source::open_within(path, UnpackLimit::default())
    }

    /// The same, with a limit for what it unpacks to.
    ///
    /// # Errors
    ///
    /// Those of [`Source::open`].
    pub fn open_within(path: &Path, limit: UnpackLimit) -> Result<Source, Error> {
        Source::open_as(path, Some(limit))
    }

    /// Opens a file as it is, compressed or not.
    ///
    /// # Errors
    ///
    /// Those of [`Source::open`].
    pub(crate) fn open_packed(path: &Path) -> Result<Source, Error> {
        Source::open_as(path, None)
    }

    /// Unpacks it if there is a limit for that.
    fn open_as(path: &Path, limit: Option<UnpackLimit>) -> Result<Source, Error> {
        let open_error = |source| Error::Open { path: path.to_owned(), source };
        let file = if path == Path::new(STANDARD_INPUT) {
            super::standard_input::open().and_then(Opened::new).map_err(OpenError::Io)
        } else {
            read_rip_files::open(path, Links::Refused)
        };
        let Opened { file, metadata } = file.map_err(|error| match error {
            OpenError::Io(source) => open_error(source),
            OpenError::NotRegular(found) => Error::NotRegular { path: path.to_owned(), found },
        })?;
        let mut start = [0; MAGIC.len()];
        let got = read_fully_at(&file, &mut start, 0).map_err(open_error)?;
        if got == 0 {
            return Err(Error::Empty { path: path.to_owned() });
        }
        if let Some(limit) = limit
            && start == MAGIC
        {
            return Source::of_recording(path, file, limit);
        }
        let (data, opened, len_bytes, cut) = match limit.zip(format_of(&start[..got.min(4)])) {
            None => (Data::File(file), Some(OpenedFile::from(&metadata)), metadata.len(), None),
            Some((limit, format)) => {
                let unpacked = unpack(file, metadata.len(), format, limit);
                let (bytes, cut) =
                    unpacked.map_err(|source| Error::Decompress { path: path.to_owned(), format, source })?;
                let len = bytes.len_bytes();
                (Data::Memory(bytes), None, len, cut.map(|cut| (format, cut)))
            }
        };
        let data = Arc::new(data);
        Ok(Source {
            path: path.to_owned(),
            data,
            base: 0,
            len_bytes,
            is_saved: false,
            is_settled: false,
            opened,
            cut,
            recording: None,
            period: None,
        })
    }

    fn of_recording(path: &Path, file: File, limit: UnpackLimit) -> Result<Source, Error> {
        let read = Recording::open(file, limit);
        let (image, recording) =
            read.map_err(|source| Error::Decompress { path: path.to_owned(), format: "recorded", source })?;
        Ok(Source {
            path: path.to_owned(),
            base: 0,
            len_bytes: image.len_bytes(),
            data: Arc::new(Data::Memory(image)),
            is_saved: false,
            is_settled: false,
            opened: None,
            cut: None,
            recording: Some(Arc::new(recording)),
            period: None,
        })
    }

    /// Reads the beginning of a file, unpacked. Returns how many bytes that are. No more is unpacked than that.
    ///
    /// # Errors
    ///
    /// Those of opening, reading and unpacking.
    pub fn read_start(path: &Path, start: &mut [u8]) -> io::Result<usize> {
        let Ok(Source { data, .. }) = Source::open_packed(path) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let Data::File(file) = &*data else { return Ok(0) };
        let mut first = [0; 4];
        let got = read_fully_at(file, &mut first, 0)?;
        let Some(format) = format_of(&first[..got]) else { return read_fully_at(file, start, 0) };
        let mut stream = decoder(file.try_clone()?, format)?;
        let mut got = 0;
        while got < start.len() {
            match stream.read(&mut start[got..])? {
                0 => break,
                count => got += count,
            }
        }
        Ok(got)
    }

    /// Whether it begins as a ring, a recording or a compressed file does. An unfinished ring begins with zeros.
    pub(super) fn may_be_ring(&self) -> bool {
        let mut start = [0; MAGIC.len()];
        let got = self.read_at(&mut start, 0).unwrap_or(0);
        got == start.len()
            && (start == librip_format::MAGIC
                || start == MAGIC
                || start == [0; MAGIC.len()]
                || format_of(&start[..4]).is_some())
    }

    /// A part of it: an image in a file that `read-rip save` has written, or one in a core file.
    pub fn part(&self, begin: u64, len_bytes: u64) -> Source {
        Source {
            path: self.path.clone(),
            data: Arc::clone(&self.data),
            base: self.base + begin,
            len_bytes,
            is_saved: true,
            is_settled: false,
            opened: None,
            cut: None,
            recording: self.recording.clone(),
            period: self.period,
        }
    }

    /// The words of a recording, or of the part of it that is read; `None` if it is none.
    ///
    /// # Errors
    ///
    /// [`Error::Decompress`].
    pub(super) fn recorded_words(&self) -> Result<Option<RecordedWords>, Error> {
        let words = self.recording.as_ref().map(|recording| recording.words(self.period)).transpose();
        words.map_err(|source| Error::Decompress { path: self.path.clone(), format: "recorded", source })
    }

    /// What a recording has of the kernel's scheduler, or the part of it that is read; nothing if it is none.
    ///
    /// # Errors
    ///
    /// [`Error::Decompress`].
    pub fn schedule(&self) -> Result<Schedule, Error> {
        let Some(recording) = &self.recording else { return Ok(Schedule::default()) };
        Schedule::of(recording, self.period).map_err(|source| Error::Decompress {
            path: self.path.clone(),
            format: "recorded",
            source,
        })
    }

    /// If it is a recording: between which moments its last words were recorded, ns since boot.
    pub fn last_recorded(&self) -> Option<Period> {
        Some(self.recording.as_ref()?.last())
    }

    /// The same, but of a recording no more is read than the words of a period, and some beside it.
    #[must_use]
    pub fn within(&self, period: Period) -> Source {
        Source { period: Some(period), ..self.clone() }
    }

    /// Whether it is what `read-rip record` has written.
    pub fn is_recording(&self) -> bool {
        self.recording.is_some()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The length when it was opened, bytes. The ring of a living process may be truncated later.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// The file that was opened; `None` for a compressed copy.
    pub fn opened(&self) -> Option<OpenedFile> {
        self.opened
    }

    /// Gives a copy the owner of the file, if this user may: it is as private as that.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn keep_owner(&self, copy: &File) -> io::Result<()> {
        match self.opened {
            Some(OpenedFile { owner, .. }) if owner != geteuid().as_raw() && geteuid().is_root() => {
                fchown(copy, Some(owner), None)
            }
            _ => Ok(()),
        }
    }

    /// The defect of a compressed copy of which not all could be unpacked.
    pub fn cut(&self) -> Option<Defect> {
        self.cut.map(|(format, cut)| Defect::DecompressedPart { format, cut, bytes: self.len_bytes })
    }

    /// Whether a process may write to it while it is read.
    pub fn may_change(&self) -> bool {
        !self.is_saved && !self.is_settled && matches!(*self.data, Data::File(_))
    }

    /// The same ring, of which the caller knows that nothing writes to it any more. It is copied once, not twice.
    #[must_use]
    pub fn settled(&self) -> Source {
        Source { is_settled: true, ..self.clone() }
    }

    /// Copies bytes from `offset`. Returns the number of bytes copied, which is smaller at the end of the ring.
    ///
    /// # Errors
    ///
    /// Those of `pread(2)`.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut buffer = buffer;
        if self.is_saved {
            let left = self.len_bytes.saturating_sub(offset).min(buffer.len() as u64);
            buffer = &mut buffer[..left as usize];
        }
        let offset = self.base.saturating_add(offset);
        match &*self.data {
            Data::File(file) => read_fully_at(file, buffer, offset),
            Data::Memory(bytes) => Ok(bytes.read_at(buffer, offset)),
        }
    }

    /// The next part at or after `offset` that is not a hole, as start and end.
    ///
    /// Rings are sparse, and a hostile file can have any length. Only the parts that occupy memory need to be read.
    pub(crate) fn next_data(&self, offset: u64) -> Option<(u64, u64)> {
        if offset >= self.len_bytes {
            return None;
        }
        let (from, end) = (self.base + offset, self.base + self.len_bytes);
        let found = match &*self.data {
            Data::Memory(bytes) => bytes.next_data(from),
            Data::File(file) => {
                let seek = |from: u64, whence| lseek(file.as_fd(), from as i64, whence);
                match seek(from, Whence::SeekData) {
                    Ok(begin) => {
                        let end = seek(begin as u64, Whence::SeekHole).unwrap_or(i64::MAX);
                        Some((begin as u64, end as u64))
                    }
                    // There is no data after this offset.
                    Err(nix::Error::ENXIO) => None,
                    // The file system does not know its holes.
                    Err(_) => Some((from, end)),
                }
            }
        };
        let (data_begin, data_end) = found.filter(|&(begin, _)| begin < end)?;
        Some((data_begin - self.base, data_end.min(end) - self.base))
    }
}

fn read_fully_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<usize> {
    let mut total = 0;
    while !buffer.is_empty() {
        match file.read_at(buffer, offset) {
            Ok(0) => break,
            Ok(count) => {
                buffer = &mut buffer[count..];
                offset += count as u64;
                total += count;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(total)
}

/// The compression that the first bytes of a file announce (RFC 1952, RFC 1950, RFC 8878, and the descriptions of the
/// .xz format and of LZ4 frames).
fn format_of(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x1f, 0x8b, 8, ..] => Some("gzip"),
        [0x28, 0xb5, 0x2f, 0xfd] => Some("zstd"),
        [0xfd, b'7', b'z', b'X'] => Some("xz"),
        [0x04, 0x22, 0x4d, 0x18] => Some("lz4"),
        [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => Some("zlib"),
        _ => None,
    }
}

/// Unpacks as much as can be unpacked. If that is not all, the reason is returned with it.
///
/// # Errors
///
/// If not a single byte could be unpacked.
fn unpack(
    file: File,
    packed_bytes: u64,
    format: &'static str,
    limit: UnpackLimit,
) -> io::Result<(Unpacked, Option<Cut>)> {
    let mut bytes = Unpacked::default();
    let limits = limit.of(packed_bytes);
    let result = decoder(file, format).and_then(|decoder| bytes.append(decoder, limits));
    match result {
        Ok(Err(TooLong(limit_bytes))) => Ok((bytes, Some(Cut::TooLong { limit_bytes }))),
        Ok(Ok(())) if bytes.len_bytes() == 0 => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(Ok(())) => Ok((bytes, None)),
        Err(error) if bytes.len_bytes() == 0 => Err(error),
        Err(_) => Ok((bytes, Some(Cut::Damaged))),
    }
}

/// What unpacks a file, from its position on.
fn decoder(file: File, format: &'static str) -> io::Result<Box<dyn Read>> {
    let file = io::BufReader::new(file);
    Ok(match format {
        "gzip" => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
        "zlib" => Box::new(flate2::bufread::ZlibDecoder::new(file)),
        "xz" => Box::new(XzReader::new_mem_limit(file, true, XZ_MEMORY_MAX_KIB)),
        "lz4" => Box::new(lz4_flex::frame::FrameDecoder::new(file)),
        _ => Box::new(ruzstd::decoding::StreamingDecoder::new(file).map_err(io::Error::other)?),
    })
}
