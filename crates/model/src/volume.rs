//! Dynamic host volumes: directories of nodes registered by name, their access modes, and the claims
//! of task groups.

use std::sync::Arc;

use fnv1a::Fnv128;
use serde::{Deserialize, Serialize};

use crate::field_error::FieldErrors;
use crate::ids::{JobKey, NodeId, VolumeClaimId, VolumeId};
use crate::name::{NameRule, namespace_problem};
use crate::time::Timestamp;

/// Longest name. Source: Nomad's public limits for names.
pub const MAX_NAME_CHARS: usize = 128;
/// Longest path. Source: `PATH_MAX` of Linux, without the final zero.
pub const MAX_PATH_BYTES: usize = 4_095;

/// The key of one volume: a job's `source`, in the job's namespace, on one node.
///
/// Volumes are stored under it, so their names are unique on a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeKey {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub node_id: NodeId,
}

/// The value of `host-volume/<namespace>/<name>/<node id>`: a directory of one node.
///
/// Its users are not stored but derived from the allocations; its state is derived from its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Stands in the key, as do the name and the node; filled in on read.
    #[serde(skip)]
    pub namespace: String,
    #[serde(skip)]
    pub name: String,
    #[serde(skip)]
    pub node_id: NodeId,
    /// Names the volume in commands; never reused.
    pub id: VolumeId,
    /// Absolute, on the node.
    pub host_path: String,
    /// Accepted ways to use it; at least one.
    pub capabilities: Vec<Capability>,
    /// Being deleted: accepts no new allocations. Deletion takes two steps, because a plan compares the
    /// volume's key, and not the other way round.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
    pub create_time: Timestamp,
    pub modify_time: Timestamp,
}

/// One way to use a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Capability {
    pub access_mode: AccessMode,
    pub attachment_mode: AttachmentMode,
}

/// Concurrent use of a volume: readers and writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessMode {
    SingleNodeReaderOnly,
    SingleNodeWriter,
    /// At most one allocation writes.
    SingleNodeSingleWriter,
    SingleNodeMultiWriter,
    // The others are of storage systems that several nodes reach.
    MultiNodeReaderOnly,
    MultiNodeSingleWriter,
    MultiNodeMultiWriter,
}

const NAME: NameRule = NameRule {
    noun: "volume",
    example: "data",
    marks: "-_.[]",
    marks_in_words: "hyphens, underscores, full stops and brackets",
    max_chars: MAX_NAME_CHARS,
};

impl AccessMode {
    pub const ALL: [Self; 7] = [
        Self::SingleNodeReaderOnly,
        Self::SingleNodeWriter,
        Self::SingleNodeSingleWriter,
        Self::SingleNodeMultiWriter,
        Self::MultiNodeReaderOnly,
        Self::MultiNodeSingleWriter,
        Self::MultiNodeMultiWriter,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::SingleNodeReaderOnly => "single-node-reader-only",
            Self::SingleNodeWriter => "single-node-writer",
            Self::SingleNodeSingleWriter => "single-node-single-writer",
            Self::SingleNodeMultiWriter => "single-node-multi-writer",
            Self::MultiNodeReaderOnly => "multi-node-reader-only",
            Self::MultiNodeSingleWriter => "multi-node-single-writer",
            Self::MultiNodeMultiWriter => "multi-node-multi-writer",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }

    /// Reads a mode of a directory of a node.
    pub fn parse_of_host(word: &str) -> Option<Self> {
        Self::parse(word).filter(|mode| !mode.is_multi_node())
    }

    /// Tells whether several nodes may use the volume at the same time.
    pub fn is_multi_node(self) -> bool {
        matches!(
            self,
            Self::MultiNodeReaderOnly | Self::MultiNodeSingleWriter | Self::MultiNodeMultiWriter
        )
    }

    /// Tells whether no allocation writes.
    pub fn is_reader_only(self) -> bool {
        matches!(self, Self::SingleNodeReaderOnly | Self::MultiNodeReaderOnly)
    }

    /// Tells whether several allocations of a storage system's volume may write.
    pub fn has_many_writers(self) -> bool {
        matches!(
            self,
            Self::SingleNodeMultiWriter | Self::MultiNodeMultiWriter
        )
    }

    /// Lists all modes for people.
    pub fn words() -> String {
        words(&Self::ALL.map(Self::as_str))
    }

    /// Lists the modes of directories of nodes for people.
    pub fn words_of_host() -> String {
        let mut modes = Self::ALL.to_vec();
        modes.retain(|mode| !mode.is_multi_node());
        words(&modes.into_iter().map(Self::as_str).collect::<Vec<_>>())
    }
}

/// Form in which tasks see a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttachmentMode {
    FileSystem,
    BlockDevice,
}

impl AttachmentMode {
    pub const ALL: [Self; 2] = [Self::FileSystem, Self::BlockDevice];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::FileSystem => "file-system",
            Self::BlockDevice => "block-device",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }

    /// Lists all modes for people.
    pub fn words() -> String {
        words(&Self::ALL.map(Self::as_str))
    }
}

fn words(all: &[&str]) -> String {
    all.join(", ")
}

impl Volume {
    /// The only type of volumes: directories of nodes.
    pub const TYPE: &str = "host";

    /// Checks the type that a request asks for; empty: any.
    ///
    /// # Errors
    /// There is no such type.
    pub fn check_type(text: &str) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        if !text.is_empty() && text != Self::TYPE {
            let message = format!("{text:?} is not a type of volumes: want {:?}", Self::TYPE);
            errors.push("type", message);
        }
        errors.into_result(())
    }

    pub fn key(&self) -> VolumeKey {
        VolumeKey {
            namespace: self.namespace.as_str().into(),
            name: self.name.as_str().into(),
            node_id: self.node_id,
        }
    }

    /// Tells whether the volume accepts this use.
    pub fn allows(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }

    /// Returns the problem of an invalid name; `None`: the name is valid.
    ///
    /// Brackets are for jobs with `per_alloc`, which ask for `data[0]`, `data[1]` and so on.
    pub fn name_problem(name: &str) -> Option<String> {
        NAME.problem(name)
    }

    /// Validates the fields that users set. Paths begin at the volume.
    ///
    /// # Errors
    /// All invalid fields.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        if let Some(problem) = Self::name_problem(&self.name) {
            errors.push("name", problem);
        }
        if let Some(problem) = namespace_problem(&self.namespace) {
            errors.push("namespace", problem);
        }
        let path = &self.host_path;
        let steps_back = path.split('/').any(|part| part == "..");
        if path.is_empty() {
            errors.push(
                "host_path",
                "missing: want the directory on the node, as in \"/srv/data\"",
            );
        } else if !path.starts_with('/')
            || steps_back
            || path.contains('\0')
            || path.len() > MAX_PATH_BYTES
        {
            errors.push(
                "host_path",
                format!(
                    "{path:?} is not a directory's full path: want one that begins with a slash, \
                     without \"..\", of at most {MAX_PATH_BYTES} bytes"
                ),
            );
        }
        if self.capabilities.is_empty() {
            errors.push(
                "capability",
                "missing: want at least one, with an access_mode and an attachment_mode",
            );
        }
        for (position, capability) in self.capabilities.iter().enumerate() {
            if capability.attachment_mode == AttachmentMode::BlockDevice {
                errors.push(
                    format!("capability[{position}].attachment_mode"),
                    "host volumes are directories: want \"file-system\"",
                );
            }
            if self.capabilities[..position].contains(capability) {
                errors.push(
                    format!("capability[{position}]"),
                    "duplicate capability: leave it out",
                );
            }
        }
        errors.into_result(())
    }
}

/// The value of `volume-claim/<id>`: allocations of the group that ask for the sticky volume are placed
/// with this one.
///
/// It lasts as long as the job and the volume, and outlives the allocation that created it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeClaim {
    pub namespace: String,
    pub job_id: String,
    pub task_group: String,
    /// The first allocation that was placed with the volume.
    pub alloc_id: crate::ids::AllocId,
    pub volume_id: VolumeId,
    pub volume_name: String,
    pub node_id: NodeId,
}

impl VolumeClaim {
    pub fn job_key(&self) -> JobKey {
        JobKey::new(self.namespace.as_str(), self.job_id.as_str())
    }

    pub fn volume_key(&self) -> VolumeKey {
        VolumeKey {
            namespace: self.namespace.as_str().into(),
            name: self.volume_name.as_str().into(),
            node_id: self.node_id,
        }
    }

    /// Returns the claim's id: a hash of namespace, job, group and volume, so that a group claims a volume
    /// once.
    pub fn id(&self) -> VolumeClaimId {
        let parts = [&self.namespace, &self.job_id, &self.task_group];
        // No name contains 0, so different lists of names have different hashes.
        let names = parts.iter().fold(Fnv128::new(), |hash, part| {
            hash.bytes(part.as_bytes()).bytes(&[0])
        });
        let hash = names.bytes(self.volume_id.0.as_bytes());
        VolumeClaimId::from_random(hash.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume() -> Volume {
        Volume {
            namespace: "default".into(),
            name: "data".into(),
            node_id: NodeId::from_random(1),
            id: VolumeId::from_random(2),
            host_path: "/srv/data".into(),
            capabilities: vec![Capability {
                access_mode: AccessMode::SingleNodeWriter,
                attachment_mode: AttachmentMode::FileSystem,
            }],
            deleting: false,
            create_time: Timestamp(1),
            modify_time: Timestamp(1),
        }
    }

    #[test]
    fn the_only_type_is_host() {
        for (text, is_valid) in [("", true), ("host", true), ("csi", false), ("Host", false)] {
            assert_eq!(Volume::check_type(text).is_ok(), is_valid, "{text:?}");
        }
    }

    #[test]
    fn all_invalid_fields_of_a_volume_are_named() {
        volume().check().unwrap();
        let block = Capability {
            access_mode: AccessMode::SingleNodeWriter,
            attachment_mode: AttachmentMode::BlockDevice,
        };
        let wrong = Volume {
            namespace: "*".into(),
            name: "a/b".into(),
            host_path: "/srv/../etc".into(),
            capabilities: vec![block, block],
            ..volume()
        };
        let errors = wrong.check().unwrap_err();
        let fields: Vec<_> = errors.0.iter().map(|error| error.field.as_str()).collect();
        let want = [
            "name",
            "namespace",
            "host_path",
            "capability[0].attachment_mode",
            "capability[1].attachment_mode",
            "capability[1]",
        ];
        assert_eq!(fields, want);
        for path in ["", "srv", "/a\0b", &format!("/{}", "x".repeat(4_095))] {
            let host_path = path.to_owned();
            let wrong = Volume {
                host_path,
                ..volume()
            };
            assert_eq!(wrong.check().unwrap_err().0[0].field, "host_path", "{path}");
        }
        let none = Volume {
            capabilities: Vec::new(),
            ..volume()
        };
        assert_eq!(none.check().unwrap_err().0[0].field, "capability");
    }

    #[test]
    fn modes_are_the_words_of_the_api() {
        for mode in AccessMode::ALL {
            assert_eq!(AccessMode::parse(mode.as_str()), Some(mode));
            let json = serde_json::to_string(&mode).unwrap();
            assert_eq!(json, format!("{:?}", mode.as_str()));
        }
        for mode in AttachmentMode::ALL {
            assert_eq!(AttachmentMode::parse(mode.as_str()), Some(mode));
            let json = serde_json::to_string(&mode).unwrap();
            assert_eq!(json, format!("{:?}", mode.as_str()));
        }
        assert_eq!(AccessMode::parse("multi-node"), None);
        assert_eq!(AccessMode::parse_of_host("multi-node-multi-writer"), None);
        for mode in AccessMode::words_of_host().split(", ") {
            assert!(AccessMode::parse_of_host(mode).is_some(), "{mode}");
        }
    }

    #[test]
    fn a_claims_id_depends_on_namespace_job_group_and_volume_only() {
        let claim = |job: &str, group: &str, volume: u128| VolumeClaim {
            namespace: "default".into(),
            job_id: job.into(),
            task_group: group.into(),
            alloc_id: crate::ids::AllocId::from_random(volume),
            volume_id: VolumeId::from_random(volume),
            volume_name: "data".into(),
            node_id: NodeId::from_random(1),
        };
        let one = claim("web", "a", 1).id();
        let by_another = VolumeClaim {
            alloc_id: crate::ids::AllocId::from_random(9),
            ..claim("web", "a", 1)
        };
        assert_eq!(by_another.id(), one);
        for other in [
            claim("we", "ba", 1),
            claim("web", "b", 1),
            claim("web", "a", 2),
        ] {
            assert_ne!(other.id(), one, "{other:?}");
        }
    }
}
