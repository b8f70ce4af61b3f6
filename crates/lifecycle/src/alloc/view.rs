//! The visible state of an allocation: client status, description, health.

use model::{ClientStatus, DeploymentHealth, ServiceOwner, TaskPhase};

use super::{AllocRunner, Prerun};
use crate::kill::KillReason;
use crate::task::TaskRunner;
use crate::time::written;

impl AllocRunner {
    /// Returns the owners whose services are registered: the group from before its first task until the
    /// allocation is to end, a task while it runs and is not being killed.
    ///
    /// Source: Nomad's public behaviour; a shutdown delay gives clients time to see the change.
    pub fn registered(&self) -> Vec<ServiceOwner> {
        let mut owners = Vec::new();
        if self.state.is_ended || self.state.kill.is_some() {
            return owners;
        }
        if matches!(self.state.prerun, Prerun::Done | Prerun::Again) {
            owners.push(ServiceOwner::Group);
        }
        let running = self.state.tasks.iter().filter(|(_, task)| task.is_served());
        owners.extend(running.map(|(name, _)| ServiceOwner::Task(name.clone())));
        owners
    }

    pub(super) fn status(&self) -> (ClientStatus, String) {
        let tasks = self.state.tasks.values().map(TaskRunner::visible);
        let any = |phase| {
            self.state
                .tasks
                .values()
                .any(|task| task.visible().phase == phase)
        };
        let (status, description) = if self.has_run_too_long() && self.state.is_ended {
            (
                ClientStatus::Complete,
                "Ended at its max_run_duration".to_owned(),
            )
        } else if let Prerun::Failed(error) = &self.state.prerun {
            (
                ClientStatus::Failed,
                format!("Cannot set up the allocation: {error}"),
            )
        } else if tasks.clone().any(|task| task.failed) {
            (ClientStatus::Failed, "Failed tasks".to_owned())
        } else if any(TaskPhase::Running) {
            (ClientStatus::Running, "Tasks are running".to_owned())
        } else if any(TaskPhase::Pending) {
            (ClientStatus::Pending, "No tasks are running".to_owned())
        } else {
            (
                ClientStatus::Complete,
                "All tasks have completed".to_owned(),
            )
        };
        if self.kill_reason() == Some(KillReason::NoContact) {
            let limit = self.spec.stop_on_client_after().unwrap_or_default();
            let text = format!(
                "Stopped after {} without contact to a server",
                written(limit)
            );
            return (status, text);
        }
        (status, description)
    }

    /// A failed allocation is unhealthy for its deployment even without a health check.
    pub(super) fn health(&self, status: ClientStatus) -> Option<DeploymentHealth> {
        let deployment_id = self.spec.deployment_id;
        let verdict = self
            .state
            .health
            .verdict
            .filter(|found| found.deployment_id == deployment_id);
        if verdict.is_none() && status == ClientStatus::Failed && deployment_id.is_some() {
            let time = self.state.modify_time;
            return Some(DeploymentHealth {
                healthy: false,
                time,
                deployment_id,
            });
        }
        verdict
    }

    pub(super) fn kill_reason(&self) -> Option<KillReason> {
        self.state.kill.as_ref().map(|kill| kill.reason)
    }

    pub(super) fn has_run_too_long(&self) -> bool {
        self.kill_reason() == Some(KillReason::RanTooLong)
    }

    /// Returns whether the kill in progress is final, so that a deadline adds nothing to it.
    pub(super) fn is_killed_for_good(&self) -> bool {
        matches!(
            self.kill_reason(),
            Some(KillReason::RanTooLong | KillReason::Stopped | KillReason::NoContact)
        )
    }

    /// Returns whether the health is still watched: not once the allocation is to end.
    pub(super) fn is_health_watched(&self) -> bool {
        !self.is_killed_for_good()
    }
}
