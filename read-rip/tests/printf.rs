//! Formats of `printf`: the reader shows a value as the C library does.

#![allow(missing_docs, unsafe_code, reason = "tests, and snprintf")]

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_uint, c_ulong, c_void};

use read_rip_model::log::formatted;
use read_rip_ring::{StaticTexts, Syntax, Value};

/// Compares with what the C library makes of the same format and value. The format has one conversion, which fits.
macro_rules! compare {
    ($format:expr, $value:expr, $argument:expr) => {{
        let format: &str = $format;
        let c_format = CString::new(format).unwrap();
        let mut buffer = [0u8; 2000];
        // SAFETY: the buffer is that long, and the argument is what the conversion shows.
        let len = unsafe {
            libc::snprintf(buffer.as_mut_ptr().cast::<c_char>(), buffer.len(), c_format.as_ptr(), $argument)
        };
        assert!(len >= 0 && (len as usize) < buffer.len(), "{format}");
        let expected = CStr::from_bytes_until_nul(&buffer).unwrap().to_str().unwrap();
        let value: Value = $value.clone();
        assert_eq!(shown(format, std::slice::from_ref(&value)), expected, "{format} of {value:?}");
    }};
}

fn shown(format: &str, values: &[Value]) -> String {
    formatted(format, Syntax::Printf, values, 0, &StaticTexts::default())
}

/// All sets of these flags, with these widths and precisions: what stands between the per cent sign and the length.
fn parts(flags: &str, precisions: &[&str]) -> Vec<String> {
    let sets = (0..1u32 << flags.len()).map(|set| {
        let chosen = flags.chars().enumerate().filter(|(bit, _)| set >> bit & 1 != 0);
        chosen.map(|(_, flag)| flag).collect::<String>()
    });
    let sets: Vec<String> = sets.collect();
    let mut parts = Vec::new();
    for set in &sets {
        for width in ["", "1", "7", "30"] {
            parts.extend(precisions.iter().map(|precision| format!("{set}{width}{precision}")));
        }
    }
    parts
}

const PRECISIONS: [&str; 6] = ["", ".", ".0", ".1", ".5", ".20"];

#[test]
fn integers_look_as_the_c_library_shows_them() {
    let longs =
        [0, 1, -1, 9, 10, 255, 4711, -4711, i64::from(i32::MAX), i64::from(i32::MIN), i64::MAX, i64::MIN];
    for part in parts("-+ 0", &PRECISIONS) {
        for &number in &longs {
            compare!(&format!("<%{part}ld>"), Value::Signed(number, 64), number as c_long);
            compare!(&format!("<%{part}d>"), Value::Signed(i64::from(number as i32), 32), number as c_int);
            compare!(&format!("<%{part}d>"), Value::Unsigned(u64::from(number as u32)), number as c_uint);
            compare!(&format!("<%{part}hhd>"), Value::Signed(i64::from(number as i32), 32), number as c_int);
            compare!(&format!("<%{part}hi>"), Value::Signed(i64::from(number as i32), 32), number as c_int);
            compare!(&format!("<%{part}zd>"), Value::Unsigned(number as u64), number as c_ulong);
        }
    }
    for part in parts("-#0", &PRECISIONS) {
        for letter in ['u', 'o', 'x', 'X'] {
            for &number in &longs {
                compare!(&format!("<%{part}ll{letter}>"), Value::Unsigned(number as u64), number as c_ulong);
                compare!(&format!("<%{part}j{letter}>"), Value::Signed(number, 64), number as c_long);
                let int = Value::Signed(i64::from(number as i32), 32);
                compare!(&format!("<%{part}{letter}>"), int, number as c_int);
                compare!(&format!("<%{part}hh{letter}>"), int, number as c_int);
                compare!(&format!("<%{part}h{letter}>"), int, number as c_int);
            }
        }
    }
}

#[test]
fn floats_look_as_the_c_library_shows_them() {
    let mut numbers = vec![
        0.0,
        0.5,
        1.0,
        1.5,
        2.5,
        3.5,
        9.5,
        0.1,
        0.25,
        99.5,
        9.9995,
        999_999.5,
        123_456.0,
        1_234_567.0,
        0.0001,
        0.000_099_999_95,
        1e15,
        1e100,
        1e300,
        5e-324,
        2.2e-308,
        f64::MAX,
        f64::MIN_POSITIVE,
        f64::EPSILON,
        f64::INFINITY,
        f64::NAN,
        1.0 + f64::EPSILON,
        1.968_75,
        1.031_25,
        1.999_999_9,
    ];
    // Any bits.
    let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..200 {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        numbers.push(f64::from_bits(bits));
        numbers.push((bits as i32 as f64) / 64.0);
    }
    for part in parts("-+ #0", &PRECISIONS) {
        for letter in ['f', 'F', 'e', 'E', 'g', 'G', 'a', 'A'] {
            // All numbers with a few parts, and a few with all.
            let some = if part.len() < 3 { numbers.len() } else { 30 };
            for &number in &numbers[..some] {
                // FOLKLORE: of a number that rounds up to the next power of ten, glibc 2.36 shows "1.e+06" for `%#g`,
                // and not "1.00000e+06".
                if part.contains('#') && letter.eq_ignore_ascii_case(&'g') && may_round_up(number) {
                    continue;
                }
                for number in [number, -number] {
                    compare!(&format!("<%{part}{letter}>"), Value::Float64(number), number);
                }
            }
        }
    }
    // A float is promoted.
    compare!("%.9f", Value::Float32(0.1), f64::from(0.1f32));
    compare!("%a", Value::Float32(0.1), f64::from(0.1f32));
}

/// Whether fewer digits may give a number another power of ten.
fn may_round_up(number: f64) -> bool {
    let exponent = |shown: String| shown.split_once('e').map(|(_, exponent)| exponent.to_owned());
    [0, 4, 5, 19]
        .iter()
        .any(|&precision| exponent(format!("{number:.precision$e}")) != exponent(format!("{number:e}")))
}

#[test]
fn texts_letters_and_pointers_look_as_the_c_library_shows_them() {
    for part in parts("-", &["", ".", ".0", ".2", ".20"]) {
        for text in ["", "a", "text", "a longer text, which is longer than its place"] {
            let c_text = CString::new(text).unwrap();
            let value = Value::Bytes(text.into(), text.len() as u64);
            compare!(&format!("<%{part}s>"), value, c_text.as_ptr());
        }
    }
    for part in parts("-", &[""]) {
        for letter in [b'a', b' ', b'~'] {
            compare!(&format!("<%{part}c>"), Value::Signed(letter.into(), 32), c_int::from(letter));
        }
        for address in [0, 1, 0x7fff_1234_5678, usize::MAX] {
            let pointer = std::ptr::without_provenance::<c_void>(address);
            compare!(&format!("<%{part}p>"), Value::Pointer(address as u64), pointer);
        }
    }
    compare!("100%% and %d%%", Value::Signed(5, 32), 5 as c_int);
}

#[test]
fn widths_and_precisions_may_be_values_and_values_may_have_positions() {
    for (width, precision) in [(0, 0), (5, 2), (-9, 3), (12, -1), (-12, -5)] {
        let values = [Value::Signed(width, 32), Value::Signed(precision, 32), Value::Float64(2.5)];
        for format in ["<%*.*f>", "<%-*.*e>", "<%3$*1$.*2$f>"] {
            let c_format = CString::new(format).unwrap();
            let mut buffer = [0u8; 100];
            // SAFETY: the buffer is that long, and the arguments are those of the format.
            unsafe {
                libc::snprintf(
                    buffer.as_mut_ptr().cast::<c_char>(),
                    buffer.len(),
                    c_format.as_ptr(),
                    width as c_int,
                    precision as c_int,
                    2.5f64,
                )
            };
            let expected = CStr::from_bytes_until_nul(&buffer).unwrap().to_str().unwrap();
            assert_eq!(shown(format, &values), expected, "{format} {width} {precision}");
        }
    }
}
