//! A process that was killed counts as dead, however long its threads take to end.

use std::process::Command;

use librip_test_kit::reader;
use librip_test_kit::run::of_type;
use librip_test_kit::setting;

use crate::{ready, scenario};

/// Kills a deadlocked process and checks its ring at once, as a user would: `kill` does not wait for the death.
/// `crowd` further threads make the death take longer.
#[track_caller]
fn killed_and_checked(rounds: u64, crowd: u32) {
    for round in 0..rounds {
        let plan = scenario("cycle-in-a-crowd")
            .env("CROWD", crowd.to_string())
            .env("RIP_SLOTS", "8192")
            .env("RIP_WORDS", "16");
        let victim = ready(plan);
        let script = format!(
            "kill -9 {}; exec {} check --json --min-confidence proven {}",
            victim.pid(),
            reader::program().display(),
            victim.ring_path().display()
        );
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let field = |kind: &str, field: &str| of_type(&lines, kind).next().map(|data| data[field].clone());
        let stderr = String::from_utf8_lossy(&output.stderr);
        let told = format!("round {round}: {text}\n{stderr}");
        assert_eq!(field("finding", "kind"), Some("deadlock".into()), "{told}");
        assert_eq!(field("ring", "state"), Some("dead".into()), "{told}");
        // The last state is one reading.
        assert_eq!(field("checked", "window_ns"), Some(serde_json::Value::Null), "{told}");
        assert_eq!(output.status.code(), Some(1), "{told}");
        victim.wait();
    }
}

/// `RIP_KILLS` sets the number of kills: `RIP_KILLS=1000 cargo test -p librip-tests --test ring_files dying`.
#[test]
fn a_killed_process_counts_as_dead_at_once() {
    killed_and_checked(setting("RIP_KILLS", 50), 0);
}

#[test]
fn a_killed_process_of_many_threads_counts_as_dead_at_once() {
    killed_and_checked(setting("RIP_KILLS", 50).div_ceil(10), 5000);
}
