//! A test that waits for a lock that it holds itself.

use std::sync::Mutex;

static STOCK: Mutex<u32> = Mutex::new(0);

fn count() -> u32 {
    *STOCK.lock().unwrap()
}

#[test]
fn sells_one() {
    let mut stock = STOCK.lock().unwrap();
    *stock += count();
}
