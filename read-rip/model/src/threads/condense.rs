//! The condensed view: where threads pile up.
//!
//! # Question
//!
//! Where are all threads, in as few lines as possible?
//!
//! # Method
//!
//! Each thread counts at its last mark. Marks are grouped by function, and within a function by address. So two
//! marks on one line stay apart: those around a lock mean *waits* and *holds*.
//!
//! # Blind spots
//!
//! A thread that has since reached code without marks still counts at its last mark.
//!
//! # Example output
//!
//! ```text
//! locking_function : 19126 threads, 2 locations: ssl.c:210 (19116); ssl.c:220 (10)
//! ```

use std::borrow::Cow;

use foldhash::HashMap;

use crate::locations::{LocationId, Locations, is_shared_name};

/// A function, and the threads whose last mark is in it.
#[derive(Debug)]
pub struct Group {
    pub function: String,
    pub threads: usize,
    /// The marks, by address.
    pub locations: Vec<LocationThreads>,
}

/// A mark, and the threads whose last mark it is.
#[derive(Debug)]
pub struct LocationThreads {
    pub location: LocationId,
    /// The threads' ids, ascending.
    pub tids: Vec<u32>,
}

/// Groups threads, given by thread id and last location. The largest group comes first.
pub fn condense(last: &[(u32, LocationId)], locations: &Locations<'_>) -> Vec<Group> {
    let mut by_location: HashMap<LocationId, Vec<u32>> = HashMap::default();
    for &(tid, location) in last {
        by_location.entry(location).or_default().push(tid);
    }
    // Functions with one name in different files are different functions. So are closures whose code begins elsewhere.
    type Key<'l> = (Cow<'l, str>, Option<&'l str>, Option<u64>);
    let mut by_function: HashMap<Key<'_>, Vec<LocationThreads>> = HashMap::default();
    for (location, mut tids) in by_location {
        tids.sort_unstable();
        let location_of = locations.get(location);
        let file = location_of.users_source().map(|(file, _)| file);
        let function = location_of.users_function();
        let begin = location_of.code_begin.filter(|_| is_shared_name(&function));
        by_function.entry((function, file, begin)).or_default().push(LocationThreads { location, tids });
    }
    let mut groups: Vec<Group> = by_function
        .into_iter()
        .map(|((function, ..), mut marks)| {
            marks.sort_by_key(|at| {
                let location = locations.get(at.location);
                (location.module, location.address)
            });
            Group {
                function: function.into_owned(),
                threads: marks.iter().map(|at| at.tids.len()).sum(),
                locations: marks,
            }
        })
        .collect();
    let address = |group: &Group| group.locations.first().map(|first| locations.get(first.location).address);
    groups.sort_by(|a, b| {
        let by_name = || a.function.cmp(&b.function).then_with(|| address(a).cmp(&address(b)));
        b.threads.cmp(&a.threads).then_with(by_name)
    });
    groups
}
