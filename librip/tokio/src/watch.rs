//! [`watch`] records the tasks of a runtime, whoever spawns them, and when the threads of the runtime sleep.
//!
//! It translates tokio's hooks into the calls of [`librip::task::Watched`], which has the tasks.

use std::fmt;
#[cfg(tokio_unstable)]
use std::sync::Arc;

use tokio::runtime::Builder;
#[cfg(tokio_unstable)]
use tokio::runtime::TaskMeta;

#[cfg(tokio_unstable)]
use crate::runtime::{Facts, count};

/// Whether [`watch`] records all tasks of a runtime: the program was built with `--cfg tokio_unstable`.
pub const SEES_ALL_TASKS: bool = cfg!(tokio_unstable);

/// Records all tasks of a runtime, whoever spawns them, if the program is built with `--cfg tokio_unstable`:
/// connections of a server, streams of HTTP/2, background tasks of database and message clients. Each task has a slot,
/// with the place of its spawn.
///
/// Without that flag, tokio tells nobody of its tasks, and those are recorded that are spawned through this crate. Then
/// `watch` only has the threads say when they sleep, as it always does, so that the times of the polls after that are
/// exact: see [`librip::task::rested`]. [`SEES_ALL_TASKS`] says which of the two it is.
///
/// The flag is for the whole program. It is set in the file `.cargo/config.toml` of the workspace:
///
/// ```toml
/// [build]
/// rustflags = ["--cfg", "tokio_unstable"]
/// ```
///
/// An environment variable `RUSTFLAGS` replaces that line. `rustflags` of a `[target]` replace it too.
///
/// # Hooks of your own
///
/// A builder has one function for each event, the last one that it was given, and nobody can ask for it. So `watch`
/// replaces functions that were set before it, and a function that is set after it ends the recording. Give yours to
/// [`Watch`], which calls both.
///
/// # What is not seen
///
/// * Tasks of a [`LocalSet`](tokio::task::LocalSet), and the future of `block_on`, which is the main function of
///   `#[tokio::main]`. Those of this crate are: [`spawn_local`](crate::spawn_local), [`block_on`](crate::block_on()),
///   [`traced`](crate::traced).
/// * Calls of tokio's `spawn_blocking`. Those of [`spawn_blocking`](crate::spawn_blocking()) are.
/// * Tasks that were spawned before librip was started.
/// * Names, wakes, and who can wake a task. A task that was woken and is not polled looks like one that waits. With the
///   feature `schedule-latency`, and a ring with `RIP_POLLS=times` that is made before the runtime, tokio says how long
///   each task waited for its poll. Spawn what matters with [`spawn`](crate::spawn()) or [`Task`](crate::Task): it has
///   one slot, with all of these.
///
/// # Examples
///
/// ```
/// let mut builder = tokio::runtime::Builder::new_current_thread();
/// let runtime = librip_tokio::watch(&mut builder).build()?;
/// let seven = runtime.block_on(async { tokio::spawn(async { 7 }).await });
/// assert_eq!(seven.unwrap(), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
#[inline]
pub fn watch(builder: &mut Builder) -> &mut Builder {
    Watch::new().install(builder)
}

type OfThread = Box<dyn Fn() + Send + Sync>;
#[cfg(tokio_unstable)]
type OfTask = Box<dyn Fn(&TaskMeta<'_>) + Send + Sync>;

/// [`watch`] beside hooks of your own. Its methods are called as those of [`Builder`] that they replace.
///
/// Your hooks run outside of the task's turn: what they record belongs to the thread.
///
/// # Examples
///
/// ```
/// let mut builder = tokio::runtime::Builder::new_current_thread();
/// librip_tokio::Watch::new().on_thread_park(|| println!("sleeps")).install(&mut builder);
/// let runtime = builder.build()?;
/// assert_eq!(librip_tokio::block_on(&runtime, async { 7 }), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Default)]
#[must_use = "it watches nothing before it is installed"]
pub struct Watch {
    park: Option<OfThread>,
    unpark: Option<OfThread>,
    #[cfg(tokio_unstable)]
    spawn: Option<OfTask>,
    #[cfg(tokio_unstable)]
    before_poll: Option<OfTask>,
    #[cfg(tokio_unstable)]
    after_poll: Option<OfTask>,
    #[cfg(tokio_unstable)]
    terminate: Option<OfTask>,
}

impl Watch {
    /// Without hooks of your own.
    pub fn new() -> Watch {
        Watch::default()
    }

    /// See [`Builder::on_thread_park`].
    pub fn on_thread_park(self, hook: impl Fn() + Send + Sync + 'static) -> Watch {
        Watch { park: Some(Box::new(hook)), ..self }
    }

    /// See [`Builder::on_thread_unpark`].
    pub fn on_thread_unpark(self, hook: impl Fn() + Send + Sync + 'static) -> Watch {
        Watch { unpark: Some(Box::new(hook)), ..self }
    }

    /// See `Builder::on_task_spawn` of tokio. With `--cfg tokio_unstable` only.
    #[cfg(tokio_unstable)]
    pub fn on_task_spawn(self, hook: impl Fn(&TaskMeta<'_>) + Send + Sync + 'static) -> Watch {
        Watch { spawn: Some(Box::new(hook)), ..self }
    }

    /// See `Builder::on_before_task_poll` of tokio. With `--cfg tokio_unstable` only.
    #[cfg(tokio_unstable)]
    pub fn on_before_task_poll(self, hook: impl Fn(&TaskMeta<'_>) + Send + Sync + 'static) -> Watch {
        Watch { before_poll: Some(Box::new(hook)), ..self }
    }

    /// See `Builder::on_after_task_poll` of tokio. With `--cfg tokio_unstable` only.
    #[cfg(tokio_unstable)]
    pub fn on_after_task_poll(self, hook: impl Fn(&TaskMeta<'_>) + Send + Sync + 'static) -> Watch {
        Watch { after_poll: Some(Box::new(hook)), ..self }
    }

    /// See `Builder::on_task_terminate` of tokio. With `--cfg tokio_unstable` only.
    #[cfg(tokio_unstable)]
    pub fn on_task_terminate(self, hook: impl Fn(&TaskMeta<'_>) + Send + Sync + 'static) -> Watch {
        Watch { terminate: Some(Box::new(hook)), ..self }
    }

    /// Gives the hooks to a builder, in place of those that it has.
    // Inlined, so that the program says that it has tasks: see `librip::task::Watched::new`.
    #[inline]
    pub fn install(self, builder: &mut Builder) -> &mut Builder {
        #[cfg(tokio_unstable)]
        return self.install_with(builder, librip::task::Watched::new());
        #[cfg(not(tokio_unstable))]
        self.install_for_threads(builder)
    }

    fn install_for_threads(self, builder: &mut Builder) -> &mut Builder {
        let Watch { park, unpark, .. } = self;
        let with = |says: fn(), own: Option<OfThread>| {
            move || {
                says();
                if let Some(own) = &own {
                    own();
                }
            }
        };
        builder
            .on_thread_park(with(librip::task::rests, park))
            .on_thread_unpark(with(librip::task::rested, unpark))
    }

    /// A hook of the program that panics before a poll leaves the poll unrecorded, and no turn that nobody ends. So it
    /// runs before the turn, and the others after what is recorded.
    #[cfg(tokio_unstable)]
    fn install_with(mut self, builder: &mut Builder, tasks: librip::task::Watched) -> &mut Builder {
        let tasks = Arc::new(tasks);
        let (of_spawn, of_begin, of_end) = (Arc::clone(&tasks), Arc::clone(&tasks), Arc::clone(&tasks));
        let call = |own: &Option<OfTask>, task: &TaskMeta<'_>| {
            if let Some(own) = own {
                own(task);
            }
        };
        let own = self.spawn.take();
        builder.on_task_spawn(move |task| {
            // First, so that it is not that of a task which the program's hook spawns.
            if !is_recorded() {
                of_spawn.spawned(count(task.id()), task.spawned_at());
            }
            call(&own, task);
        });
        let own = self.before_poll.take();
        builder.on_before_task_poll(move |task| {
            call(&own, task);
            of_begin.poll_begins_after(count(task.id()), ready_for(task), || {
                let facts = Facts::current(Facts::of_spawned)?;
                Some((facts.number, facts.workers))
            });
        });
        #[cfg(feature = "schedule-latency")]
        if librip::task::are_polls_timed() {
            builder.track_task_schedule_latency();
        }
        let own = self.after_poll.take();
        builder.on_after_task_poll(move |task| {
            of_end.poll_ends(count(task.id()));
            call(&own, task);
        });
        let own = self.terminate.take();
        builder.on_task_terminate(move |task| {
            tasks.ended(count(task.id()));
            call(&own, task);
        });
        self.install_for_threads(builder)
    }
}

/// How long ago the task became ready, if tokio says so. It is about to be polled.
#[cfg(tokio_unstable)]
fn ready_for(_task: &TaskMeta<'_>) -> Option<std::time::Duration> {
    #[cfg(feature = "schedule-latency")]
    return _task.schedule_latency();
    #[cfg(not(feature = "schedule-latency"))]
    None
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// The calling thread spawns a task that has a slot already, until the value is dropped. It gets no other one.
pub(crate) fn spawns_recorded() -> SpawnsRecorded {
    #[cfg(tokio_unstable)]
    IS_RECORDED.set(true);
    SpawnsRecorded
}

/// See [`spawns_recorded`].
pub(crate) struct SpawnsRecorded;

#[cfg(tokio_unstable)]
impl Drop for SpawnsRecorded {
    fn drop(&mut self) {
        IS_RECORDED.set(false);
    }
}

#[cfg(tokio_unstable)]
thread_local! {
    static IS_RECORDED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Whether the task that the calling thread spawns has a slot. Those that it spawns within a hook have none.
#[cfg(tokio_unstable)]
fn is_recorded() -> bool {
    IS_RECORDED.replace(false)
}
