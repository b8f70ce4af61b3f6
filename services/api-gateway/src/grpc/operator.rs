//! `kafila.v1.Operator`.

use proto::v1;
use proto::v1::operator_server::Operator;
use state::{Snapshot, Table};
use tonic::{Request, Response, Status};

use super::{Api, open};
use crate::maintenance;
use crate::reads::index;

#[tonic::async_trait]
impl Operator for Api {
    async fn list_leaders(
        &self,
        request: Request<v1::ListLeadersRequest>,
    ) -> Result<Response<v1::ListLeadersResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let tables = [Table::Elections];
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let answer = |snapshot: &Snapshot| {
            let leader =
                |(service, leader): (&String, &model::Indexed<model::LeaderInfo>)| v1::Leader {
                    service: service.clone(),
                    address: leader.value.address.clone(),
                    replica: leader.value.replica.clone(),
                    term: leader.create_index,
                };
            Ok((snapshot.leaders().map(leader).collect(), String::new()))
        };
        let (leaders, meta) = self.ask(&options, timeout, &tables, index, answer).await?;
        Ok(Response::new(v1::ListLeadersResponse { meta, leaders }))
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
            overtaken: collected.overtaken,
        }))
    }

    async fn get_version(
        &self,
        _request: Request<v1::GetVersionRequest>,
    ) -> Result<Response<v1::GetVersionResponse>, Status> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Response::new(v1::GetVersionResponse { version }))
    }
}
