//! Requests of users that a controller plugin of a storage system answers.

use admission::cluster::csi::CsiRefusal;
use admission::cluster::csi::controller::{self, Ability};
use admission::cluster::csi::deregister;
use admission::jobs::alloc_node::AllocNode;
use csi::Method;
use csi::v1 as wire;
use gateway_core::Error;
use model::{CsiVolume, CsiVolumeKey, Namespace};
use node_calls::plugin;
use proto::v1;
use state::Snapshot;
use tonic::Status;
use tracing::warn;

use crate::messages::{create_request, created, external_volume, snapshot_view};
use crate::requests::CsiVolumes;

/// A failed call: the node's or the plugin's own status.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message())]
struct Called(Status);

impl From<Called> for Error {
    fn from(called: Called) -> Self {
        // The codes of plugins say what is wrong with the request; the rest is the storage system's.
        Self::new(called.0.code(), called)
    }
}

impl CsiVolumes {
    /// Lets the storage system create a volume, then registers it.
    ///
    /// # Errors
    /// It exists with other properties, the plugin refuses, or the registration is refused: then the
    /// storage system has a volume that is not registered.
    pub async fn create(&self, wanted: CsiVolume) -> Result<v1::CsiVolume, Error> {
        let core = &self.core;
        let snapshot = core.fresh().await?;
        if let Some(stored) = snapshot.csi_volume(&wanted.key()) {
            // The answer of the first request was lost.
            if controller::is_repeated(&wanted, &stored.value) {
                return Ok(api_view::csi::volume(&snapshot, stored));
            }
            return Err(CsiRefusal::Exists { id: wanted.id }.into());
        }
        let node = controller::find(&snapshot, &wanted.plugin_id, Ability::Create, 0)?;
        let request = create_request(&wanted);
        let plugin_id = wanted.plugin_id.clone();
        let about = (plugin_id.as_str(), Method::CreateVolume);
        let answer: wire::CreateVolumeResponse = self.call(&node, about, &request).await?;
        let volume = created(wanted, answer).ok_or_else(|| {
            let message = format!("CSI plugin {plugin_id:?} has created a volume without an id");
            Error::from(Called(Status::internal(message)))
        })?;
        let registered = self.register(&volume).await;
        if let Err(error) = &registered {
            let (external_id, error) = (&volume.external_id, error.message());
            warn!(
                external_id,
                error, "a volume was created and not registered"
            );
        }
        registered
    }

    /// Lets the storage system delete a volume that nothing uses, then forgets it.
    ///
    /// # Errors
    /// It is in use, or the plugin refuses.
    pub async fn delete(&self, key: &CsiVolumeKey) -> Result<u64, Error> {
        let what = || format!("volume {}", key.id);
        let missing = || CsiRefusal::NoVolume(key.id.to_string());
        let released = |is_marked| async move {
            Ok(match is_marked {
                true => self.release(key).await,
                false => None,
            })
        };
        let decide = |snapshot: &Snapshot, _: Option<&()>, released: &Option<Result<(), Error>>| {
            let released = released.as_ref().map(|released| match released {
                Ok(()) => Ok(()),
                Err(error) => Err(error.with_cause(error.message())),
            });
            let step = deregister::delete(snapshot, key, released)?;
            Ok(((), step.ok_or_else(missing)?))
        };
        let deleted = self.core.delete_with_users(what, released, decide).await;
        deleted.map(|((), index)| index)
    }

    /// Lets the storage system delete a marked volume; `None`: the mark is gone, or the volume has users from
    /// before it.
    async fn release(&self, key: &CsiVolumeKey) -> Option<Result<(), Error>> {
        let snapshot = self.core.replica.snapshot();
        let volume = deregister::releasable(&snapshot, key)?;
        Some(self.release_volume(&snapshot, volume).await)
    }

    async fn release_volume(&self, snapshot: &Snapshot, volume: &CsiVolume) -> Result<(), Error> {
        let plugin_id = &volume.plugin_id;
        let node = controller::find(snapshot, plugin_id, Ability::Create, 0)?;
        let request = wire::DeleteVolumeRequest {
            volume_id: volume.external_id.clone(),
            secrets: Default::default(),
        };
        let about = (plugin_id.as_str(), Method::DeleteVolume);
        let _: wire::DeleteVolumeResponse = self.call(&node, about, &request).await?;
        Ok(())
    }

    /// Lists the volumes of a storage system, registered or not.
    ///
    /// # Errors
    /// No node has the plugin, the node cannot be reached, or the plugin refuses.
    pub async fn list_external(
        &self,
        request: v1::ListExternalCsiVolumesRequest,
    ) -> Result<v1::ListExternalCsiVolumesResponse, Error> {
        let snapshot = self.core.snapshot(true).await?;
        let plugin_id = &request.plugin_id;
        let node = controller::find(&snapshot, plugin_id, Ability::List, 0)?;
        let listing = wire::ListVolumesRequest {
            max_entries: i32::try_from(request.per_page).unwrap_or(i32::MAX),
            starting_token: request.page_token,
        };
        let about = (plugin_id.as_str(), Method::ListVolumes);
        let answer: wire::ListVolumesResponse = self.call(&node, about, &listing).await?;
        let volumes = answer.entries.into_iter().map(external_volume);
        Ok(v1::ListExternalCsiVolumesResponse {
            volumes: volumes.collect(),
            next_token: answer.next_token,
        })
    }

    /// Lets the storage system take a snapshot of a volume.
    ///
    /// # Errors
    /// No node has the plugin, the node cannot be reached, or the plugin refuses.
    pub async fn create_snapshot(
        &self,
        request: v1::CreateCsiSnapshotRequest,
    ) -> Result<v1::CreateCsiSnapshotResponse, Error> {
        let namespace = Namespace::or_default(&request.namespace);
        let key = CsiVolumeKey::new(namespace, request.volume_id.as_str());
        let snapshot = self.core.fresh().await?;
        let stored = snapshot.csi_volume(&key);
        let stored = stored.ok_or_else(|| CsiRefusal::NoVolume(request.volume_id.clone()))?;
        let plugin_id = &stored.value.plugin_id;
        let node = controller::find(&snapshot, plugin_id, Ability::Snapshot, 0)?;
        let name = match request.name.as_str() {
            // The specification needs one, by which a repetition finds the first snapshot.
            "" => format!("{}-{}", key.id, self.core.now().as_secs()),
            name => name.to_owned(),
        };
        let asked = wire::CreateSnapshotRequest {
            source_volume_id: stored.value.external_id.clone(),
            name,
            secrets: Default::default(),
            parameters: request.parameters,
        };
        let about = (plugin_id.as_str(), Method::CreateSnapshot);
        let answer: wire::CreateSnapshotResponse = self.call(&node, about, &asked).await?;
        Ok(v1::CreateCsiSnapshotResponse {
            snapshot: answer.snapshot.map(snapshot_view),
        })
    }

    /// Lets the storage system delete a snapshot.
    ///
    /// # Errors
    /// No node has the plugin, the node cannot be reached, or the plugin refuses.
    pub async fn delete_snapshot(
        &self,
        request: v1::DeleteCsiSnapshotRequest,
    ) -> Result<v1::DeleteCsiSnapshotResponse, Error> {
        if request.snapshot_id.is_empty() {
            let message = "missing: want the storage system's id of the snapshot";
            return Err(Error::invalid_field("snapshot_id", message));
        }
        let snapshot = self.core.snapshot(true).await?;
        let plugin_id = &request.plugin_id;
        let node = controller::find(&snapshot, plugin_id, Ability::Snapshot, 0)?;
        let asked = wire::DeleteSnapshotRequest {
            snapshot_id: request.snapshot_id,
            secrets: Default::default(),
        };
        let about = (plugin_id.as_str(), Method::DeleteSnapshot);
        let _: wire::DeleteSnapshotResponse = self.call(&node, about, &asked).await?;
        Ok(v1::DeleteCsiSnapshotResponse {})
    }

    /// Lists the snapshots of a storage system.
    ///
    /// # Errors
    /// No node has the plugin, the node cannot be reached, or the plugin refuses.
    pub async fn list_snapshots(
        &self,
        request: v1::ListCsiSnapshotsRequest,
    ) -> Result<v1::ListCsiSnapshotsResponse, Error> {
        let snapshot = self.core.snapshot(true).await?;
        let plugin_id = &request.plugin_id;
        let node = controller::find(&snapshot, plugin_id, Ability::ListSnapshots, 0)?;
        let asked = wire::ListSnapshotsRequest {
            max_entries: i32::try_from(request.per_page).unwrap_or(i32::MAX),
            starting_token: request.page_token,
            ..wire::ListSnapshotsRequest::default()
        };
        let about = (plugin_id.as_str(), Method::ListSnapshots);
        let answer: wire::ListSnapshotsResponse = self.call(&node, about, &asked).await?;
        let snapshots = answer
            .entries
            .into_iter()
            .filter_map(|entry| entry.snapshot);
        Ok(v1::ListCsiSnapshotsResponse {
            snapshots: snapshots.map(snapshot_view).collect(),
            next_token: answer.next_token,
        })
    }

    async fn call<Q: prost::Message, A: prost::Message + Default>(
        &self,
        node: &AllocNode,
        about: (&str, Method),
        request: &Q,
    ) -> Result<A, Error> {
        let called = plugin::call(&self.calls, node, about, request).await;
        called.map_err(|status| Called(status).into())
    }
}
