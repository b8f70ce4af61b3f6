//! Finding a task again: by its supervisor, by what the supervisor wrote down, or by what is left
//! of the task without one.

use std::io;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::{Held, RawExec, cgroup_name};
use crate::cgroup::TaskCgroup;
use crate::driver::{Recovery, TaskId};
use crate::process_id;
use crate::supervisor::Mode;
use crate::supervisor::files::{self, EXIT, End, INTENT, Intent, STATE, State};
use crate::supervisor::protocol::Reply;

/// The waits between questions to a supervisor that does not answer: one that was killed is gone
/// after the first, one that is starved gets some time.
const RETRY_PAUSES: [Duration; 3] = [
    Duration::from_millis(20),
    Duration::from_millis(200),
    Duration::from_secs(1),
];
/// How long what is left of a task may take to die before somebody is told.
const CLEAR_LIMIT: Duration = Duration::from_secs(15);
/// How long killed processes are given before the next look.
const CLEAR_PAUSE: Duration = Duration::from_millis(10);

impl RawExec {
    /// Finds out what has become of a task.
    pub(super) async fn find(&self, id: &TaskId) -> Recovery {
        let directory = self.directory(id);
        for pause in RETRY_PAUSES {
            match self.begin_watch(id, &directory).await {
                Ok(Reply::Started { .. }) => return Recovery::Running { note: None },
                Ok(Reply::StartFailed { message, .. }) => {
                    return Recovery::NotFound { reason: message };
                }
                Err(error) if is_alone(&error) => {
                    return self.find_alone(id, &directory).await;
                }
                // It may be dying, or slow, or the agent out of descriptors.
                answer => warn!(%id, ?answer, "a supervisor does not answer"),
            }
            sleep(pause).await;
        }
        // That is no reason to kill a task: whoever waits for its end asks again.
        Recovery::Running { note: None }
    }

    async fn find_alone(&self, id: &TaskId, directory: &Path) -> Recovery {
        self.reap_supervisor(id);
        match self.find_without_supervisor(id, directory).await {
            Ok(recovery) => recovery,
            Err(error) => {
                // Files that cannot be read say nothing about processes: those are looked for.
                warn!(%id, %error, "cannot read what is kept of a task");
                self.clear(id, directory).await;
                Recovery::NotFound {
                    reason: format!("what is kept of it cannot be read: {error}"),
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
        let Some(intent) = files::read::<Intent>(directory, INTENT)? else {
            return not_found("it was never started");
        };
        match files::read::<End>(directory, EXIT)? {
            Some(End::Exited { exit, .. }) => return Ok(Recovery::Exited(exit)),
            Some(End::StartFailed { message, .. }) => {
                return Ok(Recovery::NotFound { reason: message });
            }
            None => {}
        }
        if intent.boot_id != self.boot_id {
            return not_found("the node was rebooted");
        }
        let state = files::read::<State>(directory, STATE)?;
        let is_orphan = state.is_some_and(|state| {
            state.boot_id == self.boot_id && state.task.is_alive() && !state.supervisor.is_alive()
        });
        if is_orphan {
            match self.begin(id, directory, Mode::Adopt).await {
                Ok(Reply::Started { pid }) => {
                    info!(%id, pid, "a task had lost its supervisor and has a new one");
                    let note = "Task had lost its supervisor and has a new one".to_owned();
                    return Ok(Recovery::Running { note: Some(note) });
                }
                other => warn!(%id, ?other, "cannot give a task a new supervisor"),
            }
        }
        self.clear(id, directory).await;
        not_found("neither the task nor its supervisor runs any more")
    }

    /// Takes note of a supervisor that has died.
    fn reap_supervisor(&self, id: &TaskId) {
        if let Some(Held {
            supervisor: Some(child),
            ..
        }) = self.held().get_mut(id)
        {
            let _ = child.try_wait();
        }
    }

    /// Kills a supervisor that is of no use, and everything of its task; returns when nothing is
    /// left, or nothing more can be done.
    pub(super) async fn clear(&self, id: &TaskId, directory: &Path) {
        let started = self.held().remove(id).and_then(|held| held.supervisor);
        if let Some(mut child) = started {
            let _ = child.kill();
            super::reap(child).await;
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

/// Tells whether nobody listens.
fn is_alone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound
    )
}
