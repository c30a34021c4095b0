//! Callers of wrappers: which addresses are calls, and their lines.
//!
//! A call is the address of a constant of the program, not of code. Its line comes from the ring, if the recorder has
//! copied it, or else from the program's file.

use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use read_rip_ring::{
    CopiedCall, LockType, OperandType, OperandWords, SiteFlags, SiteKind, Snapshot, call_is_try,
};
use read_rip_symbols::{CallerLine, Frame, Resolver};

use super::meaning::Meaning;
use super::module_map::ModuleMap;
use super::wrapper::is_same_file;

/// What is known of calls without their operands.
const CALL: Meaning<'static> = Meaning::of_call(SiteFlags::WRAPPER);
const CALL_OF_TRY: Meaning<'static> =
    Meaning::of_call(SiteFlags::from_bits(SiteFlags::WRAPPER.bits() | SiteFlags::TRY.bits()));

pub(super) struct Calls<'a> {
    /// By module and module-relative address of the location.
    copied: HashMap<(usize, u64), &'a CopiedCall>,
    /// The modules that have wrappers.
    wrapping: HashSet<usize>,
    /// For each module with debug information, the functions that call wrappers, by line.
    callers: HashMap<usize, HashMap<u32, Vec<Caller>>>,
}

#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) file: Arc<str>,
    /// The function, and those into which it was inlined.
    pub(super) frames: Vec<Frame>,
}

impl<'a> Calls<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, modules: &ModuleMap) -> Calls<'a> {
        let key = |call: &CopiedCall| {
            let module = modules.find(call.pid, call.address)?;
            Some((module, snapshot.modules[module].relative(call.address)?))
        };
        let copied = snapshot.calls.iter().filter_map(|call| Some((key(call)?, call))).collect();
        let wrapping =
            snapshot.sites.iter().filter(|site| site.is_wrapper()).filter_map(|site| site.home.module());
        Calls { copied, wrapping: wrapping.collect(), callers: HashMap::default() }
    }

    /// Whether a location can be there: the module has wrappers, and the address is none of code.
    pub(super) fn is_possible(&self, snapshot: &Snapshot, module: usize, address: u64) -> bool {
        self.wrapping.contains(&module) && !snapshot.modules[module].code.contains(&address)
    }

    /// File, line and column of a location.
    pub(super) fn line(&self, resolver: &mut Resolver, module: usize, address: u64) -> Option<CallerLine> {
        let copied = self.copied.get(&(module, address));
        let is_whole = |call: &&&CopiedCall| !call.file.starts_with("...");
        let line = |call: &&CopiedCall| CallerLine {
            file: call.file.clone(),
            line: call.line,
            column: Some(call.column).filter(|&column| column > 0),
        };
        let whole = copied.filter(is_whole).map(line);
        whole.or_else(|| resolver.caller_line(module, address)).or_else(|| copied.map(line))
    }

    /// File and line that the recorder has copied for an address of code: where a coroutine was made. A file that
    /// begins with `...` lacks its beginning.
    pub(super) fn copied(&self, module: usize, address: u64) -> Option<(&'a str, u32)> {
        self.copied.get(&(module, address)).map(|call| (&*call.file, call.line))
    }

    /// Whether the callers of a module were added.
    pub(super) fn knows_callers_of(&self, module: usize) -> bool {
        self.callers.contains_key(&module)
    }

    /// Adds the functions of a module that call wrappers, each with the line of the call.
    pub(super) fn add_callers(&mut self, module: usize, callers: impl IntoIterator<Item = (u32, Caller)>) {
        let known = self.callers.entry(module).or_default();
        for (line, caller) in callers {
            known.entry(line).or_default().push(caller);
        }
    }

    /// The function that calls a wrapper at this line.
    pub(super) fn caller(&self, module: usize, file: &str, line: u32) -> Option<&Caller> {
        let of_line = self.callers.get(&module)?.get(&line)?;
        of_line.iter().find(|caller| is_same_file(&caller.file, file))
    }
}

/// What all calls with these bits mean.
pub(super) fn meaning(pc: u64) -> &'static Meaning<'static> {
    if call_is_try(pc) { &CALL_OF_TRY } else { &CALL }
}

impl Meaning<'static> {
    /// The meaning of a call. The operand says what the lock is.
    const fn of_call(flags: SiteFlags) -> Meaning<'static> {
        Meaning {
            kind: Some(SiteKind::LockAcquireBegin),
            operand_types: Some(&[OperandType::Lock]),
            operand_words: Some(OperandWords::Fixed(1)),
            all_flags: flags,
            any_flags: flags,
            is_type_known: matches!(flags.lock_type(), LockType::Unknown),
        }
    }
}
