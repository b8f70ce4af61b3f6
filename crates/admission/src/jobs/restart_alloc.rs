//! Requests to the node of an allocation: the restart of its tasks in place, a command beside one, the
//! states of its checks.

use model::AllocId;
use model::RestartScope;
use state::{AllocView, Snapshot};

use super::alloc_node::{AllocNode, AllocRequestRefusal, choose_task};

/// A request to the node of an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestartTarget {
    pub alloc_id: AllocId,
    pub scope: RestartScope,
    pub node: AllocNode,
}

/// Returns the request for the states of an allocation's checks; `None`: it has ended, and has none.
///
/// # Errors
/// Its node is gone, or away.
pub fn locate_checks(
    snapshot: &Snapshot,
    view: &AllocView,
) -> Result<Option<RestartTarget>, AllocRequestRefusal> {
    if view.is_client_terminal() {
        return Ok(None);
    }
    to_node(snapshot, view, RestartScope::Running).map(Some)
}

/// Returns the request for a restart of `task`; an empty `task` means all running tasks, or with
/// `all_tasks` also those that have ended.
///
/// # Errors
/// See [`AllocRequestRefusal`].
pub fn locate(
    snapshot: &Snapshot,
    view: &AllocView,
    task: &str,
    all_tasks: bool,
) -> Result<RestartTarget, AllocRequestRefusal> {
    let alloc_id = view.alloc.id;
    let scope = RestartScope::new(task, all_tasks)?;
    if let RestartScope::Task(task) = &scope {
        choose_task(snapshot, view, task)?;
    }
    if view.is_terminal() {
        return Err(AllocRequestRefusal::Ended {
            alloc_id,
            status: view.client_status().as_str(),
        });
    }
    to_node(snapshot, view, scope)
}

/// Returns the node to ask for a command beside `task`, and the task's name; an empty `task` means the
/// only one.
///
/// # Errors
/// See [`AllocRequestRefusal`].
pub fn locate_task(
    snapshot: &Snapshot,
    view: &AllocView,
    task: &str,
) -> Result<(RestartTarget, String), AllocRequestRefusal> {
    let task = choose_task(snapshot, view, task)?;
    if view.is_client_terminal() {
        return Err(AllocRequestRefusal::Ended {
            alloc_id: view.alloc.id,
            status: view.client_status().as_str(),
        });
    }
    let target = to_node(snapshot, view, RestartScope::Task(task.clone()))?;
    Ok((target, task))
}

fn to_node(
    snapshot: &Snapshot,
    view: &AllocView,
    scope: RestartScope,
) -> Result<RestartTarget, AllocRequestRefusal> {
    Ok(RestartTarget {
        alloc_id: view.alloc.id,
        scope,
        node: AllocNode::of(snapshot, view)?,
    })
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
    ) -> Result<RestartTarget, String> {
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
            assert_eq!(target.scope.to_request(), asked);
            assert_eq!(target.node.secret, "secret-1");
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
