//! RPCs on directories of nodes and claims of them.

use proto::v1;

use super::transport::Connection;
use crate::error::Error;

impl Connection {
    /// Lists volumes, with the token of the next page.
    pub(crate) async fn volumes(
        &self,
        message: v1::ListVolumesRequest,
    ) -> Result<(Vec<v1::Volume>, String), Error> {
        let doing = "querying volumes";
        let answer: v1::ListVolumesResponse =
            self.call(doing, self.api().volumes().list(message)).await?;
        Ok((answer.volumes, answer.meta.unwrap_or_default().next_token))
    }

    /// Returns a volume and the IDs of the allocations that use it.
    pub(crate) async fn volume(&self, id: &str) -> Result<(v1::Volume, Vec<String>), Error> {
        let message = v1::GetVolumeRequest {
            options: Some(self.options(self.namespace())),
            volume_id: id.to_owned(),
        };
        let doing = "querying volume";
        let answer: v1::GetVolumeResponse =
            self.call(doing, self.api().volumes().get(message)).await?;
        Ok((answer.volume.unwrap_or_default(), answer.alloc_ids))
    }

    /// Registers a volume. Idempotent.
    pub(crate) async fn register_volume(&self, volume: v1::Volume) -> Result<v1::Volume, Error> {
        let message = v1::RegisterVolumeRequest {
            volume: Some(volume),
        };
        let doing = "registering volume";
        let answer: v1::RegisterVolumeResponse = self
            .call(doing, self.api().volumes().register(message))
            .await?;
        Ok(answer.volume.unwrap_or_default())
    }

    /// Deletes a volume; returns its ID. Not idempotent: a retry would not find it.
    pub(crate) async fn delete_volume(&self, id: &str) -> Result<String, Error> {
        let message = v1::DeleteVolumeRequest {
            namespace: self.namespace().to_owned(),
            volume_id: id.to_owned(),
        };
        let doing = "deleting volume";
        let answer: v1::DeleteVolumeResponse = self
            .call(doing, self.api().volumes().delete(message))
            .await?;
        Ok(answer.volume_id)
    }

    /// Lists claims of volumes, with the token of the next page.
    pub(crate) async fn volume_claims(
        &self,
        message: v1::ListVolumeClaimsRequest,
    ) -> Result<(Vec<v1::VolumeClaim>, String), Error> {
        let doing = "querying claims of volumes";
        let answer: v1::ListVolumeClaimsResponse = self
            .call(doing, self.api().volumes().list_claims(message))
            .await?;
        Ok((answer.claims, answer.meta.unwrap_or_default().next_token))
    }

    /// Deletes a claim; returns its ID. Not idempotent: a retry would not find it.
    pub(crate) async fn delete_volume_claim(&self, id: &str) -> Result<String, Error> {
        let message = v1::DeleteVolumeClaimRequest {
            claim_id: id.to_owned(),
        };
        let doing = "deleting claim of a volume";
        let answer: v1::DeleteVolumeClaimResponse = self
            .call(doing, self.api().volumes().delete_claim(message))
            .await?;
        Ok(answer.claim_id)
    }
}
