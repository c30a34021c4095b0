//! PCs become functions and lines.
