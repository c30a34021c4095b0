//! What threads, locks and locations are called in texts for people.
//!
//! These names are short, and depend on what else is in the ring. JSON and suppressions do not use them, but the full
//! names.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use read_rip_evidence::standing::Standings;
use read_rip_evidence::target::Region;
use read_rip_model::findings::{Names, members};
use read_rip_model::locations::{
    FileNames, Location, LocationId, Locations, MARKS_MAX, Spot, without_arguments,
};
use read_rip_model::locks::{Lock, LockId, LockModel, LockName, Object, Seen, ThreadId};
use read_rip_ring::{LockType, task_number};

use super::activity::ActivityWords;
use crate::printable;

/// Where a mark is, as `file:line`. An address follows if several marks have the same `file:line`.
#[derive(Debug)]
pub struct LocationTexts {
    names: FileNames,
    /// How many addresses each `file:line` has, by the hash of that text: the texts can be long.
    addresses: HashMap<u64, usize>,
    pub(super) is_verbose: bool,
}

pub fn location_texts(locations: &Locations<'_>, names: FileNames, is_verbose: bool) -> LocationTexts {
    let mut texts = LocationTexts { names, addresses: HashMap::new(), is_verbose };
    // Others with the same mark differ in their callers only.
    for location in locations.iter().filter(|location| location.outer.is_empty()) {
        if let Some(line) = texts.line(location) {
            *texts.addresses.entry(hash(&line)).or_default() += 1;
        }
    }
    texts
}

impl LocationTexts {
    /// The short name of a source file.
    pub fn file<'f>(&'f self, file: &'f str) -> &'f str {
        self.names.get(file)
    }

    pub fn source_line(&self, file: &str, line: u32) -> String {
        format!("{}:{line}", printable(self.names.get(file)))
    }

    /// The line of the user, or with `-v` the innermost one.
    fn line(&self, location: &Location) -> Option<String> {
        let users = location.users_line();
        if users.index > 0 && !self.is_verbose {
            return self.source(&users.at);
        }
        let (file, line) = location.source.as_ref()?;
        let one = |file, line| format!("{}:{line}", printable(self.names.get(file)));
        let mut all = one(file, line);
        for (file, line) in &location.folded {
            all += "|";
            all += &one(file, line);
        }
        if location.sites.len() > MARKS_MAX {
            all += "|...";
        }
        Some(match location.whose.package_or_language() {
            Some(package) => format!("{} {all}", printable(package)),
            None => all,
        })
    }

    /// `file:line`, after the package of a library.
    fn source(&self, spot: &Spot<'_>) -> Option<String> {
        let (file, line) = spot.source?;
        let line = format!("{}:{line}", printable(self.names.get(file)));
        Some(match spot.whose.package_or_language() {
            Some(package) => format!("{} {line}", printable(package)),
            None => line,
        })
    }

    /// `file:line`, `file:line<0xADDRESS>`, or `module+0xADDRESS` where no source is known.
    pub fn of(&self, location: &Location) -> String {
        match self.line(location) {
            None => match &location.module_name {
                Some(module) => format!("{}+{:#x}", printable(module), self.address(location)),
                None => format!("{:#x}", location.address),
            },
            Some(line)
                if self.is_verbose || self.addresses.get(&hash(&line)).is_some_and(|&count| count > 1) =>
            {
                format!("{line}<{:#x}>", location.address)
            }
            Some(line) => line,
        }
    }

    /// The address of the line, or of the user's function if that is in the same module.
    fn address(&self, location: &Location) -> u64 {
        let users_call = location.users_call.filter(|_| !self.is_verbose);
        users_call.filter(|&(module, _)| Some(module) == location.module).map_or(location.address, |of| of.1)
    }

    /// Like `of`, but with an address only where no source is known, or with `-v`: for text that distinguishes
    /// locations in another way.
    pub fn line_of(&self, location: &Location) -> String {
        match self.line(location) {
            // All calls of a wrapper have the line of the wrapper: the address distinguishes them.
            Some(line) if location.is_in_wrapper && location.users_line().index == 0 => {
                format!("{line}<{:#x}>", location.address)
            }
            Some(line) if !self.is_verbose => line,
            _ => self.of(location),
        }
    }

    /// The user's function that a mark was inlined into, and his calls further out, each as ` from file:line`. With
    /// `-v` all functions.
    pub(super) fn caller(&self, location: &Location) -> String {
        let all = location.spots().skip(1).filter(|_| self.is_verbose);
        let users = location.users_line();
        let users = users.inlined_into.into_iter().chain(users.callers).filter(|_| !self.is_verbose);
        self.from(all.chain(users))
    }

    /// The calls further out that a stack shows, each as ` from file:line`.
    pub(super) fn outer(&self, location: &Location) -> String {
        if self.is_verbose {
            return self.from(location.spots().skip(1 + location.callers.len()));
        }
        self.from(location.users_line().callers.into_iter())
    }

    fn from<'f>(&self, callers: impl Iterator<Item = Spot<'f>>) -> String {
        let mut text = String::new();
        for caller in callers {
            match self.source(&caller) {
                Some(line) => {
                    text += " from ";
                    text += &line;
                }
                None if !caller.function.is_empty() => {
                    text += &format!(" from {}", printable(caller.function));
                }
                None => {}
            }
        }
        text
    }
}

/// The function of a library that the user has called, with its package unless that begins its name: `insert of
/// dashmap`, `dashmap::DashMap::insert`.
pub(super) fn called_words(called: &Spot<'_>) -> String {
    let function = without_arguments(called.function);
    let package = called.whose.package().unwrap_or_default();
    let path = function.trim_start_matches('<');
    let is_in_name = path.strip_prefix(&package.replace('-', "_")).is_some_and(|rest| rest.starts_with("::"));
    match is_in_name || package.is_empty() {
        true => printable(&function).into_owned(),
        false => printable(&format!("{function} of {package}")).into_owned(),
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

pub fn lock_type(lock: &Lock) -> &'static str {
    match lock.nature.lock_type {
        LockType::Mutex if lock.has_permits() => "semaphore",
        LockType::Mutex => "mutex",
        LockType::RwLock => "rwlock",
        LockType::Spin => "spin lock",
        LockType::Semaphore => "semaphore",
        LockType::Barrier => "barrier",
        LockType::Message => "channel",
        LockType::Once => "initialisation",
        LockType::Wake => "parked thread",
        LockType::Notification => "notification",
        _ => "lock",
    }
}

/// `name[tid]` of a thread; `name[task 7]` or `task 7` of a task.
pub fn who(name: &str, tid: u32) -> String {
    let name = printable(name);
    match task_number(tid) {
        Some(number) if name.is_empty() => format!("task {number}"),
        Some(number) => format!("{name}[task {number}]"),
        None => format!("{name}[{tid}]"),
    }
}

/// What a thread or task waits for, after "waits" or "waiting": `for LOCK`, `on a condition variable, with LOCK`, `for
/// the end of THREAD`.
pub fn awaited_words(object: Object, names: &LockNames<'_>) -> String {
    let name = |lock| names.lock(&names.model.locks[lock]);
    match object {
        Object::Lock(lock) | Object::Unit(lock) => format!("for {}", name(lock)),
        Object::Condition(lock) => format!("on a condition variable, with {}", name(lock)),
        Object::End(joined) => format!("for the end of {}", names.thread(joined)),
    }
}

/// What a lock is called in a sentence. The kinds of locks proper are all called locks.
fn noun(lock: &Lock) -> &'static str {
    match lock.nature.lock_type {
        LockType::Mutex if lock.has_permits() => "semaphore",
        LockType::Once | LockType::Message | LockType::Barrier | LockType::Wake | LockType::Notification => {
            lock_type(lock)
        }
        _ => "lock",
    }
}

/// Threads, locks and locations, and what they are called.
#[derive(Clone, Copy)]
pub struct LockNames<'a> {
    pub model: &'a LockModel,
    pub locations: &'a Locations<'a>,
    pub texts: &'a LocationTexts,
    /// What the kernel and the memory say of the threads, if they were asked.
    pub seen: Option<SeenNames<'a>>,
}

/// What the kernel and the memory say of threads, and what their objects are called.
#[derive(Clone, Copy)]
pub struct SeenNames<'a> {
    /// The threads of the first process that was asked about.
    pub standings: &'a Standings,
    pub others: &'a [Standings],
    /// Names of the objects that threads wait for, by their addresses.
    pub objects: &'a HashMap<u64, ObjectName>,
}

impl<'a> SeenNames<'a> {
    /// The threads of the process that has this one.
    pub fn of(&self, seen: &Seen) -> &'a Standings {
        (seen.process as usize).checked_sub(1).and_then(|at| self.others.get(at)).unwrap_or(self.standings)
    }
}

/// What an object that a thread waits for is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectName {
    /// The static that it is in.
    Symbol {
        name: String,
        /// Whether another of these objects has the same name.
        has_namesakes: bool,
    },
    /// The kind of memory that it is in.
    Region(Region),
}

impl<'a> LockNames<'a> {
    /// The name of a lock without any addition, and where it comes from.
    pub(super) fn origin(&self, name: &'a LockName) -> Option<(&'a str, &'static str)> {
        match name {
            LockName::Given(name) => Some((name, "given")),
            LockName::Symbol(name) => Some((name, "symbol")),
            LockName::Location(id) => {
                let function = &*self.locations.get(*id).function;
                (!function.is_empty()).then_some((function, "location"))
            }
            LockName::None => None,
        }
    }

    /// What a lock is called: its name, the static that it is in, its class, or where it was acquired first.
    pub fn lock(&self, lock: &Lock) -> String {
        match (&lock.name, lock.class.as_deref().map(printable)) {
            (LockName::Given(name) | LockName::Symbol(name), class) => {
                let name = printable(name);
                // The class may be the expression that the caller has for the lock: its name says more then.
                match class.filter(|class| !class.contains(&*name)) {
                    Some(class) => format!("{name} (class {class})"),
                    None => name.into_owned(),
                }
            }
            (_, Some(class)) => class.into_owned(),
            (LockName::Location(location), None) => {
                format!("{} of {}", noun(lock), self.location(*location))
            }
            (LockName::None, None) => {
                let region = self.region_of(lock).map_or_else(String::new, |region| format!(" ({region})"));
                format!("{} {:#x}{region}", noun(lock), lock.address)
            }
        }
    }

    /// What kind of memory a lock is in, where no file is mapped: `heap`.
    pub(super) fn region_of(&self, lock: &Lock) -> Option<&'static str> {
        let seen = self.seen.filter(|seen| seen.standings.target.own_pid == lock.pid)?;
        match seen.objects.get(&lock.address)? {
            ObjectName::Region(region) => Some(region.name()),
            ObjectName::Symbol { .. } => None,
        }
    }

    /// `name[tid]`, with the process where it is a forked one.
    pub fn thread(&self, id: ThreadId) -> String {
        let thread = &self.model.threads[id];
        let name = who(&thread.name, thread.tid);
        // A task without a name is known by the place where it was made.
        let made_at = thread.task.as_ref().filter(|_| thread.name.is_empty()).and_then(|task| task.made_at);
        let made_at = made_at.map(|made_at| format!(" of {}", self.line(made_at))).unwrap_or_default();
        if thread.pid == self.model.pid {
            format!("{name}{made_at}")
        } else {
            format!("{name}{made_at} of process {}", thread.pid)
        }
    }

    pub fn line(&self, id: LocationId) -> String {
        self.texts.line_of(self.locations.get(id))
    }

    /// `function file:line`, and ` from file:line` where that function was inlined. If the user's function has called a
    /// library, that function comes first: `insert of dashmap, called from fork_session main.rs:8`.
    pub fn location(&self, id: LocationId) -> String {
        let location = self.locations.get(id);
        let (line, caller) = (self.texts.line_of(location), self.texts.caller(location));
        let users = location.users_line();
        let is_users = users.index > 0 && !self.texts.is_verbose;
        let called = users.called.filter(|_| is_users).map(|called| called_words(&called));
        let called = called.map_or_else(String::new, |called| format!("{called}, called from "));
        let function = if is_users { users.at.function } else { &location.function };
        // A line or `module+0xADDRESS` says enough, and more than `{closure#0}` alone, as debug information has it.
        let is_unknown = if is_users { function.is_empty() } else { location.has_no_function() };
        let is_nameless = is_unknown || function.starts_with('{');
        if is_nameless && (users.at.source.is_some() || location.module_name.is_some()) {
            return format!("{called}{line}{caller}");
        }
        format!("{called}{} {line}{caller}", printable(&without_arguments(function)))
    }

    /// The name of a track, where the id stands beside: that of a thread, and of a task also its number.
    pub fn track(&self, id: ThreadId) -> String {
        let thread = &self.model.threads[id];
        if thread.task.is_some() { self.thread(id) } else { printable(&thread.name).into_owned() }
    }

    /// One thread by name, several by number; with `-v` all of them.
    pub(super) fn threads(&self, threads: &[ThreadId], is_verbose: bool) -> String {
        match threads {
            &[one] => self.thread(one),
            _ if is_verbose => {
                let names: Vec<String> = threads.iter().map(|&id| self.thread(id)).collect();
                format!("{} ({})", self.members(threads, threads.len()), names.join(", "))
            }
            _ => self.members(threads, threads.len()),
        }
    }

    /// See [`findings::members`](members).
    pub fn members(&self, known: &[ThreadId], all: usize) -> String {
        members(self.model, known, all)
    }
}

impl Names for LockNames<'_> {
    fn model(&self) -> &LockModel {
        self.model
    }

    fn thread(&self, id: ThreadId) -> String {
        self.thread(id)
    }

    fn lock(&self, id: LockId) -> String {
        self.lock(&self.model.locks[id])
    }

    fn location(&self, id: LocationId) -> String {
        self.location(id)
    }

    fn text(&self, raw: &str) -> String {
        printable(raw).into_owned()
    }

    fn source(&self, file: &str, line: u32) -> String {
        self.texts.source_line(file, line)
    }

    fn is_verbose(&self) -> bool {
        self.texts.is_verbose
    }

    fn doing(&self, thread: ThreadId) -> Option<String> {
        ActivityWords::new(self)?.sentence(thread)
    }

    fn contradiction(&self, thread: ThreadId) -> Option<String> {
        ActivityWords::new(self)?.contradiction(thread)
    }
}
