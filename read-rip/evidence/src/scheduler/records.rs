//! Bytes of a processor's buffer become records. The kernel describes them in `include/uapi/linux/perf_event.h`.
//!
//! It knows nothing of processes. Records that it does not know are passed over.

use super::tracepoint::Waking;

const HEAD_LEN: usize = 8;
/// Process and thread, time, and processor: what each record ends with, and each sample begins with.
const IDENTITY_LEN: usize = 24;
const LOST: u32 = 2;
const EXIT: u32 = 4;
const SAMPLE: u32 = 9;
const SWITCH_CPU_WIDE: u32 = 15;
const SWITCH_OUT: u16 = 1 << 13;
const SWITCH_OUT_PREEMPT: u16 = 1 << 14;
/// Flags of a tracepoint: a handler of an interrupt, or what it has left for later.
const IN_INTERRUPT: u8 = 0x08 | 0x10;
/// Where the flags of a tracepoint are in what it says, bytes.
const FLAGS_AT: usize = 2;

/// A process and a thread, as this reader's PID namespace numbers them. The idle one has no number, nor has a thread
/// that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ids {
    pub(super) pid: u32,
    pub(super) tid: u32,
}

/// Something that a processor did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// ns since boot, as this reader has it.
    pub(super) at_ns: u64,
    /// Who had the processor, gets it or leaves it.
    pub(super) who: Ids,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// It gets the processor.
    In,
    /// It leaves it.
    Out { could_go_on: bool },
    /// It ends, and leaves the processor soon.
    Exit,
    /// It woke a thread, or an interrupt did that it was interrupted by.
    Woke { tid: u32, is_by_interrupt: bool },
    /// So many records had no room.
    Lost(u64),
}

/// The records of a buffer. `ahead_ns` is what their times lack.
pub(super) fn records(mut bytes: &[u8], waking: Option<&Waking>, ahead_ns: i64) -> Vec<Record> {
    let mut records = Vec::new();
    while let Some((kind, flags, len)) = head(bytes)
        && let Some(body) = bytes.get(HEAD_LEN..len)
    {
        records.extend(record(kind, flags, body, waking, ahead_ns));
        bytes = &bytes[len..];
    }
    records
}

fn head(bytes: &[u8]) -> Option<(u32, u16, usize)> {
    let flags = u16::from_ne_bytes(array(bytes, 4)?);
    let len = u16::from_ne_bytes(array(bytes, 6)?);
    Some((u32_at(bytes, 0)?, flags, usize::from(len)))
}

fn record(kind: u32, flags: u16, body: &[u8], waking: Option<&Waking>, ahead_ns: i64) -> Option<Record> {
    let identity_at = if kind == SAMPLE { 0 } else { body.len().checked_sub(IDENTITY_LEN)? };
    let identity = body.get(identity_at..)?;
    let at_ns = u64_at(identity, 8)?.saturating_add_signed(ahead_ns);
    let mut who = ids(u32_at(identity, 0)?, u32_at(identity, 4)?);
    let what = match kind {
        SWITCH_CPU_WIDE if flags & SWITCH_OUT == 0 => What::In,
        SWITCH_CPU_WIDE => What::Out { could_go_on: flags & SWITCH_OUT_PREEMPT != 0 },
        EXIT => {
            who = ids(u32_at(body, 0)?, u32_at(body, 8)?);
            What::Exit
        }
        LOST => What::Lost(u64_at(body, 8)?),
        SAMPLE => {
            // After the length of what the tracepoint says.
            let said = body.get(IDENTITY_LEN + 4..)?;
            let is_by_interrupt = said.get(FLAGS_AT)? & IN_INTERRUPT != 0;
            What::Woke { tid: u32_at(said, waking?.thread_at)?, is_by_interrupt }
        }
        _ => return None,
    };
    Some(Record { at_ns, who, what })
}

/// The kernel has 0 for a thread that this reader's namespace does not have, and -1 for one that has ended: a thread
/// that is no leader has no ids any more when it leaves its processor for the last time.
fn ids(pid: u32, tid: u32) -> Ids {
    if pid == u32::MAX || tid == u32::MAX { Ids::default() } else { Ids { pid, tid } }
}

fn array<const LEN: usize>(bytes: &[u8], at: usize) -> Option<[u8; LEN]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_ne_bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const WAKING: Waking = Waking { id: 375, thread_at: 24 };

    fn bytes(kind: u32, flags: u16, body: &[u8]) -> Vec<u8> {
        let len = (HEAD_LEN + body.len()) as u16;
        [&kind.to_ne_bytes()[..], &flags.to_ne_bytes(), &len.to_ne_bytes(), body].concat()
    }

    fn identity(pid: u32, tid: u32, at_ns: u64) -> Vec<u8> {
        [&pid.to_ne_bytes()[..], &tid.to_ne_bytes(), &at_ns.to_ne_bytes(), &[1, 0, 0, 0], &[0; 4]].concat()
    }

    fn switch(flags: u16, tid: u32, at_ns: u64) -> Vec<u8> {
        bytes(SWITCH_CPU_WIDE, flags, &[&[0xee; 8][..], &identity(40, tid, at_ns)].concat())
    }

    /// A wake-up as Linux 6.18 writes it: by thread 41 of process 40, of thread 15.
    fn woke(flags: u8) -> Vec<u8> {
        let mut said = vec![0x77, 0x01, flags, 4, 0, 0, 0, 0];
        said.extend(b"rcu_preempt\0\0\0\0\0");
        said.extend([15, 0, 0, 0, 120, 0, 0, 0, 1, 0, 0, 0]);
        let len = said.len() as u32;
        bytes(SAMPLE, 1, &[&identity(40, 41, 500)[..], &len.to_ne_bytes(), &said].concat())
    }

    fn record(tid: u32, at_ns: u64, what: What) -> Record {
        Record { at_ns, who: Ids { pid: 40, tid }, what }
    }

    #[test]
    fn each_kind_of_record_becomes_a_value() {
        let end = [40u32, 1, 43, 1].map(u32::to_ne_bytes).concat();
        let end = bytes(EXIT, 0, &[&end[..], &[0; 8], &identity(40, 43, 700)].concat());
        let gap = bytes(LOST, 0, &[&[9; 8][..], &77u64.to_ne_bytes(), &identity(40, 41, 800)].concat());
        let unknown = bytes(99, 0, &identity(40, 41, 1));
        let all = [
            switch(0, 41, 100),
            switch(SWITCH_OUT, 41, 200),
            unknown,
            switch(SWITCH_OUT | SWITCH_OUT_PREEMPT, 42, 300),
            woke(1),
            woke(0x09),
            woke(0x11),
            end,
            gap,
        ];
        let woken = |is_by_interrupt| What::Woke { tid: 15, is_by_interrupt };
        let expected = [
            record(41, 110, What::In),
            record(41, 210, What::Out { could_go_on: false }),
            record(42, 310, What::Out { could_go_on: true }),
            record(41, 510, woken(false)),
            record(41, 510, woken(true)),
            record(41, 510, woken(true)),
            record(43, 710, What::Exit),
            record(41, 810, What::Lost(77)),
        ];
        assert_eq!(records(&all.concat(), Some(&WAKING), 10), expected);
    }

    #[test]
    fn who_has_no_number_here_is_nobody_and_a_cut_record_is_none() {
        let gone = bytes(SWITCH_CPU_WIDE, 0, &[&[0; 8][..], &identity(u32::MAX, u32::MAX, 1)].concat());
        assert_eq!(records(&gone, None, 0)[0].who, Ids::default());
        let whole = [switch(0, 41, 100), woke(0)].concat();
        for cut in 0..whole.len() {
            assert!(records(&whole[..cut], Some(&WAKING), 0).len() < 2, "{cut}");
        }
        assert_eq!(records(&[0; 64], Some(&WAKING), 0), [], "a record has a length");
    }
}
