//! Hash tables with a fast hash function.
//!
//! The tables of a ring of 40,000 threads are asked millions of times, by small numbers. The hash function of std is
//! made for text from the network, and takes four times as long. That of `foldhash` has a random seed too, so a damaged
//! or hostile ring cannot choose addresses that collide.

/// std's map, with another hash function.
pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
/// std's set, with another hash function.
pub(crate) type HashSet<K> = std::collections::HashSet<K, foldhash::fast::RandomState>;
