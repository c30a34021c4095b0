//! How many threads of the machine run or are ready to.

use std::fs;

/// The number of threads of all processes that run or are ready to, at this moment; `None` if `/proc` does not say.
pub fn ready_threads() -> Option<u64> {
    ready(&fs::read_to_string("/proc/loadavg").ok()?)
}

/// The fourth field of `/proc/loadavg` is `READY/ALL`.
fn ready(text: &str) -> Option<u64> {
    text.split_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_ready_threads_is_in_loadavg() {
        assert_eq!(ready("0.50 1.20 3.00 17/2345 99999\n"), Some(17));
        assert_eq!([ready(""), ready("0.50 1.20 3.00"), ready("1 2 3 4")], [None; 3]);
        assert!(ready_threads().is_some_and(|ready| ready > 0), "this thread runs");
    }
}
