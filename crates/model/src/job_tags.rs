//! Names that users give to versions of a job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// The value of `job-tags/<namespace>/<id>`: which versions of a job are tagged. A tagged version
/// is kept, however many come after it.
///
/// One value for all of them, so that whoever tags and whoever deletes versions see each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobTags {
    /// Version → its tag; no name twice.
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
    /// Returns the version that is called `name`.
    pub fn find(&self, name: &str) -> Option<u64> {
        let mut tags = self.versions.iter();
        tags.find(|(_, tag)| tag.name == name)
            .map(|(version, _)| *version)
    }
}
