//! Requests that nodes answer: files of allocations, signals, measurements, metadata, a new fingerprint.
//!
//! Every request is sent once. Only signals have an effect that must not be repeated: without an answer their
//! outcome is open, and the status says so.

use std::time::Duration;

use admission::jobs::alloc_node::AllocNode;
use admission::jobs::alloc_request::{AllocTarget, SignalTarget};
use futures::{Stream, StreamExt as _};
use gateway_core::{GaugeGuard, is_unanswered};
use identity::Caller;
use proto::internal::v1::node_operations_client::NodeOperationsClient;
use proto::internal::v1::{
    NodeAllocStatsRequest, NodeApplyMetaRequest, NodeGetFileRequest, NodeGetMetaRequest,
    NodeHostStatsRequest, NodeListFilesRequest, NodeReadFileRequest, NodeRefreshRequest,
    NodeSignalRequest,
};
use proto::v1;
use service_kit::{TracedChannel, request as with_deadline};
use tonic::{Code, Response, Status};
use tracing::info;

use crate::node_call;
use crate::node_calls::NodeCalls;

/// The timeout of answers that need a look at a disk; the connection may be new.
const FILES_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout of a signal: its driver may ask another program.
const SIGNAL_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout of a measurement: half a second, and a container engine that does not answer for some.
const STATS_TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout of a write to the node's disk.
const META_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout of a fingerprint: drivers, CNI plugins and Vault are asked.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(60);

/// Lists a directory.
///
/// # Errors
/// The node cannot be reached, or refuses.
pub async fn list_files(
    calls: &NodeCalls,
    target: AllocTarget,
    caller: &Caller,
    request: v1::ListFilesRequest,
) -> Result<v1::ListFilesResponse, Status> {
    let (mut client, secret) = open(calls, &target.node).await?;
    audit(
        caller,
        &target,
        &request.path,
        "directory of an allocation listed",
    );
    let request = v1::ListFilesRequest {
        alloc_id: target.alloc_id.to_string(),
        ..request
    };
    let request = NodeListFilesRequest {
        request: Some(request),
        secret,
    };
    let asked = with_deadline(request, FILES_TIMEOUT);
    answer(&target.node, "lists files", client.list_files(asked).await)
}

/// Returns the facts of a file.
///
/// # Errors
/// As those of [`list_files`].
pub async fn get_file(
    calls: &NodeCalls,
    target: AllocTarget,
    request: v1::GetFileRequest,
) -> Result<v1::GetFileResponse, Status> {
    let (mut client, secret) = open(calls, &target.node).await?;
    let request = v1::GetFileRequest {
        alloc_id: target.alloc_id.to_string(),
        ..request
    };
    let request = NodeGetFileRequest {
        request: Some(request),
        secret,
    };
    let asked = with_deadline(request, FILES_TIMEOUT);
    answer(&target.node, "lists files", client.get_file(asked).await)
}

/// Relays a file until the node or the caller ends it, or the gateway drains.
///
/// # Errors
/// As those of [`list_files`].
pub async fn read_file(
    calls: &NodeCalls,
    target: AllocTarget,
    caller: &Caller,
    request: v1::ReadFileRequest,
) -> Result<impl Stream<Item = Result<v1::FileChunk, Status>> + Send + use<>, Status> {
    let (mut client, secret) = open(calls, &target.node).await?;
    audit(caller, &target, &request.path, "file of an allocation read");
    let request = v1::ReadFileRequest {
        alloc_id: target.alloc_id.to_string(),
        ..request
    };
    let request = NodeReadFileRequest {
        request: Some(request),
        secret,
    };
    let asked = with_deadline(request, FILES_TIMEOUT);
    let chunks = answer(&target.node, "reads files", client.read_file(asked).await)?;
    let open = GaugeGuard::new(&calls.metrics.file_relays);
    let drain = calls.drain.clone();
    // Pulled by the caller's connection, so a slow caller slows the node down.
    Ok(chunks
        .map(move |chunk| {
            let _open = &open;
            chunk.map_err(|status| node_call::failure(&target.node, &status))
        })
        .take_until(drain.cancelled_owned()))
}

/// Sends a signal to tasks.
///
/// # Errors
/// The node cannot be reached, refuses, or does not answer, which leaves the outcome open.
pub async fn signal(
    calls: &NodeCalls,
    asked: &SignalTarget,
    caller: &Caller,
) -> Result<v1::SignalAllocationResponse, Status> {
    let SignalTarget {
        target,
        task,
        signal,
    } = asked;
    let node = &target.node;
    let (mut client, secret) = open(calls, node).await?;
    info!(%caller, alloc_id = %target.alloc_id, task, signal, "signal asked for");
    let request = v1::SignalAllocationRequest {
        alloc_id: target.alloc_id.to_string(),
        task: task.clone(),
        signal: signal.clone(),
    };
    let request = NodeSignalRequest {
        request: Some(request),
        secret,
    };
    let sent = client.signal(with_deadline(request, SIGNAL_TIMEOUT)).await;
    match sent {
        Err(status) if is_unanswered(&status) => Err(Status::unknown(format!(
            "node {} did not answer ({}): {signal} may have been sent; the events of the tasks tell",
            node.name,
            status.message()
        ))),
        sent => answer(node, "sends signals on request", sent),
    }
}

/// Measures what the tasks of an allocation use.
///
/// # Errors
/// As those of [`list_files`].
pub async fn alloc_stats(
    calls: &NodeCalls,
    target: AllocTarget,
    task: String,
) -> Result<v1::GetAllocationStatsResponse, Status> {
    let (mut client, secret) = open(calls, &target.node).await?;
    let request = v1::GetAllocationStatsRequest {
        alloc_id: target.alloc_id.to_string(),
        task,
    };
    let request = NodeAllocStatsRequest {
        request: Some(request),
        secret,
    };
    let asked = with_deadline(request, STATS_TIMEOUT);
    answer(
        &target.node,
        "measures tasks",
        client.alloc_stats(asked).await,
    )
}

/// Measures what is in use on a node.
///
/// # Errors
/// As those of [`list_files`].
pub async fn host_stats(
    calls: &NodeCalls,
    node: &AllocNode,
) -> Result<v1::GetNodeStatsResponse, Status> {
    let (mut client, secret) = open(calls, node).await?;
    let asked = with_deadline(NodeHostStatsRequest { secret }, STATS_TIMEOUT);
    answer(node, "measures its machine", client.host_stats(asked).await)
}

/// Returns a node's metadata.
///
/// # Errors
/// As those of [`list_files`].
pub async fn get_meta(
    calls: &NodeCalls,
    node: &AllocNode,
) -> Result<v1::GetNodeMetaResponse, Status> {
    let (mut client, secret) = open(calls, node).await?;
    let asked = with_deadline(NodeGetMetaRequest { secret }, META_TIMEOUT);
    answer(node, "has dynamic metadata", client.get_meta(asked).await)
}

/// Changes a node's metadata. Safe to repeat.
///
/// # Errors
/// As those of [`list_files`].
pub async fn apply_meta(
    calls: &NodeCalls,
    node: &AllocNode,
    caller: &Caller,
    request: v1::ApplyNodeMetaRequest,
) -> Result<v1::ApplyNodeMetaResponse, Status> {
    let (mut client, secret) = open(calls, node).await?;
    let set: Vec<&String> = request.set.keys().collect();
    info!(%caller, node_id = %node.id, ?set, unset = ?request.unset, "node metadata changed");
    let request = NodeApplyMetaRequest {
        request: Some(request),
        secret,
    };
    let asked = with_deadline(request, META_TIMEOUT);
    answer(node, "has dynamic metadata", client.apply_meta(asked).await)
}

/// Lets a node look at its machine again. Safe to repeat.
///
/// # Errors
/// As those of [`list_files`].
pub async fn refresh(
    calls: &NodeCalls,
    node: &AllocNode,
    caller: &Caller,
) -> Result<v1::RefreshNodeResponse, Status> {
    let (mut client, secret) = open(calls, node).await?;
    info!(%caller, node_id = %node.id, "fingerprint of a node asked for");
    let asked = with_deadline(NodeRefreshRequest { secret }, REFRESH_TIMEOUT);
    answer(node, "refreshes on request", client.refresh(asked).await)
}

/// Returns a client of the node, and the node's secret.
async fn open(
    calls: &NodeCalls,
    node: &AllocNode,
) -> Result<(NodeOperationsClient<TracedChannel>, String), Status> {
    let client = node_call::client(calls, node).await?;
    Ok((client, node.secret.clone()))
}

/// Logs a look into an allocation's files, which may hold anything.
fn audit(caller: &Caller, target: &AllocTarget, path: &str, what: &str) {
    info!(%caller, alloc_id = %target.alloc_id, path, "{what}");
}

/// Returns the node's answer; `ability` says what older agents lack.
fn answer<T>(
    node: &AllocNode,
    ability: &str,
    answered: Result<Response<T>, Status>,
) -> Result<T, Status> {
    match answered {
        Ok(response) => Ok(response.into_inner()),
        Err(status) if status.code() == Code::Unimplemented => {
            Err(node_call::older_agent(node, ability))
        }
        // Details, such as the fields of an invalid request, stay.
        Err(status) if status.code() == Code::InvalidArgument => Err(status),
        Err(status) => Err(node_call::failure(node, &status)),
    }
}
