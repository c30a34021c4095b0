//! The program that left `v1.0-marks.ring.gz`. The expectations of `golden.rs` contain its lines, so a change here
//! needs a new golden ring.

mod store {
    pub fn fetch(times: u32) {
        for _ in 0..times {
            librip::rip_snap!("waits");
            librip::rip_snap!("holds");
        }
    }
}

fn on_thread(name: &str, body: fn()) {
    let thread = std::thread::Builder::new().name(name.into()).spawn(body).unwrap();
    thread.join().unwrap();
}

fn main() {
    librip::init().unwrap();
    librip::rip_snap!();
    on_thread("brief", || librip::rip_snap!("once"));
    // Two sequences more than a multiple of 2^15, so that the recorded bits say little.
    on_thread("busy", || store::fetch((1 << 15) + 1));
    on_thread("short name", || {
        librip::set_thread_name("a name longer than the kernel has them");
        store::fetch(1);
    });
    librip::rip_snap!("about to die");
    std::process::abort();
}
