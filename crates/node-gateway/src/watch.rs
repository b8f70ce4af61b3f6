//! The stream of one node: its allocations, whenever they change.

use std::sync::Arc;
use std::time::Duration;

use admission::nodes::revocation;
use api_view::assignments::{SentJobs, changed, full};
use futures::Stream;
use futures::stream::unfold;
use gateway_core::{Core, Error, GaugeGuard};
use model::NodeId;
use proto::internal::v1::AllocationsUpdate;
use store::WaitError;
use tonic::{Code, Status};
use tracing::{info, warn};

use crate::node_gateway::NodeGateway;
use crate::sessions::{Due, OpenSession};

/// The time in which the replica must reach the revision that a node has seen, before the store is
/// asked: a replica is milliseconds behind.
const CATCH_UP: Duration = Duration::from_secs(1);
/// The timeout for the store's revision. With [`CATCH_UP`] well within the 10 s that a node waits
/// for its stream.
const ASK_STORE: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
enum WatchError {
    #[error(
        "this gateway is at revision {applied} and the node has seen {seen}: try another gateway"
    )]
    Behind { seen: u64, applied: u64 },
    #[error("a newer stream of this node has replaced this one")]
    Replaced,
}

impl From<WatchError> for Error {
    fn from(error: WatchError) -> Self {
        let code = match error {
            WatchError::Behind { .. } => Code::Unavailable,
            WatchError::Replaced => Code::Aborted,
        };
        Self::new(code, error)
    }
}

/// Opens the stream of a node that has seen the revision `seen`.
///
/// # Errors
/// The gateway is behind the node, or the store does not answer.
pub(crate) async fn open(
    gateway: Arc<NodeGateway>,
    node_id: NodeId,
    seen: u64,
) -> Result<impl Stream<Item = Result<AllocationsUpdate, Status>> + Send + use<>, Error> {
    // The session comes before the state, so that a change in between is noted in the session.
    let session = gateway.sessions.open(node_id);
    let catch_up = catch_up(&gateway.core, seen).await?;
    let store_id = store_id(&gateway.core, catch_up);
    session.note_full();
    info!(%node_id, seen, store_id, "node watches its allocations");
    let open = GaugeGuard::new(&gateway.metrics.node_sessions);
    let watch = Watch {
        gateway,
        session,
        node_id,
        sent: SentJobs::default(),
        store_id,
        revision: 0,
        _open: open,
    };
    Ok(unfold(Some(watch), next_update))
}

/// The store's position relative to the revision that a node has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CatchUp {
    /// The replica has reached it.
    Reached,
    /// The store is older: it was restored from a backup, or is another store.
    WentBack,
}

/// Waits until the replica reaches the revision that the node has seen, or until the store is known
/// to be older.
///
/// Only the store can prove that: a linearizable read that began after the node had seen a revision
/// returns an older one.
async fn catch_up(core: &Core, seen: u64) -> Result<CatchUp, Error> {
    match core.replica.wait_for(seen.max(1), CATCH_UP).await {
        Ok(_) => return Ok(CatchUp::Reached),
        Err(WaitError::Timeout { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let fresh = match tokio::time::timeout(ASK_STORE, core.fresh()).await {
        Ok(fresh) => fresh?,
        Err(_) => {
            let applied = core.replica.applied();
            return Err(WatchError::Behind { seen, applied }.into());
        }
    };
    let current = fresh.index();
    if current >= seen {
        return Ok(CatchUp::Reached);
    }
    warn!(
        seen,
        current,
        "the store is older than a revision that a node has seen: was it restored from a backup?"
    );
    Ok(CatchUp::WentBack)
}

/// Returns the id of the store that a stream's revisions belong to.
///
/// A restored etcd at the same addresses has the same cluster id. A stream that goes back to older
/// revisions then gets an id of its own, so that the node does not take it for the stream of a
/// gateway that is behind. The node's next stream has the cluster's id again.
fn store_id(core: &Core, catch_up: CatchUp) -> String {
    let cluster_id = core.replica.client().cluster_id().unwrap_or_default();
    match catch_up {
        CatchUp::Reached => format!("{cluster_id:x}"),
        CatchUp::WentBack => format!("{cluster_id:x}-{:x}", core.ids.next_u128()),
    }
}

/// One node's stream.
struct Watch {
    gateway: Arc<NodeGateway>,
    session: OpenSession,
    node_id: NodeId,
    sent: SentJobs,
    /// The store that the stream's revisions belong to.
    store_id: String,
    /// The revision of the last update; it never decreases.
    revision: u64,
    _open: GaugeGuard,
}

/// Returns the next update, built when the connection is ready for it; nothing after an error.
async fn next_update(
    watch: Option<Watch>,
) -> Option<(Result<AllocationsUpdate, Status>, Option<Watch>)> {
    let mut watch = watch?;
    let ended = loop {
        let due = tokio::select! {
            biased;
            () = watch.session.replaced.cancelled() => break WatchError::Replaced.into(),
            () = watch.gateway.drain.cancelled() => break Error::draining(),
            due = watch.session.due() => due,
        };
        match watch.update(&due) {
            Some(Ok(update)) => return Some((Ok(update), Some(watch))),
            Some(Err(error)) => break error,
            None => {}
        }
    };
    Some((Err(ended.into()), None))
}

impl Watch {
    /// Returns the update; `None`: it was sent already.
    fn update(&mut self, due: &Due) -> Option<Result<AllocationsUpdate, Error>> {
        let snapshot = self.gateway.core.replica.snapshot();
        if let Err(revoked) = revocation::check(&snapshot, self.node_id) {
            return Some(Err(revoked.into()));
        }
        let mut update = match due {
            Due::Full => {
                self.gateway.metrics.full_updates.inc();
                full(&snapshot, self.node_id, &mut self.sent)
            }
            Due::Changed { revision, .. } if *revision <= self.revision => return None,
            Due::Changed {
                revision,
                alloc_ids,
            } => changed(&snapshot, *revision, alloc_ids, &mut self.sent),
        };
        if update.revision < self.revision {
            // The store was restored from a backup: the node has to start a new stream.
            let (seen, applied) = (self.revision, update.revision);
            return Some(Err(WatchError::Behind { seen, applied }.into()));
        }
        self.revision = update.revision;
        update.store_id.clone_from(&self.store_id);
        self.gateway
            .metrics
            .assignments_sent
            .inc_by(update.assignments.len() as u64);
        Some(Ok(update))
    }
}
