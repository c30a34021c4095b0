//! Locks inside a library: the user's line is that of the call of the library.

#[path = "../../../vendor/shelf/src/lib.rs"]
mod shelf;

use std::sync::OnceLock;

use librip::sync::Mutex;

use crate::stage::{Actor, Meeting, Scenario, actor};
use shelf::Shelf;

pub(crate) const ALL: &[Scenario] =
    &[("cycle-through-a-library", cycle), ("library-in-one-order", in_one_order)];

static SHELF: Shelf = Shelf::new();
static ORDERS: Mutex<u32> = Mutex::new(0);
/// Where both threads meet that have one lock each.
static HALFWAY: OnceLock<Meeting> = OnceLock::new();

fn meet() {
    HALFWAY.get_or_init(|| Meeting::new(2)).wait();
}

/// Puts a box on the shelf for an order.
#[inline(never)]
fn stock(meets: bool) {
    let mut orders = ORDERS.lock().unwrap();
    if meets {
        meet();
    }
    *orders += 1;
    SHELF.put(*orders);
}

/// One thread has the orders and wants the shelf, another one looks at the shelf and wants the orders.
fn cycle() {
    let stocker = actor("stocker", || stock(true));
    let counter = actor("counter", || {
        SHELF.look(|_| {
            meet();
            drop(ORDERS.lock().unwrap());
        });
    });
    drop((stocker.until_blocked(), counter.until_blocked()));
}

/// Both threads take the orders first.
fn in_one_order() {
    let all = [(); 2].map(|()| {
        actor("stocker", || {
            for _ in 0..1000 {
                stock(false);
            }
        })
    });
    all.into_iter().for_each(Actor::until_ended);
}
