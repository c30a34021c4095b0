//! Futures and their types, made by hand.

use read_rip_symbols::Variants;

use super::*;

const CELL: u64 = 0x1000;
const FUTURE: u64 = CELL + 48;
const MUTEXES: [u64; 2] = [0x8000, 0x9000];

/// The types of a program with one async function, which holds a mutex and awaits another one.
#[derive(Default)]
struct Program(Vec<Type>);

impl Program {
    fn put(&mut self, name: &str, len_bytes: u64, members: &[(&str, u64, TypeId)]) -> TypeId {
        let member = |&(name, offset, of): &(&str, u64, TypeId)| Member { name: name.to_owned(), offset, of };
        let members = members.iter().map(member).collect();
        self.0.push(Type { name: name.to_owned(), len_bytes, members, ..Type::default() });
        TypeId::from(self.0.len() as u32 - 1)
    }

    fn pointer(&mut self, to: TypeId) -> TypeId {
        self.0.push(Type { len_bytes: 8, pointee: Some(to), ..Type::default() });
        TypeId::from(self.0.len() as u32 - 1)
    }

    fn variants(&mut self, name: &str, number: TypeId, variants: &[(u64, &str, TypeId)]) -> TypeId {
        let member = |name: &str, of| Member { name: name.to_owned(), offset: 0, of };
        let variants = variants.iter().map(|&(value, name, of)| Variant {
            value: Some(value),
            member: member(name, of),
            file: Some("/src/shop.rs".into()),
            line: Some(10 + value as u32),
        });
        let variants = variants.collect();
        self.0.push(Type {
            name: name.to_owned(),
            len_bytes: 64,
            variants: Some(Variants { discriminant: Some(member("", number)), variants }),
            ..Type::default()
        });
        TypeId::from(self.0.len() as u32 - 1)
    }

    /// The types, and the one of the variable `harness`.
    fn types() -> (KnownTypes, TypeId) {
        let mut all = Program::default();
        let (byte, word, flag) = (all.put("u8", 1, &[]), all.put("u64", 8, &[]), all.put("bool", 1, &[]));
        let semaphore = all.put(SEMAPHORE, 16, &[("permits", 8, word)]);
        let mutex = all.put("tokio::sync::mutex::Mutex<u64>", 24, &[("s", 8, semaphore)]);
        let (to_semaphore, to_mutex) = (all.pointer(semaphore), all.pointer(mutex));
        let guard = all.put("tokio::sync::mutex::MutexGuard<u64>", 8, &[("lock", 0, to_mutex)]);
        let node = all.put("tokio::sync::batch_semaphore::Waiter", 8, &[("state", 0, word)]);
        let acquire = [("semaphore", 0, to_semaphore), ("node", 8, node), ("queued", 16, flag)];
        let acquire = all.put(ACQUIRE, 24, &acquire);
        let lock = all.put(
            "tokio::sync::mutex::{impl#1}::lock::{async_fn_env#0}<u64>::Suspend0",
            24,
            &[("__awaitee", 8, acquire)],
        );
        let first = all.put("tokio::sync::mutex::{impl#1}::lock::{async_fn_env#0}<u64>::Unresumed", 24, &[]);
        let lock = all.variants(
            "tokio::sync::mutex::{impl#1}::lock::{async_fn_env#0}<u64>",
            byte,
            &[(0, "0", first), (3, "3", lock)],
        );
        let begin = all.put("shop::pay::{async_fn_env#0}::Unresumed", 64, &[("bank", 0, word)]);
        let kept = [("guard", 8, guard), ("__4", 1, flag), ("__awaitee", 16, lock), ("bank", 0, word)];
        let kept = all.put("shop::pay::{async_fn_env#0}::Suspend0", 64, &kept);
        let future = all.variants("shop::pay::{async_fn_env#0}", byte, &[(0, "0", begin), (3, "3", kept)]);
        let running = all.put("Stage::Running", 64, &[("__0", 8, future)]);
        let stage = all.variants("tokio::runtime::task::core::Stage", word, &[(0, "Running", running)]);
        let core = all.put("Core", 72, &[("stage", 8, stage)]);
        let cell = all.put("Cell", 256, &[("core", 32, core), ("trailer", 128, word)]);
        let to_cell = all.pointer(cell);
        let pointer = all.put("NonNull", 8, &[("pointer", 0, to_cell)]);
        let harness = all.put("Harness", 8, &[("cell", 0, pointer)]);
        (all.0.into_iter().collect(), harness)
    }
}

/// Memory with words; zeros elsewhere.
struct Words(HashMap<u64, u64>);

impl Memory for Words {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), crate::target::Unreadable> {
        for (at, byte) in (address..).zip(into) {
            let word = self.0.get(&(at & !7)).copied().unwrap_or(0);
            *byte = word.to_le_bytes()[(at & 7) as usize];
        }
        Ok(())
    }

    fn read_some(&self, address: u64, into: &mut [u8]) -> usize {
        self.read(address, into).map_or(0, |()| into.len())
    }
}

/// The function holds the first mutex, and awaits the second one. `flag`: whether the guard was not moved.
fn words(flag: bool) -> Words {
    let words = [
        (FUTURE, 3 | u64::from(flag) << 8),
        (FUTURE + 8, MUTEXES[0]),
        (FUTURE + 16, 3),
        (FUTURE + 24, MUTEXES[1] + 8),
        (FUTURE + 32, 1),
        (FUTURE + 40, 1),
    ];
    Words(words.into_iter().collect())
}

fn walked(memory: &dyn Memory, unwinds: bool) -> (Option<Place>, Found) {
    let (types, harness) = Program::types();
    let (mut layouts, mut found) = (&types, Found::default());
    let mut walk = Walk { layouts: &mut layouts, memory, found: &mut found, unwinds, left: 0 };
    (walk.place(CELL, 128, harness), found)
}

#[test]
fn the_awaits_lead_to_the_lock() {
    let (place, found) = walked(&words(true), true);
    let place = place.expect("a place");
    let chain = &found.chains[place.chain.unwrap()];
    let steps: Vec<_> = chain.steps.iter().map(|step| (&*step.function, step.line)).collect();
    assert_eq!(steps, [("shop::pay", Some(13)), ("tokio::sync::mutex::lock", Some(13))]);
    assert_eq!((&*chain.awaited, chain.is_open), (ACQUIRE, false));
    let awaited = place.awaits.expect("it awaits a lock");
    let lock = &found.locks[awaited.lock];
    assert_eq!((lock.address, lock.kind, awaited.is_alone), (MUTEXES[1] + 8, TokioLockKind::Mutex, true));
    let [held] = &place.holds[..] else { panic!("{:?}", place.holds) };
    assert_eq!((found.locks[held.lock].address, &*held.variable), (MUTEXES[0] + 8, "guard"));
    assert!(held.is_certain && held.is_exclusive);
}

#[test]
fn a_guard_whose_flag_is_unset_is_not_certain() {
    for (flag, unwinds) in [(false, true), (true, false)] {
        let held = walked(&words(flag), unwinds).0.unwrap().holds;
        assert!(!held[0].is_certain, "{flag} {unwinds}");
    }
}

#[test]
fn a_lock_that_was_given_is_not_awaited() {
    for (address, word) in [(FUTURE + 32, 0), (FUTURE + 40, 0)] {
        let mut memory = words(true);
        memory.0.insert(address, word);
        assert_eq!(walked(&memory, true).0.unwrap().awaits, None);
    }
}

#[test]
fn a_function_that_is_at_no_await_has_no_place() {
    for state in [0, 1, 2, 4, 255] {
        let mut memory = words(true);
        memory.0.insert(FUTURE, state);
        assert_eq!(walked(&memory, true).0, None, "{state}");
    }
    let hostile: [fn(u64) -> u64; 3] = [|_| u64::MAX, |address| address, |_| CELL];
    for word in hostile {
        walked(&crate::waits::testing::Hostile(word), true);
    }
    let (types, harness) = Program::types();
    let (mut layouts, mut found) = (&types, Found::default());
    let memory = words(true);
    let mut walk = Walk { layouts: &mut layouts, memory: &memory, found: &mut found, unwinds: true, left: 0 };
    assert_eq!(walk.place(CELL, 136, harness), None, "another cell");
}

/// Types, and what the table of functions at 0x6000 is of.
struct WithTable<'a>(&'a KnownTypes, TypeId);

impl Layouts for WithTable<'_> {
    fn get(&mut self, id: TypeId) -> Option<Arc<Type>> {
        self.0.get(id)
    }

    fn of_vtable(&mut self, address: u64) -> Option<TypeId> {
        (address == 0x6000).then_some(self.1)
    }
}

#[test]
fn a_dyn_is_what_its_table_of_functions_says() {
    let mut all = Program::default();
    let word = all.put("u64", 8, &[]);
    let members = [("pointer", 0, word), ("vtable", 8, word)];
    let boxed = all.put("alloc::boxed::Box<dyn core::future::future::Future>", 16, &members);
    let inner = all.put("shop::pay::{async_fn_env#0}", 64, &[]);
    let types: KnownTypes = all.0.into_iter().collect();
    for (table, len, is_known) in [(0x6000, 64, true), (0x6000, 72, false), (0x6010, 64, false)] {
        let words = [(FUTURE, 0x5000), (FUTURE + 8, table), (table + 8, len)];
        let memory = Words(words.into_iter().collect());
        let (mut layouts, mut found) = (WithTable(&types, inner), Found::default());
        let mut walk =
            Walk { layouts: &mut layouts, memory: &memory, found: &mut found, unwinds: true, left: 0 };
        let value = Value { address: FUTURE, of: types.get(boxed).unwrap() };
        let inside = walk.within(&value, &mut true).map(|of| (of.address, of.of.name.clone()));
        let wanted = is_known.then(|| (0x5000, "shop::pay::{async_fn_env#0}".to_owned()));
        assert_eq!(inside, wanted, "{table:#x} {len}");
    }
}

/// A future that was written by hand has two pointers, to an async function of a library and to one of the program.
/// `others`: how many more of the program's own it has.
fn in_one_by_hand(pointer: &str, others: usize) -> Vec<String> {
    let mut all = Program::default();
    let byte = all.put("u8", 1, &[]);
    let mut boxed = |function: &str, file: &str| {
        let kept = all.put(&format!("{function}::Suspend0"), 64, &[]);
        let of = all.variants(function, byte, &[(3, "3", kept)]);
        all.0.last_mut().unwrap().variants.as_mut().unwrap().variants[0].file = Some(file.into());
        let pointer = format!("{pointer}{function}>");
        all.0.push(Type { name: pointer, len_bytes: 8, pointee: Some(of), ..Type::default() });
        TypeId::from(all.0.len() as u32 - 1)
    };
    let library = boxed(
        "tokio::sync::watch::closed::{async_fn_env#0}",
        "/root/.cargo/registry/src/i/tokio-1.49.0/w.rs",
    );
    let own = boxed("shop::pay::{async_fn_env#0}", "/src/shop.rs");
    let mut members = vec![("signal", 0, library), ("in_flight", 8, own)];
    members.extend(std::iter::repeat_n(("other", 16, own), others));
    let connection = all.put("hyper::server::Connection", 64, &members);
    let types: KnownTypes = all.0.into_iter().collect();
    let words = [
        (FUTURE, 0x5000),
        (FUTURE + 8, 0x6000),
        (FUTURE + 16, 0x7000),
        (0x5000, 3),
        (0x6000, 3),
        (0x7000, 3),
    ];
    let memory = Words(words.into_iter().collect());
    let (mut layouts, mut found) = (&types, Found::default());
    let mut walk =
        Walk { layouts: &mut layouts, memory: &memory, found: &mut found, unwinds: true, left: VALUES_MAX };
    let mut path = Path { is_alone: true, ..Path::default() };
    walk.follow(Value { address: FUTURE, of: types.get(connection).unwrap() }, &mut path);
    assert_eq!(path.is_alone, path.chain.steps.is_empty(), "others may wake it");
    path.chain.steps.into_iter().map(|step| step.function).collect()
}

#[test]
fn a_future_that_was_written_by_hand_leads_to_the_one_function_of_the_program() {
    assert_eq!(in_one_by_hand("alloc::boxed::Box<", 0), ["shop::pay"]);
    assert!(in_one_by_hand("alloc::boxed::Box<", 1).is_empty(), "two of the program's own");
    assert!(in_one_by_hand("*const <", 0).is_empty(), "others may have it too");
}

#[test]
fn a_function_is_called_as_by_symbols() {
    for (name, function) in [
        ("shop::pay::{async_fn_env#0}", "shop::pay"),
        ("tokio::sync::mutex::{impl#10}::lock::{async_fn_env#0}<u64>", "tokio::sync::mutex::lock"),
        ("shop::main::{async_block#0}::{async_block_env#3}", "shop::main::{{closure}}"),
        ("shop::each::{async_block_env#0}<fn(a::B) -> (u8, c::D<e::F>)>", "shop::each"),
    ] {
        assert!(is_async(name), "{name}");
        assert_eq!(function_of(name), function);
    }
    assert!(!is_async("tokio::sync::oneshot::Receiver<shop::pay::{async_fn_env#0}>"));
    assert!(is_unnamed("__4") && !is_unnamed("__awaitee") && !is_unnamed("guard"));
}
