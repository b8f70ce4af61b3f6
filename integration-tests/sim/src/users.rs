//! Somebody who asks the gateways for jobs, one after the other, and remembers what was answered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use invariants::Fact;
use model::{Job, JobKey, JobType};
use proto::v1;
use proto::v1::jobs_client::JobsClient;
use proto::v1::nodes_client::NodesClient;
use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use service_kit::{TracedChannel, connect_lazy, request};
use test_kit::builders;
use tonic::Code;

use crate::watcher::{REQUEST, Watcher};
use crate::world::Software;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(4);
/// How often a request without an answer is sent again.
const RETRIES: usize = 2;
const NAMESPACE: &str = "default";

/// What is known of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done; the job was last written at this revision.
    Done { job_index: u64 },
    /// It was not done, the gateway says.
    Refused(String),
    /// Nobody knows.
    Unknown(String),
}

/// One request, with what became of it.
#[derive(Clone, Debug)]
pub struct Asked {
    pub job: JobKey,
    pub request: String,
    /// Whether the job carries the request's name if it was done.
    pub is_named: bool,
    pub outcome: Outcome,
}

/// What was asked so far. Cheap to clone; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    asked: Vec<Asked>,
    is_over: bool,
}

impl Ledger {
    /// Has nothing more asked.
    pub fn end(&self) {
        self.lock().is_over = true;
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.lock().asked.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks whether everything that was acknowledged is in the history, and nothing undid it that
    /// nobody asked for.
    pub fn check(&self, watcher: &Watcher) {
        let mut last = BTreeMap::<JobKey, (usize, u64)>::new();
        let asked = self.asked();
        for (position, asked) in asked.iter().enumerate() {
            let Outcome::Done { job_index } = asked.outcome else {
                continue;
            };
            last.insert(asked.job.clone(), (position, job_index));
            let written = watcher.written(&asked.job, job_index);
            let is_there = match &written {
                None => false,
                Some(request) => !asked.is_named || *request == asked.request,
            };
            if !is_there {
                let text = format!(
                    "{} of {} was acknowledged at {job_index}, where it is {written:?}",
                    asked.request, asked.job
                );
                watcher.report(Fact::AcknowledgedIsKept, text);
            }
        }
        for (job, (position, index)) in last {
            // Whoever got no answer may have been heard; what has no name leaves the one before.
            let may = |request: &str| {
                let unanswered = asked.iter().filter(|asked| {
                    asked.job == job && !matches!(asked.outcome, Outcome::Done { .. })
                });
                let mut unanswered = unanswered;
                unanswered.any(|asked| !asked.is_named || asked.request == request)
            };
            let own = &asked[position].request;
            for (revision, request) in watcher.writes_after(&job, index) {
                if !may(&request) {
                    let text = format!(
                        "{own} of {job} was acknowledged at {index} and undone at {revision} by \
                         {request:?}"
                    );
                    watcher.report(Fact::AcknowledgedIsKept, text);
                }
            }
        }
    }
}

/// Returns a machine that asks.
pub fn software(seed: u64, gateways: Vec<String>, ledger: Ledger) -> Software {
    Box::new(move || {
        let user = User {
            gateways: gateways.clone(),
            ledger: ledger.clone(),
            rng: StdRng::seed_from_u64(seed),
            count: 0,
        };
        Box::pin(user.run())
    })
}

struct User {
    gateways: Vec<String>,
    ledger: Ledger,
    rng: StdRng,
    count: u32,
}

impl User {
    async fn run(mut self) -> Result<(), String> {
        loop {
            let pause = self.rng.random_range(20..800);
            tokio::time::sleep(Duration::from_millis(pause)).await;
            if self.ledger.lock().is_over {
                std::future::pending::<()>().await;
            }
            self.ask().await?;
        }
    }

    async fn ask(&mut self) -> Result<(), String> {
        if self.rng.random_range(0..12_u32) == 0 {
            return self.drain().await;
        }
        self.count += 1;
        let request = format!("r{}", self.count);
        let (id, job_type) = match self.rng.random_range(0..8_u32) {
            0 | 1 => ("web-a", JobType::Service),
            2 | 3 => ("web-b", JobType::Service),
            4 => ("web-c", JobType::Service),
            5 => ("work-a", JobType::Batch),
            6 => ("work-b", JobType::Batch),
            _ => ("each", JobType::System),
        };
        let what = match self.rng.random_range(0..10_u32) {
            0 => What::Stop { purge: false },
            1 => What::Stop { purge: true },
            2 | 3 if job_type == JobType::Service => What::Scale(self.rng.random_range(0..6)),
            _ => What::Register(Box::new(self.job(id, job_type, &request))),
        };
        let is_named = matches!(what, What::Register(_));
        let mut outcome = Outcome::Unknown(String::new());
        for _ in 0..=RETRIES {
            let gateway = self.rng.random_range(0..self.gateways.len());
            let channel = connect_lazy(&self.gateways[gateway]);
            let client = JobsClient::new(channel.map_err(|error| error.to_string())?);
            let before = matches!(outcome, Outcome::Unknown(_));
            outcome = send(client, id, &request, what.clone()).await;
            let is_over = match &outcome {
                Outcome::Done { .. } => true,
                Outcome::Refused(_) => before,
                // Only what has a request id may be asked twice.
                Outcome::Unknown(_) => !is_named,
            };
            if is_over {
                break;
            }
            tokio::time::sleep(Duration::from_millis(self.rng.random_range(10..500))).await;
        }
        let asked = Asked {
            job: JobKey::new(NAMESPACE, id),
            request,
            is_named,
            outcome,
        };
        self.ledger.lock().asked.push(asked);
        Ok(())
    }

    /// Has a node drained, or all of them take work again. What becomes of it is seen by what runs.
    async fn drain(&mut self) -> Result<(), String> {
        let gateway = self.rng.random_range(0..self.gateways.len());
        let chosen = self.rng.next_u64();
        let ends = self.rng.random_bool(0.6);
        let channel = connect_lazy(&self.gateways[gateway]).map_err(|error| error.to_string())?;
        let mut client = NodesClient::new(channel);
        let sent = async {
            let message = v1::ListNodesRequest::default();
            let answer = client.list(request(message, PATIENCE)).await?;
            let mut ids: Vec<String> = answer
                .into_inner()
                .nodes
                .into_iter()
                .map(|it| it.id)
                .collect();
            ids.sort_unstable();
            if !ends && !ids.is_empty() {
                let place = usize::try_from(chosen % ids.len() as u64).unwrap_or_default();
                ids = vec![ids.swap_remove(place)];
            }
            for node_id in ids {
                let drain_spec = (!ends).then(|| v1::DrainSpec {
                    deadline_ns: 5_000_000_000,
                    ..v1::DrainSpec::default()
                });
                let message = v1::UpdateNodeDrainRequest {
                    node_id,
                    drain_spec,
                    mark_eligible: ends,
                    ..v1::UpdateNodeDrainRequest::default()
                };
                client.update_drain(request(message, PATIENCE)).await?;
            }
            Ok::<_, tonic::Status>(())
        };
        // Whether it was heard or not, everything must come to rest.
        let _ = tokio::time::timeout(PATIENCE, sent).await;
        Ok(())
    }

    fn job(&mut self, id: &str, job_type: JobType, request: &str) -> Job {
        let count = match job_type {
            JobType::System => 1,
            _ => self.rng.random_range(1..6),
        };
        let mut job = match job_type {
            JobType::Batch => builders::batch(id, count),
            _ => builders::service(id, count),
        };
        job.job_type = job_type;
        job.meta.insert(REQUEST.to_owned(), request.to_owned());
        let max_parallel = self.rng.random_range(1..=2);
        let cpu_mhz = self.rng.random_range(3..=12) * 100;
        let is_replaced = self.rng.random_bool(0.7);
        let fails_first = self.rng.random_bool(0.2);
        let group = &mut job.task_groups[0];
        group.restart.delay = Duration::from_secs(1);
        group.restart.attempts = 1;
        if let Some(reschedule) = &mut group.reschedule {
            reschedule.delay = Duration::from_secs(5);
            reschedule.max_delay = Duration::from_secs(10);
        }
        if job_type == JobType::System {
            group.reschedule = None;
            group.migrate = None;
        }
        if job_type != JobType::Batch {
            let mut update = builders::rolling_update(max_parallel);
            update.min_healthy_time = Duration::from_secs(1);
            update.healthy_deadline = Duration::from_secs(10);
            update.progress_deadline = Duration::from_secs(30);
            group.update = Some(update);
        }
        let task = &mut group.tasks[0];
        task.restart = group.restart;
        task.resources.cpu_mhz = cpu_mhz;
        task.kill_timeout = Duration::from_secs(1);
        let run_for = match job_type {
            JobType::Batch => "2s",
            _ => "1000h",
        };
        let mut say = |name: &str, value: serde_json::Value| {
            task.config.insert(name.to_owned(), value);
        };
        say("run_for", run_for.into());
        if fails_first && job_type == JobType::Batch {
            say("exit_code", 1.into());
            say("fail_attempts", 1.into());
        }
        if is_replaced {
            task.env.insert("REQUEST".to_owned(), request.to_owned());
        }
        job
    }
}

#[derive(Clone)]
enum What {
    Register(Box<Job>),
    Scale(u32),
    Stop { purge: bool },
}

async fn send(mut client: JobsClient<TracedChannel>, id: &str, name: &str, what: What) -> Outcome {
    let job_id = id.to_owned();
    let sent = async {
        let job_index = match what {
            What::Register(job) => {
                let message = v1::RegisterJobRequest {
                    job: Some((&*job).into()),
                    request_id: name.to_owned(),
                    ..v1::RegisterJobRequest::default()
                };
                let answer = client.register(request(message, PATIENCE)).await?;
                answer.into_inner().job_modify_index
            }
            What::Scale(count) => {
                let message = v1::ScaleJobRequest {
                    job_id,
                    task_group: "web".to_owned(),
                    count: Some(count),
                    ..v1::ScaleJobRequest::default()
                };
                let answer = client.scale(request(message, PATIENCE)).await?;
                answer.into_inner().job_modify_index
            }
            What::Stop { purge } => {
                let message = v1::DeregisterJobRequest {
                    job_id,
                    purge,
                    request_id: name.to_owned(),
                    ..v1::DeregisterJobRequest::default()
                };
                let answer = client.deregister(request(message, PATIENCE)).await?;
                let answer = answer.into_inner();
                if answer.eval_id.is_empty() {
                    return Ok(Outcome::Refused("there is no such job".to_owned()));
                }
                answer.job_modify_index
            }
        };
        Ok::<_, tonic::Status>(Outcome::Done { job_index })
    };
    match tokio::time::timeout(PATIENCE, sent).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(status)) => {
            let text = format!("{:?}: {}", status.code(), status.message());
            match status.code() {
                Code::InvalidArgument
                | Code::NotFound
                | Code::FailedPrecondition
                | Code::AlreadyExists => Outcome::Refused(text),
                _ => Outcome::Unknown(text),
            }
        }
        Err(_) => Outcome::Unknown("no answer".to_owned()),
    }
}
