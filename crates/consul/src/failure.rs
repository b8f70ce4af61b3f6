//! Failures of requests: what an answer's status means, and whether a retry may help.

use http_client::{one_line, reason};

use crate::config::SERVICE;

/// A failed request. No variant has a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No answer of Consul.
    #[error(transparent)]
    Call(#[from] http_client::Failure),
    /// 429.
    #[error("Consul limits the rate of requests; the node retries more slowly")]
    Throttled,
    /// 500 and above.
    #[error("Consul has failed with status {status}: {reason}")]
    Server { status: u16, reason: String },
    /// 401 and 403: the token is unknown, expired or has no policy for the request.
    #[error("Consul denies the permission: {reason}; check the policies of the token")]
    Forbidden { reason: String },
    /// 404.
    #[error("Consul has nothing there: {reason}")]
    Absent { reason: String },
    /// Any other status: the request itself is wrong.
    #[error("Consul refuses the request with status {status}: {reason}")]
    Refused { status: u16, reason: String },
}

impl Failure {
    /// Returns whether the same request may succeed later without a change of the request, of Consul's
    /// policies or of its data.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Call(failure) => failure.is_transient(),
            Self::Throttled | Self::Server { .. } => true,
            Self::Forbidden { .. } | Self::Absent { .. } | Self::Refused { .. } => false,
        }
    }

    /// The failure of a request that was not sent.
    pub(crate) fn request(problem: String) -> Self {
        http_client::Failure::Request { problem }.into()
    }

    /// The failure of an answer that is none of Consul.
    pub(crate) fn foreign(problem: &str) -> Self {
        let failure = http_client::Failure::Foreign {
            service: SERVICE,
            problem: problem.to_owned(),
        };
        failure.into()
    }

    /// Hides each of `values` in the reason of the server, which may quote its request, and shortens it.
    #[must_use]
    pub(crate) fn without(mut self, values: &[&str]) -> Self {
        if let Self::Server { reason: text, .. }
        | Self::Forbidden { reason: text }
        | Self::Absent { reason: text }
        | Self::Refused { reason: text, .. } = &mut self
        {
            *text = reason(text, values);
        }
        self
    }
}

/// The meaning of an answer without success.
///
/// Source: Consul's API documentation; bodies of errors are plain text. A cluster without a leader answers
/// 500, and a token that does not exist 403 with "ACL not found".
pub(crate) fn of_answer(status: u16, body: &[u8]) -> Failure {
    let mut reason = one_line(&String::from_utf8_lossy(body));
    if reason.is_empty() {
        "without a reason".clone_into(&mut reason);
    }
    match status {
        401 | 403 => Failure::Forbidden { reason },
        404 => Failure::Absent { reason },
        429 => Failure::Throttled,
        500.. => Failure::Server { status, reason },
        _ => Failure::Refused { status, reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_tells_a_passing_failure_from_a_lasting_one() {
        for (status, body, is_transient, text) in [
            (
                403,
                "Permission denied: token lacks",
                false,
                "Permission denied",
            ),
            (401, "ACL support disabled", false, "ACL support disabled"),
            (404, "Unknown service ID \"x\"", false, "Unknown service"),
            (400, "Must provide name", false, "status 400"),
            (429, "", true, "rate"),
            (500, "No cluster leader", true, "No cluster leader"),
            (503, "", true, "without a reason"),
        ] {
            let failure = of_answer(status, body.as_bytes());
            assert_eq!(failure.is_transient(), is_transient, "{failure:?}");
            assert!(failure.to_string().contains(text), "{failure}");
        }
        let long = of_answer(500, "x".repeat(5_000).as_bytes()).without(&[]);
        assert!(long.to_string().len() < 500);
        let hidden = of_answer(403, b"token s3cret is unknown").without(&["s3cret"]);
        assert!(!hidden.to_string().contains("s3cret"));
    }
}
