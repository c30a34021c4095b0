//! All text that the reader may print, in one list: so a message that is new or changed is read as a user reads it,
//! without the code around it.
//!
//! `READ_RIP_BLESS=1 cargo test -p read-rip --test messages` writes the list anew. Texts without a space are left out:
//! most of them are names. So are patterns of names, tests and documentation. What `{}` stands for is not known here.

#![allow(missing_docs, reason = "tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::LitStr;

/// The list, and the crates whose sources are read.
const LIST: &str = "tests/messages.txt";
const CRATES: [&str; 9] = [
    "src",
    "case/src",
    "evidence/src",
    "export/src",
    "files/src",
    "model/src",
    "report/src",
    "ring/src",
    "symbols/src",
];

#[test]
fn the_list_has_every_message() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut list = String::new();
    for part in CRATES {
        let mut files = Vec::new();
        sources(&root.join(part), &mut files);
        files.sort();
        assert!(!files.is_empty(), "{part}");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let tokens: TokenStream =
                text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let mut found = BTreeSet::new();
            texts(tokens, &mut found);
            if !found.is_empty() {
                list += &format!("\n{}\n", file.strip_prefix(root).unwrap().display());
                found.iter().for_each(|text| list += &format!("    {text}\n"));
            }
        }
    }
    let path = root.join(LIST);
    if std::env::var_os("READ_RIP_BLESS").is_some() {
        fs::write(&path, &list).unwrap();
    }
    let listed = fs::read_to_string(&path).unwrap();
    let first = list.lines().zip(listed.lines()).find(|(found, listed)| found != listed);
    assert!(
        list == listed,
        "{LIST} is old; READ_RIP_BLESS=1 writes it anew. The first difference: {first:?}"
    );
}

/// The sources of a crate, without those of tests.
fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs")
            && name != "tests"
            && name != "testing"
            && !name.ends_with("_tests")
        {
            found.push(path);
        }
    }
}

/// The texts with a space in these tokens, but for attributes and what is for tests only.
fn texts(tokens: TokenStream, found: &mut BTreeSet<String>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                // `#![...]` has a `!` in between.
                tokens.next_if(|next| matches!(next, TokenTree::Punct(mark) if mark.as_char() == '!'));
                let attribute = tokens.next_if(|next| is_group(next, Delimiter::Bracket));
                if attribute.is_some_and(|attribute| attribute.to_string().replace(' ', "") == "[cfg(test)]")
                {
                    // The item ends with its block or a semicolon.
                    let is_end = |token: &TokenTree| {
                        is_group(token, Delimiter::Brace)
                            || matches!(token, TokenTree::Punct(mark) if mark.as_char() == ';')
                    };
                    let _ = tokens.by_ref().find(is_end);
                }
            }
            TokenTree::Group(group) => texts(group.stream(), found),
            TokenTree::Literal(literal) => {
                let text = syn::parse_str::<LitStr>(&literal.to_string()).map(|text| text.value());
                let is_pattern = |word: &str| {
                    word.strip_suffix('*').is_some_and(|name| name.ends_with(char::is_alphanumeric))
                };
                let is_message = |text: &String| {
                    text.trim().contains(' ')
                        && text.contains(|letter: char| letter.is_alphabetic())
                        && !text.split(' ').any(is_pattern)
                };
                found.extend(text.ok().filter(is_message).map(|text| text.escape_debug().to_string()));
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

fn is_group(token: &TokenTree, delimiter: Delimiter) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == delimiter)
}

#[test]
fn attributes_and_tests_are_left_out() {
    let source = r##"
        /// a comment
        #[doc = "an attribute"]
        fn says(n: u64) { println!("a {n} message\n"); let name = "name"; let _ = ["in an", r"array 1"]; }
        #[cfg(test)]
        mod tests { const A: &str = "a test"; }
        const B: &str = "after it";
    "##;
    let mut found = BTreeSet::new();
    texts(source.parse().unwrap(), &mut found);
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a {n} message\\n", "after it", "array 1", "in an"]);
}
