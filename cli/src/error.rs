//! Why a command did not do what it was asked: what its user reads, and the exit code.
//!
//! Every text names the thing and, where there is one, the way out. First lines are Nomad's where
//! scripts may look for them.

use std::path::PathBuf;
use std::time::Duration;

use model::FieldErrors;
use proto::v1::ErrorDetail;
use tonic::{Code, Status};

use crate::address::{Address, Source};
use crate::exit::Exit;

mod status;

pub(crate) use status::{is_transient, retry_after};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "The address {text:?} ({origin}) is not one of a gateway: {problem}.\n\
         Write it as in http://127.0.0.1:4646 (-address or KAFILA_ADDR)."
    )]
    BadAddress {
        text: String,
        // Not `source`: it is no error.
        origin: Source,
        problem: String,
    },

    #[error("{}", unreachable_text(doing, address, problem))]
    Unreachable {
        doing: String,
        address: Address,
        problem: String,
    },

    /// Something answers, but it is not Kafila's.
    #[error("{}", stranger_text(doing, address, problem))]
    Stranger {
        doing: String,
        address: Address,
        problem: &'static str,
    },

    /// What answers has no such call: a gateway that is older, or Kafila's own store.
    #[error("{}", unknown_call_text(doing, address))]
    UnknownCall { doing: String, address: Address },

    #[error(
        "Error {doing}: no answer from the gateway at {url} within {}.\n\
         Give it longer with -timeout, as in -timeout={}.",
        seconds(*timeout), seconds(*timeout * 4)
    )]
    Timeout {
        doing: String,
        url: String,
        timeout: Duration,
    },

    #[error("Error {doing}: {}", status::describe(.status))]
    Rpc { doing: String, status: Box<Status> },

    /// A whole text, when the cases above do not fit.
    #[error("{0}")]
    Text(String),

    #[error("Error getting job struct: Error getting jobfile from {path:?}: {}", .source)]
    ReadJobFile {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },

    #[error("Error getting job struct: Error getting variable file {path:?}: {}", .source)]
    ReadVariableFile {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },

    #[error("cannot write the output")]
    Output(#[source] std::io::Error),

    #[error("cannot read the answer")]
    Input(#[source] std::io::Error),

    #[error("cannot start")]
    Start(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Says what went wrong with an RPC; `doing` completes "Error …".
    pub(crate) fn from_status(
        doing: &str,
        status: Status,
        address: &Address,
        timeout: Duration,
    ) -> Self {
        let doing = doing.to_owned();
        if let Some(problem) = status::connect_problem(&status) {
            return Self::Unreachable {
                doing,
                address: address.clone(),
                problem,
            };
        }
        if let Some(problem) = status::stranger(&status) {
            return Self::Stranger {
                doing,
                address: address.clone(),
                problem,
            };
        }
        if status.code() == Code::Unimplemented {
            return Self::UnknownCall {
                doing,
                address: address.clone(),
            };
        }
        if status::is_timeout(&status) {
            return Self::Timeout {
                doing,
                url: address.url.clone(),
                timeout,
            };
        }
        Self::Rpc {
            doing,
            status: Box::new(status),
        }
    }

    /// Tells whether the same call may succeed later: the gateway is away, or busy.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Timeout { .. } => true,
            Self::Rpc { status, .. } => is_transient(status),
            _ => false,
        }
    }

    pub(crate) fn is_unreachable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Stranger { .. } | Self::Timeout { .. } => true,
            Self::Rpc { status, .. } => status.code() == Code::Unavailable,
            _ => false,
        }
    }

    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Rpc { status, .. } if status.code() == Code::NotFound)
    }

    /// Tells whether somebody else was faster: an index is not the one that was asked for.
    pub(crate) fn is_aborted(&self) -> bool {
        matches!(self, Self::Rpc { status, .. } if status.code() == Code::Aborted)
    }

    /// Tells whether a write that failed so may have been carried out: no answer is no refusal.
    pub(crate) fn may_have_happened(&self) -> bool {
        match self {
            Self::Timeout { .. } => true,
            Self::Rpc { status, .. } => is_transient(status) && retry_after(status).is_none(),
            _ => false,
        }
    }

    /// Returns what is wrong with the fields of a request; `None` when that is not the reason.
    pub(crate) fn field_errors(&self) -> Option<FieldErrors> {
        let Self::Rpc { status, .. } = self else {
            return None;
        };
        let errors = ErrorDetail::from_status(status)?.field_errors();
        (!errors.0.is_empty()).then_some(errors)
    }

    /// Returns the part that says why, without what was being done.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Unreachable { problem, .. } => problem.clone(),
            Self::Stranger { problem, .. } => format!("what answers there {problem}"),
            Self::UnknownCall { .. } => UNKNOWN_CALL.to_owned(),
            Self::Timeout { timeout, .. } => format!("no answer within {}", seconds(*timeout)),
            Self::Rpc { status, .. } => status::describe(status),
            other => other.to_string(),
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                Exit::BrokenPipe
            }
            _ => Exit::Failure,
        }
    }
}

fn unreachable_text(doing: &str, address: &Address, problem: &str) -> String {
    format!(
        "Error {doing}: cannot reach the gateway at {}: {problem}.\n\
         That address is {}. Name another with -address=http://HOST:4646 or KAFILA_ADDR;\n\
         'kafila dev' starts a gateway on this machine.",
        address.url, address.source
    )
}

fn stranger_text(doing: &str, address: &Address, problem: &str) -> String {
    format!(
        "Error {doing}: what answers at {} is no Kafila gateway: it {problem}.\n\
         That address is {}. Name the gateway's gRPC address with -address=http://HOST:4646 or \
         KAFILA_ADDR.",
        address.url, address.source
    )
}

const UNKNOWN_CALL: &str =
    "the server does not know this call: it is a gateway older than this command, or none at all";

fn unknown_call_text(doing: &str, address: &Address) -> String {
    format!(
        "Error {doing}: {UNKNOWN_CALL} ('kafila version -gateway' asks it).\n\
         It answers at {}, and that address is {}. Name the gateway's with \
         -address=http://HOST:4646 or KAFILA_ADDR.",
        address.url, address.source
    )
}

/// Writes a timeout as `-timeout` reads it.
fn seconds(span: Duration) -> String {
    if span.subsec_millis() == 0 {
        format!("{}s", span.as_secs())
    } else {
        format!("{}ms", span.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> Address {
        Address {
            url: "http://127.0.0.1:4646".to_owned(),
            source: Source::Variable("KAFILA_ADDR"),
        }
    }

    #[test]
    fn an_error_names_the_thing_and_the_way_out() {
        let unreachable = Error::Unreachable {
            doing: "querying jobs".to_owned(),
            address: address(),
            problem: "connection refused".to_owned(),
        };
        let text = unreachable.to_string();
        for part in [
            "Error querying jobs: ",
            "http://127.0.0.1:4646",
            "connection refused",
            "from KAFILA_ADDR",
            "-address",
            "kafila dev",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let timeout = Error::Timeout {
            doing: "querying jobs".to_owned(),
            url: address().url,
            timeout: Duration::from_millis(1_500),
        };
        assert!(timeout.to_string().contains("within 1500ms"), "{timeout}");
        assert!(timeout.to_string().contains("-timeout=6s"), "{timeout}");
    }

    #[test]
    fn what_is_no_gateway_is_named_and_has_stored_nothing() {
        let status = Status::unimplemented("unknown service kafila.v1.Jobs");
        let error = Error::from_status("submitting job", status, &address(), Duration::ZERO);
        let text = error.to_string();
        for part in [
            "http://127.0.0.1:4646",
            "no Kafila gateway",
            "from KAFILA_ADDR",
            "-address",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!error.may_have_happened() && !error.is_transient());
    }

    #[test]
    fn a_server_that_does_not_know_a_call_is_named_with_who_named_it() {
        // What Kafila's own store says, which is no gateway.
        let status = Status::unimplemented("");
        let error = Error::from_status("querying jobs", status, &address(), Duration::ZERO);
        let text = error.to_string();
        for part in [
            "Error querying jobs: ",
            "does not know this call",
            "older than this command",
            "http://127.0.0.1:4646",
            "from KAFILA_ADDR",
            "-address",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!error.may_have_happened() && !error.is_transient());
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure_of_ours() {
        let broken = Error::Output(std::io::ErrorKind::BrokenPipe.into());
        assert_eq!(broken.exit(), Exit::BrokenPipe);
        let full = Error::Output(std::io::ErrorKind::StorageFull.into());
        assert_eq!(full.exit(), Exit::Failure);
    }
}
