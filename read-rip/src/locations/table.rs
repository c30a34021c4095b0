//! The table of locations: each distinct PC is looked up once.
//!
//! File and line of a mark come from the ring's sites, even without the program. Debug information adds the
//! function and the inlined callers; `symbols` reads it. Nothing is printed here.

use std::borrow::Cow;
use std::sync::Arc;

use read_rip_symbols::{Frame, Resolver};

use super::calls::{self, Caller, Calls};
use super::function_name::without_arguments;
use super::location::UNKNOWN;
use super::meaning::{MARKS_MAX, Marks, Meaning};
use super::module_map::ModuleMap;
use super::shared_names::SharedNames;
use super::wrapper::{is_same_file, remove_wrapper_frames};
use super::{Location, LocationId};
use crate::events::Event;
use crate::hash::HashMap;
use crate::ring::{
    Home, Module, OperandType, OperandWords, Site, SiteKind, Slot, Snapshot, StaticTexts, call_location,
    call_lock,
};

/// What the source file that was compiled is recognised by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceProof {
    /// Its contents.
    Md5([u8; 16]),
    /// The time of the build: a file that was changed later is another one. ns since 1970.
    NotNewerThan(u64),
}

/// The locations of all PCs that were looked up.
pub struct Locations<'a> {
    snapshot: &'a Snapshot,
    modules: ModuleMap,
    sites: HashMap<(Home, u64), Marks<'a>>,
    /// The sites of all processes, by their actual address.
    of_any_process: HashMap<u64, Marks<'a>>,
    calls: Calls<'a>,
    /// By process, address and the location of a wrapper's caller, which is 0 where the address says it all.
    by_pc: HashMap<(u32, u64, u64), LocationId>,
    /// The statics that locks are in. `None`: in none that is known.
    lock_symbols: HashMap<(u32, u64), Option<String>>,
    locations: Vec<Location>,
    /// Releases by their own location and that of the acquisition.
    of_guards: HashMap<(LocationId, LocationId), LocationId>,
    /// Calls by their own location and the return addresses further out.
    by_calls: HashMap<(LocationId, Vec<u64>), LocationId>,
    /// Whether the call that returns to an address of a module calls the function of another address.
    proofs: HashMap<(usize, u64, u64), bool>,
    names: SharedNames,
    resolver: Resolver,
}

/// At most this many of the functions into which one function was inlined are kept.
const CALLERS_MAX: usize = 100;
/// At most this many calls further out are shown.
const OUTER_MAX: usize = 2;

impl<'a> Locations<'a> {
    /// An empty table. `resolver` must have been made for the snapshot's modules.
    pub fn new(snapshot: &'a Snapshot, resolver: Resolver) -> Locations<'a> {
        let mut sites: HashMap<_, Marks<'_>> = HashMap::default();
        let mut of_any_process: HashMap<_, Marks<'_>> = HashMap::default();
        for (index, site) in snapshot.sites.iter().enumerate() {
            let marks = sites.entry((site.home, site.pc)).or_insert_with(|| Marks::of(site));
            marks.add(index, &snapshot.sites);
            if site.home.module().is_none() {
                let marks = of_any_process.entry(site.pc).or_insert_with(|| Marks::of(site));
                marks.add(index, &snapshot.sites);
            }
        }
        let modules = ModuleMap::new(&snapshot.modules);
        Locations {
            snapshot,
            calls: Calls::new(snapshot, &modules),
            modules,
            sites,
            of_any_process,
            by_pc: HashMap::default(),
            lock_symbols: HashMap::default(),
            locations: Vec::new(),
            of_guards: HashMap::default(),
            by_calls: HashMap::default(),
            proofs: HashMap::default(),
            names: SharedNames::default(),
            resolver,
        }
    }

    /// The modules of the recorded process.
    pub fn modules(&self) -> &[Module] {
        &self.snapshot.modules
    }

    /// The location of an event: its mark, the caller that its wrapper names, or the call that an interposer recorded.
    pub fn find(&mut self, slot: &Slot, event: &Event) -> LocationId {
        match self.operand(slot, event, OperandType::Caller) {
            Some(caller) => {
                let at = self.find_call(slot.pid, caller);
                let stack = self.stack(slot, event);
                self.called_from(slot.pid, at, caller, &stack)
            }
            None => {
                let caller = self.operand(slot, event, OperandType::Location).unwrap_or(0);
                self.find_at(slot.pid, event.pc, event.pc, caller)
            }
        }
    }

    /// The location of a mark or of a wrapper's call, by its PC in a process.
    pub fn find_in(&mut self, pid: u32, pc: u64) -> LocationId {
        self.find_at(pid, pc, pc, 0)
    }

    /// The location of the call that returns to an address. The call is before that address. The code at the
    /// address may belong to another line, or to another function.
    pub fn find_call(&mut self, pid: u32, return_address: u64) -> LocationId {
        self.find_at(pid, return_address, return_address.wrapping_sub(1), 0)
    }

    fn find_at(&mut self, pid: u32, pc: u64, looked_up: u64, caller: u64) -> LocationId {
        if let Some(&location) = self.by_pc.get(&(pid, looked_up, caller)) {
            return location;
        }
        let mut location = if self.is_call(pid, looked_up) {
            self.look_up_call(pid, looked_up)
        } else {
            Location { pc, ..self.look_up(pid, looked_up) }
        };
        if caller != 0 {
            self.name_caller(&mut location, pid, caller);
        }
        let id = self.locations.len();
        self.locations.push(location);
        self.by_pc.insert((pid, looked_up, caller), id);
        id
    }

    /// The location of a call, with the calls further out that the words of a stack prove.
    fn called_from(&mut self, pid: u32, at: LocationId, caller: u64, stack: &[u64]) -> LocationId {
        let mut callee = caller.wrapping_sub(1);
        let mut proven = Vec::new();
        for &word in stack {
            if proven.len() < OUTER_MAX && self.is_call_of(pid, word, callee) {
                proven.push(word);
                callee = word.wrapping_sub(1);
            }
        }
        if proven.is_empty() {
            return at;
        }
        let key = (at, proven);
        if let Some(&known) = self.by_calls.get(&key) {
            return known;
        }
        let outer = key.1.iter().filter_map(|&word| self.frame_of_call(pid, word)).collect();
        self.locations.push(Location { outer, ..self.locations[at].clone() });
        let id = self.locations.len() - 1;
        self.by_calls.insert(key, id);
        id
    }

    /// Whether a word of a stack is the return address of a direct call of the function that `callee` is in.
    fn is_call_of(&mut self, pid: u32, word: u64, callee: u64) -> bool {
        let (Some((home, address)), Some((module, callee))) =
            (self.module_of(pid, word), self.module_of(pid, callee))
        else {
            return false;
        };
        if home != module {
            return false;
        }
        let resolver = &mut self.resolver;
        *self.proofs.entry((module, address, callee)).or_insert_with(|| {
            let target = resolver.call_target(module, address);
            target.is_some() && target == resolver.function_begin(module, callee)
        })
    }

    /// The frame of a call, by its return address. If nothing is known of it, the module and the address are its name.
    fn frame_of_call(&mut self, pid: u32, return_address: u64) -> Option<Frame> {
        let (module, address) = self.module_of(pid, return_address)?;
        let mut code = self.code_at(module, address.wrapping_sub(1), &[], false);
        let name = self.module_name(module).unwrap_or_default();
        let frame = code.innermost.get_or_insert_default();
        if let Some((file, line)) = code.call {
            (frame.file, frame.line) = (Some(file), Some(line));
        }
        if frame.file.is_none() {
            frame.function = Some(self.names.share(&format!("{name}+{:#x}", address.wrapping_sub(1))));
        }
        code.innermost
    }

    /// The location of a release: its own, or that of the acquisition if the release's caller is not known.
    pub(super) fn of_guard(&mut self, released: LocationId, acquired: LocationId) -> LocationId {
        if !self.locations[released].is_in_wrapper || self.locations[acquired].is_in_wrapper {
            return released;
        }
        if let Some(&known) = self.of_guards.get(&(released, acquired)) {
            return known;
        }
        let (own, from) = (&self.locations[released], &self.locations[acquired]);
        let location =
            Location { pc: own.pc, address: own.address, sites: own.sites.clone(), ..from.clone() };
        self.locations.push(location);
        self.of_guards.insert((released, acquired), self.locations.len() - 1);
        self.locations.len() - 1
    }

    /// Whether an address in a PC word is a call of a wrapper: it names the caller and has no mark.
    pub fn is_call(&self, pid: u32, pc: u64) -> bool {
        self.module_of(pid, call_location(pc)).is_some_and(|(module, address)| {
            self.calls.is_possible(self.snapshot, module, address) && !self.has_mark(pid, pc)
        })
    }

    fn has_mark(&self, pid: u32, pc: u64) -> bool {
        self.marks(pid, pc).is_some()
    }

    /// The marks at a PC of a process: those of its module, or else those that a bridge made in this process, or else
    /// those of other processes, from one of which it may have been forked.
    fn marks(&self, pid: u32, pc: u64) -> Option<&Marks<'a>> {
        let of_module = self.module_of(pid, pc);
        of_module
            .and_then(|(module, address)| self.sites.get(&(Home::Module(module), address)))
            .or_else(|| self.sites.get(&(Home::Process(pid), pc)))
            .or_else(|| self.of_any_process.get(&pc))
    }

    /// A location that was looked up.
    pub fn get(&self, id: LocationId) -> &Location {
        &self.locations[id]
    }

    /// All locations that were looked up.
    pub fn iter(&self) -> impl Iterator<Item = &Location> {
        self.locations.iter()
    }

    /// How to recognise the source file of a location as the one that was compiled: by its MD5 where debug information
    /// has it, and otherwise by the time at which the module was built, ns since 1970.
    pub fn source_proof(&self, location: &Location) -> Option<SourceProof> {
        let (file, _) = location.source.as_ref()?;
        let module = location.module?;
        if let Some(md5) = self.resolver.source_md5(module, location.address, file) {
            return Some(SourceProof::Md5(md5));
        }
        let built_ns = self.snapshot.modules[module].modified_ns;
        (built_ns > 0).then_some(SourceProof::NotNewerThan(built_ns))
    }

    /// A site of the snapshot.
    pub fn site(&self, index: usize) -> &'a Site {
        &self.snapshot.sites[index]
    }

    /// The index of the site at a PC of a process, if there is one. Of several that the linker folded, any.
    pub fn site_at(&self, pid: u32, pc: u64) -> Option<usize> {
        self.marks(pid, pc)?.different.first().copied()
    }

    /// The texts to which events refer.
    pub fn static_texts(&self) -> &'a StaticTexts {
        &self.snapshot.static_texts
    }

    /// The class of the lock that the marks at a location use, if they say one and agree on it.
    pub fn lock_class(&self, id: LocationId) -> Option<&'a str> {
        let mut classes = self.get(id).sites.iter().map(|&at| self.site(at)).map(|site| {
            let is_of_lock = site.kind.is_of_lock();
            Some(&*site.label).filter(|class| is_of_lock && !class.is_empty())
        });
        let first = classes.next()??;
        classes.all(|class| class == Some(first)).then_some(first)
    }

    /// What the marks at a PC of a process mean; `None` if there is no mark.
    pub fn meaning(&self, pid: u32, pc: u64) -> Option<&Meaning<'a>> {
        match self.marks(pid, pc) {
            Some(marks) => Some(&marks.meaning),
            None => self.is_call(pid, pc).then(|| calls::meaning(pc)),
        }
    }

    /// The number of operand words before this PC in an event; none if there is no mark.
    pub fn operand_words(&self, pid: u32, pc: u64) -> OperandWords {
        let words = self.meaning(pid, pc).and_then(|meaning| meaning.operand_words);
        words.unwrap_or(OperandWords::Fixed(0))
    }

    /// The address of the lock that an event of a slot is about, if it is about one.
    pub fn lock_of(&self, slot: &Slot, event: &Event) -> Option<u64> {
        let lock = self.operand(slot, event, OperandType::Lock)?;
        Some(if self.is_call(slot.pid, event.pc) { call_lock(lock) } else { lock })
    }

    /// The time of an event that has one, ns since boot. `now_ns` is the time of the reading or of the process's end.
    pub fn time_of(&self, slot: &Slot, event: &Event, now_ns: Option<u64>) -> Option<u64> {
        let ticks = match self.operand(slot, event, OperandType::Shape) {
            Some(_) => slot.values(event.operands.clone())?.ticks?,
            None => self.operand(slot, event, OperandType::Time)?,
        };
        self.moment(slot, ticks, now_ns)
    }

    /// The moment that a slot's owner recorded as these ticks, ns since boot. `now_ns` is as for
    /// [`time_of`](Locations::time_of).
    pub fn moment(&self, slot: &Slot, ticks: u64, now_ns: Option<u64>) -> Option<u64> {
        let clock = self.snapshot.header.as_ref()?.clock?;
        clock.boottime_ns(ticks, slot.claimed_boottime_ns, now_ns)
    }

    /// When the clock of the ring began, ns since boot.
    pub fn began_ns(&self) -> Option<u64> {
        Some(self.snapshot.header.as_ref()?.clock?.base_boottime_ns)
    }

    /// Looks up the static that the lock of an event is in, for [`Locations::lock_name`].
    pub fn find_lock(&mut self, slot: &Slot, event: &Event) {
        if let Some(lock) = self.lock_of(slot, event)
            && !self.lock_symbols.contains_key(&(slot.pid, lock))
        {
            let symbol = self.symbol_of(slot.pid, lock);
            self.lock_symbols.insert((slot.pid, lock), symbol);
        }
    }

    /// The name that a process gave to a lock, or the static that it is in.
    pub fn lock_name(&self, pid: u32, lock: u64) -> Option<&str> {
        let symbol = || self.lock_symbols.get(&(pid, lock))?.as_deref();
        self.given_name(pid, lock).or_else(symbol)
    }

    /// The first operand of a type that has one word.
    pub fn operand(&self, slot: &Slot, event: &Event, operand_type: OperandType) -> Option<u64> {
        if event.operands.is_empty() {
            return None;
        }
        let types = self.meaning(slot.pid, event.pc)?.operand_types?;
        let position = types.iter().position(|&operand| operand == operand_type)?;
        let before: u32 = types[..position].iter().filter_map(|operand| operand.words()).sum();
        let at = event.operands.start + before as usize;
        slot.words.get(at).filter(|_| event.operands.contains(&at)).map(|word| word.payload())
    }

    /// The words of the stack in an event; empty if it has none.
    fn stack(&self, slot: &Slot, event: &Event) -> Vec<u64> {
        let types = self.meaning(slot.pid, event.pc).and_then(|meaning| meaning.operand_types);
        let mut at = event.operands.start;
        let mut found = Vec::new();
        for operand in types.unwrap_or_default() {
            if *operand == OperandType::Stack
                && let Some(word) = slot.words.get(at).filter(|_| event.operands.contains(&at))
                && word.payload() != 0
            {
                found.push(word.payload());
            }
            at += operand.words().unwrap_or(0) as usize;
        }
        found
    }

    /// The name that its process gave to a lock.
    pub fn given_name(&self, pid: u32, lock: u64) -> Option<&'a str> {
        self.snapshot.lock_names.get(&(pid, lock)).map(String::as_str)
    }

    /// The static that covers an actual address, as `SYMBOL` or, after its start, `SYMBOL+0x10`.
    pub fn symbol_of(&mut self, pid: u32, address: u64) -> Option<String> {
        let (module, address) = self.module_of(pid, address)?;
        let (symbol, offset) = self.resolver.static_at(module, address)?;
        Some(if offset == 0 { symbol } else { format!("{symbol}+{offset:#x}") })
    }

    /// The resolver, which knows why symbols are missing.
    pub fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    pub(super) fn resolver_mut(&mut self) -> &mut Resolver {
        &mut self.resolver
    }

    /// The module that an actual address is in, and the address relative to it.
    pub(super) fn module_of(&self, pid: u32, pc: u64) -> Option<(usize, u64)> {
        let module = self.modules.find(pid, pc)?;
        Some((module, self.snapshot.modules[module].relative(pc)?))
    }

    fn look_up(&mut self, pid: u32, pc: u64) -> Location {
        let marks = self.marks(pid, pc);
        let home = self.module_of(pid, pc);
        let meaning = marks.map(|marks| marks.meaning);
        let indices = marks.map(|marks| marks.different.clone()).unwrap_or_default();
        let sites: Vec<&Site> = indices.iter().take(MARKS_MAX).map(|&at| self.site(at)).collect();
        if sites.first().is_some_and(|site| site.home.module().is_none()) {
            return self.of_process(pc, &indices, meaning);
        }
        let Some((module, address)) = home else { return Location::unknown(pc) };
        let is_wrapper = meaning.is_some_and(|meaning| meaning.is_wrapper());
        let types = meaning.and_then(|meaning| meaning.operand_types).unwrap_or_default();
        if types.contains(&OperandType::Caller) {
            // The location of the event is its caller. So the files of the interposer are not asked, nor missed.
            return Location { pc, module: Some(module), address, sites: indices, ..Location::default() };
        }
        let code = self.code_at(module, address, &sites, is_wrapper);
        let is_in_wrapper = is_wrapper && code.call.is_none();
        let mut sources = sources(&code, &sites).into_iter();
        let source = sources.next();
        let folded: Vec<(Arc<str>, u32)> = sources.collect();
        let functions = self.functions(module, address, &code, &sites, !folded.is_empty());
        let short: Vec<Cow<'_, str>> = functions.iter().map(|function| without_arguments(function)).collect();
        Location {
            pc,
            module: Some(module),
            module_name: self.module_name(module),
            address,
            function: self.names.share(&short.join("|")),
            full_function: self.names.share(&functions.join("|")),
            source,
            folded,
            is_ambiguous: meaning.is_some_and(|meaning| meaning.is_ambiguous()),
            callers: code.callers,
            outer: Vec::new(),
            is_in_wrapper,
            sites: indices,
        }
    }

    /// The location of sites of a process. Its address is one of data: no code is there, and no function.
    fn of_process(&mut self, pc: u64, indices: &[usize], meaning: Option<Meaning<'_>>) -> Location {
        let sites: Vec<&Site> = indices.iter().take(MARKS_MAX).map(|&at| self.site(at)).collect();
        let mut sources = sources(&Code::default(), &sites).into_iter();
        let function = self.names.share(&modules(&sites).join("|"));
        Location {
            pc,
            address: pc,
            function: Arc::clone(&function),
            full_function: function,
            source: sources.next(),
            folded: sources.collect(),
            is_ambiguous: meaning.is_some_and(|meaning| meaning.is_ambiguous()),
            sites: indices.to_vec(),
            ..Location::default()
        }
    }

    pub(super) fn module_name(&mut self, module: usize) -> Option<Arc<str>> {
        let name = self.snapshot.modules[module].path.file_name()?;
        Some(self.names.share(&name.to_string_lossy()))
    }

    /// The location of a wrapper's call.
    fn look_up_call(&mut self, pid: u32, pc: u64) -> Location {
        let mut location = Location { pc, is_in_wrapper: true, ..Location::default() };
        self.name_caller(&mut location, pid, call_location(pc));
        location
    }

    /// Completes a location by its wrapper's caller, a location in the program.
    fn name_caller(&mut self, location: &mut Location, pid: u32, caller: u64) {
        let Some((module, address)) = self.module_of(pid, caller) else { return };
        if location.module.is_none() {
            (location.module, location.address) = (Some(module), address);
            location.module_name = self.module_name(module);
        }
        let Some((file, line)) = self.calls.line(&mut self.resolver, module, address) else { return };
        if location.is_in_wrapper {
            // A function of the wrapper is not where the program is.
            (location.function, location.full_function) = Default::default();
            location.callers.clear();
            self.add_callers(module);
            if let Some(Caller { file, frames }) = self.calls.caller(module, &file, line) {
                location.full_function =
                    frames.first().and_then(|frame| frame.function.clone()).unwrap_or_default();
                location.function = self.names.share(&without_arguments(&location.full_function));
                location.callers = frames.get(1..).unwrap_or_default().to_vec();
                location.source = Some((Arc::clone(file), line));
            }
        }
        location.is_in_wrapper = false;
        // Debug information has the whole path.
        let is_known = |(whole, of): &(Arc<str>, u32)| *of == line && is_same_file(whole, &file);
        if !location.source.as_ref().is_some_and(is_known) {
            location.source = Some((self.names.share(&file), line));
        }
    }

    /// Asks debug information for the functions of a module that call wrappers.
    fn add_callers(&mut self, module: usize) {
        if self.calls.knows_callers_of(module) {
            return;
        }
        let mut callers = Vec::new();
        if self.resolver.has_debug_info(module) {
            // Each call of a wrapper has one mark of these kinds.
            let is_one_of_each = |site: &&Site| {
                let has_time = site.operand_types.contains(&OperandType::Time);
                let is_begin = site.kind == SiteKind::LockAcquireBegin && has_time;
                let is_unowned_wait = site.kind == SiteKind::LockWait && site.flags.lock_type().is_unowned();
                site.home == Home::Module(module)
                    && site.is_wrapper()
                    && (is_begin || is_unowned_wait || site.kind == SiteKind::ConditionWait)
            };
            for site in self.snapshot.sites.iter().filter(is_one_of_each) {
                let code = self.code_at(module, site.pc, &[site], true);
                if let Some((file, line)) = code.call {
                    let frames = code.innermost.into_iter().chain(code.callers).collect();
                    callers.push((line, Caller { file, frames }));
                }
            }
        }
        self.calls.add_callers(module, callers);
    }

    /// The frames at a module-relative address, without those of a wrapper around a lock.
    fn code_at(&mut self, module: usize, address: u64, sites: &[&Site], is_wrapper: bool) -> Code {
        let mut frames = self.resolver.resolve(module, address);
        // A mark by hand is in the function to report. A wrapper, or an address without a mark, was called from there.
        let is_by_hand = !sites.is_empty() && !is_wrapper;
        let wrapper_file = sites.first().map(|site| &*site.file);
        let call = if is_by_hand { None } else { remove_wrapper_frames(&mut frames, wrapper_file) };
        let call = call.map(|(file, line)| (self.names.share(&file), line));
        for name in frames.iter_mut().flat_map(|frame| [&mut frame.function, &mut frame.file]).flatten() {
            *name = self.names.share(name);
        }
        let mut frames = frames.into_iter();
        let innermost = frames.next();
        let is_inlined = innermost.as_ref().is_some_and(|frame| frame.is_inlined);
        let callers = if is_inlined { frames.take(CALLERS_MAX).collect() } else { Vec::new() };
        Code { innermost, callers, call }
    }

    /// The functions at an address: several if the linker folded them, and Rust modules if no function is known.
    fn functions(
        &mut self,
        module: usize,
        address: u64,
        code: &Code,
        sites: &[&Site],
        is_folded: bool,
    ) -> Vec<Arc<str>> {
        let innermost = code.innermost.as_ref();
        let mut functions = match innermost.and_then(|frame| frame.function.clone()) {
            Some(function) => {
                let is_inlined = innermost.is_some_and(|frame| frame.is_inlined);
                let has_namesakes = is_folded && !is_inlined;
                let namesakes =
                    if has_namesakes { self.resolver.namesakes(module, address) } else { Vec::new() };
                if namesakes.is_empty() {
                    vec![function]
                } else {
                    namesakes.into_iter().map(Into::into).collect()
                }
            }
            None => modules(sites),
        };
        if functions.len() > MARKS_MAX {
            functions.truncate(MARKS_MAX);
            functions.push("...".into());
        }
        functions
    }
}

/// What debug information says of an address.
#[derive(Default)]
struct Code {
    innermost: Option<Frame>,
    /// The functions into which the innermost one was inlined.
    callers: Vec<Frame>,
    /// The source of the call of a wrapper.
    call: Option<(Arc<str>, u32)>,
}

/// The source of a location, followed by the sources of other marks that the linker folded into its mark.
///
/// The call of a wrapper comes first. Otherwise the notes of sites are exact, and debug information is used where
/// there is no site: it may spell the path differently.
fn sources(code: &Code, sites: &[&Site]) -> Vec<(Arc<str>, u32)> {
    if let Some(call) = &code.call {
        return vec![call.clone()];
    }
    let mut noted: Vec<(Arc<str>, u32)> = Vec::new();
    for site in sites {
        if !noted.iter().any(|(file, line)| *file == site.file && *line == site.line) {
            noted.push((site.file.clone(), site.line));
        }
    }
    if noted.is_empty() {
        let from_frame = |frame: &Frame| Some((frame.file.clone()?, frame.line?));
        noted.extend(code.innermost.as_ref().and_then(from_frame));
    }
    noted
}

/// The Rust modules of marks, as `path::?`: they stand for functions that are not known.
fn modules(sites: &[&Site]) -> Vec<Arc<str>> {
    let paths = sites.iter().map(|site| &site.module_path).filter(|path| !path.is_empty());
    let mut modules: Vec<Arc<str>> = paths.map(|path| format!("{path}::?").into()).collect();
    modules.dedup();
    if modules.is_empty() { vec![UNKNOWN.into()] } else { modules }
}
