//! The ids, the user and the tracer of a process or a thread.

use super::folder::{Failure, Folder};
use super::text::{self, Status};

/// `status` of a process or a thread.
pub(super) fn status_of(folder: &Folder) -> Result<Status, Failure> {
    text::status(&folder.read("status")?).ok_or(Failure::Gone)
}
