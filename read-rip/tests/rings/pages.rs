//! The pages of `docs/`: what can be said of them without the programs that they are about.
//!
//! `viewers/pages.rs` runs their commands.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use read_rip_export::tables::{Column, Key, Row, TABLES};

/// No picture is longer than this.
const PICTURE_LEN_BYTES_MAX: u64 = 80 << 10;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs")
}

/// The names of the files there that end so.
fn files(end: &str) -> BTreeSet<String> {
    let names =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(end)).collect()
}

/// A list of columns, as the page has it.
fn list(columns: &[Column]) -> String {
    let mut text = "| column | type | may be null | says |\n|---|---|---|---|\n".to_owned();
    for column in columns {
        let nullable = if column.is_nullable { "yes" } else { "" };
        let about = column.about.trim().replace('|', "\\|");
        writeln!(text, "| `{}` | {} | {nullable} | {about} |", column.name(), column.kind.name()).unwrap();
    }
    text
}

#[test]
fn the_columns_in_the_page_are_those_of_the_tables() {
    let path = folder().join("tables.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, after) = page.split_once("<!-- Made from the tables").unwrap();
    let (remark, found) = after.split_once("-->\n").unwrap();
    let mut expected = format!("\n### Of all tables\n\n{}", list(Key::TABLE.columns));
    for table in TABLES {
        let about = table.about.trim();
        write!(expected, "\n### {}\n\n{about}\n\n{}", table.name, list(table.columns)).unwrap();
    }
    if std::env::var_os("READ_RIP_BLESS").is_some() {
        let whole = format!("{before}<!-- Made from the tables{remark}-->\n{expected}");
        fs::write(&path, whole).unwrap();
    } else {
        assert_eq!(found, expected);
    }
}

#[test]
fn each_link_of_a_page_leads_to_a_file_and_each_picture_is_small_and_shown() {
    let mut linked = BTreeSet::new();
    for name in files(".md") {
        let page = fs::read_to_string(folder().join(&name)).unwrap();
        for link in page.split("](").skip(1).map(|rest| rest.split_once(')').unwrap().0) {
            if !link.starts_with("https://") {
                let target = link.split('#').next().unwrap();
                assert!(folder().join(target).exists(), "{name}: {link}");
                linked.insert(target.to_owned());
            }
        }
    }
    let mut present = files(".md");
    present.remove("README.md");
    present.extend(files(".png"));
    assert_eq!(present.difference(&linked).collect::<Vec<_>>(), Vec::<&String>::new());
    for name in files(".png") {
        let len = fs::metadata(folder().join(&name)).unwrap().len();
        assert!(len <= PICTURE_LEN_BYTES_MAX, "{name} has {len} bytes");
    }
}
