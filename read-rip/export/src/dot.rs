//! The wait-for graph, in graphviz's language (<https://graphviz.org/doc/info/lang.html>).

use std::io::{self, Write};

use read_rip_report::LockNames;

use super::graph::{EdgeKind, WaitGraph};

/// Writes the graph.
///
/// # Errors
///
/// Those of `out`.
pub fn dot(out: &mut dyn Write, names: &LockNames<'_>) -> io::Result<()> {
    let graph = WaitGraph::of(names.model);
    writeln!(out, "digraph waits {{\n  rankdir=LR;\n  node [fontname=\"sans-serif\"];")?;
    for (index, node) in graph.nodes.iter().enumerate() {
        let shape = if node.is_lock() { "box, style=rounded" } else { "ellipse" };
        writeln!(out, "  n{index} [shape={shape}, label={}];", quoted(&node.label(names)))?;
    }
    for edge in &graph.edges {
        let place = edge.location.map_or_else(String::new, |location| names.location(location));
        let (style, label) = match edge.kind {
            EdgeKind::Waits => ("", place),
            EdgeKind::Condition => ("style=dashed, ", format!("waits on a condition variable at {place}")),
            EdgeKind::Held => ("style=bold, ", place),
            EdgeKind::Presumed => ("style=dashed, ", "is presumably held by".to_owned()),
            EdgeKind::Uses => ("style=dotted, ", "its other side is used by".to_owned()),
            EdgeKind::Joins => ("style=dashed, ", format!("waits for its end at {place}")),
        };
        writeln!(out, "  n{} -> n{} [{style}label={}];", edge.from, edge.to, quoted(&label))?;
    }
    writeln!(out, "}}")
}

/// A string of the language: only quotes and backslashes mean something in it. The names are printable already.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_string() {
        assert_eq!(quoted(r#"a" -> b; \"#), r#""a\" -> b; \\""#);
    }
}
