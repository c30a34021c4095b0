//! Text that was written for a terminal, as plain lines.

/// The lines of a text, without colours.
pub fn plain_lines(text: &[u8]) -> Vec<String> {
    let text = anstream::adapter::strip_bytes(text).into_vec();
    String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
}
