//! The field of a request whose objects do not fit in one transaction.

use model::FieldErrors;
use state::{Key, Write};
use store::{TxnError, Value};
use tonic::Code;

use crate::error::Error;

/// Returns the error of a request whose `writes` do not form one transaction.
pub(crate) fn error(writes: &[Write], failure: TxnError) -> Error {
    match field_errors(writes, &failure) {
        Some(errors) => Error::invalid(errors),
        // The decision contradicts itself, whatever the caller sent.
        None => Error::new(Code::Internal, failure),
    }
}

/// Returns the field of the request that makes `writes` too large for one transaction; `None` if
/// they fail for another reason.
pub fn field_errors(writes: &[Write], failure: &TxnError) -> Option<FieldErrors> {
    let (TxnError::TooManyOps { .. } | TxnError::TooManyBytes { .. }) = failure else {
        return None;
    };
    let mut errors = FieldErrors::default();
    errors.push(
        field(writes),
        format!("too large for one transaction: {failure}"),
    );
    Some(errors)
}

/// Returns the request's field of the largest object that is written.
fn field(writes: &[Write]) -> &'static str {
    let objects = writes.iter().filter_map(|write| match write {
        Write::Create { key, entity } | Write::Update { key, entity, .. } => {
            let bytes = Value::from(entity).encode().map_or(0, |value| value.len());
            Some((key, bytes))
        }
        Write::Delete { .. } | Write::RequireUnchanged { .. } | Write::RequireAbsent { .. } => None,
    });
    objects
        .max_by_key(|(_, bytes)| *bytes)
        .map_or("request", |(key, _)| field_of(key))
}

/// Returns the field by which requests that write `key` name its object.
fn field_of(key: &Key) -> &'static str {
    match key {
        Key::Job(_)
        | Key::JobVersion(..)
        | Key::JobStable(..)
        | Key::JobTally(_)
        | Key::PeriodicLaunch(_)
        | Key::DispatchToken(..)
        | Key::ScalingEvents(..) => "job",
        Key::JobTags(_) => "name",
        Key::Eval(_) => "eval_id",
        Key::Alloc(_) | Key::AllocClient(_) => "alloc_id",
        Key::Node(_) => "node",
        Key::Deployment(_) => "deployment_id",
        Key::SchedulerConfig => "scheduler_config",
        Key::NodePool(_) => "node_pool",
        Key::Namespace(_) => "namespace",
        Key::Volume(_) | Key::CsiVolume(_) => "volume",
        Key::VolumeClaim(_) => "claim_id",
        Key::IntroductionToken(_) => "token_id",
        Key::NodeIntroduction(_) | Key::NodeRevocation(_) => "node_id",
        Key::Services(_) => "service_id",
        Key::Keyring => "key_id",
        Key::Variable(_) => "items",
        Key::LockHolder(_) | Key::LockDelay(_) => "lock_id",
        // Gateways write none of them.
        Key::Election(_)
        | Key::PlanPiece(..)
        | Key::PlanCommit(_)
        | Key::Process(_)
        | Key::CsiAttachment(_) => "request",
    }
}

#[cfg(test)]
mod tests {
    use model::{EvalId, JobType, Namespace, TriggeredBy};
    use state::Entity;
    use test_kit::builders;

    use super::*;

    fn namespace(description: String) -> Write {
        let namespace = Namespace {
            description,
            ..Namespace::default()
        };
        Write::Create {
            key: Key::Namespace("large".to_owned()),
            entity: Entity::Namespace(Box::new(namespace)),
        }
    }

    fn eval() -> Write {
        let job = builders::service("web", 1);
        let eval = model::Evaluation::pending(
            EvalId::from_random(1),
            job.key(),
            JobType::Service,
            50,
            TriggeredBy::JobRegister,
            model::Timestamp(1),
        );
        Write::create_eval(eval)
    }

    #[test]
    fn the_field_of_the_largest_object_is_named() {
        let writes = [eval(), namespace("x".repeat(2_000))];
        let refused = error(&writes, TxnError::TooManyBytes { max: 1_000 });
        assert_eq!(refused.code(), Code::InvalidArgument);
        let message = refused.message();
        assert!(
            message.contains("namespace: too large for one transaction"),
            "{message}"
        );
        assert!(!message.contains("job:"), "{message}");
        assert_eq!(field(&[eval()]), "eval_id");
    }

    #[test]
    fn a_contradiction_is_no_fault_of_the_request() {
        let key = Key::Namespace("large".to_owned());
        let refused = error(&[namespace(String::new())], TxnError::WrittenTwice { key });
        assert_eq!(refused.code(), Code::Internal);
    }
}
