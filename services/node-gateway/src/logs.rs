//! Location of a task's output, and its relay from the node to the caller.
//!
//! [`locate`] is pure. Its refusals name the fix, unlike "no such file".

use std::time::Duration;

use futures::{Stream, StreamExt as _};
use gateway_core::{Error, GaugeGuard};
use identity::Role;
use model::refusal::{Kind, Refusal};
use model::{AllocId, FieldErrors, Indexed, Node, NodeId, NodeStatus};
use proto::internal::v1::NodeLogsRequest;
use proto::internal::v1::node_files_client::NodeFilesClient;
use proto::v1;
use service_kit::{Transport, request as with_deadline};
use state::{AllocView, Snapshot};
use tonic::{Code, Status, Streaming};

use crate::node_gateway::NodeGateway;

/// The timeout until a node answers: it opens a file, and the connection may be new.
const NODE_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why a task's output cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogRefusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    #[error(
        "allocation {alloc_id} has not started on its node yet: it has no output; try again later"
    )]
    NotStarted { alloc_id: AllocId },
    #[error("node {node_id} is gone, and the output of allocation {alloc_id} with it")]
    NodeGone { alloc_id: AllocId, node_id: NodeId },
    #[error("node {name} ({node_id}) is {status}: its output cannot be read until it is back")]
    NodeAway {
        node_id: NodeId,
        name: String,
        status: &'static str,
    },
    #[error("node {name} cannot be reached at {address}: {reason}")]
    Unreachable {
        name: String,
        address: String,
        reason: String,
    },
}

impl Refusal for LogRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid(_) => Kind::Invalid,
            Self::NotStarted { .. } | Self::NodeGone { .. } => Kind::Precondition,
            Self::NodeAway { .. } | Self::Unreachable { .. } => Kind::Unavailable,
        }
    }

    fn field_errors(&self) -> Option<&FieldErrors> {
        match self {
            Self::Invalid(errors) => Some(errors),
            _ => None,
        }
    }
}

gateway_core::from_refusals!(LogRefusal);

/// The node and task of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub alloc_id: AllocId,
    pub task: String,
    pub node_id: NodeId,
    pub node_name: String,
    pub address: String,
    pub secret: String,
}

/// Returns the source of the output of `task`; an empty `task` means the only one.
///
/// # Errors
/// See [`LogRefusal`].
pub fn locate(snapshot: &Snapshot, view: &AllocView, task: &str) -> Result<Source, LogRefusal> {
    let (alloc_id, node_id) = (view.alloc.id, view.alloc.node_id);
    let task = choose_task(&task_names(snapshot, view), task)?;
    let started = view
        .client
        .as_ref()
        .is_some_and(|client| client.task_states.contains_key(&task));
    if !started {
        return Err(LogRefusal::NotStarted { alloc_id });
    }
    let node = snapshot
        .node(node_id)
        .ok_or(LogRefusal::NodeGone { alloc_id, node_id })?;
    check_status(node)?;
    Ok(Source {
        alloc_id,
        task,
        node_id,
        node_name: node.value.name.clone(),
        address: node.value.address.clone(),
        secret: node.value.secret.clone(),
    })
}

/// Returns the tasks of an allocation, those that its node reports and those of its group, ordered
/// by name.
fn task_names(snapshot: &Snapshot, view: &AllocView) -> Vec<String> {
    let reported = view
        .client
        .iter()
        .flat_map(|client| client.task_states.keys().cloned());
    let job = snapshot.job_version(&view.alloc.job_key(), view.alloc.job_version);
    let group = job.and_then(|job| job.value.task_group(&view.alloc.task_group));
    let declared = group
        .into_iter()
        .flat_map(|group| group.tasks.iter().map(|task| task.name.clone()));
    let mut names: Vec<String> = reported.chain(declared).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Checks that the allocation has a task.
///
/// # Errors
/// It has none of this name.
pub(crate) fn check_task(
    snapshot: &Snapshot,
    view: &AllocView,
    task: &str,
) -> Result<(), FieldErrors> {
    choose_task(&task_names(snapshot, view), task).map(|_| ())
}

fn choose_task(names: &[String], task: &str) -> Result<String, FieldErrors> {
    let mut errors = FieldErrors::default();
    let known = names.join(", ");
    match names {
        [only] if task.is_empty() => return Ok(only.clone()),
        _ if task.is_empty() => {
            errors.push(
                "task",
                format!("missing: the allocation has several; want one of {known}"),
            );
        }
        _ if names.iter().any(|name| name == task) => return Ok(task.to_owned()),
        _ => errors.push(
            "task",
            format!("the allocation has no task {task:?}: want one of {known}"),
        ),
    }
    Err(errors)
}

fn check_status(node: &Indexed<Node>) -> Result<(), LogRefusal> {
    if !is_away(node.value.status) {
        return Ok(());
    }
    Err(LogRefusal::NodeAway {
        node_id: node.value.id,
        name: node.value.name.clone(),
        status: node.value.status.as_str(),
    })
}

/// Returns whether a node with this status cannot be reached.
pub(crate) fn is_away(status: NodeStatus) -> bool {
    match status {
        NodeStatus::Initializing | NodeStatus::Ready => false,
        NodeStatus::Disconnected | NodeStatus::Down => true,
    }
}

/// Relays the output at `source` until the node or the caller ends it, or the gateway drains.
///
/// # Errors
/// The node cannot be reached, or refuses.
pub async fn relay(
    gateway: &NodeGateway,
    source: Source,
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
    source: &Source,
    request: v1::LogsRequest,
) -> Result<Streaming<v1::LogsChunk>, Status> {
    let channel = transport
        .connect_lazy_to(&source.address, Role::Node, &source.node_id.to_string())
        .map_err(|error| Error::from(unreachable_node(source, error.to_string())))?;
    let request = v1::LogsRequest {
        alloc_id: source.alloc_id.to_string(),
        task: source.task.clone(),
        ..request
    };
    let message = NodeLogsRequest {
        request: Some(request),
        secret: source.secret.clone(),
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
fn interrupted(source: &Source, status: &Status) -> Status {
    match status.code() {
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
            Error::from(unreachable_node(source, status.message().to_owned())).into()
        }
        code => Status::new(
            code,
            format!("node {}: {}", source.node_name, status.message()),
        ),
    }
}

fn unreachable_node(source: &Source, reason: String) -> LogRefusal {
    let (name, address) = (source.node_name.clone(), source.address.clone());
    LogRefusal::Unreachable {
        name,
        address,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use model::{AllocClient, TaskState};
    use test_kit::{Stored, builders};

    use super::*;

    /// A job of two tasks with one allocation, whose node has reported the tasks `reported`.
    fn fixture(reported: &[&str], status: NodeStatus) -> (Stored, AllocId) {
        let mut stored = Stored::default();
        let mut job = builders::service("web", 1);
        job.task_groups[0].tasks.push(builders::task("sidecar"));
        stored.put_job(&job);
        let mut node = builders::node(1);
        node.status = status;
        node.address = "http://127.0.0.1:7201".into();
        stored.put_node(&node);
        let alloc = builders::allocation(1, &job, node.id);
        stored.put_alloc(&alloc);
        let states = reported
            .iter()
            .map(|task| ((*task).to_owned(), TaskState::default()));
        let client = AllocClient {
            task_states: states.collect(),
            ..AllocClient::default()
        };
        stored.put_client(alloc.id, client);
        (stored, alloc.id)
    }

    fn ask(reported: &[&str], status: NodeStatus, task: &str) -> Result<Source, String> {
        let (stored, alloc_id) = fixture(reported, status);
        let snapshot = stored.snapshot();
        let view = snapshot.alloc(alloc_id).unwrap();
        locate(&snapshot, view, task).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn the_output_of_a_started_task_is_where_its_node_is() {
        let both = ["server", "sidecar"];
        let source = ask(&both, NodeStatus::Ready, "sidecar").unwrap();
        assert_eq!(
            (source.task.as_str(), source.address.as_str()),
            ("sidecar", "http://127.0.0.1:7201")
        );
        assert_eq!(source.secret, "secret-1");
        assert!(ask(&both, NodeStatus::Initializing, "server").is_ok());
    }

    #[test]
    fn a_refusal_names_the_reason() {
        let both = ["server", "sidecar"];
        for (reported, status, task, why) in [
            (
                &both[..],
                NodeStatus::Ready,
                "db",
                "no task \"db\": want one of server, sidecar",
            ),
            (
                &both[..],
                NodeStatus::Ready,
                "",
                "want one of server, sidecar",
            ),
            (
                &[][..],
                NodeStatus::Ready,
                "server",
                "has not started on its node yet",
            ),
            (
                &["sidecar"][..],
                NodeStatus::Ready,
                "server",
                "has not started on its node yet",
            ),
            (&both[..], NodeStatus::Down, "server", "n1"),
            (
                &both[..],
                NodeStatus::Disconnected,
                "server",
                "is disconnected",
            ),
        ] {
            let refusal = ask(reported, status, task).unwrap_err();
            assert!(
                refusal.contains(why),
                "{reported:?}, {status:?}, {task:?}: {refusal}"
            );
        }
    }

    #[test]
    fn the_output_is_gone_with_its_node() {
        let (mut stored, alloc_id) = fixture(&["server"], NodeStatus::Ready);
        stored.delete(state::Key::Node(builders::node(1).id));
        let snapshot = stored.snapshot();
        let refusal = locate(&snapshot, snapshot.alloc(alloc_id).unwrap(), "server").unwrap_err();
        assert!(refusal.to_string().contains("is gone"), "{refusal}");
    }
}
