//! The node and the tasks of an allocation, for requests that its node answers.

use model::{FieldErrors, Node, NodeId, NodeStatus};
use state::{AllocView, Snapshot};

/// A node, as a gateway calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocNode {
    pub id: NodeId,
    pub name: String,
    pub address: String,
    pub secret: String,
}

impl AllocNode {
    pub(super) fn new(node: &Node) -> Self {
        Self {
            id: node.id,
            name: node.name.clone(),
            address: node.address.clone(),
            secret: node.secret.clone(),
        }
    }
}

/// Returns whether a node with this status cannot be reached.
pub(super) fn is_away(status: NodeStatus) -> bool {
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
