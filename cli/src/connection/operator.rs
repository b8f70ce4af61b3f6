//! RPCs on the cluster itself.

use std::time::Duration;

use kafila_client::Opened;
use proto::v1;

use super::transport::Connection;
use crate::error::Error;

/// The time for a defragmentation, beyond the timeout of requests: a member of etcd rewrites some
/// 100 MB a second.
const DEFRAGMENT_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// The time for etcd's answer to a check of health: the gateway waits 3 s for the status of a member.
const ETCD_TIMEOUT: Duration = Duration::from_secs(5);
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
                self.api().operator().list_leaders(message),
            )
            .await?;
        Ok(answer.leaders)
    }

    /// Lists the running processes of all services.
    pub(crate) async fn processes(&self) -> Result<Vec<v1::Process>, Error> {
        let message = v1::ListProcessesRequest {
            options: Some(self.options("")),
        };
        let call = self.api().operator().list_processes(message);
        let answer: v1::ListProcessesResponse = self.call("querying processes", call).await?;
        Ok(answer.processes)
    }

    /// Returns whether the service or node at the address is ready.
    pub(crate) async fn is_ready(&self) -> Result<bool, Error> {
        self.call("checking health", self.api().is_ready()).await
    }

    /// Runs garbage collection and waits for its end.
    pub(crate) async fn collect_garbage(&self) -> Result<v1::CollectGarbageResponse, Error> {
        let message = v1::CollectGarbageRequest {};
        self.call(
            "collecting garbage",
            self.api().operator().collect_garbage(message),
        )
        .await
    }

    /// Starts a snapshot of etcd; the timeout applies to the start.
    pub(crate) async fn save_snapshot(&self) -> Result<Opened<v1::SnapshotChunk>, Error> {
        let message = v1::SaveSnapshotRequest {};
        self.call(SAVING, self.api().operator().save_snapshot(message))
            .await
    }

    /// Returns the next part of a snapshot; `None` at the end.
    pub(crate) async fn next_snapshot_chunk(
        &self,
        stream: &mut Opened<v1::SnapshotChunk>,
    ) -> Result<Option<v1::SnapshotChunk>, Error> {
        self.call_waiting(SAVING, stream.next()).await
    }

    /// Lists the keys that sign identity tokens, with the number of variables of each sealing key.
    pub(crate) async fn signing_keys(&self) -> Result<v1::ListSigningKeysResponse, Error> {
        let message = v1::ListSigningKeysRequest {
            options: Some(self.options("")),
        };
        let call = self.api().operator().list_signing_keys(message);
        self.call("querying signing keys", call).await
    }

    /// Makes a signing key; returns it.
    pub(crate) async fn rotate_signing_key(&self) -> Result<v1::SigningKey, Error> {
        let message = v1::RotateSigningKeyRequest {};
        let call = self.api().operator().rotate_signing_key(message);
        let answer: v1::RotateSigningKeyResponse =
            self.call("rotating the signing keys", call).await?;
        Ok(answer.signing_key.unwrap_or_default())
    }

    /// Removes a signing key; returns its id.
    pub(crate) async fn remove_signing_key(&self, key_id: &str) -> Result<String, Error> {
        let message = v1::RemoveSigningKeyRequest {
            key_id: key_id.to_owned(),
        };
        let call = self.api().operator().remove_signing_key(message);
        let answer: v1::RemoveSigningKeyResponse =
            self.call("removing a signing key", call).await?;
        Ok(answer.key_id)
    }

    pub(crate) async fn gateway_version(&self) -> Result<String, Error> {
        let message = v1::GetVersionRequest {};
        let doing = "querying the gateway's version";
        let answer: v1::GetVersionResponse = self
            .call(doing, self.api().operator().get_version(message))
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
                self.api().operator().get_scheduler_configuration(message),
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
            .call(
                doing,
                self.api()
                    .operator()
                    .set_scheduler_configuration(message)
                    .repeatable(),
            )
            .await?;
        Ok(answer.modify_index)
    }

    /// Returns the status of etcd's members.
    pub(crate) async fn etcd_status(&self) -> Result<v1::GetEtcdStatusResponse, Error> {
        let message = v1::GetEtcdStatusRequest {};
        let doing = "querying the status of etcd";
        self.call(doing, self.api().operator().get_etcd_status(message))
            .await
    }

    /// Tells whether etcd answers reads of the gateway; `None`: the process at the address is no gateway,
    /// or does not answer this caller.
    pub(crate) async fn etcd_answers(&self) -> Option<bool> {
        let message = v1::GetEtcdStatusRequest {};
        let call = self.api().operator().get_etcd_status(message);
        let call = call.timeout(self.timeout().min(ETCD_TIMEOUT));
        match self.call_waiting("querying the status of etcd", call).await {
            Ok(status) => Some(status.revision > 0),
            Err(Error::Timeout { .. }) => Some(false),
            Err(_) => None,
        }
    }

    /// Drops the history before `revision`; 0: the newest.
    pub(crate) async fn compact_etcd(
        &self,
        revision: u64,
    ) -> Result<v1::CompactEtcdResponse, Error> {
        let message = v1::CompactEtcdRequest { revision };
        self.call(
            "compacting etcd",
            self.api().operator().compact_etcd(message),
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
        let call = self.api().operator().defragment_etcd(message);
        let call = call.timeout(self.timeout() + DEFRAGMENT_TIMEOUT);
        self.call_waiting("defragmenting a member of etcd", call)
            .await
    }

    /// Disarms the alarm NOSPACE, and returns the number of members that had it.
    pub(crate) async fn disarm_etcd(&self) -> Result<u64, Error> {
        let message = v1::DisarmEtcdRequest {};
        let answer: v1::DisarmEtcdResponse = self
            .call(
                "disarming etcd's alarm",
                self.api().operator().disarm_etcd(message),
            )
            .await?;
        Ok(answer.members)
    }
}
