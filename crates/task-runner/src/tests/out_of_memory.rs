//! Exits of tasks that had no memory left, in the node's counters.

use std::sync::Arc;
use std::time::Duration;

use local_state::LocalState;
use model::job::RestartMode;
use model::{ExitResult, Timestamp};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use task_drivers::driver::BoxFuture;
use task_drivers::{
    Driver, DriverError, Fingerprint, Messages, Recovery, StartError, TaskConfig, TaskId,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{one_task, start};
use crate::context::Context;
use crate::run::spawn;

/// Its tasks end at once, killed by the kernel.
struct NoMemory;

impl Driver for NoMemory {
    fn name(&self) -> &'static str {
        "no_memory"
    }

    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::default()
    }

    fn start(&self, _config: TaskConfig) -> BoxFuture<'_, Result<(), StartError>> {
        Box::pin(std::future::ready(Ok(())))
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
        _messages: &'a Messages,
    ) -> BoxFuture<'a, Result<ExitResult, DriverError>> {
        let exit = ExitResult {
            signal: 9,
            oom_killed: true,
            ..ExitResult::default()
        };
        Box::pin(std::future::ready(Ok(exit)))
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
        Box::pin(std::future::ready(Ok(())))
    }

    fn forget<'a>(&'a self, _id: &'a TaskId) -> BoxFuture<'a, Result<(), DriverError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn leftovers(&self) -> Vec<TaskId> {
        Vec::new()
    }
}

#[tokio::test(start_paused = true)]
async fn scenario_074_each_exit_without_memory_is_counted_by_job() {
    let mut assignment = one_task("no_memory");
    let job = Arc::make_mut(&mut assignment.job);
    let policy = &mut job.task_groups[0].tasks[0].restart;
    (policy.attempts, policy.mode) = (2, RestartMode::Fail);
    let context = Arc::new(Context::for_test(LocalState::none(), NoMemory));
    let (drain, tasks) = (CancellationToken::new(), TaskTracker::new());
    let _handle = spawn(&context, start(&assignment, None), drain.clone(), &tasks);
    let scrape = || {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(context.metrics.jobs.clone()));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    };
    let labels = "namespace=\"default\",job=\"web\",task_group=\"web\",task=\"server\"";
    let has =
        |family: &str, count: u64| scrape().contains(&format!("{family}{{{labels}}} {count}\n"));
    let counted = async {
        while !has("tasks_failed_total", 1) {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let counted = tokio::time::timeout(Duration::from_secs(600), counted);
    assert!(counted.await.is_ok(), "{}", scrape());
    assert!(has("allocs_oom_killed_total", 3), "{}", scrape());
    assert!(has("allocs_restart_total", 2), "{}", scrape());
    drain.cancel();
    tasks.close();
    tasks.wait().await;
}
