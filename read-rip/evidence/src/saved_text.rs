//! Texts of types that a saved ring has, where the types of texts themselves cannot be saved or read: for serde.
//!
//! It knows no type of this program.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One of this program's own texts. Serde would borrow a reference that it recognises from the file.
pub(crate) type Constant = &'static str;

/// Reads a text that is one of this program's own constants where it was not saved.
pub(crate) fn constant<'de, D: Deserializer<'de>>(from: D) -> Result<Constant, D::Error> {
    String::deserialize(from).map(kept)
}

/// As [`constant`], where there may be none.
pub(crate) fn optional_constant<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Constant>, D::Error> {
    Option::<String>::deserialize(from).map(|text| text.map(kept))
}

/// Saves a path. What is no text in it is replaced.
pub(crate) fn path<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.to_string_lossy())
}

/// As [`path`], where there may be none.
pub(crate) fn optional_path<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_deref().map(Path::to_string_lossy).serialize(to)
}

/// Keeps a text until the program ends: each once, so that no file makes this grow beyond its own length.
fn kept(text: String) -> Constant {
    static TEXTS: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    let texts = texts.get_or_insert_default();
    match texts.get(&*text) {
        Some(known) => known,
        None => {
            let text: &'static str = Box::leak(text.into_boxed_str());
            texts.insert(text);
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_kept_once() {
        let [one, other] = [kept("some text".to_owned()), kept("some text".to_owned())];
        assert!(std::ptr::eq(one, other));
    }
}
