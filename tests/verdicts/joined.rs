//! A ring, the kernel and the process's memory together: what `check` says that none of them says alone.

use serde_json::Value;

use super::ask::{Answer, check, codes, printed, start};

/// A thread of a finding, by its name.
fn thread<'a>(finding: &'a Value, name: &str) -> &'a Value {
    let mut threads = finding["threads"].as_array().into_iter().flatten();
    threads.find(|thread| thread["name"] == name).unwrap_or_else(|| panic!("no {name}: {finding:#}"))
}

/// The balance counts each thread once.
fn counted(answer: &Answer) -> u64 {
    let balance = &answer.checked()["balance"];
    let of = |name: &str| balance[name].as_u64().unwrap();
    let doing = balance["doing"].as_object().into_iter().flatten();
    let doing: u64 = doing.filter_map(|(_, count)| count.as_u64()).sum();
    let counted = of("on_locks") + of("on_conditions") + of("on_semaphores") + doing;
    assert_eq!(counted, of("present"), "{balance:#}");
    counted
}

#[test]
fn proves_a_deadlock_of_a_recorded_lock_and_an_unrecorded_mutex() {
    let mut victim = start("cycle-through-an-unrecorded-mutex");
    let live = check(&victim.ring_path(), &[]);
    assert_eq!(live.findings, ["proven deadlock"], "{live:#?}");
    assert_eq!(live.threads(0), ["auditor", "teller"]);
    assert!(codes(&live.finding()["premises"]).contains(&"memory-intact"), "{live:#?}");
    assert_eq!(counted(&live), 3);
    let text = printed(&["check"], &victim.ring_path());
    for part in ["JOURNAL", "ACCOUNTS", "] holds "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    victim.kill();
    // The ring alone does not have the mutex.
    let dead = check(&victim.wait().ring_path(), &["--threshold", "1ms"]);
    assert!(dead.findings.iter().all(|finding| finding.starts_with("suspected ")), "{dead:#?}");
}

#[test]
fn proves_a_deadlock_of_a_recorded_lock_and_a_join() {
    let victim = start("join-under-a-lock");
    let live = check(&victim.ring_path(), &[]);
    assert_eq!(live.findings, ["proven deadlock"], "{live:#?}");
    assert_eq!(live.threads(0), ["closer", "joiner"]);
    assert_eq!(counted(&live), 3);
}

#[test]
fn measures_that_the_holder_gets_no_processor() {
    let victim = start("holder-without-a-processor");
    // Each wait is below the threshold.
    let live = check(&victim.ring_path(), &["--threshold", "1h"]);
    assert_eq!(live.findings, ["suspected starved-holder"], "{live:#?}");
    let finding = live.finding();
    assert_eq!(codes(&finding["advice"]), ["give-processor"]);
    let doing = &thread(finding, "flusher")["doing"];
    assert_eq!((&doing["what"], &doing["nice"]), (&"starves".into(), &19.into()), "{doing:#}");
    let (ran, delayed) = (doing["ran_ns"].as_u64().unwrap(), doing["delayed_ns"].as_u64().unwrap());
    assert!(delayed > 100_000_000 && ran < delayed / 4, "{doing:#}");
    let text = doing["text"].as_str().unwrap();
    assert!(text.starts_with("ready to run with ") && text.contains("(nice 19; "), "{text}");
    assert_eq!(counted(&live), 5);
}

#[test]
fn says_what_the_holder_does_by_the_kernel() {
    let victim = start("holder-reads-a-socket");
    let live = check(&victim.ring_path(), &["--threshold", "1ms"]);
    assert_eq!(live.findings, ["suspected long-wait"], "{live:#?}");
    let doing = &thread(live.finding(), "flusher")["doing"];
    assert_eq!((&doing["what"], &doing["still"]), (&"waits_for_data".into(), &true.into()), "{doing:#}");
    assert!(doing["descriptor"].is_u64() && doing["call"].is_string(), "{doing:#}");
    assert!(doing["location"]["function"].as_str().unwrap().contains("reads"), "{doing:#}");
    let text = printed(&["check", "--threshold", "1ms"], &victim.ring_path());
    assert!(text.contains(" has been in "), "{text}");
    assert!(text.contains(" on descriptor ") && text.contains("(unix socket"), "{text}");
    let locks = printed(&["locks"], &victim.ring_path());
    assert!(locks.contains(" on descriptor "), "{locks}");
}

#[test]
fn says_that_the_holder_is_stopped() {
    let mut victim = start("holder-reads-a-socket");
    victim.stop();
    let live = check(&victim.ring_path(), &["--threshold", "1ms"]);
    assert_eq!(live.findings, ["proven stopped", "suspected long-wait"], "{live:#?}");
    assert_eq!(codes(&live.finding()["advice"]), ["continue"], "{live:#?}");
    let finding = *live.data("finding").last().unwrap();
    assert_eq!(thread(finding, "flusher")["doing"]["what"], "stopped", "{finding:#}");
    assert_eq!(codes(&finding["advice"]), ["let-run"], "{finding:#}");
}
