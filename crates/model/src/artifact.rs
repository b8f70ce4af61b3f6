//! Artifacts of tasks: files that a node fetches before the first start.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Its source; may contain references such as `${env.X}`.
    pub source: String,
    /// Options of the transfer, such as `checksum`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// Headers of HTTP requests. Their values may be secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub mode: ArtifactMode,
    /// Accepts every certificate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// Path below the task's directory, or `../alloc/…`.
    pub destination: String,
    /// The files belong to the task's user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chown: bool,
}

/// The kind of source that it is taken for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArtifactMode {
    /// An archive is unpacked, a directory is copied, a file is placed in the destination.
    #[default]
    Any,
    /// One file, which becomes the destination itself.
    File,
    /// A directory.
    Dir,
}

impl ArtifactMode {
    pub const ALL: [Self; 3] = [Self::Any, Self::File, Self::Dir];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::File => "file",
            Self::Dir => "dir",
        }
    }
}
