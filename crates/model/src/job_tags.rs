//! Tags of job versions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// The value of `job-tags/<namespace>/<id>`: the tagged versions of a job. A tagged version is
/// kept, however many come after it.
///
/// All tags share one value, so that tagging and deleting versions conflict instead of racing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobTags {
    /// Version → its tag; names are unique.
    pub versions: BTreeMap<u64, VersionTag>,
}

/// A name for one version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionTag {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(rename = "t")]
    pub tagged_time: Timestamp,
}

impl JobTags {
    /// Returns the version with the tag `name`.
    pub fn find(&self, name: &str) -> Option<u64> {
        let mut tags = self.versions.iter();
        tags.find(|(_, tag)| tag.name == name)
            .map(|(version, _)| *version)
    }
}
