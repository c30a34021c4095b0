//! A stream as packets: each has a header with its exact lengths and times, and then its events.

use std::io::{self, Write};

const MAGIC: u32 = 0xc1fc_1fc1;
/// The number of the only class of streams.
const STREAM_CLASS: u32 = 0;
/// A packet ends with the event that makes it this long.
const PACKET_BYTES: usize = 256 << 10;
/// The lengths of what comes before the events of a packet: a magic number, an identifier and two numbers; six numbers.
const HEAD_BYTES: usize = (4 + 16 + 4 + 8) + 6 * 8;

/// Writes the packets of one stream.
pub(super) struct Packets<'w> {
    out: &'w mut dyn Write,
    uuid: [u8; 16],
    stream: u64,
    /// The number of packets so far.
    packets: u64,
    /// Words that were overwritten, of the threads whose events came so far.
    discarded: u64,
    /// The end of the last packet, ns since boot.
    end_ns: u64,
    /// The first and the last time of the packet that is being filled, ns since boot.
    times_ns: Option<(u64, u64)>,
    events: Vec<u8>,
}

impl<'w> Packets<'w> {
    /// Begins a stream at the time of its first event, with a packet without events. Only so readers know how many
    /// events are missing in the packet after it.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub(super) fn begin(
        out: &'w mut dyn Write,
        uuid: [u8; 16],
        stream: u64,
        begin_ns: u64,
    ) -> io::Result<Packets<'w>> {
        let mut packets = Packets {
            out,
            uuid,
            stream,
            packets: 0,
            discarded: 0,
            end_ns: begin_ns,
            times_ns: Some((begin_ns, begin_ns)),
            events: Vec::new(),
        };
        packets.end_packet()?;
        Ok(packets)
    }

    /// Adds an event, whose time is not before that of the last one. `discarded` is how many words are missing before
    /// it.
    pub(super) fn event(&mut self, at_ns: u64, event: &[u8], discarded: u64) -> io::Result<()> {
        let begin_ns = self.times_ns.map_or(at_ns, |(begin_ns, _)| begin_ns);
        self.times_ns = Some((begin_ns, at_ns));
        self.discarded = self.discarded.saturating_add(discarded);
        self.events.extend_from_slice(event);
        if self.events.len() >= PACKET_BYTES { self.end_packet() } else { Ok(()) }
    }

    /// Ends the stream.
    pub(super) fn end(mut self) -> io::Result<()> {
        if self.events.is_empty() { Ok(()) } else { self.end_packet() }
    }

    fn end_packet(&mut self) -> io::Result<()> {
        let (begin_ns, end_ns) = self.times_ns.take().unwrap_or((self.end_ns, self.end_ns));
        let bits = 8 * (HEAD_BYTES + self.events.len()) as u64;
        let mut head = Vec::with_capacity(HEAD_BYTES);
        head.extend_from_slice(&MAGIC.to_le_bytes());
        head.extend_from_slice(&self.uuid);
        head.extend_from_slice(&STREAM_CLASS.to_le_bytes());
        for number in [self.stream, begin_ns, end_ns, bits, bits, self.packets, self.discarded] {
            head.extend_from_slice(&number.to_le_bytes());
        }
        self.out.write_all(&head)?;
        self.out.write_all(&self.events)?;
        self.events.clear();
        (self.packets, self.end_ns) = (self.packets + 1, end_ns);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(bytes: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
    }

    #[test]
    fn packets_say_their_lengths_times_and_losses() {
        let mut out = Vec::new();
        let mut packets = Packets::begin(&mut out, [7; 16], 3, 10).unwrap();
        packets.event(10, &[1; PACKET_BYTES], 5).unwrap();
        packets.event(11, b"ab", 0).unwrap();
        packets.event(12, b"c", 1).unwrap();
        packets.end().unwrap();
        let mut at = 0;
        let mut seen = Vec::new();
        while at < out.len() {
            assert_eq!(out[at..at + 4], MAGIC.to_le_bytes());
            assert_eq!((number(&out, at + 24), number(&out, at + 48)), (3, number(&out, at + 56)));
            let [begin, end, bits, _, sequence, discarded] =
                std::array::from_fn(|field| number(&out, at + 32 + 8 * field));
            seen.push((begin, end, sequence, discarded));
            at += (bits / 8) as usize;
        }
        assert_eq!(at, out.len());
        assert_eq!(seen, [(10, 10, 0, 0), (10, 10, 1, 5), (11, 12, 2, 6)]);
        assert_eq!(out.len(), 3 * HEAD_BYTES + PACKET_BYTES + 3);
    }
}
