//! Exports, read by the programs that they are for. `scripts/viewers` fetches what is not a package of Debian.
//!
//! A test whose viewer is missing says so in one line and ends. The formats themselves, and damaged rings, are tested
//! in `rings/export.rs`.

#![allow(missing_docs, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod babeltrace;
mod browser;
mod duckdb;
mod examples;
mod firefox;
mod fleet;
mod pages;
mod perfetto;
mod prometheus;
mod report;
mod schema;
mod tools;
