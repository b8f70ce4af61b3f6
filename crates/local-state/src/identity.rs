//! Node identity: an id and a secret, created at the first start and kept for ever.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use model::NodeId;
use service_kit::IdSource;
use tracing::warn;

use crate::error::Error;

const ID_FILE: &str = "client-id";
const SECRET_FILE: &str = "secret-id";
/// Id of the machine that the identity was created on.
const MACHINE_FILE: &str = "machine-id";

/// The node's id in its certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertifiedId {
    pub node_id: NodeId,
    /// File of the certificate, for messages.
    pub cert_file: PathBuf,
}

#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    pub node_id: NodeId,
    /// Authenticates the node's calls. Only the servers know it.
    pub secret: String,
}

impl std::fmt::Debug for Identity {
    /// Leaves out the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity")
            .field("node_id", &self.node_id)
            .finish_non_exhaustive()
    }
}

impl Identity {
    /// Creates an identity in memory, with the id of the certificate if there is one.
    pub fn new(ids: &IdSource, certified: Option<&CertifiedId>) -> Self {
        let random = NodeId::from_random(ids.next_u128());
        Self {
            node_id: certified.map_or(random, |certified| certified.node_id),
            secret: NodeId::from_random(ids.next_u128()).to_string(),
        }
    }

    /// Reads the id in `directory`; `None`: there is none yet.
    ///
    /// # Errors
    /// The file cannot be read, or holds no id.
    pub(crate) fn kept_id(directory: &Path) -> Result<Option<NodeId>, Error> {
        let path = directory.join(ID_FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                let what = "cannot read the node's id";
                return Err(Error::Path { path, what, source });
            }
        };
        let id = text.trim().to_ascii_lowercase().parse();
        id.map(Some).map_err(|_| Error::BadIdentity { path })
    }

    /// Reads the identity in `directory`; creates and stores one at the first start, with the id of the
    /// certificate if there is one.
    ///
    /// # Errors
    /// A file cannot be read or written, or the certificate is for another node.
    pub(crate) fn load(
        directory: &Path,
        ids: &IdSource,
        certified: Option<&CertifiedId>,
    ) -> Result<Self, Error> {
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
            .map_err(path_error("cannot create the state directory"))?;
        let fresh = Self::new(ids, certified);
        let id = read_or_create(directory, ID_FILE, &fresh.node_id.to_string())
            .map_err(path_error("cannot store the node's id"))?;
        let secret = read_or_create(directory, SECRET_FILE, &fresh.secret)
            .map_err(path_error("cannot store the node's secret"))?;
        warn_if_moved(directory);
        let bad = |file| Error::BadIdentity {
            path: directory.join(file),
        };
        let node_id = id.parse().map_err(|_| bad(ID_FILE))?;
        if let Some(certified) = certified.filter(|certified| certified.node_id != node_id) {
            return Err(Error::ForeignCertificate {
                id_file: directory.join(ID_FILE),
                node_id,
                cert_file: certified.cert_file.clone(),
                certified: certified.node_id,
            });
        }
        if secret.is_empty() {
            return Err(bad(SECRET_FILE));
        }
        Ok(Self { node_id, secret })
    }
}

/// Returns the content of `file`; writes `fresh` first if the file does not exist.
fn read_or_create(directory: &Path, file: &str, fresh: &str) -> io::Result<String> {
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

/// Two machines with one identity, after a copy of the data directory, look like one flapping node,
/// and servers cannot tell. Not an error, because a container may get a new machine id.
fn warn_if_moved(directory: &Path) {
    let Ok(machine) = fs::read_to_string("/etc/machine-id") else {
        return;
    };
    match read_or_create(directory, MACHINE_FILE, machine.trim()) {
        Ok(kept) if kept == machine.trim() => {}
        Ok(_) => warn!(
            directory = %directory.display(),
            "this identity was created on another machine: if that one still runs, remove the \
             data directory here"
        ),
        Err(error) => warn!(%error, "cannot store the machine's id with the node's"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn scenario_001_the_identity_is_created_once_and_readable_by_the_agent_alone() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("client");
        assert_eq!(Identity::kept_id(&directory).unwrap(), None);
        let first = Identity::load(&directory, &IdSource::seeded(1), None).unwrap();
        assert_eq!(Identity::kept_id(&directory).unwrap(), Some(first.node_id));
        let second = Identity::load(&directory, &IdSource::seeded(2), None).unwrap();
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
    fn a_new_node_takes_the_id_of_its_certificate_and_refuses_that_of_another_node() {
        let folder = tempfile::tempdir().unwrap();
        let certified = |seed| CertifiedId {
            node_id: NodeId::from_random(seed),
            cert_file: PathBuf::from("/etc/kafila/node.pem"),
        };
        let load = |certified: Option<CertifiedId>| {
            Identity::load(folder.path(), &IdSource::seeded(1), certified.as_ref())
        };
        let first = load(Some(certified(7))).unwrap();
        assert_eq!(first.node_id, certified(7).node_id);
        assert!(load(None).unwrap() == first);
        assert!(load(Some(certified(7))).unwrap() == first);
        let error = load(Some(certified(8))).unwrap_err().to_string();
        for part in [
            "client-id",
            "/etc/kafila/node.pem",
            &first.node_id.to_string(),
        ] {
            assert!(error.contains(part), "{error}");
        }
        assert!(load(None).unwrap() == first);
    }

    #[test]
    fn an_invalid_id_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(ID_FILE), "not an id").unwrap();
        let error = Identity::load(folder.path(), &IdSource::seeded(1), None)
            .err()
            .unwrap();
        assert!(error.to_string().contains("does not hold an id"), "{error}");
    }
}
