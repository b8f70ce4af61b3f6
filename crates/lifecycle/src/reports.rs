//! Queue of allocation reports: the newest state of each allocation, until the servers acknowledge
//! it.
//!
//! A report without an answer may have arrived or not, so the newest state is sent again; a repeated
//! report changes nothing. Acknowledged reports are remembered as digests, so that a restarted agent
//! does not repeat them.
//!
//! Each report has a number, higher than that of the allocation's earlier reports, so that servers
//! can discard late ones. A node that lost its state continues from the servers' numbers, which come
//! with assignments and with the answers to reports that are behind.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use model::{AllocClient, AllocId, Timestamp};
use serde::{Deserialize, Serialize};

/// Reports per call: with ten events each some 4 KiB, so 1 MiB, a quarter of gRPC's default limit.
pub const MAX_BATCH: usize = 256;

/// One report, as sent.
pub type Report = (AllocId, AllocClient);

/// Reports of one node.
#[derive(Debug, Default)]
pub struct ReportQueue {
    /// The newest unsent state of each allocation.
    pending: BTreeMap<AllocId, AllocClient>,
    /// Digests of the acknowledged states.
    acked: HashMap<AllocId, u64>,
    last: HashMap<AllocId, LastReport>,
    /// A batch was taken, and its answer is not processed yet.
    is_sending: bool,
}

/// The newest report of an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastReport {
    pub number: u64,
    /// Digest of its content; `None`: only the servers know it.
    pub digest: Option<u64>,
}

impl LastReport {
    pub fn of(client: &AllocClient) -> Self {
        Self {
            number: client.report,
            digest: Some(digest(client)),
        }
    }

    /// Returns the number of a report with this digest: a new one, unless it is the newest report.
    fn number(&mut self, digest: u64) -> u64 {
        if self.digest != Some(digest) {
            self.number += 1;
            self.digest = Some(digest);
        }
        self.number
    }
}

impl ReportQueue {
    /// Restores the digest of a state that an earlier run of the agent knew to be acknowledged.
    pub fn restore_acked(&mut self, alloc_id: AllocId, digest: u64) {
        self.acked.insert(alloc_id, digest);
    }

    /// Restores the last report of an earlier run of the agent.
    pub fn restore_last(&mut self, alloc_id: AllocId, last: LastReport) {
        self.last.insert(alloc_id, last);
    }

    /// Queues a state, unless it is the acknowledged one and no other was reported since. Returns
    /// whether it was queued.
    pub fn offer(&mut self, alloc_id: AllocId, client: AllocClient) -> bool {
        let digest = digest(&client);
        let last = self.last.get(&alloc_id).and_then(|last| last.digest);
        let is_last = last.is_none_or(|last| last == digest);
        if is_last && self.acked.get(&alloc_id) == Some(&digest) {
            self.pending.remove(&alloc_id);
            return false;
        }
        self.put(alloc_id, client);
        true
    }

    /// Queues a state even if it is the acknowledged one: the servers may have lost it.
    pub fn offer_again(&mut self, alloc_id: AllocId, client: AllocClient) {
        self.acked.remove(&alloc_id);
        self.put(alloc_id, client);
    }

    fn put(&mut self, alloc_id: AllocId, mut client: AllocClient) {
        let last = self.last.entry(alloc_id).or_default();
        client.report = last.number(digest(&client));
        self.pending.insert(alloc_id, client);
    }

    /// Records the report number that servers have. Returns `true` when this node does not remember
    /// the number, so that the servers' state may be older than the node's.
    pub fn learn(&mut self, alloc_id: AllocId, number: u64) -> bool {
        if number == 0 {
            return false;
        }
        let last = self.last.entry(alloc_id).or_default();
        if number <= last.number {
            return false;
        }
        let digest = None;
        *last = LastReport { number, digest };
        self.acked.remove(&alloc_id);
        if let Some(client) = self.pending.remove(&alloc_id) {
            self.put(alloc_id, client);
        }
        true
    }

    /// Forgets all acknowledgements, because the servers have another store.
    pub fn forget_acked(&mut self) {
        self.acked.clear();
    }

    /// Forgets a collected allocation.
    pub fn forget(&mut self, alloc_id: AllocId) {
        self.pending.remove(&alloc_id);
        self.acked.remove(&alloc_id);
        self.last.remove(&alloc_id);
    }

    /// Returns whether servers have acknowledged the newest state.
    pub fn is_acked(&self, alloc_id: AllocId) -> bool {
        self.acked.contains_key(&alloc_id) && !self.pending.contains_key(&alloc_id)
    }

    /// Returns whether a report is unsent, or its answer not processed.
    pub fn is_busy(&self) -> bool {
        self.is_sending || !self.pending.is_empty()
    }

    /// Returns the number of unsent reports.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Takes the next batch, of at most [`MAX_BATCH`] reports.
    pub fn take(&mut self) -> Vec<Report> {
        let ids: Vec<AllocId> = self.pending.keys().take(MAX_BATCH).copied().collect();
        self.is_sending = !ids.is_empty();
        ids.into_iter()
            .filter_map(|id| Some((id, self.pending.remove(&id)?)))
            .collect()
    }

    /// Ends a batch whose answer, or lack of one, was processed.
    pub fn finish_batch(&mut self) {
        self.is_sending = false;
    }

    /// Requeues unacknowledged reports, unless a newer state is pending.
    pub fn give_back(&mut self, batch: Vec<Report>) {
        for (id, client) in batch {
            self.pending.entry(id).or_insert(client);
        }
    }

    /// Records the acknowledgement of a batch. Returns the digests of its states.
    pub fn acknowledge(&mut self, batch: &[Report]) -> Vec<(AllocId, u64)> {
        let digests: Vec<_> = batch
            .iter()
            .map(|(id, client)| (*id, digest(client)))
            .collect();
        self.acked.extend(digests.iter().copied());
        digests
    }

    /// Requeues the reports of a batch that servers discarded, because they have the higher numbers
    /// in `newer`. A number of this node's own later report requeues nothing.
    pub fn discarded(&mut self, batch: &[Report], newer: &[(AllocId, u64)]) {
        for (alloc_id, number) in newer {
            if self.learn(*alloc_id, *number)
                && !self.pending.contains_key(alloc_id)
                && let Some((_, client)) = batch.iter().find(|(id, _)| id == alloc_id)
            {
                self.put(*alloc_id, client.clone());
            }
        }
    }
}

/// Returns a digest of the servers' view of a state. Not stable across versions of the agent: a new
/// version reports everything once.
fn digest(client: &AllocClient) -> u64 {
    // Servers overwrite the time.
    let client = AllocClient {
        modify_time: Timestamp::NEVER,
        report: 0,
        ..client.clone()
    };
    let mut hasher = DefaultHasher::new();
    serde_json::to_vec(&client)
        .unwrap_or_default()
        .hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use model::ClientStatus;

    use super::*;

    fn id(number: u128) -> AllocId {
        AllocId::from_random(number)
    }

    fn client(status: ClientStatus) -> AllocClient {
        AllocClient {
            status,
            ..AllocClient::default()
        }
    }

    fn take_and_acknowledge(reports: &mut ReportQueue) -> Vec<(AllocId, u64)> {
        let batch = reports.take();
        reports.acknowledge(&batch)
    }

    #[test]
    fn the_newest_state_is_sent_and_a_newer_one_survives_a_failure() {
        let mut reports = ReportQueue::default();
        reports.offer(id(1), client(ClientStatus::Pending));
        reports.offer(id(1), client(ClientStatus::Running));
        let batch = reports.take();
        assert_eq!(batch, [(id(1), numbered(2, ClientStatus::Running))]);
        reports.offer(id(1), client(ClientStatus::Complete));
        reports.give_back(batch);
        let newest = numbered(3, ClientStatus::Complete);
        assert_eq!(reports.take(), [(id(1), newest)]);
    }

    fn numbered(report: u64, status: ClientStatus) -> AllocClient {
        AllocClient {
            report,
            ..client(status)
        }
    }

    #[test]
    fn a_repeated_report_keeps_its_number() {
        let mut reports = ReportQueue::default();
        reports.offer(id(1), client(ClientStatus::Running));
        let batch = reports.take();
        reports.give_back(batch.clone());
        reports.offer(id(1), client(ClientStatus::Running));
        assert_eq!(reports.take(), batch);
        reports.acknowledge(&batch);
        reports.offer_again(id(1), client(ClientStatus::Running));
        assert_eq!(reports.take(), batch);
    }

    /// The acknowledged state is outdated while another report is in flight.
    #[test]
    fn a_state_that_returns_while_another_is_in_flight_is_reported() {
        let mut reports = ReportQueue::default();
        reports.offer(id(1), client(ClientStatus::Pending));
        take_and_acknowledge(&mut reports);
        reports.offer(id(1), client(ClientStatus::Running));
        let in_flight = reports.take();
        reports.offer(id(1), client(ClientStatus::Pending));
        reports.acknowledge(&in_flight);
        let last = numbered(3, ClientStatus::Pending);
        assert_eq!(reports.take(), [(id(1), last)]);
    }

    #[test]
    fn numbers_continue_from_the_last_run_and_from_the_servers() {
        let mut reports = ReportQueue::default();
        let last = LastReport {
            number: 7,
            digest: Some(digest(&client(ClientStatus::Running))),
        };
        reports.restore_last(id(1), last);
        reports.offer(id(1), client(ClientStatus::Running));
        assert_eq!(reports.take()[0].1.report, 7, "the same state");
        reports.offer(id(1), client(ClientStatus::Complete));
        assert!(!reports.learn(id(1), 8), "its own number");
        assert_eq!(reports.take()[0].1.report, 8);
        // A node that lost its state.
        let mut reports = ReportQueue::default();
        reports.offer(id(1), client(ClientStatus::Running));
        reports.restore_acked(id(1), digest(&client(ClientStatus::Pending)));
        assert!(reports.learn(id(1), 8));
        assert!(!reports.is_acked(id(1)));
        assert_eq!(reports.take()[0].1.report, 9);
        reports.offer(id(1), client(ClientStatus::Pending));
        assert_eq!(reports.take()[0].1.report, 10);
        assert!(!reports.learn(id(2), 0), "a gateway without numbers");
    }

    #[test]
    fn a_discarded_report_is_sent_with_a_higher_number() {
        let mut reports = ReportQueue::default();
        reports.offer(id(1), client(ClientStatus::Pending));
        let batch = reports.take();
        reports.acknowledge(&batch);
        reports.discarded(&batch, &[(id(1), 5)]);
        let again = reports.take();
        assert_eq!(again, [(id(1), numbered(6, ClientStatus::Pending))]);
        // A late answer: the number is that of this node's later report.
        reports.acknowledge(&again);
        reports.discarded(&batch, &[(id(1), 6)]);
        assert!(reports.take().is_empty());
        // A state that changed meanwhile is reported instead.
        reports.offer(id(1), client(ClientStatus::Running));
        reports.discarded(&again, &[(id(1), 20)]);
        let newest = numbered(21, ClientStatus::Running);
        assert_eq!(reports.take(), [(id(1), newest)]);
    }

    #[test]
    fn scenario_021_an_acknowledged_report_is_not_sent_again() {
        let mut reports = ReportQueue::default();
        reports.offer(id(1), client(ClientStatus::Running));
        let acked = take_and_acknowledge(&mut reports);
        assert!(reports.is_acked(id(1)));
        reports.offer(id(1), client(ClientStatus::Running));
        assert!(reports.take().is_empty());

        let mut restarted = ReportQueue::default();
        restarted.restore_acked(id(1), acked[0].1);
        let later = AllocClient {
            modify_time: Timestamp(5),
            ..client(ClientStatus::Running)
        };
        restarted.offer(id(1), later.clone());
        assert!(restarted.take().is_empty(), "the time alone does not count");
        restarted.offer_again(id(1), later);
        assert_eq!(restarted.take().len(), 1);
        restarted.offer(id(1), client(ClientStatus::Complete));
        assert!(!restarted.is_acked(id(1)));
        restarted.forget(id(1));
        assert!(restarted.take().is_empty());
    }

    #[test]
    fn a_batch_is_bounded() {
        let mut reports = ReportQueue::default();
        for number in 0..1_000 {
            reports.offer(id(number), client(ClientStatus::Running));
        }
        assert_eq!(reports.take().len(), MAX_BATCH);
        assert_eq!(reports.len(), 1_000 - MAX_BATCH);
    }
}
