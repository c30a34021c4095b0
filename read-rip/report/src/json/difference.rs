//! What has changed between two readings, as JSON.

use std::io::{self, Write};

use read_rip_model::threads::Difference;
use serde::Serialize;

use super::{Json, Line};
use crate::PlaceChange;

/// What has changed between two readings: `diff`. Lines of type `function` follow, of the threads that have recorded
/// nothing, and lines of the locks that have been held all the time.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Difference"))]
pub(super) struct JsonDifference<'a> {
    /// The time between them, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    between_ns: Option<u64>,
    /// What became of the threads. It is missing if the readings are of two processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<JsonThreads>,
    /// Where threads were and are, by their last marks. With -v also places without a change.
    places: Vec<JsonPlace<'a>>,
}

/// What became of the threads.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ThreadsOfDifference"))]
struct JsonThreads {
    /// How many have recorded something in between.
    moved: usize,
    /// How many have recorded nothing.
    still: usize,
    /// How many are only in the later reading.
    begun: usize,
    /// How many are only in the earlier reading.
    ended: usize,
}

/// A place.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "PlaceOfDifference"))]
struct JsonPlace<'a> {
    /// Its function.
    function: &'a str,
    /// Its file and line, or module and address.
    place: &'a str,
    /// Threads and tasks in the earlier reading.
    before: usize,
    /// Threads and tasks in the later reading.
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
        self.line(Line::Difference(JsonDifference { between_ns, threads, places }))
    }
}
