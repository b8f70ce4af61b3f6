//! Ids of requests: a request's id becomes its evaluation's id, so a retry finds the first attempt.

use fnv1a::Fnv128;
use model::{EvalId, FieldErrors, JobKey};

/// The length limit of a request id, in bytes: a UUID has 36, the path of a pipeline some more.
const MAX_BYTES: usize = 256;

/// The kinds of requests whose ids are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// A stop and a purge are different requests, even with the same id.
    Purge,
    Revert,
    Stop,
    StopAlloc,
}

impl Verb {
    /// Two versions of a gateway agree on it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Purge => "purge",
            Self::Revert => "revert",
            Self::Stop => "stop",
            Self::StopAlloc => "stop-alloc",
        }
    }
}

/// Returns the id of the evaluation of a registration.
///
/// The same request gives the same id on every gateway; requests about different jobs never collide.
///
/// # Errors
/// `request_id` is too long.
pub fn eval_id(job: &JobKey, request_id: &str) -> Result<EvalId, FieldErrors> {
    derive(&["register", &job.namespace, &job.job_id], request_id)
}

/// Returns the id of the evaluation of another request, distinct for each `verb` and `subject`: a [`Verb`], or
/// that of a deployment.
///
/// # Errors
/// `request_id` is too long.
pub fn eval_id_of(verb: &str, subject: &str, request_id: &str) -> Result<EvalId, FieldErrors> {
    derive(&[verb, subject], request_id)
}

fn derive(what: &[&str], request_id: &str) -> Result<EvalId, FieldErrors> {
    if request_id.len() > MAX_BYTES {
        let mut errors = FieldErrors::default();
        errors.push(
            "request_id",
            format!(
                "has {} bytes: want at most {MAX_BYTES}, as in a UUID",
                request_id.len()
            ),
        );
        return Err(errors);
    }
    let fields = what.iter().copied().chain([request_id]);
    Ok(EvalId::from_random(hash(fields)))
}

/// Two versions of a gateway agree on it. A forged collision affects only requests about the same job.
fn hash<'a>(fields: impl Iterator<Item = &'a str>) -> u128 {
    fields
        .fold(Fnv128::new(), |hash, field| hash.field(field))
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(job: &str, request: &str) -> EvalId {
        eval_id(&JobKey::new("default", job), request).unwrap()
    }

    #[test]
    fn a_request_keeps_its_evaluation_and_shares_it_with_no_other() {
        assert_eq!(id("web", "r1"), id("web", "r1"));
        assert_ne!(id("web", "r1"), id("web", "r2"));
        assert_ne!(id("web", "r1"), id("db", "r1"));
        assert_ne!(id("web", "r1"), id("we", "br1"));
    }

    #[test]
    fn verbs_and_subjects_distinguish_requests_of_the_same_id() {
        let of = |verb: &str, subject: &str| eval_id_of(verb, subject, "r1").unwrap();
        assert_eq!(of("promote", "d1"), of("promote", "d1"));
        assert_ne!(of("promote", "d1"), of("fail", "d1"));
        assert_ne!(of("promote", "d1"), of("promote", "d2"));
    }

    /// Gateways of two versions may answer the two attempts of one request.
    #[test]
    fn the_id_never_changes() {
        assert_eq!(
            id("web", "r1").to_string(),
            "326a8c91-c1d5-453c-b3ca-a5314470f122"
        );
    }

    #[test]
    fn an_endless_id_is_refused() {
        let errors = eval_id(&JobKey::new("default", "web"), &"x".repeat(257)).unwrap_err();
        assert_eq!(errors.0[0].field, "request_id");
    }
}
