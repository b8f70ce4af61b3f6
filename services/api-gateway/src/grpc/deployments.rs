//! `kafila.v1.Deployments`.

use model::DeploymentId;
use proto::v1;
use proto::v1::deployments_server::Deployments;
use state::{Snapshot, Table};
use tonic::{Request, Response, Status};

use super::{Api, open};
use crate::error::Error;
use crate::reads::options::{namespaces, uuid_prefix};
use crate::reads::page::Page;
use crate::reads::{index, prefix, view};

/// Allocations too: a deployment's counts are of them.
const TABLES: [Table; 2] = [Table::Deployments, Table::Allocs];

#[tonic::async_trait]
impl Deployments for Api {
    async fn get(
        &self,
        request: Request<v1::GetDeploymentRequest>,
    ) -> Result<Response<v1::GetDeploymentResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let index = |snapshot: &Snapshot| {
            let id = find(snapshot, &request.deployment_id).ok();
            match id.and_then(|id| snapshot.deployment(id)) {
                Some(found) => index::of_deployment(snapshot, found.value.id, found.modify_index),
                None => index::of_tables(snapshot, &TABLES),
            }
        };
        let answer = |snapshot: &Snapshot| {
            let id = find(snapshot, &request.deployment_id)?;
            let deployment = snapshot
                .deployment(id)
                .expect("found in this very snapshot");
            Ok((view::deployment(snapshot, deployment), String::new()))
        };
        let (deployment, meta) = self.ask(&options, timeout, &TABLES, index, answer).await?;
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
        let options = request.options.unwrap_or_default();
        let namespaces = namespaces(&options);
        let prefix = uuid_prefix(&options).map_err(Error::from)?;
        let page = Page::<(u64, DeploymentId)>::new(options.per_page, &options.next_token)
            .map_err(Error::from)?
            .reversed(options.reverse);
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &TABLES);
        let answer = |snapshot: &Snapshot| {
            let deployments = snapshot.deployments().filter(|deployment| {
                namespaces.contain(&deployment.value.job.namespace)
                    && prefix.is_none_or(|prefix| prefix.matches(deployment.value.id.0))
            });
            let keyed = deployments
                .map(|deployment| ((deployment.create_index, deployment.value.id), deployment));
            let (deployments, token) = page.of(keyed);
            let shown = deployments
                .into_iter()
                .map(|one| view::deployment(snapshot, one));
            Ok((shown.collect(), token))
        };
        let (deployments, meta) = self.ask(&options, timeout, &TABLES, index, answer).await?;
        Ok(Response::new(v1::ListDeploymentsResponse {
            meta,
            deployments,
        }))
    }

    async fn promote(
        &self,
        request: Request<v1::PromoteDeploymentRequest>,
    ) -> Result<Response<v1::UpdateDeploymentResponse>, Status> {
        let response = Box::pin(self.promote_deployment(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn pause(
        &self,
        request: Request<v1::PauseDeploymentRequest>,
    ) -> Result<Response<v1::UpdateDeploymentResponse>, Status> {
        let response = Box::pin(self.pause_deployment(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn fail(
        &self,
        request: Request<v1::FailDeploymentRequest>,
    ) -> Result<Response<v1::UpdateDeploymentResponse>, Status> {
        let response = Box::pin(self.fail_deployment(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn set_alloc_health(
        &self,
        request: Request<v1::SetAllocHealthRequest>,
    ) -> Result<Response<v1::UpdateDeploymentResponse>, Status> {
        let response = Box::pin(self.update_alloc_health(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn unblock(
        &self,
        request: Request<v1::UnblockDeploymentRequest>,
    ) -> Result<Response<v1::UpdateDeploymentResponse>, Status> {
        let response = Box::pin(self.unblock_deployment(request.into_inner())).await?;
        Ok(Response::new(response))
    }
}

fn find(snapshot: &Snapshot, text: &str) -> Result<DeploymentId, prefix::NotFound> {
    let exists = |id| snapshot.deployment(id).is_some();
    let all = snapshot
        .deployments()
        .map(|one| (one.value.id.0, one.value.id));
    prefix::find(
        "deployment_id",
        "deployment",
        text,
        DeploymentId,
        exists,
        all,
    )
}
