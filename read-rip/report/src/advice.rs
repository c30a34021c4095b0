//! The advice and the doubts of a finding, as text about this process: with its id, and with the words of its language.
//!
//! It chooses no advice: the analyses do. It only says it to the one who reads.

use std::borrow::Cow;

use read_rip_model::findings::{Advice, Doubt, Finding};

use super::names::LockNames;

/// What to do about a finding, in its order.
pub(crate) fn advice(finding: &Finding, names: &LockNames<'_>) -> Vec<Cow<'static, str>> {
    finding.advice.iter().map(|&of| advice_text(of, finding, names)).collect()
}

/// One of its pieces of advice.
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
    const EXTENSIONS: &[&str] = &["c", "cc", "cpp", "cxx", "c++", "C", "h", "hh", "hpp", "hxx", "inl", "tcc"];
    let files = finding.mentions.locations.iter().filter_map(|&id| {
        let (file, _) = names.locations.get(id).source.as_ref()?;
        file.rsplit_once('.').map(|(_, extension)| extension)
    });
    let mut files = files.peekable();
    files.peek().is_some() && files.all(|extension| EXTENSIONS.contains(&extension))
}
