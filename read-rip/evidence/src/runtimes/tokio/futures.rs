//! Where a suspended task is: its future in memory, by the types that the debug information has.
//!
//! An async function is compiled to a type with one variant for each await. A number in it says in which it is
//! suspended, and the debug information says the line of the await and what is kept over it: the future that it awaits
//! (`__awaitee`), and the variables that live on. Among these may be guards of tokio's locks. The future that awaits a
//! lock has the address of the semaphore in it, and so has a guard.
//!
//! # Which guard lives
//!
//! The compiler keeps the place of a variable that was borrowed, even after it has been moved or dropped. Where a
//! variable is moved on one way and not on another, it keeps a flag, in a variable without a name: each call that may
//! panic is such a way, in programs whose panics unwind. So if no flag is unset, all guards live. If one is, it is not
//! known of which variable it is. Programs whose panics abort have too few flags.
//!
//! # Futures that were written by hand
//!
//! Between the task of a server and the function that handles a request lie futures of libraries, which poll others in
//! ways of their own. What such a future owns is searched for suspended async functions. The chain goes on in the one
//! that leads to code of the program. What has another shape ends the chain.

use std::sync::Arc;

use foldhash::HashMap;
use read_rip_symbols::{KnownTypes, Member, Type, TypeId, Types, Variant, Whose};

use super::places::{AwaitChain, AwaitStep, AwaitedLock, HeldLock, TokioLock, TokioLockKind};
use crate::target::Memory;

/// No chain is followed further.
const STEPS_MAX: usize = 64;
/// So many types are in one another around a number, a future or a semaphore, at most.
const WRAPPERS_MAX: usize = 10;
/// At most so many chains and locks are kept apart.
const CHAINS_MAX: usize = 10_000;
const LOCKS_MAX: usize = 100_000;
/// At most so many values of a task are looked at in futures that were written by hand.
const VALUES_MAX: usize = 8192;
/// At most so many values are looked at in a variable that may have a guard in it.
const VALUES_IN_VARIABLE_MAX: usize = 64;

/// Where a table of functions says how long a value is: after the function that drops it.
const VTABLE_LEN: u64 = 8;

const SEMAPHORE: &str = "tokio::sync::batch_semaphore::Semaphore";
const ACQUIRE: &str = "tokio::sync::batch_semaphore::Acquire";

/// How the types of guards and permits begin, what they are of, and whether nobody else has the lock meanwhile.
const GUARDS: &[(&str, TokioLockKind, bool)] = &[
    ("tokio::sync::mutex::MutexGuard<", TokioLockKind::Mutex, true),
    ("tokio::sync::mutex::OwnedMutexGuard<", TokioLockKind::Mutex, true),
    ("tokio::sync::mutex::MappedMutexGuard<", TokioLockKind::Mutex, true),
    ("tokio::sync::mutex::OwnedMappedMutexGuard<", TokioLockKind::Mutex, true),
    ("tokio::sync::rwlock::read_guard::RwLockReadGuard<", TokioLockKind::RwLock, false),
    ("tokio::sync::rwlock::owned_read_guard::OwnedRwLockReadGuard<", TokioLockKind::RwLock, false),
    ("tokio::sync::rwlock::write_guard::RwLockWriteGuard<", TokioLockKind::RwLock, true),
    ("tokio::sync::rwlock::owned_write_guard::OwnedRwLockWriteGuard<", TokioLockKind::RwLock, true),
    ("tokio::sync::rwlock::write_guard_mapped::RwLockMappedWriteGuard<", TokioLockKind::RwLock, true),
    (
        "tokio::sync::rwlock::owned_write_guard_mapped::OwnedRwLockMappedWriteGuard<",
        TokioLockKind::RwLock,
        true,
    ),
    ("tokio::sync::semaphore::SemaphorePermit", TokioLockKind::Semaphore, false),
    ("tokio::sync::semaphore::OwnedSemaphorePermit", TokioLockKind::Semaphore, false),
    ("deadpool::managed::object::Object<", TokioLockKind::Semaphore, false),
    ("sqlx_core::pool::connection::PoolConnection<", TokioLockKind::Semaphore, false),
];

/// How the async functions of tokio begin that await a lock.
const LOCKING: &[(&str, TokioLockKind)] = &[
    ("tokio::sync::mutex::", TokioLockKind::Mutex),
    ("tokio::sync::rwlock::", TokioLockKind::RwLock),
    ("tokio::sync::semaphore::", TokioLockKind::Semaphore),
];

/// Futures that poll one other future, where it is in them, and whether something else may wake them.
const AROUND: &[(&str, &str, bool)] = &[
    ("tokio::time::timeout::Timeout<", "value", true),
    ("tokio::task::coop::unconstrained::Unconstrained<", "inner", false),
    ("tokio::task::unconstrained::Unconstrained<", "inner", false),
    ("tracing::instrument::Instrumented<", "inner", false),
    ("librip::task::traced::Traced<", "future", false),
];

/// How types around a semaphore begin, and in which member it is.
const AROUND_SEMAPHORE: &[(&str, &str)] = &[
    ("alloc::sync::ArcInner<", "data"),
    ("alloc::sync::Arc<", "ptr"),
    ("alloc::sync::Weak<", "ptr"),
    ("core::ptr::non_null::NonNull<", "pointer"),
    ("deadpool::managed::pool::WeakPool<", "inner"),
    ("deadpool::managed::pool::PoolInner<", "semaphore"),
    ("sqlx_core::pool::inner::PoolInner<", "semaphore"),
    ("sqlx_core::sync::AsyncSemaphore", "inner"),
];

/// How types begin that others may share, or that may have no value: no future of the task is in these.
const SHARED: &[&str] =
    &["alloc::sync::", "alloc::rc::", "core::ptr::non_null::", "core::mem::maybe_uninit::"];

/// Types as they are asked for: from files, or those that were read before.
pub(super) trait Layouts {
    fn get(&mut self, id: TypeId) -> Option<Arc<Type>>;
    /// The type that a table of functions is of.
    fn of_vtable(&mut self, address: u64) -> Option<TypeId>;
}

impl Layouts for Types {
    fn get(&mut self, id: TypeId) -> Option<Arc<Type>> {
        Types::get(self, id)
    }

    fn of_vtable(&mut self, address: u64) -> Option<TypeId> {
        Types::of_vtable(self, address)
    }
}

impl Layouts for &KnownTypes {
    fn get(&mut self, id: TypeId) -> Option<Arc<Type>> {
        KnownTypes::get(self, id)
    }

    fn of_vtable(&mut self, address: u64) -> Option<TypeId> {
        KnownTypes::of_vtable(self, address)
    }
}

/// What is known of where tasks are: chains and locks, each once.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) chains: Vec<AwaitChain>,
    pub(super) locks: Vec<TokioLock>,
    by_chain: HashMap<AwaitChain, usize>,
    by_address: HashMap<u64, usize>,
}

/// Where a task is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) chain: Option<usize>,
    pub(super) awaits: Option<AwaitedLock>,
    pub(super) holds: Vec<HeldLock>,
}

#[derive(Clone, Debug)]
struct Value {
    address: u64,
    of: Arc<Type>,
}

/// The variable that a guard is in, the guard, what it is of, and whether it is the variable itself.
type Guard = (String, Value, (TokioLockKind, bool), bool);

/// What a walk has found on its way.
#[derive(Clone, Debug, Default)]
struct Path {
    chain: AwaitChain,
    awaits: Option<AwaitedLock>,
    holds: Vec<HeldLock>,
    /// Whether nothing else makes the task go on.
    is_alone: bool,
    /// What locks of the last function of tokio are.
    kind: Option<TokioLockKind>,
    /// Whether a function of the program's own is on it.
    is_users: bool,
}

/// A walk along the futures of tasks.
pub(super) struct Walk<'a> {
    pub(super) layouts: &'a mut dyn Layouts,
    pub(super) memory: &'a dyn Memory,
    pub(super) found: &'a mut Found,
    /// Whether the program's panics unwind.
    pub(super) unwinds: bool,
    /// How many more values of this task are looked at in futures that were written by hand.
    pub(super) left: usize,
}

impl Walk<'_> {
    /// Where the task is whose cell is at an address. `harness`: the type of what tokio polls it through; `trailer`:
    /// where its table of functions says that the trailer is.
    pub(super) fn place(&mut self, cell: u64, trailer: u64, harness: TypeId) -> Option<Place> {
        let future = self.future(cell, trailer, harness)?;
        let mut path = Path { is_alone: true, ..Path::default() };
        self.left = VALUES_MAX;
        self.follow(future, &mut path);
        if path.chain.steps.is_empty() {
            return None;
        }
        Some(Place { chain: self.found.chain(path.chain), awaits: path.awaits, holds: path.holds })
    }

    /// Goes from a future to the one that it awaits, and so on.
    fn follow(&mut self, future: Value, path: &mut Path) {
        let mut value = future;
        while path.chain.steps.len() < STEPS_MAX {
            if let Some(suspended) = self.suspended(&value) {
                let name = value.of.name.as_str();
                if let Some(&(_, of)) = LOCKING.iter().find(|(begin, _)| name.starts_with(begin)) {
                    path.kind = Some(of);
                }
                let step = path.chain.steps.len();
                let (variant, kept) = suspended;
                path.is_users |= variant.file.as_deref().is_some_and(is_users);
                path.chain.steps.push(AwaitStep {
                    function: function_of(name),
                    file: variant.file.as_deref().map(str::to_owned),
                    line: variant.line,
                });
                self.guards(&value, &kept, step, &mut path.holds);
                let Some(awaitee) = kept.of.member("__awaitee").cloned() else { break };
                let Some(next) = self.member(&kept, &awaitee) else { break };
                value = next;
                continue;
            }
            if let Some(inner) = self.within(&value, &mut path.is_alone) {
                value = inner;
                continue;
            }
            path.chain.awaited.clone_from(&value.of.name);
            path.chain.is_open = is_open(&value.of.name);
            if value.of.name == ACQUIRE {
                let is_alone = path.is_alone;
                path.awaits = self
                    .acquires(&value, path.kind.unwrap_or(TokioLockKind::Other))
                    .map(|(lock, permits)| AwaitedLock { lock, permits, is_alone });
            } else if let Some(further) = self.among(value, path) {
                *path = further;
            }
            break;
        }
    }

    /// Where the walk comes to through a future that was written by hand: to the one async function in it that leads to
    /// code of the program's own, or to the only one. `None` if there are several.
    fn among(&mut self, value: Value, path: &Path) -> Option<Path> {
        let paths = self.suspended_in(value).into_iter().map(|function| {
            let mut further = Path { is_alone: false, is_users: false, ..path.clone() };
            self.follow(function, &mut further);
            further
        });
        let mut paths: Vec<Path> = paths.collect();
        if paths.iter().any(|path| path.is_users) {
            paths.retain(|path| path.is_users);
        }
        let further = paths.pop().filter(|_| paths.is_empty())?;
        Some(Path { is_users: path.is_users || further.is_users, ..further })
    }

    /// The suspended async functions that a value owns, or may change. Others may share what a value only points to.
    fn suspended_in(&mut self, value: Value) -> Vec<Value> {
        let (mut found, mut all) = (Vec::new(), vec![value]);
        while let Some(value) = all.pop() {
            if self.left == 0 {
                return Vec::new();
            }
            self.left -= 1;
            let name = value.of.name.as_str();
            if is_async(name) {
                found.extend(self.suspended(&value).map(|_| value));
                continue;
            }
            if SHARED.iter().any(|begin| name.starts_with(begin)) {
                continue;
            }
            if let Some((_, inner)) = self.variant(&value) {
                all.push(inner);
            }
            if name.starts_with("&mut ") || name.starts_with("alloc::boxed::Box<") {
                all.extend(self.pointed(&value));
            }
            for member in &value.of.members {
                all.extend(self.member(&value, member));
            }
        }
        found
    }

    fn future(&mut self, cell: u64, trailer: u64, harness: TypeId) -> Option<Value> {
        let harness = self.layouts.get(harness)?;
        let pointer = self.layouts.get(harness.member("cell")?.of)?;
        let pointer = self.layouts.get(pointer.member("pointer")?.of)?;
        let of = self.layouts.get(pointer.pointee?)?;
        if of.member("trailer")?.offset != trailer {
            return None;
        }
        let mut value = Value { address: cell, of };
        for name in ["core", "stage"] {
            let member = value.of.member(name)?.clone();
            value = self.member(&value, &member)?;
        }
        let stage = self.unwrapped(value, |of| of.variants.is_some())?;
        let (variant, running) = self.variant(&stage)?;
        (variant.member.name == "Running").then_some(())?;
        let future = running.of.member("__0")?.clone();
        self.member(&running, &future)
    }

    /// If a value is an async function that is suspended at an await: where, and what it keeps there.
    fn suspended(&mut self, value: &Value) -> Option<(Variant, Value)> {
        is_async(&value.of.name).then_some(())?;
        let (variant, kept) = self.variant(value)?;
        last_part(&kept.of.name).starts_with("Suspend").then_some((variant, kept))
    }

    /// The variant that a value is of, and the value in it.
    fn variant(&mut self, value: &Value) -> Option<(Variant, Value)> {
        let variants = value.of.variants.as_ref()?;
        let (number, len) = match &variants.discriminant {
            None => (0, 0),
            Some(member) => {
                let of = self.member(value, member)?;
                (self.number(of.address, of.of.len_bytes)?, of.of.len_bytes)
            }
        };
        let variant = variants.of_value(number, len)?.clone();
        let inner = self.member(value, &variant.member)?;
        Some((variant, inner))
    }

    fn number(&self, address: u64, len_bytes: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        let of = bytes.get_mut(..usize::try_from(len_bytes).ok()?).filter(|of| !of.is_empty())?;
        self.memory.read(address, of).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    fn member(&mut self, of: &Value, member: &Member) -> Option<Value> {
        let address = of.address.checked_add(member.offset)?;
        Some(Value { address, of: self.layouts.get(member.of)? })
    }

    /// What is inside of types around it that have nothing else.
    fn unwrapped(&mut self, value: Value, is_wanted: impl Fn(&Type) -> bool) -> Option<Value> {
        let mut value = value;
        for _ in 0..WRAPPERS_MAX {
            if is_wanted(&value.of) {
                return Some(value);
            }
            let only = self.only_member(&value)?;
            value = self.member(&value, &only)?;
        }
        None
    }

    /// The one member that is not empty.
    fn only_member(&mut self, value: &Value) -> Option<Member> {
        let mut only = None;
        for member in &value.of.members {
            if self.layouts.get(member.of).is_some_and(|of| of.len_bytes > 0 || of.pointee.is_some()) {
                if only.is_some() {
                    return None;
                }
                only = Some(member.clone());
            }
        }
        only
    }

    /// The future that another one polls, and nothing else. `is_alone` becomes false if something else may wake it.
    fn within(&mut self, value: &Value, is_alone: &mut bool) -> Option<Value> {
        let name = value.of.name.as_str();
        if let Some(&(_, member, has_others)) = AROUND.iter().find(|(begin, ..)| name.starts_with(begin)) {
            let member = value.of.member(member)?.clone();
            let inner = self.member(value, &member)?;
            *is_alone &= !has_others;
            return Some(inner);
        }
        let is_pin = name.starts_with("core::pin::Pin<");
        let is_around = is_pin
            || name.starts_with("core::mem::manually_drop::ManuallyDrop<")
            || name.starts_with("core::mem::maybe_dangling::MaybeDangling<");
        if is_around {
            let only = self.only_member(value)?;
            return self.member(value, &only);
        }
        self.pointed(value)
    }

    /// What a pointer leads to, if its type is known.
    fn pointed(&mut self, value: &Value) -> Option<Value> {
        if let Some(inner) = self.behind_dyn(value) {
            return Some(inner);
        }
        let target = value.of.pointee?;
        let address = self.number(value.address, 8)?;
        Some(Value { address, of: self.layouts.get(target)? })
    }

    /// What a pointer to a `dyn` leads to: the debug information says which type its table of functions is of. The
    /// table says how long a value is, as the type does.
    fn behind_dyn(&mut self, value: &Value) -> Option<Value> {
        let [pointer, table] = ["pointer", "vtable"].map(|name| value.of.member(name).map(|of| of.offset));
        let address = self.number(value.address.checked_add(pointer?)?, 8)?;
        let table = self.number(value.address.checked_add(table?)?, 8)?;
        let target = self.layouts.of_vtable(table)?;
        let of = self.layouts.get(target)?;
        let len_bytes = self.number(table.checked_add(VTABLE_LEN)?, 8)?;
        (len_bytes == of.len_bytes).then_some(Value { address, of })
    }

    /// The lock that this future awaits, and how many permits it needs yet.
    fn acquires(&mut self, value: &Value, kind: TokioLockKind) -> Option<(usize, u64)> {
        let queued = value.of.member("queued")?.offset;
        let is_queued = self.number(value.address.checked_add(queued)?, 1)? == 1;
        let node = value.of.member("node")?.clone();
        let node = self.member(value, &node)?;
        let state = node.of.member("state")?.clone();
        let permits = self.counter(&node, &state)?;
        let pointer = value.of.member("semaphore")?.clone();
        let pointer = self.member(value, &pointer)?;
        let semaphore = self.semaphore(&pointer)?;
        let lock = self.lock(&semaphore, kind)?;
        (is_queued && permits > 0).then_some((lock, permits))
    }

    fn counter(&mut self, of: &Value, member: &Member) -> Option<u64> {
        let value = self.member(of, member)?;
        let plain = self.unwrapped(value, |of| of.members.is_empty() && of.variants.is_none())?;
        (plain.of.len_bytes == 8).then_some(())?;
        self.number(plain.address, 8)
    }

    /// The guards among what a function keeps.
    fn guards(&mut self, function: &Value, kept: &Value, step: usize, holds: &mut Vec<HeldLock>) {
        let arguments = self.arguments(function);
        // After the variables come the arguments once more, whether or not they are still there.
        let members = &kept.of.members;
        let (variables, rest) = members.split_at(members.len().saturating_sub(arguments.len()));
        let is_listed = arguments.iter().zip(rest).all(|(argument, again)| argument.name == again.name);
        let variables = if is_listed { variables.to_vec() } else { Vec::new() };
        let (mut guards, mut inner) = (Vec::new(), Vec::new());
        let mut has_unset_flag = false;
        for variable in &variables {
            let Some(value) = self.member(kept, variable) else { continue };
            let name = value.of.name.as_str();
            if name == "bool" && is_unnamed(&variable.name) {
                has_unset_flag |= self.number(value.address, 1) != Some(1);
            }
            let Some(value) = self.present(value) else { continue };
            match guard_type(&value.of) {
                Some(of) => guards.push((variable.name.clone(), value, of, true)),
                None => inner.extend(self.guards_inside(&value, &variable.name)),
            }
        }
        guards.extend(inner);
        let is_certain = self.unwinds && !has_unset_flag;
        for (name, value, (kind, is_exclusive), is_variable) in guards {
            let is_certain = is_certain && is_variable;
            let members = value.of.members.clone();
            let semaphore = members.iter().find_map(|inner| {
                let inner = self.member(&value, inner)?;
                self.semaphore(&inner)
            });
            let Some(lock) = semaphore.and_then(|semaphore| self.lock(&semaphore, kind)) else { continue };
            let variable = if is_unnamed(&name) { String::new() } else { name };
            let held = HeldLock { lock, variable, step, is_exclusive, is_certain };
            if !holds.contains(&held) {
                holds.push(held);
            }
        }
    }

    /// The guards in a value of the program's own: it may have been taken apart.
    fn guards_inside(&mut self, value: &Value, variable: &str) -> Vec<Guard> {
        let (mut found, mut all) = (Vec::new(), vec![value.clone()]);
        for _ in 0..VALUES_IN_VARIABLE_MAX {
            let Some(value) = all.pop() else { break };
            if let Some(of) = guard_type(&value.of) {
                found.push((variable.to_owned(), value, of, false));
            } else if !is_async(&value.of.name) {
                all.extend(self.variant(&value).map(|(_, inner)| inner));
                for member in &value.of.members {
                    all.extend(self.member(&value, member));
                }
            }
        }
        found
    }

    /// The value itself, or what is in an `Option` or a `Result`: nothing, perhaps.
    fn present(&mut self, value: Value) -> Option<Value> {
        let name = value.of.name.as_str();
        if !name.starts_with("core::option::Option<") && !name.starts_with("core::result::Result<") {
            return Some(value);
        }
        let (_, inner) = self.variant(&value)?;
        let member = inner.of.member("__0")?.clone();
        self.member(&inner, &member)
    }

    /// The arguments of an async function, or the variables that a block captures: what it has at its beginning.
    fn arguments(&mut self, function: &Value) -> Vec<Member> {
        let variants = function.of.variants.as_ref();
        let first = variants.and_then(|variants| variants.of_value(0, 8)).map(|variant| variant.member.of);
        first.and_then(|first| self.layouts.get(first)).map(|of| of.members.clone()).unwrap_or_default()
    }

    /// The semaphore that a pointer leads to, through an `Arc` perhaps, in a lock perhaps.
    fn semaphore(&mut self, pointer: &Value) -> Option<Value> {
        let mut value = pointer.clone();
        for _ in 0..WRAPPERS_MAX {
            let name = value.of.name.as_str();
            if let Some(target) = value.of.pointee {
                let address = self.number(value.address, 8)?;
                value = Value { address, of: self.layouts.get(target)? };
                continue;
            }
            if name == SEMAPHORE {
                return Some(value);
            }
            let is_lock = LOCKING.iter().any(|(begin, _)| name.starts_with(begin));
            let around = AROUND_SEMAPHORE.iter().find(|(begin, _)| name.starts_with(begin));
            let wanted = match around {
                _ if is_lock => ["s", "ll_sem"].iter().find_map(|member| value.of.member(member)),
                Some((_, member)) => value.of.member(member),
                None => None,
            };
            let wanted = wanted?.clone();
            value = self.member(&value, &wanted)?;
        }
        None
    }

    fn lock(&mut self, semaphore: &Value, kind: TokioLockKind) -> Option<usize> {
        let permits = semaphore.of.member("permits")?.clone();
        // The lowest bit says whether it is closed.
        let free = self.counter(semaphore, &permits)? >> 1;
        self.found.lock(semaphore.address, kind, free)
    }
}

impl Found {
    fn chain(&mut self, chain: AwaitChain) -> Option<usize> {
        if let Some(&known) = self.by_chain.get(&chain) {
            return Some(known);
        }
        let at = self.chains.len();
        (at < CHAINS_MAX).then_some(())?;
        self.by_chain.insert(chain.clone(), at);
        self.chains.push(chain);
        Some(at)
    }

    fn lock(&mut self, address: u64, kind: TokioLockKind, free: u64) -> Option<usize> {
        if let Some(&known) = self.by_address.get(&address) {
            let lock = &mut self.locks[known];
            lock.kind = lock.kind.min(kind);
            return Some(known);
        }
        let at = self.locks.len();
        (at < LOCKS_MAX).then_some(())?;
        self.by_address.insert(address, at);
        self.locks.push(TokioLock { address, kind, free });
        Some(at)
    }
}

/// What a guard of this type is of, and whether nobody else has the lock meanwhile.
fn guard_type(of: &Type) -> Option<(TokioLockKind, bool)> {
    let guard = GUARDS.iter().find(|(begin, ..)| of.name.starts_with(begin));
    guard.map(|&(_, kind, is_exclusive)| (kind, is_exclusive))
}

/// Whether a source file is one of the program's own.
pub(super) fn is_users(file: &str) -> bool {
    Whose::of(None, Some(file), &Whose::User).may_be_users()
}

/// Whether a type is that of an async function, block or closure.
fn is_async(name: &str) -> bool {
    last_part(name).starts_with("{async_")
}

/// Whether futures may be in what has this type that its members do not show.
fn is_open(name: &str) -> bool {
    name.contains("dyn ") || name.contains("::poll_fn::PollFn<") || name.starts_with("futures_util::")
}

/// Whether the compiler has made up the name of a variable: `__4`.
fn is_unnamed(name: &str) -> bool {
    name.strip_prefix("__").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The last part of a path, with its arguments.
fn last_part(name: &str) -> &str {
    let mut depth = 0_usize;
    let bytes = name.as_bytes();
    for at in (1..bytes.len()).rev() {
        match bytes[at] {
            // The end of an arrow is no bracket.
            b'>' if bytes[at - 1] == b'-' => {}
            b'>' | b')' | b']' | b'}' => depth += 1,
            b'<' | b'(' | b'[' | b'{' => depth = depth.saturating_sub(1),
            b':' if depth == 0 && bytes[at - 1] == b':' => return &name[at + 1..],
            _ => {}
        }
    }
    name
}

/// The function of a type of an async function, as symbols call it: `shop::pay` of `shop::pay::{async_fn_env#0}<u8>`,
/// and `shop::main::{{closure}}` of a block in `main`.
fn function_of(name: &str) -> String {
    let last = last_part(name);
    let around = name.strip_suffix(last).and_then(|around| around.strip_suffix("::")).unwrap_or(name);
    let mut function = String::new();
    for (at, part) in around.split("::{").enumerate() {
        match part.split_once('}') {
            Some((of, rest)) if at > 0 => {
                if !of.starts_with("impl#") {
                    function.push_str("::{{closure}}");
                }
                function.push_str(rest);
            }
            _ => function.push_str(if at > 0 { "" } else { part }),
        }
    }
    function
}

#[cfg(test)]
mod tests;
