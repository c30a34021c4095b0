//! What has changed between two readings, as JSON.

use std::io::{self, Write};

use read_rip_model::threads::Difference;
use serde::Serialize;

use super::Json;
use crate::PlaceChange;

#[derive(Serialize)]
struct JsonDifference<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    between_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<JsonThreads>,
    places: Vec<JsonPlace<'a>>,
}

#[derive(Serialize)]
struct JsonThreads {
    moved: usize,
    still: usize,
    begun: usize,
    ended: usize,
}

#[derive(Serialize)]
struct JsonPlace<'a> {
    function: &'a str,
    place: &'a str,
    before: usize,
    after: usize,
}

impl<'a> From<&'a PlaceChange> for JsonPlace<'a> {
    fn from(change: &'a PlaceChange) -> Self {
        let PlaceChange { function, place, before, after } = change;
        JsonPlace { function, place, before: *before, after: *after }
    }
}

impl<W: Write> Json<W> {
    /// What has changed. `difference` is `None` if the readings are of two processes.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn difference(
        &mut self,
        difference: Option<&Difference<'_>>,
        between_ns: Option<u64>,
        places: &[PlaceChange],
    ) -> io::Result<()> {
        let threads = difference.map(|difference| JsonThreads {
            moved: difference.moved,
            still: difference.still.len(),
            begun: difference.begun,
            ended: difference.ended,
        });
        let places = places.iter().map(JsonPlace::from).collect();
        self.line("difference", JsonDifference { between_ns, threads, places })
    }
}
