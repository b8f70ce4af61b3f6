//! What is asked about the suite itself.

use proto::v1;
use proto::v1::operator_client::OperatorClient;

use super::Connection;
use crate::error::Error;

impl Connection {
    pub(crate) async fn leaders(&self) -> Result<Vec<v1::Leader>, Error> {
        let message = v1::ListLeadersRequest {
            options: Some(v1::QueryOptions::default()),
        };
        let answer: v1::ListLeadersResponse = self
            .call("querying leaders", message, |channel, request| async move {
                OperatorClient::new(channel).list_leaders(request).await
            })
            .await?;
        Ok(answer.leaders)
    }

    /// Forgets what is over, and waits until that is done.
    pub(crate) async fn collect_garbage(&self) -> Result<v1::CollectGarbageResponse, Error> {
        let message = v1::CollectGarbageRequest {};
        self.call(
            "collecting garbage",
            message,
            |channel, request| async move {
                OperatorClient::new(channel).collect_garbage(request).await
            },
        )
        .await
    }

    pub(crate) async fn gateway_version(&self) -> Result<String, Error> {
        let message = v1::GetVersionRequest {};
        let doing = "querying the gateway's version";
        let answer: v1::GetVersionResponse = self
            .call(doing, message, |channel, request| async move {
                OperatorClient::new(channel).get_version(request).await
            })
            .await?;
        Ok(answer.version)
    }
}
