//! Volumes of storage systems behind the Container Storage Interface: the volumes themselves, their
//! attachments to nodes, and the plugins of nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::field_error::FieldErrors;
use crate::ids::{AllocId, NodeId};
use crate::name::{NameRule, namespace_problem};
use crate::time::{Timestamp, duration_ns};
use crate::volume::{AttachmentMode, Capability, MAX_NAME_CHARS};

/// Segments of a topology, as in `zone` → `a`.
pub type Segments = BTreeMap<String, String>;

/// The longest id of a plugin. Source: the specification's limit for names of plugins.
pub const MAX_PLUGIN_ID_BYTES: usize = 63;
/// The most bytes of parameters, context and mount flags of one volume together: each transaction that
/// uses the volume compares its key only, but every replica holds them. A cloud's volumes have some 200.
pub const MAX_OPTION_BYTES: usize = 16 * 1024;

/// The key of one volume: a job's `source`, in the job's namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CsiVolumeKey {
    pub namespace: Arc<str>,
    pub id: Arc<str>,
}

impl CsiVolumeKey {
    pub fn new(namespace: impl Into<Arc<str>>, id: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            id: id.into(),
        }
    }
}

/// File system of a volume that is mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountOptions {
    /// Empty: the plugin's choice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fs_type: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mount_flags: Vec<String>,
}

impl MountOptions {
    pub fn is_empty(&self) -> bool {
        self.fs_type.is_empty() && self.mount_flags.is_empty()
    }

    /// Returns these options of a job, with the volume's own where the job has none.
    ///
    /// Source: Nomad's public behaviour.
    #[must_use]
    pub fn or(&self, volume: &Self) -> Self {
        let pick = |own: &String, other: &String| if own.is_empty() { other } else { own }.clone();
        Self {
            fs_type: pick(&self.fs_type, &volume.fs_type),
            mount_flags: if self.mount_flags.is_empty() {
                volume.mount_flags.clone()
            } else {
                self.mount_flags.clone()
            },
        }
    }
}

/// The value of `csi-volume/<namespace>/<id>`: a volume of a storage system.
///
/// Its users are not stored but derived from the allocations. Secrets are not part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiVolume {
    /// Stands in the key, as does the id; filled in on read.
    #[serde(skip)]
    pub namespace: String,
    #[serde(skip)]
    pub id: String,
    pub name: String,
    /// The storage system's name of it.
    pub external_id: String,
    pub plugin_id: String,
    /// Accepted ways to use it; at least one.
    pub capabilities: Vec<Capability>,
    #[serde(default, skip_serializing_if = "MountOptions::is_empty")]
    pub mount_options: MountOptions,
    /// Passed to the plugin when the volume is created.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// The plugin's own facts of the volume, which each use passes back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, String>,
    /// 0: unknown.
    #[serde(default)]
    pub capacity_bytes: u64,
    #[serde(default)]
    pub capacity_min_bytes: u64,
    #[serde(default)]
    pub capacity_max_bytes: u64,
    /// The volume or snapshot that it was created from; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub clone_id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub snapshot_id: String,
    /// The volume is reachable from nodes with all segments of one of them; empty: from all nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topologies: Vec<Segments>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_topologies: Vec<Segments>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preferred_topologies: Vec<Segments>,
    /// Being deleted: accepts no new allocations, as with registered directories of nodes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
    /// Counts attachments: two that begin at the same time compare it, and one is first.
    #[serde(default)]
    pub attach_count: u64,
    pub create_time: Timestamp,
    pub modify_time: Timestamp,
}

const ID: NameRule = NameRule {
    noun: "volume",
    example: "data",
    marks: "-_.[]",
    marks_in_words: "hyphens, underscores, full stops and brackets",
    max_chars: MAX_NAME_CHARS,
};

impl CsiVolume {
    /// The type of these volumes in commands and jobs.
    pub const TYPE: &str = "csi";

    pub fn key(&self) -> CsiVolumeKey {
        CsiVolumeKey::new(self.namespace.as_str(), self.id.as_str())
    }

    /// Tells whether the volume accepts this use.
    pub fn allows(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }

    /// Tells whether the volume is reachable from a node with these segments.
    pub fn is_reachable_from(&self, node: &Segments) -> bool {
        let has = |(key, value): (&String, &String)| node.get(key) == Some(value);
        self.topologies.is_empty() || self.topologies.iter().any(|one| one.iter().all(has))
    }

    /// Returns the problem of an invalid id; `None`: the id is valid.
    pub fn id_problem(id: &str) -> Option<String> {
        ID.problem(id)
    }

    /// Validates the fields that users set. Paths begin at the volume. `is_new`: the storage system
    /// has yet to create it.
    ///
    /// # Errors
    /// All invalid fields.
    pub fn check(&self, is_new: bool) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        if let Some(problem) = Self::id_problem(&self.id) {
            errors.push("id", problem);
        }
        if let Some(problem) = namespace_problem(&self.namespace) {
            errors.push("namespace", problem);
        }
        if let Some(problem) = plugin_id_problem(&self.plugin_id) {
            errors.push("plugin_id", problem);
        }
        if self.external_id.is_empty() && !is_new {
            errors.push(
                "external_id",
                "missing: want the storage system's id of the volume; 'kafila volume create' makes a \
                 new one",
            );
        }
        if self.capabilities.is_empty() {
            errors.push(
                "capability",
                "missing: want at least one, with an access_mode and an attachment_mode",
            );
        }
        for (position, capability) in self.capabilities.iter().enumerate() {
            if self.capabilities[..position].contains(capability) {
                errors.push(
                    format!("capability[{position}]"),
                    "duplicate capability: leave it out",
                );
            }
        }
        if self.capacity_max_bytes > 0 && self.capacity_max_bytes < self.capacity_min_bytes {
            errors.push(
                "capacity_max",
                "is below capacity_min: want at least that, or none",
            );
        }
        if !self.clone_id.is_empty() && !self.snapshot_id.is_empty() {
            errors.push(
                "clone_id",
                "excludes snapshot_id: want the volume or the snapshot to copy",
            );
        }
        let maps = [&self.parameters, &self.context];
        let maps = maps.into_iter().flatten();
        let maps: usize = maps.map(|(key, value)| key.len() + value.len()).sum();
        let flags: usize = self.mount_options.mount_flags.iter().map(String::len).sum();
        if maps + flags > MAX_OPTION_BYTES {
            errors.push(
                "parameters",
                format!(
                    "parameters, context and mount flags have {} bytes: want at most {MAX_OPTION_BYTES}",
                    maps + flags
                ),
            );
        }
        errors.into_result(())
    }
}

/// Returns the problem of an invalid id of a plugin; `None`: the id is valid. Nodes use it in names
/// of directories.
pub fn plugin_id_problem(id: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_name = !id.is_empty() && id.chars().all(fits) && !id.chars().all(|c| c == '.');
    if is_name && id.len() <= MAX_PLUGIN_ID_BYTES {
        return None;
    }
    Some(format!(
        "{id:?} is no id of a plugin: want 1 to {MAX_PLUGIN_ID_BYTES} letters, digits, hyphens, \
         underscores and full stops, as in the id of a csi_plugin block"
    ))
}

/// The key of one attachment: a volume on one node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CsiAttachmentKey {
    pub volume: CsiVolumeKey,
    pub node_id: NodeId,
}

/// The value of `csi-attachment/<namespace>/<volume>/<node>`: a volume that a controller plugin
/// attaches to a node.
///
/// It is written before the first call of the plugin and deleted after the last, so that an attachment
/// without a record does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiAttachment {
    pub plugin_id: String,
    /// The storage system's names of the volume and of the node.
    pub external_id: String,
    pub external_node_id: String,
    /// The last allocation on the node that needed it; it may be gone.
    pub alloc_id: AllocId,
    pub capability: Option<Capability>,
    #[serde(default, skip_serializing_if = "MountOptions::is_empty")]
    pub mount_options: MountOptions,
    pub read_only: bool,
    /// The volume's own facts, as of its attachment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub volume_context: BTreeMap<String, String>,
    pub state: AttachmentState,
    /// The plugin's answer, which the node passes on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub publish_context: BTreeMap<String, String>,
    /// The failure of the last call; empty: none failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// Calls that failed one after the other.
    #[serde(default)]
    pub failures: u32,
    /// No call before this time.
    #[serde(default)]
    pub retry_at: Timestamp,
}

/// Progress of an attachment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttachmentState {
    /// The plugin may have attached it.
    #[default]
    Attaching,
    Attached,
    /// The plugin may have detached it.
    Detaching,
}

impl AttachmentState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Attaching => "attaching",
            Self::Attached => "attached",
            Self::Detaching => "detaching",
        }
    }
}

/// The plugin that a task provides to its node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiPluginTask {
    pub id: String,
    #[serde(rename = "type")]
    pub plugin_type: CsiPluginType,
    /// Path inside the task of the directory of its socket.
    pub mount_dir: String,
    /// Path inside the task of the directory of the node's volumes.
    pub stage_publish_base_dir: String,
    #[serde(with = "duration_ns")]
    pub health_timeout: Duration,
}

/// The services of a plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CsiPluginType {
    #[default]
    Node,
    Controller,
    Monolith,
}

impl CsiPluginType {
    pub const ALL: [Self; 3] = [Self::Node, Self::Controller, Self::Monolith];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Controller => "controller",
            Self::Monolith => "monolith",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == word)
    }

    pub fn has_node(self) -> bool {
        self != Self::Controller
    }

    pub fn has_controller(self) -> bool {
        self != Self::Node
    }
}

/// A plugin on a node, as the node reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiPluginInfo {
    /// The plugin's own name, as in `ebs.csi.aws.com`.
    pub provider: String,
    pub provider_version: String,
    pub alloc_id: AllocId,
    pub healthy: bool,
    /// The reason, if it is not healthy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its volumes need a controller plugin besides.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_controller: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<CsiControllerInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<CsiNodeInfo>,
}

/// Abilities of a controller plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiControllerInfo {
    pub creates: bool,
    /// Attaches volumes to nodes before they are mounted.
    pub attaches: bool,
    pub attaches_read_only: bool,
    pub lists: bool,
    pub snapshots: bool,
    pub lists_snapshots: bool,
    pub clones: bool,
}

/// Facts of a node plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiNodeInfo {
    /// The plugin's own name of the node.
    pub node_id: String,
    /// 0: no limit.
    #[serde(default)]
    pub max_volumes: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub topology: Segments,
    pub stages: bool,
}

/// Tells whether a node can run plugin tasks: the attribute of nodes that supervise them.
pub const CSI_ATTRIBUTE: &str = "kafila.csi";

/// Tells whether a volume used in this way is a device file of the task.
pub fn is_block_device(capability: Capability) -> bool {
    capability.attachment_mode == AttachmentMode::BlockDevice
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::AccessMode;

    fn volume() -> CsiVolume {
        CsiVolume {
            namespace: "default".into(),
            id: "data".into(),
            external_id: "vol-1".into(),
            plugin_id: "ebs".into(),
            capabilities: vec![Capability {
                access_mode: AccessMode::SingleNodeWriter,
                attachment_mode: AttachmentMode::FileSystem,
            }],
            ..CsiVolume::default()
        }
    }

    #[test]
    fn all_invalid_fields_of_a_volume_are_named() {
        volume().check(false).unwrap();
        let new = CsiVolume {
            external_id: String::new(),
            ..volume()
        };
        new.check(true).unwrap();
        assert_eq!(new.check(false).unwrap_err().0[0].field, "external_id");
        let wrong = CsiVolume {
            namespace: "*".into(),
            id: "a/b".into(),
            external_id: String::new(),
            plugin_id: "..".into(),
            capabilities: vec![volume().capabilities[0]; 2],
            capacity_min_bytes: 2,
            capacity_max_bytes: 1,
            clone_id: "a".into(),
            snapshot_id: "b".into(),
            parameters: [("k".to_owned(), "v".repeat(MAX_OPTION_BYTES))].into(),
            ..CsiVolume::default()
        };
        let errors = wrong.check(false).unwrap_err();
        let fields: Vec<_> = errors.0.iter().map(|error| error.field.as_str()).collect();
        let want = [
            "id",
            "namespace",
            "plugin_id",
            "external_id",
            "capability[1]",
            "capacity_max",
            "clone_id",
            "parameters",
        ];
        assert_eq!(fields, want);
        let none = CsiVolume {
            capabilities: Vec::new(),
            ..volume()
        };
        assert_eq!(none.check(false).unwrap_err().0[0].field, "capability");
    }

    #[test]
    fn a_volume_is_reachable_from_nodes_with_all_segments_of_one_topology() {
        let segments = |pairs: &[(&str, &str)]| -> Segments {
            let pairs = pairs.iter();
            pairs
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect()
        };
        let mut volume = volume();
        assert!(volume.is_reachable_from(&segments(&[])));
        volume.topologies = vec![
            segments(&[("zone", "a"), ("rack", "1")]),
            segments(&[("zone", "b")]),
        ];
        for (node, is_reachable) in [
            (segments(&[("zone", "a"), ("rack", "1")]), true),
            (segments(&[("zone", "a")]), false),
            (segments(&[("zone", "b"), ("rack", "9")]), true),
            (segments(&[]), false),
        ] {
            assert_eq!(volume.is_reachable_from(&node), is_reachable, "{node:?}");
        }
    }

    #[test]
    fn options_of_a_job_go_before_those_of_the_volume() {
        let volume = MountOptions {
            fs_type: "ext4".into(),
            mount_flags: vec!["noatime".into()],
        };
        assert_eq!(MountOptions::default().or(&volume), volume);
        let job = MountOptions {
            fs_type: "xfs".into(),
            mount_flags: Vec::new(),
        };
        let both = job.or(&volume);
        assert_eq!(
            (both.fs_type.as_str(), both.mount_flags),
            ("xfs", volume.mount_flags)
        );
    }
}
