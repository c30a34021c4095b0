//! [`layer`]: makes a task of each request of a tower service. `request_name` names them.

use std::panic::Location;
use std::task::{Context, Poll};

use http::Request;
use librip::task::Traced;
use tower_layer::Layer;
use tower_service::Service;

use crate::Task;
use crate::request_name::RequestName;

/// Makes a task of each request of a service: of a router of axum, a server of tonic, or any other tower service.
///
/// Servers spawn their connections themselves. So without this, or [`watch`](crate::watch()), what a request holds and
/// waits for belongs to no task. The place of these tasks is that of this call.
///
/// The task has the name of the request's method and route, as `GET /orders/{id}`, with the feature `axum` and in
/// routers of axum. Otherwise, the path stands for the route, without what looks like a value: `GET /orders/{}`. A call
/// of gRPC is named by its service and method. 40 bytes are kept.
///
/// With `RIP_POLLS=times`, `read-rip tasks --polls` shows for each name how long polls took.
///
/// A task ends with the response's head. A body that is streamed after that belongs to the task of the connection, if
/// there is one.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "axum")]
/// # {
/// use axum::{Router, routing::get};
///
/// let app: Router = Router::new()
///     .route("/orders/{id}", get(async || "an order"))
///     .layer(librip_tokio::layer()); // after the routes
/// # }
/// ```
#[track_caller]
pub fn layer() -> RequestLayer {
    RequestLayer { at: Location::caller() }
}

/// See [`layer`].
#[derive(Clone, Copy, Debug)]
pub struct RequestLayer {
    at: &'static Location<'static>,
}

impl<S> Layer<S> for RequestLayer {
    type Service = RequestService<S>;

    fn layer(&self, inner: S) -> RequestService<S> {
        RequestService { inner, at: self.at }
    }
}

/// A service whose requests are tasks: see [`layer`].
#[derive(Clone, Copy, Debug)]
pub struct RequestService<S> {
    inner: S,
    at: &'static Location<'static>,
}

impl<S, B> Service<Request<B>> for RequestService<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Traced<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Traced<S::Future> {
        let name = if librip::is_recording() { RequestName::of(&request) } else { RequestName::default() };
        let future = self.inner.call(request);
        Task::new().kind_name(name.as_str()).traced_at(self.at, future)
    }
}
