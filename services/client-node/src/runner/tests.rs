//! Runners by themselves: what is told after a restart, and what their end ends.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use lifecycle::{Limits, Now, StartFailure, StartStep};
use model::{ExitResult, Job, NodeId, Timestamp};
use rand::SeedableRng;
use task_drivers::driver::BoxFuture;
use task_drivers::{
    Driver, DriverError, Fingerprint, MockDriver, Recovery, StartError, TaskConfig,
};
use test_kit::builders;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use super::*;
use crate::local_state::LocalState;

fn assignment(job: Job) -> Assignment {
    let alloc = builders::allocation(1, &job, NodeId::from_random(1));
    Assignment {
        alloc: Arc::new(alloc),
        job: Arc::new(job),
        modify_index: 5,
        trace_parent: String::new(),
        volume_paths: BTreeMap::new(),
    }
}

fn one_task(driver: &str) -> Assignment {
    let mut job = builders::service("web", 1);
    job.task_groups[0].tasks.truncate(1);
    job.task_groups[0].tasks[0].driver = driver.to_owned();
    assignment(job)
}

/// What an earlier run of the agent had stored.
fn stored(assignment: &Assignment, events: impl IntoIterator<Item = Event>) -> AllocState {
    let spec = AllocSpec::new(&assignment.job, &assignment.alloc, Limits::default()).unwrap();
    let mut machine = AllocRunner::new(spec, Now::default());
    let mut rng = StdRng::seed_from_u64(1);
    for event in events {
        machine.step(Now::default(), event, &mut rng);
    }
    machine.state().clone()
}

fn beginning(assignment: &Assignment, stored: Option<AllocState>) -> Beginning {
    Beginning {
        assignment: assignment.clone(),
        is_contacted: stored.is_none(),
        stored: stored.map(|state| (state, Boot::Same)),
        leftovers: Vec::new(),
        predecessors: Vec::new(),
    }
}

/// Runs a restored runner until it has said what it has to say; returns that.
async fn told(context: &Arc<Context>, beginning: Beginning) -> Vec<ClientStatus> {
    let (drain, tasks) = (CancellationToken::new(), TaskTracker::new());
    let handle = spawn(context, beginning, drain.clone(), &tasks).unwrap();
    // A command is taken after everything that a runner does by itself.
    handle.tell(Command::ServersContacted).await;
    while handle.commands.capacity() < handle.commands.max_capacity() {
        tokio::task::yield_now().await;
    }
    drain.cancel();
    tasks.close();
    tasks.wait().await;
    let reports = context.reporter.take();
    reports
        .into_iter()
        .map(|(_, client)| client.status)
        .collect()
}

#[tokio::test]
async fn an_end_that_was_kept_and_never_told_is_told_by_the_next_run() {
    let assignment = one_task("mock_driver");
    let failure = StartFailure {
        step: StartStep::Validation,
        message: "nonsense".to_owned(),
        recoverable: false,
    };
    let failed = Event::StartFailed {
        task: assignment.job.task_groups[0].tasks[0].name.clone(),
        attempt: 1,
        failure,
    };
    let ended = stored(
        &assignment,
        [Event::Begin, Event::PrerunDone(Ok(())), failed],
    );
    let context = Arc::new(Context::for_test(LocalState::none(), MockDriver::default()));
    let told = told(&context, beginning(&assignment, Some(ended))).await;
    assert_eq!(told, [ClientStatus::Failed]);
}

#[tokio::test]
async fn servers_that_gave_the_node_up_are_told_again_after_a_restart() {
    let mut given_up = one_task("mock_driver");
    let waiting = stored(&given_up, []);
    let context = Arc::new(Context::for_test(LocalState::none(), MockDriver::default()));
    let state = || beginning(&given_up, Some(waiting.clone()));
    // It waits for one that never ends, so its state stays what it is.
    let (_progress, seen) = watch::channel(Progress::Live);
    let predecessor = Handle {
        commands: mpsc::channel(1).0,
        progress: seen,
    };
    let beginning_of = |beginning: Beginning| Beginning {
        predecessors: vec![predecessor.clone()],
        ..beginning
    };
    let first = told(&context, beginning_of(state())).await;
    assert_eq!(first, [ClientStatus::Pending]);
    let known = {
        let spec = AllocSpec::new(&given_up.job, &given_up.alloc, Limits::default()).unwrap();
        AllocRunner::restore(spec, waiting.clone(), Now::default(), Boot::Same).client()
    };
    context.reporter.offer(given_up.alloc.id, known);
    let batch = context.reporter.take();
    context.reporter.acknowledged(&batch);
    assert!(told(&context, beginning_of(state())).await.is_empty());
    Arc::make_mut(&mut given_up.alloc).client_status_override = Some(ClientStatus::Unknown);
    let again = beginning_of(beginning(&given_up, Some(waiting)));
    assert_eq!(told(&context, again).await, [ClientStatus::Pending]);
}

/// Starts that hold on to their thread until they are let go.
struct Slow {
    begun: Arc<Notify>,
    go: Mutex<std::sync::mpsc::Receiver<()>>,
    is_done: Arc<AtomicBool>,
}

impl Driver for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::default()
    }

    fn start(&self, _config: TaskConfig) -> BoxFuture<'_, Result<(), StartError>> {
        Box::pin(async {
            self.begun.notify_one();
            let _ = self.go.lock().unwrap().recv();
            self.is_done.store(true, Ordering::SeqCst);
            Ok(())
        })
    }

    fn recover(
        &self,
        _config: TaskConfig,
        _started_at: Timestamp,
        _now: Timestamp,
    ) -> BoxFuture<'_, Recovery> {
        unreachable!("nothing was stored")
    }

    fn wait<'a>(
        &'a self,
        _id: &'a TaskId,
        _messages: &'a mpsc::Sender<String>,
    ) -> BoxFuture<'a, Result<ExitResult, DriverError>> {
        Box::pin(std::future::pending())
    }

    fn stop<'a>(
        &'a self,
        _id: &'a TaskId,
        _signal: &'a str,
        _grace: Duration,
    ) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(std::future::pending())
    }

    fn signal<'a>(
        &'a self,
        _id: &'a TaskId,
        _signal: &'a str,
    ) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(std::future::pending())
    }

    fn forget<'a>(&'a self, _id: &'a TaskId) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(std::future::pending())
    }

    fn leftovers(&self) -> Vec<TaskId> {
        Vec::new()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn no_start_goes_on_when_its_runner_is_gone() {
    let (begun, is_done) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let (go, gate) = std::sync::mpsc::channel();
    let slow = Slow {
        begun: Arc::clone(&begun),
        go: Mutex::new(gate),
        is_done: Arc::clone(&is_done),
    };
    let context = Arc::new(Context::for_test(LocalState::none(), slow));
    let (drain, tasks) = (CancellationToken::new(), TaskTracker::new());
    let _handle = spawn(
        &context,
        beginning(&one_task("slow"), None),
        drain.clone(),
        &tasks,
    );
    begun.notified().await;
    drain.cancel();
    tasks.close();
    let gone = tokio::time::timeout(Duration::from_millis(300), tasks.wait());
    assert!(gone.await.is_err(), "gone, and a start of it goes on");
    go.send(()).unwrap();
    tasks.wait().await;
    assert!(is_done.load(Ordering::SeqCst));
}

/// Keeps attempts of an earlier run of the agent, and fails to forget them as often as it is told.
#[derive(Clone, Default)]
struct Keeping {
    kept: Arc<Mutex<Vec<TaskId>>>,
    failures: Arc<Mutex<u32>>,
}

impl Driver for Keeping {
    fn name(&self) -> &'static str {
        "keeping"
    }

    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::default()
    }

    fn start(&self, _config: TaskConfig) -> BoxFuture<'_, Result<(), StartError>> {
        Box::pin(std::future::pending())
    }

    fn recover(
        &self,
        _config: TaskConfig,
        _started_at: Timestamp,
        _now: Timestamp,
    ) -> BoxFuture<'_, Recovery> {
        Box::pin(std::future::pending())
    }

    fn wait<'a>(
        &'a self,
        _id: &'a TaskId,
        _messages: &'a mpsc::Sender<String>,
    ) -> BoxFuture<'a, Result<ExitResult, DriverError>> {
        Box::pin(std::future::pending())
    }

    fn stop<'a>(
        &'a self,
        _id: &'a TaskId,
        _signal: &'a str,
        _grace: Duration,
    ) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn signal<'a>(
        &'a self,
        _id: &'a TaskId,
        _signal: &'a str,
    ) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(std::future::pending())
    }

    fn forget<'a>(&'a self, id: &'a TaskId) -> BoxFuture<'a, Result<(), DriverError>> {
        let mut failures = self.failures.lock().unwrap();
        let answer = if *failures > 0 {
            *failures -= 1;
            Err(DriverError::UnknownTask { id: id.clone() })
        } else {
            self.kept.lock().unwrap().retain(|kept| kept != id);
            Ok(())
        };
        Box::pin(std::future::ready(answer))
    }

    fn leftovers(&self) -> Vec<TaskId> {
        self.kept.lock().unwrap().clone()
    }
}

/// A driver that keeps these attempts of the only task, and the beginning of its allocation.
fn kept(attempts: &[u32], stored: impl IntoIterator<Item = Event>) -> (Keeping, Beginning) {
    let assignment = one_task("keeping");
    let id = |attempt: &u32| TaskId {
        alloc_id: assignment.alloc.id,
        task: assignment.job.task_groups[0].tasks[0].name.clone(),
        attempt: *attempt,
    };
    let leftovers: Vec<TaskId> = attempts.iter().map(id).collect();
    let driver = Keeping::default();
    driver.kept.lock().unwrap().clone_from(&leftovers);
    let beginning = Beginning {
        leftovers,
        ..beginning(&assignment, Some(self::stored(&assignment, stored)))
    };
    (driver, beginning)
}

async fn until_nothing_is_kept(driver: &Keeping) {
    let nothing = async || driver.leftovers().is_empty().then_some(());
    test_kit::wait_for("nothing to be kept", Duration::from_secs(60), nothing).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_an_allocation_that_had_ended_goes_with_the_next_run() {
    let stop = Event::Stop { skip_delays: true };
    let (driver, beginning) = kept(&[1, 2], [stop]);
    *driver.failures.lock().unwrap() = 1;
    let context = Arc::new(Context::for_test(LocalState::none(), driver.clone()));
    let (drain, tasks) = (CancellationToken::new(), TaskTracker::new());
    let handle = spawn(&context, beginning, drain.clone(), &tasks).unwrap();
    assert!(handle.has_ended());
    until_nothing_is_kept(&driver).await;
    drain.cancel();
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_an_allocation_that_ends_before_it_begins_goes_with_it() {
    // Its first start was not kept, only made.
    let (driver, beginning) = kept(&[1], []);
    let context = Arc::new(Context::for_test(LocalState::none(), driver.clone()));
    let (drain, tasks) = (CancellationToken::new(), TaskTracker::new());
    let (_progress, seen) = watch::channel(Progress::Live);
    let predecessor = Handle {
        commands: mpsc::channel(1).0,
        progress: seen,
    };
    let mut stopped = beginning.assignment.clone();
    Arc::make_mut(&mut stopped.alloc).desired_status = model::DesiredStatus::Stop;
    let beginning = Beginning {
        predecessors: vec![predecessor],
        ..beginning
    };
    let handle = spawn(&context, beginning, drain.clone(), &tasks).unwrap();
    handle.tell(Command::ServersContacted).await;
    assert_eq!(driver.leftovers().len(), 1, "its start finds it");
    handle.tell(Command::Update(stopped)).await;
    let ended = tokio::time::timeout(Duration::from_secs(60), handle.ended());
    ended.await.unwrap();
    assert!(
        driver.leftovers().is_empty(),
        "said to have ended while something of it may run"
    );
    drain.cancel();
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_tasks_once_their_allocation_is_removed() {
    let (driver, beginning) = kept(&[1], [Event::Stop { skip_delays: true }]);
    // More often than is tried before the allocation is collected.
    *driver.failures.lock().unwrap() = 5;
    let context = Arc::new(Context::for_test(LocalState::none(), driver.clone()));
    let (drain, tasks) = (CancellationToken::new(), TaskTracker::new());
    let mut handle = spawn(&context, beginning, drain.clone(), &tasks).unwrap();
    handle.tell(Command::Destroy).await;
    let removed = handle
        .progress
        .wait_for(|progress| *progress == Progress::Removed);
    let limit = Duration::from_secs(120);
    drop(tokio::time::timeout(limit, removed).await.unwrap().unwrap());
    assert_eq!(driver.leftovers(), []);
    drain.cancel();
}
