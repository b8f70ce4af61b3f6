//! Operator RPCs of the fake gateway.

use futures::stream::{self, BoxStream, StreamExt as _};
use proto::v1::operator_server::Operator;
use proto::v1::*;
use tonic::{Request, Response, Status};

use super::fake::{Answer, Fake, meta};

#[tonic::async_trait]
impl Operator for Fake {
    type SaveSnapshotStream = BoxStream<'static, Result<SnapshotChunk, Status>>;

    async fn save_snapshot(
        &self,
        request: Request<SaveSnapshotRequest>,
    ) -> Answer<Self::SaveSnapshotStream> {
        self.seen("SaveSnapshot", &request, None).await?;
        let state = self.state();
        let header = SnapshotChunk {
            min_revision: state.snapshot_min_revision,
            data: Vec::new(),
        };
        let parts: Vec<SnapshotChunk> = state
            .snapshot
            .chunks(10_000)
            .map(|data| SnapshotChunk {
                min_revision: 0,
                data: data.to_vec(),
            })
            .collect();
        let chunks = std::iter::once(header).chain(parts).map(Ok);
        Ok(Response::new(
            stream::iter(chunks.collect::<Vec<_>>()).boxed(),
        ))
    }

    async fn list_processes(
        &self,
        request: Request<ListProcessesRequest>,
    ) -> Answer<ListProcessesResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListProcesses", &request, options.as_ref())
            .await?;
        let processes = self.state().processes.clone();
        Ok(Response::new(ListProcessesResponse {
            meta: Some(meta(100)),
            processes,
        }))
    }

    async fn list_leaders(
        &self,
        request: Request<ListLeadersRequest>,
    ) -> Answer<ListLeadersResponse> {
        let options = request.get_ref().options.as_ref();
        self.seen("ListLeaders", &request, options).await?;
        let leaders = self.state().leaders.clone();
        Ok(Response::new(ListLeadersResponse {
            meta: Some(meta(100)),
            leaders,
        }))
    }

    async fn list_signing_keys(
        &self,
        request: Request<ListSigningKeysRequest>,
    ) -> Answer<ListSigningKeysResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListSigningKeys", &request, options.as_ref())
            .await?;
        let signing_keys = self.state().signing_keys.clone();
        Ok(Response::new(ListSigningKeysResponse {
            meta: Some(meta(100)),
            signing_keys,
            ..ListSigningKeysResponse::default()
        }))
    }

    async fn rotate_signing_key(
        &self,
        request: Request<RotateSigningKeyRequest>,
    ) -> Answer<RotateSigningKeyResponse> {
        self.seen("RotateSigningKey", &request, None).await?;
        let key = SigningKey {
            id: "2b7d90aa-0000-4000-8000-000000000000".to_owned(),
            state: "active".to_owned(),
            algorithm: "ES256".to_owned(),
            created_at_ns: 60_000_000_000,
            active_from_ns: 60_000_000_000,
            published_until_ns: 0,
        };
        let mut state = self.state();
        for key in &mut state.signing_keys {
            key.state = "retired".to_owned();
            key.published_until_ns = 3_600_000_000_000;
        }
        state.signing_keys.push(key.clone());
        Ok(Response::new(RotateSigningKeyResponse {
            index: 101,
            signing_key: Some(key),
        }))
    }

    async fn remove_signing_key(
        &self,
        request: Request<RemoveSigningKeyRequest>,
    ) -> Answer<RemoveSigningKeyResponse> {
        self.seen("RemoveSigningKey", &request, None).await?;
        let prefix = request.into_inner().key_id;
        let mut state = self.state();
        let found = state
            .signing_keys
            .iter()
            .position(|key| key.id.starts_with(&prefix))
            .ok_or_else(|| Status::not_found("no such key"))?;
        if state.signing_keys[found].state == "active" {
            return Err(Status::failed_precondition("the key is active"));
        }
        let key_id = state.signing_keys.remove(found).id;
        Ok(Response::new(RemoveSigningKeyResponse {
            index: 102,
            key_id,
        }))
    }

    async fn collect_garbage(
        &self,
        request: Request<CollectGarbageRequest>,
    ) -> Answer<CollectGarbageResponse> {
        self.seen("CollectGarbage", &request, None).await?;
        Ok(Response::new(self.state().garbage))
    }

    async fn get_etcd_status(
        &self,
        request: Request<GetEtcdStatusRequest>,
    ) -> Answer<GetEtcdStatusResponse> {
        self.seen("GetEtcdStatus", &request, None).await?;
        Ok(Response::new(self.state().etcd.clone()))
    }

    async fn compact_etcd(
        &self,
        request: Request<CompactEtcdRequest>,
    ) -> Answer<CompactEtcdResponse> {
        self.seen("CompactEtcd", &request, None).await?;
        let revision = match request.into_inner().revision {
            0 => self.state().etcd.revision,
            revision => revision,
        };
        Ok(Response::new(CompactEtcdResponse {
            revision,
            already_compacted: false,
        }))
    }

    async fn defragment_etcd(
        &self,
        request: Request<DefragmentEtcdRequest>,
    ) -> Answer<DefragmentEtcdResponse> {
        self.seen("DefragmentEtcd", &request, None).await?;
        let endpoint = request.into_inner().endpoint;
        let mut state = self.state();
        let found = state.etcd.members.iter_mut();
        let mut found = found.filter(|member| member.endpoint == endpoint);
        let member = found
            .next()
            .ok_or_else(|| Status::invalid_argument(endpoint.clone()))?;
        let before = std::mem::replace(&mut member.db_bytes, member.in_use_bytes);
        let after = member.db_bytes;
        state.defragmented.push(endpoint);
        Ok(Response::new(DefragmentEtcdResponse {
            db_bytes_before: before,
            db_bytes_after: after,
        }))
    }

    async fn disarm_etcd(&self, request: Request<DisarmEtcdRequest>) -> Answer<DisarmEtcdResponse> {
        self.seen("DisarmEtcd", &request, None).await?;
        Ok(Response::new(DisarmEtcdResponse { members: 2 }))
    }

    async fn get_version(&self, request: Request<GetVersionRequest>) -> Answer<GetVersionResponse> {
        self.seen("GetVersion", &request, None).await?;
        Ok(Response::new(GetVersionResponse {
            version: "9.8.7".to_owned(),
        }))
    }

    async fn get_scheduler_configuration(
        &self,
        request: Request<GetSchedulerConfigurationRequest>,
    ) -> Answer<GetSchedulerConfigurationResponse> {
        self.seen("GetSchedulerConfiguration", &request, None)
            .await?;
        let config = self.state().scheduler_config.clone();
        Ok(Response::new(GetSchedulerConfigurationResponse {
            meta: Some(meta(100)),
            scheduler_config: Some(config),
        }))
    }

    async fn set_scheduler_configuration(
        &self,
        request: Request<SetSchedulerConfigurationRequest>,
    ) -> Answer<SetSchedulerConfigurationResponse> {
        self.seen("SetSchedulerConfiguration", &request, None)
            .await?;
        let message = request.into_inner();
        let mut state = self.state();
        state.set_config_requests.push(message.clone());
        let mut modify_index = state.scheduler_config.modify_index;
        if let Some(other) = state.other_configs.pop_front() {
            modify_index += 1;
            state.scheduler_config = SchedulerConfiguration {
                modify_index,
                ..other
            };
        }
        if message.check_index.is_some_and(|it| it != modify_index) {
            return Err(Status::aborted("conflicting change"));
        }
        modify_index += 1;
        state.scheduler_config = SchedulerConfiguration {
            modify_index,
            ..message.scheduler_config.unwrap()
        };
        Ok(Response::new(SetSchedulerConfigurationResponse {
            modify_index,
        }))
    }
}
