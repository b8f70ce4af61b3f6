//! The protocol of agent and helper: one line of JSON to the helper's standard input, one from its
//! standard output. The input stays open until the agent has its answer; its end stops the helper.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::Sandbox;

/// The file of a download, in the folder of the order.
pub(crate) const PART: &str = "part";
/// The directory of a repository or an unpacked archive, in the folder of the order.
pub(crate) const TREE: &str = "tree";

/// Work for the helper.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    /// The only directory that the helper may write to.
    pub(crate) folder: PathBuf,
    /// User and group to become; `None`: those of the agent.
    pub(crate) user: Option<(u32, u32)>,
    pub(crate) sandbox: Sandbox,
    pub(crate) read_paths: Vec<PathBuf>,
    pub(crate) work: Work,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum Work {
    Http(Http),
    S3(S3),
    Git(Git),
    File(LocalFile),
    Unpack(Unpack),
}

/// A download over http, whose result is [`PART`].
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Http {
    pub(crate) url: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) insecure: bool,
    /// URL of a list of checksums, which is downloaded as well.
    pub(crate) list: Option<String>,
    /// The content in the agent's cache.
    pub(crate) cached: Option<Validators>,
    /// A part without validators may be continued, because the content has a checksum.
    pub(crate) has_checksum: bool,
    pub(crate) bytes_max: u64,
    pub(crate) stall_ms: u64,
}

/// The identity of a content at its server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Validators {
    pub(crate) etag: Option<String>,
    pub(crate) modified: Option<String>,
}

/// An object of a bucket, whose URL the helper signs.
#[derive(Serialize, Deserialize)]
pub(crate) struct S3 {
    pub(crate) endpoint: String,
    pub(crate) bucket: String,
    pub(crate) key: String,
    pub(crate) region: String,
    pub(crate) version: Option<String>,
    /// Access key, secret, session token.
    pub(crate) keys: Option<(String, String, Option<String>)>,
    /// The download, without a URL.
    pub(crate) http: Http,
}

/// A repository, whose result is [`TREE`].
#[derive(Serialize, Deserialize)]
pub(crate) struct Git {
    pub(crate) url: String,
    pub(crate) reference: Option<String>,
    pub(crate) depth: Option<u32>,
    pub(crate) ssh_key: Option<String>,
    pub(crate) allow_file: bool,
    pub(crate) insecure: bool,
    pub(crate) bytes_max: u64,
}

/// A file of the node, copied to [`PART`].
#[derive(Serialize, Deserialize)]
pub(crate) struct LocalFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes_max: u64,
}

/// An archive, whose result is [`TREE`].
#[derive(Serialize, Deserialize)]
pub(crate) struct Unpack {
    pub(crate) blob: PathBuf,
    /// The name of its kind.
    pub(crate) archive: String,
    /// The name of the file in a single compressed one.
    pub(crate) name: String,
    pub(crate) entries_max: u64,
    pub(crate) bytes_max: u64,
}

/// The helper's answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    Fetched {
        validators: Validators,
        list: Option<String>,
        /// The download continued an earlier part.
        resumed: bool,
    },
    /// The content in the cache is the server's.
    Unchanged {
        list: Option<String>,
    },
    /// There is a tree.
    Tree,
    Failed {
        message: String,
        may_pass: bool,
    },
}

impl Report {
    pub(crate) fn lasting(message: impl Into<String>) -> Self {
        Self::Failed {
            message: message.into(),
            may_pass: false,
        }
    }
}
