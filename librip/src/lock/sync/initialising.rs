//! A call that may run an initialiser: what [`Once`](super::Once), [`OnceLock`](super::OnceLock) and
//! [`LazyLock`](super::LazyLock) record.
//!
//! It initialises nothing itself. The standard library decides which thread runs its initialiser, and which ones wait.
//! A call that finds the initialisation done does not come here.

#![allow(unsafe_code, reason = "sites are assembly")]

use core::panic::Location;

use crate::lock::Identity;
use crate::lock::once::Run;
use crate::lock::record;
use crate::lock::site::{Flags, Here, define_sites, wrapper_site};
use librip_format::{LOCK_TYPE_MESSAGE, LOCK_TYPE_ONCE, SITE_LOCK_TYPE_SHIFT, SITE_OWNED};

define_sites!(Sites);

/// An initialisation.
const ONCE: Flags = LOCK_TYPE_ONCE << SITE_LOCK_TYPE_SHIFT | SITE_OWNED;
/// A wait until some thread initialises.
const DONE: Flags = LOCK_TYPE_MESSAGE << SITE_LOCK_TYPE_SHIFT;

/// A call that has not found the initialisation done. When it is dropped, the call is over.
#[derive(Debug)]
pub(super) struct Initialising<'a> {
    identity: &'a Identity,
    run: Run,
}

impl<'a> Initialising<'a> {
    /// Before the call.
    #[cold]
    #[inline(never)]
    pub(super) fn begin(location: &'static Location<'static>, identity: &'a Identity) -> Initialising<'a> {
        let is_running = identity.is_running();
        let acquisition = record::begin_once(Sites::<ONCE>(location), identity.address_in_use(), is_running);
        Initialising { identity, run: Run::begin(acquisition, is_running) }
    }

    pub(super) fn run<T>(&mut self, initialise: impl FnOnce() -> T) -> T {
        self.identity.set_running(true);
        self.run.runs();
        let _running = Running(self);
        initialise()
    }
}

impl Drop for Initialising<'_> {
    #[inline(never)]
    fn drop(&mut self) {
        let pc = wrapper_site!(KIND_LOCK_RELEASED, ONCE, [OPERAND_LOCK]);
        let pc_timed = wrapper_site!(KIND_LOCK_RELEASED, ONCE, [OPERAND_TIME, OPERAND_SINCE, OPERAND_LOCK]);
        self.run.end(Here, self.identity.address(), pc, pc_timed);
    }
}

/// The initialiser runs. It may panic.
struct Running<'a, 'b>(&'a mut Initialising<'b>);

impl Drop for Running<'_, '_> {
    fn drop(&mut self) {
        let Initialising { identity, run } = &mut *self.0;
        identity.set_running(false);
        run.has_run(identity.address());
    }
}

/// Waits by `wait` until some thread has initialised. `object` identifies what the thread waits for.
#[cold]
pub(super) fn wait_until_done<T>(
    location: &'static Location<'static>,
    identity: &Identity,
    object: u64,
    wait: impl FnOnce() -> T,
) -> T {
    if identity.is_running() {
        let _waiting = Initialising::begin(location, identity);
        return wait();
    }
    record::block(Sites::<DONE>(location), object, wait, |_| true)
}
