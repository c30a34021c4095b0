//! Uncompresses debug sections: zlib and zstd (`SHF_COMPRESSED`), and the older `.zdebug_*`.
//!
//! It reads no files. The size that a section claims is checked before memory is taken, and never believed.

use std::io::Read;

use flate2::read::ZlibDecoder;
use object::elf;
use ruzstd::decoding::StreamingDecoder;

use super::Problem;
use super::elf::{Fields, SECTION_MAX_BYTES};

/// zlib cannot compress further than 1032 to 1.
const ZLIB_RATIO_MAX: u64 = 1100;
/// zstd can say "128 KiB of this byte" in four bytes.
const ZSTD_RATIO_MAX: u64 = 33_000;

/// Length of `Elf64_Chdr`.
const HEADER_LEN_BYTES: usize = 24;

/// The content of a section that has `SHF_COMPRESSED`.
pub(super) fn uncompress(fields: Fields<'_>) -> Result<Vec<u8>, Problem> {
    let header = || Some((fields.u32(0)?, fields.u64(8)?, fields.bytes.get(HEADER_LEN_BYTES..)?));
    let (kind, len_bytes, data) = header().ok_or_else(|| damaged("compressed section without header"))?;
    if kind == elf::ELFCOMPRESS_ZLIB.0 {
        zlib(data, len_bytes)
    } else if kind == elf::ELFCOMPRESS_ZSTD.0 {
        zstd(data, len_bytes)
    } else {
        Err(damaged("section with an unknown compression"))
    }
}

/// The content of a `.zdebug_*` section: "ZLIB", the length as eight bytes, big end first, then zlib's stream.
pub(super) fn uncompress_zdebug(bytes: &[u8]) -> Result<Vec<u8>, Problem> {
    let header = || {
        let (len_bytes, data) = bytes.strip_prefix(b"ZLIB")?.split_first_chunk()?;
        Some((u64::from_be_bytes(*len_bytes), data))
    };
    let (len_bytes, data) = header().ok_or_else(|| damaged("compressed section without header"))?;
    zlib(data, len_bytes)
}

fn zlib(data: &[u8], len_bytes: u64) -> Result<Vec<u8>, Problem> {
    let mut output = reserve(data, len_bytes, ZLIB_RATIO_MAX)?;
    fill(&mut output, ZlibDecoder::new(data), len_bytes)?;
    complete(output, len_bytes)
}

fn zstd(mut data: &[u8], len_bytes: u64) -> Result<Vec<u8>, Problem> {
    let mut output = reserve(data, len_bytes, ZSTD_RATIO_MAX)?;
    // Linkers that compress in parallel write one frame after the other.
    while (output.len() as u64) < len_bytes && !data.is_empty() {
        let before = (data.len(), output.len());
        let left = len_bytes - output.len() as u64;
        let decoder = StreamingDecoder::new(&mut data).map_err(|error| damaged(&error.to_string()))?;
        fill(&mut output, decoder, left)?;
        if (data.len(), output.len()) == before {
            break;
        }
    }
    complete(output, len_bytes)
}

fn reserve(data: &[u8], len_bytes: u64, ratio_max: u64) -> Result<Vec<u8>, Problem> {
    let limit_bytes = SECTION_MAX_BYTES.min((data.len() as u64).saturating_mul(ratio_max));
    let too_large = Problem::TooLarge { len_bytes, limit_bytes };
    if len_bytes > limit_bytes {
        return Err(too_large);
    }
    let mut output = Vec::new();
    let Ok(()) = output.try_reserve_exact(len_bytes as usize) else { return Err(too_large) };
    Ok(output)
}

fn fill(output: &mut Vec<u8>, source: impl Read, len_bytes: u64) -> Result<(), Problem> {
    source.take(len_bytes).read_to_end(output).map(drop).map_err(|error| damaged(&error.to_string()))
}

fn complete(output: Vec<u8>, len_bytes: u64) -> Result<Vec<u8>, Problem> {
    if output.len() as u64 == len_bytes {
        Ok(output)
    } else {
        Err(damaged("compressed section is shorter than it says"))
    }
}

fn damaged(reason: &str) -> Problem {
    Problem::Damaged(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn zdebug(len_bytes: u64, content: &[u8]) -> Vec<u8> {
        let mut section = b"ZLIB".to_vec();
        section.extend(len_bytes.to_be_bytes());
        let mut encoder = flate2::write::ZlibEncoder::new(section, flate2::Compression::best());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn an_old_compressed_section_is_read() {
        assert_eq!(uncompress_zdebug(&zdebug(5, b"hello")).unwrap(), b"hello");
    }

    #[test]
    fn a_claimed_size_is_refused_before_memory_is_taken_and_a_wrong_one_after() {
        let claimed = |len_bytes| uncompress_zdebug(&zdebug(len_bytes, b"hello"));
        assert!(matches!(claimed(u64::MAX), Err(Problem::TooLarge { .. })));
        assert!(matches!(claimed(1 << 20), Err(Problem::TooLarge { .. })));
        assert!(matches!(claimed(6), Err(Problem::Damaged(_))));
    }
}
