//! gRPC service `kafila.v1.Agent`: the log of this process, and its level.
//!
//! Every service and node has it at its own address. The gateway forwards requests about other
//! processes and asks [`ProcessLog`] about itself.

mod wire;

use std::pin::Pin;
use std::time::Duration;

use futures::stream::{self, Stream, StreamExt as _};
use proto::status::invalid_field;
use proto::v1;
use proto::v1::agent_server::{Agent, AgentServer};
use service_kit::logs::level::{BadFilter, parse_targets};
use service_kit::{CancellationToken, Logs};
use tonic::{Request, Response, Status};
use tracing::info;

pub use proto::v1::agent_server::SERVICE_NAME;

/// Lines of a message, so that it stays far below the largest message of gRPC: a line has at most
/// some 10 KiB.
const BATCH: usize = 64;
/// The longest time until a level expires: longer than any investigation in one sitting.
const MAX_EXPIRY: Duration = Duration::from_secs(24 * 3600);

/// A stream of lines.
pub type Lines = Pin<Box<dyn Stream<Item = Result<v1::LogLines, Status>> + Send>>;

/// The log of this process. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ProcessLog {
    logs: Option<Logs>,
    /// Ends streams.
    drain: CancellationToken,
}

impl ProcessLog {
    /// Returns the log of the process that `service_kit::Telemetry` has started.
    pub fn new(drain: CancellationToken) -> Self {
        let logs = Logs::of_process();
        Self { logs, drain }
    }

    /// Returns the service about this process, which refuses other targets.
    pub fn into_server(self) -> AgentServer<Self> {
        AgentServer::new(self)
    }

    fn logs(&self) -> Result<&Logs, Status> {
        self.logs.as_ref().ok_or_else(|| {
            Status::failed_precondition("this process has no log: it is part of another program")
        })
    }

    /// # Errors
    /// The filter is none, or too many readers.
    pub fn open(&self, request: &v1::MonitorRequest) -> Result<Lines, Status> {
        let logs = self.logs()?;
        let filter = parse_targets(&request.filter).map_err(|error| bad_filter(&error))?;
        let count = usize::try_from(request.recent).unwrap_or(usize::MAX);
        if request.recent_only {
            return Ok(recent(logs, count).boxed());
        }
        // Opened before the recent lines are read: a line in between comes twice rather than never.
        let monitor = logs
            .monitor(filter)
            .map_err(|error| Status::resource_exhausted(error.to_string()))?;
        let following = stream::unfold(monitor, |mut monitor| async {
            let batch = monitor.next().await;
            let lines = v1::LogLines {
                lines: batch.records.iter().map(|it| wire::line(it)).collect(),
                dropped: batch.dropped,
            };
            Some((Ok(lines), monitor))
        });
        let drain = self.drain.clone().cancelled_owned();
        Ok(recent(logs, count)
            .chain(following)
            .take_until(drain)
            .boxed())
    }

    /// # Errors
    /// The process has no log.
    pub fn level(&self) -> Result<v1::GetLogLevelResponse, Status> {
        let level = Some(wire::level(self.logs()?.level()));
        Ok(v1::GetLogLevelResponse { level })
    }

    /// # Errors
    /// The filter is none, or the time is out of range.
    pub fn set_level(
        &self,
        request: &v1::SetLogLevelRequest,
    ) -> Result<v1::SetLogLevelResponse, Status> {
        let logs = self.logs()?;
        let expires_after = expiry(request.expires_after.as_ref())?;
        let change = logs
            .set_level(&request.filter, expires_after)
            .map_err(|error| bad_filter(&error))?;
        Ok(v1::SetLogLevelResponse {
            previous: change.previous,
            level: Some(wire::level(change.now)),
        })
    }
}

fn recent(logs: &Logs, count: usize) -> impl Stream<Item = Result<v1::LogLines, Status>> + use<> {
    let records = match count {
        0 => Vec::new(),
        count => logs.recent(count),
    };
    let batches: Vec<_> = records
        .chunks(BATCH)
        .map(|records| {
            Ok(v1::LogLines {
                lines: records.iter().map(|it| wire::line(it)).collect(),
                dropped: 0,
            })
        })
        .collect();
    stream::iter(batches)
}

fn bad_filter(error: &BadFilter) -> Status {
    invalid_field("filter", service_kit::run::chain(error))
}

fn expiry(expires_after: Option<&prost_types::Duration>) -> Result<Option<Duration>, Status> {
    let Some(given) = expires_after else {
        return Ok(None);
    };
    match Duration::try_from(*given) {
        Ok(after) if !after.is_zero() && after <= MAX_EXPIRY => Ok(Some(after)),
        _ => Err(invalid_field(
            "expires_after",
            "want more than 0s and at most 24h; absent: until the process ends",
        )),
    }
}

/// Tells whether a request is about another process.
pub fn has_target(target: Option<&v1::AgentTarget>) -> bool {
    target.is_some_and(|target| {
        let texts = [&target.service, &target.node_id, &target.process];
        texts.iter().any(|text| !text.is_empty())
    })
}

fn check_own(target: Option<&v1::AgentTarget>) -> Result<(), Status> {
    if !has_target(target) {
        return Ok(());
    }
    Err(invalid_field(
        "target",
        "only a gateway forwards requests: leave it out at the address of the process itself",
    ))
}

#[tonic::async_trait]
impl Agent for ProcessLog {
    type MonitorStream = Lines;

    async fn monitor(
        &self,
        request: Request<v1::MonitorRequest>,
    ) -> Result<Response<Self::MonitorStream>, Status> {
        let request = request.into_inner();
        check_own(request.target.as_ref())?;
        info!(filter = request.filter, "log is read remotely");
        Ok(Response::new(self.open(&request)?))
    }

    async fn get_log_level(
        &self,
        request: Request<v1::GetLogLevelRequest>,
    ) -> Result<Response<v1::GetLogLevelResponse>, Status> {
        check_own(request.into_inner().target.as_ref())?;
        Ok(Response::new(self.level()?))
    }

    async fn set_log_level(
        &self,
        request: Request<v1::SetLogLevelRequest>,
    ) -> Result<Response<v1::SetLogLevelResponse>, Status> {
        let request = request.into_inner();
        check_own(request.target.as_ref())?;
        Ok(Response::new(self.set_level(&request)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_expires_within_a_day_or_not_at_all() {
        let wire = |seconds| prost_types::Duration { seconds, nanos: 0 };
        assert_eq!(expiry(None).unwrap(), None);
        let hour = Duration::from_secs(3600);
        assert_eq!(expiry(Some(&wire(3600))).unwrap(), Some(hour));
        for seconds in [0, -1, 24 * 3600 + 1] {
            let refused = expiry(Some(&wire(seconds))).unwrap_err();
            assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{seconds}");
        }
    }

    #[tokio::test]
    async fn only_a_gateway_forwards_and_a_process_without_telemetry_has_no_log() {
        let own = ProcessLog::new(CancellationToken::new());
        let target = v1::AgentTarget {
            service: "plan-applier".to_owned(),
            ..v1::AgentTarget::default()
        };
        let about = |target| Request::new(v1::GetLogLevelRequest { target });
        let refused = own.get_log_level(about(Some(target))).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::InvalidArgument);
        let empty = about(Some(v1::AgentTarget::default()));
        let refused = own.get_log_level(empty).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::FailedPrecondition);
    }
}
