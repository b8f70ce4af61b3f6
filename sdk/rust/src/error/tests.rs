//! Errors of calls: codes, messages, broken connections, foreign servers.

use tonic::{ConnectError, TimeoutExpired};

use super::*;

fn error(status: Status) -> Error {
    Error::new(
        "/kafila.v1.Jobs/Get",
        "http://g:1",
        status,
        Duration::from_secs(1),
    )
}

fn broken(text: &str) -> Status {
    Status::from_error(Box::new(std::io::Error::other(text)))
}

#[test]
fn the_message_wins_over_the_code() {
    assert_eq!(error(Status::not_found("no job")).message(), "no job");
    let silent = Status::new(Code::PermissionDenied, "");
    assert_eq!(error(silent).message(), "Permission denied");
    let text = error(broken("reset by peer")).message();
    assert_eq!(text, "the connection broke: reset by peer");
}

#[test]
fn errors_tell_whether_a_retry_may_succeed_and_a_write_have_happened() {
    let busy = proto::status::exhausted("too many evaluations", Duration::from_secs(2));
    assert_eq!(
        error(busy.clone()).retry_after(),
        Some(Duration::from_secs(2))
    );
    let refused = Status::from_error(Box::new(ConnectError("refused".into())));
    // (status, transient, may have happened)
    let table = [
        (busy, true, false),
        (Status::unavailable("etcd has no leader"), true, true),
        (Status::deadline_exceeded(""), true, true),
        (Status::cancelled("Timeout expired"), true, true),
        (
            Status::cancelled("node n1: the agent is ending"),
            true,
            true,
        ),
        (refused, true, false),
        (Status::from_error(Box::new(TimeoutExpired(()))), true, true),
        (broken("connection reset by peer"), true, true),
        (
            Status::resource_exhausted("message too large"),
            false,
            false,
        ),
        (Status::not_found(""), false, false),
        (Status::unknown("node n1 did not answer"), false, true),
        (
            Status::unimplemented("unknown service kafila.v1.Jobs"),
            false,
            false,
        ),
    ];
    for (status, transient, happened) in table {
        let error = error(status);
        assert_eq!(error.is_transient(), transient, "{error}");
        assert_eq!(error.may_have_happened(), happened, "{error}");
    }
}

#[test]
fn a_connection_that_breaks_is_no_timeout() {
    let mut status = Status::cancelled("operation was canceled");
    assert!(!matches!(
        error(status.clone()).kind(),
        Kind::Timeout { .. }
    ));
    status.set_source(std::sync::Arc::new(std::io::Error::other("reset")));
    assert!(!matches!(error(status).kind(), Kind::Timeout { .. }));
    let late = error(Status::cancelled("Timeout expired"));
    assert!(matches!(late.kind(), Kind::Timeout { .. }), "{late}");
}

#[test]
fn foreign_servers_are_recognised() {
    let no_grpc = "grpc-status header missing, mapped from HTTP status code";
    let table = [
        (
            broken("connection error detected: frame with invalid size"),
            true,
        ),
        (
            broken("connection error received: not a result of an error"),
            false,
        ),
        (
            Status::unimplemented("unknown service kafila.v1.Jobs"),
            true,
        ),
        (Status::unimplemented(""), false),
        (Status::unimplemented(format!("{no_grpc} 404")), true),
        (Status::unavailable(format!("{no_grpc} 503")), false),
    ];
    for (status, expected) in table {
        let error = error(status);
        assert_eq!(
            matches!(error.kind(), Kind::Foreign { .. }),
            expected,
            "{error}"
        );
    }
}

#[test]
fn a_failed_connection_has_its_reason() {
    let refused = std::io::Error::from_raw_os_error(111);
    let status = Status::from_error(Box::new(ConnectError(Box::new(refused))));
    assert_eq!(error(status).message(), "connection refused");
}

#[test]
fn a_connection_that_took_too_long_never_was_one() {
    let limit = Duration::from_secs(2);
    let status = Status::from_error(Box::new(ConnectError(Box::new(ConnectTimeout(limit)))));
    for error in [
        error(status),
        Error::unconnected("/kafila.v1.Jobs/Get", "http://g:1", limit),
    ] {
        assert!(matches!(error.kind(), Kind::Unreachable { .. }), "{error}");
        assert_eq!(error.message(), "no connection within 2s");
        assert!(error.is_transient() && !error.may_have_happened());
    }
}
