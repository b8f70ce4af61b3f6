//! Ids of objects. Ids made by Kafila are UUIDs; job ids and namespaces are chosen by users.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $noun:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// Makes a version 4 id from 128 random bits, which the caller draws.
            pub fn from_random(bits: u128) -> Self {
                Self(uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid())
            }

            /// Returns the first eight characters, the form shown to people.
            pub fn short(&self) -> String {
                let mut text = self.0.hyphenated().to_string();
                text.truncate(8);
                text
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Uuid::try_parse(text)
                    .map(Self)
                    .map_err(|_| InvalidId { noun: $noun, text: text.to_owned() })
            }
        }
    };
}

uuid_id!(
    /// Names one key that signs tokens of tasks.
    SigningKeyId,
    "signing key"
);
uuid_id!(
    /// Names one evaluation.
    EvalId,
    "evaluation"
);
uuid_id!(
    /// Names one allocation.
    AllocId,
    "allocation"
);
uuid_id!(
    /// Names one node; made by the node on its first start and kept in its data directory.
    NodeId,
    "node"
);
uuid_id!(
    /// Names one deployment.
    DeploymentId,
    "deployment"
);

uuid_id!(
    /// Names one registered volume, for commands.
    VolumeId,
    "volume"
);
uuid_id!(
    /// Names one claim of a volume.
    VolumeClaimId,
    "claim of a volume"
);

uuid_id!(
    /// Names one introduction token.
    IntroductionTokenId,
    "introduction token"
);

/// A text that should have been a UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not the id of {} {noun}: want a whole UUID, such as \
     8a3f2c1e-0b4d-4a7e-9c5f-6d7e8f901234",
    article(noun)
)]
pub struct InvalidId {
    pub noun: &'static str,
    pub text: String,
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    }
}

/// Names one job: ids are unique within their namespace.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobKey {
    pub namespace: Arc<str>,
    pub job_id: Arc<str>,
}

impl JobKey {
    pub fn new(namespace: impl Into<Arc<str>>, job_id: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            job_id: job_id.into(),
        }
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.job_id)
    }
}

impl fmt::Debug for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.job_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_text_and_json() {
        let id = EvalId::from_random(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
        assert_eq!(id.to_string().parse::<EvalId>().unwrap(), id);
        assert_eq!(id.short(), id.to_string()[..8]);
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(serde_json::from_str::<EvalId>(&json).unwrap(), id);
    }

    #[test]
    fn a_bad_id_names_the_noun_and_the_text() {
        let error = "web".parse::<AllocId>().unwrap_err();
        assert!(
            error
                .to_string()
                .contains("\"web\" is not the id of an allocation")
        );
    }
}
