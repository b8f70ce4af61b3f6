//! The node and the tasks of an allocation, for requests that its node answers.

use model::refusal::{Kind, Refusal};
use model::{AllocId, FieldErrors, Node, NodeId, NodeStatus};
use state::{AllocView, Snapshot};

/// A node, as a gateway calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocNode {
    pub id: NodeId,
    pub name: String,
    pub address: String,
    /// Gateways do not dial the address.
    pub dials_out: bool,
    pub secret: String,
}

impl From<&Node> for AllocNode {
    fn from(node: &Node) -> Self {
        Self {
            id: node.id,
            name: node.name.clone(),
            address: node.address.clone(),
            dials_out: node.dials_out,
            secret: node.secret.clone(),
        }
    }
}

/// The reason why the node of an allocation cannot answer a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocRequestRefusal {
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
    #[error(
        "allocation {alloc_id} has not started on its node yet: it has no output; try again later"
    )]
    NotStarted { alloc_id: AllocId },
    #[error("allocation {alloc_id} has ended ({status}): none of its tasks runs any more")]
    Ended {
        alloc_id: AllocId,
        status: &'static str,
    },
    #[error("node {node_id} is gone, and allocation {alloc_id} with it")]
    NodeGone { alloc_id: AllocId, node_id: NodeId },
    #[error("node {name} ({node_id}) is {status}: it cannot be asked until it is back")]
    NodeAway {
        node_id: NodeId,
        name: String,
        status: &'static str,
    },
}

impl Refusal for AllocRequestRefusal {
    fn kind(&self) -> Kind {
        match self {
            Self::Invalid(_) => Kind::Invalid,
            Self::NotStarted { .. } | Self::Ended { .. } | Self::NodeGone { .. } => {
                Kind::Precondition
            }
            Self::NodeAway { .. } => Kind::Unavailable,
        }
    }

    fn field_errors(&self) -> Option<&FieldErrors> {
        match self {
            Self::Invalid(errors) => Some(errors),
            _ => None,
        }
    }
}

impl AllocNode {
    /// Returns the node of an allocation.
    ///
    /// # Errors
    /// It is gone, or away.
    pub(super) fn of(snapshot: &Snapshot, view: &AllocView) -> Result<Self, AllocRequestRefusal> {
        let (alloc_id, node_id) = (view.alloc.id, view.alloc.node_id);
        let node = snapshot
            .node(node_id)
            .ok_or(AllocRequestRefusal::NodeGone { alloc_id, node_id })?;
        Self::reachable(&node.value)
    }

    /// Returns a node.
    ///
    /// # Errors
    /// It is away.
    pub fn reachable(node: &Node) -> Result<Self, AllocRequestRefusal> {
        if is_away(node.status) {
            return Err(AllocRequestRefusal::NodeAway {
                node_id: node.id,
                name: node.name.clone(),
                status: node.status.as_str(),
            });
        }
        Ok(node.into())
    }
}

/// Returns whether a node with this status cannot be reached.
fn is_away(status: NodeStatus) -> bool {
    match status {
        NodeStatus::Initializing | NodeStatus::Ready => false,
        NodeStatus::Disconnected | NodeStatus::Down => true,
    }
}

/// Returns the task of this name; an empty name means the only one.
///
/// # Errors
/// There is none of this name, or the name of one of several is missing.
pub(super) fn choose_task(
    snapshot: &Snapshot,
    view: &AllocView,
    task: &str,
) -> Result<String, FieldErrors> {
    let names = task_names(snapshot, view);
    let mut errors = FieldErrors::default();
    let known = names.join(", ");
    match names.as_slice() {
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
