//! The balance of tasks: what they do, and whether anybody is left who could wake them. It is no analysis, and finds
//! nothing.

use serde::Serialize;

use super::View;
use super::starved_runtime::{self, PollFact};
use super::task_waits::task_of;
use super::unanswered::Unanswered;
use super::view::Length;
use crate::locks::{Hold, Peer, TaskDoes, TaskFacts, TaskWait, ThreadId, ThreadLocks, task_does};
use crate::threads::ThreadState;

/// What the tasks of a ring do.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskBalance {
    /// Tasks that exist.
    pub present: usize,
    /// How many are polled, or run.
    pub running: usize,
    /// How many were woken or made, and wait to be polled.
    pub ready: usize,
    /// How many wait for locks.
    pub on_locks: usize,
    /// For how long the first of these has waited, ns.
    #[serde(rename = "longest_wait_ns", skip_serializing_if = "Option::is_none")]
    pub longest_ns: Option<u64>,
    /// How many are suspended otherwise.
    pub suspended: usize,
    /// If a process died at an unknown moment, and all workers of an executor were in polls, or some were while tasks
    /// were ready, or although they slept nearly all of the time before: the first of these polls, the longest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub saturated: Vec<PollFact>,
    /// Whether these are the polls of all workers.
    #[serde(rename = "saturated_all", skip_serializing_if = "std::ops::Not::not")]
    pub are_all_saturated: bool,
    /// Whether these are the polls of threads that slept nearly all of the time before.
    #[serde(rename = "saturated_rarely", skip_serializing_if = "std::ops::Not::not")]
    pub are_rarely_saturated: bool,
    /// If a process died at an unknown moment: the first workers that were awake, slept nearly all of the time before,
    /// and polled no recorded task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rarely_awake: Vec<ThreadId>,
    /// If a process died at an unknown moment: polls and calls that had not returned, although what runs in them
    /// waited. The longest are first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting_within: Vec<PollFact>,
    /// Whether all of them wait at recorded objects without a time limit, have done so for as long as the threshold if
    /// the process lives, and nobody else is known who could wake one of them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all_wait: bool,
    /// Tasks that have no slot.
    pub refused: u64,
    /// Requests that have lasted for the threshold and are suspended, if what they wait for is not recorded, or who can
    /// bring it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent: Option<SilentRequests>,
    /// Tasks that wait for answers of others, which wait for messages and have not answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<Unanswered>,
}

/// Requests that have lasted for long and are suspended, and what they wait for is not recorded, or who can bring it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SilentRequests {
    /// How many.
    pub count: usize,
    /// The one that has lasted longest.
    pub first: ThreadId,
    /// For how long it has lasted, or has waited for what is recorded, ns.
    pub for_ns: u64,
}

impl SilentRequests {
    /// A client waits for the end of a request, so it should not last.
    fn of(view: &View<'_>) -> Option<SilentRequests> {
        let silent = |(id, thread): (ThreadId, &ThreadLocks)| {
            let task = task_of(thread).filter(|task| task.is_request())?;
            // The record often lacks since when it is suspended, and has since when it waits.
            let (is_silent, since_ns, limit_ns) = match task.polled_waits() {
                0 => (task.is_asleep() && task.polls > 0, Some(thread.claimed_ns), view.threshold_ns),
                _ => {
                    let since_ns = thread.sleep.as_ref().and_then(|sleep| sleep.since_ns);
                    (waits_for_anybody(thread, task), since_ns, view.lasting_ns())
                }
            };
            let is_long = || view.length(since_ns, limit_ns) == Length::Long;
            (is_silent && is_long()).then_some((view.ago_ns(since_ns)?, id))
        };
        let silent: Vec<(u64, ThreadId)> = view.now.threads.iter().enumerate().filter_map(silent).collect();
        let &(for_ns, first) = silent.iter().max_by_key(|(for_ns, id)| (*for_ns, std::cmp::Reverse(*id)))?;
        Some(SilentRequests { count: silent.len(), first, for_ns })
    }
}

/// Whether a task waits, without a time limit, for messages or notifications alone, and nobody is known who brings
/// them.
fn waits_for_anybody(thread: &ThreadLocks, task: &TaskFacts) -> bool {
    task.has_no_other_wakers()
        && task.joins.is_empty()
        && task.waits.iter().all(|wait| !wait.is_for_lock && !wait.wait.is_timed)
        && thread.peer.as_ref().is_none_or(|peer| peer.present.is_none())
}

impl TaskBalance {
    pub(super) fn of(view: &View<'_>) -> TaskBalance {
        let mut balance = TaskBalance { refused: view.now.tasks_refused, ..TaskBalance::default() };
        let mut first_ns = None;
        for thread in &view.now.threads {
            let Some(task) = thread.task.as_deref() else { continue };
            let count = match task_does(thread, task) {
                TaskDoes::Ended => continue,
                TaskDoes::Runs => &mut balance.running,
                TaskDoes::Ready => &mut balance.ready,
                TaskDoes::Suspended if thread.wait.is_some() => {
                    first_ns = first_ns.into_iter().chain(thread.wait.and_then(|wait| wait.since_ns)).min();
                    &mut balance.on_locks
                }
                TaskDoes::Suspended => &mut balance.suspended,
            };
            *count += 1;
            balance.present += 1;
        }
        balance.longest_ns = view.ago_ns(first_ns);
        balance.silent = SilentRequests::of(view);
        balance.unanswered = Unanswered::of(view);
        if view.now.is_end_unknown && view.now.is_final {
            let saturated = starved_runtime::saturated(view);
            (balance.saturated, balance.are_all_saturated) = (saturated.polls, saturated.are_all);
            balance.are_rarely_saturated = saturated.are_rare;
            balance.rarely_awake = starved_runtime::rarely_awake(view);
            balance.waiting_within = starved_runtime::waiting_within(view);
        }
        balance.all_wait = balance.present > 0
            && balance.refused == 0
            && view.now.threads.iter().all(|thread| waits_for_good(view, thread));
        balance
    }
}

/// Whether a task waits for what none but other tasks can bring, as far as it is known. So does what is no task, or has
/// ended.
fn waits_for_good(view: &View<'_>, thread: &ThreadLocks) -> bool {
    let Some(task) = task_of(thread) else { return true };
    let is_thread = |user: ThreadId| view.now.threads[user].task.is_none();
    // What has sent there before may do so again.
    let has_thread = |peer: &Peer| peer.present.is_some_and(is_thread);
    let may_release = |hold: &Hold| {
        let holder = &view.now.threads[hold.thread];
        holder.task.is_none() && holder.state == ThreadState::Present && !holder.is_blocked()
    };
    let is_held = |wait: &TaskWait| {
        let lock = &view.now.locks[wait.wait.lock];
        lock.holders.iter().chain(&lock.possible_holders).any(may_release)
    };
    let is_long = || view.ago_ns(task.since_ns).is_some_and(|for_ns| for_ns >= view.threshold_ns);
    task.has_no_other_wakers()
        && task.waits.iter().all(|wait| !wait.wait.is_timed && !is_held(wait))
        && !thread.peer.as_deref().is_some_and(has_thread)
        && (view.now.is_final || is_long())
}

#[cfg(test)]
mod tests {
    use read_rip_ring::TaskKind;

    use crate::findings::testing::{NOW, SECOND, Scene, finding_about, seen};
    use crate::findings::{Balance, Kind, Outcome};
    use crate::locks::{Doing, FormerClients, Rest, TaskFacts, TaskJoin, ThreadId};

    fn outcome(scene: &Scene) -> Outcome {
        scene.with_view(|view| Balance::of(view, &[])).outcome
    }

    #[test]
    fn a_server_whose_requests_wait_for_long_and_nobody_knows_for_what_is_not_judged() {
        let of_one = |change: fn(&mut Scene)| {
            let mut scene = Scene::new();
            let worker = scene.thread("tokio-rt-worker");
            scene.model.threads[worker].seen = Some(seen(Doing::WaitsOutside, true));
            let request = scene.task("GET /orders/{id}");
            scene.facts(request).runtime.as_mut().unwrap().workers = 0;
            scene.facts(request).is_of_kind = true;
            change(&mut scene);
            outcome(&scene)
        };
        assert_eq!(of_one(|_| {}), Outcome::SilentRequests);
        let healthy: &[fn(&mut Scene)] = &[
            |scene| scene.model.threads[1].claimed_ns = NOW - SECOND,
            |scene| scene.facts(1).wakes = 1,
            |scene| scene.facts(1).is_polled = true,
            // A task of the program's own may wait for as long as it likes.
            |scene| scene.facts(1).is_of_kind = false,
            |scene| scene.facts(1).runtime = TaskFacts::suspended(1, 0).runtime,
        ];
        for (at, healthy) in healthy.iter().enumerate() {
            assert_eq!(of_one(*healthy), Outcome::NothingFound, "{at}");
        }
    }

    #[test]
    fn a_request_that_waits_for_long_for_what_anybody_may_bring_is_not_judged() {
        type Change = fn(&mut Scene, ThreadId);
        let of_one = |mut scene: Scene, change: Change| {
            let (request, other) = (scene.task("GET /events"), scene.task("listener"));
            let channel = scene.lock("EVENTS");
            scene.facts(request).runtime.as_mut().unwrap().workers = 0;
            scene.facts(request).is_of_kind = true;
            scene.awaits_peer(request, channel, false, other);
            scene.model.threads[request].peer = None;
            change(&mut scene, request);
            outcome(&scene)
        };
        let asleep_for = |for_ns: u64| {
            let mut scene = Scene::killed();
            scene.model.now_ns = Some(NOW - 12 * SECOND + for_ns);
            scene
        };
        assert_eq!(of_one(Scene::new(), |_, _| {}), Outcome::SilentRequests);
        assert_eq!(of_one(asleep_for(SECOND), |_, _| {}), Outcome::SilentRequests);
        assert_eq!(
            of_one(asleep_for(SECOND - 1), |_, _| {}),
            Outcome::NothingFound,
            "it may have just begun"
        );
        let healthy: &[(&str, Change)] = &[
            ("it has just begun to wait", |scene, request| {
                scene.model.threads[request].sleep.as_mut().unwrap().since_ns = Some(NOW - SECOND);
            }),
            ("it has a time limit", |scene, request| scene.facts(request).wakers = Some(2)),
            ("it was woken", |scene, request| scene.facts(request).wakes = 1),
            ("it waits for a lock", |scene, request| scene.facts(request).waits[0].is_for_lock = true),
            ("who brings it goes on", |scene, request| {
                let (other, channel) = (scene.task("source"), scene.facts(request).waits[0].wait.lock);
                scene.facts(request).waits.clear();
                scene.awaits_peer(request, channel, false, other);
            }),
            // A task of the program's own may wait for as long as it likes.
            ("it is no request", |scene, request| scene.facts(request).is_of_kind = false),
        ];
        for (what, change) in healthy {
            assert_eq!(of_one(Scene::new(), *change), Outcome::NothingFound, "{what}");
        }
    }

    #[test]
    fn a_server_whose_clients_stay_after_it_has_stopped_listening_is_not_judged() {
        let mut scene = Scene::new();
        scene.task("connection");
        assert_eq!(outcome(&scene), Outcome::NothingFound);
        scene.model.former_clients = Some(FormerClients { at: "10.0.0.1:8080".to_owned(), count: 2 });
        assert_eq!(outcome(&scene), Outcome::ShuttingDown);
    }

    /// Two tasks that wait at channels whose senders nobody has used, and a worker without a task.
    fn scene(mut scene: Scene) -> (Scene, [ThreadId; 2]) {
        let tasks = ["one", "other"].map(|name| {
            let (task, channel) = (scene.task(name), scene.lock(name));
            scene.awaits_peer(task, channel, false, task);
            scene.model.threads[task].peer = None;
            task
        });
        let worker = scene.thread("worker");
        let seen = seen(Doing::WaitsOutside, true);
        scene.model.threads[worker].seen = Some(seen).filter(|_| !scene.model.is_final);
        (scene, tasks)
    }

    #[test]
    fn a_program_whose_tasks_all_wait_is_not_called_sound() {
        assert_eq!(outcome(&scene(Scene::new()).0), Outcome::AllTasksWait);
        assert_eq!(outcome(&scene(Scene::dead()).0), Outcome::AllTasksWait);
    }

    #[test]
    fn somebody_who_may_wake_a_task_is_enough() {
        type Change = fn(&mut Scene, ThreadId);
        let changes: [(&str, Change); 9] = [
            ("something else may wake it", |scene, task| scene.facts(task).wakers = Some(2)),
            ("it was woken", |scene, task| scene.facts(task).wakes = 1),
            ("it is polled", |scene, task| scene.facts(task).is_polled = true),
            ("its wait has a limit", |scene, task| scene.facts(task).waits[0].wait.is_timed = true),
            ("it has not waited for long", |scene, task| scene.facts(task).since_ns = Some(NOW - SECOND)),
            ("a thread has sent there", |scene, task| {
                let (main, channel) = (scene.thread("main"), scene.facts(task).waits[0].wait.lock);
                scene.facts(task).waits.clear();
                scene.awaits_peer(task, channel, false, main);
            }),
            ("a thread holds its lock", |scene, task| {
                let (main, lock) = (scene.thread("main"), scene.facts(task).waits[0].wait.lock);
                scene.holds(main, lock);
            }),
            ("a thread waits with a limit", |scene, _| {
                let (thread, lock) = (scene.thread("other"), scene.lock("CONDITION"));
                scene.waits_on_condition(thread, lock);
                scene.model.threads[thread].sleep.as_mut().unwrap().is_timed = true;
            }),
            ("a thread runs", |scene, _| {
                let thread = scene.thread("other");
                scene.model.threads[thread].seen = Some(seen(Doing::Runs, false));
            }),
        ];
        for (what, change) in changes {
            let (mut scene, [task, _]) = scene(Scene::new());
            change(&mut scene, task);
            assert_eq!(outcome(&scene), Outcome::NothingFound, "{what}");
        }
        let (mut waits, [task, _]) = scene(Scene::new());
        let (main, lock) = (waits.thread("main"), waits.facts(task).waits[0].wait.lock);
        let condition = waits.lock("CONDITION");
        waits.holds(main, lock);
        waits.waits_on_condition(main, condition);
        assert_eq!(outcome(&waits), Outcome::AllTasksWait, "the thread that holds the lock waits too");
        let (mut scene, _) = scene(Scene::new());
        scene.model.tasks_refused = 1;
        assert_eq!(outcome(&scene), Outcome::NothingFound, "a task is not recorded");
    }

    #[test]
    fn a_process_that_died_while_all_workers_were_busy_is_not_called_sound() {
        let mut scene = Scene::dead();
        scene.model.is_end_unknown = true;
        let [first, second] = ["first", "second"].map(|name| scene.thread(name));
        let [one, other, ready] = ["one", "other", "ready"].map(|name| scene.task(name));
        scene.polls(first, one);
        scene.polls(second, other);
        assert_eq!(outcome(&scene), Outcome::AllWorkersBusy, "clients may wait, which nobody recorded");
        scene.facts(ready).wakes = 1;
        assert_eq!(outcome(&scene), Outcome::AllWorkersBusy);
        let found = [finding_about(Kind::StarvedRuntime, &[one])];
        assert!(scene.with_view(|view| Balance::of(view, &found)).tasks.saturated.is_empty(), "said already");
        scene.facts(other).is_polled = false;
        assert_eq!(outcome(&scene), Outcome::WorkersBusy, "a worker is free, and may sleep");
        scene.facts(ready).wakes = 0;
        assert_eq!(outcome(&scene), Outcome::NothingFound, "no task wants one");
    }

    /// One of two workers was blocked in a poll, the other slept, and no task was ready. That was called sound.
    #[test]
    fn a_process_that_died_while_a_worker_was_awake_that_mostly_slept_is_not_called_sound() {
        let rest = |is_asleep, awake_ns| Rest { is_asleep, since_ns: None, awake_ns, asleep_ns: 10 * SECOND };
        let rare = || {
            let mut scene = Scene::killed();
            let [worker, other] = [(); 2].map(|()| scene.thread("tokio-rt-worker"));
            let [connection, request] = ["connection", "GET /"].map(|name| scene.task(name));
            [connection, request].into_iter().for_each(|task| scene.polls(worker, task));
            scene.facts(request).outer = Some(connection);
            scene.model.threads[worker].rest = Some(Box::new(rest(false, SECOND / 10)));
            scene.model.threads[other].rest = Some(Box::new(rest(true, 9 * SECOND)));
            (scene, connection, request)
        };
        let (mut scene, connection, request) = rare();
        assert_eq!(outcome(&scene), Outcome::RareWorkersBusy);
        let polls = scene.with_view(|view| Balance::of(view, &[])).tasks.saturated;
        assert_eq!(polls.iter().map(|poll| poll.task).collect::<Vec<_>>(), [request]);
        // The program has made tasks of other futures alone.
        [connection, request].into_iter().for_each(|task| scene.facts(task).is_polled = false);
        assert_eq!(outcome(&scene), Outcome::RareWorkersBusy);
        scene.model.threads[0].name = "main".into();
        assert_eq!(outcome(&scene), Outcome::NothingFound, "it may do something else now");
        let healthy: &[fn(&mut Scene)] = &[
            |scene| scene.model.threads[0].rest.as_mut().unwrap().awake_ns = 2 * SECOND,
            |scene| {
                // It was awake for long before the poll began.
                scene.model.threads[0].rest.as_mut().unwrap().since_ns = Some(NOW - 4 * SECOND);
                [2, 3].into_iter().for_each(|task| scene.facts(task).since_ns = Some(NOW - SECOND));
            },
            |scene| scene.model.threads[0].rest.as_mut().unwrap().is_asleep = true,
            |scene| scene.model.threads[0].rest = None,
            |scene| [2, 3].into_iter().for_each(|task| scene.facts(task).is_off_worker = true),
            |scene| [2, 3].into_iter().for_each(|task| scene.facts(task).kind = TaskKind::Blocking),
            |scene| scene.model.is_end_unknown = false,
        ];
        for (at, healthy) in healthy.iter().enumerate() {
            let mut scene = rare().0;
            healthy(&mut scene);
            assert_eq!(outcome(&scene), Outcome::NothingFound, "{at}");
        }
    }

    #[test]
    fn an_executor_with_a_free_worker_does_not_hide_one_that_has_none() {
        let mut scene = Scene::dead();
        scene.model.is_end_unknown = true;
        let tasks: Vec<ThreadId> = (0..3).map(|at| scene.task(&format!("task {at}"))).collect();
        for &task in &tasks {
            let worker = scene.thread("worker");
            scene.polls(worker, task);
        }
        scene.facts(tasks[0]).runtime.as_mut().unwrap().number = 1;
        tasks[1..].iter().for_each(|&task| scene.facts(task).runtime.as_mut().unwrap().number = 2);
        let ready = scene.task("ready");
        scene.facts(ready).runtime.as_mut().unwrap().number = 1;
        scene.facts(ready).wakes = 1;
        assert_eq!(outcome(&scene), Outcome::AllWorkersBusy);
        scene.facts(tasks[1]).is_polled = false;
        assert_eq!(outcome(&scene), Outcome::WorkersBusy);
    }

    #[test]
    fn a_server_that_died_while_all_who_poll_its_requests_did_is_not_called_sound() {
        let mut scene = Scene::dead();
        scene.model.is_end_unknown = true;
        let workers = ["one", "other"].map(|name| scene.thread(name));
        let requests = ["GET /", "POST /"].map(|name| scene.task(name));
        for (worker, request) in workers.into_iter().zip(requests) {
            scene.facts(request).is_of_kind = true;
            scene.facts(request).runtime.as_mut().unwrap().workers = 0;
            scene.model.threads[request].claimed_ns = NOW - SECOND;
            scene.polls(worker, request);
        }
        assert_eq!(outcome(&scene), Outcome::AllWorkersBusy);
        let (sleeper, job) = (scene.thread("tokio-rt-worker"), scene.task("job"));
        let rest = Rest { is_asleep: true, since_ns: None, awake_ns: SECOND, asleep_ns: SECOND };
        scene.model.threads[sleeper].rest = Some(Box::new(rest));
        assert_eq!(outcome(&scene), Outcome::NothingFound, "it may be a free worker");
        scene.facts(job).thread = Some(sleeper);
        assert_eq!(outcome(&scene), Outcome::NothingFound, "it is a free worker");
        scene.facts(job).runtime.as_mut().unwrap().number += 1;
        assert_eq!(outcome(&scene), Outcome::AllWorkersBusy, "it is a worker of another executor");
        scene.facts(requests[0]).is_polled = false;
        assert_eq!(outcome(&scene), Outcome::NothingFound, "that one was suspended");
        // Whatever wakes it next may be in the poll of the other.
        let background = scene.task("background");
        (scene.facts(background).thread, scene.facts(background).wakes) = (Some(workers[1]), 1);
        assert_eq!(outcome(&scene), Outcome::WorkersBusy);
        scene.model.is_end_unknown = false;
        assert_eq!(outcome(&scene), Outcome::NothingFound, "it ended by itself");
    }

    #[test]
    fn a_poll_that_waits_within_itself_at_death_is_not_called_sound() {
        let mut scene = Scene::dead();
        scene.model.is_end_unknown = true;
        let (worker, task) = (scene.thread("worker"), scene.task("task"));
        scene.polls(worker, task);
        scene.facts(task).joins = vec![TaskJoin { is_polled: Some(true), is_direct: false }];
        assert_eq!(outcome(&scene), Outcome::WaitsWithinPoll);
        scene.facts(task).joins[0].is_polled = Some(false);
        assert_eq!(outcome(&scene), Outcome::NothingFound, "the poll has not come to it");
        scene.facts(task).joins[0].is_polled = Some(true);
        scene.facts(task).is_polled = false;
        assert_eq!(outcome(&scene), Outcome::NothingFound, "it is suspended, as it should be");
    }

    #[test]
    fn a_pool_all_of_whose_calls_wait_at_death_is_not_called_sound_if_others_need_it() {
        let mut scene = Scene::dead();
        scene.model.is_end_unknown = true;
        let lock = scene.lock("CONDITION");
        let (worker, call, next) = (scene.thread("worker"), scene.task("call"), scene.task("next"));
        for task in [call, next] {
            scene.facts(task).kind = TaskKind::Blocking;
        }
        scene.polls(worker, call);
        scene.waits_on_condition(call, lock);
        assert_eq!(outcome(&scene), Outcome::NothingFound, "nobody waits for the pool");
        (scene.facts(next).polls, scene.facts(next).is_steady) = (0, true);
        assert_eq!(outcome(&scene), Outcome::WaitsWithinPoll);
        scene.model.threads[call].sleep.as_mut().unwrap().is_timed = true;
        assert_eq!(outcome(&scene), Outcome::NothingFound, "it returns by itself");
    }
}
