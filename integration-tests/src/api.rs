//! Client of the public API for tests: the generated clients, with a deadline per call and retries
//! while a gateway is down.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use proto::v1;
use proto::v1::allocations_client::AllocationsClient;
use proto::v1::deployments_client::DeploymentsClient;
use proto::v1::evaluations_client::EvaluationsClient;
use proto::v1::jobs_client::JobsClient;
use proto::v1::nodes_client::NodesClient;
use proto::v1::operator_client::OperatorClient;
use tls::Connector;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

/// Deadline of one call: longer than a failover, so that a call is not cut off.
const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// Retry pause of a call without an answer.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// A client of one or several gateways. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Api {
    channels: Arc<[Channel]>,
    calls: Arc<AtomicUsize>,
}

impl Api {
    /// A client of one gateway, in plaintext.
    ///
    /// # Errors
    /// `address` is not a URL.
    pub fn new(address: &str) -> Result<Self> {
        Ok(Self::of(vec![endpoint(address)?.connect_lazy()]))
    }

    /// Returns a client that takes several gateways by turns, over TLS. A call to one that is down
    /// fails, and its retry reaches another.
    ///
    /// # Errors
    /// An address is not a URL.
    pub fn secured(addresses: &[String], connector: &Connector) -> Result<Self> {
        let channel = |address: &String| {
            let endpoint = endpoint(address)?;
            Ok(endpoint.connect_with_connector_lazy(connector.clone()))
        };
        Ok(Self::of(
            addresses.iter().map(channel).collect::<Result<_>>()?,
        ))
    }

    fn of(channels: Vec<Channel>) -> Self {
        Self {
            channels: channels.into(),
            calls: Arc::default(),
        }
    }

    /// Returns the channel of the next call.
    fn channel(&self) -> Channel {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        self.channels[call % self.channels.len()].clone()
    }

    /// Registers a job, without retries: the outcome is unknown if the answer is lost.
    ///
    /// # Errors
    /// The error of the gateway or the connection.
    pub async fn register(
        &self,
        job: v1::Job,
        request_id: &str,
    ) -> Result<v1::RegisterJobResponse, Status> {
        let request = v1::RegisterJobRequest {
            job: Some(job),
            request_id: request_id.to_owned(),
            ..v1::RegisterJobRequest::default()
        };
        let mut client = JobsClient::new(self.channel());
        client
            .register(with_deadline(request))
            .await
            .map(tonic::Response::into_inner)
    }

    /// Registers a job, with retries under the same request id while the outcome is unknown.
    ///
    /// # Errors
    /// The gateway refuses it, or none answers within `timeout`.
    pub async fn register_surely(
        &self,
        job: &v1::Job,
        request_id: &str,
        timeout: Duration,
    ) -> Result<v1::RegisterJobResponse> {
        let what = format!("registering {:?}", job.id);
        retry(&what, timeout, || self.register(job.clone(), request_id)).await
    }

    /// Stops a job, with retries while the outcome is unknown.
    ///
    /// # Errors
    /// The gateway refuses, or none answers within `timeout`.
    pub async fn stop_surely(&self, job_id: &str, purge: bool, timeout: Duration) -> Result<()> {
        let request = v1::DeregisterJobRequest {
            job_id: job_id.to_owned(),
            purge,
            request_id: RandomState::new().hash_one(job_id).to_string(),
            ..v1::DeregisterJobRequest::default()
        };
        retry(&format!("stopping {job_id}"), timeout, || async {
            let mut client = JobsClient::new(self.channel());
            client.deregister(with_deadline(request.clone())).await
        })
        .await
        .map(drop)
    }

    /// # Errors
    /// The gateway's error, after a few retries.
    pub async fn job(&self, job_id: &str) -> Result<v1::GetJobResponse> {
        let request = v1::GetJobRequest {
            job_id: job_id.to_owned(),
            ..Default::default()
        };
        self.read("job", || async {
            let mut client = JobsClient::new(self.channel());
            client.get(with_deadline(request.clone())).await
        })
        .await
    }

    /// # Errors
    /// The gateway's error, after a few retries.
    pub async fn jobs(&self) -> Result<Vec<v1::JobStub>> {
        let answer = self
            .read("jobs", || async {
                let mut client = JobsClient::new(self.channel());
                client
                    .list(with_deadline(v1::ListJobsRequest::default()))
                    .await
            })
            .await?;
        Ok(answer.jobs)
    }

    /// Returns the allocations of a job, of every version.
    ///
    /// # Errors
    /// The gateway's error, after a few retries.
    pub async fn allocations(&self, job_id: &str) -> Result<Vec<v1::Allocation>> {
        let request = v1::ListJobAllocationsRequest {
            job_id: job_id.to_owned(),
            ..Default::default()
        };
        let answer = self
            .read("allocations", || async {
                let mut client = JobsClient::new(self.channel());
                client
                    .list_allocations(with_deadline(request.clone()))
                    .await
            })
            .await?;
        Ok(answer.allocations)
    }

    /// # Errors
    /// The gateway's error, after a few retries.
    pub async fn allocation(&self, alloc_id: &str) -> Result<v1::Allocation> {
        let request = v1::GetAllocationRequest {
            alloc_id: alloc_id.to_owned(),
            ..Default::default()
        };
        let answer = self
            .read("allocation", || async {
                let mut client = AllocationsClient::new(self.channel());
                client.get(with_deadline(request.clone())).await
            })
            .await?;
        answer.allocation.context("an answer without an allocation")
    }

    /// # Errors
    /// The gateway's error, after a few retries.
    pub async fn evaluations(&self) -> Result<Vec<v1::Evaluation>> {
        let answer = self
            .read("evaluations", || async {
                let mut client = EvaluationsClient::new(self.channel());
                client
                    .list(with_deadline(v1::ListEvaluationsRequest::default()))
                    .await
            })
            .await?;
        Ok(answer.evaluations)
    }

    /// # Errors
    /// The gateway's error, after a few retries.
    pub async fn deployments(&self) -> Result<Vec<v1::Deployment>> {
        let answer = self
            .read("deployments", || async {
                let mut client = DeploymentsClient::new(self.channel());
                client
                    .list(with_deadline(v1::ListDeploymentsRequest::default()))
                    .await
            })
            .await?;
        Ok(answer.deployments)
    }

    /// # Errors
    /// The gateway's error, after a few retries.
    pub async fn nodes(&self) -> Result<Vec<v1::Node>> {
        let answer = self
            .read("nodes", || async {
                let mut client = NodesClient::new(self.channel());
                client
                    .list(with_deadline(v1::ListNodesRequest::default()))
                    .await
            })
            .await?;
        Ok(answer.nodes)
    }

    /// # Errors
    /// The gateway's error, after a few retries.
    pub async fn leaders(&self) -> Result<BTreeMap<String, v1::Leader>> {
        let answer = self
            .read("leaders", || async {
                let mut client = OperatorClient::new(self.channel());
                client
                    .list_leaders(with_deadline(v1::ListLeadersRequest::default()))
                    .await
            })
            .await?;
        Ok(answer
            .leaders
            .into_iter()
            .map(|leader| (leader.service.clone(), leader))
            .collect())
    }

    /// Returns the versions that the running processes of a service report.
    ///
    /// # Errors
    /// The gateway's error.
    pub async fn versions(&self, service: &str) -> Result<Vec<String>> {
        let answer = self
            .read("processes", || async {
                let mut client = OperatorClient::new(self.channel());
                client
                    .list_processes(with_deadline(v1::ListProcessesRequest::default()))
                    .await
            })
            .await?;
        let processes = answer.processes.into_iter();
        Ok(processes
            .filter(|process| process.service == service)
            .map(|process| process.version)
            .collect())
    }

    /// Returns the output of a task so far.
    ///
    /// # Errors
    /// The gateway's error.
    pub async fn logs(&self, alloc_id: &str, task: &str) -> Result<String> {
        let request = v1::LogsRequest {
            alloc_id: alloc_id.to_owned(),
            task: task.to_owned(),
            stream: v1::LogStream::Stdout.into(),
            ..v1::LogsRequest::default()
        };
        let mut client = AllocationsClient::new(self.channel());
        let mut chunks = client.logs(with_deadline(request)).await?.into_inner();
        let mut bytes = Vec::new();
        while let Some(chunk) = chunks.message().await? {
            bytes.extend(chunk.data);
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    async fn read<T, Call, Answer>(&self, what: &str, call: Call) -> Result<T>
    where
        Call: Fn() -> Answer,
        Answer: Future<Output = Result<tonic::Response<T>, Status>>,
    {
        let answer = retry(what, Duration::from_secs(15), call).await?;
        Ok(answer.into_inner())
    }
}

fn endpoint(address: &str) -> Result<Endpoint> {
    let endpoint = Endpoint::from_shared(address.to_owned());
    let endpoint = endpoint.with_context(|| format!("{address} is not an address"))?;
    Ok(endpoint.connect_timeout(Duration::from_secs(2)))
}

fn with_deadline<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(CALL_DEADLINE);
    request
}

/// Calls with retries until there is an answer.
async fn retry<T, Call, Answer>(what: &str, timeout: Duration, call: Call) -> Result<T>
where
    Call: Fn() -> Answer,
    Answer: Future<Output = Result<T, Status>>,
{
    let deadline = tokio::time::Instant::now() + timeout;
    loop {
        let status = match call().await {
            Ok(answer) => return Ok(answer),
            Err(status) => status,
        };
        let passing = matches!(
            status.code(),
            Code::Unavailable
                | Code::DeadlineExceeded
                | Code::Cancelled
                | Code::Unknown
                | Code::Aborted
                | Code::ResourceExhausted
        );
        if !passing || tokio::time::Instant::now() >= deadline {
            return Err(anyhow!("{what}: {:?}: {}", status.code(), status.message()));
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// Waits until `check` succeeds, and returns its result.
///
/// # Errors
/// The last error of `check` after `timeout`.
pub async fn eventually<T, Check, Found>(timeout: Duration, check: Check) -> Result<T>
where
    Check: Fn() -> Found,
    Found: Future<Output = Result<T>>,
{
    let deadline = tokio::time::Instant::now() + timeout;
    loop {
        match check().await {
            Ok(found) => return Ok(found),
            Err(missing) if tokio::time::Instant::now() >= deadline => {
                return Err(missing.context(format!("still failing after {timeout:?}")));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}
