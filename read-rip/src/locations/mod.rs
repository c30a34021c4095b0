//! PCs become locations: a site's file and line from the ring, function and inlined callers from debug information.
//!
//! Each distinct PC is looked up once. The ring's own sites answer where a mark is, also without the program;
//! what its debug information adds is the function. Nothing is printed here.

mod meaning;
mod module_map;
mod wrapper;

use std::borrow::Cow;
use std::collections::HashMap;

use crate::events::Event;
use crate::ring::{OperandType, Site, Slot, Snapshot};
use crate::symbols::{Frame, Resolver};
use meaning::Marks;
use module_map::ModuleMap;

pub use meaning::{MARKS_MAX, Meaning};

/// Where a PC is.
#[derive(Clone, Debug, Default)]
pub struct Location {
    /// Actual address, as it was recorded.
    pub pc: u64,
    /// Index of the module that it is in.
    pub module: Option<usize>,
    /// Module-relative address; the actual one when no module is known.
    pub address: u64,
    /// Indices of the sites there, of those that say the same the first. More than one: the linker folded functions whose
    /// instructions are equal. More than [`MARKS_MAX`]: there are others.
    pub sites: Vec<usize>,
    /// Function that the mark is in, the innermost, without type arguments. Of several that the linker folded one, or, as
    /// far as symbols tell, all.
    pub function: String,
    /// The same with its type arguments.
    pub full_function: String,
    /// Source file and line.
    pub source: Option<(String, u32)>,
    /// Other lines with marks that the linker has made one with this: which of them was passed is not known.
    pub folded: Vec<(String, u32)>,
    /// The marks there say different things, so that it is not known what was done.
    pub is_ambiguous: bool,
    /// What the function was inlined into, innermost first: the caller's function, file and line.
    pub callers: Vec<Frame>,
    /// The source is that of a wrapper, because it is not known where that was called.
    pub is_in_wrapper: bool,
}

impl Location {
    /// The nearest that the function was inlined into and that is not the standard library, which says nothing.
    pub fn caller(&self) -> Option<&Frame> {
        self.callers.iter().find(|caller| !caller.file.as_deref().is_some_and(wrapper::is_standard))
    }
}

/// An index into [`Locations`].
pub type LocationId = usize;

/// All locations that were asked for.
pub struct Locations<'a> {
    snapshot: &'a Snapshot,
    modules: ModuleMap,
    sites: HashMap<(usize, u64), Marks<'a>>,
    by_pc: HashMap<(u32, u64), LocationId>,
    locations: Vec<Location>,
    resolver: Resolver,
}

impl<'a> Locations<'a> {
    /// Looks nothing up yet. `resolver` was made for the snapshot's modules.
    pub fn new(snapshot: &'a Snapshot, resolver: Resolver) -> Locations<'a> {
        let mut sites: HashMap<_, Marks<'_>> = HashMap::new();
        for (index, site) in snapshot.sites.iter().enumerate() {
            let marks = sites.entry((site.module, site.pc)).or_insert_with(|| Marks::of(site));
            marks.add(index, &snapshot.sites);
        }
        Locations {
            snapshot,
            modules: ModuleMap::new(&snapshot.modules),
            sites,
            by_pc: HashMap::new(),
            locations: Vec::new(),
            resolver,
        }
    }

    /// The location of an event: where its mark is, or the call that it stands in for.
    pub fn find(&mut self, slot: &Slot, event: &Event) -> LocationId {
        match self.operand(slot, event, OperandType::Caller) {
            Some(caller) => self.find_call(slot.pid, caller),
            None => self.find_in(slot.pid, event.pc),
        }
    }

    /// The location of a mark's PC in a process.
    pub fn find_in(&mut self, pid: u32, pc: u64) -> LocationId {
        self.find_at(pid, pc, pc)
    }

    /// The location of the call that returns to an address: the call itself lies before it, and what is behind may be
    /// another line's, or another function's.
    pub fn find_call(&mut self, pid: u32, return_address: u64) -> LocationId {
        self.find_at(pid, return_address, return_address.wrapping_sub(1))
    }

    fn find_at(&mut self, pid: u32, pc: u64, looked_up: u64) -> LocationId {
        if let Some(&location) = self.by_pc.get(&(pid, looked_up)) {
            return location;
        }
        let location = Location { pc, ..self.look_up(pid, looked_up) };
        let id = self.locations.len();
        self.locations.push(location);
        self.by_pc.insert((pid, looked_up), id);
        id
    }

    /// A location that [`find`](Locations::find) has found.
    pub fn get(&self, id: LocationId) -> &Location {
        &self.locations[id]
    }

    /// All locations that were found.
    pub fn iter(&self) -> impl Iterator<Item = &Location> {
        self.locations.iter()
    }

    /// A site of the snapshot.
    pub fn site(&self, index: usize) -> &'a Site {
        &self.snapshot.sites[index]
    }

    /// What the marks at a PC of a process say; `None` where there are none.
    pub fn meaning(&self, pid: u32, pc: u64) -> Option<&Meaning<'a>> {
        self.sites.get(&self.module_of(pid, pc)?).map(|marks| &marks.meaning)
    }

    /// How many operand words precede this PC in an event. 0 for locations without a site.
    pub fn operand_words(&self, pid: u32, pc: u64) -> u32 {
        self.meaning(pid, pc).and_then(|meaning| meaning.operand_words).unwrap_or(0)
    }

    /// Which lock an event of a slot is about, if it is about one.
    pub fn lock_of(&self, slot: &Slot, event: &Event) -> Option<u64> {
        self.operand(slot, event, OperandType::Lock)
    }

    /// The first operand of this type, of those that take one word.
    fn operand(&self, slot: &Slot, event: &Event, operand_type: OperandType) -> Option<u64> {
        if event.operands.is_empty() {
            return None;
        }
        let types = self.meaning(slot.pid, event.pc)?.operand_types?;
        let lock = types.iter().position(|&operand| operand == operand_type)?;
        let before: u32 = types[..lock].iter().filter_map(|operand| operand.words()).sum();
        let at = event.operands.start + before as usize;
        slot.words.get(at).filter(|_| event.operands.contains(&at)).map(|word| word.payload())
    }

    /// The name that its process gave to a lock.
    pub fn given_name(&self, pid: u32, lock: u64) -> Option<&'a str> {
        self.snapshot.lock_names.get(&(pid, lock)).map(String::as_str)
    }

    /// What static an actual address lies in, as `SYMBOL` or, behind its begin, `SYMBOL+0x10`.
    pub fn symbol_of(&mut self, pid: u32, address: u64) -> Option<String> {
        let (module, address) = self.module_of(pid, address)?;
        let (symbol, offset) = self.resolver.datum(module, address)?;
        Some(if offset == 0 { symbol } else { format!("{symbol}+{offset:#x}") })
    }

    /// Which modules could not be used for symbols, and why.
    pub fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    /// The module that an actual address is in, and the address relative to it.
    fn module_of(&self, pid: u32, pc: u64) -> Option<(usize, u64)> {
        let module = self.modules.find(pid, pc)?;
        Some((module, self.snapshot.modules[module].relative(pc)?))
    }

    fn look_up(&mut self, pid: u32, pc: u64) -> Location {
        let Some((module, address)) = self.module_of(pid, pc) else {
            return Location {
                pc,
                address: pc,
                function: "unknown".into(),
                full_function: "unknown".into(),
                ..Location::default()
            };
        };
        let marks = self.sites.get(&(module, address));
        let meaning = marks.map(|marks| marks.meaning);
        let indices = marks.map(|marks| marks.different.clone()).unwrap_or_default();
        let sites: Vec<&Site> = indices.iter().take(MARKS_MAX).map(|&at| &self.snapshot.sites[at]).collect();
        let site = sites.first().copied();
        let mut frames = self.resolver.resolve(module, address);
        let is_wrapper = meaning.is_some_and(|meaning| meaning.flags().is_wrapper());
        // Where no mark is, there is a call. Only a mark by hand is in the function that it is to tell of.
        let is_by_hand = site.is_some() && !is_wrapper;
        let wrapper_file = site.map(|site| site.file.as_str());
        let called_from = if is_by_hand { None } else { wrapper::leave(&mut frames, wrapper_file) };
        let is_in_wrapper = is_wrapper && called_from.is_none();
        let mut frames = frames.into_iter();
        let innermost = frames.next();
        let function = innermost.as_ref().and_then(|frame| frame.function.clone());
        // The note is exact; debug information says the same where it is there, in the compiler's spelling.
        let mut noted: Vec<(String, u32)> = Vec::new();
        for site in sites.iter().filter(|_| called_from.is_none()) {
            if !noted.iter().any(|(file, line)| *file == site.file && *line == site.line) {
                noted.push((site.file.clone(), site.line));
            }
        }
        let mut noted = noted.into_iter();
        let source = called_from.or_else(|| noted.next()).or_else(|| {
            let frame = innermost.as_ref()?;
            Some((frame.file.clone()?, frame.line?))
        });
        let folded: Vec<(String, u32)> = noted.collect();
        let is_inlined = innermost.is_some_and(|frame| frame.is_inlined);
        let callers = if is_inlined { frames.collect() } else { Vec::new() };
        let namesakes = match &function {
            Some(_) if !folded.is_empty() && !is_inlined => self.resolver.namesakes(module, address),
            _ => Vec::new(),
        };
        let mut functions = match function {
            Some(function) if namesakes.is_empty() => vec![function],
            Some(_) => namesakes,
            None => modules(&sites),
        };
        if functions.len() > MARKS_MAX {
            functions.truncate(MARKS_MAX);
            functions.push("...".into());
        }
        let short: Vec<Cow<'_, str>> = functions.iter().map(|function| without_arguments(function)).collect();
        Location {
            pc,
            module: Some(module),
            address,
            sites: indices,
            function: short.join("|"),
            full_function: functions.join("|"),
            source,
            folded,
            is_ambiguous: meaning.is_some_and(|meaning| meaning.is_ambiguous()),
            callers,
            is_in_wrapper,
        }
    }
}

/// Not the functions of marks, but their Rust modules, and marked as such.
fn modules(sites: &[&Site]) -> Vec<String> {
    let paths = sites.iter().map(|site| &site.module_path).filter(|path| !path.is_empty());
    let mut modules: Vec<String> = paths.map(|path| format!("{path}::?")).collect();
    modules.dedup();
    if modules.is_empty() { vec!["unknown".into()] } else { modules }
}

/// A function's name without type arguments: `lock<Cache, F>` is `lock`, `<A as B>::c` stays.
fn without_arguments(function: &str) -> Cow<'_, str> {
    if !function.contains('<') {
        return Cow::Borrowed(function);
    }
    let mut short = String::with_capacity(function.len());
    // How many open brackets are left out; the first kind that is kept ends nothing.
    let mut depth = 0usize;
    let mut previous = ' ';
    for letter in function.chars() {
        // An arrow is no bracket; neither are operators such as `operator<`.
        let is_arrow = letter == '>' && previous == '-';
        let begins_arguments = previous.is_alphanumeric() || matches!(previous, '_' | ':' | '}');
        if depth > 0 {
            match letter {
                '<' => depth += 1,
                '>' if !is_arrow => depth -= 1,
                _ => {}
            }
        } else if letter == '<' && begins_arguments && !short.ends_with("operator") {
            depth = 1;
            while short.ends_with(':') {
                short.pop();
            }
        } else {
            short.push(letter);
        }
        previous = letter;
    }
    // Brackets that do not match: better the whole name than half of one.
    if depth > 0 { Cow::Borrowed(function) } else { Cow::Owned(short) }
}

/// Short names for source files: the last component, and as many before it as it takes to tell two apart.
#[derive(Debug, Default)]
pub struct FileNames(HashMap<String, String>);

impl FileNames {
    /// Chooses names for all files of these locations.
    pub fn choose<'p>(locations: impl Iterator<Item = &'p Location>) -> FileNames {
        let mut files: Vec<&str> = locations
            .flat_map(|location| {
                let own = location.source.iter().chain(&location.folded).map(|(file, _)| file.as_str());
                own.chain(location.caller().and_then(|caller| caller.file.as_deref()))
            })
            .collect();
        files.sort_unstable();
        files.dedup();
        // Nobody reads longer ones, and there can be many files.
        const COMPONENTS_MAX: usize = 16;
        let suffixes = |file: &'p str| {
            let short = file.rmatch_indices('/').map(move |(at, _)| &file[at + 1..]).take(COMPONENTS_MAX);
            short.filter(|name| !name.is_empty()).chain([file])
        };
        let mut by_suffix: HashMap<&str, Vec<&str>> = HashMap::new();
        for &file in &files {
            for suffix in suffixes(file) {
                by_suffix.entry(suffix).or_default().push(file);
            }
        }
        let names = files.iter().map(|&file| {
            // Two spellings of one file (relative in a note, absolute in debug information) are no conflict.
            let is_unique = |name: &&str| {
                let alike = by_suffix.get(name).into_iter().flatten();
                alike.into_iter().all(|other| ends_with_path(other, file) || ends_with_path(file, other))
            };
            let name = suffixes(file).find(is_unique).unwrap_or(file);
            (file.to_owned(), name.to_owned())
        });
        FileNames(names.collect())
    }

    /// The name chosen for a file; the file itself if it was not among the locations.
    pub fn get<'a>(&'a self, file: &'a str) -> &'a str {
        self.0.get(file).map_or(file, String::as_str)
    }
}

fn ends_with_path(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/') || end.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(file: &str) -> Location {
        Location { source: Some((file.into(), 1)), ..Location::default() }
    }

    #[test]
    fn file_names_are_as_short_as_they_can_be() {
        let locations = ["src/cache/mod.rs", "src/net/mod.rs", "src/main.rs", "/home/a/src/main.rs", "x.c"];
        let locations: Vec<Location> = locations.into_iter().map(location).collect();
        let names = FileNames::choose(locations.iter());
        assert_eq!(names.get("src/cache/mod.rs"), "cache/mod.rs");
        assert_eq!(names.get("src/net/mod.rs"), "net/mod.rs");
        assert_eq!(names.get("src/main.rs"), "main.rs");
        assert_eq!(names.get("/home/a/src/main.rs"), "main.rs");
        assert_eq!(names.get("x.c"), "x.c");
    }

    #[test]
    fn type_arguments_are_left_out() {
        for (whole, short) in [
            ("main", "main"),
            ("lock<Cache, a::{closure_env#0}>", "lock"),
            ("{closure#0}<Cache>", "{closure#0}"),
            ("a::b::<i32>::c", "a::b::c"),
            ("<A<B> as C<D>>::c", "<A as C>::c"),
            ("std::map<int, std::less<int> >::find(int)", "std::map::find(int)"),
            ("f<fn() -> i32>::g", "f::g"),
            ("operator<", "operator<"),
            ("broken<a", "broken<a"),
        ] {
            assert_eq!(without_arguments(whole), short);
        }
    }
}
