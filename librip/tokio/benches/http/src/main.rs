//! A small HTTP server for `scripts/bench http`: alone, recorded by librip, and observed by its peers.
//!
//! ```text
//! librip-bench-http [task]
//! ```
//!
//! It prints the port of 127.0.0.1 at which it listens, and ends with its standard input. Its runtime has one worker.
//! Each request locks two mutexes that are free, and with `task` is a task of its own. A feature says who observes it.

use std::io::{Read, Write, stdout};
use std::sync::Arc;

#[cfg(feature = "dial9")]
use dial9::spawn;
#[cfg(feature = "librip")]
use librip_tokio::{spawn, sync::Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
#[cfg(not(feature = "librip"))]
use tokio::sync::Mutex;
#[cfg(not(any(feature = "librip", feature = "dial9")))]
use tokio::task::spawn;

#[derive(Default)]
struct Server {
    sessions: Mutex<u64>,
    answers: Mutex<u64>,
}

impl Server {
    async fn answer(&self) -> &'static [u8] {
        *self.sessions.lock().await += 1;
        *self.answers.lock().await += 1;
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    }
}

/// Serves a connection until the client closes it. A request is one segment.
async fn serve(server: Arc<Server>, mut client: TcpStream, is_task: bool) {
    let mut request = [0; 4096];
    while let Ok(1..) = client.read(&mut request).await {
        let answer = if is_task {
            let server = Arc::clone(&server);
            spawn(async move { server.answer().await }).await.expect("it does not panic")
        } else {
            server.answer().await
        };
        if client.write_all(answer).await.is_err() {
            return;
        }
    }
}

async fn accept(is_task: bool) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    println!("{}", listener.local_addr().expect("it is bound").port());
    stdout().flush().expect("somebody reads the port");
    let server = Arc::new(Server::default());
    while let Ok((client, _)) = listener.accept().await {
        client.set_nodelay(true).expect("a socket");
        spawn(serve(Arc::clone(&server), client, is_task));
    }
}

fn main() {
    let is_task = std::env::args().nth(1).as_deref() == Some("task");
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_all();
    run(builder, accept(is_task));
}

/// The acceptor is a task of the worker, as the connections are.
#[cfg(not(any(feature = "librip", feature = "dial9")))]
fn run(mut builder: Builder, future: impl Future<Output = ()> + Send + 'static) {
    #[cfg(feature = "console")]
    console_subscriber::init();
    let runtime = builder.build().expect("a runtime");
    runtime.block_on(async { spawn(future).await.expect("it does not panic") });
}

#[cfg(feature = "librip")]
fn run(mut builder: Builder, future: impl Future<Output = ()> + Send + 'static) {
    librip::init().expect("a ring");
    let runtime = librip_tokio::watch(&mut builder).build().expect("a runtime");
    runtime.block_on(async { spawn(future).await.expect("it does not panic") });
}

#[cfg(feature = "dial9")]
fn run(builder: Builder, future: impl Future<Output = ()> + Send + 'static) {
    use dial9::{Dial9HandleTokioExt, DiskBuffer, TokioAttachOptions};
    let directory = std::env::temp_dir().join(format!("librip-bench-http.{}", std::process::id()));
    let writer = DiskBuffer::builder().base_path(&directory).max_total_size(64 << 20).build();
    let recorder = dial9::recorder(writer.expect("a directory for the trace")).build();
    let options = TokioAttachOptions::builder().task_tracking_enabled(true).build();
    let runtime = recorder.handle().attach_tokio_runtime(builder, options).expect("a runtime");
    runtime.block_on(async { spawn(future).await.expect("it does not panic") });
}
