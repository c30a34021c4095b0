//! The rows of a record, table by table and thread by thread: no table is ever in memory as a whole. A task has a row
//! of its own kind, and waits and holds locks as a thread does.

use std::io;

use read_rip_files::Module;
use read_rip_model::findings::{Balance, Finding};
use read_rip_model::locations::{Limits, LocationId, is_no_function};
use read_rip_model::locks::{
    LockId, LockModel, Object, Quantiles, TaskDoes, TaskFacts, TaskPlace, ThreadId, ThreadLocks, task_does,
    task_place, task_since,
};
use read_rip_model::threads::{Losses, ThreadState};
use read_rip_report::printable;
use read_rip_report::{
    FindingText, LockNames, clock_level_name, finding_text, hex, lock_type, process_state_name,
    task_kind_name, task_state_name, thread_state_name,
};
use read_rip_ring::Snapshot;

use super::rows::{
    EventRow, FindingRow, HoldRow, Key, LockRow, ModuleRow, ProcessRow, SpanRow, TaskRow, ThreadRow, WaitRow,
};
use super::schema::{Cell, Moment, Row, Rows};
use crate::timeline::{Logged, LoggedKind, Slice, SliceKind, Timeline, of_slot};

/// A record, and what was found in it.
pub struct Record<'a> {
    pub key: Key,
    pub names: LockNames<'a>,
    /// What threads logged, ordered by slots.
    pub logged: &'a [Logged],
    /// The findings, as `check` reports them.
    pub found: &'a [Finding],
    /// What follows from them.
    pub balance: &'a Balance,
    pub snapshot: &'a Snapshot,
    /// Whether the process lives.
    pub liveness: Option<&'a read_rip_evidence::process::Liveness>,
    /// How much of all histories is known.
    pub losses: Losses,
    /// Waits, holds and spans of this time.
    pub limits: Limits,
    /// When the host was started, ns since 1970; `None`: not known.
    pub boot_ns: Option<u64>,
}

/// Gives all rows of a record to `rows`. The row of the process comes last: where it is, all others are.
///
/// # Errors
///
/// Those of `rows`.
pub fn fill(record: &Record<'_>, rows: &mut dyn Rows) -> io::Result<()> {
    let key = record.key.cells();
    let mut filler = Filler { record, model: record.names.model, key: &key, rows, locks: Vec::new() };
    filler.locks = filler.model.locks.iter().map(|lock| record.names.lock(lock)).collect();
    filler.threads()?;
    filler.locks()?;
    filler.findings()?;
    record.snapshot.modules.iter().try_for_each(|module| filler.module(module))?;
    filler.process()
}

struct Filler<'a, 'r> {
    record: &'a Record<'a>,
    model: &'a LockModel,
    key: &'a [Cell<'a>],
    rows: &'r mut dyn Rows,
    locks: Vec<String>,
}

/// Where something was: the columns `function`, `file` and `line`.
#[derive(Default)]
struct Place {
    function: Option<String>,
    file: Option<String>,
    line: Option<u32>,
}

/// A length of time in which a thread waited for something, or held it.
struct Stretch {
    location: Option<LocationId>,
    began: Option<Moment>,
    for_ns: Option<u64>,
    is_open: bool,
}

/// What an object of a wait is, as tables name it.
fn kind_name(object: Object) -> &'static str {
    match object {
        Object::Lock(_) => "lock",
        Object::Condition(_) => "condition",
        Object::Unit(_) => "unit",
        Object::End(_) => "thread",
    }
}

impl Filler<'_, '_> {
    fn row<R: Row>(&mut self, row: &R) -> io::Result<()> {
        self.rows.row(R::TABLE, self.key, &row.cells())
    }

    fn moment(&self, since_boot_ns: u64) -> Option<Moment> {
        self.record.boot_ns?.checked_add(since_boot_ns).map(Moment)
    }

    fn place(&self, id: Option<LocationId>) -> Place {
        let Some(id) = id else { return Place::default() };
        let location = self.record.names.locations.get(id);
        let source = location.users_source();
        let (file, line) = source.map(|(file, line)| (printable(file).into_owned(), line)).unzip();
        let function = location.users_function();
        let function = (!is_no_function(&function)).then(|| printable(&function).into_owned());
        Place { function, file, line }
    }

    fn threads(&mut self) -> io::Result<()> {
        for (id, thread) in self.model.threads.iter().enumerate() {
            let logged = of_slot(self.record.logged, thread.slot);
            let timeline = Timeline::of(id, logged, self.model);
            match thread.task.as_deref() {
                Some(task) => self.task(thread, task)?,
                None => self.thread(thread)?,
            }
            let limits = self.record.limits;
            for slice in &timeline.slices {
                if limits.overlap(Some(slice.begin_ns), Some(slice.end_ns)) {
                    self.slice(id, slice)?;
                }
            }
            self.undated(id)?;
            for logged in logged {
                self.logged(thread, logged)?;
            }
        }
        Ok(())
    }

    fn thread(&mut self, thread: &ThreadLocks) -> io::Result<()> {
        let Place { function, file, line } = self.place(thread.last);
        let began = Some(thread.claimed_ns).filter(|&ns| ns > 0).and_then(|ns| self.moment(ns));
        self.row(&ThreadRow {
            thread_pid: thread.pid,
            tid: thread.tid,
            thread: printable(&thread.name).into_owned(),
            state: thread_state_name(thread.state),
            waits_for: thread.awaited().map(|awaited| kind_name(awaited.object())),
            function,
            file,
            line,
            holds: self.model.certain_holds(thread).count(),
            began,
            exited: thread.exited_ns.and_then(|ns| self.moment(ns)),
            advanced: thread.advanced,
            overwritten: thread.overwritten,
        })
    }

    fn task(&mut self, thread: &ThreadLocks, task: &TaskFacts) -> io::Result<()> {
        let (place, does) = (task_place(thread, task), task_does(thread, task));
        let Place { function, file, line } = self.place(place.location);
        let (since_ns, is_at_most) = task_since(thread, task);
        let began = Some(thread.claimed_ns).filter(|&ns| ns > 0).and_then(|ns| self.moment(ns));
        let awaited = thread.awaited().map(|awaited| awaited.object());
        let by = task.thread.map(|by| &self.model.threads[by]);
        self.row(&TaskRow {
            task_pid: thread.pid,
            tid: thread.tid,
            number: task.number,
            task: printable(&thread.name).into_owned(),
            kind: task_kind_name(task.kind),
            state: task_state_name(does),
            since: since_ns.and_then(|ns| self.moment(ns)),
            is_since_exact: !is_at_most,
            for_ns: since_ns
                .filter(|_| does != TaskDoes::Ended)
                .and_then(|ns| self.model.now_ns?.checked_sub(ns)),
            waits_for: awaited.map(kind_name),
            object: awaited.map(|awaited| self.object(awaited)),
            place: place.location.map(|_| match place {
                TaskPlace { is_await: true, .. } => "await",
                TaskPlace { is_where_made: true, .. } => "made",
                _ => "last mark",
            }),
            function,
            file,
            line,
            polled_by_tid: by.map(|by| by.tid),
            polled_by: by.map(|by| printable(&by.name).into_owned()),
            within_tid: task.outer.map(|outer| self.model.threads[outer].tid),
            runtime: task.runtime.map(|runtime| runtime.number),
            workers: task.runtime.map(|runtime| runtime.workers).filter(|&workers| workers > 0),
            polls: task.polls,
            wakes: task.wakes,
            wakers: task.wakers,
            holds: self.model.certain_holds(thread).count(),
            began,
            ended: thread.exited_ns.and_then(|ns| self.moment(ns)),
            advanced: thread.advanced,
            overwritten: thread.overwritten,
        })
    }

    /// What that for which a thread or task waits is called.
    fn object(&self, awaited: Object) -> String {
        match awaited {
            Object::Lock(lock) | Object::Condition(lock) | Object::Unit(lock) => self.locks[lock].clone(),
            Object::End(other) => self.record.names.thread(other),
        }
    }

    fn slice(&mut self, id: ThreadId, slice: &Slice) -> io::Result<()> {
        let stretch = Stretch {
            location: slice.location,
            began: self.moment(slice.begin_ns),
            for_ns: Some(slice.end_ns.saturating_sub(slice.begin_ns)),
            is_open: slice.is_open,
        };
        match slice.kind {
            SliceKind::Wait(object) => self.wait(id, object, &stretch),
            SliceKind::Hold(lock) => self.hold(id, lock, &stretch),
            // What the thread logged has the place too, and so has the row of a task. A hold without a known begin has
            // a row without one.
            SliceKind::Span(_) | SliceKind::Kept(_) | SliceKind::Task(_) | SliceKind::UndatedHold { .. } => {
                Ok(())
            }
        }
    }

    /// What goes on without a known begin has a row too: it may be what everybody waits for.
    fn undated(&mut self, id: ThreadId) -> io::Result<()> {
        let thread = &self.model.threads[id];
        let since = |location| Stretch { location, began: None, for_ns: None, is_open: true };
        for hold in self.model.certain_holds(thread).filter(|hold| hold.since_ns.is_none()) {
            self.hold(id, hold.lock, &since(hold.location))?;
        }
        for awaited in thread.all_awaited().iter().filter(|awaited| awaited.since_ns().is_none()) {
            self.wait(id, awaited.object(), &since(awaited.location()))?;
        }
        Ok(())
    }

    fn wait(&mut self, id: ThreadId, awaited: Object, stretch: &Stretch) -> io::Result<()> {
        let thread = &self.model.threads[id];
        let Place { function, file, line } = self.place(stretch.location);
        let lock = awaited.lock().map(|lock| &self.model.locks[lock]);
        let hold = match awaited {
            Object::Lock(_) if stretch.is_open => lock.and_then(|lock| lock.certain_holders().first()),
            _ => None,
        };
        let holder = hold.map(|hold| &self.model.threads[hold.thread]);
        let held_at = self.place(hold.and_then(|hold| hold.location));
        let object = self.object(awaited);
        self.row(&WaitRow {
            thread_pid: thread.pid,
            tid: thread.tid,
            thread: printable(&thread.name).into_owned(),
            waits_for: kind_name(awaited),
            address: lock.map(|lock| format!("{:#x}", lock.address)),
            object,
            function,
            file,
            line,
            began: stretch.began,
            for_ns: stretch.for_ns,
            is_open: stretch.is_open,
            holder_tid: holder.map(|holder| holder.tid),
            holder: holder.map(|holder| printable(&holder.name).into_owned()),
            holder_function: held_at.function,
            holder_file: held_at.file,
            holder_line: held_at.line,
        })
    }

    fn hold(&mut self, id: ThreadId, lock: LockId, stretch: &Stretch) -> io::Result<()> {
        let thread = &self.model.threads[id];
        let Place { function, file, line } = self.place(stretch.location);
        let of = &self.model.locks[lock];
        self.row(&HoldRow {
            thread_pid: thread.pid,
            tid: thread.tid,
            thread: printable(&thread.name).into_owned(),
            address: format!("{:#x}", of.address),
            lock: self.locks[lock].clone(),
            function,
            file,
            line,
            began: stretch.began,
            for_ns: stretch.for_ns,
            is_open: stretch.is_open,
            waiters: stretch.is_open.then_some(of.waiting()),
        })
    }

    fn logged(&mut self, thread: &ThreadLocks, logged: &Logged) -> io::Result<()> {
        let name = printable(&thread.name).into_owned();
        let place = Some(logged.place.clone()).filter(|place| !place.is_empty());
        let (thread_pid, tid, text) = (thread.pid, thread.tid, logged.text.clone());
        let (times, is_open) = match logged.kind {
            LoggedKind::Event(at_ns) => {
                let at = at_ns.and_then(|ns| self.moment(ns));
                return self.row(&EventRow { thread_pid, tid, thread: name, text, place, at });
            }
            LoggedKind::Span(times) => (times, false),
            LoggedKind::Open(since_ns) => {
                let now_ns = thread.exited_ns.or(self.model.now_ns);
                (since_ns.map(|since| (since, now_ns.unwrap_or(since).max(since))), true)
            }
            LoggedKind::Wait(begin_ns, end_ns) => {
                let began = self.moment(begin_ns);
                let for_ns = Some(end_ns.saturating_sub(begin_ns));
                return self.row(&WaitRow {
                    thread_pid,
                    tid,
                    thread: name,
                    waits_for: "lock",
                    address: None,
                    object: text,
                    function: None,
                    file: None,
                    line: None,
                    began,
                    for_ns,
                    is_open: false,
                    holder_tid: None,
                    holder: None,
                    holder_function: None,
                    holder_file: None,
                    holder_line: None,
                });
            }
        };
        self.row(&SpanRow {
            thread_pid,
            tid,
            thread: name,
            span: text,
            place,
            began: times.and_then(|(begin, _)| self.moment(begin)),
            for_ns: times.map(|(begin, end)| end.saturating_sub(begin)),
            is_open,
        })
    }

    fn locks(&mut self) -> io::Result<()> {
        for (id, lock) in self.model.locks.iter().enumerate() {
            let (waits, holds) = (&lock.record.waits_ns, &lock.record.holds_ns);
            let (of_waits, of_holds) = (Quantiles::of(waits), Quantiles::of(holds));
            self.row(&LockRow {
                lock_pid: lock.pid,
                address: format!("{:#x}", lock.address),
                lock: self.locks[id].clone(),
                class: lock.class.as_deref().map(|class| printable(class).into_owned()),
                r#type: lock_type(lock),
                holders: lock.holding(),
                waiters: lock.waiting(),
                owners: lock.record.owners,
                acquisitions: lock.record.acquisitions,
                contended: lock.record.contended,
                failed_tries: lock.record.failed_tries,
                waits: waits.len(),
                wait_ns: lock.record.waited_ns(),
                wait_p50_ns: of_waits.map(|of| of.p50_ns),
                wait_p99_ns: of_waits.map(|of| of.p99_ns),
                wait_max_ns: of_waits.map(|of| of.max_ns),
                holds: holds.len(),
                hold_ns: lock.record.held_ns(),
                hold_p50_ns: of_holds.map(|of| of.p50_ns),
                hold_p99_ns: of_holds.map(|of| of.p99_ns),
                hold_max_ns: of_holds.map(|of| of.max_ns),
            })?;
        }
        Ok(())
    }

    fn findings(&mut self) -> io::Result<()> {
        for finding in self.record.found {
            let FindingText { summary, evidence, .. } = finding_text(finding, &self.record.names);
            let Place { function, file, line } = self.place(finding.mentions.locations.first().copied());
            self.row(&FindingRow {
                kind: finding.kind.name(),
                confidence: finding.confidence.name(),
                threads_hurt: finding.threads_hurt,
                since: finding.since_ns.and_then(|ns| self.moment(ns)),
                for_ns: finding.for_ns,
                summary,
                evidence: evidence.join("\n"),
                lock: finding.mentions.locks.first().map(|&lock| self.locks[lock].clone()),
                function,
                file,
                line,
            })?;
        }
        Ok(())
    }

    fn module(&mut self, module: &Module) -> io::Result<()> {
        self.row(&ModuleRow {
            path: printable(&module.path.to_string_lossy()).into_owned(),
            module_build_id: hex(&module.build_id),
            load_bias: format!("{:#x}", module.load_bias),
            is_executable: module.is_executable,
        })
    }

    fn process(&mut self) -> io::Result<()> {
        let Record { snapshot, losses, liveness, .. } = self.record;
        let header = snapshot.header.as_ref();
        let present = || self.model.threads.iter().filter(|thread| thread.state == ThreadState::Present);
        let present_threads = || present().filter(|thread| thread.task.is_none());
        let tasks = || present().filter_map(|thread| Some(task_does(thread, thread.task.as_deref()?)));
        let balance = self.record.balance;
        self.row(&ProcessRow {
            executable: snapshot
                .program()
                .map(|module| printable(&module.path.to_string_lossy()).into_owned()),
            state: header.zip(*liveness).map(|(header, liveness)| process_state_name(header, liveness)),
            exit_status: header.and_then(|header| header.exit_status()),
            ring_made: header.map(|header| Moment(header.created_realtime_ns)),
            outcome: balance.outcome.name(),
            findings: self.record.found.len(),
            threads: self.model.threads.len() - self.model.tasks,
            present: present_threads().count(),
            waiting: present_threads().filter(|thread| thread.is_blocked()).count(),
            longest_wait_ns: balance.longest_ns,
            tasks: self.model.tasks,
            tasks_present: tasks().count(),
            tasks_suspended: tasks().filter(|&does| does == TaskDoes::Suspended).count(),
            tasks_longest_wait_ns: balance.tasks.longest_ns,
            tasks_refused: self.model.tasks_refused,
            locks: self.model.locks.len(),
            clock: clock_level_name(header.and_then(|header| header.clock).map(|clock| clock.level)),
            words: losses.words,
            overwritten: losses.overwritten,
            refused: header.map_or(0, |header| header.threads_refused()),
        })
    }
}
