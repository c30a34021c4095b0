//! What identifies this process in the ring's header: its start time and the boot.

/// The process's start time, clock ticks since boot: field 22 of `/proc/self/stat`. Field 2, the program's name, may
/// contain anything, so the fields are counted after its end.
pub(crate) fn start_time_ticks() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/stat").ok()?;
    status.rsplit_once(')')?.1.split_whitespace().nth(22 - 3)?.parse().ok()
}

/// The id of this boot of the machine.
pub(crate) fn boot_id() -> Option<[u8; 16]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let number = u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()?;
    Some(number.to_be_bytes())
}
