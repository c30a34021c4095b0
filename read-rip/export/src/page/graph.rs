//! The drawing of who waits for whom, as SVG, and the same in words.
//!
//! A large graph is cut to what the findings are about, then to the locks with the most waiters: what is left out is
//! counted. `layout` finds the places.

use std::collections::BTreeSet;
use std::fmt::Write;

use read_rip_model::findings::Finding;
use read_rip_model::locks::{LockId, LockModel};
use read_rip_report::{LockNames, lock_type};
use textwrap::core::display_width;

use super::html::Text;
use super::layout::{BOX_HEIGHT, Layout, Placed, layout};
use crate::{Edge, EdgeKind, Node, WaitGraph};

/// A drawing with more boxes than this is hard to read.
const BOXES_MAX: usize = 48;
/// The middle of a longer circle is one box, with this many boxes of the circle on either side.
const CIRCLE_MAX: usize = 10;
const CIRCLE_ENDS: usize = 3;
/// Longer texts are cut in a box; the whole text is its title.
const COLUMNS_MAX: usize = 30;
/// The width of a column of the font, and what is left free beside a text.
const COLUMN_WIDTH: f64 = 7.3;
const PADDING: f64 = 14.0;
/// How far above or below a circle an edge passes its boxes, and how long it takes to get there.
const LANE: f64 = 18.0;
const BEND: f64 = 56.0;
/// Around the drawing.
const MARGIN: f64 = LANE + 4.0;

/// Who waits for whom, drawn.
#[derive(Debug)]
pub(super) struct Drawing {
    pub(super) svg: String,
    /// The edges as sentences.
    pub(super) sentences: Vec<String>,
    /// How many boxes are left out.
    pub(super) left_out: usize,
}

/// Draws who waits for whom; `None` if nobody does.
pub(super) fn drawing(names: &LockNames<'_>, found: &[Finding]) -> Option<Drawing> {
    let mut graph = WaitGraph::of(names.model);
    graph.abridge(CIRCLE_MAX, CIRCLE_ENDS);
    let all = graph.nodes.len();
    if all > BOXES_MAX {
        let kept = chosen(&graph, names.model, found);
        graph.keep(|node| kept.contains(&node));
    }
    if graph.edges.is_empty() {
        return None;
    }
    let labels: Vec<Label> = (0..graph.nodes.len()).map(|node| Label::of(node, &graph, names)).collect();
    let widths: Vec<f64> = labels.iter().map(Label::width).collect();
    let edges: Vec<(usize, usize)> = graph.edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let layout = layout(&widths, &edges);
    let sentences = graph.edges.iter().map(|edge| sentence(edge, &labels, names)).collect();
    Some(Drawing { svg: svg(&graph, &labels, &layout, names), sentences, left_out: all - graph.nodes.len() })
}

/// The boxes of a large graph that are drawn: those around one lock after the other, those of findings first.
fn chosen(graph: &WaitGraph, model: &LockModel, found: &[Finding]) -> BTreeSet<usize> {
    let mentioned: Vec<LockId> = found.iter().flat_map(|finding| &finding.mentions.locks).copied().collect();
    let rank = |node: usize| match graph.nodes[node] {
        Node::Lock(lock) => {
            let place = mentioned.iter().position(|&other| other == lock).unwrap_or(usize::MAX);
            (place, std::cmp::Reverse(model.locks[lock].waiters.len()))
        }
        _ => (usize::MAX, std::cmp::Reverse(0)),
    };
    let mut order: Vec<((usize, _), usize)> = (0..graph.nodes.len()).map(|node| (rank(node), node)).collect();
    order.sort_unstable();
    let mut kept = BTreeSet::new();
    for (_, node) in order {
        let neighbours = graph.edges.iter().filter_map(|edge| match (edge.from == node, edge.to == node) {
            (true, _) => Some(edge.to),
            (_, true) => Some(edge.from),
            _ => None,
        });
        let with: Vec<usize> = neighbours.chain([node]).filter(|one| !kept.contains(one)).collect();
        if kept.len() + with.len() <= BOXES_MAX {
            kept.extend(with);
        } else if kept.len() + 1 < BOXES_MAX {
            // A lock with many different waiters is drawn with some of them.
            let room = BOXES_MAX - kept.len() - 1;
            kept.extend(with.into_iter().rev().take(room));
            break;
        }
    }
    kept
}

/// The two lines of a box.
struct Label {
    name: String,
    about: String,
}

impl Label {
    fn of(node: usize, graph: &WaitGraph, names: &LockNames<'_>) -> Label {
        let name = graph.nodes[node].label(names);
        let about = match &graph.nodes[node] {
            &Node::Lock(id) => {
                let lock = &names.model.locks[id];
                // Nobody holds a barrier or a semaphore.
                let is_unknown = lock.holders.is_empty() && !lock.waiters.is_empty();
                let holder = match is_unknown {
                    true if lock.holds_of_futures().next().is_some() => {
                        ", held by a future of no recorded task"
                    }
                    true if names.model.is_for_next_in_line(id) && lock.is_held_where_recorded() => {
                        ", nobody holds it"
                    }
                    true => ", holder not known",
                    false => "",
                };
                format!("{}{holder}", lock_type(lock))
            }
            Node::Part(_) => "each waits for the next one".to_owned(),
            Node::Thread(_) | Node::Waiting(_) => {
                let at = graph.edges.iter().find(|edge| edge.from == node).and_then(|edge| edge.location);
                let last = match graph.nodes[node] {
                    Node::Thread(thread) => names.model.threads[thread].last,
                    _ => None,
                };
                at.or(last).map_or_else(String::new, |at| format!("at {}", names.location(at)))
            }
        };
        Label { name, about }
    }

    fn width(&self) -> f64 {
        let columns = |text: &str| display_width(&cut(text)) as f64;
        columns(&self.name).max(columns(&self.about)) * COLUMN_WIDTH + 2.0 * PADDING
    }
}

/// A text that fits into a box. Places are cut at their beginning: the file and the line are at the end.
fn cut(text: &str) -> String {
    if display_width(text) <= COLUMNS_MAX {
        return text.to_owned();
    }
    let (at, text) = text.strip_prefix("at ").map_or(("", text), |place| ("at …", place));
    let room = COLUMNS_MAX - 1 - at.chars().count();
    let fits = |letters: &mut dyn Iterator<Item = char>| {
        let mut width = 0;
        let letters = letters.take_while(|letter| {
            width += display_width(letter.encode_utf8(&mut [0; 4]));
            width <= room
        });
        letters.collect::<Vec<char>>()
    };
    if at.is_empty() {
        return fits(&mut text.chars()).into_iter().chain(['…']).collect();
    }
    let end = fits(&mut text.chars().rev());
    at.chars().chain(end.into_iter().rev()).collect()
}

fn sentence(edge: &Edge, labels: &[Label], names: &LockNames<'_>) -> String {
    let (from, to) = (&labels[edge.from].name, &labels[edge.to].name);
    let place = edge.location.map_or_else(String::new, |at| names.location(at));
    let at = |verb: &str| if place.is_empty() { String::new() } else { format!(", {verb} {place}") };
    match edge.kind {
        EdgeKind::Waits => format!("{from}: waiting for {to}{}", at("at")),
        EdgeKind::Condition => format!("{from}: waiting on a condition variable, with {to}{}", at("at")),
        EdgeKind::Held => format!("{from}: held by {to}{}", at("acquired at")),
        EdgeKind::Presumed => format!("{from}: presumably held by {to}"),
        EdgeKind::Uses => format!("{from}: its other side is used by {to}"),
        EdgeKind::Joins => format!("{from}: waiting for the end of {to}{}", at("at")),
    }
}

fn svg(graph: &WaitGraph, labels: &[Label], layout: &Layout, names: &LockNames<'_>) -> String {
    let (width, height) = (layout.width + 2.0 * MARGIN, layout.height + 2.0 * MARGIN);
    let mut out = format!(
        "<svg role=\"group\" aria-label=\"Who waits for whom\" \
         width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"{} {} {width:.0} {height:.0}\">\
         <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7.5\" refY=\"4\" markerWidth=\"9\" \
         markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto-start-reverse\">\
         <path d=\"M0 0L8 4L0 8z\"/></marker></defs>",
        -MARGIN, -MARGIN
    );
    // Writing to a string does not fail.
    for edge in &graph.edges {
        let is_both_ways = graph.edges.iter().any(|other| (other.from, other.to) == (edge.to, edge.from));
        let (from, to) = (&layout.boxes[edge.from], &layout.boxes[edge.to]);
        let is_circle = from.circle.is_some() && to.circle.is_some();
        let class = match edge.kind {
            EdgeKind::Waits => "waits",
            EdgeKind::Condition => "condition",
            EdgeKind::Held => "held",
            EdgeKind::Presumed => "presumed",
            EdgeKind::Uses => "uses",
            EdgeKind::Joins => "joins",
        };
        let circle = if is_circle { " circle" } else { "" };
        let path = path(from, to, is_both_ways);
        let _ = write!(
            out,
            "<path class=\"edge {class}{circle}\" d=\"{path}\" marker-end=\"url(#arrow)\"><title>{}</title></path>",
            Text(&sentence(edge, labels, names))
        );
    }
    for ((node, label), at) in graph.nodes.iter().zip(labels).zip(&layout.boxes) {
        let class = if node.is_lock() { "lock" } else { "thread" };
        let circle = if at.circle.is_some() { " circle" } else { "" };
        let round = if node.is_lock() { 4.0 } else { BOX_HEIGHT / 2.0 };
        let middle = at.width / 2.0;
        let name_y = if label.about.is_empty() { 27 } else { 19 };
        let _ = write!(
            out,
            "<a href=\"#{class}s\" data-name=\"{}\">\
             <g class=\"box {class}{circle}\" transform=\"translate({:.1} {:.1})\">\
             <title>{}\n{}</title>\
             <rect width=\"{:.1}\" height=\"{BOX_HEIGHT}\" rx=\"{round}\"/>\
             <text class=\"name\" x=\"{middle:.1}\" y=\"{name_y}\">{}</text>\
             <text class=\"about\" x=\"{middle:.1}\" y=\"35\">{}</text></g></a>",
            Text(&label.name),
            at.x,
            at.y,
            Text(&label.name),
            Text(&label.about),
            at.width,
            Text(&cut(&label.name)),
            Text(&cut(&label.about)),
        );
    }
    out + "</svg>"
}

/// A curve from one box to another.
fn path(from: &Placed, to: &Placed, is_both_ways: bool) -> String {
    let middle = |of: &Placed| (of.x + of.width / 2.0, of.y + BOX_HEIGHT / 2.0);
    let ((from_x, from_y), (to_x, to_y)) = (middle(from), middle(to));
    let curve = |a: (f64, f64), b: (f64, f64), c: (f64, f64), d: (f64, f64)| {
        format!("M{:.1} {:.1}C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}", a.0, a.1, b.0, b.1, c.0, c.1, d.0, d.1)
    };
    let (from_right, to_right) = (from.x + from.width, to.x + to.width);
    if from_right < to.x || to_right < from.x {
        let (start, end) = if from_right < to.x { (from_right, to.x) } else { (from.x, to_right) };
        let bend = (end - start) / 2.0;
        // Into a circle from outside: boxes of the circle may stand between.
        if let (None, Some(is_lower)) = (from.circle, to.circle)
            && (end - start).abs() > 120.0
        {
            let (edge, lane) = match is_lower {
                true => (to.y + BOX_HEIGHT, to.y + BOX_HEIGHT + LANE),
                false => (to.y, to.y - LANE),
            };
            let side = (end - start).signum();
            let first = start + side * BEND;
            return curve(
                (start, from_y),
                (start + side * LANE, from_y),
                (first - side * LANE, lane),
                (first, lane),
            ) + &format!(
                "L{:.1} {lane:.1}Q{to_x:.1} {lane:.1} {to_x:.1} {edge:.1}",
                to_x - side * LANE
            );
        }
        return curve((start, from_y), (start + bend, from_y), (end - bend, to_y), (end, to_y));
    }
    // One above the other. Two edges between the same boxes are drawn beside each other.
    let is_down = from_y < to_y;
    let aside = match (is_both_ways, is_down) {
        (false, _) => 0.0,
        (true, true) => 26.0,
        (true, false) => -26.0,
    };
    let start = (from_x + aside, if is_down { from.y + BOX_HEIGHT } else { from.y });
    let end = (to_x + aside, if is_down { to.y } else { to.y + BOX_HEIGHT });
    let bend = (end.1 - start.1) / 2.0;
    curve(start, (start.0, start.1 + bend), (end.0, end.1 - bend), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_at_their_end_and_places_at_their_beginning() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut("abcdefghijklmnopqrstuvwxyzabcdefgh"), "abcdefghijklmnopqrstuvwxyzabc…");
        assert_eq!(cut("at server::cache::lookup::get cache.rs:12"), "at …::lookup::get cache.rs:12");
        for text in ["日本語".repeat(20), "e\u{301}".repeat(80), format!("at {}", "日本語".repeat(20))]
        {
            assert!(display_width(&cut(&text)) <= COLUMNS_MAX + 3, "{}", cut(&text));
        }
    }
}
