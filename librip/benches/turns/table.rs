//! A table of what candidates cost, and of their ratios to one another.

use crate::turns::{Candidate, ROUNDS, SLICE_NS, in_turns, quantile};

/// Prints the method, by the file that describes it, and the head of the table.
pub(crate) fn print_title(method: &str) {
    println!("{ROUNDS} rounds of {} ms a candidate; see {method} for the method", SLICE_NS / 1_000_000);
    println!("{:<44}{:>10}{:>9}  {:<18}to", "", "ns", "ratio", "(spread)");
}

/// Measures all candidates in turns and prints a row for each. Before the candidate with this index it prints a title.
pub(crate) fn measure(candidates: &mut [Candidate<'_>], title: Option<(usize, &str)>) {
    let times = in_turns(candidates);
    for (index, candidate) in candidates.iter().enumerate() {
        if let Some((before, title)) = title
            && index == before
        {
            println!("{title}");
        }
        let beside = candidate.beside;
        print_row(candidate.name, &times[index], &times[beside], candidates[beside].name);
    }
}

pub(crate) fn print_row(name: &str, times: &[f64], beside: &[f64], beside_name: &str) {
    let ratios: Vec<f64> = times.iter().zip(beside).map(|(time, other)| time / other).collect();
    let spread = format!("({:.2} to {:.2})", quantile(&ratios, 0.25), quantile(&ratios, 0.75));
    println!(
        "{name:<44}{:>10.2}{:>9.2}  {spread:<18}{beside_name}",
        quantile(times, 0.5),
        quantile(&ratios, 0.5)
    );
}
