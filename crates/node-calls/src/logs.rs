//! Relay of a task's output from its node to the caller.

use std::time::Duration;

use admission::jobs::logs::LogSource;
use futures::{Stream, StreamExt as _};
use gateway_core::GaugeGuard;
use proto::internal::v1::NodeLogsRequest;
use proto::v1;
use service_kit::request as with_deadline;
use tonic::{Status, Streaming};

use crate::node_call;
use crate::node_calls::NodeCalls;

/// The timeout until a node answers: it opens a file, and the connection may be new.
const NODE_TIMEOUT: Duration = Duration::from_secs(5);

/// Relays the output at `source` until the node or the caller ends it, or the gateway drains.
///
/// # Errors
/// The node cannot be reached, or refuses.
pub async fn relay(
    calls: &NodeCalls,
    source: LogSource,
    request: v1::LogsRequest,
) -> Result<impl Stream<Item = Result<v1::LogsChunk, Status>> + Send + use<>, Status> {
    let chunks = ask_node(calls, &source, request).await?;
    let open = GaugeGuard::new(&calls.metrics.log_relays);
    let drain = calls.drain.clone();
    // Pulled by the caller's connection, so a slow caller slows the node down.
    Ok(chunks
        .map(move |chunk| {
            let _open = &open;
            chunk.map_err(|status| node_call::failure(&source.node, &status))
        })
        .take_until(drain.cancelled_owned()))
}

async fn ask_node(
    calls: &NodeCalls,
    source: &LogSource,
    request: v1::LogsRequest,
) -> Result<Streaming<v1::LogsChunk>, Status> {
    let mut client = node_call::client(calls, &source.node).await?;
    let request = v1::LogsRequest {
        alloc_id: source.alloc_id.to_string(),
        task: source.task.clone(),
        ..request
    };
    let message = NodeLogsRequest {
        request: Some(request),
        secret: source.node.secret.clone(),
    };
    match client.logs(with_deadline(message, NODE_TIMEOUT)).await {
        Ok(response) => Ok(response.into_inner()),
        Err(status) => Err(node_call::failure(&source.node, &status)),
    }
}
