//! What a saved ring has besides its bytes: what the system knew of its process and its threads, and what the program's
//! files say.
//!
//! It reads and writes JSON. `ring::Saved` takes the file apart; `save` asks the system.

use std::collections::HashSet;

use read_rip_evidence::process::{Liveness, RunControl};
use read_rip_evidence::standing::Standings;
use read_rip_ring::Header;
use read_rip_symbols::Answers;
use serde::{Deserialize, Serialize};

use crate::{Reading, now_ns};

/// The present name of a thread: its process, its id, its name.
pub(crate) type PresentName = (u32, u32, String);

/// What was known of a ring when it was saved.
#[derive(Debug, Deserialize, Serialize)]
pub struct Context {
    /// When it was saved, ns since 1970.
    pub(crate) saved_realtime_ns: u64,
    pub(crate) program: String,
    /// The user that the file belonged to.
    pub(crate) owner: Option<u32>,
    pub(crate) state: Option<State>,
    /// Whether the file that was saved was a copy itself.
    pub(crate) is_copy: bool,
    /// The threads of the living process.
    pub(crate) living: HashSet<u32>,
    /// Its children that had ended.
    pub(crate) ended: HashSet<u32>,
    /// The names of its threads then, where they are not the recorded ones.
    pub(crate) names: Vec<PresentName>,
    /// The moment that the ring describes, ns since boot.
    pub(crate) now_ns: Option<u64>,
    /// If that is not known: when the ring was read, ns since boot. The process was dead by then.
    pub(crate) latest_end_ns: Option<u64>,
    /// If that is not known: when the process was last seen alive, ns since boot.
    #[serde(default)]
    pub(crate) alive_ns: Option<u64>,
    /// The time between the two images, ns.
    pub(crate) window_ns: Option<u64>,
    /// What the kernel and the memory said of the living process between the two images.
    #[serde(default)]
    pub(crate) seen: Option<Standings>,
    /// The same of other processes that record in the ring.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) children: Vec<Standings>,
    /// What the files of the program say about the addresses in the ring.
    pub(crate) answers: Answers,
}

impl Context {
    /// What is known of a ring that was read. `window_ns` is the time between the two images, if there are two.
    pub fn of(reading: Reading, window_ns: Option<u64>) -> Context {
        Context {
            saved_realtime_ns: now_ns(),
            state: reading.liveness.as_ref().map(State::from),
            program: reading.program(),
            owner: reading.snapshot.header.as_ref().map(Header::owner),
            is_copy: reading.is_copy(),
            names: reading.present_names(),
            living: reading.living,
            ended: reading.ended,
            now_ns: reading.now_ns,
            latest_end_ns: reading.latest_end_ns,
            alive_ns: reading.alive_ns,
            window_ns,
            seen: None,
            children: Vec::new(),
            answers: Answers::default(),
        }
    }

    /// The same, with what the kernel and the memory said of the living processes between the two images.
    #[must_use]
    pub fn with_seen(self, seen: Vec<Standings>) -> Context {
        let mut seen = seen.into_iter();
        Context { seen: seen.next(), children: seen.collect(), ..self }
    }

    /// The same, with what the files of the program say about the addresses in the ring.
    #[must_use]
    pub fn with_answers(self, answers: Answers) -> Context {
        Context { answers, ..self }
    }

    /// What the kernel and the memory said of the living processes between the two images.
    pub fn seen(&self) -> impl Iterator<Item = &Standings> {
        self.seen.iter().chain(&self.children)
    }

    /// The same, which is taken out.
    pub(crate) fn take_seen(&mut self) -> impl Iterator<Item = Standings> + use<> {
        self.seen.take().into_iter().chain(std::mem::take(&mut self.children))
    }

    pub(crate) fn parse(bytes: &[u8]) -> serde_json::Result<Context> {
        let context: Context = serde_json::from_slice(bytes)?;
        let is_consistent = context.seen().all(Standings::is_consistent);
        match is_consistent {
            false => Err(serde::de::Error::custom("its threads have no stacks")),
            true => Ok(context),
        }
    }

    /// As a file has it.
    ///
    /// # Errors
    ///
    /// Those of the serializer.
    pub fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }
}

/// A [`Liveness`] as a file has it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Alive { pid: i32 },
    Stopped { pid: i32 },
    Traced { pid: i32, by: i32, name: String, is_stopped: bool },
    Dying { pid: i32 },
    Replaced { pid: i32 },
    Forked { pid: i32 },
    Dead,
    Unknown,
}

impl From<&Liveness> for State {
    fn from(liveness: &Liveness) -> State {
        match liveness.clone() {
            Liveness::Alive { pid, control: RunControl::Free } => State::Alive { pid },
            Liveness::Alive { pid, control: RunControl::Stopped } => State::Stopped { pid },
            Liveness::Alive { pid, control: RunControl::Traced { by, name, is_stopped } } => {
                State::Traced { pid, by, name, is_stopped }
            }
            Liveness::Dying { pid } => State::Dying { pid },
            Liveness::Replaced { pid } => State::Replaced { pid },
            Liveness::Forked { pid } => State::Forked { pid },
            Liveness::Dead => State::Dead,
            Liveness::Unknown { .. } => State::Unknown,
        }
    }
}

impl From<State> for Liveness {
    fn from(state: State) -> Liveness {
        match state {
            State::Alive { pid } => Liveness::Alive { pid, control: RunControl::Free },
            State::Stopped { pid } => Liveness::Alive { pid, control: RunControl::Stopped },
            State::Traced { pid, by, name, is_stopped } => {
                Liveness::Alive { pid, control: RunControl::Traced { by, name, is_stopped } }
            }
            State::Dying { pid } => Liveness::Dying { pid },
            State::Replaced { pid } => Liveness::Replaced { pid },
            State::Forked { pid } => Liveness::Forked { pid },
            State::Dead => Liveness::Dead,
            State::Unknown => Liveness::Unknown { why: "the saved copy does not say it" },
        }
    }
}
