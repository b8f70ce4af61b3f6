//! A run: the cluster, the fleet, and the samples so far.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures::StreamExt as _;
use kafila_client::Client;
use proto::v1;
use tokio::time::{Instant, sleep};

use crate::args::{Common, Fleet as Jobs};
use crate::hollow::fleet::{Fleet, Options};
use crate::hollow::node::Behaviour;
use crate::jobs;
use crate::sample::{self, Process, Sample};
use crate::target::Target;

/// Registrations in flight.
const REGISTERING: usize = 32;
const POLL: Duration = Duration::from_millis(20);
/// The API is asked less often: a list costs the gateway more than a look at the own nodes.
const API_POLL: Duration = Duration::from_secs(1);
/// Name of this process in samples; it is no part of the sum.
pub(crate) const SELF: &str = "kafila-bench";

/// A run in progress.
pub(crate) struct Bench {
    pub(crate) api: Client,
    pub(crate) common: Common,
    pub(crate) target: Target,
    /// `None`: the cluster's own nodes.
    fleet: Option<Arc<Fleet>>,
    /// The last one is this process.
    pub(crate) processes: Vec<Process>,
    samples: Arc<Mutex<Vec<Sample>>>,
    began: Instant,
    /// Memory of this process before the nodes and after their registration, in KiB.
    pub(crate) own_kib: (u64, u64),
    prefix: String,
}

/// The time after which a registration that was refused or late fails the load.
const REGISTRATION_LIMIT: Duration = Duration::from_secs(300);

/// Tells whether the gateway had no time for a request.
fn is_late(error: &kafila_client::Error) -> bool {
    error.is_overload() || error.code() == tonic::Code::DeadlineExceeded
}

impl Bench {
    /// Connects, registers the nodes and starts the samples.
    ///
    /// # Errors
    /// The cluster does not answer or refuses a node.
    pub(crate) async fn start(common: &Common) -> Result<Self> {
        let target = Target::open(common).await?;
        let api = target.api.clone();
        let own = std::process::id();
        let mut processes: Vec<Process> = Vec::new();
        for (name, pid) in &target.processes {
            ensure!(
                sample::usage(*pid).is_some(),
                "there is no process {pid} for {name}"
            );
            let name = name.clone();
            processes.push(Process { name, pid: *pid });
        }
        processes.push(Process {
            name: SELF.to_owned(),
            pid: own,
        });
        let resident = || sample::usage(own).map_or(0, |usage| usage.resident_kib);
        let before = resident();
        let fleet = match common.nodes {
            0 => None,
            nodes => Some(Fleet::start(options(common, nodes, &target)).await?),
        };
        let prefix = match &fleet {
            Some(fleet) => format!("bench-{}", fleet.run()),
            None => format!("bench-{:06x}", rand::random_range(0..1 << 24)),
        };
        if let Some(fleet) = &fleet {
            tokio::spawn(Arc::clone(fleet).check_pairs(api.clone()));
        }
        let bench = Self {
            api,
            common: common.clone(),
            target,
            fleet,
            processes,
            samples: Arc::default(),
            began: Instant::now(),
            own_kib: (before, resident()),
            prefix,
        };
        bench.sample();
        Ok(bench)
    }

    fn sample(&self) {
        let (processes, samples) = (self.processes.clone(), Arc::clone(&self.samples));
        let (fleet, began) = (self.fleet.clone(), self.began);
        tokio::spawn(async move {
            loop {
                let taken = take(&processes, fleet.as_deref(), began);
                lock(&samples).push(taken);
                sleep(Duration::from_secs(1)).await;
            }
        });
    }

    /// Takes a sample now, which begins or ends a measurement.
    pub(crate) fn mark(&self) -> Sample {
        take(&self.processes, self.fleet.as_deref(), self.began)
    }

    pub(crate) fn samples(&self) -> Vec<Sample> {
        lock(&self.samples).clone()
    }

    /// Returns the hollow nodes.
    ///
    /// # Errors
    /// The run uses the cluster's own nodes.
    pub(crate) fn fleet(&self) -> Result<&Arc<Fleet>> {
        let fleet = self.fleet.as_ref();
        fleet.context("this load needs hollow nodes: want -nodes=1 or more")
    }

    pub(crate) fn hollow(&self) -> Option<&Fleet> {
        self.fleet.as_deref()
    }

    /// Returns the id of a job of this run.
    pub(crate) fn job_id(&self, number: u32) -> String {
        format!("{}-{number}", self.prefix)
    }

    /// Registers a job, with retries while the outcome is unknown.
    ///
    /// # Errors
    /// The gateway refuses it, or none answers in time.
    pub(crate) async fn register(&self, job: v1::Job) -> Result<()> {
        self.registration(job).await
    }

    /// As [`Self::register`], to be awaited in another task.
    pub(crate) fn registration(
        &self,
        job: v1::Job,
    ) -> impl Future<Output = Result<()>> + Send + 'static {
        let (id, api) = (job.id().to_owned(), self.api.clone());
        let request = v1::RegisterJobRequest {
            job: Some(job),
            request_id: format!("{id}-{:016x}", rand::random::<u64>()),
            ..v1::RegisterJobRequest::default()
        };
        async move {
            let began = Instant::now();
            loop {
                let is_early = began.elapsed() < REGISTRATION_LIMIT;
                match api.jobs().register(request.clone()).await {
                    // The gateway has as many requests as it works on: the job waits here.
                    Err(error) if is_early && is_late(&error) => {}
                    answer => {
                        answer.with_context(|| format!("registering {id}"))?;
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Registers the jobs of a fleet. Returns the time until the last one was acknowledged.
    ///
    /// # Errors
    /// Those of [`Self::register`].
    pub(crate) async fn register_all(&self, fleet: &Jobs) -> Result<Duration> {
        let began = Instant::now();
        let registering = futures::stream::iter(0..fleet.jobs)
            .map(|number| self.register(jobs::of(&self.job_id(number), fleet)))
            .buffer_unordered(REGISTERING);
        let answers: Vec<Result<()>> = registering.collect().await;
        answers.into_iter().collect::<Result<()>>()?;
        Ok(began.elapsed())
    }

    /// Returns the numbers of allocations that were placed and that were reported as running or ended.
    ///
    /// # Errors
    /// No gateway answers.
    pub(crate) async fn progress(&self) -> Result<(u64, u64)> {
        if let Some(fleet) = &self.fleet {
            let registry = fleet.registry();
            let progress = &registry.progress;
            return Ok((progress.assigned, progress.reported));
        }
        let request = v1::ListJobsRequest {
            options: Some(v1::QueryOptions {
                prefix: self.prefix.clone(),
                ..v1::QueryOptions::default()
            }),
        };
        let answer = self.api.jobs().list(request).await?;
        let (mut placed, mut running) = (0, 0);
        let summaries = answer.jobs.iter().filter_map(|job| job.summary.as_ref());
        for group in summaries.flat_map(|summary| summary.task_groups.values()) {
            let ran =
                u64::from(group.running) + u64::from(group.complete) + u64::from(group.failed);
            running += ran;
            placed += ran + u64::from(group.starting);
        }
        Ok((placed, running))
    }

    /// Waits until `goal` holds for the numbers of [`Self::progress`]. Returns the time since `began`.
    ///
    /// # Errors
    /// It does not within the limit of a step, or no gateway answers.
    pub(crate) async fn reach(
        &self,
        what: &str,
        began: Instant,
        goal: impl Fn(u64, u64) -> bool,
    ) -> Result<Duration> {
        let deadline = Instant::now() + self.common.limit;
        let poll = if self.fleet.is_some() { POLL } else { API_POLL };
        loop {
            let (placed, running) = self.progress().await?;
            if goal(placed, running) {
                return Ok(began.elapsed());
            }
            if Instant::now() > deadline {
                bail!(
                    "{what}: not within {:?} (-limit): {placed} allocations placed, {running} running",
                    self.common.limit
                );
            }
            sleep(poll).await;
        }
    }

    /// Waits until `goal` holds.
    ///
    /// # Errors
    /// It does not within the limit of a step.
    pub(crate) async fn until(&self, what: &str, goal: impl Fn() -> bool) -> Result<()> {
        let deadline = Instant::now() + self.common.limit;
        while !goal() {
            let limit = self.common.limit;
            ensure!(
                Instant::now() <= deadline,
                "{what}: not within {limit:?} (-limit)"
            );
            sleep(POLL).await;
        }
        Ok(())
    }
}

fn options(common: &Common, nodes: u32, target: &Target) -> Options {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Options {
        nodes,
        racks: common.racks,
        behaviour: Behaviour {
            start_delay: millis(common.start_delay),
            failure_rate: common.failure_rate,
            fails_after: millis(common.fails_after),
        },
        gateways: target.gateways.clone(),
    }
}

fn take(processes: &[Process], fleet: Option<&Fleet>, began: Instant) -> Sample {
    let usages = processes.iter().map(|process| sample::usage(process.pid));
    let usages = usages.collect();
    let (assigned, reported) = fleet.map_or((0, 0), |fleet| {
        let registry = fleet.registry();
        (registry.progress.assigned, registry.progress.reported)
    });
    Sample {
        at: began.elapsed(),
        usages,
        assigned,
        reported,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each critical section leaves consistent data.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
