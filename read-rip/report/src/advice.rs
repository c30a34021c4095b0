//! The advice and the doubts of a finding, as text about this process: with its id, and with the words of its language.
//!
//! It chooses no advice: the analyses do. It only says it to the one who reads.

use std::borrow::Cow;

use read_rip_model::findings::{Advice, Doubt, Finding};
use read_rip_model::locations::Location;
use read_rip_symbols::Whose;

use super::names::LockNames;

/// What to do about a finding, in its order.
pub(crate) fn advice(finding: &Finding, names: &LockNames<'_>) -> Vec<Cow<'static, str>> {
    finding.advice.iter().map(|&of| advice_text(of, finding, names)).collect()
}

pub(crate) fn advice_text(of: Advice, finding: &Finding, names: &LockNames<'_>) -> Cow<'static, str> {
    let text = of.text_for_c().filter(|_| is_about_c(finding, names)).unwrap_or_else(|| of.text());
    with_process(text, names)
}

/// What limits its confidence.
pub(crate) fn doubt_text(of: Doubt, finding: &Finding, names: &LockNames<'_>) -> &'static str {
    of.text_for_c().filter(|_| is_about_c(finding, names)).unwrap_or_else(|| of.text())
}

/// Puts the process where a text says `PID`.
fn with_process(text: &'static str, names: &LockNames<'_>) -> Cow<'static, str> {
    if !text.contains("PID") {
        return Cow::Borrowed(text);
    }
    // The id in the namespace of whoever reads, if the process was looked at.
    let pid = names.seen.map_or(names.model.pid, |seen| seen.standings.target.pid);
    if !names.model.is_final {
        return Cow::Owned(text.replace("PID", &pid.to_string()));
    }
    let of_file =
        if names.seen.is_some() { "read-rip stacks` of this file" } else { "read-rip -t` of this file" };
    Cow::Owned(text.replace("read-rip stacks PID`", of_file).replace("PID", &pid.to_string()))
}

/// Whether the places of a finding are in C or C++, as far as their source files are known.
fn is_about_c(finding: &Finding, names: &LockNames<'_>) -> bool {
    are_in_c(finding.mentions.locations.iter().map(|&id| names.locations.get(id))) == Some(true)
}

/// Whether the program is one in C or C++, as far as its source files are known: those of the program itself, or the
/// libraries that it has.
pub(super) fn is_of_c(names: &LockNames<'_>) -> bool {
    let has_library = || {
        let files = names.locations.modules().iter().filter_map(|module| module.path.file_name()?.to_str());
        files.into_iter().any(|file| file.starts_with("libstdc++.so") || file.starts_with("libc++.so"))
    };
    let own = names.locations.iter().filter(|location| location.whose == Whose::User);
    are_in_c(own).unwrap_or_else(has_library)
}

/// Whether all of these places are in C or C++; `None` if no source file is known.
fn are_in_c<'l>(places: impl Iterator<Item = &'l Location>) -> Option<bool> {
    const EXTENSIONS: &[&str] = &["c", "cc", "cpp", "cxx", "c++", "C", "h", "hh", "hpp", "hxx", "inl", "tcc"];
    let files = places.filter_map(|place| place.source.as_ref()?.0.rsplit_once('.'));
    let mut files = files.map(|(_, extension)| extension).peekable();
    files.peek()?;
    Some(files.all(|extension| EXTENSIONS.contains(&extension)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_files_of_a_program_tell_its_language() {
        let place = |file: &str| Location { source: Some((file.into(), 7)), ..Location::default() };
        let are_in_c = |files: &[&str]| {
            let places: Vec<Location> = files.iter().map(|file| place(file)).collect();
            are_in_c(places.iter())
        };
        assert_eq!(are_in_c(&["/src/pool.cpp", "/src/pool.hpp", "/src/list.c"]), Some(true));
        assert_eq!(are_in_c(&["/src/pool.cpp", "/src/main.rs"]), Some(false));
        assert_eq!(are_in_c(&[]), None, "its libraries tell");
    }
}
