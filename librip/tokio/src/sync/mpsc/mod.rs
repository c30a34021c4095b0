//! `tokio::sync::mpsc` with waits that are recorded: a receiver that waits for a message, and a sender that waits for
//! room, or for the end of the receiver.
//!
//! A message that is there, and room that is there, record nothing. A wait records who uses the other side, if that has
//! one end that only one task or thread has used. Where an end is that nobody has used yet is not known, so a cycle
//! through a channel is never a proven deadlock.
//!
//! ```
//! use librip_tokio::sync::mpsc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let (sender, mut receiver) = mpsc::channel(1);
//! librip_tokio::spawn(async move { sender.send(7).await });
//! assert_eq!(receiver.recv().await, Some(7));
//! # }
//! ```

mod bounded;
mod permit;
mod receiver;
mod unbounded;

pub use bounded::{Receiver, Sender, WeakSender, channel};
pub use permit::{OwnedPermit, Permit, PermitIterator};
pub use tokio::sync::mpsc::error;
pub use unbounded::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender, unbounded_channel};
