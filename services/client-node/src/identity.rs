//! Who the node is: an id and a secret, made on its first start and kept for ever.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use model::NodeId;
use service_kit::IdSource;
use tracing::warn;

use crate::error::Error;

const ID_FILE: &str = "client-id";
const SECRET_FILE: &str = "secret-id";
/// The machine that the identity was made on.
const MACHINE_FILE: &str = "machine-id";

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) node_id: NodeId,
    /// Proves to servers, and to nobody else, that a call is the node's own.
    pub(crate) secret: String,
}

impl Identity {
    /// Makes an identity that lasts as long as the process.
    pub(crate) fn new(ids: &IdSource) -> Self {
        Self {
            node_id: NodeId::from_random(ids.next_u128()),
            secret: NodeId::from_random(ids.next_u128()).to_string(),
        }
    }

    /// Reads the identity in `directory`, or makes and keeps one.
    pub(crate) fn load(directory: &Path, ids: &IdSource) -> Result<Self, Error> {
        let path_error = |what| {
            move |source| Error::Path {
                path: directory.to_owned(),
                what,
                source,
            }
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(path_error("cannot make the state directory"))?;
        let fresh = Self::new(ids);
        let id = keep(directory, ID_FILE, &fresh.node_id.to_string())
            .map_err(path_error("cannot keep the node's id"))?;
        let secret = keep(directory, SECRET_FILE, &fresh.secret)
            .map_err(path_error("cannot keep the node's secret"))?;
        warn_if_moved(directory);
        let bad = |file| Error::BadIdentity {
            path: directory.join(file),
        };
        let node_id = id.parse().map_err(|_| bad(ID_FILE))?;
        if secret.is_empty() {
            return Err(bad(SECRET_FILE));
        }
        Ok(Self { node_id, secret })
    }
}

/// Returns what `file` holds; writes `fresh` first when there is no such file.
fn keep(directory: &Path, file: &str, fresh: &str) -> io::Result<String> {
    let path = directory.join(file);
    match fs::read_to_string(&path) {
        Ok(text) => return Ok(text.trim().to_ascii_lowercase()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) => {}
    }
    let draft = directory.join(format!("{file}.tmp"));
    let mut options = fs::OpenOptions::new();
    let mut draft_file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)?;
    draft_file.write_all(fresh.as_bytes())?;
    draft_file.sync_all()?;
    fs::rename(&draft, &path)?;
    fs::File::open(directory)?.sync_all()?;
    Ok(fresh.to_owned())
}

/// Two machines with one identity, after a data directory was copied, look like one node that
/// flaps: nobody else would notice. A container may lose its machine id, so it is no error.
fn warn_if_moved(directory: &Path) {
    let Ok(machine) = fs::read_to_string("/etc/machine-id") else {
        return;
    };
    match keep(directory, MACHINE_FILE, machine.trim()) {
        Ok(kept) if kept == machine.trim() => {}
        Ok(_) => warn!(
            directory = %directory.display(),
            "this identity was made on another machine: if that one still runs, remove the \
             data directory here"
        ),
        Err(error) => warn!(%error, "cannot keep the machine's id beside the node's"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn scenario_001_the_identity_is_made_once_and_for_the_agents_eyes_only() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("client");
        let first = Identity::load(&directory, &IdSource::seeded(1)).unwrap();
        let second = Identity::load(&directory, &IdSource::seeded(2)).unwrap();
        assert!(first == second);
        assert_ne!(first.node_id.to_string(), first.secret);
        for file in [ID_FILE, SECRET_FILE] {
            let mode = fs::metadata(directory.join(file))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
        assert_eq!(
            fs::metadata(&directory).unwrap().permissions().mode() & 0o777,
            0o700
        );
    }

    #[test]
    fn an_id_that_is_none_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(ID_FILE), "not an id").unwrap();
        let error = Identity::load(folder.path(), &IdSource::seeded(1))
            .err()
            .unwrap();
        assert!(error.to_string().contains("does not hold an id"), "{error}");
    }
}
