//! The channel of heartbeat reports from the RPC to the leader's loop.

use std::sync::{Arc, Mutex, PoisonError};

use model::NodeId;
use tokio::sync::{mpsc, watch};

/// Reports in the queue: a few seconds' worth of a hundred gateways. When it is full the gateways
/// are throttled, and merge heartbeats meanwhile.
const WAITING_REPORTS: usize = 1_024;

/// The nodes that one gateway has heard since its last report.
pub(crate) type Report = Vec<NodeId>;

/// The receiving end.
pub(crate) struct Inbox {
    pub(crate) reports: mpsc::Receiver<Report>,
    /// How many gateways are connected.
    pub(crate) gateways: watch::Receiver<usize>,
    _open: Open,
}

/// Accepts reports while this process leads. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports {
    /// `Some` exactly while the loop runs.
    senders: Arc<Mutex<Option<Senders>>>,
}

#[derive(Clone, Debug)]
struct Senders {
    reports: mpsc::Sender<Report>,
    gateways: Arc<watch::Sender<usize>>,
}

impl Reports {
    /// Opens the channel of a new loop; it closes when the inbox is dropped.
    pub(crate) fn open(&self) -> Inbox {
        let (reports, receiver) = mpsc::channel(WAITING_REPORTS);
        let (sender, gateways) = watch::channel(0);
        *self.lock() = Some(Senders {
            reports,
            gateways: Arc::new(sender),
        });
        Inbox {
            reports: receiver,
            gateways,
            _open: Open {
                reports: self.clone(),
            },
        }
    }

    /// Counts a gateway as connected until the result is dropped; `None` when this process does not
    /// lead.
    pub(crate) fn connect(&self) -> Option<Connection> {
        let senders = self.lock().clone()?;
        senders.gateways.send_modify(|count| *count += 1);
        Some(Connection { senders })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Senders>> {
        // A panic cannot leave an Option half updated.
        self.senders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One gateway's connection. It belongs to one leadership term.
pub(crate) struct Connection {
    senders: Senders,
}

impl Connection {
    /// Sends a report to the loop; `false` when the term is over.
    pub(crate) async fn send(&self, report: Report) -> bool {
        self.senders.reports.send(report).await.is_ok()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.senders
            .gateways
            .send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// Closes the channel when dropped, however the loop ended.
struct Open {
    reports: Reports,
}

impl Drop for Open {
    fn drop(&mut self) {
        *self.reports.lock() = None;
    }
}
