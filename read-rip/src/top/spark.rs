//! A number over the last readings, as a line of bars: the latest one at the right.

const BARS: [char; 8] =
    ['\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];

/// Draws the last numbers, the oldest first, in so many columns. A full bar is the greatest of them, or `least_full` if
/// that is more. A number that is not known is a blank, and 0 is a dot.
pub(super) fn sparkline(numbers: &[Option<u64>], width: usize, least_full: u64) -> String {
    let shown = &numbers[numbers.len().saturating_sub(width)..];
    let full = shown.iter().flatten().copied().fold(least_full, u64::max).max(1);
    let bar = |number: &Option<u64>| match number {
        None => ' ',
        Some(0) => '\u{b7}',
        Some(number) => BARS[((u128::from(*number) * 8).div_ceil(u128::from(full)) - 1) as usize],
    };
    let bars: String = shown.iter().map(bar).collect();
    format!("{bars:>width$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_numbers_are_bars_against_the_greatest_one() {
        let line = |numbers: &[u64], width| {
            sparkline(&numbers.iter().copied().map(Some).collect::<Vec<_>>(), width, 0)
        };
        assert_eq!(line(&[], 3), "   ");
        assert_eq!(line(&[0, 0], 3), " \u{b7}\u{b7}");
        assert_eq!(line(&[1, 4, 8], 5), "  \u{2581}\u{2584}\u{2588}");
        assert_eq!(line(&[800, 8, 4, 1], 3), "\u{2588}\u{2584}\u{2581}", "what is not shown does not count");
        assert_eq!(line(&[u64::MAX, 1], 2), "\u{2588}\u{2581}");
        assert_eq!(sparkline(&[Some(25), None, Some(100)], 4, 100), " \u{2582} \u{2588}");
        assert_eq!(sparkline(&[Some(10)], 1, 100), "\u{2581}");
    }
}
