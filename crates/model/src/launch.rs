//! Jobs that run nothing themselves but have children: periodic and parameterized ones.
//!
//! A periodic job is launched by the clock, a parameterized one is dispatched by a user or program.
//! Each launch or dispatch registers a child, a job of its own that runs once.
//! Source of the children's names and inherited fields: Nomad's public behaviour.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::time::Timestamp;

/// Launch times of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Periodic {
    pub enabled: bool,
    /// Cron expressions; never empty. Each of them launches the job.
    pub crons: Vec<String>,
    /// True if a single expression was written as a list, `crons`, and not as `cron`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_list: bool,
    /// Skips a launch while an earlier child runs.
    pub prohibit_overlap: bool,
    /// A name of the IANA database, or `UTC`.
    pub time_zone: String,
}

/// Parameters of a dispatch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameterized {
    pub payload: PayloadRule,
    /// Keys of `meta`; disjoint from `meta_optional`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meta_required: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meta_optional: Vec<String>,
}

/// Rule for the payload of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PayloadRule {
    Optional,
    Required,
    Forbidden,
}

impl PayloadRule {
    pub const ALL: [Self; 3] = [Self::Optional, Self::Required, Self::Forbidden];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Optional => "optional",
            Self::Required => "required",
            Self::Forbidden => "forbidden",
        }
    }
}

/// The file in which a task finds the payload of its job's dispatch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DispatchPayload {
    /// A path below the task's `local` directory.
    pub file: String,
}

/// Input of a dispatch; base64 in JSON.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Payload(pub Vec<u8>);

impl Payload {
    /// Largest payload, in bytes. Source: Nomad's limit.
    pub const MAX_BYTES: usize = 16 * 1_024;

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn to_base64(&self) -> String {
        STANDARD.encode(&self.0)
    }

    /// Decodes `text`; `None`: it is not base64.
    pub fn from_base64(text: &str) -> Option<Self> {
        STANDARD.decode(text).ok().map(Self)
    }
}

/// Hides the content from logs: it may be secret.
impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({} bytes)", self.0.len())
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_base64())
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_base64(&text).ok_or_else(|| serde::de::Error::custom("not base64"))
    }
}

/// The launch record of a periodic job: the value of `periodic-launch/<namespace>/<id>`.
///
/// Every launch compares and writes it, so each time is launched once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeriodicLaunch {
    /// The time of the last launch, or the time after which launches count; whole seconds.
    pub launched: Timestamp,
}

/// The child of a dispatch with a token: the value of `dispatch-token/<namespace>/<token>/<parent>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DispatchToken {
    pub child_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_base64_in_json_and_not_shown() {
        let payload = Payload(b"a\xff".to_vec());
        let json = serde_json::to_string(&payload).unwrap();
        assert_eq!(json, "\"Yf8=\"");
        assert_eq!(serde_json::from_str::<Payload>(&json).unwrap(), payload);
        assert!(serde_json::from_str::<Payload>("\"?\"").is_err());
        assert_eq!(format!("{payload:?}"), "Payload(2 bytes)");
    }
}
