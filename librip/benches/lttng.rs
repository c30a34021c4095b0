//! Measures what a tracepoint of LTTng-UST costs, and compares it with `rip_event!` in the same run.
//!
//! ```text
//! scripts/bench events
//! ```
//!
//! # Method
//!
//! [`turns`] describes the method, `marks.rs` the columns, [`loops`] the rows. `scripts/lib/lttng.sh` builds the
//! tracepoint, in `lttng/tracepoint.c`, as a library, and names it in `RIP_LTTNG`. It starts a session in snapshot
//! mode: the tracepoint writes into a ring in shared memory for each processor, whose oldest events are replaced, as
//! those of librip are. Nobody reads meanwhile. Both record two `u64` and a time.
//!
//! # What is not measured
//!
//! A snapshot, and a session that is written to a disk.

#![allow(unsafe_code, reason = "a library is loaded with dlopen, and the counter is read by an instruction")]

#[path = "turns/companion.rs"]
mod companion;
#[path = "turns/loops.rs"]
mod loops;
#[path = "turns/table.rs"]
mod table;
mod turns;

use std::ffi::{CStr, CString, c_int, c_void};
use std::hint::black_box;
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};

use librip::{Builder, Keep, rip_event, rip_snap};
use loops::Loop;
use table::print_title;

fn main() {
    let tracepoint = match tracepoint() {
        Ok(tracepoint) => tracepoint,
        Err(why) => {
            eprintln!("lttng: nothing can be measured: {why}");
            std::process::exit(1);
        }
    };
    if !loops::counts() {
        print_title("librip/benches/lttng.rs");
        println!("LTTng-UST, a session in snapshot mode");
    }
    loops::run(&[
        Loop::new("rip_snap!()", |rounds| (0..rounds).for_each(|_| rip_snap!())),
        Loop::new("rip_event!, two u64", |rounds| {
            (0..rounds).for_each(|round| rip_event!("{} of {}", round, rounds));
        }),
        Loop::new("LTTng-UST tracepoint, two uint64_t", move |rounds| tracepoint(rounds)),
        #[cfg(target_arch = "x86_64")]
        Loop::new("the counter alone (rdtsc)", |rounds| {
            (0..rounds).for_each(|_| {
                // SAFETY: every x86-64 processor has the instruction.
                black_box(unsafe { core::arch::x86_64::_rdtsc() });
            });
        }),
        loops::empty(),
    ]);
}

/// Makes the ring, loads the library, and returns its function that passes the tracepoint so many times.
fn tracepoint() -> Result<extern "C" fn(u64), Box<dyn std::error::Error>> {
    Builder::new().keep(Keep::Never).create()?;
    let path = std::env::var_os("RIP_LTTNG").ok_or("RIP_LTTNG names no library; use scripts/bench events")?;
    let path = CString::new(path.into_vec())?;
    // SAFETY: the path is terminated. The library's initialiser is that of LTTng-UST, and it is never unloaded.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    if library.is_null() {
        return Err(format!("{} cannot be loaded", path.to_string_lossy()).into());
    }
    let function = |name: &CStr| -> Result<*mut c_void, String> {
        // SAFETY: the handle is valid and the name terminated.
        let function = unsafe { libc::dlsym(library, name.as_ptr()) };
        if function.is_null() { Err(format!("no function {}", name.to_string_lossy())) } else { Ok(function) }
    };
    let is_enabled = function(c"librip_lttng_is_enabled")?;
    // SAFETY: `lttng/tracepoint.c` defines the function with this type.
    let is_enabled = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(is_enabled) };
    let begun = Instant::now();
    // A thread of LTTng-UST asks the daemon which tracepoints are enabled.
    while is_enabled() == 0 {
        if begun.elapsed() > Duration::from_secs(20) {
            return Err("no session records the tracepoint".into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let events = function(c"librip_lttng_events")?;
    // SAFETY: as above.
    Ok(unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(u64)>(events) })
}
