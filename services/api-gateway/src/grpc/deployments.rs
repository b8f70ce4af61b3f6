//! `kafila.v1.Deployments`.

use std::sync::Arc;

use listing::find;
use model::{Deployment, DeploymentId, Indexed};
use proto::v1;
use proto::v1::deployments_server::Deployments;
use state::{Snapshot, Table};
use tonic::{Request, Response, Status};

use super::query::{Api, List, Read, open, reply};
use crate::reads::index;

/// Allocations, too: a deployment's counts are derived from them.
pub(super) const TABLES: [Table; 2] = [Table::Deployments, Table::Allocs];

#[tonic::async_trait]
impl Deployments for Api {
    async fn get(
        &self,
        request: Request<v1::GetDeploymentRequest>,
    ) -> Result<Response<v1::GetDeploymentResponse>, Status> {
        let (request, timeout) = open(request);
        let read = Read::new(request.options, timeout);
        let find = |snapshot: &Snapshot| {
            let id = find::deployment(snapshot, &request.deployment_id)?;
            let found = snapshot.deployment(id).expect("found in this snapshot");
            Ok(found.clone())
        };
        let index = |snapshot: &Snapshot, found: &Arc<Indexed<Deployment>>| {
            index::of_deployment(snapshot, found.value.id, found.modify_index)
        };
        let show = |snapshot: &Snapshot, found: &Arc<Indexed<Deployment>>| {
            api_view::deployment(snapshot, found)
        };
        let (deployment, meta) = Api::get(self, &read, &TABLES, find, index, show).await?;
        Ok(Response::new(v1::GetDeploymentResponse {
            meta,
            deployment: Some(deployment),
        }))
    }

    async fn list(
        &self,
        request: Request<v1::ListDeploymentsRequest>,
    ) -> Result<Response<v1::ListDeploymentsResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::new(request.options, timeout)?.by_id()?.reversible();
        let answer = |snapshot: &Snapshot| {
            let deployments = snapshot.deployments().filter(|one| {
                list.has_namespace(&one.value.job.namespace) && list.has_id(one.value.id.0)
            });
            Ok(page_of_deployments(snapshot, &list, deployments))
        };
        let (deployments, meta) = Api::list(self, &list, &TABLES, answer).await?;
        Ok(Response::new(v1::ListDeploymentsResponse {
            meta,
            deployments,
        }))
    }

    async fn promote(
        &self,
        request: Request<v1::PromoteDeploymentRequest>,
    ) -> Result<Response<v1::UpdateDeploymentResponse>, Status> {
        reply(Box::pin(self.promote_deployment(request.into_inner())).await)
    }

    async fn pause(
        &self,
        request: Request<v1::PauseDeploymentRequest>,
    ) -> Result<Response<v1::UpdateDeploymentResponse>, Status> {
        reply(Box::pin(self.pause_deployment(request.into_inner())).await)
    }

    async fn fail(
        &self,
        request: Request<v1::FailDeploymentRequest>,
    ) -> Result<Response<v1::UpdateDeploymentResponse>, Status> {
        reply(Box::pin(self.fail_deployment(request.into_inner())).await)
    }

    async fn set_alloc_health(
        &self,
        request: Request<v1::SetAllocHealthRequest>,
    ) -> Result<Response<v1::UpdateDeploymentResponse>, Status> {
        reply(Box::pin(self.update_alloc_health(request.into_inner())).await)
    }

    async fn unblock(
        &self,
        request: Request<v1::UnblockDeploymentRequest>,
    ) -> Result<Response<v1::UpdateDeploymentResponse>, Status> {
        reply(Box::pin(self.unblock_deployment(request.into_inner())).await)
    }
}

/// Returns a page of deployments, ordered by create index and id.
pub(super) fn page_of_deployments<'s>(
    snapshot: &Snapshot,
    list: &List<(u64, DeploymentId)>,
    deployments: impl Iterator<Item = &'s Arc<Indexed<Deployment>>>,
) -> (Vec<v1::Deployment>, String) {
    let keyed = deployments.map(|one| ((one.create_index, one.value.id), one));
    list.page(keyed, |one| api_view::deployment(snapshot, one))
}
