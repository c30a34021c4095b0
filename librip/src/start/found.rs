//! [`FoundModules`]: the modules that were found, for a ring that is made later.

#![allow(unsafe_code, reason = "a list that grows while it is read")]

use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::process::loader::FoundModule;

/// A list that only grows. Reading it allocates nothing and waits for nobody.
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

    /// Appends these modules. Returns them as the list has them.
    pub(crate) fn add(&self, modules: Vec<FoundModule>) -> &[FoundModule] {
        let finding = Box::into_raw(Box::new(Finding { modules, next: AtomicPtr::new(ptr::null_mut()) }));
        let mut place = &self.first;
        // ORDERING: release, pairs with the acquire in `next`.
        while place.compare_exchange(ptr::null_mut(), finding, Release, Relaxed).is_err() {
            place = next(place).map_or(place, |there| &there.next);
        }
        // SAFETY: leaked above, and never changed again but for `next`.
        unsafe { &(*finding).modules }
    }

    /// All modules, the earlier ones first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &FoundModule> {
        core::iter::successors(next(&self.first), |finding| next(&finding.next))
            .flat_map(|finding| &finding.modules)
    }
}

fn next(place: &AtomicPtr<Finding>) -> Option<&Finding> {
    // ORDERING: acquire, pairs with the release in `add`.
    // SAFETY: null, or leaked by `add`.
    unsafe { place.load(Acquire).as_ref() }
}
