//! The function that a task runs, by the symbol of tokio's function that polls it.
//!
//! With the newer mangling of Rust (`v0`), that symbol has the type of the future, and so the function. The older one
//! drops types. Then the code is followed: through tokio's own functions and those of the standard library, along the
//! calls and the addresses that they load, to the first function that is an async block or implements `Future`. Where
//! several are reached, none is named. The compiler may have inlined the function of a task into tokio's. What is
//! reached then is the async function that it awaits.
//!
//! Code is not disassembled. A relative distance counts if a function begins exactly where it leads.

use std::ops::Range;

use foldhash::HashSet;
use read_rip_symbols::{FunctionNames, target_aarch64};

use super::values::TokioTasks;
use crate::target::{Architecture, Memory, Target};

/// No more functions get a name.
const NAMED_MAX: usize = 1024;
/// So many functions are followed from one that polls, and so much of each is read.
const FOLLOWED_MAX: usize = 256;
const CODE_MAX: u64 = 64 << 10;

/// Functions that lead from the poll of a task to its future. Names that begin so, after `<` perhaps.
const FOLLOWED: &[&str] = &[
    "tokio::runtime::task::raw::poll",
    "tokio::runtime::task::harness::",
    "tokio::runtime::task::core::",
    "tokio::loom::",
    "tokio::task::coop::",
    "tokio::task::task_local::",
    "tokio::task::unconstrained::",
    "tokio::time::timeout::",
    "tokio::util::trace::",
    "tracing::instrument::",
    "core::panic::",
    "core::ops::function::",
    "core::pin::",
    "core::future::",
    "alloc::boxed::",
    "futures_util::",
    "futures_core::",
    "std::panic",
    "std::thread::local::",
    "__rust_try",
];

/// Functions that are no user's: of these packages.
const OWN: &[&str] =
    &["tokio::", "core::", "alloc::", "std::", "tracing::", "futures_util::", "futures_core::"];

/// Gives the functions of tasks their names.
pub(super) fn name(tasks: &mut TokioTasks, target: &Target, memory: &dyn Memory, names: &mut FunctionNames) {
    for function in tasks.functions.iter_mut().take(NAMED_MAX) {
        let mut search = Search { architecture: target.architecture, memory, names };
        function.name = search.function(function.address);
    }
}

struct Search<'a> {
    architecture: Architecture,
    memory: &'a dyn Memory,
    names: &'a mut FunctionNames,
}

impl Search<'_> {
    /// The program's function that is polled by this one of tokio.
    fn function(&mut self, poll: u64) -> Option<String> {
        let name = self.names.at(poll)?;
        if let Some(future) = first_argument(&name, "task::raw::poll::<") {
            return Some(plain(future));
        }
        let (mut left, mut seen) = (vec![poll], HashSet::default());
        let mut found: Option<String> = None;
        while let Some(address) = left.pop() {
            let Some((name, range)) = self.names.function(address) else { continue };
            if range.start != address || !seen.insert(address) || seen.len() > FOLLOWED_MAX {
                continue;
            }
            match Way::of(&name) {
                Way::Followed => left.extend(self.referred(&range)),
                Way::Other => {}
                Way::Future => {
                    let name = plain(&name);
                    if found.as_ref().is_some_and(|found| *found != name) {
                        return None;
                    }
                    found = Some(name);
                }
            }
        }
        found
    }

    /// The addresses that the code of a function calls, jumps to or loads, and other numbers.
    fn referred(&self, range: &Range<u64>) -> Vec<u64> {
        let mut code = vec![0; (range.end - range.start).min(CODE_MAX) as usize];
        if self.memory.read(range.start, &mut code).is_err() {
            return Vec::new();
        }
        let is_outside = |address: &u64| !range.contains(address);
        match self.architecture {
            Architecture::X86_64 => {
                let distances = code.windows(4).enumerate().skip(1);
                let referred = distances.filter_map(|(at, distance)| {
                    // CALL and JMP, or LEA with an address that is relative to the instruction.
                    let is_load = at >= 2 && code[at - 2] == 0x8d && code[at - 1] & 0xc7 == 5;
                    let is_call = matches!(code[at - 1], 0xe8 | 0xe9);
                    let distance = i32::from_le_bytes(distance.try_into().ok()?);
                    let next = range.start + at as u64 + 4;
                    (is_call || is_load).then(|| next.wrapping_add_signed(distance.into()))
                });
                referred.filter(is_outside).collect()
            }
            Architecture::Aarch64 => {
                let instructions = code.as_chunks::<4>().0.iter().enumerate();
                let referred = instructions.filter_map(|(at, &instruction)| {
                    // BL, and B, which has another first bit.
                    let instruction = u32::from_le_bytes(instruction) | 1 << 31;
                    target_aarch64(instruction, range.start + 4 * at as u64 + 4)
                });
                referred.filter(is_outside).collect()
            }
        }
    }
}

/// What a function is on the way from the poll of a task to its future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Followed,
    Future,
    /// It leads elsewhere.
    Other,
}

impl Way {
    fn of(name: &str) -> Way {
        let path = name.trim_start_matches('<');
        let begins = |with: &[&str]| with.iter().any(|begin| path.starts_with(begin));
        if begins(FOLLOWED) {
            return Way::Followed;
        }
        let is_future = is_async_block(name) || name.ends_with(" as core::future::future::Future>::poll");
        if is_future && !begins(OWN) { Way::Future } else { Way::Other }
    }
}

/// Whether a function is an async block, or the body of an async function, or another closure.
fn is_async_block(name: &str) -> bool {
    let last = name.split(".llvm.").next().unwrap_or(name);
    last.ends_with("{{closure}}") || last.ends_with('}') && last.contains("{closure#")
}

/// The first type argument after these words of a name.
fn first_argument<'n>(name: &'n str, words: &str) -> Option<&'n str> {
    let arguments = &name[name.find(words)? + words.len()..];
    let mut depth = 0;
    let mut previous = ' ';
    for (at, letter) in arguments.char_indices() {
        match letter {
            '<' | '(' | '[' | '{' => depth += 1,
            // The end of an arrow is no bracket.
            '>' if previous == '-' => {}
            '>' if depth == 0 => return Some(&arguments[..at]),
            '>' | ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => return Some(&arguments[..at]),
            _ => {}
        }
        previous = letter;
    }
    None
}

/// The name as its author knows it: the body of an async function has the name of the function, and what implements
/// `Future` that of its type.
fn plain(name: &str) -> String {
    let name = name.split(".llvm.").next().unwrap_or(name);
    let of_type = name.strip_suffix(" as core::future::future::Future>::poll");
    let name = of_type.and_then(|of_type| of_type.strip_prefix('<')).unwrap_or(name);
    let name =
        name.strip_suffix("::{{closure}}").or_else(|| name.strip_suffix("::{closure#0}")).unwrap_or(name);
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_mangling_has_the_function_in_its_types() {
        let name = "tokio::runtime::task::raw::poll::<web::pool::run<fn(u8) -> (u8, u8)>::{closure#0}, \
                    alloc::sync::Arc<tokio::runtime::scheduler::current_thread::Handle>>";
        let future = first_argument(name, "task::raw::poll::<").unwrap();
        assert_eq!(plain(future), "web::pool::run<fn(u8) -> (u8, u8)>");
        assert_eq!(first_argument("tokio::runtime::task::raw::poll", "task::raw::poll::<"), None);
        assert_eq!(first_argument("task::raw::poll::<(((", "task::raw::poll::<"), None);
    }

    #[test]
    fn functions_of_tokio_lead_to_those_of_the_program() {
        for (name, way) in [
            ("tokio::runtime::task::harness::Harness<T,S>::poll", Way::Followed),
            ("<tracing::instrument::Instrumented<T> as core::future::future::Future>::poll", Way::Followed),
            ("web::handle::{{closure}}", Way::Future),
            ("web::handle::{closure#0}", Way::Future),
            ("<web::Request as core::future::future::Future>::poll", Way::Future),
            ("<tokio::sync::notify::Notified as core::future::future::Future>::poll", Way::Other),
            ("core::ptr::drop_in_place<web::handle::{{closure}}>", Way::Other),
            ("web::handle", Way::Other),
        ] {
            assert_eq!(Way::of(name), way, "{name}");
        }
    }

    #[test]
    fn a_name_is_that_of_the_source() {
        for (name, short) in [
            ("web::handle::{{closure}}", "web::handle"),
            ("web::handle::{{closure}}.llvm.2831428857481961861", "web::handle"),
            ("web::main::{{closure}}::{{closure}}", "web::main::{{closure}}"),
            ("<web::Request as core::future::future::Future>::poll", "web::Request"),
        ] {
            assert_eq!(plain(name), short);
        }
    }
}
