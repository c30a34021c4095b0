//! The recorder's list of its system calls, in the documentation of `librip/src/sys.rs`, is complete.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use librip_test_kit::tool::repository;
use regex::Regex;

/// Calls `each` for the text of all Rust files below a directory.
fn for_each_file(directory: &Path, each: &mut impl FnMut(&str)) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            for_each_file(&path, each);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            each(&fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_system_call_of_the_recorder_is_in_the_list_and_the_list_has_no_other() {
    let source = repository().join("librip/src");
    let called = Regex::new(r"libc::SYS_([a-z0-9_]+)").unwrap();
    let mut calls = BTreeSet::new();
    for_each_file(&source, &mut |text| {
        calls.extend(called.captures_iter(text).map(|found| found[1].to_owned()));
    });
    assert!(calls.len() > 20, "{calls:?}");
    let text = fs::read_to_string(source.join("sys.rs")).unwrap();
    let (_, list) = text.split_once("# All system calls after the start").unwrap();
    let (list, _) = list.split_once("# All limits").unwrap();
    // The first column says when, and the last one why.
    let columns = list.lines().filter_map(|line| line.split('|').nth(2));
    let named = Regex::new(r"`([a-z0-9_]+)").unwrap();
    let listed: BTreeSet<String> = columns
        .flat_map(|column| named.captures_iter(column).map(|found| found[1].to_owned()).collect::<Vec<_>>())
        .collect();
    let listed: BTreeSet<String> =
        listed.into_iter().filter(|name| !["init", "dump", "exec"].contains(&name.as_str())).collect();
    assert_eq!(calls, listed, "called (left), and listed (right)");
}
