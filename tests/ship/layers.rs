//! The drawings of ARCHITECTURE.md: which folder may import which, and no two files import each other in a circle.
//!
//! It reads `use` declarations and paths that start with `crate`, `super` or `self`. It leaves out unit tests, and
//! macros, whose expansions name paths for the caller.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use librip_test_kit::tool::repository;
use regex::Regex;

/// The recorder's folders and top files, from the bottom up. One may import those before it.
const RECORDER: &[&str] = &[
    "sys",
    "arch",
    "ring",
    "process",
    "event",
    "lock",
    "start",
    "runtime",
    "task",
    "bridge",
    "interpose",
    "capi",
    "marks",
    "",
];
/// The reader's. `process` stands beside the ring, and knows nothing else.
const READER: &[&str] = &[
    "printable",
    "hash",
    "patience",
    "shares",
    "saved_text",
    "ring",
    "target",
    "process",
    "events",
    "core",
    "stacks",
    "waits",
    "standing",
    "locations",
    "threads",
    "locks",
    "log",
    "findings",
    "report",
    "export",
    "top",
    "page",
    "cli",
    "app",
    "main",
    "",
];

#[test]
fn the_recorders_files_import_in_one_direction() {
    check("librip/src", RECORDER);
}

#[test]
fn the_readers_files_import_in_one_direction() {
    check("read-rip/src", READER);
}

#[test]
fn no_two_files_that_read_debug_information_import_each_other() {
    let imports = imports(&repository().join("read-rip/symbols/src"));
    assert!(imports.len() > 20, "{imports:?}");
    assert_eq!(circle(&imports), [""; 0]);
}

#[test]
fn an_import_upwards_and_a_circle_are_noticed() {
    let files: Imports = [("ring::map", "lock::table"), ("lock::a", "lock::b"), ("lock::b", "lock::a")]
        .map(|(from, to)| (from.to_owned(), BTreeSet::from([to.to_owned()])))
        .into();
    assert_eq!(upwards(&files, RECORDER), ["ring::map imports lock::table"]);
    assert_eq!(circle(&files), ["lock::a", "lock::b", "lock::a"]);
}

/// The modules that each module imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

fn check(root: &str, layers: &[&str]) {
    let imports = imports(&repository().join(root));
    assert!(imports.len() > 20, "{root}: {imports:?}");
    assert_eq!(upwards(&imports, layers), [""; 0], "{root}");
    assert_eq!(circle(&imports), [""; 0], "{root}");
}

/// The imports of a later layer by an earlier one.
fn upwards(imports: &Imports, layers: &[&str]) -> Vec<String> {
    let layer = |module: &str| {
        let top = module.split("::").next().unwrap_or_default();
        layers.iter().position(|&layer| layer == top).unwrap_or_else(|| panic!("{module} is in no layer"))
    };
    let pairs = imports.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
    pairs
        .filter(|(from, to)| layer(from) < layer(to))
        .map(|(from, to)| format!("{from} imports {to}"))
        .collect()
}

/// Modules that import each other in a circle, with the first one again at the end; none if there is no circle.
fn circle(imports: &Imports) -> Vec<&str> {
    fn visit<'a>(
        imports: &'a Imports,
        module: &'a str,
        path: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> bool {
        if let Some(start) = path.iter().position(|&seen| seen == module) {
            path.drain(..start);
            path.push(module);
            return true;
        }
        if done.contains(module) {
            return false;
        }
        path.push(module);
        if imports.get(module).into_iter().flatten().any(|next| visit(imports, next, path, done)) {
            return true;
        }
        path.pop();
        done.insert(module);
        false
    }
    let (mut path, mut done) = (Vec::new(), BTreeSet::new());
    for module in imports.keys() {
        if visit(imports, module, &mut path, &mut done) {
            return path;
        }
    }
    Vec::new()
}

/// Reads all files below a folder.
fn imports(root: &Path) -> Imports {
    let mut texts = BTreeMap::new();
    read(root, root, &mut texts);
    let modules: BTreeSet<String> = texts.keys().cloned().collect();
    let paths = Regex::new(r"(?:^|[^\w:$])((?:crate|self|super(?:::super)*)::[\w:]*(?:\{[^;]*?\};)?)")
        .expect("a regex");
    let mut imports = Imports::new();
    for (module, text) in &texts {
        let found = paths.captures_iter(text).flat_map(|found| expand(&found[1]));
        let targets = found.map(|path| target(module, &path, &modules));
        // A child that names its parent means an item of it, and so does a file that names itself.
        let others = targets.filter(|other| !other.is_empty() && other != module);
        imports.insert(module.clone(), others.collect());
    }
    imports
}

fn read(root: &Path, folder: &Path, texts: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read(root, &path, texts);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).expect("below the root").with_extension("");
            let mut parts: Vec<&str> = name.iter().filter_map(|part| part.to_str()).collect();
            if matches!(parts.last(), Some(&"mod" | &"lib")) {
                parts.pop();
            }
            let text = fs::read_to_string(&path).expect("a source");
            let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
            texts.insert(parts.join("::"), code.join("\n"));
        }
    }
}

/// The paths of a `use` declaration: `a::{b, c::{d, e}}` is `a::b`, `a::c::d` and `a::c::e`.
fn expand(path: &str) -> Vec<String> {
    let Some((head, rest)) = path.split_once('{') else { return vec![path.trim().to_owned()] };
    let body = rest.rsplit_once('}').map_or(rest, |(body, _)| body);
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for letter in body.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("never empty").push(letter);
    }
    let inner = parts.iter().filter(|part| !part.trim().is_empty()).flat_map(|part| expand(part));
    inner.map(|part| format!("{}{}", head.trim(), part.trim())).collect()
}

/// The module that a path in `module` leads to: the longest beginning of it that is a file.
fn target(module: &str, path: &str, modules: &BTreeSet<String>) -> String {
    let mut at: Vec<&str> = module.split("::").filter(|part| !part.is_empty()).collect();
    let mut parts = path.split("::").filter(|part| !part.is_empty()).peekable();
    if parts.next_if_eq(&"crate").is_some() {
        at.clear();
    }
    parts.next_if_eq(&"self");
    while parts.next_if_eq(&"super").is_some() {
        at.pop();
    }
    at.extend(parts.map(|part| part.split_whitespace().next().unwrap_or_default()));
    while !at.is_empty() && !modules.contains(&at.join("::")) {
        at.pop();
    }
    at.join("::")
}
