//! `read-rip report`: a page of HTML, of rings made by hand, with names that want to be more than names.
//!
//! How it looks and works in a browser is tested in `viewers/report.rs`.

use std::fs;
use std::path::PathBuf;

use regex::Regex;
use serde_json::Value;

use crate::support::exports::crew;
use crate::support::fixture::{Fixture, Scratch, sound_ring};
use crate::support::locks::*;
use crate::support::nasty::{self, NASTY};
use crate::support::run::{Outcome, read_rip};
use crate::support::synth::{Held, Ring, Slot};

/// Two threads that wait for one another.
fn deadlock() -> Ring {
    let names = vec![(4321, A, "savings".to_owned()), (4321, B, "current".to_owned())];
    let threads = [transfer("saver", 1, A, B), transfer("spender", 2, B, A)];
    Ring { lock_names: names, ..ring().with_slots(threads) }
}

struct Written {
    outcome: Outcome,
    html: String,
    files: Vec<PathBuf>,
}

fn report(ring: &Ring, options: &[&str]) -> Written {
    let (fixture, scratch) = (Fixture::of(ring), Scratch::new());
    let target = scratch.path("page.html");
    let all = ["report", "-o", target.to_str().unwrap()].into_iter().chain(options.iter().copied());
    let outcome = read_rip(all.chain([fixture.path.to_str().unwrap()]));
    let html = fs::read_to_string(&target).unwrap_or_else(|error| panic!("{error}: {outcome:#?}"));
    let files = fs::read_dir(scratch.0.path()).unwrap().map(|file| file.unwrap().path()).collect();
    Written { outcome, html, files }
}

/// The data for the script.
fn data(html: &str) -> Value {
    let (_, from) = html.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    let (json, _) = from.split_once("</script>").unwrap();
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// What is there without the script, without its markup.
fn readable(html: &str) -> String {
    let (_, body) = html.split_once("<body>").unwrap();
    let (body, _) = body.split_once("<script").unwrap();
    let text = Regex::new("<[^>]*>").unwrap().replace_all(body, " ").into_owned();
    quick_unescape(&Regex::new(r"\s+").unwrap().replace_all(&text, " "))
}

fn quick_unescape(text: &str) -> String {
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    entities.iter().fold(text.to_owned(), |text, (entity, letter)| text.replace(entity, letter))
}

#[test]
fn the_verdict_and_the_findings_are_there_without_script_in_the_words_of_check() {
    let Written { outcome, html, files } = report(&deadlock(), &[]);
    assert_eq!((outcome.status, files.len()), (0, 1), "findings are no failure of writing: {outcome:#?}");
    assert!(outcome.stderr.contains("Written to "), "{outcome:#?}");
    let fixture = Fixture::of(&deadlock());
    let check = read_rip(["check", fixture.path.to_str().unwrap()]);
    let said = readable(&html);
    for line in check.stdout.lines().skip(1).map(str::trim).filter(|line| !line.is_empty()) {
        let line = line.strip_prefix("suspected deadlock: ").unwrap_or(line);
        let parts = line.split_once(": ").filter(|(name, _)| ["next", "doubt", "assumed"].contains(name));
        let wanted = parts.map_or(vec![line], |(_, texts)| texts.split("; ").collect());
        wanted.iter().for_each(|part| assert!(said.contains(part), "{part}: {said}"));
    }
    assert!(
        said.contains("1 finding in 2 threads and 2 locks") && said.contains("suspected deadlock"),
        "{said}"
    );
    assert!(html.find("id=\"verdict\"") < html.find("id=\"graph\""));
}

#[test]
fn a_ring_without_findings_and_one_without_locks_say_so() {
    let idle = Slot::thread("a", 1).event(TAKES, &[at(3.0), A]).event(RELEASED, &[at(4.0), at(3.0), A]);
    let sound = report(&ring().with_slots([idle]), &[]).html;
    assert!(
        sound.contains("class=\"sound\"") && readable(&sound).contains("no findings in 1 thread and 1 lock")
    );
    let unjudged = report(&sound_ring(), &[]).html;
    assert!(unjudged.contains("class=\"unjudged\"") && readable(&unjudged).contains("nothing to judge"));
}

#[test]
fn a_deadlock_is_a_circle_of_the_graph_and_a_crowd_one_of_its_boxes() {
    let waiter = |tid| {
        Slot::thread("waiter", tid).event(WAIT, &[at(9.0), A]).has(Held::new(WAITING, A, WAIT).since(at(9.0)))
    };
    let mut ring = deadlock();
    ring.slots.extend([waiter(3), waiter(4), waiter(5)]);
    let html = report(&ring, &[]).html;
    assert_eq!(html.matches("<g class=\"box lock circle\"").count(), 2);
    assert_eq!(html.matches("<g class=\"box thread circle\"").count(), 2);
    assert_eq!(html.matches("<g class=\"box thread\"").count(), 1);
    let said = readable(&html);
    assert!(
        said.contains("saver[1]: waiting for current, at ")
            && said.contains("3 threads: waiting for savings")
    );
}

#[test]
fn the_middle_of_a_long_circle_is_one_box_and_the_circle_is_closed() {
    let lock = |at: u32| 0x7f00_0000 + 0x40 * u64::from(at);
    for (threads, boxes, part) in
        [(5, 10, None), (6, 8, Some("3 more threads")), (50, 8, Some("47 more threads"))]
    {
        let slots = (0..threads).map(|at| transfer("eater", 1 + at, lock(at), lock((at + 1) % threads)));
        let mut ring = ring().with_slots(slots);
        // It waits for one that is not drawn.
        ring.slots.push(
            Slot::thread("guest", 100)
                .event(WAIT, &[at(9.0), lock(2)])
                .has(Held::new(WAITING, lock(2), WAIT).since(at(9.0))),
        );
        let html = report(&ring, &[]).html;
        let count = |class: &str| html.matches(&format!("<g class=\"box {class}\"")).count();
        assert_eq!(count("lock circle") + count("thread circle"), boxes, "{threads}");
        assert_eq!(html.matches("class=\"edge held circle\"").count(), count("lock circle"));
        assert_eq!(html.matches("class=\"edge waits circle\"").count(), count("thread circle"));
        assert_eq!((count("lock"), count("thread")), (0, usize::from(part.is_none())), "{threads}");
        let said = readable(&html);
        assert!(part.is_none_or(|part| said.contains(&format!(": held by {part}, acquired at "))), "{said}");
        assert!(part.is_none_or(|part| said.contains(&format!("{part}: waiting for "))), "{said}");
        assert!(
            said.contains(&format!("suspected deadlock: {threads} threads wait for one another")),
            "{said}"
        );
    }
}

#[test]
fn tasks_are_told_from_threads_and_say_what_they_do_and_where() {
    let html = report(&crew(), &[]).html;
    let said = readable(&html);
    let place = "server::cache::? cache.rs:11<0x1100>";
    for part in [
        "1 thread; 4 tasks, and the last 1 that have ended",
        "threads 1 in the ring, 0 of them exited; 0 slots were reused tasks 5 in the ring, 1 of them ended",
        "Where threads and tasks are",
        "1 thread server::cache::? cache.rs:10 1 Tasks by what they do",
        &format!("1 task suspended, waiting for queue at {place} for 57.0 s"),
        "1 task polled, last at serve::? serve.rs:20 for 56.0 s",
        "Threads and tasks 5",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let data = data(&html);
    let text = |index: &Value| data["texts"][index.as_u64().unwrap() as usize].as_str().unwrap().to_owned();
    let column = |name: &str| data["threads"][name].as_array().unwrap().clone();
    let names: Vec<String> = column("name").iter().map(text).collect();
    let row = |name: &str| names.iter().position(|of| of == name).unwrap_or_else(|| panic!("{names:?}"));
    let of = |name: &str| (column("task")[row(name)] == true, text(&column("doing")[row(name)]));
    let waiting = "suspended for 57.0 s, waiting for queue".to_owned();
    assert_eq!(of("server[task 7]"), (true, waiting));
    assert_eq!(text(&column("place")[row("server[task 7]")]), place);
    assert_eq!(of("busy[task 8]"), (true, "polled by worker[10] for 56.0 s".to_owned()));
    assert_eq!(of("worker[10]"), (false, "polling busy[task 8]".to_owned()));
    let tracks = data["timelines"].as_array().unwrap();
    let states = |name: &str| {
        let track = tracks.iter().find(|track| text(&track["name"]) == name).unwrap();
        assert_eq!(track["task"], name != "worker[10]");
        let of_task = track["slices"].as_array().unwrap().iter().filter(|slice| slice[0].as_u64() > Some(5));
        of_task.map(|slice| (slice[0].as_u64().unwrap(), text(&slice[1]))).collect::<Vec<_>>()
    };
    assert_eq!(states("server[task 7]"), [(6, "suspended for 57.0 s, waiting for queue".to_owned())]);
    assert_eq!(states("busy[task 8]"), [(7, "polled by worker[10] for 56.0 s".to_owned())]);
    assert_eq!(states("worker[10]"), []);
    let left_out = readable(&report(&crew(), &["--threads", "2"]).html);
    assert!(left_out.contains(" 4 tasks left out; the option --threads"), "{left_out}");
}

#[test]
fn the_data_have_locks_threads_and_timelines() {
    let html = report(&deadlock(), &[]).html;
    let data = data(&html);
    let texts: Vec<&str> =
        data["texts"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    let text = |index: &Value| texts[index.as_u64().unwrap() as usize];
    let names: Vec<&str> = data["threads"]["name"].as_array().unwrap().iter().map(text).collect();
    assert_eq!(names, ["saver[1]", "spender[2]"]);
    let locks: Vec<&str> =
        data["locks"].as_array().unwrap().iter().map(|lock| lock["name"].as_str().unwrap()).collect();
    assert!(locks.contains(&"savings") && locks.contains(&"current"), "{locks:?}");
    let track = &data["timelines"][0];
    assert_eq!(text(&track["name"]), "saver[1]");
    // It holds one lock since 3 s, and waits for the other one since 4 s. The times count from the first one.
    let slices = track["slices"].as_array().unwrap();
    let of_kind = |kind: u64| slices.iter().find(|slice| slice[0] == kind).unwrap();
    assert_eq!((text(&of_kind(0)[1]), &of_kind(0)[2]), ("savings", &0.into()));
    assert_eq!((text(&of_kind(1)[1]), &of_kind(1)[4]), ("current", &1.into()));
}

#[test]
fn the_thread_that_all_wait_for_comes_first_also_if_its_hold_has_no_time() {
    let data = data(&report(&kept(), &[]).html);
    let text = |index: &Value| data["texts"][index.as_u64().unwrap() as usize].as_str().unwrap();
    let names: Vec<&str> = data["threads"]["name"].as_array().unwrap().iter().map(text).collect();
    assert_eq!(names, ["keeper[3]", "first[1]", "second[2]"]);
    let track = &data["timelines"][0];
    let slice = &track["slices"][0];
    assert_eq!(
        (text(&track["name"]), &slice[0], text(&slice[1])),
        ("keeper[3]", &8.into(), "savings, since then or earlier")
    );
}

#[test]
fn no_name_of_a_ring_becomes_markup_or_script() {
    let Written { html, outcome, .. } = report(&nasty::ring(), &[]);
    let allowed = [
        "!doctype", "a", "article", "b", "body", "button", "dd", "defs", "details", "div", "dl", "dt", "g",
        "h1", "h2", "h3", "head", "header", "html", "li", "main", "marker", "meta", "nav", "noscript", "ol",
        "p", "path", "pre", "rect", "script", "section", "span", "style", "summary", "svg", "table", "tbody",
        "td", "text", "th", "thead", "title", "tr", "ul",
    ];
    let script = html.rfind("<script>").unwrap();
    let style = html.find("<style>").unwrap()..html.find("</style>").unwrap();
    // Outside of the style and the script, which are constant.
    let rest = format!("{}{}", &html[..style.start], &html[style.end..script]);
    let attribute = Regex::new(r#"([-\w]+)\s*=\s*"([^"]*)""#).unwrap();
    for tag in Regex::new(r"<\s*/?\s*([!?\w]*)([^>]*)>?").unwrap().captures_iter(&rest) {
        assert!(allowed.contains(&&tag[1]), "{}", &tag[0]);
        for one in attribute.captures_iter(&tag[2]) {
            let is_link = &one[1] == "href" && !one[2].starts_with('#');
            assert!(
                !is_link && !one[1].starts_with("on") && !["src", "style"].contains(&&one[1]),
                "{}",
                &tag[0]
            );
        }
        assert!(!attribute.replace_all(&tag[2], "").contains(['=', '\'', '"']), "{}", &tag[0]);
    }
    assert_eq!(rest.matches("<script").count(), 1, "the data");
    let is_harmful =
        |letter: char| letter.is_control() && letter != '\n' || "\u{202e}\u{2028}\u{200b}".contains(letter);
    assert!(!rest.contains(is_harmful), "{outcome:#?}");
    // Nothing is lost: what is shown is what `read-rip` shows.
    let data = data(&html);
    let texts = data["texts"].as_array().unwrap();
    let has = |wanted: &str| texts.iter().any(|text| text.as_str().unwrap().contains(wanted));
    for nasty in NASTY {
        // Names end at a NUL.
        let shown = read_rip_report::printable(nasty.split('\0').next().unwrap());
        let said = nasty::said(nasty);
        let said = read_rip_report::printable(&said);
        assert!(has(&format!("{shown}[")) && has(&format!("{said} 7")), "{shown}: {texts:#?}");
        let locks = data["locks"].as_array().unwrap();
        assert!(locks.iter().any(|lock| lock["name"] == *shown), "{shown}: {locks:#?}");
    }
}

#[test]
fn the_policy_allows_one_style_one_script_and_nothing_else() {
    let html = report(&nasty::ring(), &[]).html;
    let policy = Regex::new(r#"http-equiv="Content-Security-Policy" content="([^"]*)""#).unwrap();
    let policy = policy.captures(&html).unwrap()[1].to_owned();
    let hash = r"'sha256-[\w+/]{43}='";
    let form = format!(
        "^default-src 'none'; style-src {hash}; script-src {hash}; base-uri 'none'; form-action 'none'$"
    );
    assert!(Regex::new(&form).unwrap().is_match(&policy), "{policy}");
    assert!(html.find("Content-Security-Policy") < html.find("<style>"), "it comes before what it is about");
}

#[test]
fn times_that_somebody_invented_are_numbers_that_a_script_can_read() {
    let mut slot = transfer("saver", 1, A, B);
    slot.claimed_ns = 1 << 63;
    let ring = Ring { clock: Some((3, 1000, 1 << 63)), ..deadlock().with_slots([slot]) };
    fn greatest(value: &Value) -> f64 {
        match value {
            Value::Array(all) => all.iter().map(greatest).fold(0.0, f64::max),
            Value::Object(all) => all.values().map(greatest).fold(0.0, f64::max),
            other => other.as_f64().unwrap_or(0.0),
        }
    }
    assert!(greatest(&data(&report(&ring, &[]).html)) < 9_007_199_254_740_992.0);
}

#[test]
fn older_events_and_lesser_threads_are_left_out_and_counted() {
    let html = report(&nasty::ring(), &["--events", "3", "--threads", "2"]).html;
    let data = data(&html);
    assert_eq!(data["events"]["at"].as_array().unwrap().len(), 3);
    assert_eq!(data["timelines"].as_array().unwrap().len(), 2);
    let said = readable(&html);
    let left_out = NASTY.len() - 3;
    assert!(said.contains(&format!("{left_out} older events left out")), "{said}");
    assert!(said.contains("13 threads left out"), "{said}");
}

#[test]
fn a_page_that_cannot_be_written_is_one_error_and_no_file() {
    let (fixture, scratch) = (Fixture::of(&deadlock()), Scratch::new());
    let target = scratch.path("missing/page.html");
    let outcome = read_rip(["report", "-o", target.to_str().unwrap(), fixture.path.to_str().unwrap()]);
    let outcome = outcome.fails_with("Error: could not write ");
    assert_eq!(outcome.stderr.matches("Error: ").count(), 1, "{outcome:#?}");
    assert_eq!(fs::read_dir(scratch.0.path()).unwrap().count(), 0);
}

#[test]
fn a_damaged_ring_has_a_page_that_says_so_and_the_status_of_an_error() {
    let mut image = deadlock().build();
    let begin = image.entry(crate::support::synth::SLOTS, 1);
    image.bytes.truncate(begin);
    let scratch = Scratch::new();
    let ring = scratch.file("ring", &image.bytes);
    let target = scratch.path("page.html");
    let outcome = read_rip(["report", "-o", target.to_str().unwrap(), ring.to_str().unwrap()]);
    assert_eq!(outcome.status, 2, "{outcome:#?}");
    let html = fs::read_to_string(target).unwrap();
    assert!(readable(&html).contains("Damaged: the file was truncated"), "{}", readable(&html));
}
