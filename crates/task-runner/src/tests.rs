//! Runners: reports after a restart, and the removal of leftover attempts.

mod out_of_memory;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lifecycle::{
    AllocRunner, AllocSpec, AllocState, Assignment, Boot, Event, Limits, Now, StartFailure,
    StartStep,
};
use local_state::LocalState;
use model::service::AddressMode;
use model::{AllocId, ClientStatus, ExitResult, Job, NodeId, Service, Timestamp};
use rand::SeedableRng;
use rand::rngs::StdRng;
use task_drivers::driver::BoxFuture;
use task_drivers::{
    Driver, DriverAddress, DriverError, Fingerprint, MockDriver, Recovery, StartError, TaskConfig,
    TaskId, Usage,
};
use test_kit::builders;
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::context::Context;
use crate::handle::{Command, Handle, Progress};
use crate::run::spawn;
use crate::runner::RunnerStart;

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

/// The state stored by an earlier run of the agent.
fn stored(assignment: &Assignment, events: impl IntoIterator<Item = Event>) -> AllocState {
    let spec = AllocSpec::new(&assignment.job, &assignment.alloc, Limits::default()).unwrap();
    let mut machine = AllocRunner::new(spec, Now::default());
    let mut rng = StdRng::seed_from_u64(1);
    for event in events {
        machine.step(Now::default(), event, &mut rng);
    }
    machine.state().clone()
}

fn start(assignment: &Assignment, stored: Option<AllocState>) -> RunnerStart {
    RunnerStart {
        assignment: assignment.clone(),
        is_contacted: stored.is_none(),
        stored: stored.map(|state| (state, Boot::Same)),
        leftovers: Vec::new(),
        predecessors: Vec::new(),
    }
}

/// Runs a restored runner until it has sent its reports. Returns them.
async fn reported(context: &Arc<Context>, start: RunnerStart) -> Vec<ClientStatus> {
    let (drain, tasks) = (CancellationToken::new(), TaskTracker::new());
    let handle = spawn(context, start, drain.clone(), &tasks).unwrap();
    // A command is received after the runner's own first steps.
    handle.send(Command::ServersContacted).await;
    while handle.commands.capacity() < handle.commands.max_capacity() {
        tokio::task::yield_now().await;
    }
    drain.cancel();
    tasks.close();
    tasks.wait().await;
    let reports = context.reporter.queue().take();
    reports
        .into_iter()
        .map(|(_, client)| client.status)
        .collect()
}

#[tokio::test]
async fn a_stored_end_that_was_not_reported_is_reported_by_the_next_run() {
    let assignment = one_task("mock_driver");
    let failure = StartFailure {
        step: StartStep::Validation,
        message: "invalid".to_owned(),
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
    let reports = reported(&context, start(&assignment, Some(ended))).await;
    assert_eq!(reports, [ClientStatus::Failed]);
}

#[tokio::test]
async fn a_node_that_servers_gave_up_reports_again_after_a_restart() {
    let mut given_up = one_task("mock_driver");
    let waiting = stored(&given_up, []);
    let context = Arc::new(Context::for_test(LocalState::none(), MockDriver::default()));
    let state = || start(&given_up, Some(waiting.clone()));
    // Its predecessor never ends, so its state does not change.
    let (_progress, seen) = watch::channel(Progress::Live);
    let predecessor = Handle {
        commands: mpsc::channel(1).0,
        progress: seen,
    };
    let start_of = |start: RunnerStart| RunnerStart {
        predecessors: vec![predecessor.clone()],
        ..start
    };
    let first = reported(&context, start_of(state())).await;
    assert_eq!(first, [ClientStatus::Pending]);
    let known = {
        let spec = AllocSpec::new(&given_up.job, &given_up.alloc, Limits::default()).unwrap();
        AllocRunner::restore(spec, waiting.clone(), Now::default(), Boot::Same).client()
    };
    context.reporter.offer(given_up.alloc.id, known);
    let batch = context.reporter.queue().take();
    context.reporter.queue().acknowledge(&batch);
    assert!(reported(&context, start_of(state())).await.is_empty());
    Arc::make_mut(&mut given_up.alloc).client_status_override = Some(ClientStatus::Unknown);
    let again = start_of(start(&given_up, Some(waiting)));
    assert_eq!(reported(&context, again).await, [ClientStatus::Pending]);
}

/// A driver whose starts block their thread until released.
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

    fn address(&self, id: &TaskId) -> Option<DriverAddress> {
        let started = self.is_done.load(Ordering::SeqCst) && id.attempt == 1;
        started.then(|| DriverAddress {
            host: "172.17.0.2".to_owned(),
            ..DriverAddress::default()
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_runner_ends_after_its_starts() {
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
        start(&one_task("slow"), None),
        drain.clone(),
        &tasks,
    );
    begun.notified().await;
    drain.cancel();
    tasks.close();
    let gone = tokio::time::timeout(Duration::from_millis(300), tasks.wait());
    assert!(gone.await.is_err(), "the runner ended during a start");
    go.send(()).unwrap();
    tasks.wait().await;
    assert!(is_done.load(Ordering::SeqCst));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_service_is_reported_at_the_address_that_its_driver_gave_the_task() {
    let (go, gate) = std::sync::mpsc::channel();
    let slow = Slow {
        begun: Arc::default(),
        go: Mutex::new(gate),
        is_done: Arc::default(),
    };
    let context = Arc::new(Context::for_test(LocalState::none(), slow));
    let mut assignment = one_task("slow");
    let service = Service {
        address_mode: AddressMode::Driver,
        ..builders::registered("web", "9090")
    };
    let job = Arc::make_mut(&mut assignment.job);
    job.task_groups[0].tasks[0].services = vec![service];
    let (drain, tasks) = (CancellationToken::new(), TaskTracker::new());
    let _handle = spawn(&context, start(&assignment, None), drain.clone(), &tasks);
    go.send(()).unwrap();
    let registered = async || {
        let mut reports = context.reporter.queue().take().into_iter();
        reports.find_map(|(_, client)| client.services.first().cloned())
    };
    let found = test_kit::wait_for("a service", Duration::from_secs(20), registered).await;
    assert_eq!((&*found.address, found.port), ("172.17.0.2", 9_090));
    drain.cancel();
    tasks.close();
    tasks.wait().await;
}

/// A driver with attempts of an earlier run of the agent. The first `failures` removals fail.
#[derive(Clone, Default)]
struct WithLeftovers {
    kept: Arc<Mutex<Vec<TaskId>>>,
    failures: Arc<Mutex<u32>>,
    /// The allocation of each reading of resources; `None`: all.
    read: Arc<Mutex<Vec<Option<AllocId>>>>,
}

impl Driver for WithLeftovers {
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

    fn read_usage(&self) -> BoxFuture<'_, ()> {
        self.read.lock().unwrap().push(None);
        Box::pin(std::future::ready(()))
    }

    fn read_usage_of(&self, alloc_id: AllocId) -> BoxFuture<'_, ()> {
        self.read.lock().unwrap().push(Some(alloc_id));
        Box::pin(std::future::ready(()))
    }

    fn usage(&self, _id: &TaskId) -> Option<Usage> {
        Some(Usage::default())
    }
}

#[tokio::test]
async fn a_measurement_reads_the_tasks_of_its_allocation_alone() {
    let (driver, start) = kept(&[1], []);
    let alloc_id = start.assignment.alloc.id;
    let context = Context::for_test(LocalState::none(), driver.clone());
    let measured = crate::measurement::tasks(&context, alloc_id, None).await;
    assert_eq!(measured.len(), 1);
    assert_eq!(*driver.read.lock().unwrap(), [Some(alloc_id); 2]);
}

/// A driver with these attempts of the only task, and the start values of the runner.
fn kept(attempts: &[u32], stored: impl IntoIterator<Item = Event>) -> (WithLeftovers, RunnerStart) {
    let assignment = one_task("keeping");
    let id = |attempt: &u32| TaskId {
        alloc_id: assignment.alloc.id,
        task: assignment.job.task_groups[0].tasks[0].name.clone(),
        attempt: *attempt,
    };
    let leftovers: Vec<TaskId> = attempts.iter().map(id).collect();
    let driver = WithLeftovers::default();
    driver.kept.lock().unwrap().clone_from(&leftovers);
    let start = RunnerStart {
        leftovers,
        ..start(&assignment, Some(self::stored(&assignment, stored)))
    };
    (driver, start)
}

async fn until_no_leftovers(driver: &WithLeftovers) {
    let none = async || driver.leftovers().is_empty().then_some(());
    test_kit::wait_for("no leftovers", Duration::from_secs(60), none).await;
}

#[tokio::test(start_paused = true)]
async fn leftovers_of_an_ended_allocation_are_removed_by_the_next_run() {
    let stop = Event::Stop { skip_delays: true };
    let (driver, start) = kept(&[1, 2], [stop]);
    *driver.failures.lock().unwrap() = 1;
    let context = Arc::new(Context::for_test(LocalState::none(), driver.clone()));
    let (drain, tasks) = (CancellationToken::new(), TaskTracker::new());
    let handle = spawn(&context, start, drain.clone(), &tasks).unwrap();
    assert!(handle.has_ended());
    until_no_leftovers(&driver).await;
    drain.cancel();
}

#[tokio::test(start_paused = true)]
async fn leftovers_of_an_allocation_that_ends_before_its_start_are_removed() {
    // The first start happened, but its record was lost.
    let (driver, start) = kept(&[1], []);
    let context = Arc::new(Context::for_test(LocalState::none(), driver.clone()));
    let (drain, tasks) = (CancellationToken::new(), TaskTracker::new());
    let (_progress, seen) = watch::channel(Progress::Live);
    let predecessor = Handle {
        commands: mpsc::channel(1).0,
        progress: seen,
    };
    let mut stopped = start.assignment.clone();
    Arc::make_mut(&mut stopped.alloc).desired_status = model::DesiredStatus::Stop;
    let start = RunnerStart {
        predecessors: vec![predecessor],
        ..start
    };
    let handle = spawn(&context, start, drain.clone(), &tasks).unwrap();
    handle.send(Command::ServersContacted).await;
    assert_eq!(driver.leftovers().len(), 1, "kept for the start to find");
    handle.send(Command::Update(stopped)).await;
    let ended = tokio::time::timeout(Duration::from_secs(60), handle.ended());
    ended.await.unwrap();
    assert!(
        driver.leftovers().is_empty(),
        "reported as ended while a task may run"
    );
    drain.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_removed_allocation_has_no_leftovers() {
    let (driver, start) = kept(&[1], [Event::Stop { skip_delays: true }]);
    // More failures than tries before the collection.
    *driver.failures.lock().unwrap() = 5;
    let context = Arc::new(Context::for_test(LocalState::none(), driver.clone()));
    let (drain, tasks) = (CancellationToken::new(), TaskTracker::new());
    let mut handle = spawn(&context, start, drain.clone(), &tasks).unwrap();
    handle.send(Command::Collect).await;
    let removed = handle
        .progress
        .wait_for(|progress| *progress == Progress::Removed);
    let limit = Duration::from_secs(120);
    drop(tokio::time::timeout(limit, removed).await.unwrap().unwrap());
    assert_eq!(driver.leftovers(), []);
    drain.cancel();
}

/// A running allocation that waits for an hour before its tasks are stopped.
async fn delayed(context: &Arc<Context>, drain: &CancellationToken) -> (Assignment, Handle) {
    let mut assignment = one_task("mock_driver");
    let job = Arc::make_mut(&mut assignment.job);
    let group = &mut job.task_groups[0];
    group.shutdown_delay = Duration::from_secs(3_600);
    group.tasks[0].config = [("run_for".to_owned(), "24h".into())].into_iter().collect();
    let start = start(&assignment, None);
    let handle = spawn(context, start, drain.clone(), &TaskTracker::new()).unwrap();
    let is_running = async || {
        let reports = context.reporter.queue().take();
        let mut statuses = reports.iter().map(|(_, client)| client.status);
        statuses
            .any(|status| status == ClientStatus::Running)
            .then_some(())
    };
    test_kit::wait_for("a running task", Duration::from_secs(60), is_running).await;
    Arc::make_mut(&mut assignment.alloc).desired_status = model::DesiredStatus::Stop;
    (assignment, handle)
}

#[tokio::test(start_paused = true)]
async fn a_stop_without_shutdown_delay_skips_it_or_ends_it() {
    for is_waiting in [false, true] {
        let context = Arc::new(Context::for_test(LocalState::none(), MockDriver::default()));
        let drain = CancellationToken::new();
        let (mut stopped, handle) = delayed(&context, &drain).await;
        if is_waiting {
            handle.send(Command::Update(stopped.clone())).await;
            tokio::time::sleep(Duration::from_secs(1_800)).await;
            assert!(!handle.has_ended(), "the delay is an hour");
        }
        let alloc = Arc::make_mut(&mut stopped.alloc);
        alloc.transition.no_shutdown_delay = true;
        let asked = tokio::time::Instant::now();
        handle.send(Command::Update(stopped)).await;
        handle.clone().ended().await;
        let took = asked.elapsed();
        assert!(took < Duration::from_secs(60), "{took:?}, {is_waiting}");
        drain.cancel();
    }
}
