//! Recovery of a task: through its supervisor, the supervisor's files, or the processes that are
//! left without one.

use std::io;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::tasks::{Attached, RawExec, cgroup_name, reap};
use crate::cgroup::TaskCgroup;
use crate::driver::{Recovery, TaskId};
use crate::process_id;
use crate::supervisor::files::{self, EXIT, End, START_REQUEST, STATE, StartRequest, State};
use crate::supervisor::mode::Mode;
use crate::supervisor::protocol::Reply;

/// Retry pauses for a supervisor that does not answer. A killed one is gone after the first; a
/// starved one gets more time.
const RETRY_PAUSES: [Duration; 3] = [
    Duration::from_millis(20),
    Duration::from_millis(200),
    Duration::from_secs(1),
];
/// Timeout for the remaining processes of a task to die before a warning is logged.
const CLEAR_LIMIT: Duration = Duration::from_secs(15);
/// Poll interval for killed processes.
const CLEAR_PAUSE: Duration = Duration::from_millis(10);

impl RawExec {
    /// Finds out whether a task runs, has exited, or is gone.
    pub(super) async fn find(&self, id: &TaskId) -> Recovery {
        let directory = self.directory(id);
        for pause in RETRY_PAUSES {
            match self.begin_watch(id, &directory).await {
                Ok(Reply::Started { .. }) => return Recovery::Running { note: None },
                Ok(Reply::StartFailed { message, .. }) => {
                    return Recovery::NotFound { reason: message };
                }
                Err(error) if is_without_supervisor(&error) => {
                    return self.find_orphan(id, &directory).await;
                }
                // The supervisor is dying or slow, or the agent is out of descriptors.
                answer => warn!(%id, ?answer, "a supervisor does not answer"),
            }
            sleep(pause).await;
        }
        // Not a reason to kill a task: waiting for its exit asks again.
        Recovery::Running { note: None }
    }

    async fn find_orphan(&self, id: &TaskId, directory: &Path) -> Recovery {
        self.reap_supervisor(id);
        match self.find_without_supervisor(id, directory).await {
            Ok(recovery) => recovery,
            Err(error) => {
                // Unreadable files prove nothing about processes, so these are searched for.
                warn!(%id, %error, "cannot read the state of a task");
                self.clear(id, directory).await;
                Recovery::NotFound {
                    reason: format!("its state on the node cannot be read: {error}"),
                }
            }
        }
    }

    async fn find_without_supervisor(&self, id: &TaskId, directory: &Path) -> io::Result<Recovery> {
        let not_found = |reason: &str| {
            Ok(Recovery::NotFound {
                reason: reason.to_owned(),
            })
        };
        let Some(request) = files::read::<StartRequest>(directory, START_REQUEST)? else {
            return not_found("it was never started");
        };
        match files::read::<End>(directory, EXIT)? {
            Some(End::Exited { exit, .. }) => return Ok(Recovery::Exited(exit)),
            Some(End::StartFailed { message, .. }) => {
                return Ok(Recovery::NotFound { reason: message });
            }
            None => {}
        }
        if request.boot_id != self.boot_id {
            return not_found("the node was rebooted");
        }
        let state = files::read::<State>(directory, STATE)?;
        let is_orphan = state.is_some_and(|state| {
            state.boot_id == self.boot_id && state.task.is_alive() && !state.supervisor.is_alive()
        });
        if is_orphan {
            match self.begin(id, directory, Mode::Adopt).await {
                Ok(Reply::Started { pid }) => {
                    info!(%id, pid, "the lost supervisor of a task was replaced");
                    let note = "The lost supervisor of the task was replaced".to_owned();
                    return Ok(Recovery::Running { note: Some(note) });
                }
                other => warn!(%id, ?other, "cannot replace the supervisor of a task"),
            }
        }
        self.clear(id, directory).await;
        not_found("neither the task nor its supervisor runs any more")
    }

    /// Reaps a supervisor that has died.
    fn reap_supervisor(&self, id: &TaskId) {
        if let Some(Attached {
            supervisor: Some(child),
            ..
        }) = self.attached().get_mut(id)
        {
            let _ = child.try_wait();
        }
    }

    /// Kills a useless supervisor and every process of its task. Returns when none is left, or when
    /// the timeout passes.
    pub(super) async fn clear(&self, id: &TaskId, directory: &Path) {
        let started = self
            .attached()
            .remove(id)
            .and_then(|attached| attached.supervisor);
        if let Some(mut child) = started {
            let _ = child.kill();
            reap(child).await;
        }
        if let Ok(Some(state)) = files::read::<State>(directory, STATE)
            && state.boot_id == self.boot_id
        {
            let _ = state.supervisor.signal(Signal::SIGKILL);
        }
        let cgroup = self
            .slice
            .as_deref()
            .map(|slice| TaskCgroup::find(slice, &cgroup_name(id)));
        let deadline = Instant::now() + CLEAR_LIMIT;
        loop {
            let grouped = cgroup.as_ref().filter(|cgroup| cgroup.is_populated());
            let marked = process_id::of_task(&id.to_string(), None);
            if grouped.is_none() && marked.is_empty() {
                break;
            }
            if Instant::now() >= deadline {
                warn!(%id, ?marked, "processes of a task cannot be killed");
                break;
            }
            if let Some(cgroup) = grouped {
                let _ = cgroup.kill();
            }
            for pid in marked {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
            sleep(CLEAR_PAUSE).await;
        }
        if let Some(cgroup) = cgroup.filter(TaskCgroup::exists) {
            let _ = cgroup.remove();
        }
    }
}

/// Returns whether no supervisor listens on the socket.
fn is_without_supervisor(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound
    )
}
