//! Maintenance of etcd: status of each member, compaction, defragmentation, the alarm NOSPACE.
//!
//! A status or a defragmentation is of one member, so each has a connection of its own; the balanced
//! connection of the [`Client`] would reach any. None of these requests writes an object, and each
//! may be repeated: they need no fence and no compare.

use std::time::Duration;

use etcd_client::{AlarmAction, AlarmOptions, AlarmType, CompactionOptions};
use futures::future::join_all;
use model::etcd::{EtcdMember, Quota};
use tokio::time::timeout;

use crate::client::Client;
use crate::error::Error;
use crate::member::Member;
use crate::revision;

/// The time limit of a member's status: longer than slow links need, shorter than the interval of
/// requests.
const STATUS_TIMEOUT: Duration = Duration::from_secs(3);
/// In the version of an embedded etcd, which has no quota.
const EMBEDDED: &str = "embedded";

/// The result of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compacted {
    Now,
    /// By another process, or by etcd's own auto-compaction.
    Before,
}

impl Client {
    /// Returns the status of every member, in the order of the endpoints: those that do not answer
    /// have an error.
    pub async fn members(&self) -> Vec<(String, Result<EtcdMember, Error>)> {
        let asked = self.maintenance.iter().map(async |member| {
            let status = self.member_status(member.clone()).await;
            (member.endpoint.clone(), status)
        });
        let mut statuses = join_all(asked).await;
        if statuses.iter().any(|(_, status)| status.is_ok()) {
            // Alarms are replicated, so any member knows them all.
            let alarmed = self.members_out_of_space().await.unwrap_or_default();
            for (_, status) in &mut statuses {
                if let Ok(member) = status {
                    member.is_out_of_space |= alarmed.contains(&member.member_id);
                }
            }
        }
        statuses
    }

    async fn member_status(&self, member: Member) -> Result<EtcdMember, Error> {
        const DOING: &str = "read the status of a member";
        let Member {
            endpoint,
            mut client,
            quota,
        } = member;
        let status = within(STATUS_TIMEOUT, DOING, &endpoint, client.status()).await?;
        let bytes = |size: i64| u64::try_from(size).unwrap_or(0);
        let member_id = status
            .header()
            .map_or(0, etcd_client::ResponseHeader::member_id);
        Ok(EtcdMember {
            member_id,
            version: status.version().to_owned(),
            is_leader: status.leader() == member_id,
            db_bytes: bytes(status.db_size()),
            in_use_bytes: bytes(status.raft_used_db_size()),
            quota: match status.db_size_quota() {
                _ if status.version().contains(EMBEDDED) => Quota::Unlimited,
                0 => quota.quota().await,
                reported => Quota::Bytes(bytes(reported)),
            },
            is_out_of_space: status
                .errors()
                .iter()
                .any(|error| error.contains("NOSPACE")),
            endpoint,
        })
    }

    /// Returns the ids of the members with the alarm NOSPACE.
    async fn members_out_of_space(&self) -> Result<Vec<u64>, Error> {
        const DOING: &str = "list alarms";
        let mut failure = None;
        for Member {
            endpoint, client, ..
        } in self.maintenance.iter()
        {
            let mut client = client.clone();
            let asked = client.alarm(AlarmAction::Get, AlarmType::None, None);
            match within(STATUS_TIMEOUT, DOING, endpoint, asked).await {
                Ok(answer) => {
                    let alarms = answer.alarms().iter();
                    let full = alarms.filter(|alarm| alarm.alarm() == AlarmType::Nospace);
                    return Ok(full.map(etcd_client::AlarmMember::member_id).collect());
                }
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or(Error::Unknown {
            doing: DOING,
            source: None,
        }))
    }

    /// Drops the history before `revision`. etcd frees the pages later, at its own pace.
    ///
    /// # Errors
    /// etcd cannot be reached, or `revision` is in the future.
    pub async fn compact(&self, revision: u64) -> Result<Compacted, Error> {
        let compacted = self
            .call("compact the history", || {
                let mut kv = self.kv.clone();
                let revision = revision::to_etcd(revision);
                async move { kv.compact(revision, Some(CompactionOptions::new())).await }
            })
            .await;
        match compacted {
            Ok(_) => Ok(Compacted::Now),
            Err(Error::Compacted { .. }) => Ok(Compacted::Before),
            Err(error) => Err(error),
        }
    }

    /// Rewrites the database of one member without its free pages. The member answers nothing
    /// meanwhile, for seconds per GiB.
    ///
    /// # Errors
    /// There is no such endpoint, the member does not answer within `limit`, or etcd's
    /// authentication is on and the user has not the role root.
    pub async fn defragment(&self, endpoint: &str, limit: Duration) -> Result<(), Error> {
        const DOING: &str = "defragment a member";
        let found = self
            .maintenance
            .iter()
            .find(|member| member.endpoint == endpoint);
        let Some(member) = found else {
            return Err(Error::Unavailable {
                doing: DOING,
                endpoints: endpoint.to_owned(),
                source: etcd_client::Error::EndpointsNotManaged.into(),
            });
        };
        let mut client = member.client.clone();
        within(limit, DOING, endpoint, client.defragment())
            .await
            .map(drop)
    }

    /// Disarms the alarm NOSPACE of every member that has it, and returns their number.
    ///
    /// # Errors
    /// etcd cannot be reached.
    pub async fn disarm(&self) -> Result<usize, Error> {
        let full = self.members_out_of_space().await?;
        for member_id in &full {
            let mut options = AlarmOptions::new();
            options.with_member(*member_id);
            self.deactivate(options).await?;
        }
        Ok(full.len())
    }

    async fn deactivate(&self, options: AlarmOptions) -> Result<(), Error> {
        const DOING: &str = "disarm an alarm";
        let mut failure = None;
        for Member {
            endpoint, client, ..
        } in self.maintenance.iter()
        {
            let mut client = client.clone();
            let disarming = client.alarm(
                AlarmAction::Deactivate,
                AlarmType::Nospace,
                Some(options.clone()),
            );
            match within(self.request_timeout, DOING, endpoint, disarming).await {
                Ok(_) => return Ok(()),
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(()), Err)
    }
}

async fn within<T>(
    limit: Duration,
    doing: &'static str,
    endpoint: &str,
    request: impl Future<Output = Result<T, etcd_client::Error>>,
) -> Result<T, Error> {
    match timeout(limit, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(source)) => Err(Error::from_etcd(doing, &[endpoint.to_owned()], source)),
        Err(_) => Err(Error::Unknown {
            doing,
            source: None,
        }),
    }
}
