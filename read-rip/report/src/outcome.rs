//! Why a process was not judged: one sentence for each outcome, which all views have.

use read_rip_evidence::target::Hidden;
use read_rip_model::findings::{
    Balance, BesideTimers, EmptyPool, Finding, Framework, HeldAtEnd, HelperFact, KeptLock, ManagedLock,
    MissingParty, Outcome, RunningOn, SilentRequests, SuspendedTasks, Unanswered, UnrecordedFutures, Unseen,
    WaitingJobs, doing, executors, pool_at,
};
use read_rip_model::locations::LocationId;
use read_rip_model::locks::{FormerClients, PoolAwaits, Seen, ThreadId};

use super::machine::brief;
use super::names::LockNames;
use super::printable::printable;
use super::units::{agree, counted, duration, lasted_at_least};

/// Why nothing was judged: the sentence that every view has, and what a full report adds to it.
pub(super) struct Reason {
    /// `not judged: all tasks wait ...`.
    pub(super) sentence: String,
    /// Continues the sentence; may be empty.
    pub(super) more: String,
}

/// The reason for an outcome; `None` if there was a judgement.
pub(super) fn reason(balance: &Balance, names: &LockNames<'_>) -> Option<Reason> {
    let model = names.model;
    let reason = |sentence: &str, more: &str| Reason { sentence: sentence.to_owned(), more: more.to_owned() };
    Some(match balance.outcome {
        Outcome::Findings | Outcome::NothingFound => return None,
        Outcome::NothingRecorded if model.is_recorded() => {
            reason("nothing to judge: the record has no locks", "")
        }
        Outcome::NothingRecorded => reason("nothing to judge: nothing is known of the threads", ""),
        Outcome::Hidden => reason(&hidden(names), ""),
        Outcome::OtherLocks => match model.runtime {
            Some(runtime) => {
                let more = match model.is_final {
                    true => String::new(),
                    false => format!("; {}", runtime.advice(model.runtime_pid.unwrap_or(model.pid))),
                };
                reason(&unseen(Unseen::Locks(runtime)), &more)
            }
            None => reason("not judged: the locks of a runtime are not seen", ""),
        },
        Outcome::UnseenTasks => {
            let executor = executors(model).next().unwrap_or("an executor");
            match model.knows_awaits {
                true => reason(
                    &format!("not judged: what the async tasks of {executor} wait for is seen only in part"),
                    ", in the memory of the process",
                ),
                false => reason(&unseen(Unseen::Tasks(executor)), ""),
            }
        }
        Outcome::UnrecordedFutures => reason(
            "not judged: futures hold or wait for locks, and belong to no recorded task",
            ": any thread may poll them, so who waits for whom is not known",
        ),
        Outcome::Unreadable => {
            let waiting = names.seen.map_or(0, |seen| seen.standings.unreadable());
            let what = if names.seen.is_some_and(|seen| seen.standings.is_final) {
                "the core file does not have it"
            } else {
                "its file may have been truncated"
            };
            let waiting = counted(waiting as u64, "thread");
            let sentence =
                format!("not judged: {waiting} sleep at memory that cannot be read, because {what}");
            reason(&sentence, "")
        }
        Outcome::AllTasksWait => reason(
            "not judged: all tasks wait for one another, or for something that is not recorded",
            ", such as a main future; `librip::task::traced` makes a task of it",
        ),
        Outcome::HeldAtEnd => held_at_end(balance.held_at_end?, names),
        Outcome::EmptyPool => match (balance.empty_pool, &balance.suspended_tasks) {
            (Some(of), _) => empty_pool(of, names),
            (None, Some(of)) => suspended_tasks(of, names),
            (None, None) => pool_awaits(balance.pool_awaits.as_ref()?, names),
        },
        Outcome::ManagedLock => match balance.managed_lock {
            Some(own) => managed_lock(own, names),
            None => server_lock(balance.helpers.iter().find(|helper| helper.server.is_some())?)?,
        },
        Outcome::RunningOn => running_on(balance.running_on?, names),
        Outcome::WaitingJobs => waiting_jobs(balance.waiting_jobs?, names),
        Outcome::BesideTimers | Outcome::BesideInput => beside_timers(balance.beside_timers?, names),
        Outcome::KeptLock => kept_lock(balance.kept_lock?, names),
        Outcome::StuckHelper => {
            stuck_helper(balance.helpers.iter().find(|helper| helper.does == "waits-for-itself")?)
        }
        Outcome::ShuttingDown => former_clients(balance.former_clients.as_ref()?),
        Outcome::OnlyItself => reason(
            "not judged: all threads wait for one another, or for events that nobody outside of the process brings",
            ", and what these tasks wait for is recorded only as far as it says here",
        ),
        Outcome::Unanswered => unanswered(balance.tasks.unanswered?, names),
        Outcome::MissingParty => missing_party(balance.missing_party?, names),
        Outcome::SilentRequests => silent_requests(balance.tasks.silent?, names),
        Outcome::OneMoment => {
            let waiting = counted(balance.waiting_in_core as u64, "thread");
            reason(
                &format!("not judged: {waiting} waited for locks, and a core file is one moment"),
                ": what keeps them may have gone on; a core file of a later moment, or `read-rip check` of the \
                 process while it lives, tells",
            )
        }
        Outcome::AllWorkersBusy => reason(
            "not judged: all workers of an executor were in polls when the process died",
            ", and if that lasted, nothing else of it could run",
        ),
        Outcome::WorkersBusy => reason(
            "not judged: workers of an executor were in polls when the process died, and tasks were ready",
            ", and if that lasted, nobody polled these",
        ),
        Outcome::RareWorkersBusy => reason(
            "not judged: when the process died, workers were awake that had slept nearly all of the time before",
            ", so what they did may have been stuck",
        ),
        Outcome::WaitsWithinPoll => reason(
            "not judged: polls or calls of tasks waited and had not returned when the process died",
            ", and if that lasted, tasks that need their threads were stuck",
        ),
        Outcome::AllWait if model.is_recorded() && model.seen.is_empty() => reason(
            "not judged: all recorded threads wait, and the record does not say who could wake them",
            "",
        ),
        Outcome::AllWait => {
            let more = match model.is_final {
                true => String::new(),
                false => format!("; next: read-rip stacks {}", model.pid),
            };
            reason("not judged: all threads wait, and read-rip does not know who could wake them", &more)
        }
    })
}

/// How to make recorded tasks of the futures that belong to none, as lines: what records most comes first.
fn recipe(of: &UnrecordedFutures) -> Vec<&'static str> {
    let is_tokio = of.executor.is_none_or(|executor| executor == "tokio");
    if !is_tokio && of.frameworks.is_empty() {
        return vec!["next: wrap futures in librip::task::traced where they are spawned"];
    }
    if of.knows_requests {
        return vec!["next: spawn them with librip_tokio::spawn, or wrap them in librip_tokio::traced"];
    }
    let mut lines = Vec::new();
    if !of.is_watched && !of.frameworks.contains(&Framework::Actix) {
        lines.push(
            "next: record all tasks: build the program with --cfg tokio_unstable, and its runtime with \
             #[librip_tokio::main] (feature macros) or librip_tokio::watch",
        );
    }
    lines.extend(of.frameworks.iter().map(|framework| match framework {
        Framework::Axum => {
            "or make a task of each request: router.layer(librip_tokio::layer()), after its routes (feature axum)"
        }
        Framework::Tonic => "or make a task of each call: Server::builder().layer(librip_tokio::layer()) (feature tower)",
        Framework::Actix => {
            "next: make a task of each request: \
             App::new().wrap_fn(|request, service| librip_tokio::traced(service.call(request)))"
        }
        Framework::Hyper => {
            "or make a task of each request: service_fn(move |request| librip_tokio::traced(handle(request)))"
        }
    }));
    if of.frameworks.is_empty() {
        lines.push("or spawn futures with librip_tokio::spawn, and those of a LocalSet with librip_tokio::spawn_local");
    }
    lines
}

/// How much is not judged, because it is of futures that belong to no recorded task, and what to do, as lines.
pub fn of_futures(of: &UnrecordedFutures, names: &LockNames<'_>) -> Vec<String> {
    let what = match (of.events, of.is_without_locks) {
        (1, false) => {
            "1 acquisition or wait is that of a future which belongs to no recorded task".to_owned()
        }
        (1, true) => "1 wait, for no lock, is that of a future which belongs to no recorded task".to_owned(),
        (events, false) => {
            format!("{events} acquisitions and waits are those of futures which belong to no recorded task")
        }
        (events, true) => {
            format!("{events} waits, for no lock, are those of futures which belong to no recorded task")
        }
    };
    let place = of.last.map(|at| format!(", the last at {}", names.location(at))).unwrap_or_default();
    [what + &place].into_iter().chain(recipe(of).into_iter().map(|line| format!("    {line}"))).collect()
}

/// That a process is not judged, because it has something that this reader does not see.
pub fn unseen(of: Unseen) -> String {
    match of {
        Unseen::Locks(runtime) => format!("not judged: {} are not seen", runtime.unseen()),
        Unseen::Tasks(executor) => {
            format!("not judged: what the async tasks of {executor} wait for is not seen")
        }
    }
}

/// The sentence for an outcome; `None` if there was a judgement.
pub fn not_judged(balance: &Balance, names: &LockNames<'_>) -> Option<String> {
    reason(balance, names).map(|reason| reason.sentence)
}

/// Who held a lock when the process died.
fn held_at_end(of: HeldAtEnd, names: &LockNames<'_>) -> Reason {
    let HeldAtEnd { lock, hold, last, waiting, others, for_ns } = of;
    let lock = names.lock(&names.model.locks[lock]);
    let lasted = lasted_at_least(for_ns);
    let holder = names.thread(hold.thread);
    let waited = match (waiting, others) {
        (1, 1) => "the only other thread that uses it waited".to_owned(),
        (2, 2) => "both other threads that use it waited".to_owned(),
        (waiting, others) if waiting >= others => format!("all {waiting} other threads that use it waited"),
        (waiting, others) => format!("{waiting} of the {others} other threads that use it waited"),
    };
    let sentence =
        format!("not judged: {holder} held {lock} when the process died, and {waited} for it, {lasted}");
    let acquired = hold.location.map(|at| format!("acquired it at {}", names.location(at)));
    let last = last.map(|at| format!("was last at {}", names.location(at)));
    let did: Vec<String> = acquired.into_iter().chain(last).collect();
    let more = match did.as_slice() {
        [] => String::new(),
        did => format!("; {holder} {}: if it was stuck there, the others were too", did.join(" and ")),
    };
    Reason { sentence, more }
}

/// Who waits for an object of a pool.
fn empty_pool(of: EmptyPool, names: &LockNames<'_>) -> Reason {
    let EmptyPool { threads, first, location, for_ns } = of;
    let wait = |seen: Seen| names.seen?.of(&seen).threads.get(seen.index)?.wait.as_ref()?.construct;
    let pool = names.model.threads[first].seen.and_then(wait).map(|pool| pool.name);
    let pool = pool.or_else(|| pool_at(names.locations.get(location?)));
    let pool = pool.map_or_else(String::new, |pool| format!(" ({pool})"));
    let (counted, is_dead) = (counted(threads as u64, "thread"), names.model.is_final);
    let waits = if is_dead { "waited" } else { agree(threads, "waits", "wait") };
    let at_death = if is_dead { " when the process died" } else { "" };
    let (lasted, at) = (lasted(for_ns), place(location, names));
    Reason {
        sentence: format!(
            "not judged: {counted} {waits} for an object of a pool{pool}{at_death}, with a time limit{lasted}"
        ),
        more: format!(
            "; {}{at}: who has the objects is not recorded, and if it is these threads, none is given back before a \
             time limit ends",
            names.thread(first)
        ),
    }
}

/// Which tasks await an object of a pool.
fn pool_awaits(of: &PoolAwaits, names: &LockNames<'_>) -> Reason {
    let PoolAwaits { pool, tasks, function, file, line, for_ns } = of;
    let function = function.as_deref().map_or("unknown".into(), printable);
    let at = file.as_deref().zip(*line).map(|(file, line)| names.texts.source_line(file, line));
    let at = at.map_or_else(String::new, |at| format!(", at {at}"));
    let (counted, wait) = (counted(*tasks as u64, "task"), agree(*tasks, "waits", "wait"));
    Reason {
        sentence: format!("not judged: {counted} {wait} for an object of a pool ({pool}){}", lasted(*for_ns)),
        more: format!(
            "; each task that is in {function} does{at}: the record does not say who has the objects; if these tasks \
             have them, they get one only when a time limit ends"
        ),
    }
}

/// Which tasks may have awaited an object of a pool.
fn suspended_tasks(of: &SuspendedTasks, names: &LockNames<'_>) -> Reason {
    let &SuspendedTasks { tasks, made_at, for_ns, ref pools, .. } = of;
    let (counted, was) = (counted(tasks as u64, "task"), agree(tasks, "was", "were"));
    Reason {
        sentence: format!(
            "not judged: {counted}, made at {}, {was} suspended when the process died{}, and the record does not say \
             for what",
            names.location(made_at),
            lasted(for_ns)
        ),
        more: format!(
            "; the program has a pool ({}): if these tasks have its objects and await more, they get one only when a \
             time limit ends; `librip::task::at` names such an await, so that `read-rip tasks` shows it",
            pools.join(", ")
        ),
    }
}

/// `, for at least 2.0 s`; nothing if that is not known.
fn lasted(for_ns: Option<u64>) -> String {
    for_ns.map_or_else(String::new, |for_ns| format!(", {}", lasted_at_least(Some(for_ns))))
}

/// ` at transfer bank.c:14`; nothing if that is not known.
fn place(location: Option<LocationId>, names: &LockNames<'_>) -> String {
    location.map_or_else(String::new, |at| format!(" at {}", names.location(at)))
}

/// Who waits for a lock of a database.
fn managed_lock(of: ManagedLock, names: &LockNames<'_>) -> Reason {
    let ManagedLock { threads, first, waits_for, location, for_ns, manager } = of;
    let (counted, waits) = (counted(threads as u64, "thread"), agree(threads, "waits", "wait"));
    let (lasted, at) = (lasted(for_ns), place(location, names));
    let who = if threads == 1 { String::new() } else { format!("{}{at}; ", names.thread(first)) };
    Reason {
        sentence: format!("not judged: {counted} {waits} for {waits_for}{lasted}"),
        more: format!("; {who}{}", manager.advice(names.model.pid)),
    }
}

/// Who waits for a server whose threads wait for locks of its own.
fn server_lock(of: &HelperFact) -> Option<Reason> {
    let server = of.server?;
    let (counted, waits) = (counted(of.threads as u64, "thread"), agree(of.threads, "waits", "wait"));
    let awaited = server.manager.awaited();
    let which = match (server.threads, server.of) {
        (_, 1) => format!("which waits for {awaited}"),
        (1, of) => format!("1 of whose {of} threads waits for {awaited}"),
        (threads, of) => format!("{threads} of whose {of} threads wait for {awaited}"),
    };
    Some(Reason {
        sentence: format!("not judged: {counted} {waits} for {}[{}], {which}", printable(&of.name), of.pid),
        more: format!("; {}", server.manager.advice(server.own_pid)),
    })
}

/// Which requests wait for what is not recorded.
fn silent_requests(of: SilentRequests, names: &LockNames<'_>) -> Reason {
    let SilentRequests { count, first, for_ns } = of;
    let (counted, has) = (counted(count as u64, "request"), agree(count, "has", "have"));
    let lasted = lasted_at_least(Some(for_ns));
    if let Some(awaited) = names.model.threads[first].awaited() {
        let what = awaited.lock().map(|lock| names.lock(&names.model.locks[lock]));
        return Reason {
            sentence: format!(
                "not judged: {counted} {has} waited {lasted}, and who could let {} go on is not known",
                agree(count, "it", "them")
            ),
            more: format!(
                "; the longest is {}: it waits for {}{}",
                names.thread(first),
                what.as_deref().unwrap_or("something"),
                place(awaited.location(), names)
            ),
        };
    }
    Reason {
        sentence: format!(
            "not judged: {counted} {has} lasted {lasted}, and what {} for is not recorded",
            agree(count, "it waits", "they wait")
        ),
        more: format!(
            "; the longest is {}: it may wait for an object of a pool, an answer, or a time; \
             `librip::task::at` names such an await, so that `read-rip tasks` shows it",
            names.thread(first)
        ),
    }
}

/// Who waits at a barrier, and who does not come any more.
fn missing_party(of: MissingParty, names: &LockNames<'_>) -> Reason {
    let MissingParty { lock, waiting, round, last, for_ns, ended } = of;
    let model = names.model;
    let verb = if model.is_final { "waited" } else { agree(waiting, "waits", "wait") };
    let at_death = if model.is_final { " when the process died" } else { "" };
    let at = model.threads[last].awaited().and_then(|awaited| awaited.location());
    Reason {
        sentence: format!(
            "not judged: {waiting} of the {round} that {} takes {verb} there{at_death}{}, and {}, which has used it, \
             has ended",
            names.lock(&model.locks[lock]),
            lasted(for_ns.filter(|&for_ns| for_ns > 0)),
            names.thread(ended)
        ),
        more: format!(
            "; {} came last{}: nobody is known to come in its place",
            names.thread(last),
            place(at, names)
        ),
    }
}

/// Who waits for answers, and who has not given them.
fn unanswered(of: Unanswered, names: &LockNames<'_>) -> Reason {
    let Unanswered { count, first, answerer, for_ns } = of;
    let model = names.model;
    let is_thread = |id: ThreadId| model.threads[id].task.is_none();
    let what = if is_thread(first) { "thread" } else { "task" };
    let counted = counted(count as u64, what);
    let (answers, answerer) = (agree(count, "an answer", "answers"), names.thread(answerer));
    let (verb, which) = match model.is_final {
        true => ("waited", "which waited for messages when the process died"),
        false => (agree(count, "waits", "wait"), "which waits for messages"),
    };
    let at = model.threads[first].awaited().and_then(|awaited| awaited.location());
    let longest = if count == 1 { "it is" } else { "the longest is" };
    Reason {
        sentence: format!(
            "not judged: {counted} {verb} for {answers} of {answerer}, {which}{}",
            lasted(for_ns.filter(|&for_ns| for_ns > 0))
        ),
        more: format!(
            "; {longest} {}{}: if {answerer} has handed the {} to nobody, nobody answers",
            names.thread(first),
            place(at, names),
            agree(count, "request", "requests")
        ),
    }
}

/// What a server may wait for that is shutting down.
fn former_clients(of: &FormerClients) -> Reason {
    let FormerClients { at, count } = of;
    let (counted, are) = (counted(*count as u64, "client"), agree(*count, "is", "are"));
    Reason {
        sentence: format!(
            "not judged: {counted} {are} still connected at {at}, where nobody listens any more"
        ),
        more: ", and a process that shuts down waits until they leave, unless it has a time limit".to_owned(),
    }
}

/// Who runs without pause while all others wait.
fn running_on(of: RunningOn, names: &LockNames<'_>) -> Reason {
    let RunningOn { threads, first, location, last_call, is_at_spin_lock, others, for_ns } = of;
    let (counted, runs) = (counted(threads as u64, "thread"), agree(threads, "runs", "run"));
    let waiting = match others {
        0 => "there is no other one".to_owned(),
        1 => {
            format!("the only other one waits for a thread of the process, {}", lasted_at_least(Some(for_ns)))
        }
        others => format!("all {others} others wait for one another, {}", lasted_at_least(Some(for_ns))),
    };
    let first = names.thread(first);
    let advice = || {
        format!("read-rip check --stop {} says where, and stops each thread for a moment", names.model.pid)
    };
    let place = match (location, last_call) {
        (Some(at), _) => format!("{first} was at {}", names.location(at)),
        (None, Some(at)) => {
            let of = if is_at_spin_lock { ", of pthread_spin_lock," } else { "" };
            format!("{first} made its last call{of} at {}; {}", names.location(at), advice())
        }
        (None, None) => advice(),
    };
    Reason {
        sentence: format!("not judged: {counted} {runs} without pause, and {waiting}"),
        more: format!(
            ": {} or {} in a loop is not known; {place}",
            agree(threads, "whether it computes", "whether they compute"),
            agree(threads, "waits", "wait")
        ),
    }
}

/// Which threads of a pool wait within jobs.
fn waiting_jobs(of: WaitingJobs, names: &LockNames<'_>) -> Reason {
    let WaitingJobs { threads, pool, first, location, doing: does, for_ns } = of;
    let (pool, at) = (names.location(pool), place(location, names));
    let sentence = match threads {
        1 => format!("the only thread that runs jobs at {pool} waits within its job"),
        2 => format!("both threads that run jobs at {pool} wait within their jobs"),
        threads => format!("all {threads} threads that run jobs at {pool} wait within their jobs"),
    };
    Reason {
        sentence: format!("not judged: {sentence}{}", lasted(for_ns)),
        more: format!(
            "; {} {}{at}: if it needs a job that has not begun, no thread is left to run that",
            names.thread(first),
            doing(does, 1)
        ),
    }
}

/// Who waits for a process all of whose threads wait.
fn stuck_helper(of: &HelperFact) -> Reason {
    let (counted, waits) = (counted(of.threads as u64, "thread"), agree(of.threads, "waits", "wait"));
    Reason {
        sentence: format!(
            "not judged: {counted} {waits} for {}[{}], whose threads all wait for one another",
            printable(&of.name),
            of.pid
        ),
        more: format!("; next: read-rip check {}", of.pid),
    }
}

/// Who keeps a lock for which others wait.
fn kept_lock(of: KeptLock, names: &LockNames<'_>) -> Reason {
    let KeptLock { lock, hold, at, waiting, for_ns, limit_ns } = of;
    let lock = names.lock(&names.model.locks[lock]);
    let holder = names.thread(hold.thread);
    let (counted, waits) = (counted(waiting as u64, "thread"), agree(waiting, "waits", "wait"));
    let longest = if waiting == 1 { "for" } else { "the longest for" };
    let acquired = hold.location.map(|at| format!(" acquired it at {},", names.location(at)));
    let at = at.map(|at| format!(" was last at {},", names.location(at)));
    Reason {
        sentence: format!(
            "not judged: {counted} {waits} for {lock}, held by {holder}, {longest} {}",
            duration(for_ns)
        ),
        more: format!(
            "; {holder}{}{} and goes on: whether it works under the lock or has forgotten it is not known; a wait of \
             {} is a finding",
            acquired.unwrap_or_default(),
            at.unwrap_or_default(),
            duration(limit_ns)
        ),
    }
}

/// Who waits in processes whose other threads sleep for a time, again and again.
fn beside_timers(of: BesideTimers, names: &LockNames<'_>) -> Reason {
    let BesideTimers { threads, processes, first, location, doing: does, for_ns, timers, listeners, timer } =
        of;
    let waiting = match threads {
        1 => format!("1 thread {}", doing(does, 1)),
        _ if processes > 1 => format!("{processes} processes wait for one another"),
        threads => format!("{threads} threads wait for one another, or for what nobody is known to bring"),
    };
    let lasted = lasted_at_least(Some(for_ns));
    let (first, timer, at) = (names.thread(first), names.thread(timer), place(location, names));
    let more = |what: &str| {
        format!(
            ": whether {what} is not known; {first} {}{at}; next: read-rip stacks {}",
            doing(does, 1),
            names.model.pid
        )
    };
    if listeners > 0 {
        let other = match listeners + timers {
            1 => format!("{timer}, which waits for input, comes"),
            others => format!("{others} threads, like {timer}, which wait for input or a time, come"),
        };
        return Reason {
            sentence: format!(
                "not judged: {waiting}, {lasted}, and {other} to no code that is known to wake a thread"
            ),
            more: more("anything else wakes one"),
        };
    }
    let (only, it) = match timers {
        1 => (format!("{timer}, which sleeps for a time"), "it wakes"),
        timers => (format!("{timers} threads, which sleep for a time"), "they wake"),
    };
    let goes_on = agree(timers, "goes on", "go on");
    Reason {
        sentence: format!("not judged: {waiting}, {lasted}, and only {only} again and again, {goes_on}"),
        more: more(&format!("{it} the others")),
    }
}

/// Why a process is not judged that this user may not look into, and what to do.
fn hidden(names: &LockNames<'_>) -> String {
    let target = names.seen.map(|seen| &seen.standings.target);
    let hidden = target.and_then(|target| target.hidden.as_ref());
    let why = hidden.map_or_else(|| Hidden::Refused.to_string(), Hidden::to_string);
    let next = match hidden {
        Some(hidden) if !hidden.root_may() => hidden.remedy().map(str::to_owned),
        _ => {
            Some(format!("run: sudo read-rip check {}", target.map_or(names.model.pid, |target| target.pid)))
        }
    };
    let next = next.map(|next| format!("; {next}")).unwrap_or_default();
    format!("not judged: {why}{next}")
}

/// What an analysis says of a process, in a line.
pub fn verdict(balance: &Balance, found: &[Finding], names: &LockNames<'_>) -> String {
    let judged = || brief(found, names).unwrap_or_else(|| "no findings".to_owned());
    not_judged(balance, names).unwrap_or_else(judged)
}
