//! The arguments of `export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{RingArgs, TimeArgs};

/// What `export` writes.
#[derive(Args, Debug)]
pub struct ExportArgs {
    /// Which ring, which process, or which core file.
    #[command(flatten)]
    pub ring: RingArgs,
    /// The format
    #[arg(short, long, value_name = "FORMAT")]
    pub format: ExportFormat,
    /// The file to write, or for some formats the folder; it gets its name when it is complete [default: -, standard
    /// output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// A timeline shows at most this many threads and tasks: first those that wait for locks or hold them, then those
    /// that did the most
    #[arg(long, value_name = "COUNT", default_value = "500")]
    pub threads: usize,
    /// Numbers are of at most this many locks: those that hurt most
    #[arg(long, value_name = "COUNT", default_value = "50")]
    pub locks: usize,
    /// Where threads and tasks are now: what they wait for comes first, and then the place; for folded
    #[arg(long)]
    pub by_lock: bool,
    /// Which time a timeline shows.
    #[command(flatten)]
    pub time: TimeArgs,
}

/// A format of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A timeline, as JSON trace events: <https://ui.perfetto.dev>, chrome://tracing
    Chrome,
    /// A timeline, as a Perfetto trace: <https://ui.perfetto.dev>, `trace_processor`
    Perfetto,
    /// A timeline, and where threads and tasks are now, as a profile: <https://profiler.firefox.com>
    Firefox,
    /// Each event of each history, as a folder in the Common Trace Format: `babeltrace2`, Trace Compass
    Ctf,
    /// Who waits for whom now, as a graph: `dot -Tsvg`
    Dot,
    /// Flat tables, as lines of JSON: DuckDB, ClickHouse, jq
    Ndjson,
    /// The same tables, as Parquet files in the folder that --output names, which many exports share
    Parquet,
    /// Numbers of locks, threads, tasks and findings: Prometheus, node_exporter's textfile collector
    Openmetrics,
    /// Where threads and tasks are now, as folded stacks: `inferno-flamegraph`, `flamegraph.pl`,
    /// <https://www.speedscope.app>
    Folded,
}
