//! `tokio::sync::mpsc` with waits that are recorded: a receiver that waits for a message, and a sender that waits for
//! room, or for the end of the receiver.
//!
//! A message that is there, and room that is there, record nothing. Nobody holds a channel, and the ring does not know
//! who will send or receive. So `read-rip` shows who waits, and proves no deadlock of that.
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
mod receiver;
mod unbounded;

pub use bounded::{OwnedPermit, Receiver, Sender, WeakSender, channel};
pub use tokio::sync::mpsc::{Permit, PermitIterator, error};
pub use unbounded::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender, unbounded_channel};
