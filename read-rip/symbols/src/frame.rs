//! A frame: what is known of the code at an address.
//!
//! It looks nothing up.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::answers::text;
use super::whose::Whose;

/// A function at an address, and the position in its source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Frame {
    /// Demangled. Names of Rust functions have no hash.
    #[serde(with = "text", default)]
    pub function: Option<Arc<str>>,
    /// The full path, as the debug information has it.
    #[serde(with = "text", default)]
    pub file: Option<Arc<str>>,
    /// From 1.
    pub line: Option<u32>,
    /// From 1.
    pub column: Option<u32>,
    /// Whether the function was inlined into that of the next frame.
    pub is_inlined: bool,
    /// It follows from the rest: the resolver says it, and no file has it.
    #[serde(skip)]
    pub whose: Whose,
}
