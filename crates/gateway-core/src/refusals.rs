//! Codes of the deciders' refusals.

use admission::cluster::csi::CsiRefusal;
use admission::cluster::eligibility::EligibilityRefusal;
use admission::cluster::evaluations::EvaluationRefusal;
use admission::cluster::keyring::KeyringRefusal;
use admission::cluster::namespaces::NamespaceRefusal;
use admission::cluster::node_pools::NodePoolRefusal;
use admission::cluster::scheduler_config::SchedulerConfigRefusal;
use admission::cluster::variables::VariableRefusal;
use admission::cluster::volumes::VolumeRefusal;
use admission::jobs::JobRefusal;
use admission::jobs::alloc_node::AllocRequestRefusal;
use admission::jobs::marks::VersionRefusal;
use admission::jobs::missing::{MissingVersion, NoSuchJob};
use admission::nodes::csi::MountsRefusal;
use admission::nodes::heartbeats::HeartbeatRefusal;
use admission::nodes::identities::IdentityRefusal;
use admission::nodes::introduction::IntroductionRefusal;
use admission::nodes::look_ups::LookUpRefusal;
use admission::nodes::registration::RegistrationRefusal;
use admission::nodes::reports::ReportRefusal;
use admission::nodes::revocation::{NotRevoked, Revoked};
use admission::nodes::session::SessionRefusal;
use admission::services::DeleteRefusal;
use listing::prefix::NotFound;
use model::FieldErrors;
use model::refusal::{Kind, Refusal};
use rollout::requests::DeploymentRefusal;
use tonic::Code;

use crate::error::Error;

fn code(kind: Kind) -> Code {
    match kind {
        Kind::Invalid => Code::InvalidArgument,
        Kind::NotFound => Code::NotFound,
        Kind::AlreadyExists => Code::AlreadyExists,
        Kind::Outdated => Code::Aborted,
        Kind::Denied => Code::PermissionDenied,
        Kind::Precondition => Code::FailedPrecondition,
        Kind::Overloaded => Code::ResourceExhausted,
        Kind::Unavailable => Code::Unavailable,
    }
}

impl Error {
    /// Returns the error of a refusal: its code is that of the refusal's kind.
    pub fn refused(refusal: impl Refusal) -> Self {
        if let Some(fields) = refusal.field_errors() {
            return Self::invalid(fields.clone());
        }
        match refusal.kind() {
            Kind::Overloaded => Self::overloaded(refusal),
            kind => Self::new(code(kind), refusal),
        }
    }
}

/// Converts types that implement [`Refusal`] into [`Error`].
#[macro_export]
macro_rules! from_refusals {
    ($($refusal:ty),* $(,)?) => {
        $(impl From<$refusal> for $crate::Error {
            fn from(refusal: $refusal) -> Self {
                Self::refused(refusal)
            }
        })*
    };
}

from_refusals!(
    CsiRefusal,
    DeleteRefusal,
    FieldErrors,
    EligibilityRefusal,
    EvaluationRefusal,
    HeartbeatRefusal,
    IdentityRefusal,
    IntroductionRefusal,
    JobRefusal,
    KeyringRefusal,
    LookUpRefusal,
    AllocRequestRefusal,
    MissingVersion,
    MountsRefusal,
    NamespaceRefusal,
    NodePoolRefusal,
    NoSuchJob,
    NotFound,
    NotRevoked,
    RegistrationRefusal,
    ReportRefusal,
    Revoked,
    SchedulerConfigRefusal,
    SessionRefusal,
    VariableRefusal,
    VersionRefusal,
    VolumeRefusal,
    DeploymentRefusal,
);

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("refused")]
    struct Refused(Kind);

    impl Refusal for Refused {
        fn kind(&self) -> Kind {
            self.0
        }
    }

    #[test]
    fn each_kind_has_a_code_and_tells_whether_a_retry_helps() {
        for (kind, code, is_overload) in [
            (Kind::Invalid, Code::InvalidArgument, false),
            (Kind::NotFound, Code::NotFound, false),
            (Kind::AlreadyExists, Code::AlreadyExists, false),
            (Kind::Outdated, Code::Aborted, false),
            (Kind::Denied, Code::PermissionDenied, false),
            (Kind::Precondition, Code::FailedPrecondition, false),
            (Kind::Overloaded, Code::ResourceExhausted, true),
            (Kind::Unavailable, Code::Unavailable, false),
        ] {
            let error = Error::refused(Refused(kind));
            assert_eq!((error.code(), error.is_overload()), (code, is_overload));
        }
    }

    #[test]
    fn refusals_of_look_ups_and_of_rollouts_keep_their_codes() {
        let mut fields = FieldErrors::default();
        fields.push("alloc_id", "missing");
        let none = NotFound::None {
            noun: "node",
            text: "8a".to_owned(),
        };
        let ended = DeploymentRefusal::Ended(model::AllocId::from_random(1));
        for (error, code) in [
            (
                Error::from(NotFound::Invalid(fields)),
                Code::InvalidArgument,
            ),
            (none.into(), Code::NotFound),
            (DeploymentRefusal::NoHealth.into(), Code::InvalidArgument),
            (ended.into(), Code::FailedPrecondition),
        ] {
            assert_eq!(error.code(), code, "{error}");
        }
    }
}
