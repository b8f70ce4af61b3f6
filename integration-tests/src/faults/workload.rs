//! Workload: users that register, update, stop and read jobs through several gateways, and record
//! requests, times and answers.
//!
//! Each user calls one gateway until it fails, then the next, like a client library. Retries are
//! idempotent through the request id; a request without an answer may still take effect.

use std::error::Error as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use linearizability::Operation;
use proto::v1;
use proto::v1::jobs_client::JobsClient;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use service_kit::{TracedChannel, connect_lazy};
use tokio::sync::Semaphore;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tonic::{Code, Request, Status};

use super::job::{Answer, JobRequest};
use crate::load::mock_service;

/// Number of users; each has its own connections.
const USERS: usize = 8;
/// Number of active jobs: few, so that requests for the same job overlap.
const SLOTS: usize = 24;
/// Requests per job before another one takes its slot.
const REQUESTS_A_JOB: u32 = 40;
/// Timeout of one attempt, before the next gateway is called.
const ATTEMPT: Duration = Duration::from_secs(3);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(50);
/// Timeout of a request with all attempts: longer than any fault that can block it.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Limit of requests in flight; further ones are skipped and counted.
const MAX_IN_FLIGHT: usize = 600;

/// Meta key of the tag of a registration.
const TAG: &str = "tag";

/// One request with its outcome. Times are microseconds since the run began.
#[derive(Clone, Debug)]
pub struct Record {
    pub job: String,
    /// Time of the first attempt.
    pub began: u64,
    /// The operation for the linearizability check.
    pub operation: Operation<JobRequest, Answer>,
}

/// All recorded observations.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    pub records: Vec<Record>,
    /// Stale reads: time, and whether there was an answer.
    pub stale: Vec<(u64, bool)>,
    /// Number of attempts.
    pub attempts: u64,
    pub attempts_failed: u64,
    /// Requests without an answer within [`TIMEOUT`].
    pub given_up: Vec<(u64, String)>,
    /// Unexplained refusals.
    pub refused: Vec<String>,
    /// Requests skipped because too many were in flight.
    pub not_asked: u64,
}

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Workload {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    began: Instant,
    users: Vec<User>,
    seen: Mutex<Observations>,
    under_way: Arc<Semaphore>,
}

#[derive(Debug)]
struct User {
    gateways: Vec<JobsClient<TracedChannel>>,
    current: AtomicUsize,
}

/// Result of one attempt.
enum Attempt<T> {
    Answered(T),
    /// It certainly reached no gateway.
    NotSent,
    /// Unknown outcome.
    Unknown,
    Refused(Status),
}

impl Workload {
    /// Creates the users, with the `gateways` as first choice in turn. Times count from `began`.
    ///
    /// # Errors
    /// An address is not a URL.
    pub fn new(gateways: &[String], began: Instant) -> Result<Self> {
        let mut users = Vec::new();
        for number in 0..USERS {
            let connect = |address: &String| Ok(JobsClient::new(connect_lazy(address)?));
            users.push(User {
                gateways: gateways.iter().map(connect).collect::<Result<_>>()?,
                current: AtomicUsize::new(number),
            });
        }
        let shared = Shared {
            began,
            users,
            seen: Mutex::default(),
            under_way: Arc::new(Semaphore::new(MAX_IN_FLIGHT)),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Makes `rate` requests a second until dropped: of ten, six register or update, one or two
    /// stop, and the rest read.
    pub async fn act(&self, seed: u64, rate: u32) {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut slots: Vec<Slot> = (0..SLOTS).map(Slot::new).collect();
        let mut ticks = interval(Duration::from_secs(1) / rate.max(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut number = 0;
        loop {
            ticks.tick().await;
            number += 1;
            let slot = &mut slots[rng.random_range(0..SLOTS)];
            let (job, ask) = slot.next(&mut rng, number);
            let count = rng.random_range(1..=3);
            let Ok(permit) = Arc::clone(&self.shared.under_way).try_acquire_owned() else {
                self.seen().not_asked += 1;
                continue;
            };
            let shared = Arc::clone(&self.shared);
            let number_of_user = rng.random_range(0..USERS);
            tokio::spawn(async move {
                let user = &shared.users[number_of_user];
                match ask {
                    JobRequest::Register { tag } => shared.register(user, job, tag, count).await,
                    JobRequest::Stop => shared.stop(user, job, number).await,
                    JobRequest::Read => shared.read(user, job).await,
                }
                drop(permit);
            });
            if number % 10 == 0 {
                let shared = Arc::clone(&self.shared);
                tokio::spawn(async move { shared.read_stale(&shared.users[number_of_user]).await });
            }
        }
    }

    /// Waits for all requests in flight: at most [`TIMEOUT`].
    pub async fn finish(&self) {
        let all = u32::try_from(MAX_IN_FLIGHT).unwrap_or(u32::MAX);
        drop(self.shared.under_way.acquire_many(all).await);
    }

    /// Reads every job once through each gateway.
    pub async fn read_all(&self) {
        let mut jobs: Vec<String> = self.seen().records.iter().map(|r| r.job.clone()).collect();
        jobs.sort();
        jobs.dedup();
        for (number, job) in jobs.into_iter().enumerate() {
            for twin in 0..2 {
                self.shared
                    .read(&self.shared.users[(2 * number + twin) % USERS], job.clone())
                    .await;
            }
        }
    }

    pub fn seen(&self) -> MutexGuard<'_, Observations> {
        self.shared
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of requests in flight.
    pub fn under_way(&self) -> usize {
        MAX_IN_FLIGHT - self.shared.under_way.available_permits()
    }
}

/// A slot for a sequence of jobs.
struct Slot {
    number: usize,
    generation: u32,
    requests: u32,
}

impl Slot {
    fn new(number: usize) -> Self {
        Self {
            number,
            generation: 0,
            requests: 0,
        }
    }

    /// Returns the next request for this slot's job. Each job starts with a registration, and most end
    /// stopped, so that the cluster does not fill up.
    fn next(&mut self, rng: &mut StdRng, tag: u64) -> (String, JobRequest) {
        let job = format!("job-{}-{}", self.number, self.generation);
        self.requests += 1;
        if self.requests == 1 {
            return (job, JobRequest::Register { tag });
        }
        if self.requests >= REQUESTS_A_JOB {
            self.generation += 1;
            self.requests = 0;
            if rng.random_ratio(3, 4) {
                return (job, JobRequest::Stop);
            }
        }
        let ask = match rng.random_range(0..100) {
            0..60 => JobRequest::Register { tag },
            60..75 => JobRequest::Stop,
            _ => JobRequest::Read,
        };
        (job, ask)
    }
}

impl Shared {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    async fn register(&self, user: &User, job: String, tag: u64, count: u32) {
        let began = self.now();
        let mut wanted = mock_service(&job, count);
        wanted.meta.insert(TAG.to_owned(), tag.to_string());
        let request = v1::RegisterJobRequest {
            job: Some(wanted),
            request_id: format!("{tag}"),
            ..v1::RegisterJobRequest::default()
        };
        let input = JobRequest::Register { tag };
        let what = format!("registering {job} with tag {tag}");
        let operation = loop {
            let asked = self.ask(user, async |mut gateway: JobsClient<TracedChannel>| {
                gateway.register(deadlined(request.clone())).await
            });
            match asked.await {
                Attempt::Answered(answer) => {
                    let answer = Answer::Since(answer.index);
                    break Operation::known(input, began, self.now(), answer);
                }
                Attempt::Refused(status) => return self.refused(&what, &status),
                Attempt::NotSent | Attempt::Unknown if self.is_over(began) => {
                    self.give_up(began, what);
                    break Operation::unknown(input, began);
                }
                Attempt::NotSent | Attempt::Unknown => sleep(PAUSE).await,
            }
        };
        self.note(job, began, operation);
    }

    async fn stop(&self, user: &User, job: String, number: u64) {
        let began = self.now();
        let request = v1::DeregisterJobRequest {
            job_id: job.clone(),
            request_id: format!("{number}"),
            ..v1::DeregisterJobRequest::default()
        };
        let what = format!("stopping {job}");
        let operation = loop {
            let asked = self.ask(user, async |mut gateway: JobsClient<TracedChannel>| {
                gateway.deregister(deadlined(request.clone())).await
            });
            match asked.await {
                Attempt::Answered(answer) => {
                    let answer = match answer.eval_id.as_str() {
                        "" => Answer::Missing,
                        _ => Answer::Since(answer.job_modify_index),
                    };
                    break Operation::known(JobRequest::Stop, began, self.now(), answer);
                }
                Attempt::Refused(status) => return self.refused(&what, &status),
                Attempt::NotSent | Attempt::Unknown if self.is_over(began) => {
                    self.give_up(began, what);
                    break Operation::unknown(JobRequest::Stop, began);
                }
                Attempt::NotSent | Attempt::Unknown => sleep(PAUSE).await,
            }
        };
        self.note(job, began, operation);
    }

    async fn read(&self, user: &User, job: String) {
        let began = self.now();
        let request = v1::GetJobRequest {
            job_id: job.clone(),
            ..v1::GetJobRequest::default()
        };
        let what = format!("reading {job}");
        loop {
            let invoked = self.now();
            let asked = self.ask(user, async |mut gateway: JobsClient<TracedChannel>| {
                gateway.get(deadlined(request.clone())).await
            });
            let answer = match asked.await {
                Attempt::Answered(answer) => found(answer.job.unwrap_or_default()),
                Attempt::Refused(status) if status.code() == Code::NotFound => {
                    Some(Answer::Missing)
                }
                Attempt::Refused(status) => return self.refused(&what, &status),
                Attempt::NotSent | Attempt::Unknown if self.is_over(began) => {
                    return self.give_up(began, what);
                }
                Attempt::NotSent | Attempt::Unknown => {
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let Some(answer) = answer else {
                self.seen()
                    .refused
                    .push(format!("{what}: a job without tag or index"));
                return;
            };
            let operation = Operation::known(JobRequest::Read, invoked, self.now(), answer);
            return self.note(job, began, operation);
        }
    }

    /// Makes one stale read.
    async fn read_stale(&self, user: &User) {
        let at = self.now();
        let options = v1::QueryOptions {
            consistency: v1::Consistency::Stale.into(),
            per_page: 1,
            ..v1::QueryOptions::default()
        };
        let request = v1::ListJobsRequest {
            options: Some(options),
        };
        let asked = self.ask(user, async |mut gateway: JobsClient<TracedChannel>| {
            gateway.list(deadlined(request)).await
        });
        let is_answered = matches!(asked.await, Attempt::Answered(_));
        self.seen().stale.push((at, is_answered));
    }

    /// Makes one attempt at a gateway. After a failure the next attempt goes to another one.
    async fn ask<T>(
        &self,
        user: &User,
        call: impl AsyncFnOnce(JobsClient<TracedChannel>) -> Result<tonic::Response<T>, Status>,
    ) -> Attempt<T> {
        let current = user.current.load(Ordering::Relaxed);
        let gateway = user.gateways[current % user.gateways.len()].clone();
        // The deadline in the request is for the server; this one is local.
        let answer = tokio::time::timeout(ATTEMPT, call(gateway)).await;
        self.seen().attempts += 1;
        let status = match answer {
            Ok(Ok(answer)) => return Attempt::Answered(answer.into_inner()),
            Ok(Err(status)) => status,
            Err(_) => Status::deadline_exceeded("no answer"),
        };
        let is_final = matches!(
            status.code(),
            Code::InvalidArgument
                | Code::NotFound
                | Code::AlreadyExists
                | Code::PermissionDenied
                | Code::Unauthenticated
                | Code::FailedPrecondition
                | Code::OutOfRange
                | Code::Unimplemented
                | Code::Internal
                | Code::DataLoss
        );
        if is_final {
            return Attempt::Refused(status);
        }
        self.seen().attempts_failed += 1;
        // Only if no concurrent attempt has done so already.
        let next = current + 1;
        let _ = user
            .current
            .compare_exchange(current, next, Ordering::Relaxed, Ordering::Relaxed);
        if never_sent(&status) {
            Attempt::NotSent
        } else {
            Attempt::Unknown
        }
    }

    fn is_over(&self, began: u64) -> bool {
        Duration::from_micros(self.now() - began) > TIMEOUT
    }

    fn note(&self, job: String, began: u64, operation: Operation<JobRequest, Answer>) {
        let record = Record {
            job,
            began,
            operation,
        };
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .records
            .push(record);
    }

    fn give_up(&self, began: u64, what: String) {
        self.seen().given_up.push((began, what));
    }

    fn refused(&self, what: &str, status: &Status) {
        let text = format!("{what}: {:?}: {}", status.code(), status.message());
        self.seen().refused.push(text);
    }

    fn seen(&self) -> MutexGuard<'_, Observations> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn found(job: v1::Job) -> Option<Answer> {
    Some(Answer::Found {
        tag: job.meta.get(TAG)?.parse().ok()?,
        stopped: job.stop.unwrap_or_default(),
        since: job.job_modify_index?,
    })
}

/// Returns the tag of a stored job, and whether it is stopped.
pub fn stored(job: &model::Job) -> Option<(u64, bool)> {
    Some((job.meta.get(TAG)?.parse().ok()?, job.stop))
}

fn deadlined<T>(message: T) -> Request<T> {
    service_kit::request(message, ATTEMPT)
}

/// Returns whether no connection was made, so that no gateway can have read the request.
fn never_sent(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<tonic::ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}
