//! Calls of a plugin: their deadlines, and what their failures mean.

use std::time::Duration;

use prost::Message as _;
use prost_types::Any;
use tokio::time::timeout;
use tonic::{Code, Response, Status};

use crate::wire::structs::RecoverableError;

/// Longest message of a plugin that is passed on, in characters.
pub(crate) const TEXT_MAX: usize = 2_000;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// The process has ended, or the connection is broken: the outcome is unknown.
    #[error("the plugin is gone: {0}")]
    Gone(String),
    /// There was no answer in time: the outcome is unknown.
    #[error("{call} has no answer within {seconds} s")]
    Late { call: &'static str, seconds: u64 },
    /// The plugin does not know the task.
    #[error("{0}")]
    NoTask(String),
    #[error("{message}")]
    Refused {
        message: String,
        /// `None`: the plugin does not say.
        recoverable: Option<bool>,
        is_unsupported: bool,
    },
}

impl CallError {
    /// Returns whether the outcome of the call is unknown.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Self::Gone(_) | Self::Late { .. })
    }
}

/// Waits for the answer of a call.
///
/// # Errors
/// There is none in time, or the plugin refuses.
pub(crate) async fn within<T>(
    call: &'static str,
    limit: Duration,
    answer: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, CallError> {
    match timeout(limit, answer).await {
        Ok(answer) => done(answer),
        Err(_) => Err(CallError::Late {
            call,
            seconds: limit.as_secs(),
        }),
    }
}

/// Reads the answer of a call.
///
/// # Errors
/// The plugin refuses, or is gone.
pub(crate) fn done<T>(answer: Result<Response<T>, Status>) -> Result<T, CallError> {
    match answer {
        Ok(answer) => Ok(answer.into_inner()),
        Err(status) => Err(of_status(&status)),
    }
}

pub(crate) fn of_status(status: &Status) -> CallError {
    let message = bounded(status.message());
    let is_transport = std::error::Error::source(status).is_some();
    match status.code() {
        Code::Unavailable | Code::Cancelled => CallError::Gone(message),
        _ if is_transport => CallError::Gone(message),
        Code::NotFound => CallError::NoTask(message),
        // Source: the text of Nomad's public library for drivers, which has no code for it.
        _ if message.contains("task not found") => CallError::NoTask(message),
        code => CallError::Refused {
            message,
            recoverable: recoverable(status.details()),
            is_unsupported: code == Code::Unimplemented,
        },
    }
}

/// Cuts a text of a plugin.
pub(crate) fn bounded(text: &str) -> String {
    text.chars().take(TEXT_MAX).collect()
}

/// The message in the details of a failed call. Source: google.rpc.Status.
#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

fn recoverable(details: &[u8]) -> Option<bool> {
    let status = RpcStatus::decode(details).ok()?;
    let mut details = status.details.iter();
    let found = details.find(|detail| detail.type_url.ends_with(".RecoverableError"))?;
    let found = RecoverableError::decode(found.value.as_slice()).ok()?;
    Some(found.recoverable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_whether_a_repetition_can_succeed() {
        let detail = |recoverable| {
            let detail = Any {
                type_url:
                    "type.googleapis.com/hashicorp.nomad.plugins.shared.structs.RecoverableError"
                        .to_owned(),
                value: RecoverableError { recoverable }.encode_to_vec(),
            };
            let details = vec![detail];
            RpcStatus { details }.encode_to_vec()
        };
        let recoverable_of = |details: Vec<u8>| {
            let status = Status::with_details(Code::FailedPrecondition, "no", details.into());
            match of_status(&status) {
                CallError::Refused { recoverable, .. } => recoverable,
                other => panic!("{other}"),
            }
        };
        assert_eq!(recoverable_of(detail(true)), Some(true));
        assert_eq!(recoverable_of(detail(false)), Some(false));
        assert_eq!(recoverable_of(Vec::new()), None);
        assert_eq!(recoverable_of(vec![0xff; 9]), None);
    }

    #[test]
    fn an_unknown_task_differs_from_a_plugin_that_is_gone() {
        let of = |code, text| of_status(&Status::new(code, text));
        let text = "task not found for given id";
        assert!(matches!(of(Code::Unknown, text), CallError::NoTask(_)));
        assert!(matches!(of(Code::Unavailable, "x"), CallError::Gone(_)));
        assert!(matches!(of(Code::Unknown, "x"), CallError::Refused { .. }));
        let long = of(Code::Unknown, &"x".repeat(9_000)).to_string();
        assert_eq!(long.len(), TEXT_MAX);
    }
}
