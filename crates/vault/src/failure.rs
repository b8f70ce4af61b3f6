//! Failures of requests: what an answer's status and errors mean, and whether a retry may help.

use std::time::Duration;

use http_client::{one_line, reason};
use serde::Deserialize;

use crate::config::SERVICE;

/// A failed request. No variant has a token or another value of the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No answer of Vault.
    #[error(transparent)]
    Call(#[from] http_client::Failure),
    /// 503.
    #[error("Vault is sealed or in maintenance: unseal it")]
    Sealed,
    /// A standby that did not forward the request to the active server.
    #[error(
        "this Vault server is a standby and does not forward requests: set the node's \
         `vault.address` to the active server"
    )]
    Standby,
    /// 429.
    #[error("Vault limits the rate of requests; the node retries more slowly")]
    Throttled { retry_after: Option<Duration> },
    /// 500 and above, apart from 503.
    #[error("Vault has failed with status {status}{}", reasons(errors))]
    Server { status: u16, errors: Vec<String> },
    /// 403: the token is unknown, expired or has no policy for the path.
    #[error(
        "Vault denies the permission{}; check the policies of the role",
        reasons(errors)
    )]
    Forbidden { errors: Vec<String> },
    /// 404 without an error: nothing is at the path.
    #[error("Vault has nothing at this path: check the path and its mount")]
    Absent,
    /// Any other status: the request itself is wrong.
    #[error("Vault refuses the request with status {status}{}", reasons(errors))]
    Refused { status: u16, errors: Vec<String> },
}

fn reasons(errors: &[String]) -> String {
    if errors.is_empty() {
        return String::new();
    }
    format!(": {}", errors.join("; "))
}

impl Failure {
    /// Returns whether the same request may succeed later without a change of the request, of Vault's
    /// policies or of its data.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Call(failure) => failure.is_transient(),
            Self::Sealed | Self::Standby | Self::Throttled { .. } | Self::Server { .. } => true,
            Self::Forbidden { .. } | Self::Absent | Self::Refused { .. } => false,
        }
    }

    /// The delay that the server asked for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Throttled { retry_after } => *retry_after,
            _ => None,
        }
    }

    /// The failure of a request that was not sent.
    pub fn request(problem: String) -> Self {
        http_client::Failure::Request { problem }.into()
    }

    /// The failure of an answer that is none of Vault.
    pub(crate) fn foreign(problem: String) -> Self {
        let service = SERVICE;
        http_client::Failure::Foreign { service, problem }.into()
    }

    /// Hides each of `values` in the errors of the server, which may quote its request, and shortens them.
    #[must_use]
    pub(crate) fn without(mut self, values: &[&str]) -> Self {
        if let Self::Server { errors, .. }
        | Self::Forbidden { errors }
        | Self::Refused { errors, .. } = &mut self
        {
            for error in errors {
                *error = reason(error, values);
            }
        }
        self
    }
}

/// The body of a refusal.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Errors {
    errors: Vec<String>,
}

/// The meaning of an answer without success. `retry_after`: the header of that name, in seconds.
///
/// Source: the statuses of Vault's API documentation; 472 and 473 are those of standbys in
/// `sys/health`, and 307 is a standby that knows the active server.
pub(crate) fn of_answer(status: u16, body: &[u8], retry_after: Option<&str>) -> Failure {
    let Errors { errors } = serde_json::from_slice(body).unwrap_or_default();
    // An error may have several lines, as in "1 error occurred:\n\t* permission denied\n\n".
    let errors: Vec<String> = errors
        .iter()
        .map(|error| one_line(error))
        .filter(|error| !error.is_empty())
        .collect();
    match status {
        403 => Failure::Forbidden { errors },
        404 if errors.is_empty() => Failure::Absent,
        429 => Failure::Throttled {
            retry_after: retry_after
                .and_then(|text| text.trim().parse().ok())
                .map(Duration::from_secs),
        },
        301 | 302 | 307 | 308 | 472 | 473 => Failure::Standby,
        503 => Failure::Sealed,
        500.. => Failure::Server { status, errors },
        _ => Failure::Refused { status, errors },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, body: &str) -> Failure {
        of_answer(status, body.as_bytes(), None)
    }

    #[test]
    fn a_status_tells_a_passing_failure_from_a_lasting_one() {
        for (status, body, is_transient, text) in [
            (
                403,
                r#"{"errors":["permission denied"]}"#,
                false,
                "denies the permission: permission denied",
            ),
            (
                403,
                r#"{"errors":["1 error occurred:\n\t* bad token\n\n"]}"#,
                false,
                "1 error occurred: * bad token",
            ),
            (404, r#"{"errors":[]}"#, false, "nothing at this path"),
            (
                404,
                r#"{"errors":["no handler for route"]}"#,
                false,
                "status 404: no handler for route",
            ),
            (
                400,
                r#"{"errors":["role \"x\" could not be found"]}"#,
                false,
                "status 400: role",
            ),
            (405, "", false, "status 405"),
            (429, "", true, "rate"),
            (473, "", true, "standby"),
            (307, "", true, "standby"),
            (503, r#"{"errors":["Vault is sealed"]}"#, true, "sealed"),
            (
                500,
                r#"{"errors":["internal error"]}"#,
                true,
                "status 500: internal error",
            ),
            (502, "<html>", true, "status 502"),
        ] {
            let failure = of(status, body);
            assert_eq!(failure.is_transient(), is_transient, "{failure:?}");
            assert!(failure.to_string().contains(text), "{failure}");
        }
    }

    #[test]
    fn a_throttled_request_may_name_its_delay() {
        let failure = of_answer(429, b"", Some("7"));
        assert_eq!(failure.retry_after(), Some(Duration::from_secs(7)));
        assert_eq!(of_answer(429, b"", Some("soon")).retry_after(), None);
        assert_eq!(of(503, "").retry_after(), None);
    }

    #[test]
    fn values_of_the_request_are_not_repeated() {
        let failure = of(400, r#"{"errors":["cannot use hvs.SECRET for abc"]}"#);
        let text = failure.without(&["hvs.SECRET", "abc"]).to_string();
        assert!(text.contains("cannot use (hidden) for abc"), "{text}");
        let long = format!(r#"{{"errors":["{}"]}}"#, "x".repeat(5_000));
        assert!(of(500, &long).without(&[]).to_string().len() < 500);
    }
}
