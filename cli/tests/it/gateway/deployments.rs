//! Deployment RPCs of the fake gateway.

use proto::v1::deployments_server::Deployments;
use proto::v1::*;
use tonic::{Request, Response, Status};

use super::fake::{Answer, Fake, block, lists_id, meta, page};

#[tonic::async_trait]
impl Deployments for Fake {
    async fn get(&self, request: Request<GetDeploymentRequest>) -> Answer<GetDeploymentResponse> {
        let options = request.get_ref().options.clone();
        self.seen("GetDeployment", &request, options.as_ref())
            .await?;
        let id = request.into_inner().deployment_id;
        let (deployment, index) = {
            let mut state = self.state();
            if let Some(next) = state.next_deployments.pop_front() {
                state
                    .deployments
                    .retain(|deployment| deployment.id != next.id);
                state.deployments.push(next);
            }
            let found = state
                .deployments
                .iter()
                .find(|deployment| deployment.id == id)
                .cloned();
            let Some(found) = found else {
                return Err(Status::not_found(format!("there is no deployment {id}")));
            };
            let index = found.modify_index;
            (found, index)
        };
        block(options.as_ref(), index).await;
        Ok(Response::new(GetDeploymentResponse {
            meta: Some(meta(index)),
            deployment: Some(deployment),
        }))
    }

    async fn list(
        &self,
        request: Request<ListDeploymentsRequest>,
    ) -> Answer<ListDeploymentsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListDeployments", &request, options.as_ref())
            .await?;
        let mut deployments = self.state().deployments.clone();
        deployments.retain(|it| lists_id(options.as_ref(), &it.namespace, &it.id));
        let (deployments, meta) = page(deployments, options.as_ref());
        Ok(Response::new(ListDeploymentsResponse { meta, deployments }))
    }

    async fn promote(
        &self,
        request: Request<PromoteDeploymentRequest>,
    ) -> Answer<UpdateDeploymentResponse> {
        self.seen("Promote", &request, None).await?;
        let mut state = self.state();
        state.promote_requests.push(request.into_inner());
        state.updated_deployment()
    }

    async fn pause(
        &self,
        request: Request<PauseDeploymentRequest>,
    ) -> Answer<UpdateDeploymentResponse> {
        self.seen("Pause", &request, None).await?;
        let state = self.state();
        if request.into_inner().pause {
            return Ok(Response::new(UpdateDeploymentResponse::default()));
        }
        state.updated_deployment()
    }

    async fn fail(
        &self,
        request: Request<FailDeploymentRequest>,
    ) -> Answer<UpdateDeploymentResponse> {
        self.seen("Fail", &request, None).await?;
        self.state().updated_deployment()
    }

    async fn set_alloc_health(
        &self,
        _: Request<SetAllocHealthRequest>,
    ) -> Answer<UpdateDeploymentResponse> {
        Err(Status::unimplemented("no command does that"))
    }

    async fn unblock(
        &self,
        request: Request<UnblockDeploymentRequest>,
    ) -> Answer<UpdateDeploymentResponse> {
        self.seen("Unblock", &request, None).await?;
        Err(Status::failed_precondition("there is one region"))
    }
}
