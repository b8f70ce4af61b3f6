//! Errors of calls: their causes, and their consequences for a retry.

use std::fmt;
use std::time::Duration;

use connections::ConnectTimeout;
use proto::v1::{ErrorDetail, FieldViolation};
use tonic::{Code, Status};

mod kind;
mod status;
#[cfg(test)]
mod tests;

pub use kind::Kind;

/// A call that failed.
#[derive(Clone, Debug)]
pub struct Error {
    rpc: &'static str,
    address: String,
    kind: Kind,
}

impl Error {
    pub(crate) fn new(rpc: &'static str, address: &str, status: Status, timeout: Duration) -> Self {
        Self {
            rpc,
            address: address.to_owned(),
            kind: status::classify(status, timeout),
        }
    }

    #[cfg(test)]
    pub(crate) fn of(kind: Kind) -> Self {
        Self {
            rpc: "/kafila.v1.Jobs/Get",
            address: "http://g:1".to_owned(),
            kind,
        }
    }

    /// The stream has been silent for longer than its gateway may be.
    pub(crate) fn silent(rpc: &'static str, address: &str, after: Duration) -> Self {
        Self {
            rpc,
            address: address.to_owned(),
            kind: Kind::Timeout { after },
        }
    }

    /// There was no connection to the gateway within `limit`.
    pub(crate) fn unconnected(rpc: &'static str, address: &str, limit: Duration) -> Self {
        Self {
            rpc,
            address: address.to_owned(),
            kind: Kind::Unreachable {
                problem: ConnectTimeout(limit).to_string(),
            },
        }
    }

    /// The RPC as on the wire, such as `/kafila.v1.Jobs/Get`.
    pub fn rpc(&self) -> &'static str {
        self.rpc
    }

    /// The gateway that was called.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    pub fn code(&self) -> Code {
        match &self.kind {
            Kind::Unreachable { .. } | Kind::Tls(_) => Code::Unavailable,
            Kind::Foreign { .. } | Kind::UnknownRpc => Code::Unimplemented,
            Kind::Timeout { .. } => Code::DeadlineExceeded,
            Kind::Status(status) => status.code(),
        }
    }

    /// Returns the reason without the RPC and the address.
    pub fn message(&self) -> String {
        match &self.kind {
            Kind::Unreachable { problem } => problem.clone(),
            Kind::Tls(problem) => format!("TLS failed: {problem}"),
            Kind::Foreign { evidence } => format!("the server there {evidence}"),
            Kind::UnknownRpc => "the server does not know this call: it is older than this \
                                 program, or no gateway"
                .to_owned(),
            Kind::Timeout { after } => format!("no answer within {after:?}"),
            Kind::Status(status) => status::describe(status),
        }
    }

    /// Returns the invalid fields of the request.
    pub fn violations(&self) -> Vec<FieldViolation> {
        self.detail()
            .map(|detail| detail.violations)
            .unwrap_or_default()
    }

    /// Returns the delay before a retry that the gateway advises.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.code() {
            Code::Unavailable | Code::ResourceExhausted => self.detail()?.retry_after(),
            _ => None,
        }
    }

    /// Tells whether a write may have taken effect although the call failed.
    pub fn may_have_happened(&self) -> bool {
        match &self.kind {
            Kind::Timeout { .. } => true,
            Kind::Status(status) => match status.code() {
                // Cancelled: a node or a gateway is ending. Unknown: a node did not answer the gateway.
                Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
                    true
                }
                _ => status::is_broken(status),
            },
            Kind::Unreachable { .. } | Kind::Tls(_) | Kind::Foreign { .. } | Kind::UnknownRpc => {
                false
            }
        }
    }

    /// Tells whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        let is_refused = matches!(self.kind, Kind::Tls(_));
        (self.is_failover() && !is_refused) || self.is_overload()
    }

    /// Tells whether the gateway refused the request because it has too much to do: without effect.
    pub fn is_overload(&self) -> bool {
        // Without advice it is a limit that stays.
        self.code() == Code::ResourceExhausted && self.retry_after().is_some()
    }

    /// Tells whether another gateway may do better.
    pub(crate) fn is_failover(&self) -> bool {
        let is_of_node = self.code() == Code::Unknown && !self.is_broken();
        let is_unreached = matches!(self.kind, Kind::Unreachable { .. } | Kind::Tls(_));
        is_unreached || (self.may_have_happened() && !is_of_node)
    }

    fn is_broken(&self) -> bool {
        matches!(&self.kind, Kind::Status(status) if status::is_broken(status))
    }

    fn detail(&self) -> Option<ErrorDetail> {
        match &self.kind {
            Kind::Status(status) => ErrorDetail::from_status(status),
            _ => None,
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            Kind::Status(status) => Some(status.as_ref()),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (message, rpc, address) = (self.message(), self.rpc, &self.address);
        write!(f, "{message} ({rpc} at {address})")
    }
}
