//! Keys and values of the local state.
//!
//! Shape: `alloc/<id>` → the assignment; `runner/<id>` → its lifecycle state; `acked/<id>` → digest
//! of the acknowledged report; `last-report/<id>` → [`LastReport`]; `node` → [`NodeState`]; `meta/dynamic` →
//! [`DynamicMeta`]. Values are JSON.

use std::collections::BTreeMap;

use lifecycle::LastReport;
use model::{AllocId, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tracing::{error, warn};

/// Older agents ignore it: it has the form of an allocation's key, without an id.
const DYNAMIC_META: &str = "meta/dynamic";

/// Metadata that operators set at run time: name → value; `None`: the one of the settings is removed.
pub type DynamicMeta = BTreeMap<String, Option<String>>;

/// A key of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// The assignment of an allocation.
    Alloc(AllocId),
    /// Its lifecycle state.
    Runner(AllocId),
    /// Digest of its acknowledged report.
    Acked(AllocId),
    /// Its last report.
    LastReport(AllocId),
    /// Its last report as earlier agents stored it: read and deleted, not written.
    FormerLastReport(AllocId),
    Node,
    DynamicMeta,
}

impl Key {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Alloc(id) => format!("alloc/{id}"),
            Self::Runner(id) => format!("runner/{id}"),
            Self::Acked(id) => format!("acked/{id}"),
            Self::LastReport(id) => format!("last-report/{id}"),
            Self::FormerLastReport(id) => format!("told/{id}"),
            Self::Node => "node".to_owned(),
            Self::DynamicMeta => DYNAMIC_META.to_owned(),
        }
    }
}

/// State of the node itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeState {
    /// The highest revision that the node has acted on.
    pub revision: u64,
    /// The store that the revision counts in; empty: no gateway has named it yet.
    pub store_id: String,
    pub boot_id: String,
    /// Time of the last answer of a server.
    pub last_contact: Timestamp,
}

/// The records of one allocation.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    pub alloc: Option<Vec<u8>>,
    pub runner: Option<Vec<u8>>,
    pub acked: Option<u64>,
    pub last_report: Option<LastReport>,
}

/// All records.
#[derive(Clone, Debug, Default)]
pub struct Restored {
    pub node: NodeState,
    pub meta: DynamicMeta,
    pub allocs: BTreeMap<AllocId, Stored>,
}

impl Restored {
    pub(crate) fn add(&mut self, key: &str, value: &[u8]) {
        if key == DYNAMIC_META {
            self.meta = decode(key, value).unwrap_or_default();
            return;
        }
        let Some((kind, id)) = key.split_once('/') else {
            self.node = decode(key, value).unwrap_or_default();
            return;
        };
        let Ok(id) = id.parse::<AllocId>() else {
            warn!(
                key,
                "ignoring a key of the local state without an allocation id"
            );
            return;
        };
        let stored = self.allocs.entry(id).or_default();
        match kind {
            "alloc" => stored.alloc = Some(value.to_vec()),
            "runner" => stored.runner = Some(value.to_vec()),
            "acked" => stored.acked = decode(key, value),
            "last-report" | "told" => {
                // After an upgrade there are both: the newer one counts.
                let read: Option<LastReport> = decode(key, value);
                let known = stored.last_report.take();
                stored.last_report = known.into_iter().chain(read).max_by_key(|it| it.number);
            }
            _ => warn!(key, "ignoring a key of another version of the local state"),
        }
    }
}

/// Reads a record; `None`, as if it were missing, when it cannot be decoded.
pub fn decode<T: DeserializeOwned>(key: &str, bytes: &[u8]) -> Option<T> {
    match serde_json::from_slice(bytes) {
        Ok(value) => Some(value),
        Err(error) => {
            error!(key, %error, "cannot decode a record of the local state");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_report_of_an_earlier_agent_is_read_and_the_newer_one_counts() {
        let id = AllocId::from_random(1);
        let report = |number| LastReport {
            number,
            digest: Some(9),
        };
        let (new, former) = (Key::LastReport(id), Key::FormerLastReport(id));
        assert_eq!(former.text(), format!("told/{id}"));
        for (records, expected) in [
            (vec![(former, 4)], 4),
            (vec![(new, 5), (former, 4)], 5),
            // An earlier agent ran in between.
            (vec![(new, 5), (former, 6)], 6),
        ] {
            let mut restored = Restored::default();
            for (key, number) in records {
                restored.add(&key.text(), &serde_json::to_vec(&report(number)).unwrap());
            }
            assert_eq!(restored.allocs[&id].last_report, Some(report(expected)));
        }
    }
}
