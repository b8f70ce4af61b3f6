//! Causes of failed calls.

use std::time::Duration;

use tls::Problem;
use tonic::Status;

/// The cause of a failed call.
#[derive(Clone, Debug)]
pub enum Kind {
    /// No connection could be made.
    Unreachable { problem: String },
    /// TLS refused the connection, on this side or the other.
    Tls(Problem),
    /// The server is no Kafila gateway; the text describes its behaviour.
    Foreign { evidence: &'static str },
    /// The server does not implement the RPC: an older gateway, or another server of Kafila.
    UnknownRpc,
    /// No answer came in time.
    Timeout { after: Duration },
    /// The gateway's answer, or a connection that broke.
    Status(Box<Status>),
}
