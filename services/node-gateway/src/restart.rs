//! Restart of tasks in place: the node of the allocation, and the request to it.
//!
//! [`locate`] is pure. An answer that does not come leaves the outcome open, so it has a code of its
//! own: a caller that retried would restart the tasks twice.

use std::time::Duration;

use gateway_core::Error;
use identity::Role;
use model::refusal::{Kind, Refusal};
use model::{AllocId, FieldErrors, NodeId};
use proto::internal::v1::NodeRestartRequest;
use proto::internal::v1::node_files_client::NodeFilesClient;
use service_kit::request as with_deadline;
use state::{AllocView, Snapshot};
use tonic::{Code, Status};

use crate::logs::{check_task, is_away};
use crate::node_gateway::NodeGateway;

/// The timeout of the node's answer: it stores the restart, and the connection may be new.
const NODE_TIMEOUT: Duration = Duration::from_secs(10);

/// The reason why tasks cannot be restarted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestartRefusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    #[error("allocation {alloc_id} has ended ({status}): no task of it can be restarted")]
    Ended {
        alloc_id: AllocId,
        status: &'static str,
    },
    #[error("node {node_id} is gone, and the tasks of allocation {alloc_id} with it")]
    NodeGone { alloc_id: AllocId, node_id: NodeId },
    #[error("node {name} ({node_id}) is {status}: its tasks cannot be restarted until it is back")]
    NodeAway {
        node_id: NodeId,
        name: String,
        status: &'static str,
    },
    #[error("node {name} cannot be reached at {address}, so nothing was restarted: {reason}")]
    Unreachable {
        name: String,
        address: String,
        reason: String,
    },
}

impl Refusal for RestartRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid(_) => Kind::Invalid,
            Self::Ended { .. } | Self::NodeGone { .. } => Kind::Precondition,
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

gateway_core::from_refusals!(RestartRefusal);

/// A request to the node of an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub alloc_id: AllocId,
    pub node_id: NodeId,
    pub task: String,
    pub all_tasks: bool,
    pub node_name: String,
    pub address: String,
    pub secret: String,
}

/// Returns the request for a restart of `task`; an empty `task` means all running tasks, or with
/// `all_tasks` also those that have ended.
///
/// # Errors
/// See [`RestartRefusal`].
pub fn locate(
    snapshot: &Snapshot,
    view: &AllocView,
    task: &str,
    all_tasks: bool,
) -> Result<Target, RestartRefusal> {
    let (alloc_id, node_id) = (view.alloc.id, view.alloc.node_id);
    if !task.is_empty() {
        if all_tasks {
            let mut errors = FieldErrors::default();
            errors.push("task", "excludes all_tasks: name one task, or restart all");
            return Err(errors.into());
        }
        check_task(snapshot, view, task)?;
    }
    if view.is_terminal() {
        return Err(RestartRefusal::Ended {
            alloc_id,
            status: view.client_status().as_str(),
        });
    }
    let node = snapshot
        .node(node_id)
        .ok_or(RestartRefusal::NodeGone { alloc_id, node_id })?;
    if is_away(node.value.status) {
        return Err(RestartRefusal::NodeAway {
            node_id,
            name: node.value.name.clone(),
            status: node.value.status.as_str(),
        });
    }
    Ok(Target {
        alloc_id,
        node_id,
        task: task.to_owned(),
        all_tasks,
        node_name: node.value.name.clone(),
        address: node.value.address.clone(),
        secret: node.value.secret.clone(),
    })
}

/// Asks the node to restart the tasks; returns their names once the node has stored the restart.
///
/// # Errors
/// The node cannot be reached, refuses, or does not answer, which leaves the outcome open.
pub async fn restart(gateway: &NodeGateway, target: &Target) -> Result<Vec<String>, Status> {
    let unreachable = |reason: String| {
        Error::from(RestartRefusal::Unreachable {
            name: target.node_name.clone(),
            address: target.address.clone(),
            reason,
        })
    };
    let transport = &gateway.config.transport;
    let channel = transport
        .connect_lazy_to(&target.address, Role::Node, &target.node_id.to_string())
        .map_err(|error| unreachable(error.to_string()))?;
    let message = NodeRestartRequest {
        alloc_id: target.alloc_id.to_string(),
        task: target.task.clone(),
        all_tasks: target.all_tasks,
        secret: target.secret.clone(),
    };
    let asked = with_deadline(message, NODE_TIMEOUT);
    let status = match NodeFilesClient::new(channel).restart(asked).await {
        Ok(response) => return Ok(response.into_inner().tasks),
        Err(status) => status,
    };
    let name = &target.node_name;
    Err(match status.code() {
        Code::Unavailable if is_connect_error(&status) => {
            unreachable(status.message().to_owned()).into()
        }
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
            Status::unknown(format!(
                "node {name} did not answer ({}): the tasks of allocation {} may have been restarted; \
                 their events tell",
                status.message(),
                target.alloc_id
            ))
        }
        // Of an older node, which lacks the call.
        Code::Unimplemented => Status::failed_precondition(format!(
            "node {name} runs an older agent that cannot restart tasks on request: upgrade it, or \
             stop the allocation"
        )),
        Code::InvalidArgument => status,
        code => Status::new(code, format!("node {name}: {}", status.message())),
    })
}

/// Returns whether the connection was never established, so that the node got no request.
fn is_connect_error(status: &Status) -> bool {
    let mut next = std::error::Error::source(status);
    while let Some(cause) = next {
        if cause.is::<tonic::ConnectError>() {
            return true;
        }
        next = cause.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use model::{ClientStatus, NodeStatus};
    use test_kit::{Stored, builders};

    use super::*;

    fn ask(
        client: ClientStatus,
        node_status: NodeStatus,
        (task, all_tasks): (&str, bool),
    ) -> Result<Target, String> {
        let mut stored = Stored::default();
        let job = builders::service("web", 1);
        stored.put_job(&job);
        let mut node = builders::node(1);
        node.status = node_status;
        stored.put_node(&node);
        let alloc = builders::allocation(1, &job, node.id);
        stored.put_alloc(&alloc);
        stored.put_status(alloc.id, client);
        let snapshot = stored.snapshot();
        let view = snapshot.alloc(alloc.id).unwrap();
        locate(&snapshot, view, task, all_tasks).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_running_allocation_is_restarted_by_its_node() {
        for asked in [("", false), ("", true), ("server", false)] {
            let target = ask(ClientStatus::Running, NodeStatus::Ready, asked).unwrap();
            assert_eq!((target.task.as_str(), target.all_tasks), asked);
            assert_eq!(target.secret, "secret-1");
        }
    }

    #[test]
    fn a_refusal_names_the_reason() {
        use {ClientStatus as Client, NodeStatus as Node};
        let running = ("", false);
        for (client, node, asked, why) in [
            (Client::Failed, Node::Ready, running, "has ended (failed)"),
            (Client::Running, Node::Down, running, "is down"),
            (
                Client::Running,
                Node::Disconnected,
                running,
                "is disconnected",
            ),
            (
                Client::Running,
                Node::Ready,
                ("db", false),
                "want one of server",
            ),
            (
                Client::Running,
                Node::Ready,
                ("server", true),
                "excludes all_tasks",
            ),
        ] {
            let refusal = ask(client, node, asked).unwrap_err();
            assert!(refusal.contains(why), "{asked:?}: {refusal}");
        }
    }
}
