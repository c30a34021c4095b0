//! The page of `read-rip report`, in Chromium: hostile names, many threads, keys, colours and paper.
//!
//! What is in the file is tested in `rings/page.rs`.

use std::path::PathBuf;

use serde_json::Value;

use crate::browser::Browser;
use crate::support::exports::crew;
use crate::support::fixture::{Fixture, Scratch};
use crate::support::locks::*;
use crate::support::nasty;
use crate::support::run::read_rip;
use crate::support::synth::{Held, Ring, Site, Slot};

/// More events than this are left out.
const EVENTS_MAX: u32 = 100_000;
/// What each of them says, three times.
const SAID: u64 = 0x5000;
const SHAPE: u64 = 1 | 1 << 40;

const ARROW_DOWN: &str = "\u{e015}";
const END: &str = "\u{e010}";
const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const ARROW_RIGHT: &str = "\u{e014}";

/// Writes the page of a ring.
fn page(ring: &Ring) -> (Scratch, PathBuf) {
    let (fixture, scratch) = (Fixture::of(ring), Scratch::new());
    let target = scratch.path("page.html");
    let outcome = read_rip(["report", "-o", target.to_str().unwrap(), fixture.path.to_str().unwrap()]);
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    (scratch, target)
}

/// A deadlock of two threads that others wait for.
fn deadlock() -> Ring {
    let names = vec![(4321, A, "savings".to_owned()), (4321, B, "current".to_owned())];
    let waiter = |tid| {
        Slot::thread("teller", tid).event(WAIT, &[at(5.0), A]).has(Held::new(WAITING, A, WAIT).since(at(5.0)))
    };
    let mut threads = vec![transfer("saver", 1, A, B), transfer("spender", 2, B, A)];
    threads.extend((3..9).map(waiter));
    Ring { lock_names: names, ..ring().with_slots(threads) }
}

/// A server with so many threads, each of which has said three things.
fn crowd(threads: u32) -> Ring {
    let mut ring = ring();
    ring.sites.push(Site {
        label: "request {} done".into(),
        ..Site::new(SAID, "src/serve.rs", 7).of(14, 3, &[10])
    });
    ring.lock_names = vec![(ring.pid, A, "cache".to_owned()), (ring.pid, B, "queue".to_owned())];
    let thread = |tid: u32| {
        let said = (0..3).fold(Slot::thread(&format!("worker {tid}"), tid), |thread, at| {
            thread.event(SAID, &[u64::from(3 * tid + at), SHAPE])
        });
        said.event(WAIT, &[at(5.0), A]).has(Held::new(WAITING, A, WAIT).since(at(5.0)))
    };
    let holder = Slot::thread("holder", 1)
        .event(TAKES, &[at(3.0), A])
        .has(Held::new(HELD, A, TAKES).since(at(3.0)))
        .event(TAKES, &[at(3.5), B])
        .event(RELEASED, &[at(4.0), at(3.5), B]);
    ring.with_slots(std::iter::once(holder).chain((2..=threads).map(thread)))
}

fn texts(browser: &Browser, selector: &str) -> Vec<String> {
    let script = format!("return [...document.querySelectorAll('{selector}')].map((one) => one.textContent)");
    let texts = browser.run(&script);
    texts.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

#[test]
fn hostile_names_run_nothing_and_the_policy_stops_what_would() {
    let Some(browser) = Browser::start() else { return };
    let (_scratch, path) = page(&nasty::ring());
    browser.open(&path);
    browser.wait_for("document.querySelectorAll('#events .body .row').length > 3");
    // Every list, every row and every detail is shown once.
    for list in ["locks", "timelines", "threads", "events"] {
        let rows = browser.run(&format!(
            "const grid = document.querySelector('#{list} .grid'); grid.focus(); return Number(grid.ariaRowCount)"
        ));
        let rows = usize::try_from(rows.as_u64().unwrap()).unwrap();
        browser.press(&vec![ARROW_DOWN; rows]);
        browser.wait_for(&format!("!document.querySelector('#{list} .detail').hidden"));
    }
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
    assert_eq!(browser.run("return window.__hostile ?? null"), Value::Null);
    assert!(!browser.has_dialog());
    assert_eq!(browser.console(), [""; 0]);
    assert_eq!(browser.run("return document.querySelectorAll('img, iframe, object, link, base').length"), 0);
    assert_eq!(browser.run("return document.querySelectorAll('script').length"), 2);
    // If markup got in, it could do nothing.
    browser.run(
        "const box = document.createElement('div'); box.setAttribute('onclick', 'window.__hostile = 1');
         document.body.append(box); box.click();
         const script = document.createElement('script'); script.textContent = 'window.__hostile = 2';
         document.body.append(script);
         const image = document.createElement('img'); image.src = 'data:image/png;base64,AAAA';
         image.onload = () => { window.__hostile = 3; }; document.body.append(image);",
    );
    browser.wait_for("true");
    assert_eq!(browser.run("return window.__hostile ?? null"), Value::Null);
    let said = browser.console();
    let refused = said.iter().filter(|line| line.contains("Content Security Policy")).count();
    assert_eq!(refused, 3, "{said:#?}");
}

#[test]
fn tasks_are_told_from_threads_in_lists_and_timelines() {
    let Some(browser) = Browser::start() else { return };
    let (_scratch, path) = page(&crew());
    browser.open(&path);
    browser.wait_for("document.querySelectorAll('#threads .body .row').length === 5");
    assert_eq!(texts(&browser, "#threads .said"), ["1 thread, 4 tasks"]);
    let heads = |list: &str| texts(&browser, &format!("#{list} .head .cell:first-child"));
    assert_eq!([heads("threads"), heads("timelines")], [["Thread or task"]; 2]);
    let rows = texts(&browser, "#threads .body .row");
    let has = |parts: &[&str]| rows.iter().any(|row| parts.iter().all(|part| row.contains(part)));
    assert!(has(&["server[task 7]", "suspended for 57.0 s, waiting for queue", "cache.rs:11"]), "{rows:#?}");
    assert!(has(&["busy[task 8]", "polled by worker[10] for 56.0 s", "serve.rs:20"]), "{rows:#?}");
    assert!(has(&["worker[10]", "polling busy[task 8]", "cache.rs:10"]), "{rows:#?}");
    let legend = texts(&browser, "#timelines .legend li");
    let of_tasks = ["is a suspended task", "is a task that is polled or ready"];
    assert!(of_tasks.iter().all(|of| legend.iter().any(|text| text == of)), "{legend:#?}");
    // The bars of the second row, one after the other. The worker that others wait for is in the first one.
    browser.run("document.querySelector('#timelines .grid').focus()");
    browser.press(&[ARROW_DOWN, ARROW_DOWN]);
    let bars: Vec<String> = (0..2)
        .map(|_| {
            browser.press(&[ARROW_RIGHT]);
            texts(&browser, "#timelines .slice").remove(0)
        })
        .collect();
    assert!(
        bars.iter()
            .any(|bar| bar.starts_with("server[task 7]: suspended for 57.0 s, waiting for queue, from ")),
        "{bars:#?}"
    );
    assert_eq!(browser.console(), [""; 0]);
}

#[test]
fn many_threads_are_searched_sorted_and_walked_through_with_few_elements() {
    walk_through(2_000);
}

#[test]
#[ignore = "big: scripts/viewers --test"]
fn forty_thousand_threads_and_a_hundred_thousand_events_are_no_more_elements() {
    walk_through(40_000);
}

/// A number as the page writes it: `5,997`.
fn grouped(number: u32) -> String {
    match number / 1000 {
        0 => number.to_string(),
        thousands => format!("{},{:03}", grouped(thousands), number % 1000),
    }
}

fn walk_through(threads: u32) {
    let Some(browser) = Browser::start() else { return };
    let (_scratch, path) = page(&crowd(threads));
    let events = grouped(EVENTS_MAX.min(3 * (threads - 1)));
    browser.open(&path);
    browser.wait_for("document.querySelectorAll('#threads .body .row').length > 10");
    let rows = "return document.querySelectorAll('.body .row, tr, li').length";
    assert!(browser.run(rows).as_u64().unwrap() < 500);
    assert_eq!(texts(&browser, "#threads .said"), [format!("{} threads", grouped(threads))]);
    assert_eq!(texts(&browser, "#events .said"), [format!("{events} events")]);

    // A search by a part, by a regular expression, and by one that is none.
    browser.run("document.querySelector('#events-search').focus()");
    let tid = threads - 230;
    browser.enter(&format!("REQUEST {} d", 3 * tid + 1));
    browser.wait_for("document.querySelectorAll('#events .body .row').length === 1");
    assert!(texts(&browser, "#events .body .row")[0].contains(&format!("worker {tid}[{tid}]")));
    assert_eq!(texts(&browser, "#events .said"), [format!("1 of {events} events")]);
    browser.run(
        "document.querySelector('#threads-regex').click(); document.querySelector('#threads-search').focus()",
    );
    browser.enter("^worker 177\\d\\[");
    browser.wait_for("document.querySelectorAll('#threads .body .row').length === 10");
    browser.enter("[");
    browser.wait_for("document.querySelector('#threads-search').ariaInvalid === 'true'");
    assert!(texts(&browser, "#threads .said")[0].contains("regular expression"));

    // Sorted by a column, with the keyboard alone.
    browser.run("document.querySelector('#locks .head button').focus()");
    let first = || texts(&browser, "#locks .body .row .cell:first-child");
    assert_eq!(first(), ["cache", "queue"]);
    browser.press(&[ENTER, ENTER]);
    browser.wait_for("document.querySelector('#locks [aria-sort=descending]')");
    assert_eq!(first(), ["queue", "cache"]);

    // The selection moves, and its row is there.
    browser.run(
        "const search = document.querySelector('#threads-search'); search.value = '';
         search.dispatchEvent(new Event('input')); document.querySelector('#threads .grid').focus()",
    );
    browser.press(&[ARROW_DOWN, END]);
    browser.wait_for("document.querySelector('#threads [aria-selected=true]')");
    let chosen = "const grid = document.querySelector('#threads .grid');
         const row = document.getElementById(grid.getAttribute('aria-activedescendant'));
         const box = row.getBoundingClientRect(), around = grid.getBoundingClientRect();
         return [row.getAttribute('aria-rowindex'), box.top >= around.top && box.bottom <= around.bottom + 1]";
    assert_eq!(browser.run(chosen), serde_json::json!([(threads + 1).to_string(), true]));
    assert!(browser.run(rows).as_u64().unwrap() < 500);
    assert_eq!(browser.console(), [""; 0]);
}

#[test]
fn bars_of_a_timeline_are_read_with_keys_and_lengths_are_written_as_elsewhere() {
    let Some(browser) = Browser::start() else { return };
    let (_scratch, path) = page(&deadlock());
    browser.open(&path);
    browser.wait_for("document.querySelectorAll('#timelines canvas[data-row]').length === 8");
    browser.run("document.querySelector('#timelines .grid').focus()");
    browser.press(&[ARROW_RIGHT, ARROW_RIGHT]);
    let said = texts(&browser, "#timelines .slice").remove(0);
    assert!(said.contains(" waits for ") && said.contains("goes on"), "{said}");
    // The bars are drawn: a row with a wait has its colour.
    let colours = "const canvas = document.querySelector('#timelines canvas[data-row]');
         const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
         const seen = new Set(); for (let at = 0; at < data.length; at += 4) {
           if (data[at + 3] === 255) seen.add(`${data[at]},${data[at + 1]},${data[at + 2]}`); }
         return seen.size";
    assert!(browser.run(colours).as_u64().unwrap() >= 3, "a hold, a wait and a line");
    let lengths: Vec<u64> =
        (0..53).map(|bits| (1 << bits) - 1).chain([1_250, 9_990_000, 59_999_999_999]).collect();
    let written = browser.run(&format!("return {lengths:?}.map(duration)"));
    let expected: Vec<String> = lengths.iter().map(|&ns| read_rip_report::duration(ns)).collect();
    assert_eq!(written, serde_json::json!(expected));
}

#[test]
fn a_box_of_the_drawing_leads_to_its_row_and_the_row_to_its_timeline() {
    let Some(browser) = Browser::start() else { return };
    let (_scratch, path) = page(&deadlock());
    browser.open(&path);
    browser.wait_for("document.querySelectorAll('#threads .body .row').length > 3");
    let selected = |list: &str| {
        let rows = texts(&browser, &format!("#{list} [aria-selected=true] .name"));
        assert_eq!(rows.len(), 1, "{rows:?}");
        rows[0].clone()
    };
    let click = |selector: &str| {
        browser.run(&format!(
            "document.querySelector('{selector}').dispatchEvent(new MouseEvent('click', {{ bubbles: true, cancelable: true }}))"
        ));
        browser.wait_for("true");
    };
    click("#graph a[data-name=\"spender[2]\"]");
    assert_eq!(selected("threads"), "spender[2]");
    assert_eq!(browser.run("return document.activeElement.closest('section').id"), "threads");
    assert_eq!(texts(&browser, "#threads .detail a"), ["Its timeline"], "a ring alone has no stacks");
    click("#threads .detail a");
    assert_eq!(selected("timelines"), "spender[2]");
    click("#graph a[data-name=savings]");
    assert_eq!(selected("locks"), "savings");
}

#[test]
fn the_page_fits_a_phone_follows_the_colours_of_the_system_and_prints_what_matters() {
    let Some(browser) = Browser::start() else { return };
    let (_scratch, path) = page(&deadlock());
    browser.emulate("screen", "light");
    browser.open(&path);
    for width in [400, 900, 1600] {
        browser.resize(width, 900);
        browser.wait_for("document.querySelectorAll('#threads .body .row').length === 8");
        let is_narrow = "const page = document.documentElement; return page.scrollWidth <= page.clientWidth";
        assert_eq!(browser.run(is_narrow), true, "{width}");
    }
    let back = || browser.run("return getComputedStyle(document.documentElement).backgroundColor");
    let light = back();
    browser.emulate("screen", "dark");
    let dark = back();
    assert_ne!(light, dark);
    // The button says which scheme is next: light, dark, as the system has it.
    browser.run("document.querySelector('#theme').focus()");
    browser.press(&[ENTER]);
    assert_eq!((back(), texts(&browser, "#theme")), (light, vec!["Colours: light".to_owned()]));
    browser.press(&[ENTER, ENTER]);
    assert_eq!(back(), dark);

    browser.emulate("print", "light");
    let is_shown = |selector: &str| {
        let all = format!("[...document.querySelectorAll('{selector}')]");
        browser.run(&format!("return {all}.some((one) => one.checkVisibility())")) == true
    };
    for selector in ["nav", "button", "input", ".grid", "#timelines", "#events"] {
        assert!(!is_shown(selector), "{selector}");
    }
    for selector in ["#verdict .finding", "#graph svg", "#locks table", "#remarks"] {
        assert!(is_shown(selector), "{selector}");
    }
    assert_eq!(browser.console(), [""; 0]);
}

#[test]
fn who_uses_no_mouse_reaches_everything_and_who_sees_nothing_hears_what_it_is() {
    let Some(browser) = Browser::start() else { return };
    let (_scratch, path) = page(&deadlock());
    browser.open(&path);
    browser.wait_for("document.querySelectorAll('#threads .body .row').length === 8");
    // As axe-core asks: a heading says something, and what is read aloud has the text that is seen.
    let silent =
        "[...document.querySelectorAll('[role=columnheader]')].filter((one) => !one.textContent.trim())";
    assert_eq!(browser.run(&format!("return {silent}.length")), 0);
    let other = "[...document.querySelectorAll('button[aria-label]')].filter((one) => \
                 /[a-z]/i.test(one.textContent) && !one.ariaLabel.startsWith(one.textContent))";
    assert_eq!(browser.run(&format!("return {other}.length")), 0);
    let levels = "return [...document.querySelectorAll('h1, h2, h3')].map((one) => Number(one.tagName[1]))";
    let levels = browser.run(levels);
    let levels: Vec<u64> = levels.as_array().unwrap().iter().map(|level| level.as_u64().unwrap()).collect();
    assert!(levels[0] == 1 && levels.windows(2).all(|two| two[1] <= two[0] + 1), "{levels:?}");
    // All that takes input has a name.
    let nameless = "return [...document.querySelectorAll('button, input, [role=grid], [role=img], nav, section')]
         .filter((one) => !(one.ariaLabel || one.textContent.trim() || one.labels?.length
           || document.getElementById(one.getAttribute('aria-labelledby'))?.textContent)).map((one) => one.outerHTML)";
    assert_eq!(browser.run(nameless), serde_json::json!([]));
    // The tab key comes to each list.
    let mut reached = Vec::new();
    for _ in 0..80 {
        browser.press(&[TAB]);
        let at = "const at = document.activeElement; return at.closest('section')?.id ?? at.className";
        let at = browser.run(at);
        let at = at.as_str().unwrap().to_owned();
        if reached.last() != Some(&at) {
            reached.push(at);
        }
    }
    let sections = ["graph", "locks", "timelines", "threads"];
    let order: Vec<_> = sections.iter().map(|id| reached.iter().position(|at| at == id)).collect();
    assert_eq!(reached[0], "skip", "the first stop leads past the sections: {reached:?}");
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{reached:?}");
    // The contrast of texts is that of level AA of the guidelines for content of the web, in both schemes.
    for scheme in ["light", "dark"] {
        browser.emulate("screen", scheme);
        let low = browser.run(include_str!("contrast.js"));
        assert_eq!(low, serde_json::json!([]), "{scheme}");
    }
}
