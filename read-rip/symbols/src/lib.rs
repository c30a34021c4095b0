//! From module-relative addresses to functions, files and lines: finds each module's file, checks that it is the
//! recorded file, and asks its DWARF and its symbol table.
//!
//! What it is asked about is an address in a [`Module`]. It knows no ring, and prints nothing. Names and paths come
//! from files that anyone may have written, so whoever prints them escapes control characters. An empty list of frames
//! is an answer and not an error; [`Resolver::problems`] says why.
//!
//! | file | question |
//! |---|---|
//! | `problem` | what prevents a complete answer? |
//! | `path` | how is a file with an untrusted path opened? |
//! | `compressed`, `elf` | what are the file's sections? |
//! | `locate` | which file is the recorded one, and which is its debug file? |
//! | `frame`, `debug_sections`, `split`, `dwarf` | which frames has the address? |
//! | `whose`, `c_library`, `packages` | whose code is it: the user's, or a library's? |
//! | `nesting` | are functions nested too deeply to be read safely? |
//! | `line_budget` | do the line tables take too much memory or time? |
//! | `demangle`, `symbol_table` | which function or static covers the address, and what is its name in the source? |
//! | `answers` | what was found, to be kept with a saved ring |
//! | `caller` | which line called a wrapper? |
//! | `direct_call` | which function does a call instruction call? |
//! | `imports` | and which one of another module? |
//! | `unwind_index`, `unwind_sections` | which bytes say how a stack is unwound? |
//! | `function_names` | which function has the address, by symbol tables alone? |
//! | `types` | which types has a function, and how are their values laid out? |
//! | `loaded` | all of these for the files of one module |
//! | `opened` | which files do several resolvers share? |
//! | `resolver` | all of these for the modules of a ring |

#![allow(missing_docs, reason = "a name that says it all has no comment")]

mod answers;
mod c_library;
mod caller;
mod compressed;
mod debug_sections;
mod demangle;
mod direct_call;
mod dwarf;
mod elf;
mod frame;
mod function_names;
mod imports;
mod line_budget;
mod loaded;
mod locate;
mod nesting;

mod opened;
mod packages;
mod path;
mod problem;
mod resolver;
mod split;
mod symbol_table;
mod types;
mod unwind_index;
mod unwind_sections;
mod whose;

pub use answers::Answers;
pub use caller::CallerLine;
pub use direct_call::{target_aarch64, target_x86_64};
pub use frame::Frame;
pub use function_names::FunctionNames;
pub use locate::Options;

pub use opened::OpenedFiles;
pub use problem::{ModuleProblem, Problem};
pub use resolver::Resolver;
pub use types::{KnownTypes, Member, Type, TypeId, Types, Variant, Variants};
pub use unwind_index::{Placed, UnwindIndex};
pub use unwind_sections::UnwindSections;
pub use whose::Whose;
