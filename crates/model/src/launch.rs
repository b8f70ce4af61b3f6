//! Jobs that run nothing themselves but have children: periodic and parameterized ones.
//!
//! A periodic job is launched by the clock, a parameterized one is dispatched by whoever has
//! something for it to do; each time a child of it is made, a job of its own that runs once.
//! Source of the children's names and of what they take from their parent: Nomad's public
//! behaviour.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::job::Job;
use crate::time::Timestamp;

/// When a job is launched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Periodic {
    pub enabled: bool,
    /// Cron expressions; never empty. It is launched whenever one of them is due.
    pub crons: Vec<String>,
    /// Not while a child is still at work.
    pub prohibit_overlap: bool,
    /// A name of the IANA database, or `UTC`.
    pub time_zone: String,
}

/// What a job has to be told when it is dispatched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameterized {
    pub payload: PayloadRule,
    /// Keys of `meta`; none of them optional as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meta_required: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meta_optional: Vec<String>,
}

/// Whether a dispatch brings a payload.
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

/// Where a task finds the payload that its job was dispatched with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DispatchPayload {
    /// A path below the task's `local` directory.
    pub file: String,
}

/// Bytes that a job was dispatched with; base64 in JSON.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Payload(pub Vec<u8>);

impl Payload {
    /// How large a payload may be, in bytes. Source: Nomad's limit.
    pub const MAX_BYTES: usize = 16 * 1_024;

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn to_base64(&self) -> String {
        STANDARD.encode(&self.0)
    }

    /// Returns the bytes that `text` stands for; `None`: it is not base64.
    pub fn from_base64(text: &str) -> Option<Self> {
        STANDARD.decode(text).ok().map(Self)
    }
}

/// Whatever it holds, it is not for logs.
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

/// Up to when a periodic job was launched: the value of `periodic-launch/<namespace>/<id>`.
///
/// Every launch compares and writes it, so there is one launch of one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeriodicLaunch {
    /// The time of the last launch, or from which on there are launches; whole seconds.
    pub launched: Timestamp,
}

/// Which child a dispatch made: the value of `dispatch-token/<namespace>/<token>/<parent>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DispatchToken {
    pub child_id: String,
}

/// What stands between a parent's id and the time in its children's ids.
const PERIODIC_INFIX: &str = "/periodic-";
const DISPATCH_INFIX: &str = "/dispatch-";

impl Job {
    /// Tells whether it runs nothing itself: its children do.
    pub fn is_parent(&self) -> bool {
        self.periodic.is_some() || (self.parameterized.is_some() && !self.dispatched)
    }

    /// Tells whether the clock launches it: one that has to be told something first is not.
    pub fn is_launched(&self) -> bool {
        let periodic = self.periodic.as_ref();
        let waits_for_dispatch = self.parameterized.is_some() && !self.dispatched;
        periodic.is_some_and(|periodic| periodic.enabled) && !self.stop && !waits_for_dispatch
    }

    /// Returns the child of a periodic job that is launched at `launch`, submitted `now`.
    pub fn periodic_child(&self, launch: Timestamp, now: Timestamp) -> Self {
        Self {
            id: periodic_child_id(&self.id, launch),
            parent_id: self.id.clone(),
            // It keeps its own: a child that is dispatched and launched is not dispatched again.
            dispatched: self.dispatched,
            dispatch_token: String::new(),
            periodic: None,
            stop: false,
            version: 0,
            submit_time: now,
            ..self.clone()
        }
    }

    /// Returns the child of a parameterized job that is dispatched `now`.
    ///
    /// `meta` is what it is told beside the parent's own, and goes before it; `token` may be empty.
    pub fn dispatched_child(
        &self,
        id: String,
        meta: &BTreeMap<String, String>,
        payload: Payload,
        token: &str,
        now: Timestamp,
    ) -> Self {
        let mut all = self.meta.clone();
        all.extend(meta.iter().map(|(key, value)| (key.clone(), value.clone())));
        Self {
            id,
            parent_id: self.id.clone(),
            dispatched: true,
            payload,
            dispatch_token: token.to_owned(),
            meta: all,
            stop: false,
            version: 0,
            submit_time: now,
            ..self.clone()
        }
    }
}

/// Returns the id of the child of `parent` that is launched at `launch`.
pub fn periodic_child_id(parent: &str, launch: Timestamp) -> String {
    format!("{parent}{PERIODIC_INFIX}{}", launch.as_secs())
}

/// Returns the id of a child of `parent` that is dispatched at `now`; `template` may be empty, and
/// `nonce` tells it from others of the same second.
pub fn dispatched_child_id(parent: &str, template: &str, now: Timestamp, nonce: u32) -> String {
    let dash = if template.is_empty() { "" } else { "-" };
    let seconds = now.as_secs();
    format!("{parent}{DISPATCH_INFIX}{template}{dash}{seconds}-{nonce:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_named_after_their_parent_and_time() {
        let now = Timestamp::from_millis(1_700_000_000_999);
        assert_eq!(periodic_child_id("a/b", now), "a/b/periodic-1700000000");
        assert_eq!(
            dispatched_child_id("p", "", now, 0xab),
            "p/dispatch-1700000000-000000ab"
        );
        assert_eq!(
            dispatched_child_id("p", "nightly", now, u32::MAX),
            "p/dispatch-nightly-1700000000-ffffffff"
        );
    }

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
