//! [`FoundModules`]: the modules that were found, for a ring that is made later.
//!
//! A module that is unloaded stays in the list and is left out. If it is loaded again at the same address, it is not
//! entered again, so a program may load and unload libraries for ever.

#![allow(unsafe_code, reason = "a list that grows while it is read")]

use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::process::loader::FoundModule;
use crate::process::present;

/// A list that only grows. To read it allocates nothing and waits for nobody.
#[derive(Debug)]
pub(crate) struct FoundModules {
    first: AtomicPtr<Finding>,
}

/// Modules that were found at one time.
#[derive(Debug)]
struct Finding {
    modules: Vec<FoundModule>,
    next: AtomicPtr<Finding>,
}

impl FoundModules {
    pub(crate) const fn new() -> FoundModules {
        FoundModules { first: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Appends those of these modules that are not in the list.
    pub(crate) fn add(&self, mut modules: Vec<FoundModule>) {
        modules.retain(|module| self.all().all(|there| there.fingerprint != module.fingerprint));
        if modules.is_empty() {
            return;
        }
        let finding = Box::into_raw(Box::new(Finding { modules, next: AtomicPtr::new(ptr::null_mut()) }));
        let mut place = &self.first;
        // ORDERING: release, pairs with the acquire in `next`.
        while place.compare_exchange(ptr::null_mut(), finding, Release, Relaxed).is_err() {
            place = next(place).map_or(place, |there| &there.next);
        }
    }

    /// The modules that are loaded now, the earlier ones first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &FoundModule> {
        let is_full = present::is_full();
        self.all()
            .filter(move |module| is_full || present::is_loaded(module.fingerprint, module.module.code_begin))
    }

    fn all(&self) -> impl Iterator<Item = &FoundModule> {
        core::iter::successors(next(&self.first), |finding| next(&finding.next))
            .flat_map(|finding| &finding.modules)
    }
}

fn next(place: &AtomicPtr<Finding>) -> Option<&Finding> {
    // ORDERING: acquire, pairs with the release in `add`.
    // SAFETY: null, or leaked by `add`.
    unsafe { place.load(Acquire).as_ref() }
}
