//! Requests about the node itself: its metadata, and a new fingerprint.

use fingerprint::meta;
use proto::v1;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::oneshot;
use tonic::Status;
use tracing::info;

use super::operations::Operations;
use crate::node_meta::MetaError;

/// Returns the node's metadata.
pub(super) fn get_meta(operations: &Operations) -> v1::NodeMeta {
    let (fixed, dynamic) = (operations.meta.fixed(), operations.meta.dynamic());
    let removed = dynamic.iter().filter(|(_, value)| value.is_none());
    v1::NodeMeta {
        merged: meta::merge(fixed, &dynamic).into_iter().collect(),
        r#static: fixed.clone().into_iter().collect(),
        removed: removed.map(|(name, _)| name.clone()).collect(),
        dynamic: dynamic
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect(),
    }
}

/// Changes the node's dynamic metadata, and returns all of it.
///
/// # Errors
/// It would be too large, or cannot be stored.
pub(super) async fn apply_meta(
    operations: &Operations,
    request: v1::ApplyNodeMetaRequest,
) -> Result<v1::NodeMeta, Status> {
    let (meta, context) = (operations.meta.clone(), operations.context.clone());
    let set = request.set.into_iter().collect();
    // A caller that goes does not interrupt it between the disk and memory.
    let applying = tokio::spawn(async move {
        let state = &context.tasks.state;
        meta.apply(state, set, &request.unset).await
    });
    let applied = applying
        .await
        .map_err(|error| Status::internal(format!("the change was interrupted: {error}")))?;
    match applied {
        Ok(()) => {
            info!("dynamic metadata applied");
            Ok(get_meta(operations))
        }
        Err(error @ MetaError::TooLarge(_)) => {
            Err(proto::status::invalid_field("set", error.to_string()))
        }
        Err(error @ MetaError::NotStored) => Err(Status::internal(error.to_string())),
    }
}

/// Looks at the machine again, and returns the parts of the node's record that have changed.
///
/// # Errors
/// Too many requests wait already, the node is simulated, or its agent is ending.
pub(super) async fn refresh(operations: &Operations) -> Result<Vec<String>, Status> {
    let (answer, answered) = oneshot::channel();
    operations
        .refreshes
        .try_send(answer)
        .map_err(|error| match error {
            TrySendError::Full(_) => Status::resource_exhausted(
                "the node has other requests to look at its machine; try again later",
            ),
            TrySendError::Closed(_) => Status::failed_precondition(
                "the node does not look at its machine: it is simulated, or its agent is ending",
            ),
        })?;
    let changed = answered.await;
    let changed = changed.map_err(|_| Status::unavailable("the node's agent is ending; retry"))?;
    Ok(changed.into_iter().map(str::to_owned).collect())
}
