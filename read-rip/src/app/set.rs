//! `read-rip set`: shows the channels of a living process, and switches them. It is the only command that writes to a
//! ring, and it writes nothing but levels.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use read_rip_case::Reading;
use read_rip_report::channel_level;
use read_rip_report::printable;
use read_rip_ring::{Channel, ChannelLevel, FileId};

use super::error::AppError;
use super::log::{channel, read};
use super::output::{output, remark};
use super::remarks;
use crate::cli::{Common, SetArgs};

/// `read-rip set`.
pub(super) fn set(args: &SetArgs, common: &Common) -> Result<u8, AppError> {
    let subject = super::rings::choose(&args.ring_args(), common)?;
    let reading = read(&subject, &common.options())?;
    let path = reading.path.clone();
    let changes =
        args.settings.iter().map(|setting| Ok((channel(&reading, &setting.channel)?, setting.level)));
    let changes: Vec<(&Channel, ChannelLevel)> = changes.collect::<Result<_, AppError>>()?;
    if !changes.is_empty() {
        if reading.is_final() {
            return Err(AppError::NotLiving { path });
        }
        write(&reading, &path, &changes).map_err(|source| AppError::Set { path: path.clone(), source })?;
    }
    let mut out = output(common);
    for process in reading.processes(&reading.threads(), "") {
        writeln!(out, "{}", process.heading)?;
    }
    for channel in reading.snapshot.channels.iter().flatten() {
        let changed = changes.iter().rev().find(|(changed, _)| changed.level_at == channel.level_at);
        let now = channel_level(changed.map_or(channel.level, |&(_, level)| level));
        let was = channel_level(channel.level);
        let before = if now == was { String::new() } else { format!(" (before: {was})") };
        writeln!(out, "  {}: {now}{before}", printable(&channel.name))?;
    }
    out.flush()?;
    drop(out);
    if reading.snapshot.channels.iter().flatten().next().is_none() {
        remark(
            "The record has no channels: rip_channel! declares them, and a channel is known from its first event on.",
        );
    }
    remarks::report_defects(&reading, common)
}

/// Writes the levels to the very file that was read.
fn write(reading: &Reading, path: &Path, changes: &[(&Channel, ChannelLevel)]) -> std::io::Result<()> {
    let file = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path)?;
    let metadata = file.metadata()?;
    let id = FileId { device: metadata.dev(), inode: metadata.ino() };
    if reading.snapshot.header.as_ref().is_none_or(|header| header.file != id) {
        return Err(std::io::Error::other("the path leads to another ring now"));
    }
    changes
        .iter()
        .try_for_each(|(channel, level)| file.write_all_at(&level.raw().to_le_bytes(), channel.level_at))
}
