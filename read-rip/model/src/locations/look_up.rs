//! What a PC is: its location, by the ring's sites and by debug information.
//!
//! It looks up one PC. `table` keeps the locations, so that each PC is looked up once.

use std::borrow::Cow;
use std::sync::Arc;

use read_rip_ring::{Home, OperandType, Site, SiteKind, call_location};
use read_rip_symbols::{CallerLine, Frame};

use super::Location;
use super::calls::Caller;
use super::function_name::without_arguments;
use super::location::UNKNOWN;
use super::meaning::{MARKS_MAX, Meaning};
use super::table::Locations;
use super::wrapper::{is_same_file, remove_wrapper_frames};

/// At most this many of the functions into which one function was inlined are kept.
const CALLERS_MAX: usize = 100;

impl Locations<'_> {
    pub(super) fn look_up(&mut self, pid: u32, pc: u64) -> Location {
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
        let mut code = self.code_at(module, address, &sites, is_wrapper);
        if let Some((file, line)) = self.calls.copied(module, address) {
            // A guard of a standard library has called a lock. Who has called the guard, debug information may know.
            let is_around = self.resolver.whose(module, None, Some(file)).is_around_locks();
            if !is_around || code.innermost.as_ref().is_none_or(|frame| frame.line.is_none()) {
                code.begin_at(self.names.share(file), line);
            }
        }
        let is_in_wrapper = is_wrapper && code.call.is_none();
        let mut sources = sources(&code, &sites).into_iter();
        let source = sources.next();
        let folded: Vec<(Arc<str>, u32)> = sources.collect();
        let column = source.as_ref().and_then(|source| column(source, &code, &sites));
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
            column,
            folded,
            is_ambiguous: meaning.is_some_and(|meaning| meaning.is_ambiguous()),
            callers: code.callers,
            is_in_wrapper,
            sites: indices,
            ..Location::default()
        }
    }

    pub(super) fn look_up_call(&mut self, pid: u32, pc: u64) -> Location {
        let mut location = Location { pc, is_in_wrapper: true, ..Location::default() };
        self.name_caller(&mut location, pid, call_location(pc));
        location
    }

    /// The frames of a call, by its return address. If nothing is known of it, the module and the address are its name.
    pub(super) fn frames_of_call(&mut self, pid: u32, return_address: u64) -> Vec<Frame> {
        let mut frames = self.frames(pid, return_address.wrapping_sub(1));
        for name in frames.iter_mut().flat_map(|frame| [&mut frame.function, &mut frame.file]).flatten() {
            *name = self.names.share(name);
        }
        frames
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

    /// Completes a location by its wrapper's caller, a location in the program.
    pub(super) fn name_caller(&mut self, location: &mut Location, pid: u32, caller: u64) {
        let Some((module, address)) = self.module_of(pid, caller) else { return };
        if location.module.is_none() {
            (location.module, location.address) = (Some(module), address);
            location.module_name = self.module_name(module);
        }
        let Some(CallerLine { file, line, column }) = self.calls.line(&mut self.resolver, module, address)
        else {
            return;
        };
        let is_known = !location.is_in_wrapper && location.source.is_some();
        if is_known && self.resolver.whose(module, None, Some(&file)).is_around_locks() {
            // The wrapper was called by a standard library, as an iterator over messages is. Debug information knows
            // more.
            return;
        }
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
        location.column = column;
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

impl Code {
    /// The place is this line of the program, although the code is of a header. Leaves out the functions of the header:
    /// all but the outermost one, if debug information does not know the line.
    fn begin_at(&mut self, file: Arc<str>, line: u32) {
        let is_file = |whole: &str| match file.strip_prefix("...") {
            Some(end) => whole.ends_with(end),
            None => is_same_file(whole, &file),
        };
        let is_there = |frame: &Frame| frame.line == Some(line) && frame.file.as_deref().is_some_and(is_file);
        let callers = std::mem::take(&mut self.callers);
        let mut frames: Vec<Frame> = self.innermost.take().into_iter().chain(callers).collect();
        let known = frames.iter().position(is_there);
        frames.drain(..known.unwrap_or(frames.len().saturating_sub(1)));
        let whole = known.and_then(|_| frames.first()?.file.clone());
        self.call = Some((whole.unwrap_or(file), line));
        let mut frames = frames.into_iter();
        (self.innermost, self.callers) = (frames.next(), frames.collect());
    }
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

/// The column of a source: that of the frame at its line, or else that of the only mark there.
fn column((file, line): &(Arc<str>, u32), code: &Code, sites: &[&Site]) -> Option<u32> {
    let is_file = |other: &str| is_same_file(other, file) || is_same_file(file, other);
    let frame = code.innermost.as_ref().filter(|frame| frame.line == Some(*line));
    let of_frame = frame.filter(|frame| frame.file.as_deref().is_some_and(is_file));
    let mut marks = sites.iter().filter(|site| site.line == *line && site.file == *file);
    let of_mark = || marks.next().filter(|_| sites.len() == 1).map(|site| site.column);
    of_frame.and_then(|frame| frame.column).or_else(of_mark).filter(|&column| column > 0)
}

/// The Rust modules of marks, as `path::?`: they stand for functions that are not known. A binding names the function.
fn modules(sites: &[&Site]) -> Vec<Arc<str>> {
    let paths = sites.iter().map(|site| &site.module_path).filter(|path| !path.is_empty());
    let name = |path: &Arc<str>| match path.strip_suffix("()") {
        Some(function) => function.into(),
        None => format!("{path}::?").into(),
    };
    let mut modules: Vec<Arc<str>> = paths.map(name).collect();
    modules.dedup();
    if modules.is_empty() { vec![UNKNOWN.into()] } else { modules }
}
