//! Finds out where a task's output is, and whether it can be had.
//!
//! Pure; [`crate::grpc`] relays it. The refusals say what to do, because "no such file" would not.

use model::{AllocId, FieldErrors, Indexed, Node, NodeId, NodeStatus};
use state::{AllocView, Snapshot};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
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

/// Where to ask for a task's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub alloc_id: AllocId,
    pub task: String,
    pub node_name: String,
    pub address: String,
    pub secret: String,
}

/// Returns where the output of `task` is; an empty `task` means the only one.
///
/// # Errors
/// See [`Refusal`].
pub fn locate(snapshot: &Snapshot, view: &AllocView, task: &str) -> Result<Source, Refusal> {
    let (alloc_id, node_id) = (view.alloc.id, view.alloc.node_id);
    let task = choose_task(&task_names(snapshot, view), task)?;
    let started = view
        .client
        .as_ref()
        .is_some_and(|client| client.task_states.contains_key(&task));
    if !started {
        return Err(Refusal::NotStarted { alloc_id });
    }
    let node = snapshot
        .node(node_id)
        .ok_or(Refusal::NodeGone { alloc_id, node_id })?;
    check_status(node)?;
    Ok(Source {
        alloc_id,
        task,
        node_name: node.value.name.clone(),
        address: node.value.address.clone(),
        secret: node.value.secret.clone(),
    })
}

/// Returns the tasks that an allocation has: those that its node tells of and those of its group,
/// ordered by name.
fn task_names(snapshot: &Snapshot, view: &AllocView) -> Vec<String> {
    let told = view
        .client
        .iter()
        .flat_map(|client| client.task_states.keys().cloned());
    let job = snapshot.job_version(&view.alloc.job_key(), view.alloc.job_version);
    let group = job.and_then(|job| job.value.task_group(&view.alloc.task_group));
    let asked = group
        .into_iter()
        .flat_map(|group| group.tasks.iter().map(|task| task.name.clone()));
    let mut names: Vec<String> = told.chain(asked).collect();
    names.sort_unstable();
    names.dedup();
    names
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

fn check_status(node: &Indexed<Node>) -> Result<(), Refusal> {
    match node.value.status {
        NodeStatus::Initializing | NodeStatus::Ready => Ok(()),
        status @ (NodeStatus::Disconnected | NodeStatus::Down) => Err(Refusal::NodeAway {
            node_id: node.value.id,
            name: node.value.name.clone(),
            status: status.as_str(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use model::{AllocClient, TaskState};
    use test_kit::builders;

    use super::*;
    use crate::testing::Stored;

    /// A job of two tasks with one allocation; `told` are the tasks that the node has told of.
    fn world(told: &[&str], status: NodeStatus) -> (Stored, AllocId) {
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
        let states = told
            .iter()
            .map(|task| ((*task).to_owned(), TaskState::default()));
        let client = AllocClient {
            task_states: states.collect(),
            ..AllocClient::default()
        };
        stored.put_client(alloc.id, client);
        (stored, alloc.id)
    }

    fn ask(told: &[&str], status: NodeStatus, task: &str) -> Result<Source, String> {
        let (stored, alloc_id) = world(told, status);
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
    fn what_stands_in_the_way_is_explained() {
        let both = ["server", "sidecar"];
        for (told, status, task, why) in [
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
            let refusal = ask(told, status, task).unwrap_err();
            assert!(
                refusal.contains(why),
                "{told:?}, {status:?}, {task:?}: {refusal}"
            );
        }
    }

    #[test]
    fn a_node_that_is_gone_took_the_output_with_it() {
        let (mut stored, alloc_id) = world(&["server"], NodeStatus::Ready);
        stored.delete(state::Key::Node(builders::node(1).id));
        let snapshot = stored.snapshot();
        let refusal = locate(&snapshot, snapshot.alloc(alloc_id).unwrap(), "server").unwrap_err();
        assert!(refusal.to_string().contains("is gone"), "{refusal}");
    }
}
