//! `read-rip top`: how screens look, what keys do, and the program in a real terminal.

#![allow(missing_docs, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod keys;
mod scene;
mod screens;
mod terminal;
