//! Profiles for speedscope, by the schema that it publishes, and by what it asks of frames besides.
//!
//! Not tested here: how it draws.

use serde_json::Value;

use crate::support::exports::*;
use crate::support::locks::*;
use crate::support::synth::{Ring, Slot};
use crate::tools;

/// The profiles and the frames of a ring, checked.
fn profiles(ring: &Ring, options: &[&str]) -> Option<(Vec<Value>, Vec<String>)> {
    let schema = tools::file("node/node_modules/speedscope/dist/release/file-format-schema.json")?;
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let out = export(ring, "speedscope", options).sound().stdout;
    let file: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
    let errors: Vec<String> = schema.iter_errors(&file).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{out}");
    let frames = file["shared"]["frames"].as_array().unwrap().iter();
    let frames: Vec<String> = frames.map(|frame| frame["name"].as_str().unwrap().to_owned()).collect();
    let profiles = file["profiles"].as_array().unwrap().clone();
    profiles
        .iter()
        .filter(|profile| profile["type"] == "evented")
        .for_each(|it| assert_balanced(it, &frames));
    Some((profiles, frames))
}

/// Times do not go back, and a frame closes only if it is the innermost one that is open; in the end none is.
fn assert_balanced(profile: &Value, frames: &[String]) {
    let mut open = Vec::new();
    let mut last = profile["startValue"].as_u64().unwrap();
    for event in profile["events"].as_array().unwrap() {
        let (frame, at) = (event["frame"].as_u64().unwrap(), event["at"].as_u64().unwrap());
        assert!(last <= at && (frame as usize) < frames.len(), "{profile:#}");
        last = at;
        match event["type"].as_str().unwrap() {
            "O" => open.push(frame),
            _ => assert_eq!(open.pop(), Some(frame), "{profile:#}"),
        }
    }
    assert!(open.is_empty() && last <= profile["endValue"].as_u64().unwrap(), "{profile:#}");
}

/// The frames of a thread's profile, as name, begin and end in seconds.
fn slices(profile: &Value, frames: &[String]) -> Vec<(String, u64, u64)> {
    let mut open = Vec::new();
    let mut slices = Vec::new();
    for event in profile["events"].as_array().unwrap() {
        let at = event["at"].as_u64().unwrap().div_ceil(1_000_000_000);
        match event["type"] == "O" {
            true => open.push(at),
            false => {
                let name = frames[event["frame"].as_u64().unwrap() as usize].clone();
                slices.push((name, open.pop().unwrap(), at));
            }
        }
    }
    slices
}

fn of<'p>(profiles: &'p [Value], name: &str) -> &'p Value {
    let found = profiles.iter().find(|profile| profile["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {profiles:#?}"))
}

#[test]
fn threads_have_profiles_of_waits_and_holds_and_what_overlaps_has_one_of_its_own() {
    let Some((profiles, frames)) = profiles(&talk(), &[]) else { return };
    // The first moment is 3 s after the boot, the last one 66 s.
    let slice = |name: &str, begin, end| (name.to_owned(), begin, end);
    let holder = format!("{SEEN}[1]");
    let a = format!("holds {SEEN}");
    assert_eq!(
        slices(of(&profiles, &holder), &frames),
        [slice(&a, 0, 3), slice("holds queue", 5, 63)],
        "{frames:#?}"
    );
    let overlapping = of(&profiles, &format!("{holder}, overlapping 1"));
    assert_eq!(slices(overlapping, &frames), [slice("holds queue", 1, 4)]);
    let follower = slices(of(&profiles, "follower[2]"), &frames);
    assert_eq!(follower[0], slice(&format!("waits for {SEEN}"), 2, 3));
    assert_eq!(slices(of(&profiles, "grocer[5]"), &frames), [slice(&format!("sale{SEEN}"), 1, 2)]);
}

#[test]
fn tasks_have_profiles_of_their_own_and_stand_apart_in_the_first_one() {
    let Some((profiles, frames)) = profiles(&crew(), &[]) else { return };
    assert_eq!(profiles[0]["name"], "where threads and tasks are now, by number");
    let tasks = frames.iter().position(|frame| frame == "tasks").unwrap();
    let stacks = profiles[0]["samples"].as_array().unwrap();
    let (of_tasks, of_threads): (Vec<&Value>, Vec<&Value>) =
        stacks.iter().partition(|stack| stack[1] == tasks);
    assert_eq!((of_tasks.len(), of_threads.len()), (4, 1), "{frames:#?}");
    // The first moment is the claim of the first slot.
    let names = |name: &str| {
        slices(of(&profiles, name), &frames).into_iter().map(|(name, ..)| name).collect::<Vec<_>>()
    };
    let suspended = "suspended at server::cache::? cache.rs:11<0x1100>";
    assert_eq!(names("server[task 7]"), [suspended, "waits for queue"]);
    assert_eq!(names("busy[task 8]"), ["polled by worker[10]"]);
}

#[test]
fn the_first_profile_is_where_threads_are_now_weighted_by_threads() {
    let Some((all, frames)) = profiles(&story(), &[]) else { return };
    let stacks = |profile: &Value, frames: &[String]| -> Vec<(Vec<String>, u64)> {
        let samples = profile["samples"].as_array().unwrap().iter().map(|stack| {
            let names = stack.as_array().unwrap().iter();
            names.map(|frame| frames[frame.as_u64().unwrap() as usize].clone()).collect()
        });
        let weights = profile["weights"].as_array().unwrap().iter().map(|weight| weight.as_u64().unwrap());
        samples.zip(weights).collect()
    };
    let waits = "[waits for queue]".to_owned();
    let now = stacks(&all[0], &frames);
    assert_eq!((&all[0]["type"], &all[0]["endValue"]), (&"sampled".into(), &4.into()));
    assert!(now.iter().any(|(stack, threads)| stack.last() == Some(&waits) && *threads == 3), "{now:#?}");
    let (all, frames) = profiles(&story(), &["--by-lock"]).unwrap();
    let now = stacks(&all[0], &frames);
    assert!(now.iter().any(|(stack, threads)| stack[1] == waits && *threads == 3), "{now:#?}");
}

#[test]
fn times_that_somebody_invented_and_rings_without_events_are_valid_profiles() {
    let mut slot = Slot::thread("a", 1).event(WAIT, &[at(3.0), A]).event(RELEASED, &[at(5.0), at(4.0), A]);
    slot.claimed_ns = 1 << 63;
    let late = Ring { clock: Some((3, 1000, 1 << 63)), ..ring().with_slots([slot]) };
    for (ring, count) in [(late, 2), (ring(), 0)] {
        let Some((profiles, _)) = profiles(&ring, &[]) else { return };
        assert_eq!(profiles.len(), count, "{profiles:#?}");
    }
}
