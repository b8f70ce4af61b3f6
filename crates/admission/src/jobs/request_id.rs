//! Ids of requests: a request's id becomes its evaluation's id, so a retry finds the first attempt.

use model::{EvalId, FieldErrors, JobKey};
use uuid::Uuid;

/// The length limit of a request id, in bytes: a UUID has 36, the path of a pipeline some more.
const MAX_BYTES: usize = 256;

/// Returns the id of the evaluation of a registration.
///
/// The same request gives the same id on every gateway; requests about different jobs never collide.
///
/// # Errors
/// `request_id` is too long.
pub fn eval_id(job: &JobKey, request_id: &str) -> Result<EvalId, FieldErrors> {
    derive(&["register", &job.namespace, &job.job_id], request_id)
}

/// Returns the id of the evaluation of another request, distinct for each `verb` and `subject`.
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

/// Returns the id of a group's scaling policy: the same on every gateway.
pub fn scaling_policy_id(job: &JobKey, group: &str) -> Uuid {
    let fields = ["scaling-policy", &job.namespace, &job.job_id, group];
    EvalId::from_random(hash(fields.into_iter())).0
}

fn hash<'a>(fields: impl Iterator<Item = &'a str>) -> u128 {
    let mut hash = Fnv128::new();
    for field in fields {
        hash.field(field);
    }
    hash.0
}

/// FNV-1a, 128 bits: implemented here because two versions of a gateway must agree on it. It is not
/// collision resistant; a forged collision only affects requests about the same job.
struct Fnv128(u128);

impl Fnv128 {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

    fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// Hashes a text and its end, so that `ab` + `c` differs from `a` + `bc`.
    fn field(&mut self, text: &str) {
        for byte in text.bytes() {
            self.byte(byte);
        }
        // No UTF-8 text contains this byte.
        self.byte(0xff);
    }

    fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(Self::PRIME);
    }
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
    fn a_groups_scaling_policy_has_an_id_of_its_own() {
        let id = |job: &str, group: &str| {
            scaling_policy_id(&JobKey::new("default", job), group).to_string()
        };
        assert_eq!(id("web", "app"), id("web", "app"));
        assert_ne!(id("web", "app"), id("web", "db"));
        assert_ne!(id("web", "app"), id("we", "bapp"));
    }

    #[test]
    fn an_endless_id_is_refused() {
        let errors = eval_id(&JobKey::new("default", "web"), &"x".repeat(257)).unwrap_err();
        assert_eq!(errors.0[0].field, "request_id");
    }
}
