//! Names of functions and files, each kept once, and not too much of all of them.
//!
//! Debug information can give each of a million addresses a name of 64 KiB. It does not look names up.

use std::sync::Arc;

use foldhash::HashSet;

/// When all names together are longer than this, only the beginning of a long name is kept, bytes.
const WHOLE_NAMES_BYTES: usize = 16 << 20;
/// What is kept of it, bytes.
const BEGINNING_BYTES: usize = 200;

/// The names that were kept.
#[derive(Debug, Default)]
pub(super) struct SharedNames {
    known: HashSet<Arc<str>>,
    len_bytes: usize,
}

impl SharedNames {
    /// The same name, shared with all that asked for it.
    pub(super) fn share(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        if self.len_bytes + name.len() > WHOLE_NAMES_BYTES && name.len() > BEGINNING_BYTES {
            let end = name.floor_char_boundary(BEGINNING_BYTES - "...".len());
            return self.share(&format!("{}...", &name[..end]));
        }
        self.len_bytes += name.len();
        let name: Arc<str> = name.into();
        self.known.insert(name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once() {
        let mut names = SharedNames::default();
        let first = names.share("main");
        assert!(Arc::ptr_eq(&first, &names.share("main")));
    }

    #[test]
    fn many_long_names_lose_their_ends() {
        let mut names = SharedNames::default();
        let long = "long ".repeat(10_000);
        let kept: Vec<Arc<str>> = (0..1000).map(|at| names.share(&format!("{at}::{long}"))).collect();
        assert_eq!(*kept[0], format!("0::{long}"));
        assert!(kept[999].starts_with("999::long ") && kept[999].ends_with("..."), "{}", kept[999]);
        assert!(names.len_bytes < WHOLE_NAMES_BYTES + 1000 * BEGINNING_BYTES);
    }
}
