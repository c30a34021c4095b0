//! The live screen without a terminal: what is shown, what keys do to it, and how it looks.
//!
//! Data flows one way: `app::top` reads a process and makes a [`Picture`], [`State`] keeps the pictures of the last
//! minutes and what the user has chosen, and [`draw`] makes a frame of it. Nothing here does input or output.

mod draw;
mod spark;
mod state;
mod table;
mod update;

pub use draw::{Colours, draw};
pub use state::{Detail, Input, Order, Request, State, Tab};
pub use update::{LockUpdate, Update};
