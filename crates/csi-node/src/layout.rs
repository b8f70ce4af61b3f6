//! Directories of a node's storage, and how plugins see them.
//!
//! `plugins/<allocation>.<n>/csi.sock` is the socket of the allocation's n-th plugin; it is short
//! because paths of sockets have at most 107 bytes. `volumes/<plugin>/staging/…` and
//! `volumes/<plugin>/published/…` are what plugins mount volumes on, and `mounts/<allocation>.json` is
//! the progress of mounts.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use model::{AllocId, CsiVolumeKey};

/// The socket's name. Source: Nomad's public documentation.
pub const SOCKET: &str = "csi.sock";
/// The longest path of a socket. Source: `sockaddr_un` of Linux, without the final zero.
pub const SOCKET_PATH_MAX: usize = 107;

/// The directories of one node.
#[derive(Clone, Debug)]
pub struct Layout {
    base: PathBuf,
}

impl Layout {
    /// # Errors
    /// A directory cannot be created.
    pub(crate) fn create(base: &Path) -> io::Result<Self> {
        let layout = Self {
            base: base.to_owned(),
        };
        // Tasks of any user reach their volumes through them, and cannot list them.
        for (directory, mode) in [
            (layout.base.clone(), 0o711),
            (layout.base.join("plugins"), 0o711),
            (layout.base.join("volumes"), 0o711),
            (layout.records(), 0o700),
        ] {
            create(&directory, mode)?;
        }
        Ok(layout)
    }

    /// Returns the directory of a plugin's socket.
    pub fn socket_dir(&self, alloc_id: AllocId, position: usize) -> PathBuf {
        self.base
            .join("plugins")
            .join(format!("{alloc_id}.{position}"))
    }

    /// Returns the directory of a plugin's volumes.
    pub fn volumes_of(&self, plugin_id: &str) -> PathBuf {
        self.base.join("volumes").join(plugin_id)
    }

    pub(crate) fn volumes(&self) -> PathBuf {
        self.base.join("volumes")
    }

    pub(crate) fn records(&self) -> PathBuf {
        self.base.join("mounts")
    }

    /// Returns where a volume is staged, for uses with the same mark.
    pub(crate) fn staging(&self, plugin_id: &str, key: &CsiVolumeKey, mark: &str) -> PathBuf {
        let volumes = self.volumes_of(plugin_id).join("staging");
        volumes.join(&*key.namespace).join(&*key.id).join(mark)
    }

    /// Returns where a volume is published to an allocation.
    pub(crate) fn target(
        &self,
        plugin_id: &str,
        alloc_id: AllocId,
        key: &CsiVolumeKey,
        mark: &str,
    ) -> PathBuf {
        let published = self.volumes_of(plugin_id).join("published");
        published
            .join(alloc_id.to_string())
            .join(format!("{}.{mark}", key.id))
    }

    /// Creates the directories of a plugin; ones that exist are kept.
    ///
    /// # Errors
    /// One cannot be created, or the socket's path is too long.
    pub fn create_for_plugin(&self, socket_dir: &Path, plugin_id: &str) -> io::Result<()> {
        let length = socket_dir.join(SOCKET).as_os_str().len();
        if length > SOCKET_PATH_MAX {
            return Err(io::Error::other(format!(
                "the socket's path {} has {length} bytes, more than {SOCKET_PATH_MAX}: choose a \
                 shorter data_dir",
                socket_dir.join(SOCKET).display()
            )));
        }
        create(socket_dir, 0o755)?;
        create(&self.volumes_of(plugin_id), 0o711)
    }
}

pub(crate) fn create(directory: &Path, mode: u32) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(mode);
    builder.create(directory)
}

/// A plugin's view of the directory of its volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginPaths {
    /// On the node.
    pub on_node: PathBuf,
    /// In the plugin's task.
    pub in_task: PathBuf,
}

impl PluginPaths {
    /// Returns the path in the task of a path on the node.
    pub(crate) fn seen(&self, path: &Path) -> String {
        let seen = match path.strip_prefix(&self.on_node) {
            Ok(rest) => self.in_task.join(rest),
            Err(_) => path.to_owned(),
        };
        seen.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_in_a_container_sees_its_volumes_below_its_own_directory() {
        let layout = Layout {
            base: "/var/lib/kafila/csi".into(),
        };
        let paths = PluginPaths {
            on_node: layout.volumes_of("ebs"),
            in_task: "/local/csi".into(),
        };
        let key = CsiVolumeKey::new("default", "data[1]");
        let staging = layout.staging("ebs", &key, "rw");
        assert_eq!(
            paths.seen(&staging),
            "/local/csi/staging/default/data[1]/rw"
        );
        let target = layout.target("ebs", AllocId::from_random(1), &key, "ro");
        assert!(target.starts_with("/var/lib/kafila/csi/volumes/ebs/published"));
        assert!(target.ends_with("data[1].ro"));
    }

    #[test]
    fn a_socket_whose_path_is_too_long_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().join("x".repeat(60));
        let layout = Layout::create(&base).unwrap();
        let socket_dir = layout.socket_dir(AllocId::from_random(1), 0);
        let error = layout.create_for_plugin(&socket_dir, "ebs").unwrap_err();
        assert!(error.to_string().contains("shorter data_dir"), "{error}");
    }
}
