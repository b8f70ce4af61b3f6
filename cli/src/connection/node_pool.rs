//! RPCs on node pools.

use proto::v1;

use super::transport::Connection;
use crate::error::Error;

impl Connection {
    /// Lists node pools, with the token of the next page.
    pub(crate) async fn node_pools(
        &self,
        options: v1::QueryOptions,
    ) -> Result<(Vec<v1::NodePool>, String), Error> {
        let message = v1::ListNodePoolsRequest {
            options: Some(options),
        };
        let doing = "querying node pools";
        let answer: v1::ListNodePoolsResponse = self
            .call(doing, self.api().node_pools().list(message))
            .await?;
        let next_token = answer.meta.unwrap_or_default().next_token;
        Ok((answer.node_pools, next_token))
    }

    pub(crate) async fn node_pool(&self, name: &str) -> Result<v1::NodePool, Error> {
        let message = v1::GetNodePoolRequest {
            options: Some(self.options("")),
            name: name.to_owned(),
        };
        let doing = "retrieving node pool";
        let answer: v1::GetNodePoolResponse = self
            .call(doing, self.api().node_pools().get(message))
            .await?;
        Ok(answer.node_pool.unwrap_or_default())
    }

    /// Creates or changes a node pool. Idempotent.
    pub(crate) async fn apply_node_pool(&self, pool: v1::NodePool) -> Result<u64, Error> {
        let message = v1::UpsertNodePoolRequest {
            node_pool: Some(pool),
        };
        let doing = "applying node pool";
        let answer: v1::UpsertNodePoolResponse = self
            .call(doing, self.api().node_pools().upsert(message))
            .await?;
        Ok(answer.modify_index)
    }

    /// Deletes a node pool. Not idempotent: a retry would not find it.
    pub(crate) async fn delete_node_pool(&self, name: &str) -> Result<u64, Error> {
        let message = v1::DeleteNodePoolRequest {
            name: name.to_owned(),
        };
        let doing = "deleting node pool";
        let answer: v1::DeleteNodePoolResponse = self
            .call(doing, self.api().node_pools().delete(message))
            .await?;
        Ok(answer.index)
    }

    pub(crate) async fn node_pool_nodes(
        &self,
        name: &str,
        options: v1::QueryOptions,
    ) -> Result<(Vec<v1::Node>, String), Error> {
        let message = v1::ListNodePoolNodesRequest {
            options: Some(options),
            name: name.to_owned(),
        };
        let doing = "querying nodes of the node pool";
        let answer: v1::ListNodesResponse = self
            .call(doing, self.api().node_pools().list_nodes(message))
            .await?;
        Ok((answer.nodes, answer.meta.unwrap_or_default().next_token))
    }

    pub(crate) async fn node_pool_jobs(
        &self,
        name: &str,
        options: v1::QueryOptions,
    ) -> Result<(Vec<v1::JobStub>, String), Error> {
        let message = v1::ListNodePoolJobsRequest {
            options: Some(options),
            name: name.to_owned(),
        };
        let doing = "querying jobs of the node pool";
        let answer: v1::ListJobsResponse = self
            .call(doing, self.api().node_pools().list_jobs(message))
            .await?;
        Ok((answer.jobs, answer.meta.unwrap_or_default().next_token))
    }
}
