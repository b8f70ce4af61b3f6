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

    pub(crate) async fn scheduler_config(&self) -> Result<v1::SchedulerConfiguration, Error> {
        let message = v1::GetSchedulerConfigurationRequest {
            options: Some(v1::QueryOptions::default()),
        };
        let doing = "querying scheduler configuration";
        let answer: v1::GetSchedulerConfigurationResponse = self
            .call(doing, message, |channel, request| async move {
                OperatorClient::new(channel)
                    .get_scheduler_configuration(request)
                    .await
            })
            .await?;
        Ok(answer.scheduler_config.unwrap_or_default())
    }

    /// Replaces the scheduler configuration if its modify index is `check_index`. Asked twice, it
    /// finds itself in the way.
    pub(crate) async fn set_scheduler_config(
        &self,
        config: &v1::SchedulerConfiguration,
        check_index: u64,
    ) -> Result<u64, Error> {
        let message = v1::SetSchedulerConfigurationRequest {
            scheduler_config: Some(config.clone()),
            check_index: Some(check_index),
        };
        let doing = "setting scheduler configuration";
        let answer: v1::SetSchedulerConfigurationResponse = self
            .call_until_answered(doing, message, |channel, request| async move {
                OperatorClient::new(channel)
                    .set_scheduler_configuration(request)
                    .await
            })
            .await?;
        Ok(answer.modify_index)
    }
}
