//! What is asked about nodes.

use proto::v1;
use proto::v1::nodes_client::NodesClient;

use super::{Connection, MAX_ANSWER_BYTES};
use crate::error::Error;

fn client(channel: service_kit::TracedChannel) -> NodesClient<service_kit::TracedChannel> {
    NodesClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES)
}

impl Connection {
    /// Lists nodes, and says where the next page begins.
    pub(crate) async fn nodes(
        &self,
        options: v1::QueryOptions,
    ) -> Result<(Vec<v1::Node>, String), Error> {
        let message = v1::ListNodesRequest {
            options: Some(options),
        };
        let answer: v1::ListNodesResponse = self
            .call("querying nodes", message, |channel, request| async move {
                client(channel).list(request).await
            })
            .await?;
        let next_token = answer.meta.unwrap_or_default().next_token;
        Ok((answer.nodes, next_token))
    }

    pub(crate) async fn node_allocations(
        &self,
        node_id: &str,
    ) -> Result<Vec<v1::Allocation>, Error> {
        let message = v1::ListNodeAllocationsRequest {
            options: Some(self.options("*")),
            node_id: node_id.to_owned(),
        };
        let doing = format!("querying allocations of node {node_id:?}");
        let answer: v1::ListAllocationsResponse = self
            .call(&doing, message, |channel, request| async move {
                client(channel).list_allocations(request).await
            })
            .await?;
        Ok(answer.allocations)
    }

    /// Asked twice, it changes nothing the second time.
    pub(crate) async fn set_eligibility(
        &self,
        node_id: &str,
        eligibility: &str,
    ) -> Result<(), Error> {
        let message = v1::UpdateNodeEligibilityRequest {
            node_id: node_id.to_owned(),
            eligibility: eligibility.to_owned(),
        };
        let doing = "updating scheduling eligibility";
        let _: v1::UpdateNodeEligibilityResponse = self
            .call_until_answered(doing, message, |channel, request| async move {
                client(channel).update_eligibility(request).await
            })
            .await?;
        Ok(())
    }
}
