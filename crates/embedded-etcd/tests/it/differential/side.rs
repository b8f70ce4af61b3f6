//! One of the two stores: sends requests to it and makes its answers comparable.

use std::{cell::Cell, collections::HashMap};

use etcd_client::proto::{
    PbCompare, PbHashKvRequest, PbKeyValue, PbLeaseGrantRequest, PbLeaseKeepAliveRequest,
    PbLeaseKeepAliveResponse, PbLeaseLeasesRequest, PbLeaseRevokeRequest, PbLeaseTimeToLiveRequest,
    PbResponseHeader, PbTargetUnion, PbTxnOpRequest, PbTxnOpResponse, PbTxnRequest, PbTxnResponse,
    PbWatchRequestUnion, PbWatchResponse,
};
use tokio::sync::mpsc;
use tonic::{Status, Streaming, transport::Channel};

use super::step::{Answer, Step};
use crate::support::{
    raw::{Create, RawClient, WatchStream, cancel, progress},
    wait_for,
};

/// Watch streams of a history.
pub(super) const STREAMS: usize = 3;

/// The refusal of a watch of no keys.
const EMPTY_RANGE: &str = "mvcc: watcher range is empty";

pub(super) struct Side {
    pub(super) name: &'static str,
    client: RawClient,
    streams: Vec<WatchStream>,
    keep_alives: (
        mpsc::Sender<PbLeaseKeepAliveRequest>,
        Streaming<PbLeaseKeepAliveResponse>,
    ),
    /// Markers that each stream has been asked to refuse.
    markers: [Cell<usize>; STREAMS],
    /// The test's name of a lease → the server's, where they differ.
    actual_leases: HashMap<i64, i64>,
    /// And back.
    named_leases: HashMap<i64, i64>,
}

impl Side {
    pub(super) async fn new(name: &'static str, channel: Channel) -> Self {
        let mut client = RawClient::new(channel);
        let mut streams = Vec::new();
        for _ in 0..STREAMS {
            streams.push(client.watch(marker()).await);
        }
        let no_lease = 1;
        let mut keep_alives = client.keep_alive(no_lease).await;
        let response = keep_alives.1.message().await.unwrap();
        assert_eq!(response.map(|response| response.ttl), Some(0));
        Self {
            name,
            client,
            streams,
            keep_alives,
            markers: [const { Cell::new(1) }; STREAMS],
            actual_leases: HashMap::new(),
            named_leases: HashMap::new(),
        }
    }

    /// Carries out `step`.
    pub(super) async fn perform(&mut self, step: &Step) -> Answer {
        match self.try_perform(step).await {
            Ok(answer) => answer,
            Err(status) => Answer::Error(status.code(), status.message().to_owned()),
        }
    }

    async fn try_perform(&mut self, step: &Step) -> Result<Answer, Status> {
        Ok(match step.clone() {
            Step::Range(request) => {
                let mut response = self.client.range(request).await?;
                anonymous(&mut response.header);
                self.name_leases(&mut response.kvs);
                Answer::Range(response)
            }
            Step::Put(mut request) => {
                request.lease = self.actual(request.lease);
                let mut response = self.client.put(request).await?;
                anonymous(&mut response.header);
                self.name_leases(&mut response.prev_kv);
                Answer::Put(response)
            }
            Step::Delete(request) => {
                let mut response = self.client.delete_range(request).await?;
                anonymous(&mut response.header);
                self.name_leases(&mut response.prev_kvs);
                Answer::Delete(response)
            }
            Step::Txn(mut request) => {
                self.actual_in_txn(&mut request);
                let mut response = self.client.txn(request).await?;
                self.name_in_txn(&mut response);
                Answer::Txn(response)
            }
            Step::Compact(request) => {
                let mut response = self.client.compact(request).await?;
                anonymous(&mut response.header);
                Answer::Compact(response)
            }
            Step::HashKv { revision } => {
                let request = PbHashKvRequest { revision };
                let mut response = self.client.hash_kv(request).await?;
                anonymous(&mut response.header);
                Answer::HashKv(response)
            }
            Step::Watch { stream, create } => {
                if is_refused_as_marker(&create) {
                    self.expect_marker(stream);
                }
                self.control(stream, create.to_union()).await;
                Answer::Streamed
            }
            Step::CancelWatch { stream, watch_id } => {
                self.control(stream, cancel(watch_id)).await;
                Answer::Streamed
            }
            Step::Progress { stream } => {
                self.control(stream, progress()).await;
                Answer::Streamed
            }
            Step::Settle => Answer::Streamed,
            lease => self.perform_lease(lease).await?,
        })
    }

    async fn perform_lease(&mut self, step: Step) -> Result<Answer, Status> {
        Ok(match step {
            Step::Grant { id, chosen, ttl } => {
                let sent = if chosen { id } else { 0 };
                let request = PbLeaseGrantRequest { id: sent, ttl };
                let mut response = self.client.lease_grant(request).await?;
                anonymous(&mut response.header);
                self.actual_leases.insert(id, response.id);
                self.named_leases.insert(response.id, id);
                response.id = id;
                Answer::Grant(response)
            }
            Step::Revoke { id } => {
                let request = PbLeaseRevokeRequest {
                    id: self.actual(id),
                };
                let mut response = self.client.lease_revoke(request).await?;
                anonymous(&mut response.header);
                Answer::Revoke(response)
            }
            Step::KeepAlive { id } => {
                let request = PbLeaseKeepAliveRequest {
                    id: self.actual(id),
                };
                self.keep_alives.0.send(request).await.unwrap();
                let response = self.keep_alives.1.message().await?;
                let mut response = response.expect("the stream goes on");
                anonymous(&mut response.header);
                response.id = id;
                Answer::KeepAlive(response)
            }
            Step::TimeToLive { id, keys } => {
                let request = PbLeaseTimeToLiveRequest {
                    id: self.actual(id),
                    keys,
                };
                let mut response = self.client.lease_time_to_live(request).await?;
                anonymous(&mut response.header);
                response.id = id;
                // The histories' leases are granted for far longer than a history takes.
                const HISTORY: i64 = 120;
                if (response.granted_ttl - HISTORY..=response.granted_ttl).contains(&response.ttl) {
                    response.ttl = response.granted_ttl;
                }
                response.keys.sort();
                Answer::TimeToLive(response)
            }
            Step::Leases => {
                let request = PbLeaseLeasesRequest {};
                let mut response = self.client.lease_leases(request).await?;
                anonymous(&mut response.header);
                for lease in &mut response.leases {
                    lease.id = self.named(lease.id);
                }
                // Their order is that of their ends, which differ by less than the clocks do.
                response.leases.sort_by_key(|lease| lease.id);
                Answer::Leases(response)
            }
            other => unreachable!("{other:?} is no request about leases"),
        })
    }

    /// Asks something of a watch stream, and waits until it has been taken in: a watch that must
    /// be refused follows it, and its refusal is waited for.
    pub(super) async fn control(&self, stream: usize, union: PbWatchRequestUnion) {
        let is_marker = |response: &&PbWatchResponse| {
            response.created && response.canceled && response.cancel_reason == EMPTY_RANGE
        };
        let markers = |responses: &[PbWatchResponse]| responses.iter().filter(is_marker).count();
        let watch = &self.streams[stream];
        watch.send(union).await;
        watch.send(marker()).await;
        let expected = self.expect_marker(stream);
        wait_for(
            async || (markers(&watch.received()) >= expected).then_some(()),
            || format!("stream {stream} answers"),
        )
        .await;
    }

    /// Counts one more refusal, and returns how many are to come in all.
    fn expect_marker(&self, stream: usize) -> usize {
        let expected = self.markers[stream].get() + 1;
        self.markers[stream].set(expected);
        expected
    }

    /// Returns the messages of a watch stream so far.
    pub(super) fn received(&self, stream: usize) -> Vec<PbWatchResponse> {
        let mut responses = self.streams[stream].received();
        for response in &mut responses {
            anonymous(&mut response.header);
            for event in &mut response.events {
                self.name_leases(&mut event.kv);
                self.name_leases(&mut event.prev_kv);
            }
        }
        responses
    }

    fn actual(&self, name: i64) -> i64 {
        self.actual_leases.get(&name).copied().unwrap_or(name)
    }

    fn named(&self, actual: i64) -> i64 {
        self.named_leases.get(&actual).copied().unwrap_or(actual)
    }

    fn name_leases<'a>(&self, kvs: impl IntoIterator<Item = &'a mut PbKeyValue>) {
        for kv in kvs {
            kv.lease = self.named(kv.lease);
        }
    }

    fn actual_in_txn(&self, request: &mut PbTxnRequest) {
        for compare in &mut request.compare {
            if let PbCompare {
                target_union: Some(PbTargetUnion::Lease(lease)),
                ..
            } = compare
            {
                *lease = self.actual(*lease);
            }
        }
        for op in request.success.iter_mut().chain(&mut request.failure) {
            match &mut op.request {
                Some(PbTxnOpRequest::RequestPut(put)) => put.lease = self.actual(put.lease),
                Some(PbTxnOpRequest::RequestTxn(nested)) => self.actual_in_txn(nested),
                _ => {}
            }
        }
    }

    fn name_in_txn(&self, response: &mut PbTxnResponse) {
        anonymous(&mut response.header);
        for op in &mut response.responses {
            match &mut op.response {
                Some(PbTxnOpResponse::ResponseRange(range)) => self.name_leases(&mut range.kvs),
                Some(PbTxnOpResponse::ResponsePut(put)) => self.name_leases(&mut put.prev_kv),
                Some(PbTxnOpResponse::ResponseDeleteRange(delete)) => {
                    self.name_leases(&mut delete.prev_kvs);
                }
                Some(PbTxnOpResponse::ResponseTxn(nested)) => self.name_in_txn(nested),
                None => {}
            }
        }
    }
}

/// A watch of no keys.
fn marker() -> PbWatchRequestUnion {
    let create = Create {
        key: b"b".to_vec(),
        range_end: b"a".to_vec(),
        ..Create::default()
    };
    create.to_union()
}

/// Returns true if a watch will be mistaken for a marker.
fn is_refused_as_marker(create: &Create) -> bool {
    let key: &[u8] = if create.key.is_empty() {
        &[0]
    } else {
        &create.key
    };
    let is_range = !matches!(create.range_end[..], [] | [0]);
    is_range && *create.range_end <= *key && create.start_revision >= 0
}

/// Reduces the server's identity to whether it is present.
fn anonymous(header: &mut Option<PbResponseHeader>) {
    let header = header.as_mut().expect("every answer has a header");
    header.cluster_id = u64::from(header.cluster_id != 0);
    header.member_id = u64::from(header.member_id != 0);
    header.raft_term = u64::from(header.raft_term != 0);
}
