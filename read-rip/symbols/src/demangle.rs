//! Names of symbols as they are in the source: Rust (legacy and v0, without the hash) and C++.
//!
//! It ignores the language that the debug information names: the prefix of a mangled name identifies its scheme.

use std::fmt::{self, Write};

/// Longer names are not demangled.
const MANGLED_MAX_BYTES: usize = 32 << 10;
/// A mangled name can repeat its parts, and so grow exponentially. A name that becomes longer than this is left
/// mangled.
const DEMANGLED_MAX_BYTES: usize = 64 << 10;

/// The demangled name, or the name itself if it cannot be demangled.
pub(super) fn demangle(name: &str) -> String {
    attempt(name).unwrap_or_else(|| name.to_owned())
}

fn attempt(name: &str) -> Option<String> {
    if name.len() > MANGLED_MAX_BYTES {
        return None;
    }
    let mut output = Limited(String::new());
    // A static in a namespace of C++ would be a legacy name of Rust, but for the hash.
    if name.starts_with("_Z") && !has_hash(name) {
        let symbol = cpp_demangle::Symbol::new(name).ok()?;
        symbol.structured_demangle(&mut output, &cpp_demangle::DemangleOptions::default()).ok()?;
    } else {
        let symbol = rustc_demangle::try_demangle(name).ok()?;
        // The alternate form leaves out the hash.
        write!(output, "{symbol:#}").ok()?;
    }
    Some(output.0)
}

/// Whether a mangled name has the last part of legacy names of Rust: an `h` and 16 digits.
fn has_hash(name: &str) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_hexdigit();
    let mut parts = name.as_bytes().windows(b"17h0123456789abcdefE".len());
    parts.any(|part| part.starts_with(b"17h") && part[3..19].iter().all(is_digit) && part.ends_with(b"E"))
}

struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.0.len() + part.len() > DEMANGLED_MAX_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_names_lose_their_hash() {
        assert_eq!(
            demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt"
        );
        assert_eq!(demangle("_RNvCs15kBYyAo9fc_7mycrate7example"), "mycrate::example");
    }

    #[test]
    fn cpp_names_get_their_parameters() {
        assert_eq!(demangle("_ZN5cache6lookupEiPKc"), "cache::lookup(int, char const*)");
    }

    #[test]
    fn a_static_of_cpp_is_not_taken_for_one_of_rust() {
        assert_eq!(demangle("_ZN12_GLOBAL__N_17journalE"), "(anonymous namespace)::journal");
        assert_eq!(demangle("_ZN5cacheL17hexadecimal_digitE"), "cache::hexadecimal_digit");
    }

    #[test]
    fn names_that_are_not_mangled_stay_as_they_are() {
        for name in ["main", "_Z", "_Znonsense", "_R", "", "_ZN4core3fmt"] {
            assert_eq!(demangle(name), name);
        }
    }

    #[test]
    fn a_name_that_would_grow_exponentially_stays_mangled() {
        // Each parameter is a pair of the one before it: 2^n in n steps.
        let mangled = |steps: usize| {
            let mut name = String::from("_Z1fSt4pairIiiE");
            for step in "0123456789ABCDEFGHIJKLMN".chars().take(steps) {
                write!(name, "S_IS{step}_S{step}_E").unwrap();
            }
            name
        };
        assert!(demangle(&mangled(4)).starts_with("f(std::pair<int, int>, std::pair<std::pair<"));
        assert_eq!(demangle(&mangled(24)), mangled(24));
    }
}
