//! Places for the boxes of a small graph: from left to right along its edges, and circles as circles.
//!
//! # Method
//!
//! Boxes that lead to each other in a circle are one block, with its boxes around it. What is left has no circles. A
//! block stands one column to the left of the leftmost one that it leads to. Within a column, blocks are ordered by
//! where their neighbours stand. The work is bounded by the number of boxes: `graph` leaves out the rest.

use std::cmp::Ordering;

pub(super) const BOX_HEIGHT: f64 = 46.0;
/// Between the boxes of a column.
const ROW_GAP: f64 = 18.0;
/// Between two parts.
const PART_GAP: f64 = 30.0;
/// Between two columns.
const COLUMN_GAP: f64 = 64.0;
/// Between the upper and the lower row of a circle.
const CIRCLE_GAP: f64 = 58.0;
/// How often the blocks of all columns move towards their neighbours.
const ROUNDS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Placed {
    /// Its left edge.
    pub(super) x: f64,
    /// Its upper edge.
    pub(super) y: f64,
    pub(super) width: f64,
    /// If it is one of a circle: whether it is in the lower row.
    pub(super) circle: Option<bool>,
}

/// All boxes with their places, and the size of the picture.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) boxes: Vec<Placed>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// One box, or those of a circle.
struct Block {
    /// In the order of the circle.
    boxes: Vec<usize>,
    column: usize,
    /// The middle.
    y: f64,
    height: f64,
    width: f64,
}

/// Places boxes of these widths. An edge is a pair of indices. Parts without a common edge stand one below the other:
/// first those with circles, then those with most boxes.
pub(super) fn layout(widths: &[f64], edges: &[(usize, usize)]) -> Layout {
    let mut parts: Vec<(Vec<usize>, Layout)> = parts(widths.len(), edges)
        .into_iter()
        .map(|members| {
            let own: Vec<f64> = members.iter().map(|&member| widths[member]).collect();
            let at = |node: usize| members.binary_search(&node).ok();
            let of_part = edges.iter().filter_map(|&(from, to)| Some((at(from)?, at(to)?)));
            let layout = layout_of_part(&own, &of_part.collect::<Vec<_>>());
            (members, layout)
        })
        .collect();
    parts.sort_by_key(|(members, layout)| {
        let has_circle = layout.boxes.iter().any(|one| one.circle.is_some());
        std::cmp::Reverse((has_circle, members.len()))
    });
    let mut boxes = vec![Placed { x: 0.0, y: 0.0, width: 0.0, circle: None }; widths.len()];
    let (mut width, mut height) = (0.0, 0.0);
    for (members, part) in parts {
        let top = if height > 0.0 { height + PART_GAP } else { 0.0 };
        for (member, one) in members.into_iter().zip(part.boxes) {
            boxes[member] = Placed { y: one.y + top, ..one };
        }
        (width, height) = (f64::max(width, part.width), top + part.height);
    }
    Layout { boxes, width, height }
}

/// The boxes that edges connect, ascending.
fn parts(count: usize, edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut part: Vec<usize> = (0..count).collect();
    for &(from, to) in edges {
        let (kept, gone) = (part[from], part[to]);
        part.iter_mut().filter(|one| **one == gone).for_each(|one| *one = kept);
    }
    let mut names = part.clone();
    names.sort_unstable();
    names.dedup();
    names.iter().map(|name| (0..count).filter(|&at| part[at] == *name).collect()).collect()
}

fn layout_of_part(widths: &[f64], edges: &[(usize, usize)]) -> Layout {
    let circles = components(widths.len(), edges);
    let mut block_of = vec![0; widths.len()];
    let mut blocks: Vec<Block> = Vec::new();
    for members in circles {
        members.iter().for_each(|&member| block_of[member] = blocks.len());
        let boxes = around(members, edges);
        let widest = boxes.iter().map(|&one| widths[one]).fold(0.0, f64::max);
        let (columns, rows) = (boxes.len().div_ceil(2) as f64, boxes.len().min(2) as f64);
        let width = columns * widest + (columns - 1.0) * COLUMN_GAP;
        let height = rows * BOX_HEIGHT + (rows - 1.0) * CIRCLE_GAP;
        blocks.push(Block { boxes, column: 0, y: 0.0, height, width });
    }
    let mut between: Vec<(usize, usize)> = edges
        .iter()
        .map(|&(from, to)| (block_of[from], block_of[to]))
        .filter(|(from, to)| from != to)
        .collect();
    between.sort_unstable();
    between.dedup();
    // A component comes after all that it leads to, so one pass will do.
    for block in 0..blocks.len() {
        let of = between.iter().filter(|(from, _)| *from == block);
        blocks[block].column = of.map(|&(_, to)| blocks[to].column + 1).max().unwrap_or(0);
    }
    stack(&mut blocks, &between);
    place(widths, &blocks)
}

/// The strongly connected components, by Tarjan's algorithm: each comes after those that it leads to.
fn components(count: usize, edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
    struct Search<'a> {
        next: Vec<Vec<usize>>,
        index: Vec<Option<usize>>,
        low: Vec<usize>,
        open: Vec<usize>,
        visited: usize,
        found: &'a mut Vec<Vec<usize>>,
    }
    impl Search<'_> {
        fn visit(&mut self, at: usize) {
            self.index[at] = Some(self.visited);
            self.low[at] = self.visited;
            self.visited += 1;
            self.open.push(at);
            for to in std::mem::take(&mut self.next[at]) {
                match self.index[to] {
                    None => {
                        self.visit(to);
                        self.low[at] = self.low[at].min(self.low[to]);
                    }
                    Some(index) if self.open.contains(&to) => self.low[at] = self.low[at].min(index),
                    Some(_) => {}
                }
            }
            if Some(self.low[at]) == self.index[at]
                && let Some(from) = self.open.iter().position(|&open| open == at)
            {
                self.found.push(self.open.split_off(from));
            }
        }
    }
    let mut next = vec![Vec::new(); count];
    edges.iter().for_each(|&(from, to)| next[from].push(to));
    let mut found = Vec::new();
    let (index, low) = (vec![None; count], vec![0; count]);
    let mut search = Search { next, index, low, open: Vec::new(), visited: 0, found: &mut found };
    for at in 0..count {
        if search.index[at].is_none() {
            search.visit(at);
        }
    }
    found
}

/// The boxes of a circle in its order. It begins at the one that most edges from outside lead to, which come from the
/// left.
fn around(members: Vec<usize>, edges: &[(usize, usize)]) -> Vec<usize> {
    let from_outside =
        |member: usize| edges.iter().filter(|&&(from, to)| to == member && !members.contains(&from)).count();
    let first =
        members.iter().copied().max_by_key(|&member| (from_outside(member), std::cmp::Reverse(member)));
    let mut ordered: Vec<usize> = first.into_iter().collect();
    while ordered.len() < members.len() {
        let last = ordered.last().copied();
        let is_new = |to: &usize| members.contains(to) && !ordered.contains(to);
        let follows = edges.iter().filter(|&&(from, _)| Some(from) == last).map(|&(_, to)| to).find(is_new);
        // More than one circle goes through these boxes: the next one stands beside it.
        match follows.or_else(|| members.iter().copied().find(is_new)) {
            Some(next) => ordered.push(next),
            None => break,
        }
    }
    ordered
}

/// Finds the middle of each block: near the middles of its neighbours, and below the block above it.
fn stack(blocks: &mut [Block], between: &[(usize, usize)]) {
    let last = blocks.iter().map(|block| block.column).max().unwrap_or(0);
    let mut columns: Vec<Vec<usize>> = vec![Vec::new(); last + 1];
    blocks.iter().enumerate().for_each(|(index, block)| columns[block.column].push(index));
    columns.iter().for_each(|column| spread(blocks, column, &vec![0.0; column.len()]));
    for round in 0..ROUNDS {
        let is_right_to_left = round % 2 == 0;
        for at in 0..columns.len() {
            let column = &mut columns[if is_right_to_left { at } else { last - at }];
            let wish = |&block: &usize| {
                let near = between.iter().filter_map(|&(from, to)| match (from == block, to == block) {
                    (true, _) if is_right_to_left => Some(blocks[to].y),
                    (_, true) if !is_right_to_left => Some(blocks[from].y),
                    _ => None,
                });
                let (sum, count) = near.fold((0.0, 0.0), |(sum, count), y| (sum + y, count + 1.0));
                if count > 0.0 { sum / count } else { blocks[block].y }
            };
            let mut wishes: Vec<(f64, usize)> = column.iter().map(|block| (wish(block), *block)).collect();
            wishes.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal));
            *column = wishes.iter().map(|&(_, block)| block).collect();
            let wanted: Vec<f64> = wishes.iter().map(|&(wish, _)| wish).collect();
            spread(blocks, column, &wanted);
        }
    }
}

/// Moves the blocks of a column apart, around where they want to be.
fn spread(blocks: &mut [Block], column: &[usize], wanted: &[f64]) {
    let mut bottom = f64::NEG_INFINITY;
    let mut moved = 0.0;
    for (&block, &wish) in column.iter().zip(wanted) {
        let half = blocks[block].height / 2.0;
        let y = wish.max(bottom + half);
        moved += y - wish;
        bottom = y + half + ROW_GAP;
        blocks[block].y = y;
    }
    let back = moved / (column.len().max(1) as f64);
    column.iter().for_each(|&block| blocks[block].y -= back);
}

fn place(widths: &[f64], blocks: &[Block]) -> Layout {
    let last = blocks.iter().map(|block| block.column).max().unwrap_or(0);
    let widest = |column: usize| {
        blocks.iter().filter(|of| of.column == column).map(|block| block.width).fold(0.0, f64::max)
    };
    // Column 0 is the rightmost one.
    let mut lefts = vec![0.0; last + 1];
    let mut width = 0.0;
    for column in (0..=last).rev() {
        lefts[column] = width;
        width += widest(column) + if column > 0 { COLUMN_GAP } else { 0.0 };
    }
    let top = blocks.iter().map(|block| block.y - block.height / 2.0).fold(f64::INFINITY, f64::min);
    let bottom = blocks.iter().map(|block| block.y + block.height / 2.0).fold(f64::NEG_INFINITY, f64::max);
    let mut boxes = vec![Placed { x: 0.0, y: 0.0, width: 0.0, circle: None }; widths.len()];
    for block in blocks {
        let (left, above) = (lefts[block.column], block.y - block.height / 2.0 - top);
        let upper = block.boxes.len().div_ceil(2);
        let step = block.boxes.iter().map(|&one| widths[one]).fold(0.0, f64::max);
        for (at, &one) in block.boxes.iter().enumerate() {
            let is_lower = at >= upper;
            let column = if is_lower { upper - 1 - (at - upper) } else { at };
            let middle = (step - widths[one]) / 2.0;
            boxes[one] = Placed {
                x: left + column as f64 * (step + COLUMN_GAP) + middle,
                y: above + if is_lower { BOX_HEIGHT + CIRCLE_GAP } else { 0.0 },
                width: widths[one],
                circle: (block.boxes.len() > 1).then_some(is_lower),
            };
        }
    }
    Layout { boxes, width, height: if blocks.is_empty() { 0.0 } else { bottom - top } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(a: &Placed, b: &Placed) -> bool {
        let apart = a.x + a.width <= b.x || b.x + b.width <= a.x;
        !apart && (a.y - b.y).abs() < BOX_HEIGHT
    }

    #[track_caller]
    fn is_drawable(layout: &Layout) {
        for (at, one) in layout.boxes.iter().enumerate() {
            assert!(layout.boxes[..at].iter().all(|other| !overlap(one, other)), "{at}: {layout:#?}");
            assert!(one.x >= 0.0 && one.x + one.width <= layout.width + 0.01, "{at}: {layout:#?}");
            assert!(one.y >= -0.01 && one.y + BOX_HEIGHT <= layout.height + 0.01, "{at}: {layout:#?}");
        }
    }

    #[test]
    fn edges_lead_from_left_to_right_where_there_is_no_circle() {
        let edges = [(0, 2), (1, 2), (2, 3), (4, 5), (5, 3)];
        let layout = layout(&[100.0, 80.0, 120.0, 90.0, 70.0, 100.0], &edges);
        is_drawable(&layout);
        for (from, to) in edges {
            assert!(layout.boxes[from].x + layout.boxes[from].width < layout.boxes[to].x, "{from} {to}");
        }
        assert!(layout.boxes.iter().all(|one| one.circle.is_none()));
    }

    #[test]
    fn a_circle_has_an_upper_and_a_lower_row_and_who_waits_for_it_stands_to_its_left() {
        // A deadlock of two threads, and one that waits for the first lock.
        let edges = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 0)];
        let layout = layout(&[100.0; 5], &edges);
        is_drawable(&layout);
        let circle: Vec<_> = layout.boxes.iter().map(|one| one.circle).collect();
        assert_eq!(circle, [Some(false), Some(false), Some(true), Some(true), None]);
        assert!(layout.boxes[0].x < layout.boxes[1].x && layout.boxes[3].x < layout.boxes[2].x);
        assert!(layout.boxes[4].x < layout.boxes[0].x);
    }

    #[test]
    fn any_graph_can_be_drawn() {
        // A sequence of numbers that looks random.
        let mut state = 1u32;
        let mut random = |below: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as usize % below
        };
        for count in 1..40 {
            let edges: Vec<_> = (0..random(60)).map(|_| (random(count), random(count))).collect();
            let widths: Vec<f64> = (0..count).map(|_| 40.0 + random(200) as f64).collect();
            is_drawable(&layout(&widths, &edges));
        }
        assert_eq!(layout(&[], &[]).boxes, []);
    }
}
