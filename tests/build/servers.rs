//! Servers of frameworks that spawn their requests themselves: what `check` says of them if they are prepared as it
//! says, and if they are not, while they live and after they were killed. scripts/test-builds runs these tests.

use std::path::Path;

use librip_test_kit::reader;
use librip_test_kit::run::Outcome;
use librip_test_kit::tool::repository;
use librip_test_kit::victim::{Plan, Victim};

use crate::built_alone;

/// A server that has reached its state. `None` if it cannot be built.
fn started(arguments: &[&str]) -> Option<Victim> {
    let programs = built_alone("librip/tokio/servers", None)?;
    let mut victim = Plan::new(programs.join("servers"), arguments).start();
    victim.until("ready");
    Some(victim)
}

fn check(ring: &Path) -> Outcome {
    reader::ask(&["check"], ring)
}

/// What `check` says of a server while it lives, and after it was killed.
fn verdicts(arguments: &[&str]) -> Option<[Outcome; 2]> {
    let victim = started(arguments)?;
    let alive = check(&victim.ring_path());
    Some([alive, check(&victim.killed().ring_path())])
}

#[test]
#[ignore = "builds a hundred packages: scripts/test-builds"]
fn a_request_that_waits_for_a_background_task_is_called_by_its_route() {
    let Some(said) = verdicts(&["axum", "orders"]) else { return };
    for said in said {
        let text = &said.stdout;
        assert!(text.contains("\nproven deadlock: 2 tasks wait for one another"), "{said:?}");
        assert!(text.contains("POST /orders/{id}[task "), "{said:?}");
        assert!(text.contains("waits for cache") && text.contains("] holds cache"), "{said:?}");
        assert_eq!(said.status, 1, "{said:?}");
    }
}

#[test]
#[ignore = "builds a hundred packages: scripts/test-builds"]
fn a_request_that_sends_into_a_full_channel_waits_for_the_receiver() {
    let Some(said) = verdicts(&["axum", "channel"]) else { return };
    for said in said {
        let text = &said.stdout;
        assert!(text.contains("\npotential deadlock: 2 tasks wait for one another"), "{said:?}");
        assert!(text.contains("POST /channel/{id}[task ") && text.contains("auditor[task "), "{said:?}");
        assert_eq!(said.status, 1, "{said:?}");
    }
}

#[test]
#[ignore = "builds a hundred packages: scripts/test-builds"]
fn a_request_of_hyper_is_a_task_within_that_of_its_connection() {
    let Some(said) = verdicts(&["hyper", "orders"]) else { return };
    for said in said {
        assert!(said.stdout.contains("\nproven deadlock: 2 tasks wait for one another"), "{said:?}");
        assert_eq!(said.status, 1, "{said:?}");
    }
}

#[test]
#[ignore = "builds a hundred packages: scripts/test-builds"]
fn a_server_that_is_not_prepared_is_not_judged() {
    for scenario in ["orders", "healthy"] {
        let Some(said) = verdicts(&["axum-bare", scenario]) else { return };
        for said in said {
            let text = &said.stdout;
            assert!(text.contains("\nnot judged: futures hold or wait for locks"), "{said:?}");
            assert!(text.contains(ADVICE[0]) && text.contains("#[librip_tokio::main]"), "{said:?}");
            assert_eq!(said.status, 3, "{said:?}");
        }
    }
}

#[test]
#[ignore = "builds a hundred packages: scripts/test-builds"]
fn a_healthy_server_under_load_has_no_finding() {
    for framework in ["axum", "hyper"] {
        let Some(mut victim) = started(&[framework, "healthy"]) else { return };
        for _ in 0..3 {
            let said = check(&victim.ring_path());
            assert_eq!(said.status, 0, "{framework}: {said:?}");
        }
        victim.kill();
        // Whoever dies with a lock may have been stuck: that is no finding, and no lack of one.
        let said = check(&victim.wait().ring_path());
        assert!([0, 3].contains(&said.status), "{framework}: {said:?}");
    }
}

/// What `check` advises for each framework.
const ADVICE: [&str; 4] = [
    "router.layer(librip_tokio::layer())",
    "Server::builder().layer(librip_tokio::layer())",
    "App::new().wrap_fn(|request, service| librip_tokio::traced(service.call(request)))",
    "service_fn(move |request| librip_tokio::traced(handle(request)))",
];

#[test]
#[ignore = "builds a hundred packages: scripts/test-builds"]
fn what_is_advised_compiles() {
    let text = |path: &str| std::fs::read_to_string(repository().join(path)).unwrap();
    let (said, program) =
        (text("read-rip/tests/messages.txt"), text("librip/tokio/servers/src/frameworks.rs"));
    for advice in ADVICE {
        assert!(said.contains(advice), "{advice}: nobody says it");
        assert!(program.contains(advice), "{advice}: it is not compiled");
    }
    for framework in ["tonic", "actix"] {
        let Some(victim) = started(&[framework]) else { return };
        victim.killed();
    }
}
