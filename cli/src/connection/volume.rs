//! What is asked about volumes.

use proto::v1;
use proto::v1::volumes_client::VolumesClient;

use super::{Connection, MAX_ANSWER_BYTES};
use crate::error::Error;

fn client(channel: service_kit::TracedChannel) -> VolumesClient<service_kit::TracedChannel> {
    VolumesClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES)
}

impl Connection {
    /// Lists volumes, and says where the next page begins.
    pub(crate) async fn volumes(
        &self,
        message: v1::ListVolumesRequest,
    ) -> Result<(Vec<v1::Volume>, String), Error> {
        let doing = "querying volumes";
        let answer: v1::ListVolumesResponse = self
            .call(doing, message, |channel, request| async move {
                client(channel).list(request).await
            })
            .await?;
        Ok((answer.volumes, answer.meta.unwrap_or_default().next_token))
    }

    /// Returns a volume, and the allocations that use it.
    pub(crate) async fn volume(&self, id: &str) -> Result<(v1::Volume, Vec<String>), Error> {
        let message = v1::GetVolumeRequest {
            options: Some(self.options(self.namespace())),
            id: id.to_owned(),
        };
        let doing = "querying volume";
        let answer: v1::GetVolumeResponse = self
            .call(doing, message, |channel, request| async move {
                client(channel).get(request).await
            })
            .await?;
        Ok((answer.volume.unwrap_or_default(), answer.alloc_ids))
    }

    /// Registers a volume. Asked twice, it changes nothing the second time.
    pub(crate) async fn register_volume(&self, volume: v1::Volume) -> Result<v1::Volume, Error> {
        let message = v1::RegisterVolumeRequest {
            volume: Some(volume),
        };
        let doing = "registering volume";
        let answer: v1::RegisterVolumeResponse = self
            .call_until_answered(doing, message, |channel, request| async move {
                client(channel).register(request).await
            })
            .await?;
        Ok(answer.volume.unwrap_or_default())
    }

    /// Deletes a volume; returns its id. Asked once only: a second time it would not be found.
    pub(crate) async fn delete_volume(&self, id: &str) -> Result<String, Error> {
        let message = v1::DeleteVolumeRequest {
            namespace: self.namespace().to_owned(),
            id: id.to_owned(),
        };
        let doing = "deleting volume";
        let answer: v1::DeleteVolumeResponse = self
            .call(doing, message, |channel, request| async move {
                client(channel).delete(request).await
            })
            .await?;
        Ok(answer.id)
    }

    /// Lists claims of volumes, and says where the next page begins.
    pub(crate) async fn volume_claims(
        &self,
        message: v1::ListVolumeClaimsRequest,
    ) -> Result<(Vec<v1::VolumeClaim>, String), Error> {
        let doing = "querying claims of volumes";
        let answer: v1::ListVolumeClaimsResponse = self
            .call(doing, message, |channel, request| async move {
                client(channel).list_claims(request).await
            })
            .await?;
        Ok((answer.claims, answer.meta.unwrap_or_default().next_token))
    }

    /// Deletes a claim; returns its id. Asked once only: a second time it would not be found.
    pub(crate) async fn delete_volume_claim(&self, id: &str) -> Result<String, Error> {
        let message = v1::DeleteVolumeClaimRequest { id: id.to_owned() };
        let doing = "deleting claim of a volume";
        let answer: v1::DeleteVolumeClaimResponse = self
            .call(doing, message, |channel, request| async move {
                client(channel).delete_claim(request).await
            })
            .await?;
        Ok(answer.id)
    }
}
