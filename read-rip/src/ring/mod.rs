//! Rings as bytes: opened, checked, copied. The result is a [`Snapshot`].

mod module;

pub use module::Module;
