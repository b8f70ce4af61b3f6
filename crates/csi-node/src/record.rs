//! Progress of an allocation's mounts on disk: `mounts/<allocation>.json`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use model::{AllocId, CsiVolumeKey};
use serde::{Deserialize, Serialize};
use tracing::warn;

/// The mounts of one allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The run of the machine that they were made in.
    pub(crate) boot_id: String,
    /// Name in the group → mount.
    pub(crate) volumes: BTreeMap<String, Volume>,
}

/// A mount that may have been made. It has no secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Volume {
    pub(crate) namespace: String,
    pub(crate) volume_id: String,
    pub(crate) external_id: String,
    pub(crate) plugin_id: String,
    /// `None`: the plugin stages no volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) staging: Option<PathBuf>,
    pub(crate) target: PathBuf,
    /// The plugin has published it.
    pub(crate) is_published: bool,
}

impl Volume {
    pub(crate) fn key(&self) -> CsiVolumeKey {
        CsiVolumeKey::new(self.namespace.as_str(), self.volume_id.as_str())
    }
}

fn path(directory: &Path, alloc_id: AllocId) -> PathBuf {
    directory.join(format!("{alloc_id}.json"))
}

/// Reads all records. One that cannot be read is kept and left out: its mounts are unknown.
///
/// # Errors
/// The directory cannot be read.
pub(crate) fn read_all(directory: &Path) -> io::Result<BTreeMap<AllocId, Record>> {
    let mut records = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let Some(alloc_id) = name.strip_suffix(".json").and_then(|id| id.parse().ok()) else {
            continue;
        };
        match read(&path(directory, alloc_id)) {
            Ok(record) => drop(records.insert(alloc_id, record)),
            Err(error) => warn!(%alloc_id, %error, "cannot read the record of mounts"),
        }
    }
    Ok(records)
}

fn read(path: &Path) -> io::Result<Record> {
    let text = fs::read(path)?;
    serde_json::from_slice(&text).map_err(io::Error::other)
}

/// Replaces the record atomically; an empty one is removed.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write(directory: &Path, alloc_id: AllocId, record: &Record) -> io::Result<()> {
    let path = path(directory, alloc_id);
    if record.volumes.is_empty() {
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => result?,
        }
    } else {
        let text = serde_json::to_vec(record).map_err(io::Error::other)?;
        let new = directory.join(format!("{alloc_id}.new"));
        let mut options = fs::OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&new)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
    }
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back_until_its_last_volume_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let alloc_id = AllocId::from_random(1);
        let volume = Volume {
            namespace: "default".into(),
            volume_id: "data".into(),
            external_id: "vol-1".into(),
            plugin_id: "ebs".into(),
            staging: Some("/s".into()),
            target: "/t".into(),
            is_published: false,
        };
        let mut record = Record {
            boot_id: "b".into(),
            volumes: [("data".to_owned(), volume)].into(),
        };
        write(directory.path(), alloc_id, &record).unwrap();
        fs::write(directory.path().join("x.json"), "{").unwrap();
        let broken = AllocId::from_random(2);
        fs::write(directory.path().join(format!("{broken}.json")), "{").unwrap();
        let read = read_all(directory.path()).unwrap();
        assert_eq!(read, [(alloc_id, record.clone())].into());
        record.volumes.clear();
        for _ in 0..2 {
            write(directory.path(), alloc_id, &record).unwrap();
        }
        assert!(read_all(directory.path()).unwrap().is_empty());
    }
}
