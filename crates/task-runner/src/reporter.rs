//! Handle to the queue of reports. The loop that sends them is the agent's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lifecycle::ReportQueue;
use model::{AllocClient, AllocId};
use tokio::sync::{Notify, watch};

/// Least time between the starts of two batches. The first report after a pause is sent at once; a
/// thousand at a time make a few batches a second. Half of the 50 ms that a report may wait in all,
/// because the gateway batches as well.
pub const BATCH_INTERVAL: Duration = Duration::from_millis(25);

/// The queue of one node's reports. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Reporter {
    queue: Arc<Mutex<ReportQueue>>,
    queued: Arc<Notify>,
    /// True once a server's list was applied in this run of the agent. Before that, the states of
    /// this node may be outdated.
    is_open: Arc<watch::Sender<bool>>,
}

impl Reporter {
    /// Queues a state, unless it is the acknowledged one.
    pub fn offer(&self, alloc_id: AllocId, client: AllocClient) {
        if self.queue().offer(alloc_id, client) {
            self.queued.notify_one();
        }
    }

    /// Queues a state even if it is the acknowledged one: the servers may have lost it.
    pub fn offer_again(&self, alloc_id: AllocId, client: AllocClient) {
        self.queue().offer_again(alloc_id, client);
        self.queued.notify_one();
    }

    /// Lets the sender start.
    pub fn open(&self) {
        self.is_open.send_replace(true);
    }

    /// Returns once the sender may start.
    pub async fn opened(&self) {
        // The reporter owns the sender half, so the wait cannot fail.
        let _ = self.is_open.subscribe().wait_for(|open| *open).await;
    }

    /// Returns when a report was queued, or when [`Reporter::wake`] was called.
    pub async fn queued(&self) {
        self.queued.notified().await;
    }

    /// Lets [`Reporter::queued`] return: the queue has reports that came back.
    pub fn wake(&self) {
        self.queued.notify_one();
    }

    /// Returns once every report is sent and its answer recorded.
    pub async fn drained(&self) {
        while self.queue().is_busy() {
            tokio::time::sleep(BATCH_INTERVAL).await;
        }
    }

    pub fn queue(&self) -> MutexGuard<'_, ReportQueue> {
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
        let reporter = Reporter::default();
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
