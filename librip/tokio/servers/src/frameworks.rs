//! The servers. What `read-rip check` advises for each framework is in here, word for word.

use std::convert::Infallible;
use std::sync::Arc;

use actix_web::dev::Service as _;
use axum::Router;
use axum::routing::post;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use librip_tokio::HyperExecutor;
use tokio::net::TcpListener;
use tonic::transport::Server;

use crate::shop::Shop;

/// Serves with axum, prepared or not.
pub(crate) fn axum(listener: TcpListener, shop: Arc<Shop>, is_prepared: bool) {
    let [orders, channel, buys] = [(); 3].map(|()| shop.clone());
    let mut router = Router::new()
        .route("/orders/{id}", post(async move || orders.orders().await))
        .route("/channel/{id}", post(async move || channel.sends().await))
        .route("/buys/{id}", post(async move || buys.buys().await));
    if is_prepared {
        router = router.layer(librip_tokio::layer());
    }
    tokio::spawn(async { axum::serve(listener, router).await });
}

/// Serves with hyper: HTTP/1 and HTTP/2.
pub(crate) fn hyper(listener: TcpListener, shop: Arc<Shop>) {
    librip_tokio::Task::new().name("listener").spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("it listens");
            let shop = shop.clone();
            let handle = move |request| handle(shop.clone(), request);
            let service = service_fn(move |request| librip_tokio::traced(handle(request)));
            librip_tokio::Task::new().name("connection").spawn(async move {
                let builder = auto::Builder::new(HyperExecutor::new());
                // A client that goes away is no reason to stop.
                let _ = builder.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
}

async fn handle(shop: Arc<Shop>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let answer = match request.uri().path().split('/').nth(1) {
        Some("orders") => shop.orders().await,
        Some("channel") => shop.sends().await,
        _ => shop.buys().await,
    };
    Ok(Response::new(Full::from(answer)))
}

/// A server of tonic, which serves nothing.
pub(crate) fn tonic() {
    let _ = Server::builder().layer(librip_tokio::layer()).add_routes(tonic::service::Routes::default());
}

/// An application of actix-web, which nobody runs.
pub(crate) fn actix() {
    let _ = actix_web::App::new().wrap_fn(|request, service| librip_tokio::traced(service.call(request)));
}
