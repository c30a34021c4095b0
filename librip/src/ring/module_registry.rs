//! Enters modules in the ring, with their sites: path, build id, load bias, and each site's note and text.
//!
//! It does not find modules (`process::loader` does) and resolves no addresses (the reader does). It allocates nothing,
//! because the ring may be made at the process's first mark, with the modules that were found before.

#![allow(unsafe_code, reason = "entries are written through the mapping")]

use core::hash::Hasher;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};
use std::hash::DefaultHasher;

use librip_format::{Module, ParsedSite, Site, Text};

use super::control::ModuleKey;
use super::entry::{append_text, write_then_complete};
use super::{Ring, Table};
use crate::sys::file::{Terminated, len_and_time};
use crate::sys::{self, Unreserved};

/// A loaded executable or library. Addresses are actual ones.
#[derive(Debug, Default)]
pub(crate) struct LoadedModule {
    pub(crate) path: Vec<u8>,
    pub(crate) is_executable: bool,
    pub(crate) load_bias: u64,
    /// The first address.
    pub(crate) begin: u64,
    /// The address after the last one.
    pub(crate) end: u64,
    /// The first address of its code.
    pub(crate) code_begin: u64,
    /// The address after its code.
    pub(crate) code_end: u64,
    pub(crate) build_id: Vec<u8>,
    pub(crate) sites: Vec<ParsedSite>,
    /// The sites' texts, one after the other.
    pub(crate) texts: Vec<u8>,
}

/// [`ModuleKey::state`] of a complete key.
const KEY_COMPLETE: u32 = 1;
/// A ring keeps build ids up to this length, bytes. Usual ones have 20.
const BUILD_ID_LEN_MAX: usize = 32;

/// Enters the modules that are not in the ring yet. The header counts those for which there is no room.
pub(crate) fn register<'a>(ring: &Ring, modules: impl Iterator<Item = &'a LoadedModule>) {
    let turn = AtTurn::wait(ring);
    for module in modules {
        if !is_registered(ring, module) && enter(ring, module).is_err() {
            // ORDERING: relaxed, a statistic.
            ring.header().metadata_refused.fetch_add(1, Relaxed);
        }
    }
    drop(turn);
}

/// One thread of a process registers at a time, so that no module is entered twice.
///
/// It is not a mutex: if another thread of the parent held one during a fork, it would stay locked in the child. This
/// lock contains its owner's pid. If that is another process's, the lock is free.
struct AtTurn<'a>(&'a AtomicU32);

impl AtTurn<'_> {
    fn wait(ring: &Ring) -> AtTurn<'_> {
        let (turn, own) = (&ring.registry_turn, sys::pid());
        loop {
            // ORDERING: relaxed, the exchange below decides.
            let owner = turn.load(Relaxed);
            // ORDERING: acquire, pairs with the release in `drop`.
            if owner != own && turn.compare_exchange(owner, own, Acquire, Relaxed).is_ok() {
                return AtTurn(turn);
            }
            sys::rest();
        }
    }
}

impl Drop for AtTurn<'_> {
    fn drop(&mut self) {
        // ORDERING: release, pairs with the acquire in `wait`.
        self.0.store(0, Release);
    }
}

/// Returns whether a module is in the ring already.
///
/// A forked child's modules are registered if its parent's were, because they have the same addresses. But another
/// child may have registered another module at the same address since. Then this process needs an entry of its own.
fn is_registered(ring: &Ring, module: &LoadedModule) -> bool {
    // ORDERING: acquire, pairs with the release in `Ring::append`.
    let used = ring.used(Table::Modules).load(Acquire) as usize;
    let newest_there = ring.control.module_keys()[..used].iter().rev().find(|key| {
        // ORDERING: acquire, pairs with the release in `enter`. Complete keys do not change.
        key.state.load(Acquire) == KEY_COMPLETE
            && key.begin.load(Relaxed) < module.end
            && module.begin < key.end.load(Relaxed)
    });
    newest_there.is_some_and(|key| {
        let same = |field: &AtomicU64, value: u64| field.load(Relaxed) == value;
        same(&key.load_bias, module.load_bias)
            && same(&key.begin, module.begin)
            && same(&key.end, module.end)
            && same(&key.build_id, hash(&module.build_id))
    })
}

fn hash(build_id: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(build_id);
    hasher.finish()
}

fn enter(ring: &Ring, module: &LoadedModule) -> Result<(), Unreserved> {
    let path = append_text(ring, &module.path)?;
    let texts = append_text(ring, &module.texts)?;
    let sites = ring.append(Table::Sites, module.sites.len() as u64)?;
    let index = ring.append(Table::Modules, 1)?;
    write_module(ring, index, module, path);
    let mut rest = &module.texts[..];
    let mut offset = texts.offset;
    for (position, site) in module.sites.iter().enumerate() {
        let text = Text { offset, len_bytes: site.text_len_bytes };
        offset += site.text_len_bytes;
        let (bytes, others) = rest.split_at_checked(site.text_len_bytes as usize).unwrap_or_default();
        rest = others;
        let pc = site.pc.wrapping_sub(module.load_bias);
        write_site(ring, sites + position as u64, index, site, pc, (text, bytes));
    }
    note_key(&ring.control.module_keys()[index as usize], module);
    Ok(())
}

fn write_module(ring: &Ring, index: u64, module: &LoadedModule, path: Text) {
    let mut build_id = [0; BUILD_ID_LEN_MAX];
    let build_id_len = module.build_id.len().min(BUILD_ID_LEN_MAX);
    build_id[..build_id_len].copy_from_slice(&module.build_id[..build_id_len]);
    let (file_len_bytes, modified_ns) = file_identity(&module.path);
    let entry = Module {
        state: 0.into(),
        pid: sys::pid(),
        load_bias: module.load_bias,
        begin: module.begin.wrapping_sub(module.load_bias),
        end: module.end.wrapping_sub(module.load_bias),
        path,
        build_id_len_bytes: build_id_len as u32,
        is_executable: u32::from(module.is_executable),
        build_id,
        file_len_bytes,
        modified_ns,
        code_begin: module.code_begin.wrapping_sub(module.load_bias),
        code_end: module.code_end.wrapping_sub(module.load_bias),
        reserved: [0; 2],
    };
    // SAFETY: `Ring::append` gave this entry to us alone, reserved. `Module` starts with its state, and has no padding:
    // its fields add up to its length.
    unsafe { write_then_complete(ring.module(index), entry, &module.path) };
}

/// Returns a file's length and modification time, bytes and ns since 1970; zeros if the file cannot be examined, or its
/// path is long or not a path: the kernel's own module has a name only.
fn file_identity(path: &[u8]) -> (u64, u64) {
    let mut terminated = Terminated::<512>::new();
    if !path.starts_with(b"/") || terminated.push(path).is_err() {
        return (0, 0);
    }
    len_and_time(terminated.as_c_str()).unwrap_or((0, 0))
}

fn write_site(
    ring: &Ring,
    index: u64,
    module: u64,
    site: &ParsedSite,
    pc: u64,
    (text, bytes): (Text, &[u8]),
) {
    let entry = Site {
        state: 0.into(),
        module: module as u32,
        pc,
        text,
        line: site.line,
        column: site.column,
        kind: site.kind,
        operand_count: site.operand_count,
        flags: site.flags,
        operand_types: site.operand_types,
    };
    // SAFETY: `Ring::append` gave this entry to us alone, reserved. `Site` starts with its state, and has no padding:
    // its fields add up to its length.
    unsafe { write_then_complete(ring.site(index), entry, bytes) };
}

/// Writes the key by which `is_registered` finds a module again, in this process and in its children.
fn note_key(key: &ModuleKey, module: &LoadedModule) {
    // ORDERING: relaxed, ordered by the state's release.
    key.load_bias.store(module.load_bias, Relaxed);
    key.begin.store(module.begin, Relaxed);
    key.end.store(module.end, Relaxed);
    key.build_id.store(hash(&module.build_id), Relaxed);
    // ORDERING: release, pairs with the acquire in `is_registered`.
    key.state.store(KEY_COMPLETE, Release);
}
