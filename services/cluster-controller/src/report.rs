//! The way of a heartbeat from the RPC to the leader's loop.

use std::sync::{Arc, Mutex, PoisonError};

use model::NodeId;
use tokio::sync::{mpsc, watch};

/// How many reports may wait for the loop: gateways report a few times a second each, so this is
/// seconds of a hundred gateways. When it is full the gateways wait, and beats are merged there.
const WAITING_REPORTS: usize = 1_024;

/// What one gateway heard since its last report.
pub(crate) type Report = Vec<NodeId>;

/// The loop's end of the way.
pub(crate) struct Inbox {
    pub(crate) reports: mpsc::Receiver<Report>,
    /// How many gateways report now.
    pub(crate) gateways: watch::Receiver<usize>,
    _open: Open,
}

/// Takes reports while this process leads. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports {
    /// `Some` exactly while the loop runs.
    term: Arc<Mutex<Option<Term>>>,
}

#[derive(Clone, Debug)]
struct Term {
    reports: mpsc::Sender<Report>,
    gateways: Arc<watch::Sender<usize>>,
}

impl Reports {
    /// Opens the way to a new loop; it closes when the inbox is dropped.
    pub(crate) fn open(&self) -> Inbox {
        let (reports, receiver) = mpsc::channel(WAITING_REPORTS);
        let (sender, gateways) = watch::channel(0);
        *self.lock() = Some(Term {
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

    /// Counts a gateway in, until the connection is dropped; `None` when this process does not lead.
    pub(crate) fn connect(&self) -> Option<Connection> {
        let term = self.lock().clone()?;
        term.gateways.send_modify(|count| *count += 1);
        Some(Connection { term })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Term>> {
        // An Option has no half-done state.
        self.term.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One gateway's connection, bound to the term it began in.
pub(crate) struct Connection {
    term: Term,
}

impl Connection {
    /// Hands a report to the loop; `false` when the term is over.
    pub(crate) async fn send(&self, report: Report) -> bool {
        self.term.reports.send(report).await.is_ok()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.term
            .gateways
            .send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// Closes the way when dropped, however the loop ended.
struct Open {
    reports: Reports,
}

impl Drop for Open {
    fn drop(&mut self) {
        *self.reports.lock() = None;
    }
}
