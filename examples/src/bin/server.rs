//! Trouble: twenty thousand threads wait at one lock, whose holder waits for a backend that never answers.
//!
//! A session server with a thread for each connection. It serves until every thread has served; then its
//! janitor locks the session cache and asks a backend which sessions to expire. No answer comes. Each thread
//! gets one more request and stays at the lock.
//!
//! `read-rip` shows the pile-up in one line, `lock : 20000 threads, ...`; `read-rip check` says who has the lock they
//! wait for: the janitor, whose last mark is "waits for the backend".
//!
//! ```text
//! server [--threads N]          default 20000
//! ```
//!
//! It prints `serving: N threads, pid P, ring PATH`, then `stuck: all workers wait`, and stays until killed.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use librip::{rip_progress, rip_snap};
use librip_examples::arrivals::Arrivals;
use librip_examples::pace::Pace;
use librip_examples::sessions::Sessions;
use librip_examples::{many_threads, say, start, stay};

const THREADS_DEFAULT: usize = 20_000;
/// What a worker's stack may take. Little of it is ever touched.
const STACK_LEN_BYTES: usize = 64 << 10;
/// Clients of a connection; each has a session.
const CLIENTS_A_CONNECTION: u64 = 4;
/// How many threads to give back when a limit was met.
const THREADS_SPARED: usize = 16;
const LIMITS: &str = "kernel.threads-max, kernel.pid_max, vm.max_map_count, pids cgroup";

/// What a connection asks for.
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
    let (connections, doors) = connections(threads);
    let started = connections.len();
    if started == 0 {
        eprintln!("server: no thread could be started");
        return ExitCode::FAILURE;
    }

    // Only now is their number known, on which the workers' handshakes depend.
    let sessions = Arc::new(Sessions::new(Arrivals::new(started)));
    sessions.name_locks();
    let served = Arc::new(Arrivals::new(started));
    for door in doors {
        // A worker is always there to take its things.
        let _ = door.send((Arc::clone(&sessions), Arc::clone(&served)));
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
    // While the janitor has the lock, nobody who waits for it leaves: then all of them waiting is for good.
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

type Equipment = (Arc<Sessions>, Arc<Arrivals>);

/// Starts workers, as many as the system allows: how to send each a request, and how to let it begin.
fn connections(threads: usize) -> (Vec<SyncSender<Request>>, Vec<SyncSender<Equipment>>) {
    let mut connections = Vec::with_capacity(threads);
    let mut doors = Vec::with_capacity(threads);
    for number in 0..threads {
        // One request in the mailbox: the load generator has passed every worker before it blocks.
        let (connection, requests) = sync_channel(1);
        let (door, equipment) = sync_channel(1);
        let worker = move || work(&requests, &equipment);
        let builder = thread::Builder::new().name(format!("worker {number}")).stack_size(STACK_LEN_BYTES);
        if let Err(error) = builder.spawn(worker) {
            say(format_args!("only {number} of {threads} threads could be started: {error}; see {LIMITS}"));
            // The load generator and the janitor need threads as well, and the allocator some room.
            connections.truncate(number.saturating_sub(THREADS_SPARED));
            doors.truncate(connections.len());
            break;
        }
        connections.push(connection);
        doors.push(door);
    }
    (connections, doors)
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) {
    if let Err(error) = thread::Builder::new().name(name.into()).stack_size(STACK_LEN_BYTES).spawn(body) {
        eprintln!("server: no thread for the {name}: {error}; see {LIMITS}");
        std::process::exit(1);
    }
}

/// A worker: one connection, until it closes.
fn work(requests: &Receiver<Request>, equipment: &Receiver<Equipment>) {
    let Ok((sessions, served)) = equipment.recv() else { return };
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
    // The answer: a little work outside of any lock, and a look at the statistics now and then.
    let mut pace = Pace::new(token);
    let answer = (0..32).fold(token, |answer, _| answer.wrapping_add(pace.below(1 << 32)));
    if answer.is_multiple_of(100) { answer ^ sessions.statistics().lookups } else { answer }
}

/// The load generator: a request to each connection in turn. Blocks when a worker has not taken its last one.
fn send_requests(connections: &[SyncSender<Request>]) {
    let mut pace = Pace::new(2024);
    loop {
        for (number, connection) in connections.iter().enumerate() {
            let client = number as u64 * CLIENTS_A_CONNECTION + pace.below(CLIENTS_A_CONNECTION);
            if connection.send(Request { client }).is_err() {
                return;
            }
        }
        rip_snap!("has sent a round of requests");
    }
}

/// Waits for a line of an answer, over a connection on which nobody speaks.
fn ask_the_backend() -> u64 {
    match UnixStream::pair() {
        Ok((mut here, there)) => {
            let mut answer = [0; 8];
            rip_snap!("waits for the backend");
            let read = here.read_exact(&mut answer);
            // Its other end stays open until then, which is never.
            drop(there);
            read.map_or(0, |()| u64::from_le_bytes(answer))
        }
        Err(error) => {
            eprintln!("server: no connection to the backend: {error}");
            stay()
        }
    }
}
