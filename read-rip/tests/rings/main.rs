//! Rings and copies of rings: what each command shows of them, sound, damaged or hostile.

#![allow(missing_docs, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod bounds;
mod check;
mod command_line;
mod damage;
mod debug_files;
mod difference;
mod export;
mod flips;
mod folded;
mod golden;
mod guide;
mod hostile;
mod interrupted;
mod legacy;
mod line_tables;
mod lock_model;
mod locks;
mod log;
mod module_files;
mod namespaces;
mod output;
mod page;
mod pages;
mod planted;
mod polls;
mod processes;
mod recording;
mod resolve;
mod run;
mod schema;
mod slow;
mod streams;
mod tasks;
mod times;
