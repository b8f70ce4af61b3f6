//! RPCs that read deployments.

use proto::v1;
use proto::v1::deployments_client::DeploymentsClient;

use super::transport::{Blocking, Connection, rpc};
use crate::error::Error;

impl Connection {
    /// Lists deployments; `prefix` is an ID prefix and may be empty.
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
                rpc!(DeploymentsClient.list),
            )
            .await?;
        Ok(answer.deployments)
    }

    /// Returns a deployment and the index of the read, once it is newer than `blocking.after` or
    /// `blocking.wait` has passed.
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
            .call_within(&doing, message, blocking.wait, rpc!(DeploymentsClient.get))
            .await?;
        let index = answer.meta.unwrap_or_default().index;
        Ok((answer.deployment.unwrap_or_default(), index))
    }
}
