//! `kafila.v1.Operator`.

use admission::cluster::scheduler_config;
use gateway_core::Error;
use model::{Indexed, LeaderInfo, SchedulerConfiguration};
use proto::v1;
use proto::v1::operator_server::Operator;
use state::{Snapshot, Table};
use tonic::{Request, Response, Status};
use tracing::info;

use super::query::{Api, Parts, Read, open, reply, step};
use crate::reads::index;
use crate::{backup, maintenance};

#[tonic::async_trait]
impl Operator for Api {
    type SaveSnapshotStream = Parts<v1::SnapshotChunk>;

    async fn save_snapshot(
        &self,
        _request: Request<v1::SaveSnapshotRequest>,
    ) -> Result<Response<Self::SaveSnapshotStream>, Status> {
        let chunks = Box::pin(backup::save(&self.gateway)).await?;
        Ok(Response::new(Box::pin(chunks)))
    }

    async fn list_leaders(
        &self,
        request: Request<v1::ListLeadersRequest>,
    ) -> Result<Response<v1::ListLeadersResponse>, Status> {
        let (request, timeout) = open(request);
        let read = Read::new(request.options, timeout);
        let tables = [Table::Elections];
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let answer = |snapshot: &Snapshot| {
            let leader = |(service, leader): (&String, &Indexed<LeaderInfo>)| v1::Leader {
                service: service.clone(),
                address: leader.value.address.clone(),
                replica: leader.value.replica.clone(),
                term: leader.create_index,
            };
            Ok((snapshot.leaders().map(leader).collect(), String::new()))
        };
        let (leaders, meta) = self.query(&read, &tables, index, answer).await?;
        Ok(Response::new(v1::ListLeadersResponse { meta, leaders }))
    }

    async fn list_processes(
        &self,
        request: Request<v1::ListProcessesRequest>,
    ) -> Result<Response<v1::ListProcessesResponse>, Status> {
        let (request, timeout) = open(request);
        let read = Read::new(request.options, timeout);
        let tables = [Table::Processes, Table::Elections];
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let answer = |snapshot: &Snapshot| {
            let processes = snapshot.processes().map(|(key, process)| v1::Process {
                service: key.service.clone(),
                address: key.address.clone(),
                version: process.value.version.clone(),
                is_leader: snapshot.leads(key),
            });
            Ok((processes.collect(), String::new()))
        };
        let (processes, meta) = self.query(&read, &tables, index, answer).await?;
        Ok(Response::new(v1::ListProcessesResponse { meta, processes }))
    }

    async fn collect_garbage(
        &self,
        request: Request<v1::CollectGarbageRequest>,
    ) -> Result<Response<v1::CollectGarbageResponse>, Status> {
        let (_, timeout) = open(request);
        let collected = maintenance::collect_garbage(&self.gateway, timeout).await?;
        Ok(Response::new(v1::CollectGarbageResponse {
            evaluations: collected.evaluations,
            allocations: collected.allocations,
            jobs: collected.jobs,
            deployments: collected.deployments,
            nodes: collected.nodes,
            conflicts: collected.conflicts,
        }))
    }

    async fn get_etcd_status(
        &self,
        _request: Request<v1::GetEtcdStatusRequest>,
    ) -> Result<Response<v1::GetEtcdStatusResponse>, Status> {
        reply(self.etcd_status().await)
    }

    async fn compact_etcd(
        &self,
        request: Request<v1::CompactEtcdRequest>,
    ) -> Result<Response<v1::CompactEtcdResponse>, Status> {
        reply(Api::compact_etcd(self, request.into_inner()).await)
    }

    async fn defragment_etcd(
        &self,
        request: Request<v1::DefragmentEtcdRequest>,
    ) -> Result<Response<v1::DefragmentEtcdResponse>, Status> {
        let (request, timeout) = open(request);
        reply(Api::defragment_etcd(self, request, timeout).await)
    }

    async fn disarm_etcd(
        &self,
        _request: Request<v1::DisarmEtcdRequest>,
    ) -> Result<Response<v1::DisarmEtcdResponse>, Status> {
        reply(Api::disarm_etcd(self).await)
    }

    async fn list_signing_keys(
        &self,
        request: Request<v1::ListSigningKeysRequest>,
    ) -> Result<Response<v1::ListSigningKeysResponse>, Status> {
        let (request, timeout) = open(request);
        let read = Read::new(request.options, timeout);
        let tables = [Table::Keyring];
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let now = self.gateway.core.now();
        let answer =
            |snapshot: &Snapshot| Ok((api_view::signing_keys(snapshot, now), String::new()));
        let (signing_keys, meta) = self.query(&read, &tables, index, answer).await?;
        let keyring = &self.gateway.keyring;
        Ok(Response::new(v1::ListSigningKeysResponse {
            meta,
            signing_keys,
            variables: keyring.variables().count_by_key().await?,
            sealing_key: keyring.signer.sealing_key().await,
        }))
    }

    async fn rotate_signing_key(
        &self,
        _request: Request<v1::RotateSigningKeyRequest>,
    ) -> Result<Response<v1::RotateSigningKeyResponse>, Status> {
        reply(self.gateway.keyring.rotate_signing_key().await)
    }

    async fn remove_signing_key(
        &self,
        request: Request<v1::RemoveSigningKeyRequest>,
    ) -> Result<Response<v1::RemoveSigningKeyResponse>, Status> {
        let key_id = request.into_inner().key_id;
        reply(self.gateway.keyring.remove_signing_key(&key_id).await)
    }

    async fn get_version(
        &self,
        _request: Request<v1::GetVersionRequest>,
    ) -> Result<Response<v1::GetVersionResponse>, Status> {
        let version = service_kit::version();
        Ok(Response::new(v1::GetVersionResponse { version }))
    }

    async fn get_scheduler_configuration(
        &self,
        request: Request<v1::GetSchedulerConfigurationRequest>,
    ) -> Result<Response<v1::GetSchedulerConfigurationResponse>, Status> {
        let (request, timeout) = open(request);
        let read = Read::new(request.options, timeout);
        let tables = [Table::SchedulerConfig];
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let answer = |snapshot: &Snapshot| {
            let config = match snapshot.stored_scheduler_config() {
                Some(stored) => (&**stored).into(),
                None => (&SchedulerConfiguration::default()).into(),
            };
            Ok((config, String::new()))
        };
        let (config, meta) = self.query(&read, &tables, index, answer).await?;
        Ok(Response::new(v1::GetSchedulerConfigurationResponse {
            meta,
            scheduler_config: Some(config),
        }))
    }

    async fn set_scheduler_configuration(
        &self,
        request: Request<v1::SetSchedulerConfigurationRequest>,
    ) -> Result<Response<v1::SetSchedulerConfigurationResponse>, Status> {
        let request = request.into_inner();
        let modify_index = Box::pin(self.set_scheduler_config(request)).await?;
        Ok(Response::new(v1::SetSchedulerConfigurationResponse {
            modify_index,
        }))
    }
}

impl Api {
    async fn set_scheduler_config(
        &self,
        request: v1::SetSchedulerConfigurationRequest,
    ) -> Result<u64, Error> {
        let config: SchedulerConfiguration = match request.scheduler_config {
            Some(config) => config.try_into()?,
            None => {
                let message = "missing: want the whole configuration";
                return Err(Error::invalid_field("scheduler_config", message));
            }
        };
        let decide = |snapshot: &Snapshot| {
            let change = scheduler_config::set(snapshot, &config, request.check_index)?;
            Ok(step(change))
        };
        let what = || "the scheduler configuration".to_owned();
        let modify_index = self.gateway.core.execute(what, decide).await?;
        info!(index = modify_index, ?config, "scheduler configuration set");
        Ok(modify_index)
    }
}
