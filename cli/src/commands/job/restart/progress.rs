//! Progress of one allocation's restart or replacement, from the gateway's list.

use std::collections::BTreeMap;

use proto::v1;

use crate::alloc_state::has_ended;

/// A restart that its node has accepted, or a stop that is stored.
#[derive(Clone, Debug)]
pub(super) struct Started {
    pub(super) alloc_id: String,
    /// Restarted task -> its state before.
    tasks: BTreeMap<String, v1::TaskState>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It runs again; names the new run.
    Done(String),
    Failed(String),
    Waiting,
}

impl Started {
    /// `alloc` is the state before the restart of `tasks`.
    pub(super) fn new(alloc: &v1::Allocation, tasks: Vec<String>) -> Self {
        let tasks = tasks.into_iter().map(|task| {
            let before = alloc.task_states.get(&task).cloned().unwrap_or_default();
            (task, before)
        });
        Self {
            alloc_id: alloc.id.clone(),
            tasks: tasks.collect(),
        }
    }
}

/// Tells whether the tasks run again in place. Start times are comparable: the same node sets them.
pub(super) fn of_restart(started: &Started, now: &[v1::Allocation]) -> Progress {
    let Some(alloc) = find(now, &started.alloc_id) else {
        return gone();
    };
    let mut is_complete = true;
    for (task, before) in &started.tasks {
        let state = alloc.task_states.get(task).cloned().unwrap_or_default();
        let has_started = state.started_at_ns > before.started_at_ns;
        if state.state == "dead" && state.failed && (has_started || !before.failed) {
            return Progress::Failed(format!("task {task:?} failed; its events tell why"));
        }
        // A task that ended by itself meanwhile has run, too.
        is_complete &= has_started;
    }
    if is_complete {
        let names: Vec<&str> = started.tasks.keys().map(String::as_str).collect();
        return Progress::Done(format!("restarted {}", names.join(", ")));
    }
    if has_ended(alloc) {
        let status = &alloc.client_status;
        return Progress::Failed(format!("it ended ({status}) instead of running again"));
    }
    Progress::Waiting
}

/// Tells whether the replacement of a stopped allocation runs.
pub(super) fn of_replacement(started: &Started, now: &[v1::Allocation]) -> Progress {
    let Some(alloc) = find(now, &started.alloc_id) else {
        return gone();
    };
    if alloc.next_alloc_id.is_empty() {
        return Progress::Waiting;
    }
    let Some(next) = find(now, &alloc.next_alloc_id) else {
        return Progress::Waiting;
    };
    let short = next.id.get(..8).unwrap_or(&next.id);
    match next.client_status.as_str() {
        "running" => Progress::Done(format!("replaced by {short} on node {}", next.node_name)),
        _ if has_ended(next) => {
            let status = &next.client_status;
            Progress::Failed(format!("its replacement {short} ended ({status})"))
        }
        _ => Progress::Waiting,
    }
}

fn find<'a>(now: &'a [v1::Allocation], id: &str) -> Option<&'a v1::Allocation> {
    now.iter().find(|alloc| alloc.id == id)
}

fn gone() -> Progress {
    Progress::Failed("it has been garbage collected".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An allocation with one task: client status, the task's state and start.
    fn alloc(status: &str, state: &str, started_at_ns: u64) -> v1::Allocation {
        let task = v1::TaskState {
            state: state.to_owned(),
            failed: status == "failed",
            started_at_ns,
            ..v1::TaskState::default()
        };
        v1::Allocation {
            id: "8a3f2c1e-1".to_owned(),
            client_status: status.to_owned(),
            task_states: [("server".to_owned(), task)].into(),
            ..v1::Allocation::default()
        }
    }

    #[test]
    fn a_restart_is_done_once_the_task_started_after_it() {
        let before = alloc("running", "running", 5);
        let started = Started::new(&before, vec!["server".to_owned()]);
        let look = |now| of_restart(&started, &[now]);
        assert_eq!(look(before.clone()), Progress::Waiting, "an old report");
        assert_eq!(look(alloc("pending", "pending", 5)), Progress::Waiting);
        let done = Progress::Done("restarted server".to_owned());
        assert_eq!(look(alloc("running", "running", 9)), done);
        assert_eq!(look(alloc("complete", "dead", 9)), done, "a short task");
        for now in [
            alloc("failed", "dead", 9),
            alloc("failed", "dead", 5),
            alloc("complete", "dead", 5),
        ] {
            let progress = look(now.clone());
            assert!(matches!(progress, Progress::Failed(_)), "{now:?}");
        }
        assert!(matches!(of_restart(&started, &[]), Progress::Failed(_)));
    }

    #[test]
    fn a_replacement_has_to_run() {
        let mut old = alloc("running", "running", 5);
        let started = Started::new(&old, Vec::new());
        let look = |now: &[v1::Allocation]| of_replacement(&started, now);
        assert_eq!(look(&[old.clone()]), Progress::Waiting);
        old.next_alloc_id = "11112222-3".to_owned();
        let next = |status: &str| v1::Allocation {
            id: "11112222-3".to_owned(),
            node_name: "n1".to_owned(),
            ..alloc(status, "running", 1)
        };
        assert_eq!(look(&[old.clone()]), Progress::Waiting);
        assert_eq!(look(&[old.clone(), next("pending")]), Progress::Waiting);
        let done = Progress::Done("replaced by 11112222 on node n1".to_owned());
        assert_eq!(look(&[old.clone(), next("running")]), done);
        let failed = look(&[old, next("failed")]);
        assert!(matches!(failed, Progress::Failed(_)), "{failed:?}");
    }
}
