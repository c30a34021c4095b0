//! Where a thread waits in a library, each view says which line of the user has called it, and what it called.
//!
//! The library is a vendored one: only its path tells it from the program. Without a lock in it, the same program is
//! shown as before.

use std::fs;

use serde_json::Value;

use crate::support::compiled::Fixture;
use crate::support::unprepared::{Stuck, contains};

/// A library whose lock is two calls below what it exports.
const POOL: &str = "
#include <pthread.h>
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noipa)) static void wait_for_turn(void) { pthread_mutex_lock(&turn); __asm__ volatile(\"\"); }
__attribute__((noipa)) static void pool_enter(void) { wait_for_turn(); __asm__ volatile(\"\"); }
__attribute__((noipa)) void pool_take(void) { pool_enter(); __asm__ volatile(\"\"); }
";

/// Two threads that wait for one another: one lock is the library's, the other one the program's.
const APP: &str = "
#include <pthread.h>
#include <stddef.h>
void pool_take(void);
static pthread_mutex_t orders = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t halfway;
__attribute__((noipa)) static void take_orders(void) { pthread_mutex_lock(&orders); __asm__ volatile(\"\"); }
__attribute__((noipa)) static void *serve(void *unused) {
    take_orders(); // serve: orders
    pthread_barrier_wait(&halfway);
    pool_take(); // serve: pool
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_barrier_init(&halfway, NULL, 2);
    pool_take();
    pthread_create(&thread, NULL, serve, NULL);
    pthread_barrier_wait(&halfway);
    pthread_mutex_lock(&orders); // main: orders
    return 0;
}
";

fn line_of(comment: &str) -> usize {
    1 + APP.lines().position(|line| line.contains(comment)).unwrap()
}

fn start() -> (Fixture, Stuck) {
    let fixture = Fixture::new("app.c", APP);
    let library = fixture.path("vendor/pool-1.2.0");
    fs::create_dir_all(&library).unwrap();
    fs::write(library.join("pool.c"), POOL).unwrap();
    fixture.run("gcc -g -O1 -pthread app.c vendor/pool-1.2.0/pool.c -o app");
    let stuck = Stuck::start(&fixture.path("app"), &[], 2);
    (fixture, stuck)
}

#[test]
fn findings_and_views_say_what_the_user_has_called_and_where() {
    let (_fixture, stuck) = start();
    let place = format!("pool_take of pool, called from serve app.c:{}", line_of("serve: pool"));
    let own = format!("main app.c:{}", line_of("main: orders"));
    let found = stuck.read(&["check", "--no-source"]).stdout;
    contains(&found, &["proven deadlock", &format!(" at {place}\n"), &format!(" at {own}\n")]);
    assert!(!found.contains("wait_for_turn") && !found.contains("pool.c"), "{found}");
    contains(&stuck.read(&["-t"]).stdout, &[&place, &own]);
    let view = format!("serve : 1 thread at app.c:{}, in pool_take of pool, waiting", line_of("serve: pool"));
    contains(&stuck.read(&[]).stdout, &[&view]);
    contains(&stuck.read(&["locks"]).stdout, &[&format!("waits at {place}")]);
    // All functions are there for those who want them.
    let all = stuck.read(&["check", "--no-source", "-v"]).stdout;
    contains(&all, &["wait_for_turn pool pool.c:4", "from pool pool.c:6", "from app.c:"]);
}

#[test]
fn a_stack_has_the_users_functions_and_what_they_called() {
    let (_fixture, stuck) = start();
    let folded = stuck.read(&["stacks"]).stdout;
    let called = "pool_take pool pool.c:6, ";
    contains(&folded, &[called, &format!("    serve app.c:{}\n", line_of("serve: pool")), " before\n"]);
    for hidden in ["wait_for_turn", "pool_enter", "start_thread", "clone"] {
        assert!(!folded.contains(hidden), "{hidden} is in\n{folded}");
    }
    let whole = stuck.read(&["stacks", "-v"]).stdout;
    contains(&whole, &["wait_for_turn pool pool.c:4", "pool_enter pool pool.c:5", "pool_take pool pool.c:6"]);
    assert!(!whole.contains(" inside"), "{whole}");
}

#[test]
fn json_has_the_line_of_the_user_and_says_whose_each_frame_is() {
    let (_fixture, stuck) = start();
    let finding = &stuck.findings()[0];
    let locations = finding["locations"].as_array().unwrap();
    let is_there = |of: &&Value| of["line"].as_u64() == Some(line_of("serve: pool") as u64);
    let place = locations.iter().find(is_there).unwrap_or_else(|| panic!("{finding:#}"));
    assert_eq!((place["function"].as_str(), place["whose"].as_str()), (Some("serve"), Some("user")));
    let inside: Vec<&str> =
        place["inside"].as_array().unwrap().iter().map(|frame| frame["function"].as_str().unwrap()).collect();
    assert_eq!(inside, ["wait_for_turn", "pool_enter", "pool_take"]);
    assert!(place["inside"].as_array().unwrap().iter().all(|frame| frame["package"] == "pool"));
    let stacks = stuck.read(&["stacks", "--json"]).data("stack");
    let frames: Vec<&Value> = stacks.iter().flat_map(|stack| stack["frames"].as_array().unwrap()).collect();
    let whose = |function: &str| {
        let of = frames.iter().find(|frame| frame["function"] == function);
        of.unwrap_or_else(|| panic!("{function}: {frames:#?}"))["whose"].as_str().unwrap()
    };
    assert_eq!((whose("serve"), whose("main"), whose("wait_for_turn")), ("user", "user", "library"));
    assert!(frames.iter().any(|frame| frame["whose"] == "system"), "{frames:#?}");
}

/// A package of a registry, with a lock and with an index that may be out of bounds.
const PACKAGE: &str = "
use std::sync::{Mutex, MutexGuard};
#[inline(never)]
pub fn take(boxes: &Mutex<Vec<u32>>, at: usize) -> u32 { enter(boxes)[at] }
#[inline(never)]
fn enter(boxes: &Mutex<Vec<u32>>) -> MutexGuard<'_, Vec<u32>> { boxes.lock().unwrap() }
";

/// A thread that waits in the package, and the main thread, which waits for it and has the lock.
const PROGRAM: &str = "
use std::sync::Mutex;
static BOXES: Mutex<Vec<u32>> = Mutex::new(Vec::new());
#[inline(never)]
fn serve(at: usize) -> u32 { pool::take(&BOXES, at) + 1 }
fn main() {
    let boxes = BOXES.lock().unwrap();
    let waits = std::thread::spawn(|| serve(std::env::args().count()));
    waits.join().unwrap();
    drop(boxes);
}
";

#[test]
fn without_debug_information_the_programs_constants_tell_its_packages() {
    let fixture = Fixture::new("app.rs", PROGRAM);
    let package = fixture.path("registry/src/index.crates.io-1949cf8c6b5b557f/pool-1.2.0/src");
    fs::create_dir_all(&package).unwrap();
    let source = package.join("lib.rs");
    fs::write(&source, PACKAGE).unwrap();
    let rustc = "rustc --edition 2024 -O -C debuginfo=0";
    fixture.run(&format!("{rustc} --crate-type rlib --crate-name pool {} -o libpool.rlib", source.display()));
    fixture.run(&format!("{rustc} --extern pool=libpool.rlib app.rs -o app"));
    let stuck = Stuck::start(&fixture.path("app"), &[], 2);
    contains(&stuck.read(&["-t"]).stdout, &["pool::take, called from app::serve app+0x"]);
    let folded = stuck.read(&["stacks"]).stdout;
    contains(&folded, &["pool::take, ", " app::serve\n"]);
    assert!(!folded.contains("pool::enter"), "{folded}");
}
