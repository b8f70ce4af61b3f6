//! Reasons why a request has no answer.

use std::time::Duration;

/// The service behind an address, as messages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// As in `Consul`.
    pub name: &'static str,
    /// Its section in the node's configuration file, as in `consul`.
    pub section: &'static str,
}

/// A request without an answer. No variant has a token or another value of the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No connection, or one that broke.
    #[error(
        "{} cannot be reached at {address}: {cause}; check the node's `{}.address`",
        service.name, service.section
    )]
    Unreachable {
        service: Service,
        address: String,
        cause: String,
    },
    #[error(
        "{} at {address} did not answer within {limit:?}: check its load, or raise the node's \
         `{}.timeout`",
        service.name, service.section
    )]
    Timeout {
        service: Service,
        address: String,
        limit: Duration,
    },
    /// The request was not sent.
    #[error("{problem}")]
    Request { problem: String },
    /// The answer is none of the service.
    #[error(
        "the answer is not {}'s: {problem}; check the node's `{}.address`",
        service.name, service.section
    )]
    Foreign { service: Service, problem: String },
}

impl Failure {
    /// Returns whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Timeout { .. } | Self::Foreign { .. } => true,
            Self::Request { .. } => false,
        }
    }
}
