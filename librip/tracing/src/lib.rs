//! Records the events and spans of `tracing`, and the records of `log`, in the ring of [`librip`].
//!
//! A program that uses `tracing` or `log` installs this crate beside what it prints with, or in its place. Nothing else
//! changes in its source. `read-rip log` and `read-rip spans` then show what each thread said, and in which spans it
//! was, also after the process was killed.
//!
#![cfg_attr(
    feature = "tracing",
    doc = r#"
# `tracing`

[`layer`] returns a layer for `tracing-subscriber`:

```
use tracing_subscriber::prelude::*;

// Failing to record is no reason to fail.
if let Err(error) = librip::init() {
    eprintln!("not recording: {error}");
}
tracing_subscriber::registry().with(librip_tracing::layer()).init();

#[derive(Debug)]
struct Disk(u32);

let span = tracing::info_span!("request", id = 4711);
let _entered = span.enter();
tracing::warn!(free_bytes = 512, disk = ?Disk(3), "the disk is almost full");
# assert!(librip::is_recording());
```

A filter that is added to the registry is one of all layers, wherever it stands: `EnvFilter` without `RUST_LOG` lets
errors through alone, and then nothing else is recorded. Give such a filter to the layer that prints:

```
use tracing_subscriber::filter::LevelFilter; // as EnvFilter
use tracing_subscriber::prelude::*;

# let printing = tracing_subscriber::layer::Identity::new();
tracing_subscriber::registry()
    .with(librip_tracing::layer()) // is given everything
    .with(printing.with_filter(LevelFilter::ERROR))
    .init();
# tracing::info!("is recorded");
# assert!(tracing::enabled!(tracing::Level::INFO));
```

An event that a task says is recorded for the task: `read-rip log` shows it with the task's name.

`read-rip log` shows these lines for the first program:

```text
begin request: id=4711
warn the disk is almost full free_bytes=512 disk=Disk(3)
```
"#
)]
#![cfg_attr(
    feature = "log",
    doc = r#"
# `log`

[`init_log`] installs a [`Logger`] for programs that use the crate `log`:

```
librip::init()?;
librip_tracing::init_log().expect("the program has no other logger");

log::info!("listening at port {}", 8080);
# Ok::<(), Box<dyn std::error::Error>>(())
```

[`Logger::beside`] records, and passes each record on to another logger.
"#
)]
//!
//! # What is recorded
//!
//! An event has its level, file, line and module path, its message and its fields. Integers up to 64 bits, floats and
//! truth values are stored as they are. The program formats all other fields, and messages with arguments, but it
//! allocates nothing for that. A message without arguments costs nothing: it is a part of the event's format, which the
//! ring has once.
//!
//! A span is recorded each time a thread enters it, and ends when the thread exits it. So a future that is polled ten
//! times is ten spans. The fields have the values that they have when the thread enters the span.
//!
//! # Limits
//!
//! * A message with arguments keeps 240 bytes, and any other text 48. If the event has no room for that, its message is
//!   cut shorter, down to 48 bytes, and then each of its texts to 18. A cut text ends in `...`.
//! * An event has at most ten values: the message and nine fields. The text of the event names the fields that were not
//!   recorded.
//! * A field that has no value is shown as `(none)`.
//! * A thread has room for 64 entered spans. Deeper ones are not recorded, and an event says so. The table of open
//!   spans has room for 16 of them.
//! * An event takes some ten to fifty words of the thread's history. So set `RIP_WORDS`, or [`librip::Builder::words`],
//!   to 1024 or more.
//! * The ring has room for some 30,000 callsites. What they record beyond that is replaced by an event that says where
//!   it was.
//!
//! # What it costs
//!
//! An event with two integers takes about a third of what it takes to format it into memory, and seven or eight times
//! as much as one of [`librip::rip_event!`]: on one machine 67 to 83 ns. The first event of a callsite allocates, and
//! enters the callsite in the ring. A span with fields allocates when it is made. If the process does not record, an
//! event costs one look at whether it does. Which events there are is up to the filters of `tracing-subscriber`, and to
//! [`log::set_max_level`](https://docs.rs/log/latest/log/fn.set_max_level.html).
//!
//! # It never harms the program
//!
//! It takes no lock of its own. A `Debug` implementation may itself record: its event comes first. If one panics, the
//! panic ends there, and the text of the field says so. A forked child records as its parent does.
//!
//! Signal handlers must not use `tracing` and `log`, with this crate or another: both may allocate. The macros of
//! `librip` may be used there.

#![cfg_attr(
    not(all(feature = "tracing", feature = "log")),
    allow(dead_code, reason = "the parts that one of the two uses")
)]

mod event_site;
mod fields;
#[cfg(feature = "tracing")]
mod layer;
#[cfg(feature = "log")]
mod logger;
#[cfg(feature = "tracing")]
mod spans;
mod table;

#[cfg(feature = "tracing")]
pub use layer::{Layer, layer};
#[cfg(feature = "log")]
pub use logger::{Logger, init_log};
