//! Volumes of allocations: staged and published before their tasks start, unpublished and unstaged after
//! their tasks have ended.
//!
//! Each volume is changed by one call at a time. Calls are repeated by their callers: a repetition
//! goes on where the last one failed, because every call of the interface is idempotent.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csi::capability::Use;
use csi::v1::{
    NodePublishVolumeRequest, NodeStageVolumeRequest, NodeUnpublishVolumeRequest,
    NodeUnstageVolumeRequest,
};
use model::{AllocId, CsiVolumeKey};
use tracing::info;

use crate::layout::{Layout, create};
use crate::record::{self, Record, Volume};
use crate::registry::{NodeService, Registry};
use crate::sharing::is_mounted;

/// A volume that an allocation needs.
#[derive(Clone, Default)]
pub struct Mount {
    /// Its name in the group.
    pub name: String,
    pub namespace: String,
    pub volume_id: String,
    pub external_id: String,
    pub plugin_id: String,
    pub usage: Use,
    pub read_only: bool,
    pub context: BTreeMap<String, String>,
    pub publish_context: BTreeMap<String, String>,
    pub secrets: BTreeMap<String, String>,
}

impl Mount {
    fn key(&self) -> CsiVolumeKey {
        CsiVolumeKey::new(self.namespace.as_str(), self.volume_id.as_str())
    }

    /// Returns the name of its kind of use, for directories.
    fn mark(&self) -> String {
        let mode = if self.read_only { "ro" } else { "rw" };
        let fs_type: String = self
            .usage
            .fs_type
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        let parts = [mode, &self.usage.access_mode, &fs_type];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join("-")
    }
}

/// The mounts of one node.
#[derive(Debug)]
pub struct Mounts {
    layout: Layout,
    registry: Arc<Registry>,
    boot_id: String,
    records: Mutex<BTreeMap<AllocId, Record>>,
    /// Volume → held while it is changed.
    changing: Mutex<HashMap<CsiVolumeKey, Arc<tokio::sync::Mutex<()>>>>,
}

impl Mounts {
    /// # Errors
    /// The records cannot be read.
    pub(crate) fn open(layout: Layout, registry: Arc<Registry>, boot_id: &str) -> io::Result<Self> {
        let records = record::read_all(&layout.records())?;
        Ok(Self {
            layout,
            registry,
            boot_id: boot_id.to_owned(),
            records: Mutex::new(records),
            changing: Mutex::default(),
        })
    }

    /// Lists the allocations with mounts that are not undone.
    pub fn all(&self) -> Vec<AllocId> {
        self.lock().keys().copied().collect()
    }

    /// Tells whether an allocation has mounts that are not undone.
    pub fn has(&self, alloc_id: AllocId) -> bool {
        self.lock().contains_key(&alloc_id)
    }

    /// Returns the directories of an allocation's published volumes, by their names in the group.
    pub fn paths(&self, alloc_id: AllocId) -> BTreeMap<String, PathBuf> {
        let records = self.lock();
        let record = records.get(&alloc_id);
        let volumes = record.into_iter().flat_map(|record| &record.volumes);
        volumes
            .filter(|(_, volume)| volume.is_published)
            .map(|(name, volume)| (name.clone(), volume.target.clone()))
            .collect()
    }

    /// Stages and publishes a volume. One that an earlier run of the agent published is published again,
    /// which changes nothing.
    ///
    /// # Errors
    /// A message for the user.
    pub async fn mount(&self, alloc_id: AllocId, mount: &Mount) -> Result<(), String> {
        let changing = self.changing(&mount.key());
        let _changing = changing.lock().await;
        let service = self.service(&mount.plugin_id)?;
        let mark = mount.mark();
        let key = mount.key();
        let staging = service
            .stages
            .then(|| self.layout.staging(&mount.plugin_id, &key, &mark));
        let target = self.layout.target(&mount.plugin_id, alloc_id, &key, &mark);
        let volume = Volume {
            namespace: mount.namespace.clone(),
            volume_id: mount.volume_id.clone(),
            external_id: mount.external_id.clone(),
            plugin_id: mount.plugin_id.clone(),
            staging: staging.clone(),
            target: target.clone(),
            is_published: false,
        };
        let of = format!("volume {:?}", mount.volume_id);
        self.put(alloc_id, &mount.name, volume.clone()).await?;
        if let Some(staging) = &staging {
            let directory = staging.clone();
            on_thread(move || create(&directory, 0o700))
                .await
                .map_err(|error| format!("{of}: {}: {error}", staging.display()))?;
            let request = NodeStageVolumeRequest {
                volume_id: mount.external_id.clone(),
                publish_context: mount.publish_context.clone().into_iter().collect(),
                staging_target_path: service.paths.seen(staging),
                volume_capability: Some(mount.usage.to_message()),
                secrets: mount.secrets.clone().into_iter().collect(),
                volume_context: mount.context.clone().into_iter().collect(),
            };
            let staged = service.plugin.stage(request).await;
            staged.map_err(|error| format!("{of}: {error}"))?;
        }
        // The plugin creates the target itself.
        if let Some(parent) = target.parent().map(Path::to_owned) {
            on_thread(move || create(&parent, 0o711))
                .await
                .map_err(|error| format!("{of}: {}: {error}", target.display()))?;
        }
        let request = NodePublishVolumeRequest {
            volume_id: mount.external_id.clone(),
            publish_context: mount.publish_context.clone().into_iter().collect(),
            staging_target_path: staging
                .map(|staging| service.paths.seen(&staging))
                .unwrap_or_default(),
            target_path: service.paths.seen(&target),
            volume_capability: Some(mount.usage.to_message()),
            readonly: mount.read_only,
            secrets: mount.secrets.clone().into_iter().collect(),
            volume_context: mount.context.clone().into_iter().collect(),
        };
        let published = service.plugin.publish(request).await;
        published.map_err(|error| format!("{of}: {error}"))?;
        let volume = Volume {
            is_published: true,
            ..volume
        };
        self.put(alloc_id, &mount.name, volume).await?;
        info!(%alloc_id, volume_id = mount.volume_id, "volume mounted");
        Ok(())
    }

    /// Unpublishes an allocation's volumes, and unstages those that no other allocation uses. What
    /// fails is kept for the next call.
    ///
    /// # Errors
    /// A message for the user, of the first volume that failed.
    pub async fn unmount_all(&self, alloc_id: AllocId) -> Result<(), String> {
        let record = self.lock().get(&alloc_id).cloned().unwrap_or_default();
        let mut first = Ok(());
        for (name, volume) in record.volumes {
            let changing = self.changing(&volume.key());
            let _changing = changing.lock().await;
            let undone = self
                .unmount(alloc_id, &name, &volume, &record.boot_id)
                .await;
            let undone =
                undone.map_err(|reason| format!("volume {:?}: {reason}", volume.volume_id));
            if first.is_ok() {
                first = undone;
            }
        }
        first
    }

    async fn unmount(
        &self,
        alloc_id: AllocId,
        name: &str,
        volume: &Volume,
        boot_id: &str,
    ) -> Result<(), String> {
        // A mount does not outlive the machine's run: without its plugin, only directories are left.
        let is_gone = boot_id != self.boot_id;
        let service = match self.service(&volume.plugin_id) {
            Ok(service) => Some(service),
            Err(_) if is_gone => None,
            Err(reason) => return Err(reason),
        };
        if let Some(service) = &service {
            let request = NodeUnpublishVolumeRequest {
                volume_id: volume.external_id.clone(),
                target_path: service.paths.seen(&volume.target),
            };
            let unpublished = service.plugin.unpublish(request).await;
            unpublished.map_err(|error| error.to_string())?;
        }
        remove(&volume.target).await?;
        if let Some(staging) = &volume.staging
            && !self.is_staged_for_another(alloc_id, name, staging)
        {
            if let Some(service) = &service {
                let request = NodeUnstageVolumeRequest {
                    volume_id: volume.external_id.clone(),
                    staging_target_path: service.paths.seen(staging),
                };
                let unstaged = service.plugin.unstage(request).await;
                unstaged.map_err(|error| error.to_string())?;
            }
            remove(staging).await?;
        }
        self.forget(alloc_id, name).await?;
        info!(%alloc_id, volume_id = volume.volume_id, "volume unmounted");
        Ok(())
    }

    fn service(&self, plugin_id: &str) -> Result<NodeService, String> {
        let service = self.registry.node_service(plugin_id);
        service.ok_or_else(|| format!("CSI plugin {plugin_id:?} is not healthy on this node"))
    }

    fn is_staged_for_another(&self, alloc_id: AllocId, name: &str, staging: &Path) -> bool {
        let records = self.lock();
        let mut others = records.iter().flat_map(|(id, record)| {
            let volumes = record.volumes.iter();
            volumes.filter(move |(other, _)| (*id, other.as_str()) != (alloc_id, name))
        });
        others.any(|(_, volume)| volume.staging.as_deref() == Some(staging))
    }

    /// Stores a mount before it is made, and after.
    async fn put(&self, alloc_id: AllocId, name: &str, volume: Volume) -> Result<(), String> {
        let record = {
            let mut records = self.lock();
            let record = records.entry(alloc_id).or_default();
            let is_same_boot = record.boot_id == self.boot_id;
            record.boot_id.clone_from(&self.boot_id);
            let old = record.volumes.insert(name.to_owned(), volume.clone());
            // Tasks that run use it meanwhile.
            let stays = old.is_some_and(|old| old.is_published && old.target == volume.target);
            if stays
                && is_same_boot
                && let Some(new) = record.volumes.get_mut(name)
            {
                new.is_published = true;
            }
            record.clone()
        };
        self.write(alloc_id, record).await
    }

    async fn forget(&self, alloc_id: AllocId, name: &str) -> Result<(), String> {
        let record = {
            let records = self.lock();
            let mut record = records.get(&alloc_id).cloned().unwrap_or_default();
            record.volumes.remove(name);
            record
        };
        self.write(alloc_id, record.clone()).await?;
        let mut records = self.lock();
        if record.volumes.is_empty() {
            records.remove(&alloc_id);
        } else {
            records.insert(alloc_id, record);
        }
        Ok(())
    }

    async fn write(&self, alloc_id: AllocId, record: Record) -> Result<(), String> {
        let directory = self.layout.records();
        let written = on_thread(move || record::write(&directory, alloc_id, &record)).await;
        written.map_err(|error| format!("cannot store the progress of mounts: {error}"))
    }

    fn changing(&self, key: &CsiVolumeKey) -> Arc<tokio::sync::Mutex<()>> {
        let mut changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        // Volumes that nothing changes right now need no entry.
        changing.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(changing.entry(key.clone()).or_default())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AllocId, Record>> {
        // Each critical section leaves consistent records.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes what a volume was mounted on, which its plugin may have removed already.
///
/// # Errors
/// The volume is still mounted there, or the directory is not empty: nothing in it is removed, because
/// it could be the volume's data.
async fn remove(path: &Path) -> Result<(), String> {
    let (path, shown) = (path.to_owned(), path.display().to_string());
    let removed = on_thread(move || {
        if is_mounted(&path)? {
            return Err(io::Error::other("the plugin has left it mounted"));
        }
        let removed = match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => fs::remove_dir(&path),
            Ok(_) => fs::remove_file(&path),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
        // Of an allocation or a volume; one that is still in use is not empty.
        if let Some(parent) = path.parent() {
            let _ = fs::remove_dir(parent);
        }
        Ok(())
    });
    removed.await.map_err(|error| format!("{shown}: {error}"))
}

async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = blocking::spawn(work).await;
    done.unwrap_or_else(|error| Err(io::Error::other(error)))
}

#[cfg(test)]
mod tests;
