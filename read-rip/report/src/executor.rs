//! A process whose async tasks nobody recorded, as text: what its workers do now, and with whom it is connected.

use read_rip_evidence::target::{ConnectedWith, Connections, RunState};
use read_rip_model::findings::executor;
use read_rip_model::locations::LocationId;

use super::activity::ActivityWords;
use super::names::LockNames;
use super::standing::standings;
use super::units::{agree, counted};

/// So many places of workers, and so many peers, are shown.
const WORKERS_MAX: usize = 6;
const PEERS_MAX: usize = 6;

/// What its workers do and with whom it is connected, as lines. Nothing of a process that has recorded tasks, or has no
/// executor.
pub(super) fn executor_lines(names: &LockNames<'_>) -> Vec<String> {
    if names.model.has_tasks() {
        return Vec::new();
    }
    let mut lines = workers(names);
    if !lines.is_empty() {
        lines.extend(connections(names));
    }
    lines
}

/// Where the threads are that poll tasks, and what they do there.
fn workers(names: &LockNames<'_>) -> Vec<String> {
    let Some(words) = ActivityWords::new(names) else { return Vec::new() };
    let is_worker = |&(_, thread): &(_, &_)| executor(thread).is_some();
    let workers = names.model.present().filter(is_worker).filter_map(|(_, thread)| thread.seen);
    let workers = workers
        .filter(|seen| seen.process == 0 && words.seen.target.tasks[seen.index].state != RunState::Dead);
    let mut places: Vec<(usize, Option<LocationId>)> = workers.map(|seen| (seen.index, seen.place)).collect();
    places.sort_unstable_by_key(|&(thread, _)| thread);
    if places.is_empty() {
        return Vec::new();
    }
    let threads: Vec<usize> = places.iter().map(|&(thread, _)| thread).collect();
    let place = |thread: usize| {
        let at = places.binary_search_by_key(&thread, |&(thread, _)| thread).ok()?;
        places[at].1
    };
    let mut text = Vec::new();
    if standings(&mut text, &words, &threads, place).is_err() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let all: Vec<&str> = text.lines().collect();
    let mut lines = vec![format!("{} of async tasks:", counted(threads.len() as u64, "worker"))];
    lines.extend(all.iter().take(WORKERS_MAX).map(|line| format!("  {line}")));
    if all.len() > WORKERS_MAX {
        lines.push(format!("  and at {}", counted((all.len() - WORKERS_MAX) as u64, "more place")));
    }
    lines
}

/// A line for each peer, those with which something waits first.
fn connections(names: &LockNames<'_>) -> Vec<String> {
    let Some(seen) = names.seen.map(|seen| seen.standings) else { return Vec::new() };
    let mut all: Vec<&Connections> =
        seen.connections.iter().filter(|with| with.count + with.not_accepted > 0).collect();
    all.sort_by_key(|with| std::cmp::Reverse(with.unread + with.unconfirmed + with.not_accepted));
    let mut lines: Vec<String> = all.iter().take(PEERS_MAX).map(|with| connection(with)).collect();
    let more: usize = all.iter().skip(PEERS_MAX).map(|with| with.count).sum();
    if more > 0 {
        lines.push(counted(more as u64, "more connection"));
    }
    lines
}

/// `3 connections to 10.0.0.9:5432: 1 with data that the process has not read`.
fn connection(of: &Connections) -> String {
    let who = match of.with {
        ConnectedWith::Clients(local) => format!("of clients at {local}"),
        ConnectedWith::FormerClients(local) => {
            format!("of clients at {local}, where nobody listens any more")
        }
        ConnectedWith::Server(peer) => format!("to {peer}"),
    };
    let parts = [
        (of.unread, "with data that the process has not read"),
        (of.unconfirmed, "with data that the peer has not confirmed"),
        (of.closed_by_peer, "closed by the peer alone"),
    ];
    let some = parts.into_iter().filter(|&(count, _)| count > 0);
    let mut parts: Vec<String> = some.map(|(count, what)| format!("{count} {what}")).collect();
    if of.not_accepted > 0 {
        let wait = agree(of.not_accepted, "waits", "wait");
        parts.push(format!("{} more {wait} until the process accepts", of.not_accepted));
    }
    let parts = match parts.is_empty() {
        true => String::new(),
        false => format!(": {}", parts.join(", ")),
    };
    format!("{} {who}{parts}", counted(of.count as u64, "connection"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_in_connections_is_said() {
        let of = |count, unread, unconfirmed, closed_by_peer, not_accepted| Connections {
            with: ConnectedWith::Clients("127.0.0.1:80".parse().unwrap()),
            count,
            unread,
            unconfirmed,
            closed_by_peer,
            not_accepted,
        };
        assert_eq!(connection(&of(1, 0, 0, 0, 0)), "1 connection of clients at 127.0.0.1:80");
        assert_eq!(
            connection(&of(3, 2, 1, 1, 4)),
            "3 connections of clients at 127.0.0.1:80: 2 with data that the process has not read, 1 with data that \
             the peer has not confirmed, 1 closed by the peer alone, 4 more wait until the process accepts"
        );
        let of =
            Connections { with: ConnectedWith::Server("[::1]:5432".parse().unwrap()), ..of(2, 0, 0, 0, 0) };
        assert_eq!(connection(&of), "2 connections to [::1]:5432");
    }
}
