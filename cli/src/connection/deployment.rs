//! RPCs that read deployments.

use proto::v1;

use super::transport::{Blocking, Connection};
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
        Ok(self.deployments_page(options).await?.0)
    }

    /// Lists deployments, with the token of the next page.
    pub(crate) async fn deployments_page(
        &self,
        options: v1::QueryOptions,
    ) -> Result<(Vec<v1::Deployment>, String), Error> {
        let message = v1::ListDeploymentsRequest {
            options: Some(options),
        };
        let answer: v1::ListDeploymentsResponse = self
            .call(
                "querying deployments",
                self.api().deployments().list(message),
            )
            .await?;
        let next_token = answer.meta.unwrap_or_default().next_token;
        Ok((answer.deployments, next_token))
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
            .call_waiting(
                &doing,
                self.api()
                    .deployments()
                    .get(message)
                    .blocking(blocking.after, blocking.wait),
            )
            .await?;
        let index = answer.meta.unwrap_or_default().index;
        Ok((answer.deployment.unwrap_or_default(), index))
    }
}
