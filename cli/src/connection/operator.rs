//! RPCs on the cluster itself.

use std::time::Duration;

use proto::v1;
use proto::v1::operator_client::OperatorClient;
use tonic::{Status, Streaming};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::transport::{Connection, rpc};
use crate::error::Error;

/// How long a member of etcd may take, beyond the timeout of requests: it rewrites some 100 MB a
/// second.
const DEFRAGMENT_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// Completes "Error …".
const SAVING: &str = "saving a snapshot";

impl Connection {
    pub(crate) async fn leaders(&self) -> Result<Vec<v1::Leader>, Error> {
        let message = v1::ListLeadersRequest {
            options: Some(self.options("")),
        };
        let answer: v1::ListLeadersResponse = self
            .call(
                "querying leaders",
                message,
                rpc!(OperatorClient.list_leaders),
            )
            .await?;
        Ok(answer.leaders)
    }

    /// Returns whether the service or node at the address is ready.
    pub(crate) async fn is_ready(&self) -> Result<bool, Error> {
        // The empty name asks about the whole process.
        let message = HealthCheckRequest::default();
        let answer: HealthCheckResponse = self
            .call("checking health", message, rpc!(HealthClient.check))
            .await?;
        Ok(answer.status() == ServingStatus::Serving)
    }

    /// Runs garbage collection and waits for its end.
    pub(crate) async fn collect_garbage(&self) -> Result<v1::CollectGarbageResponse, Error> {
        let message = v1::CollectGarbageRequest {};
        self.call(
            "collecting garbage",
            message,
            rpc!(OperatorClient.collect_garbage),
        )
        .await
    }

    /// Starts a snapshot of etcd; the timeout applies to the start.
    pub(crate) async fn save_snapshot(&self) -> Result<Streaming<v1::SnapshotChunk>, Error> {
        let message = v1::SaveSnapshotRequest {};
        let send = rpc!(OperatorClient.save_snapshot);
        self.call(SAVING, message, send).await
    }

    /// Describes the error of a snapshot under way.
    pub(crate) fn snapshot_error(&self, status: Status) -> Error {
        self.error(SAVING, status)
    }

    pub(crate) async fn gateway_version(&self) -> Result<String, Error> {
        let message = v1::GetVersionRequest {};
        let doing = "querying the gateway's version";
        let answer: v1::GetVersionResponse = self
            .call(doing, message, rpc!(OperatorClient.get_version))
            .await?;
        Ok(answer.version)
    }

    pub(crate) async fn scheduler_config(&self) -> Result<v1::SchedulerConfiguration, Error> {
        let message = v1::GetSchedulerConfigurationRequest {
            options: Some(self.options("")),
        };
        let doing = "querying scheduler configuration";
        let answer: v1::GetSchedulerConfigurationResponse = self
            .call(
                doing,
                message,
                rpc!(OperatorClient.get_scheduler_configuration),
            )
            .await?;
        Ok(answer.scheduler_config.unwrap_or_default())
    }

    /// Replaces the scheduler configuration if its modify index is `check_index`. A retry after a
    /// lost answer is refused, because the first attempt has changed the index.
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
            .call_until_answered(
                doing,
                message,
                rpc!(OperatorClient.set_scheduler_configuration),
            )
            .await?;
        Ok(answer.modify_index)
    }

    /// Returns the status of etcd's members.
    pub(crate) async fn etcd_status(&self) -> Result<v1::GetEtcdStatusResponse, Error> {
        let message = v1::GetEtcdStatusRequest {};
        let doing = "querying the status of etcd";
        self.call(doing, message, rpc!(OperatorClient.get_etcd_status))
            .await
    }

    /// Drops the history before `revision`; 0: the newest.
    pub(crate) async fn compact_etcd(
        &self,
        revision: u64,
    ) -> Result<v1::CompactEtcdResponse, Error> {
        let message = v1::CompactEtcdRequest { revision };
        self.call_until_answered(
            "compacting etcd",
            message,
            rpc!(OperatorClient.compact_etcd),
        )
        .await
    }

    /// Rewrites the database of one member, and waits for its end.
    pub(crate) async fn defragment_etcd(
        &self,
        endpoint: &str,
    ) -> Result<v1::DefragmentEtcdResponse, Error> {
        let message = v1::DefragmentEtcdRequest {
            endpoint: endpoint.to_owned(),
        };
        self.call_within(
            "defragmenting a member of etcd",
            message,
            DEFRAGMENT_TIMEOUT,
            rpc!(OperatorClient.defragment_etcd),
        )
        .await
    }

    /// Disarms the alarm NOSPACE, and returns the number of members that had it.
    pub(crate) async fn disarm_etcd(&self) -> Result<u64, Error> {
        let message = v1::DisarmEtcdRequest {};
        let answer: v1::DisarmEtcdResponse = self
            .call_until_answered(
                "disarming etcd's alarm",
                message,
                rpc!(OperatorClient.disarm_etcd),
            )
            .await?;
        Ok(answer.members)
    }
}
