//! Facts that outputs state of a subject, and the comparison of them. It reads no output.
//!
//! An output may leave a fact out. What it says must be what all others say. Some outputs list all facts of a kind: then
//! what such a list does not have is denied.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use regex::Regex;

/// What a fact is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// The one thing that a thread or task waits for, or `nothing`.
    Answer {
        who: String,
    },
    /// Whether it waits for this. A task may wait for several things.
    Waits {
        who: String,
        what: String,
    },
    /// Since when it waits for that, us since 1970.
    Since {
        who: String,
        what: String,
    },
    /// Whether it holds this lock.
    Holds {
        who: String,
        lock: String,
    },
    /// How many locks it holds.
    HoldsCount {
        who: String,
    },
    Name {
        who: String,
    },
    /// What the kernel says of it, in words.
    Kernel {
        who: String,
    },
    /// What a task does: `running`, `ready`, `suspended` or `ended`.
    Does {
        task: String,
    },
    /// Since when it does that, us since 1970.
    DoesSince {
        task: String,
    },
    /// How many there are of something.
    Count {
        what: String,
    },
    /// The findings: kinds with confidences.
    Findings,
    /// The code of the outcome.
    Outcome,
    /// The verdict in a sentence. It may be continued.
    Verdict,
    /// The exit status of a command that judges.
    Status,
}

/// What an output says.
#[derive(Default)]
pub(crate) struct Facts {
    said: BTreeMap<Key, BTreeSet<String>>,
    lists: Vec<fn(&Key) -> bool>,
}

pub(crate) const YES: &str = "yes";
const NO: &str = "no";

impl Facts {
    pub(crate) fn say(&mut self, key: Key, value: impl Into<String>) {
        self.said.entry(key).or_default().insert(value.into());
    }

    /// The one thing that somebody waits for.
    pub(crate) fn answer(&mut self, who: &str, what: &str) {
        self.say(Key::Answer { who: who.to_owned() }, what);
        if what != NOTHING {
            self.waits(who, what);
        }
    }

    /// One of the things that somebody waits for.
    pub(crate) fn waits(&mut self, who: &str, what: &str) {
        self.say(Key::Waits { who: who.to_owned(), what: what.to_owned() }, YES);
    }

    pub(crate) fn since(&mut self, who: &str, what: &str, us: Option<u64>) {
        if let Some(us) = us {
            self.say(Key::Since { who: who.to_owned(), what: what.to_owned() }, us.to_string());
        }
    }

    pub(crate) fn does_since(&mut self, task: &str, us: Option<u64>) {
        if let Some(us) = us {
            self.say(Key::DoesSince { task: task.to_owned() }, us.to_string());
        }
    }

    pub(crate) fn holds(&mut self, who: &str, lock: &str) {
        self.say(Key::Holds { who: who.to_owned(), lock: lock.to_owned() }, YES);
    }

    pub(crate) fn holds_count(&mut self, who: &str, count: u64) {
        self.say(Key::HoldsCount { who: who.to_owned() }, count.to_string());
    }

    pub(crate) fn name(&mut self, who: &str, name: &str) {
        if !name.is_empty() {
            self.say(Key::Name { who: who.to_owned() }, name);
        }
    }

    pub(crate) fn kernel(&mut self, who: &str, words: &str) {
        self.say(Key::Kernel { who: who.to_owned() }, without_shares(words));
    }

    pub(crate) fn count(&mut self, what: impl Into<String>, count: u64) {
        self.say(Key::Count { what: what.into() }, count.to_string());
    }

    /// Adds to the number of something.
    pub(crate) fn add(&mut self, what: impl Into<String>, count: u64) {
        let of = self.said.entry(Key::Count { what: what.into() }).or_default();
        let before = of.pop_first().map_or(0, |count| count.parse::<u64>().unwrap());
        of.insert((before + count).to_string());
    }

    pub(crate) fn verdict(&mut self, sentence: &str) {
        if let Some(outcome) = outcome_of(sentence) {
            self.say(Key::Outcome, outcome);
        }
        self.say(Key::Verdict, timeless(sentence));
    }

    /// The output has all facts of such a kind.
    pub(crate) fn lists(&mut self, all: fn(&Key) -> bool) {
        self.lists.push(all);
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.said.keys()
    }

    /// What it says of this, or denies by its silence.
    fn value(&self, key: &Key) -> Option<BTreeSet<String>> {
        let denied = || match key {
            Key::Answer { .. } => NOTHING,
            Key::Count { .. } => "0",
            _ => NO,
        };
        let is_listed = || self.lists.iter().any(|all| all(key));
        self.said.get(key).cloned().or_else(|| is_listed().then(|| BTreeSet::from([denied().to_owned()])))
    }
}

pub(crate) const NOTHING: &str = "nothing";

/// All that outputs say of a subject.
#[derive(Default)]
pub(crate) struct Answers {
    by: Vec<(String, Facts)>,
}

impl Answers {
    pub(crate) fn add(&mut self, output: impl Into<String>, facts: Facts) {
        self.by.push((output.into(), facts));
    }

    /// What is said of this.
    pub(crate) fn value(&self, key: &Key) -> Option<&str> {
        self.by.iter().find_map(|(_, facts)| facts.said.get(key)?.last().map(String::as_str))
    }

    /// Which outputs say this, without those that only deny.
    pub(crate) fn said_by(&self, key: &Key) -> Vec<&str> {
        self.by.iter().filter(|(_, facts)| facts.said.contains_key(key)).map(|(by, _)| &**by).collect()
    }

    /// All keys of which something is said.
    pub(crate) fn keys(&self) -> BTreeSet<&Key> {
        self.by.iter().flat_map(|(_, facts)| facts.keys()).collect()
    }

    /// Where outputs contradict each other: each fact, with each value and who says it.
    pub(crate) fn contradictions(&self) -> String {
        let mut text = String::new();
        for key in self.keys() {
            let mut values: BTreeMap<String, Vec<&str>> = BTreeMap::new();
            for (output, facts) in &self.by {
                for value in facts.value(key).into_iter().flatten() {
                    values.entry(value).or_default().push(output);
                }
            }
            let agree = match key {
                // Each of them continues the shorter one.
                Key::Verdict => values.keys().zip(values.keys().skip(1)).all(|(a, b)| b.starts_with(&**a)),
                _ => values.len() < 2,
            };
            if !agree {
                writeln!(text, "{key:?}").unwrap();
                for (value, by) in values {
                    writeln!(text, "    {value:?}: {}", by.join(", ")).unwrap();
                }
            }
        }
        text
    }
}

/// A sentence without its times: a living process goes on to wait while it is asked.
pub(crate) fn timeless(sentence: &str) -> String {
    let time = Regex::new(r"\b[0-9]+(\.[0-9]+)? (ns|us|ms|s|min|h|d)\b").unwrap();
    let sentence = time.replace_all(sentence, "TIME");
    // How much of it is known depends on what is known of the end.
    let bound = Regex::new(r"(at least |at most |TIME( and )?)+").unwrap();
    bound.replace_all(&sentence, "TIME").trim().to_owned()
}

/// What the kernel says of a thread, without how much it ran within a window.
fn without_shares(words: &str) -> String {
    let share = Regex::new(r", with [^,]* % of a processor in [0-9.]+ [a-z]+").unwrap();
    share.replace_all(words, "").into_owned()
}

/// The code of the outcome that a sentence stands for.
fn outcome_of(sentence: &str) -> Option<&'static str> {
    const SENTENCES: &[(&str, &str)] = &[
        ("no findings", "nothing-found"),
        ("proven ", "findings"),
        ("potential ", "findings"),
        ("suspected ", "findings"),
        ("nothing to judge: the record has no locks", "nothing-recorded"),
        ("nothing to judge: nothing is known of the threads", "nothing-recorded"),
        ("not judged: all tasks wait for one another", "all-tasks-wait"),
        ("not judged: all workers of an executor were in polls", "all-workers-busy"),
        ("not judged: all recorded threads wait", "all-wait"),
        ("not judged: all threads wait", "all-wait"),
        ("not judged: what the async tasks of ", "unseen-tasks"),
        ("not judged: futures hold or wait for locks, and ", "unrecorded-futures"),
    ];
    if sentence.starts_with("not judged: ") && sentence.contains(" when the process died, and ") {
        return Some("held-at-end");
    }
    SENTENCES.iter().find(|(begin, _)| sentence.starts_with(begin)).map(|&(_, outcome)| outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(of: &[(&str, &str)]) -> Facts {
        let mut facts = Facts::default();
        of.iter().for_each(|(who, what)| facts.answer(who, what));
        facts
    }

    fn contradictions(one: Facts, other: Facts) -> usize {
        let mut answers = Answers::default();
        answers.add("one", one);
        answers.add("other", other);
        answers.contradictions().lines().filter(|line| !line.starts_with(' ')).count()
    }

    #[test]
    fn an_output_may_leave_out_what_another_one_says_and_may_not_say_something_else() {
        assert_eq!(contradictions(facts(&[("a", "for L"), ("b", NOTHING)]), facts(&[("a", "for L")])), 0);
        assert_eq!(contradictions(facts(&[("a", "for L")]), facts(&[("a", "for M")])), 1);
        assert_eq!(contradictions(facts(&[("a", "for L")]), facts(&[("a", NOTHING)])), 1);
        // One output contradicts itself.
        assert_eq!(contradictions(facts(&[("a", "for L"), ("a", "for M")]), Facts::default()), 1);
    }

    #[test]
    fn a_list_of_all_denies_what_it_does_not_have() {
        let list = || {
            let mut list = facts(&[]);
            list.lists(|key| matches!(key, Key::Waits { .. }));
            list
        };
        assert_eq!(contradictions(facts(&[("a", "for L")]), list()), 1);
        let mut with_one = list();
        with_one.waits("a", "for L");
        assert_eq!(contradictions(facts(&[("a", "for L")]), with_one), 0);
    }

    #[test]
    fn a_verdict_may_be_continued_and_its_times_go_on() {
        let verdict = |sentence: &str| {
            let mut facts = Facts::default();
            facts.verdict(sentence);
            facts
        };
        let short = "not judged: all tasks wait for one another, or so";
        assert_eq!(contradictions(verdict(short), verdict(&format!("{short}, such as that"))), 0);
        assert_eq!(contradictions(verdict("no findings"), verdict(short)), 2, "the outcome differs too");
        let timed = |ms| verdict(&format!("proven deadlock: 2 threads wait for one another, for {ms} ms"));
        assert_eq!(contradictions(timed(3), timed(41)), 0);
    }
}
