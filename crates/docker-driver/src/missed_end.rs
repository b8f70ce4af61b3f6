//! Ends of containers that the engine has missed.
//!
//! Docker loses the end of a container while its containerd does not run for some seconds: the container counts as
//! running until the engine is restarted. A signal through the engine makes it look at the process, and it then has
//! the true exit code.

use std::fs;
use std::time::Duration;

use task_drivers::TaskId;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::container::{Found, State};
use crate::records::SeenProcess;
use crate::tasks::Docker;

/// Pause between two looks at the process of a container.
const LOOK_PAUSE: Duration = Duration::from_secs(10);

impl Docker {
    /// Returns once the engine was told of the end of a running container that it has missed; never where the
    /// engine counts processes differently, as on another machine or in a namespace.
    pub(crate) async fn notice_missed_end(&self, id: &TaskId, found: &Found) {
        let process = SeenProcess {
            pid: found.pid,
            pid_namespace: fs::read_link("/proc/self/ns/pid").unwrap_or_default(),
        };
        if has_process(found) {
            if let Err(error) = self.records.put_process(id, &process) {
                warn!(%id, %error, "cannot write the process of a container");
            }
        } else if self.records.process(id) != Some(process) {
            return std::future::pending().await;
        }
        loop {
            sleep(LOOK_PAUSE).await;
            if has_process(found) {
                continue;
            }
            // Another program may have restarted the container.
            match self.find_attempt(id).await {
                Ok(Some(now)) if is_missed(found, &now) => {}
                Ok(_) => return,
                Err(_) => continue,
            }
            info!(%id, pid = found.pid, "the engine has missed the end of a container");
            if let Err(problem) = self.engine.kill(&found.id, "SIGKILL").await {
                warn!(%id, %problem, "cannot tell the engine of a container's end");
                continue;
            }
            return;
        }
    }
}

/// Tells whether the engine says that a container runs whose process is gone.
fn is_missed(before: &Found, now: &Found) -> bool {
    now.state == State::Running
        && (&now.id, now.pid) == (&before.id, before.pid)
        && !has_process(now)
}

/// Tells whether the container's process is one of this machine: its control group has the container's id.
fn has_process(found: &Found) -> bool {
    let groups = fs::read_to_string(format!("/proc/{}/cgroup", found.pid));
    found.pid > 0 && groups.is_ok_and(|groups| groups.contains(&found.id))
}

#[cfg(test)]
mod tests;
