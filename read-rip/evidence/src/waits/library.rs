//! Which C library a target uses: the layouts of its objects depend on it.

use crate::target::Mapping;

/// A C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Library {
    /// The GNU C library.
    Glibc,
    /// musl.
    Musl,
    /// A static program, or mappings that cannot be read, or a program with both.
    Unknown,
}

impl Library {
    /// Tells it by the names of the mapped files.
    pub(super) fn of(mappings: &[Mapping]) -> Library {
        let names = mappings.iter().filter_map(|mapping| mapping.path.as_ref()?.file_name()?.to_str());
        let (mut has_glibc, mut has_musl) = (false, false);
        for name in names {
            has_musl |= name.starts_with("ld-musl-") || name.starts_with("libc.musl-");
            // Before 2.34 the files have the version in their names.
            has_glibc |=
                name == "libc.so.6" || name.starts_with("libc-2.") || name.starts_with("libpthread-2.");
        }
        match (has_glibc, has_musl) {
            (true, false) => Library::Glibc,
            (false, true) => Library::Musl,
            _ => Library::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(paths: &[&str]) -> Library {
        let mappings: Vec<Mapping> = paths.iter().map(|path| crate::waits::testing::mapping(path)).collect();
        Library::of(&mappings)
    }

    #[test]
    fn file_names_tell_the_library() {
        assert_eq!(of(&["/bin/x", "/lib/x86_64-linux-gnu/libc.so.6"]), Library::Glibc);
        assert_eq!(of(&["/lib64/libc-2.17.so", "/lib64/libpthread-2.17.so"]), Library::Glibc);
        assert_eq!(of(&["/lib/ld-musl-aarch64.so.1"]), Library::Musl);
        assert_eq!(of(&["/bin/static"]), Library::Unknown);
        assert_eq!(of(&["/lib/ld-musl-x86_64.so.1", "/lib/libc.so.6"]), Library::Unknown);
    }
}
