//! RPCs on the log of a process.

use std::time::Duration;

use kafila_client::Opened;
use proto::v1;

use super::transport::Connection;
use crate::error::Error;

const MONITORING: &str = "reading the log";

/// Timeout of the question whether a process answers: its answer takes milliseconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

impl Connection {
    /// Opens the stream of lines of a log. It has no deadline.
    pub(crate) async fn monitor(
        &self,
        request: v1::MonitorRequest,
    ) -> Result<Opened<v1::LogLines>, Error> {
        self.call(MONITORING, self.api().agent().monitor(request))
            .await
    }

    /// Returns the next lines; `None` at the end.
    pub(crate) async fn next_log_lines(
        &self,
        stream: &mut Opened<v1::LogLines>,
    ) -> Result<Option<v1::LogLines>, Error> {
        self.call_waiting(MONITORING, stream.next()).await
    }

    pub(crate) async fn log_level(&self, target: v1::AgentTarget) -> Result<v1::LogLevel, Error> {
        let message = v1::GetLogLevelRequest {
            target: Some(target),
        };
        let answer: v1::GetLogLevelResponse = self
            .call(
                "querying the log level",
                self.api().agent().get_log_level(message),
            )
            .await?;
        Ok(answer.level.unwrap_or_default())
    }

    /// Tells whether the process at an address answers the gateway; `None`: the caller may not ask.
    pub(crate) async fn answers(&self, address: &str) -> Option<bool> {
        let target = v1::AgentTarget {
            process: address.to_owned(),
            ..v1::AgentTarget::default()
        };
        let message = v1::GetLogLevelRequest {
            target: Some(target),
        };
        // Every process tells its log level, from memory.
        let call = self.api().agent().get_log_level(message);
        let asked = self.call_waiting("querying a process", call.timeout(ANSWER_TIMEOUT));
        match asked.await {
            Ok(_) => Some(true),
            // Not found: its registration ended meanwhile.
            Err(error) if error.is_unreachable() || error.is_not_found() => Some(false),
            Err(_) => None,
        }
    }

    /// Sets the level; an empty `filter` is the configured one. Returns the previous filter, and the
    /// level.
    pub(crate) async fn set_log_level(
        &self,
        target: v1::AgentTarget,
        filter: &str,
        expires_after: Option<Duration>,
    ) -> Result<(String, v1::LogLevel), Error> {
        let message = v1::SetLogLevelRequest {
            target: Some(target),
            filter: filter.to_owned(),
            expires_after: expires_after.map(proto::duration_to_wire),
        };
        let answer: v1::SetLogLevelResponse = self
            .call(
                "setting the log level",
                self.api().agent().set_log_level(message),
            )
            .await?;
        Ok((answer.previous, answer.level.unwrap_or_default()))
    }
}
