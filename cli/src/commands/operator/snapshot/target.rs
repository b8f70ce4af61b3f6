//! The snapshots of the agent: files of a directory, or objects of a bucket.

use std::path::{Path, PathBuf};

use super::download::save;
use super::store::Store;
use super::verified::Verified;
use crate::context::Context;
use crate::error::Error;

pub(super) enum Target {
    Directory(PathBuf),
    Bucket(Box<Store>),
}

impl Target {
    /// Returns the names of all files or objects, those of others included.
    pub(super) async fn names(&self) -> Result<Vec<String>, Error> {
        match self {
            Self::Directory(directory) => names(directory),
            Self::Bucket(store) => store.names().await,
        }
    }

    pub(super) async fn save(&self, context: &Context, name: &str) -> Result<Verified, Error> {
        match self {
            Self::Directory(directory) => save(context, &directory.join(name)).await,
            Self::Bucket(store) => store.save(context, &store.location.key_of(name)).await,
        }
    }

    pub(super) async fn delete(&self, name: &str) -> Result<(), Error> {
        match self {
            Self::Directory(directory) => {
                let removed = std::fs::remove_file(directory.join(name));
                removed.map_err(|error| Error::text(error.to_string()))
            }
            Self::Bucket(store) => store.delete(name).await,
        }
    }

    /// Returns the path or the location of a snapshot.
    pub(super) fn shown(&self, name: &str) -> String {
        match self {
            Self::Directory(directory) => directory.join(name).display().to_string(),
            Self::Bucket(store) => {
                let mut location = store.location.clone();
                location.key = location.key_of(name);
                location.to_string()
            }
        }
    }
}

/// Returns the names of the files in a directory.
fn names(dir: &Path) -> Result<Vec<String>, Error> {
    let failed = |error: std::io::Error| {
        let shown = dir.display();
        Error::text(format!("Error reading directory {shown}: {error}"))
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        if let Ok(name) = entry.map_err(failed)?.file_name().into_string() {
            names.push(name);
        }
    }
    Ok(names)
}
