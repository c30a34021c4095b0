//! Trouble: twenty thousand threads wait for one lock, and its holder waits for a backend that never answers.
//!
//! The program is a session server with one thread for each connection. When each thread has served a request, the
//! janitor locks the session cache and asks a backend which sessions have expired. No answer comes. Each thread gets
//! one more request and then waits for the lock.
//!
//! `read-rip` shows the pile-up in one line, `lock : 20000 threads, ...`. `read-rip check` names the thread that holds
//! the lock: the janitor, whose last mark is "waits for the backend".
//!
//! ```text
//! server [--threads N]          default 20000
//! ```
//!
//! It prints `serving: N threads, pid P, ring PATH`, then `stuck: all workers wait`, and runs until it is killed.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread;

use librip::{rip_progress, rip_snap};
use librip_examples::arrivals::Arrivals;
use librip_examples::random::Random;
use librip_examples::sessions::Sessions;
use librip_examples::{many_threads, say, start, stay};

const THREADS_DEFAULT: usize = 20_000;
/// The size of a worker's stack. A worker touches little of it.
const STACK_LEN_BYTES: usize = 64 << 10;
/// The number of clients of a connection. Each client has a session.
const CLIENTS_PER_CONNECTION: u64 = 4;
/// The number of workers that end again when the system starts no more threads.
const THREADS_SPARED: usize = 16;
/// The limits of the system that a message names.
const LIMITS: &str = "kernel.threads-max, kernel.pid_max, vm.max_map_count, and the limit of the pids cgroup";

/// A request on a connection.
struct Request {
    client: u64,
}

fn main() -> ExitCode {
    let threads = match threads_asked_for() {
        Ok(threads) => threads,
        Err(message) => {
            eprintln!("server: {message}\nusage: server [--threads N]");
            return ExitCode::from(2);
        }
    };
    many_threads::prepare(threads);
    let ring = start();
    rip_snap!("starts the workers");
    let (connections, contexts) = connections(threads);
    let started = connections.len();
    if started == 0 {
        eprintln!("server: could not start any thread; raise {LIMITS}");
        return ExitCode::FAILURE;
    }

    // The number of workers is known only now, and the workers need it.
    let sessions = Arc::new(Sessions::new(Arrivals::new(started)));
    sessions.name_locks();
    let served = Arc::new(Arrivals::new(started));
    for context in contexts {
        // Each worker waits for its context, so this cannot fail.
        let _ = context.send((Arc::clone(&sessions), Arc::clone(&served)));
    }
    spawn("load", move || send_requests(&connections));

    served.wait();
    say(format_args!("serving: {started} threads, pid {}, ring {ring}", std::process::id()));

    let (locked, is_locked) = channel();
    let janitors = Arc::clone(&sessions);
    spawn("janitor", move || {
        janitors.expire(|| {
            let _ = locked.send(());
            ask_the_backend()
        });
    });
    // The janitor never releases the lock. So once all workers wait for it, they wait forever.
    let _ = is_locked.recv();
    sessions.waiting.wait();
    say("stuck: all workers wait");
    rip_snap!("stays");
    stay()
}

fn threads_asked_for() -> Result<usize, String> {
    let mut arguments = std::env::args().skip(1);
    let mut threads = THREADS_DEFAULT;
    while let Some(argument) = arguments.next() {
        if argument != "--threads" {
            return Err(format!("unknown argument {argument}"));
        }
        let number = arguments.next().unwrap_or_default();
        threads =
            number.parse().ok().filter(|&threads| threads > 0).ok_or("--threads takes a number above 0")?;
    }
    Ok(threads)
}

type Context = (Arc<Sessions>, Arc<Arrivals>);

/// Starts up to `threads` workers, as many as the system allows. Returns, for each worker, the channel for its
/// requests and the channel for its context.
fn connections(threads: usize) -> (Vec<SyncSender<Request>>, Vec<SyncSender<Context>>) {
    let mut connections = Vec::with_capacity(threads);
    let mut contexts = Vec::with_capacity(threads);
    for number in 0..threads {
        // Room for one request, so that a worker always has the next one.
        let (connection, requests) = sync_channel(1);
        let (context_sender, context) = sync_channel(1);
        let worker = move || work(&requests, &context);
        let builder = thread::Builder::new().name(format!("worker {number}")).stack_size(STACK_LEN_BYTES);
        if let Err(error) = builder.spawn(worker) {
            say(format_args!("started only {number} of {threads} threads: {error}; raise {LIMITS}"));
            // The load generator and the janitor need threads too, and the allocator needs mappings.
            connections.truncate(number.saturating_sub(THREADS_SPARED));
            contexts.truncate(connections.len());
            break;
        }
        connections.push(connection);
        contexts.push(context_sender);
    }
    (connections, contexts)
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) {
    if let Err(error) = thread::Builder::new().name(name.into()).stack_size(STACK_LEN_BYTES).spawn(body) {
        eprintln!("server: could not start the {name} thread: {error}; raise {LIMITS}");
        std::process::exit(1);
    }
}

/// A worker: serves one connection until it closes.
fn work(requests: &Receiver<Request>, context: &Receiver<Context>) {
    let Ok((sessions, served)) = context.recv() else { return };
    let mut answers = 0u64;
    let mut is_first = true;
    for request in requests {
        rip_snap!("has a request");
        answers ^= serve(&sessions, &request);
        rip_progress!("has answered");
        if is_first {
            is_first = false;
            served.arrive();
        }
    }
    std::hint::black_box(answers);
}

fn serve(sessions: &Sessions, request: &Request) -> u64 {
    let token = sessions.token(request.client);
    // A little work outside all locks. Some requests also read the statistics.
    let mut random = Random::new(token);
    let answer = (0..32).fold(token, |answer, _| answer.wrapping_add(random.below(1 << 32)));
    if answer.is_multiple_of(100) { answer ^ sessions.statistics().lookups } else { answer }
}

/// The load generator: sends a request to each connection in turn, and passes over those whose workers have not taken
/// the last one. It blocks only when all connections have been full for long: then every worker waits.
fn send_requests(connections: &[SyncSender<Request>]) {
    let (mut random, mut idle_rounds) = (Random::new(2024), 0);
    loop {
        let mut sent = 0;
        for (number, connection) in connections.iter().enumerate() {
            let client = number as u64 * CLIENTS_PER_CONNECTION + random.below(CLIENTS_PER_CONNECTION);
            match connection.try_send(Request { client }) {
                Ok(()) => sent += 1,
                Err(TrySendError::Full(_)) => {}
                Err(TrySendError::Disconnected(_)) => return,
            }
        }
        rip_snap!("has sent a round of requests");
        idle_rounds = if sent == 0 { idle_rounds + 1 } else { 0 };
        // A second without a free connection: no worker takes a request any more.
        let is_stuck = idle_rounds > 100;
        if is_stuck && connections.first().is_none_or(|first| first.send(Request { client: 0 }).is_err()) {
            return;
        }
        if sent == 0 { thread::sleep(std::time::Duration::from_millis(10)) } else { thread::yield_now() }
    }
}

/// Waits for an answer on a connection whose other end never writes.
fn ask_the_backend() -> u64 {
    match UnixStream::pair() {
        Ok((mut here, there)) => {
            let mut answer = [0; 8];
            rip_snap!("waits for the backend");
            let read = here.read_exact(&mut answer);
            // The other end stays open until the read returns, which never happens.
            drop(there);
            read.map_or(0, |()| u64::from_le_bytes(answer))
        }
        Err(error) => {
            eprintln!("server: could not connect to the backend: {error}");
            stay()
        }
    }
}
