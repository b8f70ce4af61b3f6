//! Simulated user: registers, scales and stops jobs after a seed, and records acknowledged changes.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use proto::v1;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::api::Api;

/// Timeout of a call with retries: several failovers in a row.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum number of jobs of a user; beyond it, a stop precedes each registration.
const MOST_JOBS: usize = 12;

/// The acknowledged state of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// This number of running allocations.
    Running { count: u32 },
    /// No running allocation.
    Stopped,
}

/// A client of the gateways, as a user has it.
pub trait Client: Send {
    /// Registers a job, once however often the request is sent.
    fn register(&self, job: &v1::Job, request_id: &str) -> impl Future<Output = Result<()>> + Send;

    /// Stops a job, and keeps its record.
    fn stop(&self, name: &str) -> impl Future<Output = Result<()>> + Send;
}

impl Client for Api {
    async fn register(&self, job: &v1::Job, request_id: &str) -> Result<()> {
        self.register_surely(job, request_id, TIMEOUT)
            .await
            .map(drop)
    }

    async fn stop(&self, name: &str) -> Result<()> {
        self.stop_surely(name, false, TIMEOUT).await
    }
}

/// The user.
#[derive(Debug)]
pub struct User<C = Api> {
    client: C,
    rng: StdRng,
    prefix: String,
    next_job: u32,
    next_request: u32,
    pub promises: BTreeMap<String, Promise>,
    pub actions: u32,
}

impl<C: Client> User<C> {
    pub fn new(client: C, prefix: &str, seed: u64) -> Self {
        Self {
            client,
            rng: StdRng::seed_from_u64(seed),
            prefix: prefix.to_owned(),
            next_job: 0,
            next_request: 0,
            promises: BTreeMap::new(),
            actions: 0,
        }
    }

    /// Performs one action and waits for the acknowledgement.
    ///
    /// # Errors
    /// A refusal, or no answer for a minute.
    pub async fn act(&mut self) -> Result<()> {
        let running = self.running();
        let choice = self.rng.random_range(0..100);
        self.actions += 1;
        if running.is_empty() || (choice < 50 && running.len() < MOST_JOBS) {
            let name = format!("{}-{}", self.prefix, self.next_job);
            self.next_job += 1;
            return self.register(&name).await;
        }
        let name = running[self.rng.random_range(0..running.len())].clone();
        if choice < 75 {
            self.register(&name).await
        } else {
            self.stop(&name).await
        }
    }

    async fn register(&mut self, name: &str) -> Result<()> {
        let count = self.rng.random_range(1..=3);
        self.next_request += 1;
        let request_id = format!("{}-{}", self.prefix, self.next_request);
        let job = sleeper(name, count);
        self.client.register(&job, &request_id).await?;
        self.promises
            .insert(name.to_owned(), Promise::Running { count });
        Ok(())
    }

    async fn stop(&mut self, name: &str) -> Result<()> {
        self.client.stop(name).await?;
        self.promises.insert(name.to_owned(), Promise::Stopped);
        Ok(())
    }

    /// Stops every running job.
    ///
    /// # Errors
    /// As [`User::act`].
    pub async fn stop_all(&mut self) -> Result<()> {
        for name in self.running() {
            self.stop(&name).await?;
        }
        Ok(())
    }

    fn running(&self) -> Vec<String> {
        let promised = self.promises.iter();
        promised
            .filter(|(_, promise)| matches!(promise, Promise::Running { .. }))
            .map(|(name, _)| name.clone())
            .collect()
    }
}

/// Returns the total number of tasks that should run.
pub fn promised_tasks(promises: &BTreeMap<String, Promise>) -> usize {
    let counts = promises.values().map(|promise| match promise {
        Promise::Running { count } => *count as usize,
        Promise::Stopped => 0,
    });
    counts.sum()
}

/// Process name of a [`sleeper`].
pub const SLEEPER: &str = "/bin/sleep 100000";

/// Compares the running allocations with the acknowledged state.
///
/// # Errors
/// The first job with a difference, or an open evaluation.
pub async fn check_promises(api: &Api, promises: &BTreeMap<String, Promise>) -> Result<()> {
    for (name, promise) in promises {
        let allocations = api.allocations(name).await?;
        let live: Vec<_> = allocations
            .iter()
            .filter(|alloc| {
                alloc.desired_status == "run"
                    && matches!(
                        alloc.client_status.as_str(),
                        "pending" | "running" | "unknown"
                    )
            })
            .collect();
        let running = live
            .iter()
            .filter(|alloc| alloc.client_status == "running")
            .count();
        let expected = match promise {
            Promise::Running { count } => *count as usize,
            Promise::Stopped => 0,
        };
        ensure!(
            live.len() == expected && running == expected,
            "{name}: {promise:?}, but {} live and {running} running: {:?}",
            live.len(),
            live.iter()
                .map(|alloc| (&alloc.name, &alloc.client_status))
                .collect::<Vec<_>>(),
        );
        // A stopped task may still be ending; its node reports the end.
        let ending: Vec<_> = allocations
            .iter()
            .filter(|alloc| alloc.desired_status != "run" && alloc.client_status == "running")
            .map(|alloc| alloc.name.clone())
            .collect();
        ensure!(ending.is_empty(), "{name}: still ending: {ending:?}");
    }
    let open: Vec<_> = api
        .evaluations()
        .await?
        .into_iter()
        .filter(|eval| eval.status == "pending" || eval.status == "blocked")
        .map(|eval| (eval.id, eval.job_id, eval.triggered_by, eval.status))
        .collect();
    ensure!(open.is_empty(), "evaluations without an end: {open:?}");
    Ok(())
}

/// A service job of small raw_exec tasks that run until they are stopped.
pub fn sleeper(name: &str, count: u32) -> v1::Job {
    let config = [
        ("command", string("/bin/sleep")),
        ("args", list(vec![string("100000")])),
    ];
    let task = v1::Task {
        name: Some("sleep".to_owned()),
        driver: Some("raw_exec".to_owned()),
        config: Some(structure(config)),
        resources: Some(v1::Resources {
            cpu_mhz: Some(20),
            memory_mib: Some(10),
            ..v1::Resources::default()
        }),
        logs: Some(v1::LogConfig {
            max_files: Some(1),
            max_file_size_mib: Some(1),
            disabled: None,
        }),
        kill_timeout: Some(seconds(2)),
        ..v1::Task::default()
    };
    let update = v1::UpdateStrategy {
        max_parallel: Some(3),
        min_healthy_time: Some(milliseconds(100)),
        ..v1::UpdateStrategy::default()
    };
    let group = v1::TaskGroup {
        name: Some("group".to_owned()),
        count: Some(i64::from(count)),
        tasks: vec![task],
        ephemeral_disk: Some(v1::EphemeralDisk {
            size_mib: Some(10),
            ..Default::default()
        }),
        update: Some(update),
        ..v1::TaskGroup::default()
    };
    v1::Job {
        id: Some(name.to_owned()),
        r#type: Some("service".to_owned()),
        task_groups: vec![group],
        ..v1::Job::default()
    }
}

fn seconds(count: i64) -> prost_types::Duration {
    prost_types::Duration {
        seconds: count,
        nanos: 0,
    }
}

fn milliseconds(count: i32) -> prost_types::Duration {
    prost_types::Duration {
        seconds: 0,
        nanos: count * 1_000_000,
    }
}

pub(crate) fn structure<const N: usize>(
    fields: [(&str, prost_types::Value); N],
) -> prost_types::Struct {
    prost_types::Struct {
        fields: fields
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
    }
}

pub(crate) fn string(text: &str) -> prost_types::Value {
    prost_types::Value {
        kind: Some(prost_types::value::Kind::StringValue(text.to_owned())),
    }
}

fn list(values: Vec<prost_types::Value>) -> prost_types::Value {
    prost_types::Value {
        kind: Some(prost_types::value::Kind::ListValue(
            prost_types::ListValue { values },
        )),
    }
}

/// A service job of one task named `task` that runs `script` in a shell.
pub fn shell_job(name: &str, script: &str) -> v1::Job {
    let mut job = sleeper(name, 1);
    for task in job
        .task_groups
        .iter_mut()
        .flat_map(|group| &mut group.tasks)
    {
        task.name = Some("task".to_owned());
        let config = [
            ("command", string("/bin/sh")),
            ("args", list(vec![string("-c"), string(script)])),
        ];
        task.config = Some(structure(config));
    }
    job
}

/// A batch job of simulated tasks that run for an hour.
pub fn mock_batch(name: &str, count: u32) -> v1::Job {
    let mut job = mock_service(name, count);
    job.r#type = Some("batch".to_owned());
    for group in &mut job.task_groups {
        group.update = None;
    }
    job
}

/// A service job of simulated tasks that run for an hour.
pub fn mock_service(name: &str, count: u32) -> v1::Job {
    let mut job = sleeper(name, count);
    for group in &mut job.task_groups {
        for task in &mut group.tasks {
            task.driver = Some("mock_driver".to_owned());
            task.config = Some(structure([("run_for", string("1h"))]));
        }
    }
    job
}
