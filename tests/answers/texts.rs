//! What the texts for people say: the views, `locks`, `tasks`, `stacks`, `check`, `diff`.

use regex::Regex;

use crate::facts::{Facts, Key, NOTHING, timeless};
use crate::names::{Names, condition, for_lock};

/// The phrases of "of 3 threads: ...", one and several, and what JSON calls the number.
const THREADS_DO: &[(&str, &str, &str)] = &[
    ("waits for a lock", "wait for locks", "locks"),
    ("waits on a condition variable", "wait on condition variables", "conditions"),
    ("waits for a semaphore", "wait for semaphores", "semaphores"),
    ("waits at a barrier", "wait at barriers", "barriers"),
    ("waits for a message, or to be woken", "wait for messages, or to be woken", "messages"),
    ("waits for the end of a thread", "wait for the ends of threads", "threads"),
    (
        "runs, or waits for something that is not recorded",
        "run, or wait for something that is not recorded",
        "not recorded",
    ),
    ("runs", "run", "runs"),
    ("waits for another thread", "wait for other threads", "waits_for_thread"),
    (
        "waits for a signal or a message of another thread",
        "wait for signals or messages of other threads",
        "waits_inside",
    ),
    (
        "waits for input, a time or a signal from outside",
        "wait for input, a time or a signal from outside",
        "waits_outside",
    ),
    ("waits for the kernel", "wait for the kernel", "kernel"),
    ("is stopped", "are stopped", "stopped"),
];

/// The same of tasks.
const TASKS_DO: &[(&str, &str, &str)] = &[
    ("waits for a lock", "wait for locks", "locks"),
    ("is polled", "are polled", "running"),
    ("is ready to be polled", "are ready to be polled", "ready"),
    ("is suspended", "are suspended", "suspended"),
];

/// `of 3 threads: 2 wait for locks (the longest for 3 ms), 1 runs`, and the same of tasks.
pub(crate) fn balance(facts: &mut Facts, line: &str) {
    let form = Regex::new(r"of [0-9]+ (thread|task)s?: (.*)").unwrap();
    let in_brackets = Regex::new(r" \([^)]*\)").unwrap();
    for part in line.trim().split("; ") {
        let Some(found) = form.captures(part) else { continue };
        let (who, phrases) =
            if &found[1] == "thread" { ("threads", THREADS_DO) } else { ("tasks", TASKS_DO) };
        let mut rest = in_brackets.replace_all(&found[2], "").into_owned();
        while let Some((count, words)) = rest.split_once(' ') {
            let is_one = count == "1";
            let phrase = |of: &&(&str, &'static str, &str)| -> Option<usize> {
                let phrase = if is_one { of.0 } else { of.1 };
                let after = words.strip_prefix(phrase)?;
                (after.is_empty() || after.starts_with(", ")).then_some(phrase.len())
            };
            // "runs" begins other phrases, so the longest one counts.
            let best = phrases.iter().filter_map(|of| Some((phrase(&of)?, of.2))).max();
            let Some((len, code)) = best else { break };
            facts.add(format!("{who} that do: {code}"), count.parse().unwrap());
            rest = words[len..].trim_start_matches(", ").to_owned();
        }
    }
}

/// The view without options. It ends with the verdict.
pub(crate) fn view(text: &str, _: &Names) -> Facts {
    let mut facts = Facts::default();
    let lines = text.lines().skip(1);
    let is_bare =
        text.lines().next().unwrap_or_default().contains(", as the kernel and its memory show them")
            || text.contains(", core file: ");
    let crowd = Regex::new(r" : ([0-9]+) threads?(?: at [^,]*)?, (.*)$").unwrap();
    for line in lines {
        if let Some(check) = line.strip_prefix("check: ") {
            facts.verdict(check.rsplit_once("; next: ").map_or(check, |(verdict, _)| verdict));
        } else if line.starts_with("of ") {
            balance(&mut facts, line);
        } else if let (true, Some(found)) = (is_bare, crowd.captures(line)) {
            facts.add(format!("threads {}", timeless(&found[2])), found[1].parse().unwrap());
        }
    }
    facts
}

/// `-t` of a ring, and of a process or a core file without a ring.
pub(crate) fn threads(text: &str, names: &Names) -> Facts {
    let mut facts = Facts::default();
    let is_bare = text.lines().next().is_some_and(|heading| {
        heading.contains(", as the kernel and its memory show them") || heading.contains(", core file: ")
    });
    // The place ends with a line of source, an address, or is missing.
    let place =
        Regex::new(r"^: (?:.*?(?::[0-9]+|\+0x[0-9a-f]+)(?:<0x[0-9a-f]+>)?(?: from [^,]*)?, )?").unwrap();
    for line in text.lines().skip(usize::from(is_bare)) {
        let Some((who, rest)) = names.who(line) else { continue };
        facts.name(&who, Names::name_in(line));
        if is_bare {
            let words = place.replace(rest, "");
            facts.kernel(&who, &words);
            facts.add(format!("threads {}", timeless(&words)), 1);
        } else if let Some((_, words)) = rest.split_once("now ") {
            facts.kernel(&who, words);
        }
    }
    facts
}

/// Some threads and tasks: one by its name, or several by their number and, with `-v`, their names.
fn members<'t>(text: &'t str, names: &Names) -> Option<(Vec<String>, &'t str)> {
    let several = Regex::new(r"^[0-9]+ (?:threads?|tasks?)(?: and [0-9]+ tasks?)? \(").unwrap();
    let Some(found) = several.find(text) else {
        let (who, rest) = names.who(text)?;
        return Some((vec![who], rest));
    };
    let (mut all, mut rest) = (Vec::new(), &text[found.end()..]);
    loop {
        let (who, after) = names.who(rest)?;
        all.push(who);
        match after.strip_prefix(", ") {
            Some(more) => rest = more,
            None => return Some((all, after.strip_prefix(')')?)),
        }
    }
}

/// `locks -av`.
pub(crate) fn locks(text: &str, names: &Names) -> Facts {
    let mut facts = lock_lines(text.lines().skip(1), names);
    // All locks are there.
    facts.lists(|key| match key {
        Key::Holds { .. } => true,
        Key::Waits { what, .. } => !what.starts_with("for the end of "),
        _ => false,
    });
    facts
}

/// The lines about locks, as `locks`, `diff` and the page have them.
pub(crate) fn lock_lines<'l>(lines: impl Iterator<Item = &'l str>, names: &Names) -> Facts {
    let mut facts = Facts::default();
    let heading = Regex::new(r"^\S.*  [a-z ]+ at (0x[0-9a-f]+)(?: of process [0-9]+)?$").unwrap();
    let held = Regex::new(r"^  (?:held|run)(?: shared)? by (.*)$").unwrap();
    let waits = Regex::new(
        r"^ waits? (?:\(shared\) )?(for others |for a message, or for room for one, |to be woken |for a unit |on a condition variable )?(?:with a time limit )?at ",
    )
    .unwrap();
    let mut lock: Option<String> = None;
    for line in lines {
        if let Some(found) = heading.captures(line) {
            lock = Some(names.lock_at(&found[1]));
            continue;
        }
        let Some(lock) = lock.as_deref().filter(|_| line.starts_with("  ")) else {
            lock = None;
            continue;
        };
        if let Some(found) = held.captures(line) {
            // Without their names, several are only counted.
            let all = members(found.get(1).unwrap().as_str(), names).map_or_else(Vec::new, |(all, _)| all);
            all.iter().for_each(|who| facts.holds(who, lock));
        } else if let Some(said) = line.strip_prefix("  but the kernel says that ") {
            let (who, words) = names.who(said).unwrap_or_else(|| panic!("{line}"));
            facts.kernel(&who, words.trim_start_matches(" is "));
        } else if let Some((all, rest)) = members(&line[2..], names)
            && let Some(found) = waits.captures(rest)
        {
            let what = match found.get(1).map(|what| what.as_str()) {
                Some("on a condition variable ") => condition(lock),
                _ => for_lock(lock),
            };
            all.iter().for_each(|who| facts.waits(who, &what));
        }
    }
    facts
}

/// What the words say that a task does.
pub(crate) fn task_state(words: &str) -> Option<&'static str> {
    const STATES: &[(&str, &str)] = &[
        ("polled", "running"),
        ("runs", "running"),
        ("ready and not polled", "ready"),
        ("waits for a thread of the pool", "ready"),
        ("never resumed", "ready"),
        ("suspended", "suspended"),
        ("ended", "ended"),
    ];
    STATES.iter().find(|(begin, _)| words.starts_with(begin)).map(|&(_, state)| state)
}

/// A task's state and what it waits for, in the words that all views share.
pub(crate) fn task_words(facts: &mut Facts, who: &str, words: &str, names: &Names) {
    let state = task_state(words).unwrap_or_else(|| panic!("{who}: {words}"));
    facts.say(Key::Does { task: who.to_owned() }, state);
    match words.split_once(", waiting ") {
        Some((_, waiting)) => {
            let (what, _) = names.awaited(waiting).unwrap_or_else(|| panic!("{who}: {words}"));
            facts.answer(who, &what);
        }
        None => facts.answer(who, NOTHING),
    }
}

/// `tasks -t`.
pub(crate) fn each_task(text: &str, names: &Names) -> Facts {
    let mut facts = Facts::default();
    let mut task = String::new();
    for line in text.lines() {
        if let Some(below) = line.strip_prefix("    ") {
            let below = below.trim_start();
            if let Some(held) = below.strip_prefix("holds ")
                && let Some((lock, _)) = names.lock(held)
            {
                facts.holds(&task, lock);
            } else if let Some(waits) = below.strip_prefix("waits ")
                && let Some((what, _)) = names.awaited(waits)
            {
                facts.waits(&task, &what);
            }
        } else if let Some((who, rest)) = names.who(line)
            && let Some(words) = rest.strip_prefix(": ")
        {
            facts.name(&who, Names::name_in(line));
            task_words(&mut facts, &who, words, names);
            task = who;
        }
    }
    facts
}

/// `tasks -v`: groups with the names of their tasks.
pub(crate) fn task_groups(text: &str, names: &Names) -> Facts {
    let mut facts = Facts::default();
    let group = Regex::new(r"^(.*) : ([0-9]+) (?:tasks?|blocking calls?|coroutines?)").unwrap();
    let several = Regex::new(r", waiting for [0-9]+ [a-z ]+ at ").unwrap();
    let mut words = String::new();
    for line in text.lines().skip(1) {
        if let Some(found) = group.captures(line).filter(|_| !line.starts_with(' ')) {
            words = found[1].to_owned();
        } else if let (Some(mut rest), false) = (line.strip_prefix("    "), words.is_empty()) {
            while let Some((who, after)) = names.who(rest) {
                let state = task_state(&words).unwrap_or_else(|| panic!("{words}"));
                facts.say(Key::Does { task: who.clone() }, state);
                // A group that waits for several objects does not say who waits for which.
                if !several.is_match(&words)
                    && let Some((_, waiting)) = words.split_once(", waiting ")
                {
                    let (what, _) = names.awaited(waiting).unwrap_or_else(|| panic!("{words}"));
                    facts.answer(&who, &what);
                }
                rest = after.trim_start_matches(", ");
            }
        }
    }
    facts
}

/// `stacks`.
pub(crate) fn stacks(text: &str, names: &Names) -> Facts {
    let mut facts = Facts::default();
    let form = Regex::new(r"^([0-9]+) threads?: (.*)$").unwrap();
    let mut lines = text.lines().skip(1).peekable();
    while let Some(line) = lines.next() {
        let Some(found) = form.captures(line) else { continue };
        let mut who = Vec::new();
        let mut rest = found.get(2).unwrap().as_str();
        while let Some((one, after)) = names.who(rest) {
            who.push(one);
            rest = after.trim_start_matches(", ");
        }
        // More names are left out, or the threads do different things.
        let Some(words) = lines.peek().and_then(|next| next.strip_prefix("  ")) else { continue };
        if names.who(words).is_none() && rest.is_empty() {
            who.iter().for_each(|who| facts.kernel(who, words));
        }
    }
    facts
}

/// `check`.
pub(crate) fn check(text: &str, names: &Names) -> Facts {
    let mut facts = Facts::default();
    let finding = Regex::new(r"^(proven|potential|suspected) [a-z-]+: ").unwrap();
    let (mut found, mut first) = (Vec::new(), None);
    for line in text.lines().skip(1) {
        if finding.is_match(line) {
            let (kind, _) = line.split_once(": ").unwrap();
            found.push(kind.to_owned());
            first = first.or(Some(line));
        } else if line.starts_with("no findings in ") {
            facts.verdict("no findings");
        } else if line.starts_with("not judged: ") || line.starts_with("nothing to judge: ") {
            facts.verdict(line.rsplit_once(" (").map_or(line, |(sentence, _)| sentence));
        } else if line.trim_start().starts_with("of ") {
            balance(&mut facts, line);
        } else if let Some(evidence) = line.strip_prefix("    ") {
            self::evidence(&mut facts, evidence, names);
        }
    }
    findings(&mut facts, found, first.unwrap_or_default());
    facts
}

/// What `check --all` says of one process. Those without findings are not listed.
pub(crate) fn check_all(text: &str, pid: u32) -> Facts {
    let mut facts = Facts::default();
    let lines = text.lines().filter(|line| line.contains(&format!("[{pid}]"))).count();
    assert!(lines < 2, "each process has one answer: {text}");
    let form =
        Regex::new(&format!(r"^([a-z]+ [a-z-]+): [^:]*\[{pid}\][^:]*: (.*); next: read-rip check .*$"))
            .unwrap();
    match text.lines().find_map(|line| form.captures(line)) {
        Some(found) => facts.verdict(&format!("{}: {}", &found[1], &found[2])),
        None => kinds(&mut facts, Vec::new()),
    }
    facts
}

/// The kinds of all findings, and the verdict that follows from the first one.
pub(crate) fn findings(facts: &mut Facts, found: Vec<String>, first: &str) {
    if !found.is_empty() {
        let more = match found.len() - 1 {
            0 => String::new(),
            1 => "; 1 more finding".to_owned(),
            more => format!("; {more} more findings"),
        };
        facts.verdict(&format!("{first}{more}"));
    }
    kinds(facts, found);
}

/// The kinds of all findings.
pub(crate) fn kinds(facts: &mut Facts, mut found: Vec<String>) {
    found.sort();
    facts.say(Key::Findings, found.join(", "));
}

/// `W holds L`, `W waits for L at ..., held by W`, and `W waits on a condition at ... and needs L to return`. Addresses
/// follow the names of locks that have namesakes.
fn evidence(facts: &mut Facts, line: &str, names: &Names) {
    let Some((who, rest)) = names.who(line) else { return };
    let lock_of = |text: &str| {
        let (lock, rest) = names.lock(text)?;
        [" at ", " (", " to return"].iter().any(|next| rest.starts_with(next)).then(|| lock.to_owned())
    };
    let holds = [" holds ", " runs "].iter().find_map(|verb| rest.strip_prefix(verb));
    if let Some((lock, _)) = holds.and_then(|of| names.lock(of)) {
        facts.holds(&who, lock);
        return;
    }
    let lock = if let Some(of) = rest.strip_prefix(" waits for ") {
        let lock = lock_of(of);
        lock.iter().for_each(|lock| facts.waits(&who, &for_lock(lock)));
        lock
    } else if let Some((_, of)) =
        rest.split_once(" and needs ").filter(|_| rest.starts_with(" waits on a condition "))
    {
        let lock = lock_of(of);
        lock.iter().for_each(|lock| facts.waits(&who, &condition(lock)));
        lock
    } else {
        None
    };
    if let Some(lock) = lock
        && let Some((_, holder)) = rest.split_once(", held by ")
        && let Some((holder, _)) = names.who(holder)
    {
        facts.holds(&holder, &lock);
    }
}

/// `diff`: the locks that were held all the time.
pub(crate) fn diff(text: &str, names: &Names) -> Facts {
    lock_lines(text.lines(), names)
}
