//! RPCs on storage systems' volumes and plugins.

use proto::v1;

use super::transport::Connection;
use crate::error::Error;

impl Connection {
    /// Lists volumes, with the token of the next page.
    pub(crate) async fn csi_volumes(
        &self,
        message: v1::ListCsiVolumesRequest,
    ) -> Result<(Vec<v1::CsiVolume>, String), Error> {
        let doing = "querying CSI volumes";
        let asked = self.api().csi_volumes().list(message);
        let answer: v1::ListCsiVolumesResponse = self.call(doing, asked).await?;
        Ok((answer.volumes, answer.meta.unwrap_or_default().next_token))
    }

    /// Returns a volume with its users and attachments.
    pub(crate) async fn csi_volume(&self, id: &str) -> Result<v1::GetCsiVolumeResponse, Error> {
        let message = v1::GetCsiVolumeRequest {
            options: Some(self.options(self.namespace())),
            volume_id: id.to_owned(),
        };
        let doing = "querying CSI volume";
        self.call(doing, self.api().csi_volumes().get(message))
            .await
    }

    /// Registers a volume. Idempotent.
    pub(crate) async fn register_csi_volume(
        &self,
        volume: v1::CsiVolume,
    ) -> Result<v1::CsiVolume, Error> {
        let message = v1::RegisterCsiVolumeRequest {
            volume: Some(volume),
        };
        let doing = "registering CSI volume";
        let asked = self.api().csi_volumes().register(message);
        let answer: v1::RegisterCsiVolumeResponse = self.call(doing, asked).await?;
        Ok(answer.volume.unwrap_or_default())
    }

    /// Lets the storage system create a volume. Idempotent.
    pub(crate) async fn create_csi_volume(
        &self,
        volume: v1::CsiVolume,
    ) -> Result<v1::CsiVolume, Error> {
        let message = v1::CreateCsiVolumeRequest {
            volume: Some(volume),
        };
        let doing = "creating CSI volume";
        let asked = self.api().csi_volumes().create(message);
        let answer: v1::CreateCsiVolumeResponse = self.call(doing, asked).await?;
        Ok(answer.volume.unwrap_or_default())
    }

    /// Forgets a volume. Not idempotent: a retry would not find it.
    pub(crate) async fn deregister_csi_volume(&self, id: &str, force: bool) -> Result<(), Error> {
        let message = v1::DeregisterCsiVolumeRequest {
            namespace: self.namespace().to_owned(),
            volume_id: id.to_owned(),
            force,
        };
        let doing = "deregistering CSI volume";
        let asked = self.api().csi_volumes().deregister(message);
        let _: v1::DeregisterCsiVolumeResponse = self.call(doing, asked).await?;
        Ok(())
    }

    /// Lets the storage system delete a volume. Not idempotent: a retry would not find it.
    pub(crate) async fn delete_csi_volume(&self, id: &str) -> Result<(), Error> {
        let message = v1::DeleteCsiVolumeRequest {
            namespace: self.namespace().to_owned(),
            volume_id: id.to_owned(),
        };
        let doing = "deleting CSI volume";
        let asked = self.api().csi_volumes().delete(message);
        let _: v1::DeleteCsiVolumeResponse = self.call(doing, asked).await?;
        Ok(())
    }

    /// Detaches a volume from a node. Idempotent.
    pub(crate) async fn detach_csi_volume(&self, id: &str, node: &str) -> Result<(), Error> {
        let message = v1::DetachCsiVolumeRequest {
            namespace: self.namespace().to_owned(),
            volume_id: id.to_owned(),
            node_id: node.to_owned(),
        };
        let doing = "detaching CSI volume";
        let asked = self.api().csi_volumes().detach(message);
        let _: v1::DetachCsiVolumeResponse = self.call(doing, asked).await?;
        Ok(())
    }

    /// Lists the volumes that a storage system has.
    pub(crate) async fn external_csi_volumes(
        &self,
        message: v1::ListExternalCsiVolumesRequest,
    ) -> Result<v1::ListExternalCsiVolumesResponse, Error> {
        let doing = "querying the volumes of a CSI plugin";
        let asked = self.api().csi_volumes().list_external(message);
        self.call(doing, asked).await
    }

    /// Creates a snapshot. Idempotent if it has a name.
    pub(crate) async fn create_csi_snapshot(
        &self,
        message: v1::CreateCsiSnapshotRequest,
    ) -> Result<v1::CsiSnapshot, Error> {
        let doing = "creating snapshot";
        let asked = self.api().csi_volumes().create_snapshot(message);
        let answer: v1::CreateCsiSnapshotResponse = self.call(doing, asked).await?;
        Ok(answer.snapshot.unwrap_or_default())
    }

    /// Deletes a snapshot.
    pub(crate) async fn delete_csi_snapshot(
        &self,
        plugin_id: &str,
        snapshot_id: &str,
    ) -> Result<(), Error> {
        let message = v1::DeleteCsiSnapshotRequest {
            plugin_id: plugin_id.to_owned(),
            snapshot_id: snapshot_id.to_owned(),
        };
        let doing = "deleting snapshot";
        let asked = self.api().csi_volumes().delete_snapshot(message);
        let _: v1::DeleteCsiSnapshotResponse = self.call(doing, asked).await?;
        Ok(())
    }

    /// Lists the snapshots that a storage system has.
    pub(crate) async fn csi_snapshots(
        &self,
        message: v1::ListCsiSnapshotsRequest,
    ) -> Result<v1::ListCsiSnapshotsResponse, Error> {
        let doing = "querying snapshots";
        let asked = self.api().csi_volumes().list_snapshots(message);
        self.call(doing, asked).await
    }

    /// Lists plugins, with the token of the next page.
    pub(crate) async fn csi_plugins(
        &self,
        message: v1::ListCsiPluginsRequest,
    ) -> Result<(Vec<v1::CsiPlugin>, String), Error> {
        let doing = "querying CSI plugins";
        let asked = self.api().csi_volumes().list_plugins(message);
        let answer: v1::ListCsiPluginsResponse = self.call(doing, asked).await?;
        Ok((answer.plugins, answer.meta.unwrap_or_default().next_token))
    }

    /// Returns a plugin.
    pub(crate) async fn csi_plugin(&self, id: &str) -> Result<v1::CsiPlugin, Error> {
        let message = v1::GetCsiPluginRequest {
            options: Some(self.options(self.namespace())),
            plugin_id: id.to_owned(),
        };
        let doing = "querying CSI plugin";
        let asked = self.api().csi_volumes().get_plugin(message);
        let answer: v1::GetCsiPluginResponse = self.call(doing, asked).await?;
        Ok(answer.plugin.unwrap_or_default())
    }
}
