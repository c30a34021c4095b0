//! What the HTML page says, in its data and in its sentences, and the screen of `top`.

use regex::Regex;
use serde_json::Value;

use crate::facts::{Facts, NOTHING};
use crate::names::{Names, end_of};
use crate::texts::{balance, findings, lock_lines, task_words};

fn unescaped(text: &str) -> String {
    let entities =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"), ("&amp;", "&")];
    entities.iter().fold(text.to_owned(), |text, (entity, letter)| text.replace(entity, letter))
}

/// `report`.
pub(crate) fn page(html: &str, names: &Names) -> Facts {
    let mut facts = data(html, names);
    let all = |form: &str| -> Vec<String> {
        let form = Regex::new(form).unwrap();
        form.captures_iter(html).map(|found| unescaped(&found[1])).collect()
    };
    let kinds = all(r#"<h3><span class="badge">((?:proven|potential|suspected)</span> [a-z-]+)</h3>"#);
    let kinds: Vec<String> = kinds.iter().map(|kind| kind.replace("</span>", "")).collect();
    let summaries = all(r#"<p class="summary">([^<]*)</p>"#);
    let heading = &all(r#"<h2 id="verdict-h"><span>Verdict</span> ([^<]*)</h2>"#)[0];
    let of_heading = Regex::new(r"^(?:proven|potential|suspected) [a-z-]+").unwrap();
    if let Some(worst) = of_heading.find(heading) {
        // The heading has the sentence of the worst, and says all of the only one.
        let first = kinds.first().zip(summaries.first()).map(|(kind, summary)| format!("{kind}: {summary}"));
        assert!(first.is_none_or(|first| first == *heading), "{heading}");
        let kinds = if kinds.is_empty() { vec![worst.as_str().to_owned()] } else { kinds };
        findings(&mut facts, kinds, heading);
    } else if heading.starts_with("no findings in ") {
        facts.verdict("no findings");
    } else if heading.starts_with("not") {
        facts.verdict(heading.rsplit_once(" (").map_or(heading, |(sentence, _)| sentence));
    }
    all("<li>(of [0-9]+ (?:thread|task)s?: [^<]*)</li>").iter().for_each(|line| balance(&mut facts, line));
    for title in all(r#"<path class="edge [a-z]+[^>]*><title>([^<]*)</title>"#) {
        edge(&mut facts, &title, names);
    }
    facts
}

/// An edge of the drawing: `W: waiting for L, at P`, `L: held by W, acquired at P`.
fn edge(facts: &mut Facts, title: &str, names: &Names) {
    if let Some((who, rest)) = names.who(title)
        && let Some(words) = rest.strip_prefix(": waiting ")
    {
        let (what, _) = names.awaited(words).unwrap_or_else(|| panic!("{title}"));
        facts.waits(&who, &what);
    } else if let Some((lock, rest)) = names.lock(title)
        && let Some(holder) = rest.strip_prefix(": held by ")
        && let Some((who, _)) = names.who(holder)
    {
        facts.holds(&who, lock);
    }
}

/// The data for the script.
fn data(html: &str, names: &Names) -> Facts {
    let (_, from) = html.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    let (json, _) = from.split_once("</script>").unwrap();
    let data: Value = serde_json::from_str(json).unwrap();
    let texts: Vec<&str> =
        data["texts"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    let text = |at: &Value| texts[at.as_u64().unwrap() as usize];
    let locks = data["locks"].as_array().unwrap();
    let lines = locks.iter().flat_map(|lock| lock["lines"].as_array().unwrap());
    let mut facts = lock_lines(lines.map(|line| line.as_str().unwrap()), names);
    let threads = &data["threads"];
    for at in 0..threads["name"].as_array().unwrap().len() {
        let (name, words) = (text(&threads["name"][at]), text(&threads["doing"][at]));
        let (who, _) = names.who(name).unwrap_or_else(|| panic!("{name}"));
        facts.name(&who, Names::name_in(name));
        facts.holds_count(&who, threads["holds"][at].as_u64().unwrap());
        row(&mut facts, &who, words, threads["task"][at] == true, names);
    }
    for track in data["timelines"].as_array().unwrap() {
        let name = text(&track["name"]);
        let (who, _) = names.who(name).unwrap_or_else(|| panic!("{name}"));
        for slice in track["slices"].as_array().unwrap().iter().filter(|slice| slice[4] == 1) {
            let object = text(&slice[1]);
            match slice[0].as_u64().unwrap() {
                0 => facts.holds(&who, object),
                1 | 3 => facts.waits(&who, &format!("for {object}")),
                2 => facts.waits(&who, &format!("on a condition variable, with {object}")),
                4 => facts.waits(&who, &end_of(&names.who(object).unwrap().0)),
                6 | 7 => task_words(&mut facts, &who, object, names),
                _ => {}
            }
        }
    }
    facts
}

/// What a row of threads and tasks says. A thread that waits for nothing that is known has the kernel's words.
fn row(facts: &mut Facts, who: &str, words: &str, is_task: bool, names: &Names) {
    if is_task {
        return task_words(facts, who, words, names);
    }
    let words = words.split_once(", polling ").map_or(words, |(words, _)| words);
    let awaited = words.strip_prefix("waiting ").and_then(|words| names.all_awaited(words));
    match awaited {
        Some(what) => facts.answer(who, &what),
        None => {
            facts.answer(who, NOTHING);
            if !words.is_empty() && !words.starts_with("polling ") {
                facts.kernel(who, words);
            }
        }
    }
}

/// The list of threads and tasks on the screen of `top`, whose columns are further apart than words.
pub(crate) fn top(screen: &str, names: &Names) -> Facts {
    let mut facts = Facts::default();
    facts.verdict(screen.lines().next().unwrap_or_default().trim());
    let (_, rows) = screen.split_once("WHAT AND WHERE").unwrap_or_else(|| panic!("{screen}"));
    // Words, holds, the share of a processor and which one, and the bars of the last readings.
    let numbers = "(?:[0-9]+ +)*(?:[0-9]+ % +(?:[0-9]+ +)?)?(?:[\u{b7}\u{2581}-\u{2588}]+ +)*";
    let name = r"\S.*?(?:\[(?:task )?[0-9]+\]|task [0-9]+(?: of \S+)?)";
    let form = Regex::new(&format!("^ *{numbers}({name}) +(.*)$")).unwrap();
    for line in rows.lines().skip(1) {
        let Some(found) = form.captures(line) else { continue };
        let Some((who, _)) = names.who(&found[1]) else { continue };
        let words = found.get(2).unwrap().as_str().trim();
        let awaited = words.strip_prefix("waiting ").and_then(|words| names.awaited(words));
        if who.starts_with("thread ") {
            facts.answer(&who, awaited.as_ref().map_or(NOTHING, |(what, _)| what));
        } else if let Some((_, words)) = words.split_once(", waiting ")
            && let Some((what, _)) = names.awaited(words)
        {
            facts.answer(&who, &what);
        }
    }
    facts
}
