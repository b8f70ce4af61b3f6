//! `kafila.v1.Nodes`.

use std::sync::Arc;

use admission::cluster::drain::{self, DrainRequest, DrainTerms};
use admission::cluster::eligibility::{self, EvaluatedChange, NodeChange};
use admission::nodes::node_evals::{EvalInputs, NodeWrites};
use gateway_core::{Error, Step};
use identity::Caller;
use listing::find;
use model::{EvalId, Indexed, Node, NodeId};
use proto::drain::read_deadline;
use proto::v1;
use proto::v1::nodes_server::Nodes;
use service_kit::current_trace_parent;
use state::{Snapshot, Table};
use tonic::{Request, Response, Status};
use tracing::info;

use super::allocations::page_of_allocs;
use super::query::{Api, List, Read, open, reply};

const TABLES: [Table; 1] = [Table::Nodes];

#[tonic::async_trait]
impl Nodes for Api {
    async fn get(
        &self,
        request: Request<v1::GetNodeRequest>,
    ) -> Result<Response<v1::GetNodeResponse>, Status> {
        let (request, timeout) = open(request);
        let read = Read::new(request.options, timeout);
        let find = |snapshot: &Snapshot| {
            let id = find::node(snapshot, &request.node_id)?;
            Ok(snapshot.node(id).expect("found in this snapshot").clone())
        };
        let index = |_: &Snapshot, node: &Arc<Indexed<Node>>| node.modify_index;
        let show = |_: &Snapshot, node: &Arc<Indexed<Node>>| v1::Node::from(&**node);
        let (node, meta) = Api::get(self, &read, &TABLES, find, index, show).await?;
        Ok(Response::new(v1::GetNodeResponse {
            meta,
            node: Some(node),
        }))
    }

    async fn list(
        &self,
        request: Request<v1::ListNodesRequest>,
    ) -> Result<Response<v1::ListNodesResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::<NodeId>::new(request.options, timeout)?.by_id()?;
        let answer = |snapshot: &Snapshot| {
            let nodes = snapshot.nodes().filter(|node| list.has_id(node.value.id.0));
            let keyed = nodes.map(|node| (node.value.id, node));
            Ok(list.page(keyed, |node| (&**node).into()))
        };
        let (nodes, meta) = Api::list(self, &list, &TABLES, answer).await?;
        Ok(Response::new(v1::ListNodesResponse { meta, nodes }))
    }

    async fn list_allocations(
        &self,
        request: Request<v1::ListNodeAllocationsRequest>,
    ) -> Result<Response<v1::ListAllocationsResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::new(request.options, timeout)?;
        let answer = |snapshot: &Snapshot| {
            let id = find::node(snapshot, &request.node_id)?;
            Ok(page_of_allocs(snapshot, &list, snapshot.allocs_by_node(id)))
        };
        let (allocations, meta) = Api::list(self, &list, &[Table::Allocs], answer).await?;
        Ok(Response::new(v1::ListAllocationsResponse {
            meta,
            allocations,
        }))
    }

    async fn update_eligibility(
        &self,
        request: Request<v1::UpdateNodeEligibilityRequest>,
    ) -> Result<Response<v1::UpdateNodeEligibilityResponse>, Status> {
        reply(Box::pin(self.set_eligibility(request.into_inner())).await)
    }

    async fn update_drain(
        &self,
        request: Request<v1::UpdateNodeDrainRequest>,
    ) -> Result<Response<v1::UpdateNodeDrainResponse>, Status> {
        reply(Box::pin(self.set_drain(request.into_inner())).await)
    }

    async fn create_introduction_token(
        &self,
        request: Request<v1::CreateIntroductionTokenRequest>,
    ) -> Result<Response<v1::CreateIntroductionTokenResponse>, Status> {
        reply(Box::pin(self.create_token(request.into_inner())).await)
    }

    async fn list_introduction_tokens(
        &self,
        request: Request<v1::ListIntroductionTokensRequest>,
    ) -> Result<Response<v1::ListIntroductionTokensResponse>, Status> {
        self.list_tokens(request).await
    }

    async fn delete_introduction_token(
        &self,
        request: Request<v1::DeleteIntroductionTokenRequest>,
    ) -> Result<Response<v1::DeleteIntroductionTokenResponse>, Status> {
        reply(Box::pin(self.delete_token(request.into_inner())).await)
    }

    async fn revoke(
        &self,
        request: Request<v1::RevokeNodeRequest>,
    ) -> Result<Response<v1::RevokeNodeResponse>, Status> {
        let caller = Caller::of(request.extensions());
        reply(Box::pin(self.revoke_node(&caller, request.into_inner())).await)
    }

    async fn reinstate(
        &self,
        request: Request<v1::ReinstateNodeRequest>,
    ) -> Result<Response<v1::ReinstateNodeResponse>, Status> {
        let caller = Caller::of(request.extensions());
        reply(Box::pin(self.reinstate_node(&caller, request.into_inner())).await)
    }

    async fn list_revocations(
        &self,
        request: Request<v1::ListRevocationsRequest>,
    ) -> Result<Response<v1::ListRevocationsResponse>, Status> {
        self.list_revoked(request).await
    }

    async fn get_stats(
        &self,
        request: Request<v1::GetNodeStatsRequest>,
    ) -> Result<Response<v1::GetNodeStatsResponse>, Status> {
        Box::pin(self.node_stats(request)).await
    }

    async fn get_meta(
        &self,
        request: Request<v1::GetNodeMetaRequest>,
    ) -> Result<Response<v1::GetNodeMetaResponse>, Status> {
        Box::pin(self.node_meta(request)).await
    }

    async fn apply_meta(
        &self,
        request: Request<v1::ApplyNodeMetaRequest>,
    ) -> Result<Response<v1::ApplyNodeMetaResponse>, Status> {
        Box::pin(self.apply_node_meta(request)).await
    }

    async fn refresh(
        &self,
        request: Request<v1::RefreshNodeRequest>,
    ) -> Result<Response<v1::RefreshNodeResponse>, Status> {
        Box::pin(self.refresh_node(request)).await
    }
}

impl Api {
    async fn set_eligibility(
        &self,
        request: v1::UpdateNodeEligibilityRequest,
    ) -> Result<v1::UpdateNodeEligibilityResponse, Error> {
        let wanted = eligibility::read(&request.eligibility)?;
        let set = |snapshot: &Snapshot, id| Ok(eligibility::set(snapshot, id, wanted)?);
        let changed = self.change_node(&request.node_id, set).await?;
        let (node_id, index) = (changed.node_id, changed.index);
        info!(%node_id, index, eligibility = wanted.as_str(), "node eligibility set");
        Ok(v1::UpdateNodeEligibilityResponse {
            node_modify_index: index,
            eval_create_index: changed.eval_create_index(),
            eval_ids: changed.eval_ids,
        })
    }

    async fn set_drain(
        &self,
        request: v1::UpdateNodeDrainRequest,
    ) -> Result<v1::UpdateNodeDrainResponse, Error> {
        let wanted = drain_request(&request);
        wanted.check()?;
        let now = self.gateway.core.now();
        let set = |snapshot: &Snapshot, id| Ok(drain::set(snapshot, id, &wanted, now));
        let changed = self.change_node(&request.node_id, set).await?;
        let is_on = request.drain_spec.is_some();
        let (node_id, index) = (changed.node_id, changed.index);
        info!(%node_id, index, drain = is_on, "node drain strategy set");
        Ok(v1::UpdateNodeDrainResponse {
            node_modify_index: index,
            eval_create_index: changed.eval_create_index(),
            eval_ids: changed.eval_ids,
        })
    }

    /// Changes a node, and evaluates the jobs that may use it when it becomes eligible.
    async fn change_node(
        &self,
        node_id: &str,
        set: impl Fn(&Snapshot, NodeId) -> Result<Option<NodeChange>, Error> + Send + Sync,
    ) -> Result<Changed, Error> {
        let gateway = &self.gateway;
        let (now, trace_parent) = (gateway.core.now(), current_trace_parent());
        let decide = |snapshot: &Snapshot| {
            let id = find::node(snapshot, node_id)?;
            let change = set(snapshot, id)?.expect("found in this snapshot");
            let inputs = EvalInputs {
                now,
                trace_parent: &trace_parent,
                next_id: &|| gateway.core.next_eval_id(),
            };
            Ok(match change.evaluated(snapshot, &inputs) {
                EvaluatedChange::Unchanged { modify_index } => {
                    Step::IfFresh((id, modify_index, Vec::new()))
                }
                EvaluatedChange::Write(NodeWrites { writes, eval_ids }) => Step::Commit {
                    writes,
                    answer: Box::new(move |revision| (id, revision, eval_ids)),
                },
            })
        };
        let what = || format!("node {node_id}");
        let (node_id, index, eval_ids) = gateway.core.execute(what, decide).await?;
        Ok(Changed {
            node_id,
            index,
            eval_ids: eval_ids.iter().map(EvalId::to_string).collect(),
        })
    }
}

fn drain_request(request: &v1::UpdateNodeDrainRequest) -> DrainRequest {
    DrainRequest {
        drain: request.drain_spec.as_ref().map(|spec| DrainTerms {
            deadline: read_deadline(spec),
            ignore_system_jobs: spec.ignore_system_jobs,
        }),
        mark_eligible: request.mark_eligible,
        meta: request.meta.clone().into_iter().collect(),
    }
}

/// A committed change of a node.
struct Changed {
    node_id: NodeId,
    /// Its modify index.
    index: u64,
    eval_ids: Vec<String>,
}

impl Changed {
    /// 0: no evaluation was created.
    fn eval_create_index(&self) -> u64 {
        if self.eval_ids.is_empty() {
            0
        } else {
            self.index
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_negative_deadline_drains_at_once() {
        let forced = v1::UpdateNodeDrainRequest {
            drain_spec: Some(v1::DrainSpec {
                deadline_ns: i64::MIN,
                ignore_system_jobs: true,
            }),
            ..Default::default()
        };
        let request = drain_request(&forced);
        let expected = DrainTerms {
            deadline: Some(Duration::ZERO),
            ignore_system_jobs: true,
        };
        assert_eq!(request.drain, Some(expected));
        assert_eq!(request.check(), Ok(()));
    }
}
