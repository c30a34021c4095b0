//! Small formats: counts, ages and lengths of time. It escapes nothing: its texts are numbers and fixed words.

/// A number of things: `1 thread`, `2 threads`.
pub fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// The word that agrees with a number of things.
pub fn agree<'a>(count: usize, one: &'a str, several: &'a str) -> &'a str {
    if count == 1 { one } else { several }
}

/// `2 threads`, `2 tasks`, or `1 task and 1 thread`.
pub fn threads_and_tasks(threads: u64, tasks: u64) -> String {
    match (tasks, threads) {
        (0, _) => counted(threads, "thread"),
        (_, 0) => counted(tasks, "task"),
        _ => format!("{} and {}", counted(tasks, "task"), counted(threads, "thread")),
    }
}

/// A number in at most five characters: `9999`, `12.3k`, `250k`, `2.5M`. Digits that do not fit are left out.
pub fn amount(count: u64) -> String {
    if count < 10_000 {
        return count.to_string();
    }
    let power = count.ilog10() / 3;
    let unit = ["", "k", "M", "G", "T", "P", "E"][power as usize];
    let one = 1000_u64.pow(power);
    match count / one {
        whole @ 0..100 => format!("{whole}.{}{unit}", count / (one / 10) % 10),
        whole => format!("{whole}{unit}"),
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A duration for people: the two largest units.
pub fn age(duration_ns: u64) -> String {
    let seconds = duration_ns / 1_000_000_000;
    match seconds {
        0 => format!("{} ms", duration_ns / 1_000_000),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// A lower bound of fewer ns says nothing: nobody records when a process was killed, and its last recorded moment may
/// be microseconds after a wait of hours began.
const BOUND_MIN_NS: u64 = 1_000_000;

/// A length of time that says something; `None` if it is not known.
pub fn notable(is_lower_bound: bool, length_ns: Option<u64>) -> Option<u64> {
    length_ns.filter(|&length_ns| length_ns >= if is_lower_bound { BOUND_MIN_NS } else { 1 })
}

/// `for 3 ms`, or `for at least 3 ms`; nothing if the length is not known.
pub fn lasted(is_lower_bound: bool, length_ns: Option<u64>) -> Option<String> {
    let at_least = if is_lower_bound { "at least " } else { "" };
    Some(format!("for {at_least}{}", duration(notable(is_lower_bound, length_ns)?)))
}

/// `for at least 3 ms`, or `for an unknown time` if nothing is known of the length.
pub fn lasted_at_least(length_ns: Option<u64>) -> String {
    lasted(true, length_ns).unwrap_or_else(|| "for an unknown time".to_owned())
}

/// A length of time for people, down to nanoseconds: two or three digits and a unit.
pub fn duration(duration_ns: u64) -> String {
    let in_units = |unit_ns: u64, unit: &str| {
        let tenths = duration_ns / (unit_ns / 10);
        if tenths < 1000 {
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        } else {
            format!("{} {unit}", tenths / 10)
        }
    };
    match duration_ns {
        0..1_000 => format!("{duration_ns} ns"),
        1_000..1_000_000 => in_units(1_000, "us"),
        1_000_000..1_000_000_000 => in_units(1_000_000, "ms"),
        1_000_000_000..60_000_000_000 => in_units(1_000_000_000, "s"),
        _ => age(duration_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_bound_of_less_than_a_millisecond_says_nothing() {
        assert_eq!(lasted(true, Some(999_999)), None);
        assert_eq!(lasted(true, Some(1_000_000)).unwrap(), "for at least 1.0 ms");
        assert_eq!(lasted(false, Some(1)).unwrap(), "for 1 ns");
        assert_eq!(lasted_at_least(Some(7)), "for an unknown time");
    }

    #[test]
    fn lengths_of_time_have_two_or_three_digits() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_250, "1.2 us"),
            (123_456, "123 us"),
            (9_990_000, "9.9 ms"),
            (59_999_999_999, "59.9 s"),
            (60_000_000_000, "1 min 0 s"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn amounts_have_at_most_five_characters() {
        for (count, text) in [
            (0, "0"),
            (9_999, "9999"),
            (10_000, "10.0k"),
            (99_999, "99.9k"),
            (999_999, "999k"),
            (1_000_000, "1.0M"),
            (u64::MAX, "18.4E"),
        ] {
            assert_eq!(amount(count), text);
        }
    }

    #[test]
    fn ages_are_short() {
        assert_eq!(age(999_000_000), "999 ms");
        assert_eq!(age(59_999_000_000), "59 s");
        assert_eq!(age(7_384_000_000_000), "2 h 3 min");
        assert_eq!(age(183_600_000_000_000), "2 d 3 h");
    }
}
