//! What is asked about deployments.

use proto::v1;
use proto::v1::deployments_client::DeploymentsClient;

use super::{Blocking, Connection, MAX_ANSWER_BYTES};
use crate::error::Error;

fn client(channel: service_kit::TracedChannel) -> DeploymentsClient<service_kit::TracedChannel> {
    DeploymentsClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES)
}

impl Connection {
    /// Lists the deployments whose id begins with `prefix`, which may be empty.
    pub(crate) async fn deployments(
        &self,
        namespace: &str,
        prefix: &str,
        per_page: u32,
    ) -> Result<Vec<v1::Deployment>, Error> {
        let options = v1::QueryOptions {
            prefix: prefix.to_owned(),
            per_page,
            ..self.options(namespace)
        };
        let message = v1::ListDeploymentsRequest {
            options: Some(options),
        };
        let answer: v1::ListDeploymentsResponse = self
            .call(
                "querying deployments",
                message,
                |channel, request| async move { client(channel).list(request).await },
            )
            .await?;
        Ok(answer.deployments)
    }

    /// Returns a deployment once something about it is newer than `blocking.after`, or
    /// `blocking.wait` is over, with the index it was read at.
    pub(crate) async fn deployment(
        &self,
        namespace: &str,
        deployment_id: &str,
        blocking: Blocking,
    ) -> Result<(v1::Deployment, u64), Error> {
        let message = v1::GetDeploymentRequest {
            options: Some(self.blocking_options(namespace, blocking)),
            deployment_id: deployment_id.to_owned(),
        };
        let doing = format!("reading deployment {deployment_id:?}");
        let answer: v1::GetDeploymentResponse = self
            .call_within(
                &doing,
                message,
                blocking.wait,
                |channel, request| async move { client(channel).get(request).await },
            )
            .await?;
        let index = answer.meta.unwrap_or_default().index;
        Ok((answer.deployment.unwrap_or_default(), index))
    }
}
