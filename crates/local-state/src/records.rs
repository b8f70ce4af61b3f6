//! Keys and values of the local state.
//!
//! Shape: `alloc/<id>` → the assignment; `runner/<id>` → its lifecycle state; `acked/<id>` → digest
//! of the acknowledged report; `told/<id>` → [`LastReport`]; `node` → [`NodeState`]; `meta/dynamic` → [`DynamicMeta`]. Values are JSON.

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
    Node,
    DynamicMeta,
}

impl Key {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Alloc(id) => format!("alloc/{id}"),
            Self::Runner(id) => format!("runner/{id}"),
            Self::Acked(id) => format!("acked/{id}"),
            Self::LastReport(id) => format!("told/{id}"),
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
            "told" => stored.last_report = decode(key, value),
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
