//! Handle to the queue of reports.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lifecycle::ReportQueue;
use model::{AllocClient, AllocId};
use tokio::sync::{Notify, watch};

/// Least time between the starts of two batches. The first report after a pause is sent at once; a
/// thousand at a time make a few batches a second. Half of the 50 ms that a report may wait in all,
/// because the gateway batches as well.
pub(super) const BATCH_INTERVAL: Duration = Duration::from_millis(25);

/// The queue of one node's reports. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    queue: Arc<Mutex<ReportQueue>>,
    /// Notified when a report is queued.
    pub(super) queued: Arc<Notify>,
    /// Whether a server's list was applied in this run of the agent. Before that, the states of this
    /// node may be outdated.
    pub(super) is_open: Arc<watch::Sender<bool>>,
}

impl Reporter {
    pub(crate) fn new() -> Self {
        Self {
            queue: Arc::default(),
            queued: Arc::new(Notify::new()),
            is_open: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Queues a state, unless it is the acknowledged one.
    pub(crate) fn offer(&self, alloc_id: AllocId, client: AllocClient) {
        if self.queue().offer(alloc_id, client) {
            self.queued.notify_one();
        }
    }

    /// Queues a state even if it is the acknowledged one: the servers may have lost it.
    pub(crate) fn offer_again(&self, alloc_id: AllocId, client: AllocClient) {
        self.queue().offer_again(alloc_id, client);
        self.queued.notify_one();
    }

    /// Lets the sender start.
    pub(crate) fn open(&self) {
        self.is_open.send_replace(true);
    }

    /// Returns once every report is sent and its answer recorded.
    pub(crate) async fn drained(&self) {
        while self.queue().is_busy() {
            tokio::time::sleep(BATCH_INTERVAL).await;
        }
    }

    pub(crate) fn queue(&self) -> MutexGuard<'_, ReportQueue> {
        // Each critical section is a single call of the queue.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use model::ClientStatus;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn draining_waits_for_the_report_in_flight() {
        let alloc_id = AllocId::from_random(1);
        let client = AllocClient {
            status: ClientStatus::Running,
            ..AllocClient::default()
        };
        let reporter = Reporter::new();
        reporter.drained().await;
        reporter.offer(alloc_id, client);
        let batch = reporter.queue().take();
        let limit = Duration::from_secs(5);
        let drained = tokio::time::timeout(limit, reporter.drained()).await;
        assert!(drained.is_err(), "the answer is missing");
        reporter.queue().acknowledge(&batch);
        reporter.queue().finish_batch();
        reporter.drained().await;
    }
}
