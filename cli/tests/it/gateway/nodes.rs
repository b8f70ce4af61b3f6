//! Node RPCs of the fake gateway.

use proto::v1::nodes_server::Nodes;
use proto::v1::*;
use tonic::{Request, Response, Status};

use super::fake::{Answer, Fake, meta, page};

#[tonic::async_trait]
impl Nodes for Fake {
    async fn update_eligibility(
        &self,
        request: Request<UpdateNodeEligibilityRequest>,
    ) -> Answer<UpdateNodeEligibilityResponse> {
        self.seen("UpdateEligibility", &request, None).await?;
        let message = request.into_inner();
        let mut state = self.state();
        let mut nodes = state.nodes.iter_mut();
        let found = nodes.find(|node| node.id == message.node_id);
        let node = found.ok_or_else(|| Status::not_found("no such node"))?;
        node.eligibility = message.eligibility;
        Ok(Response::new(UpdateNodeEligibilityResponse::default()))
    }

    /// Stores the drain without executing it.
    async fn update_drain(
        &self,
        request: Request<UpdateNodeDrainRequest>,
    ) -> Answer<UpdateNodeDrainResponse> {
        self.seen("UpdateDrain", &request, None).await?;
        let message = request.into_inner();
        let mut state = self.state();
        let mut nodes = state.nodes.iter_mut();
        let found = nodes.find(|node| node.id == message.node_id);
        let node = found.ok_or_else(|| Status::not_found("no such node"))?;
        let status = if message.drain_spec.is_some() {
            "draining"
        } else {
            "canceled"
        };
        node.drain = message.drain_spec.map(|spec| DrainStrategy {
            spec: Some(spec),
            ..DrainStrategy::default()
        });
        node.last_drain = Some(LastDrain {
            status: status.to_owned(),
            meta: message.meta,
            ..LastDrain::default()
        });
        let is_eligible = message.mark_eligible;
        node.eligibility = if is_eligible {
            "eligible"
        } else {
            "ineligible"
        }
        .to_owned();
        Ok(Response::new(UpdateNodeDrainResponse::default()))
    }

    async fn get(&self, request: Request<GetNodeRequest>) -> Answer<GetNodeResponse> {
        self.seen("GetNode", &request, None).await?;
        let state = self.state();
        let id = request.into_inner().node_id;
        let node = state.nodes.iter().find(|node| node.id == id).cloned();
        let missing = || Status::not_found("no such node");
        let node = Some(node.ok_or_else(missing)?);
        let meta = Some(meta(100));
        Ok(Response::new(GetNodeResponse { meta, node }))
    }

    async fn list(&self, request: Request<ListNodesRequest>) -> Answer<ListNodesResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListNodes", &request, options.as_ref()).await?;
        let prefix = options
            .as_ref()
            .map(|options| options.prefix.clone())
            .unwrap_or_default();
        let mut nodes = self.state().nodes.clone();
        nodes.retain(|node| node.id.starts_with(&prefix));
        let (nodes, meta) = page(nodes, options.as_ref());
        Ok(Response::new(ListNodesResponse { meta, nodes }))
    }

    async fn list_allocations(
        &self,
        request: Request<ListNodeAllocationsRequest>,
    ) -> Answer<ListAllocationsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListNodeAllocations", &request, options.as_ref())
            .await?;
        let id = request.into_inner().node_id;
        let mut allocations = self.state().allocs.clone();
        allocations.retain(|alloc| alloc.node_id == id);
        Ok(Response::new(ListAllocationsResponse {
            meta: Some(meta(100)),
            allocations,
        }))
    }
}
