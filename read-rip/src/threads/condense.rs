//! The condensed view: where threads pile up.
//!
//! # Question
//!
//! Where are all the threads, in as few lines as possible?
//!
//! # Method
//!
//! Each thread counts at its last mark. Marks are grouped by the function they are in, and within it by
//! address: the two marks around a lock are on one line of the source, and mean *waits* and *holds*.
//!
//! # Blind spots
//!
//! A thread that has left the marked location for code without marks still counts there.
//!
//! # Example output
//!
//! ```text
//! locking_function : 19126 threads, 2 spots: ssl.c:210 (19116); ssl.c:220 (10)
//! ```

use std::collections::HashMap;

use crate::locations::{Location, LocationId, Locations};

/// A function in which threads are.
#[derive(Debug)]
pub struct Group {
    /// Its name.
    pub function: String,
    /// How many threads.
    pub threads: usize,
    /// The marks they are at, by address.
    pub spots: Vec<Spot>,
}

/// A mark at which threads are.
#[derive(Debug)]
pub struct Spot {
    /// The mark.
    pub location: LocationId,
    /// The threads' ids, ascending.
    pub tids: Vec<u32>,
}

/// Groups threads, given as thread id and last location; the largest group first.
pub fn condense(last: &[(u32, LocationId)], locations: &Locations<'_>) -> Vec<Group> {
    let mut by_place: HashMap<LocationId, Vec<u32>> = HashMap::new();
    for &(tid, location) in last {
        by_place.entry(location).or_default().push(tid);
    }
    // Functions of one name in different files are different functions.
    let mut by_function: HashMap<(&str, Option<&str>), Vec<Spot>> = HashMap::new();
    for (location, mut tids) in by_place {
        tids.sort_unstable();
        let Location { function, source, .. } = locations.get(location);
        let file = source.as_ref().map(|(file, _)| file.as_str());
        by_function.entry((function, file)).or_default().push(Spot { location, tids });
    }
    let mut groups: Vec<Group> = by_function
        .into_iter()
        .map(|((function, _), mut spots)| {
            spots.sort_by_key(|spot| {
                let location = locations.get(spot.location);
                (location.module, location.address)
            });
            Group {
                function: function.to_owned(),
                threads: spots.iter().map(|spot| spot.tids.len()).sum(),
                spots,
            }
        })
        .collect();
    let address = |group: &Group| group.spots.first().map(|first| locations.get(first.location).address);
    groups.sort_by(|a, b| {
        let by_name = || a.function.cmp(&b.function).then_with(|| address(a).cmp(&address(b)));
        b.threads.cmp(&a.threads).then_with(by_name)
    });
    groups
}
