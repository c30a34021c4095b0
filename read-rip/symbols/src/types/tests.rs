//! Types of a program of Rust that this test compiles, and damaged ones.

use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSymbol};

use super::*;

/// A function with a variable, whose type is that of an async function with two awaits.
const SOURCE: &str = "
use std::future::Future;
use std::task::{Context, Poll, Waker};

struct Harness<T> { future: T }

async fn step(number: u32) -> u32 { std::future::ready(number).await }

async fn steps(number: u32) -> u32 {
    let first = step(number).await;
    let kept = vec![first];
    let second =
        step(first).await;
    kept[0] + second
}

#[inline(never)]
fn poll<T: Future>(future: T) -> bool {
    let harness = Harness { future };
    let mut future = std::pin::pin!(harness.future);
    matches!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(_))
}

fn main() {
    assert!(poll(steps(7)));
    let boxed: Box<dyn Future<Output = u32>> = Box::new(step(7));
    // The second word of the pointer.
    let memory = std::fs::File::open(\"/proc/self/mem\").unwrap();
    let mut table = [0; 8];
    std::os::unix::fs::FileExt::read_exact_at(&memory, &mut table, &raw const boxed as u64 + 8).unwrap();
    println!(\"{}\", isize::from_ne_bytes(table).wrapping_sub(main as fn() as isize));
}
";

/// Where a function of the program begins.
fn begin(program: &Path, function: &str) -> u64 {
    let bytes = std::fs::read(program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let is_wanted = |name: &str| name.contains(function);
    let symbol = file.symbols().find(|symbol| symbol.name().is_ok_and(is_wanted)).expect("the function");
    symbol.address()
}

/// The program with these flags, and where `poll` begins in it.
fn compiled(directory: &Path, flags: &[&str]) -> (PathBuf, u64) {
    let (source, program) = (directory.join("shop.rs"), directory.join("shop"));
    std::fs::write(&source, SOURCE).unwrap();
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "-o"]).arg(&program).args(flags).arg(&source);
    assert!(rustc.status().unwrap().success(), "{rustc:?}");
    let poll = begin(&program, "4shop4poll");
    (program, poll)
}

fn types(program: &Path) -> Types {
    let length = std::fs::metadata(program).unwrap().len();
    let module = Module {
        path: program.to_owned(),
        end: length,
        code: 0..length,
        is_executable: true,
        ..Module::default()
    };
    let options = Options { executable: Some(program.to_owned()), ..Options::default() };
    Types::new(vec![module], options)
}

/// Looks at what the variable `harness` has.
#[track_caller]
fn has_both_awaits(program: &Path, poll: u64) {
    let mut types = types(program);
    let found = types.of_variable(&[poll, 1], "harness");
    assert_eq!(found[1], None, "no function begins there");
    let harness = types.get(found[0].expect("the variable")).unwrap();
    assert!(harness.name.starts_with("shop::Harness<"), "{harness:?}");
    let future = types.get(harness.member("future").unwrap().of).unwrap();
    assert_eq!((&*future.name, future.len_bytes), ("shop::steps::{async_fn_env#0}", harness.len_bytes));
    let variants = future.variants.as_ref().unwrap();
    let number = types.get(variants.discriminant.as_ref().unwrap().of).unwrap();
    assert_eq!((&*number.name, number.len_bytes), ("u8", 1));
    for (value, line, kept) in [(3, 10, false), (4, 13, true)] {
        let variant = variants.of_value(value, 1).unwrap();
        let file = variant.file.as_deref().unwrap();
        assert_eq!((variant.line, Path::new(file).file_name()), (Some(line), Some("shop.rs".as_ref())));
        let suspended = types.get(variant.member.of).unwrap();
        assert_eq!(suspended.member("kept").is_some(), kept, "{suspended:?}");
        let awaited = types.get(suspended.member("__awaitee").unwrap().of).unwrap();
        assert_eq!(awaited.name, "shop::step::{async_fn_env#0}");
    }
    assert!(variants.of_value(5, 1).is_none());
    assert!(types.unwinds(poll));
    let said = Command::new(program).output().unwrap().stdout;
    let distance: i64 = String::from_utf8(said).unwrap().trim().parse().unwrap();
    let table = begin(program, "4shop4main").wrapping_add_signed(distance);
    let boxed = types.of_vtable(table).expect("what the program made a `dyn` of");
    assert_eq!(types.get(boxed).unwrap().name, "shop::step::{async_fn_env#0}");
    assert_eq!(types.of_vtable(table + 8), None, "no table begins there");
    assert_eq!(types.known().get(found[0].unwrap()).as_deref(), Some(&*harness));
}

#[test]
fn an_async_function_has_a_line_for_each_await() {
    let directory = tempfile::tempdir().unwrap();
    let (program, poll) = compiled(directory.path(), &["-Cdebuginfo=2"]);
    has_both_awaits(&program, poll);
}

#[test]
fn split_debug_information_has_them_too() {
    let directory = tempfile::tempdir().unwrap();
    let (program, poll) = compiled(directory.path(), &["-Cdebuginfo=2", "-Csplit-debuginfo=unpacked"]);
    has_both_awaits(&program, poll);
}

#[test]
fn line_tables_have_no_types() {
    let directory = tempfile::tempdir().unwrap();
    let (program, poll) = compiled(directory.path(), &["-Cdebuginfo=line-tables-only"]);
    assert_eq!(types(&program).of_variable(&[poll], "harness"), [None]);
}

#[test]
fn damaged_types_harm_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let (program, poll) = compiled(directory.path(), &["-Cdebuginfo=2"]);
    let bytes = std::fs::read(&program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let ranges = [".debug_info", ".debug_abbrev"].map(|name| {
        let section = object::Object::section_by_name(&file, name).unwrap();
        object::ObjectSection::file_range(&section).unwrap()
    });
    let damaged = directory.path().join("damaged");
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..60 {
        let mut bytes = bytes.clone();
        for _ in 0..40 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (begin, len) = ranges[(random >> 63) as usize];
            bytes[(begin + (random >> 16) % len) as usize] = (random >> 8) as u8;
        }
        std::fs::write(&damaged, &bytes).unwrap();
        let mut types = types(&damaged);
        types.of_vtable(poll);
        let mut left: Vec<TypeId> = types.of_variable(&[poll], "harness").into_iter().flatten().collect();
        for _ in 0..1000 {
            let Some(of) = left.pop().and_then(|id| types.get(id)) else { continue };
            left.extend(of.members.iter().map(|member| member.of).chain(of.pointee));
            let variants = of.variants.iter().flat_map(|of| &of.variants);
            left.extend(variants.map(|variant| variant.member.of));
        }
    }
}
