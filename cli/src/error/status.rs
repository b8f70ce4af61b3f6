//! Messages and retry decisions from gRPC statuses.

use std::error::Error as StdError;
use std::time::Duration;

use proto::v1::ErrorDetail;
use tonic::{Code, ConnectError, Status, TimeoutExpired};

/// Returns the reason if the connection could not be established.
pub(super) fn connect_problem(status: &Status) -> Option<String> {
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
pub(super) fn foreign(status: &Status) -> Option<&'static str> {
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

/// Message of a gateway that notices the passed deadline first; its code is "cancelled". Source: tonic.
const GATEWAY_TIMEOUT: &str = "Timeout expired";

/// Tells whether the deadline passed, on either side. A connection that breaks during a call also ends
/// it as "cancelled", with a cause.
pub(super) fn is_timeout(status: &Status) -> bool {
    let is_gateways = status.code() == Code::Cancelled
        && StdError::source(status).is_none()
        && status.message() == GATEWAY_TIMEOUT;
    status.code() == Code::DeadlineExceeded
        || is_gateways
        || causes(status).any(|cause| cause.is::<TimeoutExpired>())
}

/// Tells whether a retry may succeed.
pub(crate) fn is_transient(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::Cancelled)
        || is_timeout(status)
        || connect_problem(status).is_some()
        // A status with a cause was created on this side: the connection broke.
        || StdError::source(status).is_some()
        || retry_after(status).is_some()
}

/// Returns the delay before a retry that the gateway advises.
pub(crate) fn retry_after(status: &Status) -> Option<Duration> {
    match status.code() {
        Code::Unavailable | Code::ResourceExhausted => {
            ErrorDetail::from_status(status)?.retry_after()
        }
        _ => None,
    }
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
    match (words.is_empty(), StdError::source(status).is_some()) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_wins_over_the_code() {
        assert_eq!(
            describe(&Status::not_found("no job \"web\"")),
            "no job \"web\""
        );
        assert_eq!(
            describe(&Status::new(Code::PermissionDenied, "")),
            "Permission denied"
        );
    }

    #[test]
    fn transient_errors_are_recognised() {
        let busy = proto::status::exhausted("too many evaluations", Duration::from_secs(2));
        assert_eq!(retry_after(&busy), Some(Duration::from_secs(2)));
        let table = [
            (busy, true),
            (Status::unavailable("etcd has no leader"), true),
            (Status::deadline_exceeded(""), true),
            (Status::cancelled("Timeout expired"), true),
            (
                Status::from_error(Box::new(ConnectError("refused".into()))),
                true,
            ),
            (Status::from_error(Box::new(TimeoutExpired(()))), true),
            (Status::resource_exhausted("message too large"), false),
            (Status::not_found(""), false),
            (Status::invalid_argument(""), false),
            (Status::internal(""), false),
        ];
        for (status, expected) in table {
            assert_eq!(is_transient(&status), expected, "{status}");
        }
    }

    #[test]
    fn a_cancelled_call_is_a_timeout_only_if_the_deadline_passed() {
        let mut broken = Status::cancelled("h2 protocol error: http2 error");
        let reset = std::io::Error::other("stream no longer needed");
        broken.set_source(std::sync::Arc::new(reset));
        assert!(!is_timeout(&broken) && is_transient(&broken));
        assert_eq!(
            describe(&broken),
            "the connection broke: stream no longer needed"
        );
        let relayed = Status::cancelled("node n1: the agent is ending");
        assert!(!is_timeout(&relayed) && is_transient(&relayed));
        assert!(is_timeout(&Status::cancelled("Timeout expired")));
        assert!(is_timeout(&Status::deadline_exceeded("")));
    }

    #[test]
    fn foreign_servers_are_recognised() {
        let broken = |text: &str| Status::from_error(Box::new(std::io::Error::other(text)));
        let table = [
            (
                broken("connection error detected: frame with invalid size"),
                true,
            ),
            (
                broken("connection error received: not a result of an error"),
                false,
            ),
            (broken("connection reset by peer"), false),
            (
                Status::unimplemented("unknown service kafila.v1.Jobs"),
                true,
            ),
            (
                Status::unimplemented("unknown method X for service kafila.v1.Jobs"),
                false,
            ),
            (Status::unimplemented(""), false),
            (
                Status::unimplemented(
                    "grpc-status header missing, mapped from HTTP status code 404",
                ),
                true,
            ),
            (
                Status::unavailable("grpc-status header missing, mapped from HTTP status code 503"),
                false,
            ),
        ];
        for (status, expected) in table {
            assert_eq!(foreign(&status).is_some(), expected, "{status}");
        }
    }

    #[test]
    fn a_failed_connection_has_its_reason() {
        let refused = std::io::Error::from_raw_os_error(111);
        let status = Status::from_error(Box::new(ConnectError(Box::new(refused))));
        assert_eq!(
            connect_problem(&status).as_deref(),
            Some("connection refused")
        );
        assert_eq!(connect_problem(&Status::unavailable("x")), None);
    }
}
