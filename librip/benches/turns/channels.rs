//! Switches a channel of this process's ring, as `read-rip set` does.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::Path;

use librip_format::{ChannelEntry, Header, REGION_CHANNELS, REGIONS_MAX, Region};

/// Sets the least level that a channel records. The channel is the one in this place, in the order of their first
/// events.
///
/// # Errors
///
/// The file cannot be read or written, or the ring has no channels.
pub(crate) fn switch(ring: &Path, channel: u64, level: u32) -> io::Result<()> {
    let file = File::options().read(true).write(true).open(ring)?;
    let mut header = [0; size_of::<Header>()];
    file.read_exact_at(&mut header, 0)?;
    let u32_at = |at: usize| u32::from_ne_bytes(std::array::from_fn(|byte| header[at + byte]));
    let regions = (0..REGIONS_MAX).map(|index| offset_of!(Header, regions) + index * size_of::<Region>());
    let table = regions.into_iter().find(|&region| u32_at(region) == REGION_CHANNELS);
    let offset_at = table.ok_or(io::ErrorKind::NotFound)? + offset_of!(Region, offset);
    // A file offset of a table is below 4 GiB.
    let at = channel * size_of::<ChannelEntry>() as u64 + offset_of!(ChannelEntry, level) as u64;
    file.write_all_at(&level.to_ne_bytes(), u64::from(u32_at(offset_at)) + at)
}
