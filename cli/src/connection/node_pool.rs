//! What is asked about node pools.

use proto::v1;
use proto::v1::node_pools_client::NodePoolsClient;

use super::{Connection, MAX_ANSWER_BYTES};
use crate::error::Error;

fn client(channel: service_kit::TracedChannel) -> NodePoolsClient<service_kit::TracedChannel> {
    NodePoolsClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES)
}

impl Connection {
    /// Lists node pools, and says where the next page begins.
    pub(crate) async fn node_pools(
        &self,
        options: v1::QueryOptions,
    ) -> Result<(Vec<v1::NodePool>, String), Error> {
        let message = v1::ListNodePoolsRequest {
            options: Some(options),
        };
        let doing = "querying node pools";
        let answer: v1::ListNodePoolsResponse = self
            .call(doing, message, |channel, request| async move {
                client(channel).list(request).await
            })
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
            .call(doing, message, |channel, request| async move {
                client(channel).get(request).await
            })
            .await?;
        Ok(answer.node_pool.unwrap_or_default())
    }

    /// Creates or changes a node pool. Asked twice, it changes nothing the second time.
    pub(crate) async fn apply_node_pool(&self, pool: v1::NodePool) -> Result<u64, Error> {
        let message = v1::UpsertNodePoolRequest {
            node_pool: Some(pool),
        };
        let doing = "applying node pool";
        let answer: v1::UpsertNodePoolResponse = self
            .call_until_answered(doing, message, |channel, request| async move {
                client(channel).upsert(request).await
            })
            .await?;
        Ok(answer.modify_index)
    }

    /// Deletes a node pool. Asked once only: a second time it would not be found.
    pub(crate) async fn delete_node_pool(&self, name: &str) -> Result<u64, Error> {
        let message = v1::DeleteNodePoolRequest {
            name: name.to_owned(),
        };
        let doing = "deleting node pool";
        let answer: v1::DeleteNodePoolResponse = self
            .call(doing, message, |channel, request| async move {
                client(channel).delete(request).await
            })
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
            .call(doing, message, |channel, request| async move {
                client(channel).list_nodes(request).await
            })
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
            .call(doing, message, |channel, request| async move {
                client(channel).list_jobs(request).await
            })
            .await?;
        Ok((answer.jobs, answer.meta.unwrap_or_default().next_token))
    }
}
