//! The tables: what their rows are, and what each column says. `fill` makes the rows.

use super::schema::{Moment, Row, Table, table};

table! {
    /// The columns that every table begins with: whose record the row is of, and when.
    Key = "key" {
        /// The host's name, as the program knew it; empty if unknown.
        host: String,
        /// The id of the host's boot, in hexadecimal digits.
        boot_id: Option<String>,
        /// What the program is called.
        program: String,
        /// The build id of its executable, in hexadecimal digits.
        build_id: Option<String>,
        /// The process that made the ring.
        pid: u32,
        /// The moment that the record describes: of the reading, or of the process's end.
        taken: Moment,
    }
}

table! {
    /// One row for each process: what was read, and what came of it.
    ProcessRow = "processes" {
        /// The path of its executable.
        executable: Option<String>,
        /// `alive`, `dead`, `exited` and so on, as in the output of `--json`.
        state: Option<&'static str>,
        /// Its exit status.
        exit_status: Option<i32>,
        /// When its ring was made.
        ring_made: Option<Moment>,
        /// What `read-rip check` says: `findings`, `nothing-found`, or why nothing was judged.
        outcome: &'static str,
        /// How many findings there are.
        findings: usize,
        /// How many threads have recorded, or were seen, without tasks.
        threads: usize,
        /// How many of them are present.
        present: usize,
        /// How many of those wait: for locks, conditions, units, messages, or ends of threads.
        waiting: usize,
        /// For how long the first thread that waits for a lock has waited, ns.
        longest_wait_ns: Option<u64>,
        /// How many tasks are known, those that have ended and still have slots included.
        tasks: usize,
        /// How many tasks are present.
        tasks_present: usize,
        /// How many of those are suspended.
        tasks_suspended: usize,
        /// For how long the first task that waits for a lock has waited, ns.
        tasks_longest_wait_ns: Option<u64>,
        /// How many tasks found no slot.
        tasks_refused: u64,
        /// How many locks are known.
        locks: usize,
        /// Which events have times: the value of `RIP_CLOCK`.
        clock: &'static str,
        /// How many words of histories were read.
        words: u64,
        /// How many words later words have replaced.
        overwritten: u64,
        /// How many threads found no slot.
        refused: u64,
    }
}

table! {
    /// One row for each thread that has recorded, or was seen by the kernel. Tasks have a table of their own.
    ThreadRow = "threads" {
        /// Its process: another one than `pid` if that was forked.
        thread_pid: u32,
        /// Its id.
        tid: u32,
        /// Its name.
        thread: String,
        /// `present`, `exited` or `abandoned`.
        state: &'static str,
        /// What it waits for: `lock`, `condition`, `unit` of a semaphore, a barrier or a channel, `thread`.
        waits_for: Option<&'static str>,
        /// The function of its last mark.
        function: Option<String>,
        /// The source file of its last mark.
        file: Option<String>,
        /// The line of its last mark.
        line: Option<u32>,
        /// How many locks it holds.
        holds: usize,
        /// When it recorded first.
        began: Option<Moment>,
        /// When it exited.
        exited: Option<Moment>,
        /// How many words it wrote between two readings.
        advanced: Option<u64>,
        /// How many words of its history later ones had replaced.
        overwritten: u64,
    }
}

table! {
    /// One row for each async task, blocking call and coroutine.
    TaskRow = "tasks" {
        /// Its process: another one than `pid` if that was forked.
        task_pid: u32,
        /// Its id in the tables that threads and tasks share: 2147483648 more than its number.
        tid: u32,
        /// Its number.
        number: u32,
        /// Its name.
        task: String,
        /// `async`, `blocking` or `coroutine`.
        kind: &'static str,
        /// What it does: `running` (it is polled), `ready`, `suspended` or `ended`.
        state: &'static str,
        /// Since when it does that.
        since: Option<Moment>,
        /// Whether that is exact. Otherwise it may be too early.
        is_since_exact: bool,
        /// For how long, ns.
        for_ns: Option<u64>,
        /// What it waits for: `lock`, `condition`, `unit` of a semaphore, a barrier or a channel, `thread`.
        waits_for: Option<&'static str>,
        /// What that is called.
        object: Option<String>,
        /// What its place is: `await`, `last mark`, or `made` if it is only known where it was made.
        place: Option<&'static str>,
        /// The function of its place.
        function: Option<String>,
        /// The source file of its place.
        file: Option<String>,
        /// The line of its place.
        line: Option<u32>,
        /// The thread that polls it, or polled it last.
        polled_by_tid: Option<u32>,
        /// That thread's name.
        polled_by: Option<String>,
        /// The task whose poll polls it, or did so last: its `tid`.
        within_tid: Option<u32>,
        /// The number of its runtime.
        runtime: Option<u32>,
        /// How many threads that runtime has.
        workers: Option<u32>,
        /// How often it was polled, the present poll included.
        polls: u64,
        /// How often it was woken since its last poll began, if wakes are counted.
        wakes: u64,
        /// How many could wake it when its last poll ended.
        wakers: Option<u32>,
        /// How many locks it holds.
        holds: usize,
        /// When it was made.
        began: Option<Moment>,
        /// When it ended.
        ended: Option<Moment>,
        /// How many words it wrote between two readings.
        advanced: Option<u64>,
        /// How many words of its history later ones had replaced.
        overwritten: u64,
    }
}

table! {
    /// One row for each lock that the record names.
    LockRow = "locks" {
        /// Its process.
        lock_pid: u32,
        /// Its address, in hexadecimal digits.
        address: String,
        /// What it is called.
        lock: String,
        /// Its class, if its marks say one.
        class: Option<String>,
        /// `mutex`, `rwlock`, `semaphore` and so on.
        r#type: &'static str,
        /// How many threads and tasks hold it, and futures that belong to no recorded task.
        holders: usize,
        /// How many threads and tasks wait for it, and futures that belong to no recorded task.
        waiters: usize,
        /// How many threads and tasks hold it or have held it.
        owners: usize,
        /// How many acquisitions the known histories have.
        acquisitions: u64,
        /// How many of them waited.
        contended: u64,
        /// How many tries failed.
        failed_tries: u64,
        /// How many waits that ended have a length.
        waits: usize,
        /// How long they took together, ns.
        wait_ns: u64,
        /// Half of them were no longer than this, ns.
        wait_p50_ns: Option<u64>,
        /// 99 of 100 were no longer than this, ns.
        wait_p99_ns: Option<u64>,
        /// The longest, ns.
        wait_max_ns: Option<u64>,
        /// How many holds that ended have a length.
        holds: usize,
        /// How long they took together, ns.
        hold_ns: u64,
        /// Half of them were no longer than this, ns.
        hold_p50_ns: Option<u64>,
        /// 99 of 100 were no longer than this, ns.
        hold_p99_ns: Option<u64>,
        /// The longest, ns.
        hold_max_ns: Option<u64>,
    }
}

table! {
    /// One row for each wait whose times are known, and each that goes on.
    WaitRow = "waits" {
        /// The process of its thread or task.
        thread_pid: u32,
        /// Its thread, or its task: a `tid` of either table.
        tid: u32,
        /// The name of that thread or task.
        thread: String,
        /// What it waits for: `lock`, `condition`, `unit`, or `thread` for the end of a thread or task.
        waits_for: &'static str,
        /// The lock's address; empty if it waits for an end, or if only a capture has the wait.
        address: Option<String>,
        /// What the lock, or the other thread or task, is called.
        object: String,
        /// The function that waits.
        function: Option<String>,
        /// Its source file.
        file: Option<String>,
        /// Its line.
        line: Option<u32>,
        /// When the wait began.
        began: Option<Moment>,
        /// How long it took, or has taken so far, ns.
        for_ns: Option<u64>,
        /// Whether it goes on.
        is_open: bool,
        /// If it goes on: the thread or task that holds the lock.
        holder_tid: Option<u32>,
        /// Its name.
        holder: Option<String>,
        /// The function where the holder acquired the lock.
        holder_function: Option<String>,
        /// Its source file.
        holder_file: Option<String>,
        /// Its line.
        holder_line: Option<u32>,
    }
}

table! {
    /// One row for each hold whose times are known, and each that goes on.
    HoldRow = "holds" {
        /// The process of its thread or task.
        thread_pid: u32,
        /// Its thread, or its task: a `tid` of either table.
        tid: u32,
        /// The name of that thread or task.
        thread: String,
        /// The lock's address.
        address: String,
        /// What the lock is called.
        lock: String,
        /// The function that acquired the lock.
        function: Option<String>,
        /// Its source file.
        file: Option<String>,
        /// Its line.
        line: Option<u32>,
        /// When the hold began.
        began: Option<Moment>,
        /// How long it took, or has taken so far, ns.
        for_ns: Option<u64>,
        /// Whether it goes on.
        is_open: bool,
        /// How many threads and tasks wait for the lock now, if it goes on.
        waiters: Option<usize>,
    }
}

table! {
    /// One row for each event that the program recorded with values.
    EventRow = "events" {
        /// The process of its thread or task.
        thread_pid: u32,
        /// Its thread, or its task: a `tid` of either table.
        tid: u32,
        /// The name of that thread or task.
        thread: String,
        /// What it says.
        text: String,
        /// Where, as `file:line`.
        place: Option<String>,
        /// When.
        at: Option<Moment>,
    }
}

table! {
    /// One row for each span that ended, and each that is open.
    SpanRow = "spans" {
        /// The process of its thread or task.
        thread_pid: u32,
        /// Its thread, or its task: a `tid` of either table.
        tid: u32,
        /// The name of that thread or task.
        thread: String,
        /// Its name, with its values.
        span: String,
        /// Where it ended, or began if it is open, as `file:line`.
        place: Option<String>,
        /// When it began.
        began: Option<Moment>,
        /// How long it took, or has taken so far, ns.
        for_ns: Option<u64>,
        /// Whether it is open.
        is_open: bool,
    }
}

table! {
    /// One row for each finding.
    FindingRow = "findings" {
        /// Its kind, as `read-rip check` names it.
        kind: &'static str,
        /// `suspected`, `potential` or `proven`.
        confidence: &'static str,
        /// How many threads and tasks it hurts.
        threads_hurt: usize,
        /// Since when.
        since: Option<Moment>,
        /// For how long, ns.
        for_ns: Option<u64>,
        /// What it says, in one sentence.
        summary: String,
        /// The lines of its evidence.
        evidence: String,
        /// What the first of its locks is called.
        lock: Option<String>,
        /// The function of its first location.
        function: Option<String>,
        /// The source file of that location.
        file: Option<String>,
        /// The line of that location.
        line: Option<u32>,
    }
}

table! {
    /// One row for each file of code that the process had loaded.
    ModuleRow = "modules" {
        /// Its path.
        path: String,
        /// Its build id, in hexadecimal digits.
        module_build_id: String,
        /// Where it was loaded, in hexadecimal digits: this was added to its addresses.
        load_bias: String,
        /// Whether it is the program itself.
        is_executable: bool,
    }
}

/// All tables.
pub const TABLES: [&Table; 10] = [
    ProcessRow::TABLE,
    ThreadRow::TABLE,
    TaskRow::TABLE,
    LockRow::TABLE,
    WaitRow::TABLE,
    HoldRow::TABLE,
    EventRow::TABLE,
    SpanRow::TABLE,
    FindingRow::TABLE,
    ModuleRow::TABLE,
];
