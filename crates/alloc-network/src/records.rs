//! Records of networks on disk: `<directory>/<alloc id>/network.json`, with the files `hosts` and
//! `resolv.conf` beside it.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use model::{AllocId, NetworkStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conflist::ConfList;
use crate::error::Error;
use crate::plan::Plan;

const RECORD: &str = "network.json";

/// A network that exists, or did in part when the agent died.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The boot of the machine that it was made in.
    pub(crate) boot_id: String,
    pub(crate) plan: Plan,
    /// The driver that owns the namespace; empty: the agent.
    pub(crate) owner: String,
    /// `None`: the mode needs no plugins.
    pub(crate) list: Option<ConfList>,
    /// `None`: the network is not complete.
    pub(crate) done: Option<Done>,
    /// Its removal has begun.
    #[serde(default)]
    pub(crate) is_ending: bool,
}

/// Results of a complete network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Done {
    /// The plugins' result, for their CHECK and DEL.
    pub(crate) result: Option<Value>,
    pub(crate) status: NetworkStatus,
}

#[derive(Debug)]
pub(crate) struct Records {
    base: PathBuf,
}

impl Records {
    pub(crate) fn new(base: PathBuf) -> Self {
        Self { base }
    }

    pub(crate) fn directory(&self, alloc_id: AllocId) -> PathBuf {
        self.base.join(alloc_id.to_string())
    }

    /// Writes a record as a whole. It need not survive a power cut, which ends the network as well.
    pub(crate) fn put(&self, record: &Record) -> Result<(), Error> {
        let directory = self.directory(record.plan.alloc_id);
        let written = || {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o711)
                .create(&directory)?;
            write(&directory.join(RECORD), &serde_json::to_vec(record)?)
        };
        written().map_err(|source| Error::Path {
            what: "cannot write the network's record in",
            path: directory.clone(),
            source,
        })
    }

    /// Writes a file beside the record, and returns its path. A file that tasks have mounted keeps its
    /// inode.
    pub(crate) fn put_file(
        &self,
        alloc_id: AllocId,
        name: &str,
        text: &str,
    ) -> Result<PathBuf, Error> {
        let path = self.directory(alloc_id).join(name);
        match fs::write(&path, text) {
            Ok(()) => Ok(path),
            Err(source) => Err(Error::Path {
                what: "cannot write",
                path,
                source,
            }),
        }
    }

    /// Returns the record; `None`: there is none, or it is unreadable.
    pub(crate) fn get(&self, alloc_id: AllocId) -> Option<Record> {
        let bytes = fs::read(self.directory(alloc_id).join(RECORD)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    pub(crate) fn remove(&self, alloc_id: AllocId) -> Result<(), Error> {
        let directory = self.directory(alloc_id);
        match fs::remove_dir_all(&directory) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::Path {
                what: "cannot remove",
                path: directory,
                source,
            }),
            _ => Ok(()),
        }
    }

    /// Lists the allocations with records, readable or not.
    pub(crate) fn all(&self) -> Vec<AllocId> {
        let entries = fs::read_dir(&self.base).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect()
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, bytes)?;
    fs::rename(&new, path)
}
