//! `kafila.v1.NodePools`.

use model::{FieldErrors, JobKey, NodeId, NodePool};
use proto::v1;
use proto::v1::node_pools_server::NodePools;
use state::{Snapshot, Table};
use tokio::time::Instant;
use tonic::{Request, Response, Status};
use tracing::info;

use super::{Api, open};
use crate::error::Error;
use crate::gateway::Step;
use crate::reads::index::{self, JOB_TABLES};
use crate::reads::options::namespaces;
use crate::reads::page::Page;
use crate::reads::view;
use crate::settings::node_pools::{self, Change, Deletion, Refusal};

#[tonic::async_trait]
impl NodePools for Api {
    async fn list(
        &self,
        request: Request<v1::ListNodePoolsRequest>,
    ) -> Result<Response<v1::ListNodePoolsResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let page = Page::<String>::new(options.per_page, &options.next_token);
        let page = page.map_err(Error::from)?;
        let tables = [Table::NodePools];
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let answer = |snapshot: &Snapshot| {
            let built_in = NodePool::built_in();
            let built_in = built_in.iter().map(v1::NodePool::from);
            let stored = snapshot.node_pools().map(|pool| (&**pool).into());
            let pools = built_in
                .chain(stored)
                .filter(|pool| pool.name.starts_with(&options.prefix));
            Ok(page.of(pools.map(|pool| (pool.name.clone(), pool))))
        };
        let (node_pools, meta) = self.ask(&options, timeout, &tables, index, answer).await?;
        Ok(Response::new(v1::ListNodePoolsResponse {
            meta,
            node_pools,
        }))
    }

    async fn get(
        &self,
        request: Request<v1::GetNodePoolRequest>,
    ) -> Result<Response<v1::GetNodePoolResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let tables = [Table::NodePools];
        let index = |snapshot: &Snapshot| {
            let stored = snapshot.node_pool(&request.name);
            stored.map_or_else(
                || index::of_tables(snapshot, &tables),
                |stored| stored.modify_index,
            )
        };
        let answer = |snapshot: &Snapshot| Ok((find(snapshot, &request.name)?, String::new()));
        let (pool, meta) = self.ask(&options, timeout, &tables, index, answer).await?;
        Ok(Response::new(v1::GetNodePoolResponse {
            meta,
            node_pool: Some(pool),
        }))
    }

    async fn upsert(
        &self,
        request: Request<v1::UpsertNodePoolRequest>,
    ) -> Result<Response<v1::UpsertNodePoolResponse>, Status> {
        let request = request.into_inner();
        let modify_index = Box::pin(self.upsert_node_pool(request)).await?;
        Ok(Response::new(v1::UpsertNodePoolResponse { modify_index }))
    }

    async fn delete(
        &self,
        request: Request<v1::DeleteNodePoolRequest>,
    ) -> Result<Response<v1::DeleteNodePoolResponse>, Status> {
        let name = request.into_inner().name;
        let index = Box::pin(self.delete_node_pool(&name)).await?;
        info!(node_pool = name, index, "node pool deleted");
        Ok(Response::new(v1::DeleteNodePoolResponse { index }))
    }

    async fn list_nodes(
        &self,
        request: Request<v1::ListNodePoolNodesRequest>,
    ) -> Result<Response<v1::ListNodesResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let page = Page::<NodeId>::new(options.per_page, &options.next_token);
        let page = page.map_err(Error::from)?;
        let tables = [Table::Nodes, Table::NodePools];
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let name = &request.name;
        let answer = |snapshot: &Snapshot| {
            find(snapshot, name)?;
            let nodes = snapshot
                .nodes()
                .filter(|node| name == NodePool::ALL || node.value.node_pool == *name);
            let (nodes, token) = page.of(nodes.map(|node| (node.value.id, node)));
            let nodes = nodes.into_iter().map(|node| (&**node).into());
            Ok((nodes.collect(), token))
        };
        let (nodes, meta) = self.ask(&options, timeout, &tables, index, answer).await?;
        Ok(Response::new(v1::ListNodesResponse { meta, nodes }))
    }

    async fn list_jobs(
        &self,
        request: Request<v1::ListNodePoolJobsRequest>,
    ) -> Result<Response<v1::ListJobsResponse>, Status> {
        let (request, timeout) = open(request);
        let options = request.options.unwrap_or_default();
        let namespaces = namespaces(&options);
        let page = Page::<JobKey>::new(options.per_page, &options.next_token);
        let page = page.map_err(Error::from)?;
        let tables: Vec<Table> = JOB_TABLES.into_iter().chain([Table::NodePools]).collect();
        let index = |snapshot: &Snapshot| index::of_tables(snapshot, &tables);
        let name = &request.name;
        let answer = |snapshot: &Snapshot| {
            find(snapshot, name)?;
            let jobs = snapshot.jobs().filter(|job| {
                job.value.node_pool == *name && namespaces.contain(&job.value.namespace)
            });
            let (jobs, token) = page.of(jobs.map(|job| (job.value.key(), job)));
            let jobs = jobs.into_iter().map(|job| view::job_stub(snapshot, job));
            Ok((jobs.collect(), token))
        };
        let (jobs, meta) = self.ask(&options, timeout, &tables, index, answer).await?;
        Ok(Response::new(v1::ListJobsResponse { meta, jobs }))
    }
}

/// What one step of a deletion came to.
enum Ended {
    Marked { revision: u64 },
    Deleted { revision: u64 },
    Refused(Refusal),
}

/// How often a pool may be marked and find its mark taken back before it is deleted: others are
/// using it, whatever they look like at any one time.
const MAX_MARKS: usize = 3;

impl Api {
    async fn upsert_node_pool(&self, request: v1::UpsertNodePoolRequest) -> Result<u64, Error> {
        let pool: NodePool = match request.node_pool {
            Some(pool) => pool.try_into()?,
            None => {
                let mut errors = FieldErrors::default();
                errors.push(
                    "node_pool",
                    "missing: want the pool, with its name at least",
                );
                return Err(errors.into());
            }
        };
        let decide = |snapshot: &Snapshot| {
            Ok(match node_pools::upsert(snapshot, &pool)? {
                Change::Unchanged { modify_index } => Step::IfFresh(modify_index),
                Change::Write(write) => Step::Commit {
                    writes: vec![*write],
                    answer: Box::new(|revision| revision),
                },
            })
        };
        let what = || format!("node pool {}", pool.name);
        let index = self.gateway.carry_out(what, decide).await?;
        info!(node_pool = pool.name, index, "node pool applied");
        Ok(index)
    }

    /// Deletes a pool in two steps, as [`node_pools`] says; returns the revision of the last.
    async fn delete_node_pool(&self, name: &str) -> Result<u64, Error> {
        let gateway = &self.gateway;
        let decide = |snapshot: &Snapshot| {
            Ok(match node_pools::delete(snapshot, name)? {
                Deletion::Mark(write) => Step::Commit {
                    writes: vec![write],
                    answer: Box::new(|revision| Ended::Marked { revision }),
                },
                Deletion::Delete(write) => Step::Commit {
                    writes: vec![write],
                    answer: Box::new(|revision| Ended::Deleted { revision }),
                },
                Deletion::TakeBack { write, refusal } => Step::Commit {
                    writes: vec![write],
                    answer: Box::new(|_| Ended::Refused(refusal)),
                },
            })
        };
        let what = || format!("node pool {name}");
        for _ in 0..=MAX_MARKS {
            match gateway.carry_out(what, decide).await? {
                Ended::Deleted { revision } => return Ok(revision),
                Ended::Refused(refusal) => return Err(refusal.into()),
                Ended::Marked { revision } => {
                    let patience = gateway.deadline().duration_since(Instant::now());
                    gateway.replica.wait_for(revision, patience).await?;
                }
            }
        }
        Err(Error::Contended { what: what() })
    }
}

/// Returns a pool, stored or built in.
fn find(snapshot: &Snapshot, name: &str) -> Result<v1::NodePool, Refusal> {
    let built_in = NodePool::built_in();
    if let Some(pool) = built_in.iter().find(|pool| pool.name == name) {
        return Ok(pool.into());
    }
    match snapshot.node_pool(name) {
        Some(stored) => Ok((&**stored).into()),
        None => Err(Refusal::NotFound {
            name: name.to_owned(),
        }),
    }
}
