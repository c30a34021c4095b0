//! Who has the other end of the pipe or unix socket that a thread waits for.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::Instant;

use librip_test_kit::pause;
use librip_test_kit::victim::{DEADLINE, tempdir};
use read_rip_evidence::process::live::LiveTarget;
use read_rip_evidence::target::{CallKind, Descriptor, DescriptorKind, Peer, Sleep};

use crate::support::run::{Ended, read_rip};

/// A program that reads from this end. It ends with the test.
struct Cat(Ended);

impl Cat {
    /// Returns when it waits for input.
    fn reading(input: OwnedFd) -> Cat {
        let mut cat = Command::new("cat");
        cat.stdin(input).stdout(Stdio::null());
        Cat::start(cat)
    }

    /// The same by a command that becomes this program.
    fn start(mut command: Command) -> Cat {
        let cat = Cat(Ended(command.spawn().expect("every system has it")));
        let deadline = Instant::now() + DEADLINE;
        loop {
            let target = LiveTarget::open(cat.0.0.id()).and_then(|live| live.target()).expect("it lives");
            let is_reading = |sleep| matches!(sleep, Some(Sleep::Call(call)) if call.kind == CallKind::Read);
            // Before `exec`, this is a copy of the test.
            if target.name == "cat" && is_reading(target.tasks[0].sleep) {
                return cat;
            }
            assert!(Instant::now() < deadline, "{target:?}");
            librip_test_kit::pause();
        }
    }

    fn input(&self) -> Descriptor {
        let live = LiveTarget::open(self.0.0.id()).expect("it lives");
        live.descriptors().get_with_peers([0, 4711]).remove(0)
    }

    /// Asks for the view of it until that says all of this. As long as a child of another test has a copy of the other
    /// end, the view may name that child.
    fn says(&self, parts: &[&str]) {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let view = read_rip([self.0.0.id().to_string()]).sound().stdout;
            if parts.iter().all(|part| view.contains(part)) {
                return;
            }
            assert!(Instant::now() < deadline, "{view}");
            pause();
        }
    }
}

/// What a view calls a descriptor of this process.
fn this_process(end: &impl AsRawFd) -> String {
    format!("[{}], descriptor {}", std::process::id(), end.as_raw_fd())
}

/// This process, with a descriptor. Children of other tests may have a copy of it for a moment, and higher pids.
fn is_this_end(peers: &[Peer], end: &dyn AsRawFd) -> bool {
    let own = Peer {
        pid: std::process::id(),
        name: std::fs::read_to_string("/proc/self/comm").expect("its name").trim_end().to_owned(),
        descriptor: u32::try_from(end.as_raw_fd()).expect("a descriptor"),
    };
    peers.contains(&own)
}

#[test]
fn a_reader_of_a_pipe_names_who_can_write_to_it() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let cat = Cat::reading(reader.into());
    let input = cat.input();
    let DescriptorKind::Pipe { peers, .. } = &input.kind else { panic!("{input:?}") };
    assert!(is_this_end(peers, &writer), "{input:?}");
    assert!(peers.iter().all(|peer| peer.pid != cat.0.0.id()), "it cannot write: {input:?}");
    cat.says(&["in read on descriptor 0 (pipe to ", &this_process(&writer)]);
    // And the other way round: who can read what this process writes.
    let own = LiveTarget::open(std::process::id()).expect("this process");
    let found = own.descriptors().get_with_peers([u32::try_from(writer.as_raw_fd()).expect("a descriptor")]);
    let DescriptorKind::Pipe { peers, .. } = &found[0].kind else { panic!("{found:?}") };
    let is_cat = |peer: &Peer| (peer.pid, peer.descriptor, &*peer.name) == (cat.0.0.id(), 0, "cat");
    assert!(peers.iter().any(is_cat), "{found:?}");
}

#[test]
fn a_reader_of_a_unix_socket_names_who_has_its_other_end() {
    let (one, other) = UnixStream::pair().expect("sockets");
    let cat = Cat::reading(one.into());
    let input = cat.input();
    let DescriptorKind::Unix { peers, name: None, .. } = &input.kind else { panic!("{input:?}") };
    assert!(is_this_end(peers, &other), "{input:?}");
    cat.says(&["in read on descriptor 0 (unix socket to ", &this_process(&other)]);
}

#[test]
fn a_client_of_a_unix_socket_has_the_name_of_its_server() {
    let directory = tempdir();
    let path = directory.path().join("server");
    let server = UnixListener::bind(&path).expect("a socket");
    let client = UnixStream::connect(&path).expect("a connection");
    let cat = Cat::reading(client.into());
    let waiting = cat.input();
    assert!(
        matches!(&waiting.kind, DescriptorKind::Unix { peers, .. } if peers.is_empty()),
        "nobody has accepted the connection: {waiting:?}"
    );
    let (accepted, _) = server.accept().expect("the client");
    let input = cat.input();
    let DescriptorKind::Unix { peers, name: Some(name), .. } = &input.kind else { panic!("{input:?}") };
    assert_eq!(name, path.to_str().expect("text"));
    assert!(is_this_end(peers, &accepted), "{input:?}");
}

#[test]
fn a_process_that_has_the_other_end_itself_says_so() {
    let (one, other) = UnixStream::pair().expect("sockets");
    let mut shell = Command::new("sh");
    // The shell has both ends, and so does the program that it becomes.
    shell.args(["-c", "exec cat 5<&1 >/dev/null"]).stdin(OwnedFd::from(one)).stdout(OwnedFd::from(other));
    let cat = Cat::start(shell);
    cat.says(&["(unix socket to descriptor 5 of this process)"]);
}
