//! Causes of failed calls, read off their gRPC codes.

use node_session::CallFailure;
use tonic::{Code, Status};

/// Returns the cause of a failed call. Its consequences are decided by [`CallFailure`].
pub fn cause(status: &Status) -> CallFailure {
    match status.code() {
        Code::Unavailable
        | Code::DeadlineExceeded
        | Code::Unknown
        | Code::Cancelled
        | Code::Internal
        | Code::Unimplemented
        | Code::ResourceExhausted => CallFailure::Gateway,
        Code::InvalidArgument => CallFailure::Invalid,
        Code::PermissionDenied => CallFailure::Denied,
        Code::NotFound => CallFailure::Unknown,
        Code::FailedPrecondition => CallFailure::Precondition,
        _ => CallFailure::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refused_token_ends_the_attempts_of_an_introduction() {
        for (code, is_expected) in [
            (Code::PermissionDenied, true),
            (Code::InvalidArgument, true),
            // A gateway without a CA of nodes; another one may have it.
            (Code::FailedPrecondition, false),
            (Code::Unauthenticated, false),
            (Code::Unimplemented, false),
            (Code::ResourceExhausted, false),
            (Code::Unavailable, false),
            (Code::DeadlineExceeded, false),
        ] {
            let ends = cause(&Status::new(code, "")).ends_introduction();
            assert_eq!(ends, is_expected, "{code:?}");
        }
    }
}
