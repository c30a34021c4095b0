//! What waits in the connections of a process until the process reads or accepts it.

use read_rip_evidence::target::{ConnectedWith, Connections};
use serde::Serialize;

use crate::units::{agree, counted};

/// Connections that came in where nobody listens any more: what a server waits for that is shutting down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FormerClients {
    /// Where they came in: an address and a port.
    pub at: String,
    /// How many there are.
    pub count: usize,
}

impl FormerClients {
    /// The largest group among the connections of a process, which are sorted. A process that serves at another port
    /// may accept a single connection at a port that it has for it alone, as servers of FTP do.
    pub(super) fn of(connections: &[Connections]) -> Option<FormerClients> {
        let serves = connections.iter().any(|of| matches!(of.with, ConnectedWith::Clients(_)));
        connections.iter().find_map(|of| match of.with {
            ConnectedWith::FormerClients(at) if of.count > 1 || !serves => {
                Some(FormerClients { at: at.to_string(), count: of.count })
            }
            _ => None,
        })
    }
}

/// What waits in the connections of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unserved {
    /// How many connections the process has not accepted.
    pub not_accepted: usize,
    /// How many connections have data that the process has not read.
    pub unread: usize,
}

impl Unserved {
    /// That of a process with these connections.
    pub(super) fn of(connections: &[Connections]) -> Unserved {
        let sum = |of: fn(&Connections) -> usize| connections.iter().map(of).fold(0, usize::saturating_add);
        Unserved { not_accepted: sum(|with| with.not_accepted), unread: sum(|with| with.unread) }
    }

    /// How many connections that are.
    pub fn count(&self) -> usize {
        self.not_accepted.saturating_add(self.unread)
    }

    /// The same as a sentence.
    pub(crate) fn words(&self) -> String {
        let parts = [
            (
                self.not_accepted,
                ["waits until the process accepts it", "wait until the process accepts them"],
            ),
            (
                self.unread,
                ["has data that the process has not read", "have data that the process has not read"],
            ),
        ];
        let some = parts.into_iter().filter(|&(count, _)| count > 0);
        let say = |(count, [one, several]): (usize, [&'static str; 2])| {
            format!("{} {}", counted(count as u64, "connection"), agree(count, one, several))
        };
        some.map(say).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_counts_where_the_process_serves_at_no_other_port() {
        let at = |text: &str| text.parse().expect("an address");
        let of = |with: ConnectedWith, count: usize| Connections {
            with,
            count,
            unread: 0,
            unconfirmed: 0,
            closed_by_peer: 0,
            not_accepted: 0,
        };
        let former = |count: usize| of(ConnectedWith::FormerClients(at("10.0.0.1:8080")), count);
        let database = of(ConnectedWith::Server(at("10.0.0.9:5432")), 3);
        let data_of_ftp = of(ConnectedWith::Clients(at("10.0.0.1:21")), 0);
        let count = |all: &[Connections]| FormerClients::of(all).map(|of| of.count);
        assert_eq!(count(&[database.clone(), former(1)]), Some(1));
        assert_eq!(count(&[former(1), data_of_ftp.clone()]), None);
        assert_eq!(count(&[former(2), data_of_ftp]), Some(2));
        assert_eq!(count(&[database]), None);
    }
}
