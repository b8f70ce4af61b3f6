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

    async fn create_introduction_token(
        &self,
        request: Request<CreateIntroductionTokenRequest>,
    ) -> Answer<CreateIntroductionTokenResponse> {
        self.seen("CreateIntroductionToken", &request, None).await?;
        let message = request.into_inner();
        let mut state = self.state();
        let token = IntroductionToken {
            id: format!(
                "7c1e90aa-0000-4000-8000-{:012}",
                state.introduction_tokens.len()
            ),
            created_at_ns: 1,
            expires_at_ns: u64::try_from(message.ttl.unwrap().seconds).unwrap() * 1_000_000_000,
            uses_max: message.uses.unwrap_or(1),
            node_id: message.node_id,
            node_name: message.node_name,
            node_pool: message.node_pool,
            ..IntroductionToken::default()
        };
        state.introduction_tokens.push(token.clone());
        Ok(Response::new(CreateIntroductionTokenResponse {
            token: format!("kafila-node-{}-5ec7e7", token.id),
            introduction_token: Some(token),
        }))
    }

    async fn list_introduction_tokens(
        &self,
        request: Request<ListIntroductionTokensRequest>,
    ) -> Answer<ListIntroductionTokensResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListIntroductionTokens", &request, options.as_ref())
            .await?;
        let tokens = self.state().introduction_tokens.clone();
        let (introduction_tokens, meta) = page(tokens, options.as_ref());
        Ok(Response::new(ListIntroductionTokensResponse {
            meta,
            introduction_tokens,
        }))
    }

    async fn delete_introduction_token(
        &self,
        request: Request<DeleteIntroductionTokenRequest>,
    ) -> Answer<DeleteIntroductionTokenResponse> {
        self.seen("DeleteIntroductionToken", &request, None).await?;
        let prefix = request.into_inner().token_id;
        let mut state = self.state();
        let mut tokens = state.introduction_tokens.iter();
        let found = tokens.position(|token| token.id.starts_with(&prefix));
        let found = found.ok_or_else(|| Status::not_found("no such introduction token"))?;
        let token_id = state.introduction_tokens.remove(found).id;
        Ok(Response::new(DeleteIntroductionTokenResponse {
            index: 101,
            token_id,
        }))
    }

    async fn revoke(&self, request: Request<RevokeNodeRequest>) -> Answer<RevokeNodeResponse> {
        self.seen("Revoke", &request, None).await?;
        let RevokeNodeRequest { node_id, reason } = request.into_inner();
        let mut state = self.state();
        let mut nodes = state.nodes.iter();
        let found = nodes.find(|node| node.id.starts_with(&node_id)).cloned();
        let node = found.ok_or_else(|| Status::not_found("no node"))?;
        let tokens = state.introduction_tokens.first();
        let usable_token_id = tokens.map_or_else(String::new, |token| token.id.clone());
        state.revocations.push(NodeRevocation {
            node_id: node.id.clone(),
            node_name: node.name.clone(),
            reason,
            revoked_at_ns: 60_000_000_000,
            ..NodeRevocation::default()
        });
        Ok(Response::new(RevokeNodeResponse {
            index: 102,
            node_id: node.id,
            node_name: node.name,
            usable_token_id,
        }))
    }

    async fn reinstate(
        &self,
        request: Request<ReinstateNodeRequest>,
    ) -> Answer<ReinstateNodeResponse> {
        self.seen("Reinstate", &request, None).await?;
        let prefix = request.into_inner().node_id;
        let mut state = self.state();
        let mut revoked = state.revocations.iter();
        let found = revoked.position(|it| it.node_id.starts_with(&prefix));
        let found = found.ok_or_else(|| Status::not_found("no revoked node"))?;
        let node_id = state.revocations.remove(found).node_id;
        Ok(Response::new(ReinstateNodeResponse {
            index: 103,
            node_id,
        }))
    }

    async fn list_revocations(
        &self,
        request: Request<ListRevocationsRequest>,
    ) -> Answer<ListRevocationsResponse> {
        let options = request.get_ref().options.clone();
        self.seen("ListRevocations", &request, options.as_ref())
            .await?;
        let revoked = self.state().revocations.clone();
        let (revocations, meta) = page(revoked, options.as_ref());
        Ok(Response::new(ListRevocationsResponse { meta, revocations }))
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

    async fn get_stats(
        &self,
        request: Request<GetNodeStatsRequest>,
    ) -> Answer<GetNodeStatsResponse> {
        self.seen("GetNodeStats", &request, None).await?;
        let usage = NodeUsage {
            uptime_seconds: 3_700,
            memory: Some(NodeMemoryUsage {
                total: 4 << 30,
                available: 3 << 30,
                used: 1 << 30,
                free: 1 << 30,
            }),
            cores: vec![NodeCoreUsage {
                name: "cpu0".to_owned(),
                user_percent: 20.0,
                system_percent: 5.0,
                idle_percent: 75.0,
            }],
            cpu_mhz: 500.0,
            disks: vec![NodeDiskUsage {
                device: "/dev/sda1".to_owned(),
                mount_point: "/data".to_owned(),
                size: 100 << 30,
                used: 40 << 30,
                available: 60 << 30,
                used_percent: 40.0,
                inodes_used_percent: 3.0,
                has_allocations: true,
            }],
            ..NodeUsage::default()
        };
        let usage = Some(usage);
        Ok(Response::new(GetNodeStatsResponse { usage }))
    }

    async fn get_meta(&self, request: Request<GetNodeMetaRequest>) -> Answer<GetNodeMetaResponse> {
        self.seen("GetNodeMeta", &request, None).await?;
        let meta = Some(self.state().node_meta.clone());
        Ok(Response::new(GetNodeMetaResponse { meta }))
    }

    async fn apply_meta(
        &self,
        request: Request<ApplyNodeMetaRequest>,
    ) -> Answer<ApplyNodeMetaResponse> {
        self.seen("ApplyNodeMeta", &request, None).await?;
        let mut state = self.state();
        state.meta_requests.push(request.into_inner());
        let meta = Some(state.node_meta.clone());
        Ok(Response::new(ApplyNodeMetaResponse { meta }))
    }

    async fn refresh(&self, request: Request<RefreshNodeRequest>) -> Answer<RefreshNodeResponse> {
        self.seen("RefreshNode", &request, None).await?;
        let mut state = self.state();
        let changed = std::mem::take(&mut state.node_changes);
        Ok(Response::new(RefreshNodeResponse { changed }))
    }
}
