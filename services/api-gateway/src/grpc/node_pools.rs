//! `kafila.v1.NodePools`.

use admission::cluster::node_pools::{self, NodePoolRefusal};
use gateway_core::Error;
use listing::built_in;
use model::{JobKey, NodeId, NodePool};
use proto::v1;
use proto::v1::node_pools_server::NodePools;
use state::{Snapshot, Table};
use tonic::{Request, Response, Status};
use tracing::info;

use super::query::{Api, List, Read, open, step};
use crate::reads::index::{self, JOB_TABLES};

const TABLES: [Table; 1] = [Table::NodePools];

#[tonic::async_trait]
impl NodePools for Api {
    async fn list(
        &self,
        request: Request<v1::ListNodePoolsRequest>,
    ) -> Result<Response<v1::ListNodePoolsResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::<String>::new(request.options, timeout)?;
        let answer = |snapshot: &Snapshot| {
            let all = built_in::node_pools(snapshot);
            let found = all.filter(|pool| list.has_name(&pool.value.name));
            let keyed = found.map(|pool| (pool.value.name.clone(), pool));
            Ok(list.page(keyed, |pool| (&*pool).into()))
        };
        let (node_pools, meta) = Api::list(self, &list, &TABLES, answer).await?;
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
        let read = Read::new(request.options, timeout);
        let find = |snapshot: &Snapshot| Ok(find(snapshot, &request.name)?);
        // A built-in one is not stored, and changes with the table.
        let index = |snapshot: &Snapshot, found: &v1::NodePool| match found.modify_index {
            0 => index::of_tables(snapshot, &TABLES),
            index => index,
        };
        let show = |_: &Snapshot, found: &v1::NodePool| found.clone();
        let (pool, meta) = Api::get(self, &read, &TABLES, find, index, show).await?;
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
        let what = || format!("node pool {name}");
        let decide =
            |snapshot: &Snapshot, _: Option<&()>| Ok(((), node_pools::delete(snapshot, &name)?));
        let ((), index) = Box::pin(self.gateway.core.delete_in_two_steps(what, decide)).await?;
        info!(node_pool = name, index, "node pool deleted");
        Ok(Response::new(v1::DeleteNodePoolResponse { index }))
    }

    async fn list_nodes(
        &self,
        request: Request<v1::ListNodePoolNodesRequest>,
    ) -> Result<Response<v1::ListNodesResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::<NodeId>::new(request.options, timeout)?;
        let name = &request.name;
        let answer = |snapshot: &Snapshot| {
            find(snapshot, name)?;
            let nodes = snapshot.nodes().filter(|node| node.value.is_in_pool(name));
            let keyed = nodes.map(|node| (node.value.id, node));
            Ok(list.page(keyed, |node| (&**node).into()))
        };
        let tables = [Table::Nodes, Table::NodePools];
        let (nodes, meta) = Api::list(self, &list, &tables, answer).await?;
        Ok(Response::new(v1::ListNodesResponse { meta, nodes }))
    }

    async fn list_jobs(
        &self,
        request: Request<v1::ListNodePoolJobsRequest>,
    ) -> Result<Response<v1::ListJobsResponse>, Status> {
        let (request, timeout) = open(request);
        let list = List::<JobKey>::new(request.options, timeout)?;
        let name = &request.name;
        let answer = |snapshot: &Snapshot| {
            find(snapshot, name)?;
            let jobs = snapshot.jobs().filter(|job| {
                job.value.node_pool == *name && list.has_namespace(&job.value.namespace)
            });
            let keyed = jobs.map(|job| (job.value.key(), job));
            Ok(list.page(keyed, |job| api_view::job_stub(snapshot, job)))
        };
        let tables: Vec<Table> = JOB_TABLES.into_iter().chain(TABLES).collect();
        let (jobs, meta) = Api::list(self, &list, &tables, answer).await?;
        Ok(Response::new(v1::ListJobsResponse { meta, jobs }))
    }
}

impl Api {
    async fn upsert_node_pool(&self, request: v1::UpsertNodePoolRequest) -> Result<u64, Error> {
        let pool: NodePool = match request.node_pool {
            Some(pool) => pool.try_into()?,
            None => {
                let message = "missing: want the pool, with its name at least";
                return Err(Error::invalid_field("node_pool", message));
            }
        };
        let decide = |snapshot: &Snapshot| Ok(step(node_pools::upsert(snapshot, &pool)?));
        let what = || format!("node pool {}", pool.name);
        let index = self.gateway.core.execute(what, decide).await?;
        info!(node_pool = pool.name, index, "node pool applied");
        Ok(index)
    }
}

/// Returns a pool, stored or built in.
fn find(snapshot: &Snapshot, name: &str) -> Result<v1::NodePool, NodePoolRefusal> {
    let found = built_in::node_pool(snapshot, name);
    let found = found.ok_or_else(|| NodePoolRefusal::NotFound {
        name: name.to_owned(),
    })?;
    Ok((&*found).into())
}
