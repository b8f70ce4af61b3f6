//! `kafila.v1.Nodes`.

use model::{NodeEligibility, NodeId};
use proto::v1;
use proto::v1::nodes_server::Nodes;
use service_kit::current_trace_parent;
use state::{Key, Snapshot, Table};
use tonic::{Request, Response, Status};
use tracing::info;

use super::node_sessions::MAX_NODE_EVALS;
use super::{Api, open};
use crate::error::Error;
use crate::gateway::Step;
use crate::nodes::node_evals::node_evals;
use crate::reads::options::uuid_prefix;
use crate::reads::page::Page;
use crate::reads::{index, prefix, view};
use crate::settings::drain;
use crate::settings::eligibility::{self, Change};
use crate::writes::Write;

const TABLES: [Table; 1] = [Table::Nodes];

#[tonic::async_trait]
impl Nodes for Api {
    async fn get(
        &self,
        request: Request<v1::GetNodeRequest>,
    ) -> Result<Response<v1::GetNodeResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let index = |snapshot: &Snapshot| {
            let node = find(snapshot, &request.node_id)
                .ok()
                .and_then(|id| snapshot.node(id));
            node.map_or_else(
                || index::of_tables(snapshot, &TABLES),
                |node| node.modify_index,
            )
        };
        let answer = |snapshot: &Snapshot| {
            let id = find(snapshot, &request.node_id)?;
            let node = snapshot.node(id).expect("found in this very snapshot");
            Ok((v1::Node::from(&**node), String::new()))
        };
        let (node, meta) = self.ask(&options, timeout, &TABLES, index, answer).await?;
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
        let options = request.options.unwrap_or_default();
        let prefix = uuid_prefix(&options).map_err(Error::from)?;
        let page =
            Page::<NodeId>::new(options.per_page, &options.next_token).map_err(Error::from)?;
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &TABLES);
        let answer = |snapshot: &Snapshot| {
            let nodes = snapshot
                .nodes()
                .filter(|node| prefix.is_none_or(|prefix| prefix.matches(node.value.id.0)));
            let (nodes, token) = page.of(nodes.map(|node| (node.value.id, node)));
            Ok((
                nodes.into_iter().map(|node| (&**node).into()).collect(),
                token,
            ))
        };
        let (nodes, meta) = self.ask(&options, timeout, &TABLES, index, answer).await?;
        Ok(Response::new(v1::ListNodesResponse { meta, nodes }))
    }

    async fn list_allocations(
        &self,
        request: Request<v1::ListNodeAllocationsRequest>,
    ) -> Result<Response<v1::ListAllocationsResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let page = Page::new(options.per_page, &options.next_token).map_err(Error::from)?;
        let tables = [Table::Allocs];
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let answer = |snapshot: &Snapshot| {
            let id = find(snapshot, &request.node_id)?;
            let allocs = snapshot.allocs_by_node(id);
            let (allocs, token) =
                page.of(allocs.map(|view| ((view.create_index, view.alloc.id), view)));
            let allocs = allocs
                .into_iter()
                .map(|alloc| view::allocation(snapshot, alloc));
            Ok((allocs.collect(), token))
        };
        let (allocations, meta) = self.ask(&options, timeout, &tables, index, answer).await?;
        Ok(Response::new(v1::ListAllocationsResponse {
            meta,
            allocations,
        }))
    }

    async fn update_eligibility(
        &self,
        request: Request<v1::UpdateNodeEligibilityRequest>,
    ) -> Result<Response<v1::UpdateNodeEligibilityResponse>, Status> {
        let response = Box::pin(self.set_eligibility(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn update_drain(
        &self,
        request: Request<v1::UpdateNodeDrainRequest>,
    ) -> Result<Response<v1::UpdateNodeDrainResponse>, Status> {
        let response = Box::pin(self.set_drain(request.into_inner())).await?;
        Ok(Response::new(response))
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
        let wanted = drain::read(&request)?;
        let now = self.gateway.now();
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

    /// Changes a node, and has the jobs looked at that may want it when it becomes eligible.
    async fn change_node(
        &self,
        node_id: &str,
        set: impl Fn(&Snapshot, NodeId) -> Result<Option<Change>, Error> + Send + Sync,
    ) -> Result<Changed, Error> {
        let gateway = &self.gateway;
        let (now, trace_parent) = (gateway.now(), current_trace_parent());
        let decide = |snapshot: &Snapshot| {
            let id = find(snapshot, node_id)?;
            let change = set(snapshot, id)?;
            Ok(match change.expect("found in this very snapshot") {
                Change::Unchanged { modify_index } => {
                    Step::IfFresh((id, modify_index, Vec::new(), Vec::new()))
                }
                Change::Write { node, write } => {
                    let mut writes = vec![*write];
                    let mut evals = Vec::new();
                    if node.eligibility == NodeEligibility::Eligible {
                        let next_id = || gateway.next_eval_id();
                        evals = node_evals(snapshot, &node, now, &trace_parent, next_id);
                    }
                    let ids: Vec<String> = evals.iter().filter_map(eval_id).collect();
                    let further = evals.split_off(evals.len().min(MAX_NODE_EVALS));
                    writes.extend(evals);
                    let answer = Box::new(move |revision| (id, revision, ids, further));
                    Step::Commit { writes, answer }
                }
            })
        };
        let what = || format!("node {node_id}");
        let (node_id, index, eval_ids, further) = gateway.carry_out(what, decide).await?;
        self.commit_further(node_id, &further).await?;
        Ok(Changed {
            node_id,
            index,
            eval_ids,
        })
    }
}

/// What came of a change of a node.
struct Changed {
    node_id: NodeId,
    /// Its modify index now.
    index: u64,
    eval_ids: Vec<String>,
}

impl Changed {
    /// 0: none was made.
    fn eval_create_index(&self) -> u64 {
        if self.eval_ids.is_empty() {
            0
        } else {
            self.index
        }
    }
}

fn eval_id(write: &Write) -> Option<String> {
    match write.key() {
        Key::Eval(id) => Some(id.to_string()),
        _ => None,
    }
}

pub(super) fn find(snapshot: &Snapshot, text: &str) -> Result<NodeId, prefix::NotFound> {
    let exists = |id| snapshot.node(id).is_some();
    let all = snapshot
        .nodes()
        .map(|node| (node.value.id.0, node.value.id));
    prefix::find("node_id", "node", text, NodeId, exists, all)
}
