//! Requests that the node of an allocation answers with files, measurements, signals and actions.

use model::job::TaskAction;
use model::signal::SIGNALS;
use model::{AllocId, FieldErrors};
use state::{AllocView, Snapshot};
use suggest::nearest;

use super::alloc_node::{AllocNode, AllocRequestRefusal, choose_task};
use super::restart_alloc::{RestartTarget, locate_task};

/// Source: Nomad's default.
const DEFAULT_SIGNAL: &str = "SIGKILL";

/// An allocation and its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocTarget {
    pub alloc_id: AllocId,
    pub node: AllocNode,
}

/// A signal to tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalTarget {
    pub target: AllocTarget,
    /// Empty: all running tasks.
    pub task: String,
    /// As in `SIGHUP`.
    pub signal: String,
}

/// Returns the node that has the files of an allocation, also of one that has ended.
///
/// # Errors
/// The node is gone, or away.
pub fn locate_files(
    snapshot: &Snapshot,
    view: &AllocView,
) -> Result<AllocTarget, AllocRequestRefusal> {
    Ok(AllocTarget {
        alloc_id: view.alloc.id,
        node: AllocNode::of(snapshot, view)?,
    })
}

/// Returns the node to ask what the tasks of an allocation use; an empty `task` means all.
///
/// # Errors
/// See [`AllocRequestRefusal`].
pub fn locate_stats(
    snapshot: &Snapshot,
    view: &AllocView,
    task: &str,
) -> Result<AllocTarget, AllocRequestRefusal> {
    if !task.is_empty() {
        choose_task(snapshot, view, task)?;
    }
    locate_live(snapshot, view)
}

/// Returns the signal to send; an empty `task` means all running tasks, an empty `signal` the default.
///
/// # Errors
/// See [`AllocRequestRefusal`].
pub fn locate_signal(
    snapshot: &Snapshot,
    view: &AllocView,
    task: &str,
    signal: &str,
) -> Result<SignalTarget, AllocRequestRefusal> {
    let signal = read_signal(signal)?;
    if !task.is_empty() {
        choose_task(snapshot, view, task)?;
    }
    Ok(SignalTarget {
        target: locate_live(snapshot, view)?,
        task: task.to_owned(),
        signal: signal.to_owned(),
    })
}

/// Returns the node and task of a command, and the command: `command` itself, or that of the task's `action`.
///
/// # Errors
/// See [`AllocRequestRefusal`].
pub fn locate_command(
    snapshot: &Snapshot,
    view: &AllocView,
    task: &str,
    action: &str,
    command: Vec<String>,
) -> Result<(RestartTarget, String, Vec<String>), AllocRequestRefusal> {
    if action.is_empty() {
        let (target, task) = locate_task(snapshot, view, task)?;
        return Ok((target, task, command));
    }
    let mut errors = FieldErrors::default();
    if !command.is_empty() {
        errors.push(
            "action",
            "excludes `command`: the job has the action's command",
        );
        return Err(errors.into());
    }
    let job = snapshot.job_version(&view.alloc.job_key(), view.alloc.job_version);
    let group = job.and_then(|job| job.value.task_group(&view.alloc.task_group));
    let tasks = group.map_or(&[][..], |group| &group.tasks);
    let has = |it: &&TaskAction| it.name == action;
    let named: Vec<&str> = tasks
        .iter()
        .filter(|it| it.actions.iter().any(|it| has(&it)))
        .map(|it| it.name.as_str())
        .collect();
    // An action that one task has needs no name of the task.
    let task = match named[..] {
        [only] if task.is_empty() => only,
        _ => task,
    };
    let (target, task) = locate_task(snapshot, view, task)?;
    let actions = tasks.iter().find(|it| it.name == task);
    let actions = actions.map_or(&[][..], |task| &task.actions);
    let Some(found) = actions.iter().find(has) else {
        let problem = unknown_action(&task, action, actions, &named);
        errors.push("action", problem);
        return Err(errors.into());
    };
    let line = std::iter::once(&found.command).chain(&found.args);
    Ok((target, task, line.cloned().collect()))
}

fn unknown_action(task: &str, action: &str, actions: &[TaskAction], elsewhere: &[&str]) -> String {
    let problem = format!("task {task:?} has no action {action:?}");
    let names: Vec<&str> = actions.iter().map(|it| it.name.as_str()).collect();
    if !elsewhere.is_empty() {
        return format!("{problem}: that is one of {}", elsewhere.join(", "));
    }
    if names.is_empty() {
        return format!("{problem}, and no others in this version of its job");
    }
    format!("{problem}: want one of {}", names.join(", "))
}

fn locate_live(snapshot: &Snapshot, view: &AllocView) -> Result<AllocTarget, AllocRequestRefusal> {
    if view.is_client_terminal() {
        return Err(AllocRequestRefusal::Ended {
            alloc_id: view.alloc.id,
            status: view.client_status().as_str(),
        });
    }
    locate_files(snapshot, view)
}

/// Returns the full name of a signal.
fn read_signal(name: &str) -> Result<&'static str, FieldErrors> {
    let upper = name.trim().to_ascii_uppercase();
    let full = match upper.as_str() {
        "" => DEFAULT_SIGNAL.to_owned(),
        name if name.starts_with("SIG") => upper,
        name => format!("SIG{name}"),
    };
    if let Some(known) = SIGNALS.iter().find(|known| **known == full) {
        return Ok(known);
    }
    let hint = match nearest(&full, SIGNALS) {
        Some(known) => format!("did you mean {known:?}?"),
        None => "want a name such as \"SIGHUP\" or \"SIGTERM\"".to_owned(),
    };
    let mut errors = FieldErrors::default();
    errors.push("signal", format!("unknown signal {name:?}: {hint}"));
    Err(errors)
}

#[cfg(test)]
mod tests {
    use model::{ClientStatus, NodeStatus};
    use test_kit::{Stored, builders};

    use super::*;

    /// A job of two tasks with one allocation.
    fn stored(client: ClientStatus, node_status: NodeStatus) -> (Stored, AllocId) {
        let mut stored = Stored::default();
        let mut job = builders::service("web", 1);
        let action = |name: &str| TaskAction {
            name: name.to_owned(),
            command: "/bin/echo".to_owned(),
            args: vec![name.to_owned()],
        };
        let mut sidecar = builders::task("sidecar");
        sidecar.actions = vec![action("flush"), action("both")];
        job.task_groups[0].tasks[0].actions = vec![action("both")];
        job.task_groups[0].tasks.push(sidecar);
        stored.put_job(&job);
        let mut node = builders::node(1);
        node.status = node_status;
        stored.put_node(&node);
        let alloc = builders::allocation(1, &job, node.id);
        stored.put_alloc(&alloc);
        stored.put_status(alloc.id, client);
        (stored, alloc.id)
    }

    fn with<T>(
        (client, node): (ClientStatus, NodeStatus),
        ask: impl Fn(&Snapshot, &AllocView) -> Result<T, AllocRequestRefusal>,
    ) -> Result<T, String> {
        let (stored, id) = stored(client, node);
        let snapshot = stored.snapshot();
        let view = snapshot.alloc(id).unwrap();
        ask(&snapshot, view).map_err(|refusal| refusal.to_string())
    }

    const RUNNING: (ClientStatus, NodeStatus) = (ClientStatus::Running, NodeStatus::Ready);

    #[test]
    fn files_of_an_ended_allocation_are_there_and_its_tasks_are_not() {
        let ended = (ClientStatus::Failed, NodeStatus::Ready);
        let target = with(ended, locate_files).unwrap();
        assert_eq!(target.node.secret, "secret-1");
        let refused = with(ended, |snapshot, view| locate_stats(snapshot, view, ""));
        assert!(refused.unwrap_err().contains("has ended (failed)"));
        let away = (ClientStatus::Running, NodeStatus::Down);
        assert!(with(away, locate_files).unwrap_err().contains("is down"));
    }

    #[test]
    fn signals_have_names_with_and_without_sig_and_a_default() {
        let signal = |task: &'static str, name: &'static str| {
            with(RUNNING, move |snapshot, view| {
                locate_signal(snapshot, view, task, name)
            })
        };
        for (name, want) in [
            ("", "SIGKILL"),
            ("SIGHUP", "SIGHUP"),
            ("usr1", "SIGUSR1"),
            (" SIGCONT ", "SIGCONT"),
        ] {
            assert_eq!(signal("", name).unwrap().signal, want);
        }
        for (task, name, why) in [
            ("", "SIGHUB", "did you mean \"SIGHUP\"?"),
            ("", "9", "unknown signal \"9\""),
            ("db", "HUP", "want one of server, sidecar"),
        ] {
            let refused = signal(task, name).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        let ended = with((ClientStatus::Complete, NodeStatus::Ready), |s, v| {
            locate_signal(s, v, "", "HUP")
        });
        assert!(ended.unwrap_err().contains("has ended (complete)"));
    }

    #[test]
    fn an_action_is_the_command_of_the_task_that_has_it() {
        let ask = |task: &'static str, action: &'static str| {
            with(RUNNING, move |snapshot, view| {
                locate_command(snapshot, view, task, action, Vec::new())
            })
        };
        let line = |name: &str| vec!["/bin/echo".to_owned(), name.to_owned()];
        let (_, task, command) = ask("", "flush").unwrap();
        assert_eq!((task.as_str(), command), ("sidecar", line("flush")));
        let (_, task, command) = ask("server", "both").unwrap();
        assert_eq!((task.as_str(), command), ("server", line("both")));
        for (task, action, why) in [
            ("", "both", "want one of server, sidecar"),
            ("server", "flush", "that is one of sidecar"),
            ("sidecar", "flsh", "want one of flush, both"),
            ("db", "flush", "want one of server, sidecar"),
        ] {
            let refused = ask(task, action).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        let both = with(RUNNING, |snapshot, view| {
            locate_command(snapshot, view, "", "flush", line("x"))
        });
        assert!(both.unwrap_err().contains("excludes `command`"));
        let plain = with(RUNNING, |snapshot, view| {
            locate_command(snapshot, view, "server", "", line("x"))
        });
        assert_eq!(plain.unwrap().2, line("x"));
    }
}
