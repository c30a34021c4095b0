//! The line of an instruction, from the tables of code objects.
//!
//! The formats are described in `Objects/lnotab_notes.txt` (3.8 to 3.10) and `Objects/locations.md` (from 3.11 on) of
//! CPython. A table is what the process has in memory: any bytes give a line or none.

/// The line of an instruction. `at` is its offset: bytes before 3.11, and units of two bytes from then on.
pub(super) fn line(minor: u8, table: &[u8], first_line: u32, at: u64) -> Option<u32> {
    match minor {
        ..=9 => of_pairs(table, first_line, at),
        10 => of_ranges(table, first_line, at),
        _ => of_locations(table, first_line, at),
    }
}

/// 3.8 and 3.9: pairs of increments of the address and of the line.
fn of_pairs(table: &[u8], first_line: u32, at: u64) -> Option<u32> {
    let (mut line, mut address) = (first_line, 0_u64);
    let (pairs, _) = table.as_chunks::<2>();
    for &[addresses, lines] in pairs {
        address += u64::from(addresses);
        if address > at {
            break;
        }
        line = line.checked_add_signed(i32::from(lines.cast_signed()))?;
    }
    Some(line)
}

/// 3.10: the length of each range, and how its line differs from the last one.
fn of_ranges(table: &[u8], first_line: u32, at: u64) -> Option<u32> {
    const NO_LINE: i8 = -128;
    let (mut line, mut end) = (first_line, 0_u64);
    let (pairs, _) = table.as_chunks::<2>();
    for &[len, difference] in pairs {
        end += u64::from(len);
        let difference = difference.cast_signed();
        if difference != NO_LINE {
            line = line.checked_add_signed(i32::from(difference))?;
        }
        if at < end {
            return (difference != NO_LINE).then_some(line);
        }
    }
    None
}

/// From 3.11 on: entries of several forms, the first byte of which has its highest bit set.
fn of_locations(table: &[u8], first_line: u32, at: u64) -> Option<u32> {
    let (mut line, mut end) = (first_line, 0_u64);
    let mut rest = table;
    while let Some((&first, mut entry)) = rest.split_first() {
        let len = entry.iter().position(|byte| byte & 0x80 != 0).unwrap_or(entry.len());
        (entry, rest) = entry.split_at(len);
        let form = first >> 3 & 0xf;
        end += u64::from(first & 7) + 1;
        // The forms 0 to 9 stay on the line, and 15 has none.
        let difference = match form {
            10..=12 => i32::from(form) - 10,
            13 | 14 => signed(entry)?,
            _ => 0,
        };
        line = line.checked_add_signed(difference)?;
        if at < end {
            return (form != 15).then_some(line);
        }
    }
    None
}

/// A number of several bytes, with 6 bits in each and its sign in the lowest one.
fn signed(bytes: &[u8]) -> Option<i32> {
    let mut value = 0_u32;
    for (index, byte) in bytes.iter().enumerate().take(6) {
        value |= u32::from(byte & 0x3f).checked_shl(6 * index as u32)?;
        if byte & 0x40 == 0 {
            let half = i32::try_from(value >> 1).ok()?;
            return Some(if value & 1 == 1 { -half } else { half });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_gives_the_lines_that_python_gives() {
        // `code.co_lnotab` of `def f():\n  a()\n\n  b()` from Python 3.8, and its lines by `dis`.
        let pairs = [0, 1, 6, 2];
        assert_eq!([0, 5, 6, 11].map(|at| line(8, &pairs, 1, at)), [Some(2), Some(2), Some(4), Some(4)]);
        // `code.co_linetable` of the same from 3.10.
        let ranges = [6, 1, 10, 2];
        assert_eq!([0, 5, 6, 14].map(|at| line(10, &ranges, 1, at)), [Some(2), Some(2), Some(4), Some(4)]);
        assert_eq!(line(10, &ranges, 1, 16), None);
        // The same from 3.13.
        let locations = [128, 0, 220, 2, 3, 132, 35, 228, 2, 3, 133, 35];
        let of = [0, 1, 5, 6, 10, 11, 21].map(|at| line(13, &locations, 1, at));
        assert_eq!(of, [1, 2, 2, 2, 2, 4, 4].map(Some));
        assert_eq!(line(13, &locations, 1, 100), None);
    }

    #[test]
    fn any_bytes_give_a_line_or_none() {
        for minor in [8, 10, 11] {
            for byte in 0..=255 {
                let table = [byte; 40];
                let _ = line(minor, &table, 0, 3);
                let _ = line(minor, &table, u32::MAX, 1 << 40);
            }
        }
    }
}
