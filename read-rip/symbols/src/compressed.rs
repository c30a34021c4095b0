//! Uncompresses debug sections: zlib and zstd (`SHF_COMPRESSED`), and the older `.zdebug_*`.
//!
//! It reads no files. It checks the size that a section claims before it reserves memory. `object` can uncompress
//! too, but reserves whatever size the file claims.

use std::io::Read;

use flate2::read::ZlibDecoder;
use object::pod::from_bytes;
use object::{Endianness, elf};
use ruzstd::decoding::StreamingDecoder;

use super::problem::Problem;

/// zlib cannot compress further than 1032 to 1.
const ZLIB_RATIO_MAX: u64 = 1100;
/// zstd can encode "128 KiB of this byte" in four bytes.
const ZSTD_RATIO_MAX: u64 = 33_000;

/// Uncompresses a section that has `SHF_COMPRESSED`. More than `limit_bytes` are refused.
pub(super) fn uncompress(bytes: &[u8], endian: Endianness, limit_bytes: u64) -> Result<Vec<u8>, Problem> {
    let (header, data) = from_bytes::<elf::CompressionHeader64<Endianness>>(bytes)
        .map_err(|()| damaged("compressed section without header"))?;
    let len_bytes = header.ch_size.get(endian);
    match header.ch_type.get(endian) {
        elf::ELFCOMPRESS_ZLIB => zlib(data, len_bytes, limit_bytes),
        elf::ELFCOMPRESS_ZSTD => zstd(data, len_bytes, limit_bytes),
        _ => Err(damaged("section with an unknown compression")),
    }
}

/// Uncompresses a `.zdebug_*` section: "ZLIB", the length as eight big-endian bytes, then a zlib stream.
pub(super) fn uncompress_zdebug(bytes: &[u8], limit_bytes: u64) -> Result<Vec<u8>, Problem> {
    let header = || {
        let (len_bytes, data) = bytes.strip_prefix(b"ZLIB")?.split_first_chunk()?;
        Some((u64::from_be_bytes(*len_bytes), data))
    };
    let (len_bytes, data) = header().ok_or_else(|| damaged("compressed section without header"))?;
    zlib(data, len_bytes, limit_bytes)
}

fn zlib(data: &[u8], len_bytes: u64, limit_bytes: u64) -> Result<Vec<u8>, Problem> {
    let mut output = reserve(data, len_bytes, ZLIB_RATIO_MAX, limit_bytes)?;
    fill(&mut output, ZlibDecoder::new(data), len_bytes)?;
    complete(output, len_bytes)
}

fn zstd(mut data: &[u8], len_bytes: u64, limit_bytes: u64) -> Result<Vec<u8>, Problem> {
    let mut output = reserve(data, len_bytes, ZSTD_RATIO_MAX, limit_bytes)?;
    // Linkers that compress in parallel write several frames.
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

/// Reserves memory for the claimed length, if it is possible for this data.
fn reserve(data: &[u8], len_bytes: u64, ratio_max: u64, limit_bytes: u64) -> Result<Vec<u8>, Problem> {
    let limit_bytes = limit_bytes.min((data.len() as u64).saturating_mul(ratio_max));
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
        Err(damaged("compressed section is shorter than it claims"))
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
    fn a_zdebug_section_is_uncompressed() {
        assert_eq!(uncompress_zdebug(&zdebug(5, b"hello"), 1 << 30).unwrap(), b"hello");
    }

    #[test]
    fn impossible_sizes_are_refused_before_memory_is_reserved_and_wrong_sizes_after() {
        let claimed = |len_bytes| uncompress_zdebug(&zdebug(len_bytes, b"hello"), 1 << 30);
        assert!(matches!(claimed(u64::MAX), Err(Problem::TooLarge { .. })));
        assert!(matches!(claimed(1 << 20), Err(Problem::TooLarge { .. })));
        assert!(matches!(claimed(6), Err(Problem::Damaged(_))));
    }
}
