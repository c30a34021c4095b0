//! What the ring has of tasks that servers make: requests, what hyper spawns, and the functions of the macros.

#![cfg(all(feature = "hyper", feature = "macros", feature = "tower"))]

#[allow(dead_code, reason = "others need more of it")]
mod ring;

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::panic::Location;
use std::pin::pin;
use std::task::{Context, Poll};

use http::Request;
use hyper::rt::Executor;
use librip_tokio::HyperExecutor;
use ring::{Ring, task};
use tokio::task::yield_now;
use tower_layer::Layer;
use tower_service::Service;

#[track_caller]
fn line() -> u32 {
    Location::caller().line()
}

/// A service that never answers.
#[derive(Clone, Copy)]
struct Silent;

impl Service<Request<()>> for Silent {
    type Response = ();
    type Error = Infallible;
    type Future = std::future::Pending<Result<(), Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        pending()
    }
}

#[tokio::test]
async fn a_request_is_a_task_from_its_call_until_it_is_dropped() {
    librip::init().unwrap();
    let made = line() + 1;
    let layer = librip_tokio::layer();
    let mut service = layer.layer(Silent);
    let mut request = pin!(service.call(Request::put("/silent/29").body(()).unwrap()));
    let slot = task("PUT /silent/{}");
    assert_eq!((slot.line, slot.turn), (made, 0));
    assert!(poll_fn(|cx| Poll::Ready(request.as_mut().poll(cx))).await.is_pending());
    assert_eq!(task("PUT /silent/{}").turn, 2, "polled once");
    request.set(service.call(Request::put("/other").body(()).unwrap()));
    assert!(Ring::read().task("PUT /silent/{}").is_none());
}

#[tokio::test]
async fn any_number_of_paths_needs_a_slot_for_each_request_alone() {
    librip::init().unwrap();
    let mut service = librip_tokio::layer().layer(Silent);
    for number in 0..2_000_u32 {
        let letters: String = number.to_string().bytes().map(|digit| char::from(digit + 49)).collect();
        let path = format!("/paths/{letters}/{}", "long".repeat(2_500));
        drop(service.call(Request::get(path).body(()).unwrap()));
    }
    assert_eq!(Ring::read().tasks_refused(), 0);
}

#[tokio::test]
async fn what_hyper_spawns_is_a_task_with_the_place_of_the_executor() {
    librip::init().unwrap();
    let made = line() + 1;
    let executor = HyperExecutor::new();
    executor.execute(pending::<()>());
    yield_now().await;
    let slot = task("hyper");
    assert_eq!((slot.line, slot.turn), (made, 2));
    assert_eq!(slot.origin >> 16 & 0xffff, 1, "one worker may poll it");
}

#[librip_tokio::test]
async fn a_test_is_a_task() {
    assert_eq!(task("a_test_is_a_task").turn % 2, 1, "it is polled");
}

#[librip_tokio::test(flavor = "multi_thread", worker_threads = 1 + 1)]
#[should_panic(expected = "as it should")]
async fn a_test_has_arguments_and_may_panic() {
    assert_eq!(tokio::runtime::Handle::current().metrics().num_workers(), 2);
    panic!("as it should");
}

#[librip_tokio::test(start_paused = true)]
async fn a_test_may_fail_by_its_result() -> Result<(), std::num::ParseIntError> {
    let before = tokio::time::Instant::now();
    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
    assert_eq!(before.elapsed().as_secs(), 3600);
    let seven: u32 = "7".parse()?;
    assert_eq!(seven, 7);
    Ok(())
}
