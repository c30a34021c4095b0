//! Peers: who uses the other side of a channel at which somebody is about to block.
//!
//! Nobody holds a channel. But only a sender sends a message, and only a receiver makes room. An event of the kind
//! [`KIND_CHANNEL_PEER`](crate::KIND_CHANNEL_PEER), recorded before the `WAIT` at the channel, says what is known of
//! the other side at that moment:
//!
//! ```text
//!  47 46 45       32 31                             0
//! +--+--+-----------+--------------------------------+   R: the other side receives
//! |R |P | ends      | user                           |   P: the user is presumed
//! +--+--+-----------+--------------------------------+
//! ```
//!
//! It is what was known at that moment. Each use of the other side ends a wait, the first one at the channel. So while
//! somebody waits there alone, nobody has used the other side since.
//!
//! Who will send the answer to a request has not used the sender before. It is presumed to be who alone receives what
//! the waiting thread or task has sent since it made the channel for the answer.

/// Of a peer: the other side receives. Without it, the other side sends.
pub const PEER_RECEIVES: u64 = 1 << 47;
/// Of a peer: nobody has used that side. The user is who alone receives what the waiting thread or task has sent since
/// it made the channel, up to the poll in which the wait began.
pub const PEER_PRESUMED: u64 = 1 << 46;
/// Of a peer: the first of the 14 bits that say how many ends the other side has.
pub const PEER_ENDS_SHIFT: u32 = 32;
/// Of a peer: the most ends that it can tell.
pub const PEER_ENDS_MAX: u64 = (1 << (46 - PEER_ENDS_SHIFT)) - 1;

/// Packs a peer. `user` is the id of the thread or task that alone has used the only end, as in
/// [`SlotHeader::tid`](crate::SlotHeader::tid), or is presumed to have it; 0 if there are several ends or users, or
/// none is known.
pub const fn pack_peer(user: u32, ends: u64, receives: bool, is_presumed: bool) -> u64 {
    let ends = if ends > PEER_ENDS_MAX { PEER_ENDS_MAX } else { ends };
    let receives = if receives { PEER_RECEIVES } else { 0 };
    let presumed = if is_presumed { PEER_PRESUMED } else { 0 };
    user as u64 | ends << PEER_ENDS_SHIFT | receives | presumed
}

/// Returns the user of a peer.
pub const fn peer_user(peer: u64) -> u32 {
    peer as u32
}

/// Returns how many ends the other side has.
pub const fn peer_ends(peer: u64) -> u64 {
    peer >> PEER_ENDS_SHIFT & PEER_ENDS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PAYLOAD_MASK;

    #[test]
    fn a_peer_fits_an_operand_and_is_unpacked_as_it_was_packed() {
        for (user, ends, receives) in [(u32::MAX, 1, true), (0, PEER_ENDS_MAX, false), (7, 0, true)] {
            for is_presumed in [false, true] {
                let packed = pack_peer(user, ends, receives, is_presumed);
                assert_eq!((peer_user(packed), peer_ends(packed)), (user, ends));
                assert_eq!((packed & PEER_RECEIVES != 0, packed & !PAYLOAD_MASK), (receives, 0));
                assert_eq!(packed & PEER_PRESUMED != 0, is_presumed);
            }
        }
        assert_eq!(peer_ends(pack_peer(1, u64::MAX, false, false)), PEER_ENDS_MAX);
    }
}
