//! SIGHUP: the agent looks at its machine again. Its tasks go on.

use service_kit::CancellationToken;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

use crate::grpc::operations::Refresh;

/// Asks for a look at the machine at each SIGHUP, until `ended`.
pub(super) async fn refresh(refreshes: mpsc::Sender<Refresh>, ended: CancellationToken) {
    let mut hangups = match signal(SignalKind::hangup()) {
        Ok(hangups) => hangups,
        Err(error) => {
            warn!(%error, "cannot listen for SIGHUP");
            return;
        }
    };
    loop {
        tokio::select! {
            () = ended.cancelled() => return,
            received = hangups.recv() => if received.is_none() {
                return;
            }
        }
        info!("SIGHUP: looking at the machine again");
        let (answer, answered) = oneshot::channel();
        // Signals that come meanwhile are one.
        if refreshes.send(answer).await.is_err() {
            return;
        }
        tokio::select! {
            () = ended.cancelled() => return,
            changed = answered => if let Ok(changed) = changed {
                info!(?changed, "looked at the machine");
            }
        }
    }
}
