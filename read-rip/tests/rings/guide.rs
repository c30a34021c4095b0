//! README.md and the guide: each chapter is listed, each link leads somewhere, each kind of finding and each setting
//! has its place, and each command line is one that the program takes.
//!
//! Not tested here: what the commands print. `scripts/sessions --check` runs them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use librip_format::settings::SETTINGS;
use read_rip_model::findings::Kind;

/// README.md is read in three minutes.
const README_LINES_MAX: usize = 200;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

fn chapters() -> PathBuf {
    repository().join("docs/guide/src")
}

fn chapter(name: &str) -> String {
    fs::read_to_string(chapters().join(name)).unwrap()
}

/// The files of the guide's sources that end so.
fn files(end: &str) -> BTreeSet<String> {
    let names = fs::read_dir(chapters()).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).filter(|name| name.ends_with(end)).collect()
}

/// README.md and all chapters, with their paths.
fn pages() -> Vec<(PathBuf, String)> {
    let chapters = files(".md").into_iter().map(|name| chapters().join(name));
    let paths = chapters.chain([repository().join("README.md")]);
    paths.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// The targets of the links in a text, and of its pictures.
fn links(text: &str) -> Vec<&str> {
    let of_markdown = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let of_html = text.split("src=\"").skip(1).filter_map(|rest| rest.split_once('"'));
    of_markdown.chain(of_html).map(|(link, _)| link).collect()
}

/// What a heading is called in a link.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() }).collect()
}

/// The text without blocks of code, and the blocks, each with its kind.
fn parts(text: &str) -> (String, Vec<(&str, Vec<&str>)>) {
    let (mut prose, mut blocks, mut is_inside) = (String::new(), Vec::new(), false);
    for line in text.lines() {
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            is_inside = !is_inside;
            if is_inside {
                blocks.push((kind, Vec::new()));
            }
        } else if let Some((_, block)) = blocks.last_mut().filter(|_| is_inside) {
            block.push(line);
        } else {
            prose += line;
            prose.push('\n');
        }
    }
    (prose, blocks)
}

fn prose(text: &str) -> String {
    parts(text).0
}

fn headings(text: &str) -> Vec<String> {
    let lines = prose(text);
    lines.lines().filter_map(|line| line.trim_start_matches('#').strip_prefix(' ').map(anchor)).collect()
}

#[test]
fn the_readme_is_short_and_has_the_two_commands() {
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    assert!(readme.lines().count() <= README_LINES_MAX, "{} lines", readme.lines().count());
    for command in ["\nscripts/demo ", "\nscripts/test "] {
        assert!(readme.contains(command), "{command}");
    }
}

#[test]
fn each_chapter_is_listed_once() {
    let summary = chapter("SUMMARY.md");
    let mut listed: Vec<&str> = links(&summary);
    let count = listed.len();
    listed.sort_unstable();
    listed.dedup();
    assert_eq!(listed.len(), count, "{summary}");
    let mut present = files(".md");
    present.remove("SUMMARY.md");
    assert_eq!(listed, present.iter().collect::<Vec<_>>());
}

#[test]
fn each_link_leads_to_a_file_and_its_heading() {
    for (page, text) in pages() {
        for link in links(&prose(&text)).into_iter().filter(|link| !link.starts_with("https://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: {link}", page.display());
            if !heading.is_empty() {
                let found = headings(&fs::read_to_string(target).unwrap());
                assert!(found.iter().any(|one| one == heading), "{}: {link}: {found:?}", page.display());
            }
        }
    }
}

#[test]
fn each_kind_of_finding_has_a_section_with_its_meaning_an_example_and_the_remedy() {
    let text = chapter("findings.md");
    let mut sections = text.split("\n## `").skip(1).map(|section| section.split_once("`\n").unwrap());
    let mut described = BTreeSet::new();
    sections.by_ref().for_each(|(kind, section)| {
        let (meaning, rest) =
            section.split_once("<!-- finding: ").unwrap_or_else(|| panic!("{kind}: no example"));
        let (_, example) = rest.split_once("```text\n").unwrap();
        let (example, remedy) = example.split_once("```\n").unwrap();
        let is_of_kind = |confidence: &&str| example.starts_with(&format!("{confidence} {kind}: "));
        assert!(["proven", "potential", "suspected"].iter().any(is_of_kind), "{kind}: {example}");
        assert!(example.contains("\n    "), "{kind} shows its evidence: {example}");
        assert!(meaning.trim().len() > 40 && remedy.trim().starts_with("**Remedy.** "), "{kind}: {remedy}");
        assert!(described.insert(kind), "{kind} twice");
    });
    let kinds: BTreeSet<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(described, kinds);
}

#[test]
fn each_setting_of_the_recorder_is_in_the_reference() {
    let text = chapter("reference.md");
    for setting in SETTINGS {
        assert!(text.contains(&format!("\n| `{}` | ", setting.name)), "{}", setting.name);
    }
}

/// The command lines of this program in a line of shell: what others do with its output is left out.
fn commands(line: &str) -> Vec<Vec<OsString>> {
    let line = line.split(" # ").next().unwrap();
    let mut found = Vec::new();
    for (at, _) in line.match_indices("read-rip ") {
        let is_word = at == 0 || b" /('".contains(&line.as_bytes()[at - 1]);
        let words = line[at..].split(['|', '>', ';', '&', '#', '\'', ')', '`']).next().unwrap();
        // Names that stand for something.
        let word = |word| match word {
            "COMMAND" => "check".into(),
            "SHELL" => "bash".into(),
            word => OsString::from(word),
        };
        if is_word {
            found.push(words.split_whitespace().map(word).collect());
        }
    }
    found
}

#[test]
fn the_program_takes_each_command_line() {
    let mut count = 0;
    for (page, text) in pages() {
        let (prose, blocks) = parts(&text);
        let mut lines: Vec<&str> = Vec::new();
        for (kind, block) in blocks {
            match kind {
                // The other lines are output.
                "console" => lines.extend(block.iter().filter(|line| line.starts_with("$ "))),
                "sh" | "ini" | "yaml" => lines.extend(block),
                _ => {}
            }
        }
        lines.extend(prose.split('`').skip(1).step_by(2).filter(|code| code.starts_with("read-rip ")));
        for line in lines {
            for words in commands(line) {
                count += 1;
                let is_name_alone = words.len() == 2;
                let Err(error) = read_rip::cli::parse(words) else { continue };
                let is_allowed = match error.kind() {
                    ErrorKind::DisplayHelp => true,
                    ErrorKind::MissingRequiredArgument => is_name_alone,
                    _ => false,
                };
                assert!(is_allowed, "{}: {line}: {error}", page.display());
            }
        }
    }
    assert!(count > 50, "{count} commands");
}
