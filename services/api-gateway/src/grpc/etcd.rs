//! `kafila.v1.Operator`: status and maintenance of etcd. The gateway asks etcd itself, because a full etcd
//! elects no leader that could be asked.

use std::time::Duration;

use admission::cluster::etcd as decision;
use gateway_core::Error;
use model::EtcdMember;
use proto::v1;
use service_kit::run::chain;
use store::Compacted;
use tonic::Code;
use tracing::info;

use super::query::Api;

/// The limit of a defragmentation whose caller has no deadline: etcd rewrites some 100 MB a second.
const DEFRAGMENT_TIMEOUT: Duration = Duration::from_secs(10 * 60);

impl Api {
    pub(super) async fn etcd_status(&self) -> Result<v1::GetEtcdStatusResponse, Error> {
        let client = &self.gateway.core.client;
        let quota = self.gateway.config.etcd.quota_bytes;
        let (members, revision) = tokio::join!(client.members(), client.current_revision());
        let members = members.into_iter().map(|(endpoint, status)| match status {
            Ok(member) => view(member, quota),
            Err(error) => v1::EtcdMember {
                endpoint,
                error: chain(&error),
                ..Default::default()
            },
        });
        let refusal = self.gateway.space.check().err();
        Ok(v1::GetEtcdStatusResponse {
            members: members.collect(),
            // The members are listed even if they have no quorum, which a revision needs.
            revision: revision.unwrap_or(0),
            refusal: refusal.map_or_else(String::new, |refusal| refusal.to_string()),
        })
    }

    pub(super) async fn compact_etcd(
        &self,
        request: v1::CompactEtcdRequest,
    ) -> Result<v1::CompactEtcdResponse, Error> {
        let client = &self.gateway.core.client;
        let newest = client.current_revision().await?;
        let revision = decision::compaction(request.revision, newest)?;
        let compacted = client.compact(revision).await?;
        info!(revision, ?compacted, "etcd's history compacted on request");
        Ok(v1::CompactEtcdResponse {
            revision,
            already_compacted: compacted == Compacted::Before,
        })
    }

    pub(super) async fn defragment_etcd(
        &self,
        request: v1::DefragmentEtcdRequest,
        timeout: Option<Duration>,
    ) -> Result<v1::DefragmentEtcdResponse, Error> {
        let client = &self.gateway.core.client;
        let endpoint = request.endpoint;
        decision::check_endpoint(&endpoint, client.endpoints())?;
        let db_bytes_before = self.db_bytes(&endpoint).await?;
        info!(endpoint, "defragmenting a member of etcd on request");
        let limit = timeout.unwrap_or(DEFRAGMENT_TIMEOUT);
        client.defragment(&endpoint, limit).await?;
        Ok(v1::DefragmentEtcdResponse {
            db_bytes_before,
            db_bytes_after: self.db_bytes(&endpoint).await?,
        })
    }

    async fn db_bytes(&self, endpoint: &str) -> Result<u64, Error> {
        let members = self.gateway.core.client.members().await;
        let member = members.into_iter().find(|(found, _)| found == endpoint);
        match member {
            Some((_, status)) => Ok(status?.db_bytes),
            None => Err(Error::new(Code::NotFound, format!("no member {endpoint}"))),
        }
    }

    pub(super) async fn disarm_etcd(&self) -> Result<v1::DisarmEtcdResponse, Error> {
        let members = self.gateway.core.client.disarm().await?;
        info!(members, "etcd's alarm NOSPACE disarmed on request");
        Ok(v1::DisarmEtcdResponse {
            members: members as u64,
        })
    }
}

fn view(member: EtcdMember, configured_quota: u64) -> v1::EtcdMember {
    v1::EtcdMember {
        quota_bytes: member.quota_bytes(configured_quota).unwrap_or(0),
        endpoint: member.endpoint,
        version: member.version,
        is_leader: member.is_leader,
        db_bytes: member.db_bytes,
        in_use_bytes: member.in_use_bytes,
        no_space: member.is_out_of_space,
        error: String::new(),
    }
}
