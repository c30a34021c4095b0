//! The names of the threads of a living process: those that the kernel has now, not those at their first marks.
//!
//! A name that the program gave a thread in the ring stays. Asking the kernel takes about 10 microseconds a thread. So
//! a view that names all threads of a large process leaves the names as recorded. A finding names few.

use read_rip_evidence::process::thread_name;
use read_rip_model::findings::Finding;
use read_rip_model::locks::{LockModel, ThreadId};
use read_rip_ring::{Slot, SlotState};

use crate::reading::Reading;
use crate::saved::PresentName;

/// If more threads than these need a name, none gets one.
const NAMES_MAX: usize = 5000;

impl Reading {
    /// Gives all threads the names that they have now.
    pub fn with_present_names(mut self) -> Reading {
        let names = self.present_names();
        self.apply_names(&names);
        self
    }

    /// The present names of all threads, as far as they differ from the recorded ones.
    pub(crate) fn present_names(&self) -> Vec<PresentName> {
        let wanted = || self.snapshot.slots.iter().filter(|slot| self.may_have_another_name(slot));
        if wanted().count() > NAMES_MAX {
            return Vec::new();
        }
        wanted().filter_map(|slot| Some((slot.pid, slot.tid, thread_name(slot.pid, slot.tid)?))).collect()
    }

    /// Gives threads these names.
    pub(crate) fn apply_names(&mut self, names: &[PresentName]) {
        let names: std::collections::HashMap<(u32, u32), &String> =
            names.iter().map(|(pid, tid, name)| ((*pid, *tid), name)).collect();
        for slot in &mut self.snapshot.slots {
            if is_unnamed(slot)
                && let Some(&name) = names.get(&(slot.pid, slot.tid))
            {
                slot.name.clone_from(name);
            }
        }
    }

    /// Gives the threads of a model that findings mention the names that they have now.
    pub(crate) fn name_threads(&self, model: &mut LockModel, found: &[Finding], others: &[ThreadId]) {
        let mentioned = found.iter().flat_map(|finding| &finding.mentions.threads);
        let mut mentioned: Vec<ThreadId> = mentioned.chain(others).copied().collect();
        mentioned.sort_unstable();
        mentioned.dedup();
        for id in mentioned.into_iter().take(NAMES_MAX) {
            let Some(thread) = model.threads.get_mut(id) else { continue };
            let slot = thread.slot.and_then(|slot| self.snapshot.slots.get(slot));
            if slot.is_some_and(|slot| self.may_have_another_name(slot))
                && let Some(name) = thread_name(thread.pid, thread.tid)
            {
                thread.name = name;
            }
        }
    }

    /// Whether the kernel knows a thread, perhaps by another name than the ring.
    fn may_have_another_name(&self, slot: &Slot) -> bool {
        let of_own_process = self.snapshot.header.as_ref().is_some_and(|header| header.pid == slot.pid);
        self.asks_kernel && of_own_process && is_unnamed(slot) && self.living.contains(&slot.tid)
    }
}

/// Whether a thread lives, and the program has not named it in the ring.
fn is_unnamed(slot: &Slot) -> bool {
    !slot.is_named && slot.state == SlotState::Live
}
