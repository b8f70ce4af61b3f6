//! Recovery of a task that an earlier run of the agent started.

use task_drivers::{Recovery, TaskConfig, TaskId};
use tracing::warn;

use crate::plugin::Plugin;
use crate::task::Unattached;

impl Plugin {
    pub(crate) async fn recover_task(&self, config: &TaskConfig) -> Recovery {
        let id = &config.id;
        if self.records.get(id).is_none() {
            return not_found("there is no record of it");
        }
        if let Some(exit) = self.records.exit(id) {
            return Recovery::Exited(exit);
        }
        let attached = match self.ready().await {
            Ok(instance) => self.attach(&instance, id).await,
            Err(reason) => Err(Unattached::Unknown(reason)),
        };
        match attached {
            Ok(()) => {
                self.copy_again(id);
                Recovery::Running { note: None }
            }
            Err(Unattached::Lost(reason)) => {
                self.remove_record(id).await;
                not_found(&reason)
            }
            // Not a reason to give a task up: waiting for its exit asks again.
            Err(Unattached::Unknown(reason)) => {
                self.copy_again(id);
                Recovery::Running {
                    note: Some(format!("the plugin does not answer yet: {reason}")),
                }
            }
        }
    }

    /// Makes sure that the process that copies the task's output runs: something may have killed it.
    fn copy_again(&self, id: &TaskId) {
        if !self.facts().has_output {
            return;
        }
        if let Err(error) = self.copy_output(id) {
            warn!(%id, %error, "the output of a task is not collected");
        }
    }
}

fn not_found(reason: &str) -> Recovery {
    Recovery::NotFound {
        reason: reason.to_owned(),
    }
}
