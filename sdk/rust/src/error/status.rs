//! Causes of failed calls, from gRPC statuses.

use std::error::Error as StdError;
use std::time::Duration;

use tls::Problem;
use tonic::{Code, ConnectError, Status, TimeoutExpired};

use super::kind::Kind;

/// Message of a gateway whose own deadline for the call passed first. Source: tonic's server.
const GATEWAY_TIMEOUT: &str = "Timeout expired";

pub(super) fn classify(status: Status, timeout: Duration) -> Kind {
    // A status without a cause is the gateway's, which may tell of connections of its own.
    let seen = StdError::source(&status).and_then(Problem::of);
    if let Some(problem) = seen.or_else(|| Problem::of_answer(status.message())) {
        return Kind::Tls(problem);
    }
    if let Some(problem) = connect_problem(&status) {
        return Kind::Unreachable { problem };
    }
    if let Some(evidence) = foreign(&status) {
        return Kind::Foreign { evidence };
    }
    if status.code() == Code::Unimplemented {
        return Kind::UnknownRpc;
    }
    if is_timeout(&status) {
        return Kind::Timeout { after: timeout };
    }
    Kind::Status(Box::new(status))
}

/// Returns the reason if the connection could not be established.
fn connect_problem(status: &Status) -> Option<String> {
    let connect = causes(status).find(|cause| cause.is::<ConnectError>())?;
    // The innermost cause is the system's: connection refused, no route to host.
    let mut innermost = connect;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let text = innermost.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    Some(text.to_lowercase())
}

/// Returns the evidence that the server is not a gateway, if there is any.
fn foreign(status: &Status) -> Option<&'static str> {
    // The HTTP/2 library's messages for a peer that breaks the protocol. A gateway that shuts down
    // causes "closed", "reset" or "received", never "detected".
    let breaks_http2 = |cause: &(dyn StdError + 'static)| {
        let text = cause.to_string();
        text.contains("connection error detected") || text.contains("stream error detected")
    };
    if causes(status).any(breaks_http2) {
        return Some("does not speak gRPC");
    }
    let words = status.message();
    // A web server over HTTP/2. An unavailable one may be a proxy in front of a gateway.
    if words.contains("grpc-status header missing") && status.code() != Code::Unavailable {
        return Some("speaks HTTP, but not gRPC");
    }
    // gRPC servers of other libraries, such as etcd, send this message; ours send none.
    if status.code() == Code::Unimplemented && words.starts_with("unknown service") {
        return Some("speaks gRPC, but not Kafila's API");
    }
    None
}

/// Tells whether the deadline passed, on either side.
fn is_timeout(status: &Status) -> bool {
    status.code() == Code::DeadlineExceeded
        || (status.code() == Code::Cancelled && status.message() == GATEWAY_TIMEOUT)
        || causes(status).any(|cause| cause.is::<TimeoutExpired>())
}

/// Tells whether the connection broke: the status has a cause, so this side made it.
pub(super) fn is_broken(status: &Status) -> bool {
    StdError::source(status).is_some()
}

/// Describes a status: the message of the gateway, else the meaning of the code.
pub(super) fn describe(status: &Status) -> String {
    let words = status.message().trim();
    let meaning = match status.code() {
        Code::Unavailable => "the gateway cannot be reached right now",
        Code::PermissionDenied => "Permission denied",
        Code::Unauthenticated => "authentication required",
        code => code.description(),
    };
    match (words.is_empty(), is_broken(status)) {
        (true, _) => meaning.to_owned(),
        // Created on this side: only the innermost cause of "transport error" is informative.
        (false, true) => match causes(status).last() {
            Some(cause) => format!("the connection broke: {cause}"),
            None => words.to_owned(),
        },
        (false, false) => words.to_owned(),
    }
}

/// Returns the causes of `status`, the innermost last.
fn causes(status: &Status) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    let mut next = StdError::source(status);
    std::iter::from_fn(move || {
        let cause = next?;
        next = cause.source();
        Some(cause)
    })
}
