//! Node pool RPCs of the fake gateway.

use proto::v1::node_pools_server::NodePools;
use proto::v1::*;
use tonic::{Request, Response, Status};

use super::fake::{Answer, Fake, lists, meta, page};

impl Fake {
    fn pool(&self, name: &str) -> Result<NodePool, Status> {
        let state = self.state();
        let mut found = state.node_pools.iter().filter(|pool| pool.name == name);
        let missing = || Status::not_found(format!("node pool {name:?} not found"));
        found.next().cloned().ok_or_else(missing)
    }
}

#[tonic::async_trait]
impl NodePools for Fake {
    async fn list(&self, request: Request<ListNodePoolsRequest>) -> Answer<ListNodePoolsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListNodePools", &request, options.as_ref())
            .await?;
        let (node_pools, meta) = page(self.state().node_pools.clone(), options.as_ref());
        Ok(Response::new(ListNodePoolsResponse { meta, node_pools }))
    }

    async fn get(&self, request: Request<GetNodePoolRequest>) -> Answer<GetNodePoolResponse> {
        self.seen("GetNodePool", &request, None).await?;
        let pool = self.pool(&request.into_inner().name)?;
        Ok(Response::new(GetNodePoolResponse {
            meta: Some(meta(100)),
            node_pool: Some(pool),
        }))
    }

    async fn upsert(
        &self,
        request: Request<UpsertNodePoolRequest>,
    ) -> Answer<UpsertNodePoolResponse> {
        self.seen("UpsertNodePool", &request, None).await?;
        let pool = request.into_inner().node_pool.unwrap();
        if pool.name == "all" {
            let text = "modifying node pool \"all\" is not allowed: it is built in";
            return Err(Status::invalid_argument(text));
        }
        let mut state = self.state();
        state.node_pools.retain(|it| it.name != pool.name);
        state.node_pools.push(pool);
        Ok(Response::new(UpsertNodePoolResponse { modify_index: 101 }))
    }

    async fn delete(
        &self,
        request: Request<DeleteNodePoolRequest>,
    ) -> Answer<DeleteNodePoolResponse> {
        self.seen("DeleteNodePool", &request, None).await?;
        let name = request.into_inner().name;
        self.pool(&name)?;
        self.state().node_pools.retain(|it| it.name != name);
        Ok(Response::new(DeleteNodePoolResponse { index: 101 }))
    }

    async fn list_nodes(
        &self,
        request: Request<ListNodePoolNodesRequest>,
    ) -> Answer<ListNodesResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListNodePoolNodes", &request, options.as_ref())
            .await?;
        let name = request.into_inner().name;
        self.pool(&name)?;
        let mut nodes = self.state().nodes.clone();
        nodes.retain(|node| node.node_pool == name);
        let (nodes, meta) = page(nodes, options.as_ref());
        Ok(Response::new(ListNodesResponse { meta, nodes }))
    }

    async fn list_jobs(
        &self,
        request: Request<ListNodePoolJobsRequest>,
    ) -> Answer<ListJobsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListNodePoolJobs", &request, options.as_ref())
            .await?;
        let name = request.into_inner().name;
        self.pool(&name)?;
        let (mut jobs, all) = {
            let state = self.state();
            (state.stubs.clone(), state.jobs.clone())
        };
        let is_in = |job: &Job| job.node_pool.as_deref() == Some(&*name);
        jobs.retain(|stub| {
            let mut versions = all.iter().filter(|job| job.id() == stub.id);
            versions.any(is_in) && lists(options.as_ref(), &stub.namespace, "")
        });
        let (jobs, meta) = page(jobs, options.as_ref());
        Ok(Response::new(ListJobsResponse { meta, jobs }))
    }
}
