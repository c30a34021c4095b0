//! The clients: HTTP/1 by hand.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

/// How each answer ends.
pub(crate) const ANSWER: &str = "sold";

/// Sends a request, such as `POST /orders/29`, and waits for its answer in the background.
pub(crate) fn asks(address: SocketAddr, request: &str) {
    let request = request.to_owned();
    tokio::spawn(async move {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        ask(&mut stream, &request).await;
    });
}

/// Sends requests from so many clients, one after the other each, for ever. Returns when each has had so many answers.
pub(crate) async fn buys_for_ever(address: SocketAddr, clients: usize, answers: usize) {
    let (done, mut all_done) = mpsc::channel(clients);
    for client in 0..clients {
        let done = done.clone();
        tokio::spawn(async move {
            let mut stream = TcpStream::connect(address).await.expect("it listens");
            for answered in 1.. {
                ask(&mut stream, &format!("POST /buys/{client}")).await;
                if answered == answers {
                    done.send(()).await.expect("somebody waits");
                }
            }
        });
    }
    for _ in 0..clients {
        all_done.recv().await.expect("all clients live");
    }
}

async fn ask(stream: &mut TcpStream, request: &str) {
    let request = format!("{request} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("the server lives");
    let (mut said, mut buffer) = (Vec::new(), [0; 1024]);
    while !said.ends_with(ANSWER.as_bytes()) {
        let read = stream.read(&mut buffer).await.expect("the server lives");
        assert!(read > 0, "{}", String::from_utf8_lossy(&said));
        said.extend(&buffer[..read]);
    }
}
