//! Relay of a task's output from its node to the caller.

use std::time::Duration;

use admission::jobs::logs::LogSource;
use futures::{Stream, StreamExt as _};
use gateway_core::{Error, GaugeGuard};
use identity::Role;
use proto::internal::v1::NodeLogsRequest;
use proto::internal::v1::node_files_client::NodeFilesClient;
use proto::v1;
use service_kit::{Transport, request as with_deadline};
use tonic::{Code, Status, Streaming};

use crate::node_gateway::NodeGateway;

/// The timeout until a node answers: it opens a file, and the connection may be new.
const NODE_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
#[error("node {name} cannot be reached at {address}: {reason}")]
struct Unreachable {
    name: String,
    address: String,
    reason: String,
}

impl From<Unreachable> for Error {
    fn from(failure: Unreachable) -> Self {
        Self::new(Code::Unavailable, failure)
    }
}

/// Relays the output at `source` until the node or the caller ends it, or the gateway drains.
///
/// # Errors
/// The node cannot be reached, or refuses.
pub async fn relay(
    gateway: &NodeGateway,
    source: LogSource,
    request: v1::LogsRequest,
) -> Result<impl Stream<Item = Result<v1::LogsChunk, Status>> + Send + use<>, Status> {
    let chunks = ask_node(&gateway.config.transport, &source, request).await?;
    let open = GaugeGuard::new(&gateway.metrics.log_relays);
    let drain = gateway.drain.clone();
    // Pulled by the caller's connection, so a slow caller slows the node down.
    Ok(chunks
        .map(move |chunk| {
            let _open = &open;
            chunk.map_err(|status| interrupted(&source, &status))
        })
        .take_until(drain.cancelled_owned()))
}

async fn ask_node(
    transport: &Transport,
    source: &LogSource,
    request: v1::LogsRequest,
) -> Result<Streaming<v1::LogsChunk>, Status> {
    let channel = transport
        .connect_lazy_to(
            &source.node.address,
            Role::Node,
            &source.node.id.to_string(),
        )
        .map_err(|error| Error::from(unreachable_node(source, error.to_string())))?;
    let request = v1::LogsRequest {
        alloc_id: source.alloc_id.to_string(),
        task: source.task.clone(),
        ..request
    };
    let message = NodeLogsRequest {
        request: Some(request),
        secret: source.node.secret.clone(),
    };
    match NodeFilesClient::new(channel)
        .logs(with_deadline(message, NODE_TIMEOUT))
        .await
    {
        Ok(response) => Ok(response.into_inner()),
        Err(status) => Err(interrupted(source, &status)),
    }
}

/// Converts the status of a node: an unreachable node is `UNAVAILABLE`, and the refusal of a node is
/// passed on.
fn interrupted(source: &LogSource, status: &Status) -> Status {
    match status.code() {
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
            Error::from(unreachable_node(source, status.message().to_owned())).into()
        }
        code => Status::new(
            code,
            format!("node {}: {}", source.node.name, status.message()),
        ),
    }
}

fn unreachable_node(source: &LogSource, reason: String) -> Unreachable {
    let (name, address) = (source.node.name.clone(), source.node.address.clone());
    Unreachable {
        name,
        address,
        reason,
    }
}
