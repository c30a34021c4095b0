//! The heap of a Go program: which object an address is in, and what can be reached from some memory.
//!
//! The runtime keeps a list of all spans (`mheap.allspans`): runs of pages with objects of one size. It is found by its
//! shape, and so is where a span says the size of its objects: beside a number that is made of it (`divMul`). Each word
//! counts as a pointer, as if it were one. So more may seem reachable than is, and never less.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use foldhash::{HashSet, HashSetExt};

use crate::target::Memory;

/// A span has this many bytes at least, and more of it is not read.
const SPAN_BYTES: usize = 160;
const PAGE_BYTES: u64 = 8192;
/// No more spans are read, and no span has more pages.
const SPANS_MAX: u64 = 1 << 18;
const SPAN_PAGES_MAX: u64 = 1 << 26;
/// Where a span says at which address it begins, and how many pages it has.
const BEGIN: usize = 24;
const PAGES: usize = 32;
/// Where `divMul` may be. The class of the objects and the state of the span are 6 and 7 bytes after it.
const DIVISORS: Range<usize> = 56..136;
const CLASS: usize = 6;
const STATE: usize = 7;
const IN_USE: u8 = 1;
const STATE_MAX: u8 = 2;
const CLASSES: u8 = 68;
/// The size of objects comes so many bytes after `divMul`.
const SIZE: Range<usize> = 8..40;
/// How many spans decide where their numbers are.
const SAMPLE: usize = 64;
/// No more bytes are searched for pointers: then nothing is known.
const SEARCHED_MAX_BYTES: u64 = 32 << 20;
/// So much is read at once.
const BLOCK_BYTES: u64 = 1 << 20;

struct Span {
    end: u64,
    object_bytes: u64,
    has_pointers: bool,
}

/// The spans in use, by the addresses at which they begin.
pub(super) struct Heap(BTreeMap<u64, Span>);

/// An object of the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Object {
    begin: u64,
    len: u64,
    has_pointers: bool,
}

impl Heap {
    /// Finds the spans by the variables of the program.
    pub(super) fn of(variables: Range<u64>, memory: &dyn Memory) -> Option<Heap> {
        super::search(variables, memory, |_, &[list, len, capacity]| {
            let is_shape =
                list != 0 && list % 8 == 0 && (1..=capacity).contains(&len) && capacity <= SPANS_MAX;
            if !is_shape {
                return None;
            }
            let read = |index: u64| {
                let address = memory.u64(list.checked_add(8 * index)?).ok()?;
                let is_there = address != 0 && address % 8 == 0;
                memory.bytes::<SPAN_BYTES>(address).ok().filter(|_| is_there)
            };
            let is_span = |of: &[u8; SPAN_BYTES]| {
                let (begin, pages) = (word(of, BEGIN), word(of, PAGES));
                begin % PAGE_BYTES == 0 && pages <= SPAN_PAGES_MAX && (begin == 0) == (pages == 0)
            };
            let first = read(0).filter(|of| is_span(of) && word(of, BEGIN) != 0)?;
            let rest = (1..len).map_while(|index| read(index).filter(is_span));
            let spans: Vec<[u8; SPAN_BYTES]> = std::iter::once(first).chain(rest).collect();
            if spans.len() as u64 != len {
                return None;
            }
            Heap::made_of(&spans)
        })
    }

    fn made_of(spans: &[[u8; SPAN_BYTES]]) -> Option<Heap> {
        let (divisor, size) = places(spans)?;
        let mut heap = BTreeMap::new();
        for of in spans.iter().filter(|of| of[divisor + STATE] == IN_USE) {
            let (begin, object_bytes) = (word(of, BEGIN), word(of, size));
            let len = word(of, PAGES) * PAGE_BYTES;
            if begin == 0 || !(8..=len).contains(&object_bytes) {
                return None;
            }
            let has_pointers = of[divisor + CLASS] & 1 == 0;
            heap.insert(begin, Span { end: begin.checked_add(len)?, object_bytes, has_pointers });
        }
        Some(Heap(heap))
    }

    /// The object that an address is in, or just behind the header of.
    fn object(&self, address: u64) -> Option<Object> {
        let (&begin, span) = self.0.range(..=address).next_back().filter(|(_, span)| address < span.end)?;
        let begin = begin + (address - begin) / span.object_bytes * span.object_bytes;
        Some(Object { begin, len: span.object_bytes, has_pointers: span.has_pointers })
    }

    /// Where the object begins that an address is in.
    pub(super) fn begin(&self, address: u64) -> Option<u64> {
        self.object(address).map(|object| object.begin)
    }
}

fn word(of: &[u8; SPAN_BYTES], at: usize) -> u64 {
    // SANITY: eight bytes.
    u64::from_le_bytes(of[at..at + 8].try_into().expect("eight bytes"))
}

/// Where a span has `divMul`, and where the size of its objects.
fn places(spans: &[[u8; SPAN_BYTES]]) -> Option<(usize, usize)> {
    let used: Vec<&[u8; SPAN_BYTES]> = spans.iter().filter(|of| word(of, BEGIN) != 0).take(SAMPLE).collect();
    let is_at = |divisor: usize, size: usize| {
        let mut sizes = BTreeSet::new();
        let fits = used.iter().all(|of| {
            let (state, class) = (of[divisor + STATE], of[divisor + CLASS] >> 1);
            let (object_bytes, divisor) = (word(of, size), word(of, divisor) as u32);
            let is_divisor = || match u32::try_from(object_bytes) {
                Ok(len) if class != 0 => len >= 8 && divisor == u32::MAX / len + 1,
                _ => divisor == 0,
            };
            let is_right = state != IN_USE || is_divisor();
            if state == IN_USE {
                sizes.insert(object_bytes);
            }
            state <= STATE_MAX && class < CLASSES && is_right
        });
        // Equal numbers may fit by chance.
        fits && sizes.len() >= 3
    };
    let candidates = DIVISORS.step_by(4).flat_map(|divisor| {
        SIZE.filter(move |after| (divisor + after).is_multiple_of(8))
            .map(move |after| (divisor, divisor + after))
    });
    candidates.filter(|&(_, size)| size + 8 <= SPAN_BYTES).find(|&(divisor, size)| is_at(divisor, size))
}

/// Which objects can be reached.
pub(super) struct Reach<'a> {
    heap: &'a Heap,
    memory: &'a dyn Memory,
    /// Objects that are reached and lead nowhere.
    ends: &'a HashSet<u64>,
    reached: HashSet<u64>,
    rest_bytes: u64,
}

impl<'a> Reach<'a> {
    pub(super) fn new(heap: &'a Heap, memory: &'a dyn Memory, ends: &'a HashSet<u64>) -> Reach<'a> {
        Reach { heap, memory, ends, reached: HashSet::new(), rest_bytes: SEARCHED_MAX_BYTES }
    }

    /// Whether the object is reached that begins here.
    pub(super) fn has(&self, object: u64) -> bool {
        self.reached.contains(&object)
    }

    /// Forgets what was reached.
    pub(super) fn clear(&mut self) {
        self.reached.clear();
    }

    /// Adds what can be reached from some memory. `None` if that cannot be read, or is too much. Objects for which
    /// `is_known` holds lead nowhere.
    pub(super) fn add(&mut self, from: Range<u64>, is_known: impl Fn(u64) -> bool) -> Option<()> {
        let mut next = Vec::new();
        self.search(from, &is_known, &mut next)?;
        while let Some(object) = next.pop() {
            // The entry of a goroutine in a queue begins with its address, and leads to other queues.
            if !self.is_end(self.memory.u64(object.begin).ok()?) {
                self.search(object.begin..object.begin + object.len, &is_known, &mut next)?;
            }
        }
        Some(())
    }

    fn search(
        &mut self,
        range: Range<u64>,
        is_known: &impl Fn(u64) -> bool,
        next: &mut Vec<Object>,
    ) -> Option<()> {
        let (mut at, mut bytes) = (range.start, Vec::new());
        while at < range.end {
            let len = (range.end - at).min(BLOCK_BYTES);
            self.rest_bytes = self.rest_bytes.checked_sub(len)?;
            bytes.resize(usize::try_from(len).ok()?, 0);
            self.memory.read(at, &mut bytes).ok()?;
            let words = bytes.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word));
            for object in words.filter_map(|word| self.heap.object(word)) {
                let is_end = self.ends.contains(&object.begin) || is_known(object.begin);
                if !is_end && self.reached.insert(object.begin) && object.has_pointers {
                    next.push(object);
                }
            }
            at += len;
        }
        Some(())
    }

    fn is_end(&self, address: u64) -> bool {
        self.heap.begin(address).is_some_and(|object| self.ends.contains(&object))
    }
}
