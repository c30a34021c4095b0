//! Servers that spawn their requests themselves, prepared as `read-rip check` says, and their clients.
//!
//! ```text
//! servers axum|axum-bare|hyper orders|channel|healthy
//! servers tonic|actix
//! ```
//!
//! Each reaches its state, prints `ready`, and stays there until it is killed. `healthy` goes on to serve. `axum-bare`
//! is not prepared. `tonic` and `actix` only show that what is said of them compiles. It judges nothing.

mod client;
mod frameworks;
mod shop;

use std::future::pending;
use std::io::Write;
use std::sync::Arc;

use shop::Shop;
use tokio::net::TcpListener;

/// How many clients a healthy server has.
const CLIENTS: usize = 8;
/// How many answers each of them has got when the program says that it is ready.
const ANSWERS: usize = 50;

#[librip_tokio::main(worker_threads = 2)]
async fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let shop = Arc::new(Shop::default());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    match arguments[..] {
        ["axum" | "axum-bare", _] => frameworks::axum(listener, shop.clone(), arguments[0] == "axum"),
        ["hyper", _] => frameworks::hyper(listener, shop.clone()),
        ["tonic"] => frameworks::tonic(),
        ["actix"] => frameworks::actix(),
        _ => panic!("servers FRAMEWORK SCENARIO"),
    }
    match arguments.get(1) {
        Some(&"healthy") => {
            shop.keep_shop();
            client::buys_for_ever(address, CLIENTS, ANSWERS).await;
        }
        Some(&scenario) => {
            shop.begin(scenario);
            client::asks(address, &format!("POST /{scenario}/29"));
            shop.until_stuck().await;
        }
        None => {}
    }
    println!("ready");
    std::io::stdout().flush()?;
    pending().await
}
