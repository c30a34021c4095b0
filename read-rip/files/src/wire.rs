//! The messages between this process and its [`helper`](super::helper): requests and answers of fixed length, some with
//! bytes after them, some with a descriptor.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// A message has no more bytes than this after its numbers.
pub(crate) const DATA_MAX_BYTES: usize = 64 << 10;
pub(crate) const NUMBERS: usize = 6;
/// Their length, bytes.
const NUMBERS_BYTES: usize = 8 * NUMBERS;

#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) numbers: [u64; NUMBERS],
    pub(crate) data: Vec<u8>,
    pub(crate) descriptor: Option<OwnedFd>,
}

/// Sends a message.
pub(crate) fn send(
    socket: impl AsFd,
    numbers: [u64; NUMBERS],
    data: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    let parts = [IoSlice::new(&bytes), IoSlice::new(data)];
    retry_on_intr(|| sendmsg(&socket, &parts, &mut ancillary, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Receives a message. At the end of the connection, that is an error.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Message> {
    let mut bytes = vec![0; NUMBERS_BYTES + DATA_MAX_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        match recvmsg(&socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            got => break got?.bytes,
        }
    };
    if got < NUMBERS_BYTES {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let descriptor = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    bytes.truncate(got);
    let data = bytes.split_off(NUMBERS_BYTES);
    let mut numbers = [0; NUMBERS];
    for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks().0) {
        *number = u64::from_le_bytes(*bytes);
    }
    Ok(Message { numbers, data, descriptor })
}
