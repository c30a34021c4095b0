//! The spans that the calling thread has entered.
//!
//! A thread exits a span in another call than the one that entered it. So what ends the span is kept here, by the
//! span's id. The list needs no destructor, so spans of destructors of thread-locals are recorded too.

use std::cell::Cell;

use librip::bridge::OpenSpan;

/// A thread has room for this many.
const DEPTH_MAX: usize = 64;

thread_local! {
    static OPEN: Stack = const { Stack { spans: [const { Cell::new(None) }; DEPTH_MAX], len: Cell::new(0) } };
}

struct Stack {
    spans: [Cell<Option<(u64, OpenSpan)>>; DEPTH_MAX],
    len: Cell<usize>,
}

/// Whether there is room for another span. If not, an event says so, each time the thread has filled the room.
pub(crate) fn has_room() -> bool {
    let has_room = OPEN.with(|open| open.len.get() < DEPTH_MAX);
    if !has_room {
        too_deep();
    }
    has_room
}

#[cold]
#[inline(never)]
fn too_deep() {
    librip::rip_event!(level warn, "a span is not recorded: this thread is in {} others", DEPTH_MAX);
}

/// Keeps a span that the thread has entered.
#[inline]
pub(crate) fn push(id: u64, span: OpenSpan) {
    OPEN.with(|open| {
        let len = open.len.get();
        match open.spans.get(len) {
            Some(free) => {
                free.set(Some((id, span)));
                open.len.set(len + 1);
            }
            None => span.end(),
        }
    });
}

/// Ends the span that the thread has entered last among those with this id, if there is one.
#[inline]
pub(crate) fn end(id: u64) {
    OPEN.with(|open| {
        for at in (0..open.len.get()).rev() {
            let entry = open.spans[at].take();
            match entry {
                Some((of, span)) if of == id => {
                    // Spans may be exited in another order than they were entered.
                    for next in at + 1..open.len.get() {
                        open.spans[next - 1].swap(&open.spans[next]);
                    }
                    open.len.set(open.len.get() - 1);
                    return span.end();
                }
                other => open.spans[at].set(other),
            }
        }
    });
}

/// Records that the thread enters a span that is not recorded.
///
/// This mark is also why the slots of a program with a layer have tables of open spans: only those of programs with
/// marks of spans have.
#[cold]
#[inline(never)]
pub(crate) fn no_room(name: &str) {
    drop(librip::rip_span!("a span that is not recorded is entered", "{}: no room for its site", name));
}
