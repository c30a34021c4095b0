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
//! A thread that has left the marked place for code without marks still counts there.
//!
//! # Example output
//!
//! ```text
//! locking_function : 19126 threads, 2 locations: ssl.c:210 (19116); ssl.c:220 (10)
//! ```

use std::collections::HashMap;

use crate::places::{Place, PlaceId, Places};

/// A function in which threads are.
#[derive(Debug)]
pub struct Group {
    /// Its name.
    pub function: String,
    /// How many threads.
    pub threads: usize,
    /// The marks they are at, by address.
    pub locations: Vec<Location>,
}

/// A mark at which threads are.
#[derive(Debug)]
pub struct Location {
    /// The mark.
    pub place: PlaceId,
    /// The threads' ids, ascending.
    pub tids: Vec<u32>,
}

/// Groups threads, given as thread id and last place; the largest group first.
pub fn condense(last: &[(u32, PlaceId)], places: &Places<'_>) -> Vec<Group> {
    let mut by_place: HashMap<PlaceId, Vec<u32>> = HashMap::new();
    for &(tid, place) in last {
        by_place.entry(place).or_default().push(tid);
    }
    // Functions of one name in different files are different functions.
    let mut by_function: HashMap<(&str, Option<&str>), Vec<Location>> = HashMap::new();
    for (place, mut tids) in by_place {
        tids.sort_unstable();
        let Place { function, source, .. } = places.get(place);
        let file = source.as_ref().map(|(file, _)| file.as_str());
        by_function.entry((function, file)).or_default().push(Location { place, tids });
    }
    let mut groups: Vec<Group> = by_function
        .into_iter()
        .map(|((function, _), mut locations)| {
            locations.sort_by_key(|location| {
                let place = places.get(location.place);
                (place.module, place.address)
            });
            Group {
                function: function.to_owned(),
                threads: locations.iter().map(|location| location.tids.len()).sum(),
                locations,
            }
        })
        .collect();
    let address = |group: &Group| group.locations.first().map(|first| places.get(first.place).address);
    groups.sort_by(|a, b| {
        let by_name = || a.function.cmp(&b.function).then_with(|| address(a).cmp(&address(b)));
        b.threads.cmp(&a.threads).then_with(by_name)
    });
    groups
}
