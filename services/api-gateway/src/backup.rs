//! Snapshots of etcd's database, streamed to operators, one at a time per gateway.

pub mod slot;

use futures::stream::unfold;
use futures::{Stream, StreamExt as _};
use gateway_core::read_failure;
use proto::v1;
use store::Backup;
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;
use tracing::info;

use crate::gateway::Gateway;

/// Starts a snapshot: a header, then the bytes of the file. It ends when the gateway drains.
///
/// # Errors
/// Another snapshot is streamed, or etcd cannot be reached or refuses.
pub(crate) async fn save(
    gateway: &Gateway,
) -> Result<impl Stream<Item = Result<v1::SnapshotChunk, Status>> + Send + use<>, Status> {
    let slot = gateway.backups.take()?;
    let client = gateway.core.replica.client();
    let min_revision = client.current_revision().await.map_err(read_failure)?;
    let backup = client.backup().await.map_err(read_failure)?;
    info!(min_revision, "snapshot begins");
    let header = v1::SnapshotChunk {
        min_revision,
        data: Vec::new(),
    };
    let header = futures::stream::iter([Ok(header)]);
    let rest = unfold(Some((backup, slot)), next);
    let drain = gateway.drain.clone();
    Ok(header.chain(rest).take_until(drain.cancelled_owned()))
}

type State = Option<(Backup, OwnedSemaphorePermit)>;

async fn next(state: State) -> Option<(Result<v1::SnapshotChunk, Status>, State)> {
    let (mut backup, slot) = state?;
    match backup.next_part().await {
        Ok(Some(data)) => {
            let chunk = v1::SnapshotChunk {
                min_revision: 0,
                data,
            };
            Some((Ok(chunk), Some((backup, slot))))
        }
        Ok(None) => None,
        Err(error) => Some((Err(read_failure(error).into()), None)),
    }
}
