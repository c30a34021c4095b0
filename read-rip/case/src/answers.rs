//! What the files of a program say about each address in a ring that a command may ask about: for copies that another
//! machine reads.

use read_rip_model::locations::Locations;
use read_rip_model::locks;
use read_rip_ring::events;
use read_rip_symbols::Answers;

use crate::Options;
use crate::case::frames;
use crate::reading::Reading;

/// What they say about a reading, and what is `known` of an earlier one.
pub fn answers(reading: &Reading, known: Option<Answers>, options: &Options) -> Answers {
    let snapshot = &reading.snapshot;
    let resolver = reading.resolver(options).with_answers(known.unwrap_or_default()).keeping_answers();
    let mut locations = Locations::new(snapshot, resolver);
    let recorded = snapshot.all_recorded().map(|index| snapshot.recorded(index));
    for slot in recorded.chain(&snapshot.captures) {
        let (events, _) = events::events(slot, |pc| locations.operand_words(slot.pid, pc));
        for event in events {
            locations.find(slot, &event);
        }
    }
    // A recording has events that no slot has any more.
    for site in &snapshot.sites {
        if let Some(module) = site.home.module().and_then(|module| snapshot.modules.get(module)) {
            locations.find_in(module.pid, site.pc.wrapping_add(module.load_bias));
        }
    }
    let mut model = locks::build(&reading.input(None), &mut locations);
    locks::observe_all(&mut model, reading.standings(), &mut locations);
    reading.objects(&mut locations);
    for seen in reading.standings() {
        frames(seen.stacks.iter().map(|group| &group.stack), seen, &mut locations);
    }
    locations.resolver().answers()
}
