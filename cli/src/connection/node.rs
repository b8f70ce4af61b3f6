//! RPCs on nodes.

use proto::v1;

use super::transport::{Blocking, Connection};
use crate::error::Error;

impl Connection {
    /// Lists nodes, with the token of the next page.
    pub(crate) async fn nodes(
        &self,
        options: v1::QueryOptions,
    ) -> Result<(Vec<v1::Node>, String), Error> {
        let message = v1::ListNodesRequest {
            options: Some(options),
        };
        let answer: v1::ListNodesResponse = self
            .call("querying nodes", self.api().nodes().list(message))
            .await?;
        let next_token = answer.meta.unwrap_or_default().next_token;
        Ok((answer.nodes, next_token))
    }

    /// Lists every node.
    pub(crate) async fn all_nodes(&self) -> Result<Vec<v1::Node>, Error> {
        let mut all = Vec::new();
        let mut next_token = String::new();
        loop {
            let options = v1::QueryOptions {
                next_token,
                ..self.options("")
            };
            let (nodes, token) = self.nodes(options).await?;
            all.extend(nodes);
            if token.is_empty() {
                return Ok(all);
            }
            next_token = token;
        }
    }

    /// Reads one node by its id.
    pub(crate) async fn node(&self, node_id: &str) -> Result<v1::Node, Error> {
        let message = v1::GetNodeRequest {
            options: Some(self.options("")),
            node_id: node_id.to_owned(),
        };
        let doing = format!("querying node {node_id:?}");
        let answer: v1::GetNodeResponse =
            self.call(&doing, self.api().nodes().get(message)).await?;
        Ok(answer.node.unwrap_or_default())
    }

    pub(crate) async fn node_allocations(
        &self,
        node_id: &str,
    ) -> Result<Vec<v1::Allocation>, Error> {
        let now = Blocking::default();
        Ok(self.node_allocations_after(node_id, now).await?.0)
    }

    /// Lists a node's allocations once one has changed, with the index for the next wait.
    pub(crate) async fn node_allocations_after(
        &self,
        node_id: &str,
        blocking: Blocking,
    ) -> Result<(Vec<v1::Allocation>, u64), Error> {
        let message = v1::ListNodeAllocationsRequest {
            options: Some(self.blocking_options("*", blocking)),
            node_id: node_id.to_owned(),
        };
        let doing = format!("querying allocations of node {node_id:?}");
        let answer: v1::ListAllocationsResponse = self
            .call_waiting(
                &doing,
                self.api()
                    .nodes()
                    .list_allocations(message)
                    .blocking(blocking.after, blocking.wait),
            )
            .await?;
        Ok((answer.allocations, answer.meta.unwrap_or_default().index))
    }

    /// Safe to retry: a duplicate restarts the deadline of the drain.
    pub(crate) async fn set_drain(&self, message: v1::UpdateNodeDrainRequest) -> Result<(), Error> {
        let doing = "updating drain specification";
        let _: v1::UpdateNodeDrainResponse = self
            .call(doing, self.api().nodes().update_drain(message))
            .await?;
        Ok(())
    }

    /// Idempotent.
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
            .call(doing, self.api().nodes().update_eligibility(message))
            .await?;
        Ok(())
    }

    /// Creates an introduction token; returns its text, which is shown once, and the token.
    pub(crate) async fn create_introduction_token(
        &self,
        message: v1::CreateIntroductionTokenRequest,
    ) -> Result<(String, v1::IntroductionToken), Error> {
        let call = self.api().nodes().create_introduction_token(message);
        let answer: v1::CreateIntroductionTokenResponse =
            self.call("creating an introduction token", call).await?;
        Ok((answer.token, answer.introduction_token.unwrap_or_default()))
    }

    /// Lists introduction tokens, with the token of the next page.
    pub(crate) async fn introduction_tokens(
        &self,
        options: v1::QueryOptions,
    ) -> Result<(Vec<v1::IntroductionToken>, String), Error> {
        let message = v1::ListIntroductionTokensRequest {
            options: Some(options),
        };
        let call = self.api().nodes().list_introduction_tokens(message);
        let answer: v1::ListIntroductionTokensResponse =
            self.call("querying introduction tokens", call).await?;
        let next_token = answer.meta.unwrap_or_default().next_token;
        Ok((answer.introduction_tokens, next_token))
    }

    /// Deletes an introduction token; returns its full id.
    pub(crate) async fn delete_introduction_token(&self, id: &str) -> Result<String, Error> {
        let message = v1::DeleteIntroductionTokenRequest {
            token_id: id.to_owned(),
        };
        let call = self.api().nodes().delete_introduction_token(message);
        let answer: v1::DeleteIntroductionTokenResponse =
            self.call("deleting an introduction token", call).await?;
        Ok(answer.token_id)
    }

    /// Revokes a node. Idempotent.
    pub(crate) async fn revoke_node(
        &self,
        node_id: &str,
        reason: &str,
    ) -> Result<v1::RevokeNodeResponse, Error> {
        let message = v1::RevokeNodeRequest {
            node_id: node_id.to_owned(),
            reason: reason.to_owned(),
        };
        self.call("revoking a node", self.api().nodes().revoke(message))
            .await
    }

    /// Ends the revocation of a node; returns its full id.
    pub(crate) async fn reinstate_node(&self, node_id: &str) -> Result<String, Error> {
        let message = v1::ReinstateNodeRequest {
            node_id: node_id.to_owned(),
        };
        let call = self.api().nodes().reinstate(message);
        let answer: v1::ReinstateNodeResponse = self.call("reinstating a node", call).await?;
        Ok(answer.node_id)
    }

    /// Lists revoked nodes, with the token of the next page.
    pub(crate) async fn node_revocations(
        &self,
        options: v1::QueryOptions,
    ) -> Result<(Vec<v1::NodeRevocation>, String), Error> {
        let message = v1::ListRevocationsRequest {
            options: Some(options),
        };
        let call = self.api().nodes().list_revocations(message);
        let answer: v1::ListRevocationsResponse = self.call("querying revoked nodes", call).await?;
        let next_token = answer.meta.unwrap_or_default().next_token;
        Ok((answer.revocations, next_token))
    }

    /// Measures what is in use on a node.
    pub(crate) async fn node_stats(&self, node_id: &str) -> Result<v1::NodeUsage, Error> {
        let message = v1::GetNodeStatsRequest {
            node_id: node_id.to_owned(),
        };
        let doing = format!("measuring node {node_id}");
        let answer: v1::GetNodeStatsResponse = self
            .call(&doing, self.api().nodes().get_stats(message))
            .await?;
        Ok(answer.usage.unwrap_or_default())
    }

    /// Returns the metadata of a node.
    pub(crate) async fn node_meta(&self, node_id: &str) -> Result<v1::NodeMeta, Error> {
        let message = v1::GetNodeMetaRequest {
            node_id: node_id.to_owned(),
        };
        let doing = format!("querying metadata of node {node_id}");
        let answer: v1::GetNodeMetaResponse = self
            .call(&doing, self.api().nodes().get_meta(message))
            .await?;
        Ok(answer.meta.unwrap_or_default())
    }

    /// Changes the dynamic metadata of a node. Idempotent.
    pub(crate) async fn apply_node_meta(
        &self,
        message: v1::ApplyNodeMetaRequest,
    ) -> Result<v1::NodeMeta, Error> {
        let doing = format!("applying metadata of node {}", message.node_id);
        let answer: v1::ApplyNodeMetaResponse = self
            .call(&doing, self.api().nodes().apply_meta(message))
            .await?;
        Ok(answer.meta.unwrap_or_default())
    }

    /// Lets a node look at its machine; returns what has changed. Idempotent.
    pub(crate) async fn refresh_node(&self, node_id: &str) -> Result<Vec<String>, Error> {
        let message = v1::RefreshNodeRequest {
            node_id: node_id.to_owned(),
        };
        let doing = format!("refreshing node {node_id}");
        let answer: v1::RefreshNodeResponse = self
            .call(&doing, self.api().nodes().refresh(message))
            .await?;
        Ok(answer.changed)
    }
}
