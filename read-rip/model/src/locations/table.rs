//! The table of locations: each distinct PC is looked up once.
//!
//! File and line of a mark come from the ring's sites, even without the program. Debug information adds the
//! function and the inlined callers; `symbols` reads it. `look_up` looks up a PC, and `operands` reads the operands of
//! an event. Nothing is printed here.

use foldhash::HashMap;
use read_rip_evidence::runtimes::SourceFrame;
use read_rip_files::Module;
use read_rip_ring::events::Event;
use read_rip_ring::{Home, OperandType, OperandWords, Site, Slot, Snapshot, StaticTexts, call_location};
use read_rip_symbols::{Frame, Resolver, Whose};

use super::calls::{self, Calls};
use super::meaning::{Marks, Meaning};
use super::module_map::ModuleMap;
use super::shared_names::SharedNames;
use super::users_line::{is_users_function, is_users_line};
use super::wrapper::is_same_file;
use super::{Location, LocationId};

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
    pub(super) snapshot: &'a Snapshot,
    modules: ModuleMap,
    sites: HashMap<(Home, u64), Marks<'a>>,
    /// The sites of all processes, by their actual address.
    of_any_process: HashMap<u64, Marks<'a>>,
    pub(super) calls: Calls<'a>,
    /// By process, address and the location of a wrapper's caller, which is 0 where the address says it all.
    by_pc: HashMap<(u32, u64, u64), LocationId>,
    /// The statics that locks are in. `None`: in none that is known.
    lock_symbols: HashMap<(u32, u64), Option<String>>,
    locations: Vec<Location>,
    /// Releases by their own location and that of the acquisition.
    of_guards: HashMap<(LocationId, LocationId), LocationId>,
    /// Places by those of native stacks and by the frames that a language's runtime has.
    pub(super) by_interior: HashMap<(Option<LocationId>, Box<[SourceFrame]>), LocationId>,
    /// Calls by their own location and the return addresses further out.
    by_calls: HashMap<(LocationId, Vec<u64>), LocationId>,
    /// Whether the call that returns to an address of a module calls the function of another address.
    proofs: HashMap<(At, At), bool>,
    pub(super) names: SharedNames,
    pub(super) resolver: Resolver,
}
/// At most this many calls further out that words of a stack prove are looked up.
const OUTER_MAX: usize = 4;

/// A module, and an address in it.
type At = (usize, u64);

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
            by_interior: HashMap::default(),
            by_calls: HashMap::default(),
            proofs: HashMap::default(),
            names: SharedNames::default(),
            resolver,
        }
    }

    pub fn modules(&self) -> &[Module] {
        &self.snapshot.modules
    }

    /// The location of an event: its mark, the caller that its wrapper names, or the call that an interposer recorded.
    pub fn find(&mut self, slot: &Slot, event: &Event) -> LocationId {
        match self.operand(slot, event, OperandType::Caller) {
            Some(caller) => {
                let at = self.find_call(slot.pid, caller);
                let stack = self.stack(slot, event);
                self.called_from(slot.pid, at, caller.wrapping_sub(1), &stack, false)
            }
            None => {
                let caller = self.operand(slot, event, OperandType::Location).unwrap_or(0);
                let at = self.find_at(slot.pid, event.pc, event.pc, caller);
                if self.locations[at].tells_users_line() {
                    return at;
                }
                // The mark is in the function that the wrapper was inlined into.
                let stack = self.stack(slot, event);
                self.called_from(slot.pid, at, event.pc, &stack, true)
            }
        }
    }

    /// The location of a mark or of a wrapper's call, by its PC in a process.
    pub fn find_in(&mut self, pid: u32, pc: u64) -> LocationId {
        self.find_at(pid, pc, pc, 0)
    }

    /// The place in the source that a constant of the program names, by the address of that constant.
    pub fn find_location(&mut self, pid: u32, address: u64) -> LocationId {
        self.find_at(pid, address, address, 0)
    }

    /// The location of the call that returns to an address. The call is before that address. The code at the
    /// address may belong to another line, or to another function.
    pub(crate) fn find_call(&mut self, pid: u32, return_address: u64) -> LocationId {
        self.find_at(pid, return_address, return_address.wrapping_sub(1), 0)
    }

    fn find_at(&mut self, pid: u32, pc: u64, looked_up: u64, caller: u64) -> LocationId {
        if let Some(&location) = self.by_pc.get(&(pid, looked_up, caller)) {
            return location;
        }
        let mut location = if self.is_call(pid, looked_up) {
            self.look_up_call(pid, looked_up)
        } else {
            let location = Location { pc, ..self.look_up(pid, looked_up) };
            let code_begin = location.module.filter(|_| location.has_shared_name());
            let code_begin =
                code_begin.and_then(|module| self.resolver.function_begin(module, location.address));
            Location { code_begin, ..location }
        };
        if caller != 0 {
            self.name_caller(&mut location, pid, caller);
        }
        location.whose = self.whose(&location);
        let id = self.locations.len();
        self.locations.push(location);
        self.by_pc.insert((pid, looked_up, caller), id);
        id
    }

    /// Adds a location that no address leads to.
    pub(super) fn add(&mut self, location: Location) -> LocationId {
        self.locations.push(location);
        self.locations.len() - 1
    }

    /// A location, with the calls further out that the words of a stack prove. `callee` is an address in the function
    /// of which callers are wanted: in that of a mark, or the call that an interposer recorded.
    fn called_from(
        &mut self,
        pid: u32,
        at: LocationId,
        mut callee: u64,
        stack: &[u64],
        is_of_wrapper: bool,
    ) -> LocationId {
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
        self.with_calls(pid, at, proven, is_of_wrapper)
    }

    /// A location with calls further out, by their return addresses. `is_own_among`: whether the location's own line
    /// may be among them.
    pub(super) fn with_calls(
        &mut self,
        pid: u32,
        at: LocationId,
        calls: Vec<u64>,
        is_own_among: bool,
    ) -> LocationId {
        let key = (at, calls);
        if let Some(&known) = self.by_calls.get(&key) {
            return known;
        }
        let has_line = self.locations[at].has_users_line();
        let (mut outer, mut users_call, mut named) = (Vec::new(), None, None);
        for &word in &key.1 {
            let frames = self.frames_of_call(pid, word);
            if !has_line && users_call.is_none() && frames.iter().any(is_users_line) {
                users_call = self.module_of(pid, word.wrapping_sub(1));
            }
            if named.is_none() && frames.iter().any(is_users_function) {
                named = self.module_of(pid, word.wrapping_sub(1));
            }
            outer.extend(frames);
        }
        let own = &self.locations[at];
        let users_call = users_call.or(named.filter(|_| !own.whose.may_be_users()));
        // The location is the line of a call, which one of these is, if a wrapper was not inlined there.
        let is_own = |frame: &Frame| {
            own.source.as_ref().is_some_and(|(file, line)| {
                let is_file = |whole: &str| is_same_file(whole, file) || is_same_file(file, whole);
                frame.line == Some(*line) && frame.file.as_deref().is_some_and(is_file)
            })
        };
        if let Some(own) = outer.iter().position(is_own).filter(|_| is_own_among) {
            outer.drain(..=own);
        }
        self.locations.push(Location { outer, users_call, ..self.locations[at].clone() });
        let id = self.locations.len() - 1;
        self.by_calls.insert(key, id);
        id
    }

    fn whose(&mut self, location: &Location) -> Whose {
        let function = Some(&*location.full_function).filter(|_| !location.has_no_function());
        let file = location.source.as_ref().map(|(file, _)| &**file);
        match location.module {
            Some(module) => self.resolver.whose(module, function, file),
            None => Whose::of(function, file, &Whose::Unknown),
        }
    }

    /// Whether a word of a stack is the return address of a call of the function that `callee` is in: of a direct one,
    /// or of one by the name of that function from another module.
    fn is_call_of(&mut self, pid: u32, word: u64, callee: u64) -> bool {
        let (Some((home, address)), Some((module, callee))) =
            (self.module_of(pid, word), self.module_of(pid, callee))
        else {
            return false;
        };
        let resolver = &mut self.resolver;
        *self.proofs.entry(((home, address), (module, callee))).or_insert_with(|| {
            let target = resolver.call_target(home, address).filter(|_| home == module);
            let is_direct = target.is_some() && target == resolver.function_begin(module, callee);
            let mut by_name = || resolver.called_import(home, address);
            is_direct || by_name().is_some_and(|name| resolver.namesakes(module, callee).contains(&name))
        })
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
    pub(super) fn marks(&self, pid: u32, pc: u64) -> Option<&Marks<'a>> {
        let of_module = self.module_of(pid, pc);
        of_module
            .and_then(|(module, address)| self.sites.get(&(Home::Module(module), address)))
            .or_else(|| self.sites.get(&(Home::Process(pid), pc)))
            .or_else(|| self.of_any_process.get(&pc))
    }

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
        let (file, _) = location.users_source()?;
        let (module, address) = match location.users_call {
            Some(call) => call,
            None => (location.module?, location.address),
        };
        if let Some(md5) = self.resolver.source_md5(module, address, file) {
            return Some(SourceProof::Md5(md5));
        }
        let built_ns = self.snapshot.modules[module].modified_ns;
        (built_ns > 0).then_some(SourceProof::NotNewerThan(built_ns))
    }

    pub fn site(&self, index: usize) -> &'a Site {
        &self.snapshot.sites[index]
    }

    /// The index of the site at a PC of a process, if there is one. If the linker folded several: any of them.
    pub fn site_at(&self, pid: u32, pc: u64) -> Option<usize> {
        self.marks(pid, pc)?.different.first().copied()
    }

    pub fn static_texts(&self) -> &'a StaticTexts {
        &self.snapshot.static_texts
    }

    /// The class of the lock that the marks at a location use, if they say one and agree on it.
    pub(crate) fn lock_class(&self, id: LocationId) -> Option<&'a str> {
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

    /// The name that its process gave to a lock.
    pub(crate) fn given_name(&self, pid: u32, lock: u64) -> Option<&'a str> {
        self.snapshot.lock_names.get(&(pid, lock)).map(String::as_str)
    }

    /// The static that covers an actual address, as `SYMBOL` or, after its start, `SYMBOL+0x10`.
    pub fn symbol_of(&mut self, pid: u32, address: u64) -> Option<String> {
        let (module, address) = self.module_of(pid, address)?;
        let (symbol, offset) = self.resolver.static_at(module, address)?;
        Some(if offset == 0 { symbol } else { format!("{symbol}+{offset:#x}") })
    }

    /// The crates of the packages of which the program's own file is made, sorted, as far as its constants tell.
    pub fn packages(&mut self) -> Vec<String> {
        let program = self.snapshot.modules.iter().position(|module| module.is_executable);
        program.map(|module| self.resolver.packages(module).to_vec()).unwrap_or_default()
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
}
