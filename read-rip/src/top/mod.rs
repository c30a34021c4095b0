//! The live screen without a terminal: what is shown, what keys do to it, and how it looks.
//!
//! Data flows one way: `app::top` reads a process and makes a [`Picture`], [`State`] keeps the pictures of the last
//! minutes and what the user has chosen, and [`draw`] makes a frame of it. Nothing here does input or output.

mod draw;
mod pulse;
mod state;
mod table;

pub use draw::{Colours, draw};
pub use pulse::{Beat, Pulse};
pub use state::{Input, Order, Page, Request, State, View};
