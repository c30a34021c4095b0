//! The file: everything that can be read without script, and the data for the rest.

use std::io::{self, Write};

use read_rip_model::locations::Location;
use read_rip_model::locks::TaskGroup;
use read_rip_model::threads::Group;
use read_rip_report::{
    FindingText, balance_lines, count_of_findings, counted, duration, finding_text, task_group,
};
use read_rip_report::{LockRow, Severity};

use super::Page;
use super::data::Data;
use super::graph::drawing;
use super::html::{Text, json, policy};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = concat!(include_str!("list.js"), include_str!("timeline.js"), include_str!("page.js"));

/// More findings are only counted.
const FINDINGS_MAX: usize = 200;
/// The page lists at most this many places where threads are, and this many marks in each.
const PLACES_MAX: usize = 30;
const MARKS_MAX: usize = 6;
/// So many locks are there without script, and on paper.
const LOCKS_MAX: usize = 15;
/// More stacks are only counted.
const STACKS_MAX: usize = 200;

/// Without rows, these sections say nothing.
const LEFT_OUT_IF_EMPTY: [&str; 3] = ["timelines", "events", "spans"];

/// Writes the page.
///
/// # Errors
///
/// Those of `out`.
pub fn page(out: &mut dyn Write, page: &Page<'_>) -> io::Result<()> {
    let mut document = Document { out, page };
    document.head()?;
    document.header()?;
    writeln!(document.out, "<main id=\"main\">")?;
    document.verdict()?;
    document.graph()?;
    document.places()?;
    document.locks()?;
    document.lists()?;
    document.stacks()?;
    document.remarks()?;
    document.facts()?;
    writeln!(document.out, "</main>\n<script type=\"application/json\" id=\"data\">")?;
    json(document.out, &Data::of(page))?;
    writeln!(document.out, "</script>\n<script>{SCRIPT}</script>\n</body>\n</html>")
}

struct Document<'d, 'p> {
    out: &'d mut dyn Write,
    page: &'d Page<'p>,
}

impl Document<'_, '_> {
    fn head(&mut self) -> io::Result<()> {
        write!(
            self.out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{}: read-rip report</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
            policy(STYLE, SCRIPT),
            Text(&self.page.process)
        )
    }

    fn header(&mut self) -> io::Result<()> {
        let Page { process, picture, log, .. } = self.page;
        // The heading names the process again.
        let about = picture.heading.strip_prefix(process.as_str()).unwrap_or(&picture.heading);
        write!(
            self.out,
            "<a class=\"skip\" href=\"#main\">Skip to the verdict</a>\n<header>\n<div class=\"who\">\
             <p class=\"kind\">read-rip report, {}</p>\n<h1>{}</h1>\n<p class=\"state\">{}</p></div>\n\
             <button type=\"button\" id=\"theme\" class=\"live\">Colours: auto</button>\n</header>\n\
             <nav aria-label=\"Sections\"><ul>",
            Text(&self.page.written),
            Text(process),
            Text(about.trim_start_matches([',', ' ']))
        )?;
        let counts = [
            ("verdict", "Verdict", Some(self.page.found.len())),
            ("graph", "Who waits", None),
            ("places", "Places", Some(self.page.groups.len() + self.page.task_groups.len())),
            ("locks", "Locks", Some(picture.locks.len())),
            ("timelines", "Timelines", Some(self.page.timelines.len())),
            ("threads", self.threads_and_tasks(), Some(picture.threads.len())),
            ("events", "Events", Some(log.entries.len())),
            ("spans", "Spans", Some(log.spans.len())),
            ("stacks", "Stacks", Some(self.page.stacks.len())),
            ("remarks", "Not known", Some(self.page.remarks.len())),
            ("about", "About", None),
        ];
        for (id, name, count) in counts {
            if LEFT_OUT_IF_EMPTY.contains(&id) && count == Some(0) {
                continue;
            }
            let count = match count.filter(|&count| count > 0) {
                Some(count) => format!(" <span class=\"count\">{count}</span>"),
                None => String::new(),
            };
            write!(self.out, "<li><a href=\"#{id}\">{name}{count}</a></li>")?;
        }
        writeln!(
            self.out,
            "</ul></nav>\n<noscript><p class=\"note\">The lists, the timelines and the search need JavaScript. The \
             verdict, the findings, the graph and the stacks do not.</p></noscript>"
        )
    }

    /// What the list of threads is called: it may have tasks.
    fn threads_and_tasks(&self) -> &'static str {
        if self.page.picture.has_tasks() { "Threads and tasks" } else { "Threads" }
    }

    /// Begins a section with a heading.
    fn section(&mut self, id: &str, heading: &str, about: &str) -> io::Result<()> {
        writeln!(
            self.out,
            "<section id=\"{id}\" aria-labelledby=\"{id}-h\">\n<h2 id=\"{id}-h\">{heading}</h2>"
        )?;
        if about.is_empty() { Ok(()) } else { writeln!(self.out, "<p class=\"about\">{}</p>", Text(about)) }
    }

    fn end(&mut self) -> io::Result<()> {
        writeln!(self.out, "</section>")
    }

    fn paragraph(&mut self, class: &str, text: &str) -> io::Result<()> {
        writeln!(self.out, "<p class=\"{class}\">{}</p>", Text(text))
    }

    fn items<'t>(&mut self, class: &str, items: impl IntoIterator<Item = &'t str>) -> io::Result<()> {
        write!(self.out, "<ul class=\"{class}\">")?;
        for item in items {
            write!(self.out, "<li>{}</li>", Text(item))?;
        }
        writeln!(self.out, "</ul>")
    }

    fn verdict(&mut self) -> io::Result<()> {
        let Page { found, checked, names, picture, .. } = self.page;
        let mut lines = balance_lines(checked, found.is_empty(), names).into_iter();
        // The worst finding comes first.
        let (heading, class, count) = match found.first() {
            Some(worst) => {
                let summary = finding_text(worst, names).summary;
                let heading = format!("{} {}: {summary}", worst.confidence.name(), worst.kind.name());
                (heading, class_of(picture.severity), Some(count_of_findings(checked)))
            }
            None if checked.balance.outcome.is_judged() => (lines.next().unwrap_or_default(), "sound", None),
            None => (lines.next().unwrap_or_default(), "unjudged", None),
        };
        writeln!(self.out, "<section id=\"verdict\" aria-labelledby=\"verdict-h\" class=\"{class}\">")?;
        writeln!(self.out, "<h2 id=\"verdict-h\"><span>Verdict</span> {}</h2>", Text(&heading))?;
        let lines: Vec<String> = count.into_iter().chain(lines.map(|line| line.trim().to_owned())).collect();
        if !lines.is_empty() {
            self.items("balance", lines.iter().map(String::as_str))?;
        }
        for finding in found.iter().take(FINDINGS_MAX) {
            let confidence = finding.confidence;
            let FindingText { summary, evidence, doubts, premises, advice } = finding_text(finding, names);
            let class = class_of(Severity::from(confidence));
            writeln!(self.out, "<article class=\"finding {class}\">")?;
            // The heading says the same of the only one.
            if found.len() > 1 {
                let (confidence, kind) = (confidence.name(), finding.kind.name());
                writeln!(self.out, "<h3><span class=\"badge\">{confidence}</span> {kind}</h3>")?;
                self.paragraph("summary", &summary)?;
            }
            self.items("evidence", evidence.iter().map(String::as_str))?;
            write!(self.out, "<dl>")?;
            for (name, texts) in [("Doubt", doubts), ("Assumed", premises), ("Next", advice)] {
                if !texts.is_empty() {
                    write!(self.out, "<dt>{name}</dt>")?;
                }
                for text in texts {
                    write!(self.out, "<dd>{}</dd>", Text(&text))?;
                }
            }
            writeln!(self.out, "</dl>\n</article>")?;
        }
        self.more(found.len(), FINDINGS_MAX, "finding", "read-rip check")?;
        self.end()
    }

    /// Says how many things of a list are left out, and what shows them.
    fn more(&mut self, all: usize, shown: usize, thing: &str, command: &str) -> io::Result<()> {
        match all.saturating_sub(shown) {
            0 => Ok(()),
            more => {
                let more = counted(more as u64, &format!("more {thing}"));
                self.paragraph("more", &format!("{more} left out: {command} shows all."))
            }
        }
    }

    fn graph(&mut self) -> io::Result<()> {
        let has_tasks = self.page.names.model.has_tasks();
        self.section("graph", "Who waits for whom", "")?;
        match drawing(self.page.names, self.page.found) {
            None => {
                let nobody = match has_tasks {
                    true => {
                        "As far as read-rip knows, no thread or task waits for a lock or for another one to end."
                    }
                    false => "As far as read-rip knows, no thread waits for a lock or for another thread.",
                };
                self.paragraph("none", nobody)?;
            }
            Some(drawing) => {
                let who = if has_tasks { "thread or task" } else { "thread" };
                writeln!(
                    self.out,
                    "<p class=\"about\">A {who} points at the lock that it waits for, and a lock at the {who} that \
                     holds it. A dotted line leads from a channel to who uses its other side. Red is a \
                     circle of waits.</p>\n<div class=\"drawing\" tabindex=\"0\" role=\"group\" \
                     aria-label=\"Graph of waits\">{}</div>",
                    drawing.svg
                )?;
                write!(self.out, "<details><summary>The graph in words</summary>")?;
                self.items("words", drawing.sentences.iter().map(String::as_str))?;
                writeln!(self.out, "</details>")?;
                let shown =
                    "the graph shows those around the locks of findings, and around those with most waiters";
                if drawing.left_out > 0 {
                    let (count, who) =
                        (drawing.left_out, if has_tasks { "threads, tasks" } else { "threads" });
                    self.paragraph("more", &format!("{count} more {who} and locks are left out: {shown}."))?;
                }
            }
        }
        self.end()
    }

    fn places(&mut self) -> io::Result<()> {
        let about = "Threads by the function of their last mark, or by where the kernel says they are. Beside each \
                     line is its number of threads.";
        let Page { groups, task_groups, .. } = self.page;
        match task_groups.is_empty() {
            true => self.section("places", "Where threads are", about)?,
            false => self.section("places", "Where threads and tasks are", about)?,
        }
        if groups.is_empty() {
            self.paragraph("none", "read-rip does not know where any thread is.")?;
        }
        let most = groups.first().map_or(1, |group| group.threads).max(1);
        writeln!(self.out, "<ol class=\"places\">")?;
        for group in groups.iter().take(PLACES_MAX) {
            self.place(group, most)?;
        }
        writeln!(self.out, "</ol>")?;
        self.more(groups.len(), PLACES_MAX, "place", "read-rip")?;
        if !task_groups.is_empty() {
            self.tasks(task_groups)?;
        }
        self.end()
    }

    /// What tasks do, and where.
    fn tasks(&mut self, groups: &[TaskGroup]) -> io::Result<()> {
        self.paragraph("about", "Tasks by what they do, and by the await where they are suspended.")?;
        let most = groups.first().map_or(1, |group| group.tasks.len()).max(1);
        writeln!(self.out, "<ol class=\"places tasks\">")?;
        for group in groups.iter().take(PLACES_MAX) {
            let (does, count, longest) = task_group(group, self.page.names);
            self.bar(group.tasks.len(), most)?;
            writeln!(
                self.out,
                "<span class=\"number\">{}</span> <span class=\"function\">{}</span> \
                 <span class=\"marks\"><span>{}</span></span></li>",
                Text(&count),
                Text(&does),
                Text(&longest.unwrap_or_default())
            )?;
        }
        writeln!(self.out, "</ol>")?;
        self.more(groups.len(), PLACES_MAX, "place", "read-rip tasks")
    }

    /// Begins an item of a list, with a bar for its number.
    fn bar(&mut self, number: usize, most: usize) -> io::Result<()> {
        // A policy that forbids styles in attributes allows those of SVG.
        let percent = 100.0 * number as f64 / most as f64;
        write!(
            self.out,
            "<li><svg class=\"bar\" aria-hidden=\"true\" width=\"100%\" height=\"100%\"><rect width=\"{percent:.2}%\" \
             height=\"100%\"/></svg>"
        )
    }

    fn place(&mut self, group: &Group, most: usize) -> io::Result<()> {
        let names = self.page.names;
        let of = |location| -> &Location { names.locations.get(location) };
        let first = group.locations.first().and_then(|at| of(at.location).users_source());
        let name = match first {
            Some((file, _)) if group.function.is_empty() => names.texts.file(file),
            _ => &group.function,
        };
        self.bar(group.threads, most)?;
        write!(
            self.out,
            "<span class=\"number\">{}</span> <span class=\"function\">{}</span> \
             <span class=\"marks\">",
            counted(group.threads as u64, "thread"),
            Text(name)
        )?;
        for at in group.locations.iter().take(MARKS_MAX) {
            let line = names.texts.of(of(at.location));
            write!(self.out, "<span>{} <b>{}</b></span> ", Text(&line), at.tids.len())?;
        }
        if group.locations.len() > MARKS_MAX {
            write!(self.out, "<span>and {} more</span>", group.locations.len() - MARKS_MAX)?;
        }
        writeln!(self.out, "</span></li>")
    }

    fn locks(&mut self) -> io::Result<()> {
        let about = "The locks with most waiters come first. The small histograms count lengths of time, from \
                     256 ns to hours; each bar is four times as long as the one before.";
        let locks = &self.page.picture.locks;
        self.section("locks", "Locks", if locks.is_empty() { "" } else { about })?;
        if locks.is_empty() {
            self.paragraph("none", "No lock is known.")?;
            return self.end();
        }
        write!(
            self.out,
            "<div class=\"live\" data-list=\"locks\"></div>\n<table class=\"static\"><thead><tr><th>Lock</th>\
             <th>Held by</th><th>Waiting</th><th>Acquired</th><th>Contended</th><th>Wait p50, max</th>\
             <th>Hold p50, max</th></tr></thead><tbody>"
        )?;
        for (row, record) in locks.iter().zip(&self.page.records).take(LOCKS_MAX) {
            self.lock(row, &[&record.waits_ns, &record.holds_ns])?;
        }
        writeln!(self.out, "</tbody></table>")?;
        let all = locks.len() + self.page.picture.more_locks;
        self.more(all, locks.len(), "lock", "read-rip locks --all")?;
        self.end()
    }

    fn lock(&mut self, row: &LockRow, lengths: &[&Vec<u64>]) -> io::Result<()> {
        let numbers = [row.waiters as u64, row.acquisitions, row.contended].map(|number| number.to_string());
        let lengths = lengths.iter().map(|of| {
            let of = read_rip_model::locks::Quantiles::of(of);
            of.map_or_else(String::new, |of| format!("{}, {}", duration(of.p50_ns), duration(of.max_ns)))
        });
        write!(self.out, "<tr><th scope=\"row\">{}</th><td>{}</td>", Text(&row.name), Text(&row.held))?;
        for cell in numbers.into_iter().chain(lengths) {
            write!(self.out, "<td>{}</td>", Text(&cell))?;
        }
        writeln!(self.out, "</tr>")
    }

    /// The sections that the script fills.
    fn lists(&mut self) -> io::Result<()> {
        let Page { timelines, timelines_left_out, picture, log, .. } = self.page;
        let about = match picture.has_tasks() {
            true => {
                "Waits, holds and spans with their times, of the threads and tasks that wait for locks, of those that \
                 hold them, and of those that did the most. For a task also what it does now, and since when."
            }
            false => {
                "Waits, holds and spans with their times, of the threads that wait for locks, of those that hold \
                 them, and of those that did the most."
            }
        };
        let left_out = (!timelines_left_out.is_empty()).then(|| {
            let threads = self.page.names.members(timelines_left_out, timelines_left_out.len());
            format!("{threads} left out; the option --threads of read-rip report shows more.")
        });
        self.list("timelines", "Timelines", about, timelines.len(), left_out)?;
        let about = "Threads and tasks that exist, or existed when the process ended. Those whose locks others wait for come \
             first, then those that wait.";
        self.list("threads", self.threads_and_tasks(), about, picture.threads.len(), None)?;
        let about = "What the program logged, of all threads in one order, as read-rip log shows it.";
        let left_out = (log.left_out > 0).then(|| {
            let events = counted(log.left_out as u64, "older event");
            format!("{events} left out; the option --events of read-rip report shows more.")
        });
        self.list("events", "Events", about, log.entries.len(), left_out)?;
        let about = "How long spans took, by their name and place, and which are open.";
        self.list("spans", "Spans", about, log.spans.len(), None)
    }

    /// A section with a list of so many rows, and what is left out of it.
    fn list(
        &mut self,
        id: &str,
        heading: &str,
        about: &str,
        rows: usize,
        left_out: Option<String>,
    ) -> io::Result<()> {
        if rows == 0 && LEFT_OUT_IF_EMPTY.contains(&id) {
            return Ok(());
        }
        self.section(id, heading, if rows > 0 { about } else { "" })?;
        match rows {
            0 => self.paragraph("none", "No thread is known.")?,
            _ => writeln!(
                self.out,
                "<div class=\"live\" data-list=\"{id}\"></div>\n<p class=\"static none\">This list needs \
                 JavaScript, and is not printed.</p>"
            )?,
        }
        if let Some(left_out) = left_out {
            self.paragraph("more", &left_out)?;
        }
        self.end()
    }

    fn stacks(&mut self) -> io::Result<()> {
        self.section(
            "stacks",
            "Stacks",
            "Threads with the same stack are one group, the largest one first.",
        )?;
        let stacks = &self.page.stacks;
        if stacks.is_empty() {
            self.paragraph(
                "none",
                "Stacks are known of living processes and of core files, and not of a ring alone.",
            )?;
        }
        for stack in stacks.iter().take(STACKS_MAX) {
            let Some((threads, lines)) = stack.split_first() else { continue };
            write!(self.out, "<details><summary>{}</summary><pre tabindex=\"0\">", Text(threads))?;
            for line in lines {
                writeln!(self.out, "{}", Text(line))?;
            }
            writeln!(self.out, "</pre></details>")?;
        }
        self.more(stacks.len(), STACKS_MAX, "stack", "read-rip stacks")?;
        self.end()
    }

    fn remarks(&mut self) -> io::Result<()> {
        self.section("remarks", "What is not known", "")?;
        let remarks = &self.page.remarks;
        match remarks.is_empty() {
            true => self.paragraph("none", "Nothing that was recorded is missing.")?,
            false => self.items("remarks", remarks.iter().map(String::as_str))?,
        }
        self.end()
    }

    fn facts(&mut self) -> io::Result<()> {
        self.section("about", "About", "")?;
        let by = format!("written {} by read-rip {}", self.page.written, env!("CARGO_PKG_VERSION"));
        let facts = &self.page.facts;
        let is_module = |fact: &&(String, String)| fact.0 == "module";
        write!(self.out, "<dl class=\"facts\"><dt>report</dt><dd>{}</dd>", Text(&by))?;
        for (name, value) in facts.iter().filter(|fact| !is_module(fact)) {
            write!(self.out, "<dt>{}</dt><dd>{}</dd>", Text(name), Text(value))?;
        }
        writeln!(self.out, "</dl>")?;
        let modules = facts.iter().filter(is_module).count();
        if modules > 0 {
            let count = counted(modules as u64, "module");
            write!(self.out, "<details><summary>{count}</summary><pre tabindex=\"0\">")?;
            for (_, value) in facts.iter().filter(is_module) {
                writeln!(self.out, "{}", Text(value))?;
            }
            writeln!(self.out, "</pre></details>")?;
        }
        self.end()
    }
}

/// The class of a section or an article.
fn class_of(severity: Severity) -> &'static str {
    match severity {
        Severity::None => "sound",
        Severity::Suspected => "suspected",
        Severity::Potential => "potential",
        Severity::Proven => "proven",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_script_or_the_style_ends_their_elements_or_makes_markup_of_text() {
        for text in [STYLE, SCRIPT] {
            assert!(!text.contains("</") && !text.contains("<!--") && !text.contains('\r'));
        }
        for unsafe_name in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "setAttribute(\"style\"",
        ] {
            assert!(!SCRIPT.contains(unsafe_name), "{unsafe_name}");
        }
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
    }
}
