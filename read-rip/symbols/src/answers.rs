//! What a resolver has found, to be kept with a saved ring: on another machine the files may be missing.
//!
//! It looks nothing up.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{CallerLine, Frame};

/// An address, relative to a module that is given by its index.
type At = (usize, u64);

/// The answers to questions about addresses and modules. It also keeps which questions have no answer.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Answers {
    pub(super) frames: Kept<At, Vec<Frame>>,
    pub(super) namesakes: Kept<At, Vec<String>>,
    pub(super) statics: Kept<At, Option<(String, u64)>>,
    pub(super) caller_lines: Kept<At, Option<CallerLine>>,
    #[serde(default)]
    pub(super) call_targets: Kept<At, Option<u64>>,
    #[serde(default)]
    pub(super) function_begins: Kept<At, Option<u64>>,
    #[serde(default)]
    pub(super) called_imports: Kept<At, Option<String>>,
    pub(super) debug_info: Kept<usize, bool>,
    #[serde(default)]
    pub(super) packages: Kept<usize, Packages>,
}

/// The answers to one kind of question. A file has them in order, so that equal rings make equal files.
#[derive(Clone, Debug)]
pub(super) struct Kept<K, T>(BTreeMap<K, T>);

impl<K: Ord, T: Clone> Kept<K, T> {
    /// The kept answer, or the one that `find` gives, which is kept if `keeps`.
    pub(super) fn get(&mut self, at: K, keeps: bool, find: impl FnOnce() -> T) -> T {
        if let Some(answer) = self.0.get(&at) {
            return answer.clone();
        }
        let answer = find();
        if keeps {
            self.0.insert(at, answer.clone());
        }
        answer
    }
}

impl<K, T> Default for Kept<K, T> {
    fn default() -> Kept<K, T> {
        Kept(BTreeMap::new())
    }
}

impl<K: Serialize, T: Serialize> Serialize for Kept<K, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

impl<'de, K: Ord + Deserialize<'de>, T: Deserialize<'de>> Deserialize<'de> for Kept<K, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Kept<K, T>, D::Error> {
        let answers = Vec::<(K, T)>::deserialize(deserializer)?;
        Ok(Kept(answers.into_iter().collect()))
    }
}

/// The names of packages, which many ask for.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub(super) struct Packages(pub(super) Arc<[String]>);

impl From<Vec<String>> for Packages {
    fn from(names: Vec<String>) -> Packages {
        Packages(names.into())
    }
}

impl From<Packages> for Vec<String> {
    fn from(packages: Packages) -> Vec<String> {
        packages.0.to_vec()
    }
}

/// A text that several frames share, as a file has it. For `serde(with)`.
pub(super) mod text {
    use super::{Arc, Deserialize, Deserializer, Serialize, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        text: &Option<Arc<str>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        text.as_deref().serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Arc<str>>, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.map(Arc::from))
    }
}
