//! Location of a task's output. The refusals name the fix, unlike "no such file".

use model::AllocId;
use state::{AllocView, Snapshot};

use super::alloc_node::{AllocNode, AllocRequestRefusal, choose_task};

/// The node and task of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSource {
    pub alloc_id: AllocId,
    pub task: String,
    pub node: AllocNode,
}

/// Returns the source of the output of `task`; an empty `task` means the only one.
///
/// # Errors
/// See [`AllocRequestRefusal`].
pub fn locate(
    snapshot: &Snapshot,
    view: &AllocView,
    task: &str,
) -> Result<LogSource, AllocRequestRefusal> {
    let alloc_id = view.alloc.id;
    let task = choose_task(snapshot, view, task)?;
    let started = view
        .client
        .as_ref()
        .is_some_and(|client| client.task_states.contains_key(&task));
    if !started {
        return Err(AllocRequestRefusal::NotStarted { alloc_id });
    }
    Ok(LogSource {
        alloc_id,
        task,
        node: AllocNode::of(snapshot, view)?,
    })
}

#[cfg(test)]
mod tests {
    use model::{AllocClient, NodeStatus, TaskState};
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

    fn ask(reported: &[&str], status: NodeStatus, task: &str) -> Result<LogSource, String> {
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
            (source.task.as_str(), source.node.address.as_str()),
            ("sidecar", "http://127.0.0.1:7201")
        );
        assert_eq!(source.node.secret, "secret-1");
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
