//! The whole store as a value: requests in, responses and changes out.
//!
//! Pure: time, ids and the outcome of writing to disk are arguments. A driver ([`crate::run`], or a
//! simulator) applies writes, stores the changes of [`Machine::take_changes`], then calls
//! [`Machine::publish`] and only then releases the responses. So no response, read or watch ever
//! shows a change that a crash could undo.

use std::{sync::Arc, time::Duration};

use etcd_client::proto::{
    PbCompactionRequest, PbCompactionResponse, PbDeleteRequest, PbDeleteResponse,
    PbLeaseGrantRequest, PbLeaseGrantResponse, PbLeaseKeepAliveResponse, PbLeaseLeasesResponse,
    PbLeaseRevokeResponse, PbLeaseStatus, PbLeaseTimeToLiveRequest, PbLeaseTimeToLiveResponse,
    PbPutRequest, PbPutResponse, PbRangeRequest, PbResponseHeader, PbTxnRequest, PbTxnResponse,
};
use prost::Message as _;

use crate::{
    compactor::AutoCompactor,
    config::Config,
    error::{ApiError, Corruption},
    key_range::KeyRange,
    lease::LeaseTable,
    mvcc::{Committed, LeaseMove, Mvcc},
    record::Record,
    storage::{Change, Contents},
    txn::{self, RangeAnswer, check},
    watch::{Outbox, Request, StreamId, WatchHub},
};

/// The largest number of leases that end in one tick; etcd revokes at most 1,000 a second, in halves.
const MAX_EXPIRIES_PER_TICK: usize = 500;

/// Records that a compaction examines in one tick: some 3 ms without writes.
const SWEEP_STEP: usize = 8_192;

/// The bytes that etcd adds to a request before it compares its size with the limit: a header with
/// the request's id (14 bytes), the tag and the length of the request.
const REQUEST_OVERHEAD: usize = 20;

/// Identity of the server, for response headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub cluster_id: u64,
    pub member_id: u64,
    /// One more each time the store is opened, so that clients can tell a restart.
    pub raft_term: u64,
}

impl Identity {
    /// The header of an answer at `revision`.
    #[must_use]
    pub fn header(&self, revision: i64) -> PbResponseHeader {
        PbResponseHeader {
            cluster_id: self.cluster_id,
            member_id: self.member_id,
            revision,
            raft_term: self.raft_term,
        }
    }
}

/// The store.
#[derive(Debug)]
pub struct Machine {
    identity: Identity,
    max_txn_ops: usize,
    max_request_bytes: usize,
    progress_interval: Duration,
    mvcc: Mvcc,
    leases: LeaseTable,
    hub: WatchHub,
    compactor: Option<AutoCompactor>,
    /// Changes that are not passed to storage yet.
    changes: Vec<Change>,
    /// Bytes of the records among them.
    changes_bytes: usize,
    /// Writes that readers do not see yet, oldest first.
    unpublished: Vec<(i64, Vec<Arc<Record>>)>,
    /// True if a lagging watch can take another step at once.
    can_sync: bool,
}

impl Machine {
    /// An empty store.
    #[must_use]
    pub fn new(identity: Identity, config: &Config) -> Self {
        Self {
            identity,
            max_txn_ops: config.max_txn_ops,
            max_request_bytes: config.max_request_bytes,
            progress_interval: config.watch_progress_interval,
            mvcc: Mvcc::default(),
            leases: LeaseTable::default(),
            hub: WatchHub::default(),
            compactor: config.auto_compaction.map(AutoCompactor::new),
            changes: Vec::new(),
            changes_bytes: 0,
            unpublished: Vec::new(),
            can_sync: false,
        }
    }

    /// A store with the contents of storage. Every lease starts with its full time.
    ///
    /// # Errors
    /// A [`Corruption`] when the parts contradict each other.
    pub fn restore(
        identity: Identity,
        config: &Config,
        contents: Contents,
    ) -> Result<Self, Corruption> {
        let mut machine = Self::new(identity, config);
        for (id, ttl) in contents.leases {
            let fault = |_| Corruption::Lease {
                id,
                fault: "has an id or a time to live that cannot be granted",
            };
            machine
                .leases
                .grant(Duration::ZERO, id, ttl)
                .map_err(fault)?;
        }
        for record in contents.records {
            machine.mvcc.load(Arc::new(record));
        }
        machine.mvcc.finish_load(contents.compact_revision);
        for record in machine.mvcc.live().filter(|record| record.lease != 0) {
            if !machine.leases.contains(record.lease) {
                return Err(Corruption::Record {
                    main: record.revision.main,
                    sub: record.revision.sub,
                    fault: "belongs to a lease that does not exist",
                });
            }
            machine.leases.follow(&LeaseMove {
                key: record.key.clone(),
                from: 0,
                to: record.lease,
            });
        }
        Ok(machine)
    }

    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// The keys and values, for reading.
    #[must_use]
    pub fn mvcc(&self) -> &Mvcc {
        &self.mvcc
    }

    // Reads, at the revision that has been published.

    /// # Errors
    /// [`ApiError::EmptyKey`], [`ApiError::FutureRevision`], [`ApiError::Compacted`].
    pub fn range(&self, request: PbRangeRequest) -> Result<RangeAnswer, ApiError> {
        check::range(&request)?;
        let current = self.mvcc.visible();
        txn::answer_range(request, |range, options| {
            self.mvcc.range(range, options, current)
        })
    }

    /// Answers a txn that [`Machine::is_read_only`] says changes nothing.
    ///
    /// # Errors
    /// As [`Machine::txn`].
    pub fn read_only_txn(&self, request: PbTxnRequest) -> Result<PbTxnResponse, ApiError> {
        check::txn(&request, self.max_txn_ops)?;
        let mut response = txn::perform_read_only(&self.mvcc, request)?;
        self.fill(&mut response.header);
        Ok(response)
    }

    /// Returns true if a txn may go to [`Machine::read_only_txn`] instead of [`Machine::txn`].
    #[must_use]
    pub fn is_read_only(request: &PbTxnRequest) -> bool {
        txn::read_only(request)
    }

    // Writes.

    /// # Errors
    /// [`ApiError::EmptyKey`], [`ApiError::ValueProvided`], [`ApiError::LeaseProvided`],
    /// [`ApiError::RequestTooLarge`], [`ApiError::LeaseNotFound`], [`ApiError::KeyNotFound`].
    pub fn put(&mut self, request: PbPutRequest) -> Result<PbPutResponse, ApiError> {
        check::put(&request)?;
        self.check_size(request.encoded_len())?;
        if request.lease != 0 && !self.leases.contains(request.lease) {
            return Err(ApiError::LeaseNotFound);
        }
        let mut write = self.mvcc.write();
        let mut response = match txn::put(&mut write, request) {
            Ok(response) => response,
            Err(error) => {
                write.roll_back();
                return Err(error);
            }
        };
        let committed = write.finish();
        self.keep(committed);
        self.fill(&mut response.header);
        Ok(response)
    }

    /// # Errors
    /// [`ApiError::EmptyKey`], [`ApiError::RequestTooLarge`].
    pub fn delete_range(&mut self, request: PbDeleteRequest) -> Result<PbDeleteResponse, ApiError> {
        check::delete_range(&request)?;
        self.check_size(request.encoded_len())?;
        let mut write = self.mvcc.write();
        let mut response = txn::delete_range(&mut write, request)?;
        let committed = write.finish();
        self.keep(committed);
        self.fill(&mut response.header);
        Ok(response)
    }

    /// # Errors
    /// Those of [`check::txn`], [`ApiError::RequestTooLarge`], [`ApiError::LeaseNotFound`],
    /// [`ApiError::KeyNotFound`], [`ApiError::FutureRevision`], [`ApiError::Compacted`]. On each of
    /// them nothing has changed.
    pub fn txn(&mut self, request: PbTxnRequest) -> Result<PbTxnResponse, ApiError> {
        check::txn(&request, self.max_txn_ops)?;
        self.check_size(request.encoded_len())?;
        let (mut response, committed) = txn::perform(&mut self.mvcc, &self.leases, request)?;
        self.keep(committed);
        self.fill(&mut response.header);
        Ok(response)
    }

    /// Compacts up to a revision. A `physical` request is answered after the sweep.
    ///
    /// # Errors
    /// [`ApiError::Compacted`], [`ApiError::FutureRevision`].
    pub fn compact(
        &mut self,
        request: &PbCompactionRequest,
    ) -> Result<PbCompactionResponse, ApiError> {
        self.compact_at(request.revision)?;
        while request.physical && self.mvcc.is_sweeping() {
            self.sweep();
        }
        Ok(PbCompactionResponse {
            header: Some(self.header()),
        })
    }

    fn compact_at(&mut self, revision: i64) -> Result<(), ApiError> {
        self.mvcc.compact(revision)?;
        self.changes.push(Change::Compact { revision });
        // Lagging watches behind the compaction are ended.
        self.can_sync = true;
        Ok(())
    }

    // Leases.

    /// Grants a lease; `chosen` is its id if the request names none.
    ///
    /// # Errors
    /// Those of [`LeaseTable::grant`].
    pub fn lease_grant(
        &mut self,
        now: Duration,
        request: &PbLeaseGrantRequest,
        chosen: i64,
    ) -> Result<PbLeaseGrantResponse, ApiError> {
        let id = if request.id == 0 { chosen } else { request.id };
        let ttl = self.leases.grant(now, id, request.ttl)?;
        self.changes.push(Change::Grant { id, ttl });
        Ok(PbLeaseGrantResponse {
            header: Some(self.header()),
            id,
            ttl,
            error: String::new(),
        })
    }

    /// Ends a lease and deletes its keys in one revision.
    ///
    /// # Errors
    /// [`ApiError::LeaseNotFound`].
    pub fn lease_revoke(&mut self, id: i64) -> Result<PbLeaseRevokeResponse, ApiError> {
        let keys = self.leases.revoke(id)?;
        let mut write = self.mvcc.write();
        for key in keys {
            write.delete_range(&KeyRange::One(key));
        }
        let committed = write.finish();
        self.keep(committed);
        // In one storage transaction with the deletes: the driver stores all changes of a step at
        // once.
        self.changes.push(Change::Revoke { id });
        Ok(PbLeaseRevokeResponse {
            header: Some(self.header()),
        })
    }

    /// Gives a lease its full time again; one that is gone is answered with 0 seconds.
    pub fn lease_keep_alive(&mut self, now: Duration, id: i64) -> PbLeaseKeepAliveResponse {
        PbLeaseKeepAliveResponse {
            header: Some(self.header()),
            id,
            ttl: self.leases.renew(now, id).unwrap_or(0),
        }
    }

    /// Remaining time of a lease; -1 seconds for an unknown one.
    #[must_use]
    pub fn lease_time_to_live(
        &self,
        now: Duration,
        request: &PbLeaseTimeToLiveRequest,
    ) -> PbLeaseTimeToLiveResponse {
        let mut response = PbLeaseTimeToLiveResponse {
            header: Some(self.header()),
            id: request.id,
            ttl: -1,
            granted_ttl: 0,
            keys: Vec::new(),
        };
        if let Some(info) = self.leases.info(now, request.id) {
            response.ttl = info.remaining;
            response.granted_ttl = info.granted;
            if request.keys {
                response.keys = info.keys.iter().map(|key| key.to_vec()).collect();
            }
        }
        response
    }

    /// All leases, the one that ends next first.
    #[must_use]
    pub fn lease_leases(&self) -> PbLeaseLeasesResponse {
        PbLeaseLeasesResponse {
            header: Some(self.header()),
            leases: self.leases.ids().map(|id| PbLeaseStatus { id }).collect(),
        }
    }

    // Watches.

    pub fn open_watch_stream(&mut self, now: Duration) -> (StreamId, Arc<Outbox>) {
        self.hub.open_stream(now + self.progress_interval)
    }

    pub fn close_watch_stream(&mut self, stream: StreamId) {
        self.hub.close_stream(stream);
    }

    /// Ends all watch streams.
    pub fn close_watches(&mut self) {
        self.hub.close_all();
    }

    pub fn create_watch(&mut self, stream: StreamId, request: Request) {
        self.can_sync |= self.hub.create(&self.mvcc, stream, request);
    }

    pub fn cancel_watch(&mut self, stream: StreamId, watch_id: i64) {
        self.hub.cancel(&self.mvcc, stream, watch_id);
    }

    pub fn request_watch_progress(&self, stream: StreamId) {
        self.hub.request_progress(&self.mvcc, stream);
    }

    /// Notes that a lagging reader has made room.
    pub fn watch_has_room(&mut self) {
        self.can_sync = true;
    }

    // The driver's side.

    /// Carries out due work of time and earlier requests, in a bounded step.
    pub fn tick(&mut self, now: Duration) {
        for _ in 0..MAX_EXPIRIES_PER_TICK {
            let Some(id) = self.leases.first_ended(now) else {
                break;
            };
            // It exists, so revoking cannot fail.
            let _ = self.lease_revoke(id);
        }
        if let Some(compactor) = &mut self.compactor
            && let Some(revision) = compactor.sample(now, self.mvcc.visible())
        {
            // A client may have compacted further.
            let _ = self.compact_at(revision);
        }
        self.sweep();
        self.hub.tick(&self.mvcc, now, self.progress_interval);
        if self.can_sync {
            self.can_sync = self.hub.sync(&self.mvcc);
        }
    }

    /// Returns the time of the next call of [`Machine::tick`]; a time that has passed means at
    /// once.
    #[must_use]
    pub fn next_tick(&self) -> Option<Duration> {
        if self.can_sync || self.mvcc.is_sweeping() {
            return Some(Duration::ZERO);
        }
        let compaction = self.compactor.as_ref().map(AutoCompactor::next_sample);
        [self.leases.next_end(), self.hub.next_tick(), compaction]
            .into_iter()
            .flatten()
            .min()
    }

    /// Changes that wait to be taken.
    #[must_use]
    pub fn pending_changes(&self) -> usize {
        self.changes.len()
    }

    /// Bytes that they take, roughly.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.changes_bytes
    }

    /// The changes to store atomically before [`Machine::publish`].
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.changes_bytes = 0;
        std::mem::take(&mut self.changes)
    }

    /// Shows all writes to readers and watches; their changes must be stored.
    pub fn publish(&mut self) {
        self.mvcc.publish();
        for (revision, records) in std::mem::take(&mut self.unpublished) {
            self.hub.notify(&self.mvcc, revision, &records);
        }
    }

    fn keep(&mut self, committed: Committed) {
        if committed.changes.is_empty() {
            return;
        }
        for moved in &committed.lease_moves {
            self.leases.follow(moved);
        }
        for record in &committed.changes {
            self.changes_bytes += record.size();
            self.changes.push(Change::Write(Arc::clone(record)));
        }
        self.unpublished
            .push((committed.revision, committed.changes));
    }

    fn sweep(&mut self) {
        let dropped = self.mvcc.sweep(SWEEP_STEP);
        self.changes.extend(dropped.into_iter().map(Change::Drop));
    }

    fn check_size(&self, encoded_len: usize) -> Result<(), ApiError> {
        if encoded_len + REQUEST_OVERHEAD > self.max_request_bytes {
            return Err(ApiError::RequestTooLarge);
        }
        Ok(())
    }

    fn header(&self) -> PbResponseHeader {
        self.identity.header(self.mvcc.head())
    }

    /// Adds the server's identity to a header that holds the revision.
    fn fill(&self, header: &mut Option<PbResponseHeader>) {
        let revision = header
            .as_ref()
            .map_or(self.mvcc.head(), |header| header.revision);
        *header = Some(self.identity.header(revision));
    }
}

#[cfg(test)]
mod tests;
