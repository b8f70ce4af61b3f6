//! Removal of leftover tasks, networks and directories that no server wants.

use std::sync::Arc;

use lifecycle::kept_allocs;
use task_drivers::{TaskId, alloc_dirs};
use task_runner::{csi_volumes, network, remove_attempt};
use tracing::{info, warn};

use super::agent::Agent;

impl Agent {
    /// After a full list, ends the tasks of unlisted allocations and removes the networks and directories
    /// of unknown ones. They are left by an agent that died, or lost its state, before it stored the
    /// assignment.
    pub(super) fn remove_unwanted(&self) {
        let (unwanted, wanted_dirs) = {
            let mut facts = self.lock();
            let leftovers = std::mem::take(&mut facts.leftovers);
            let is_first = !std::mem::replace(&mut facts.is_swept, true);
            let wanted_dirs =
                is_first.then(|| kept_allocs(facts.allocs.values().map(|entry| &entry.assignment)));
            (leftovers, wanted_dirs)
        };
        let unwanted: Vec<TaskId> = unwanted.into_values().flatten().collect();
        let base = self.context.tasks.alloc_dir.as_deref();
        // Listed now, before the next assignment creates directories.
        let unwanted_dirs = match (base, &wanted_dirs) {
            (Some(base), Some(wanted)) => alloc_dirs::except(base, wanted),
            _ => Vec::new(),
        };
        let networks = self.context.tasks.networks.as_ref();
        let unwanted_networks = match (networks, &wanted_dirs) {
            (Some(networks), Some(wanted)) => network::unwanted(networks, wanted),
            _ => Vec::new(),
        };
        let storage = self.context.tasks.storage.as_ref();
        let unwanted_volumes = match (storage, &wanted_dirs) {
            (Some(storage), Some(wanted)) => csi_volumes::unwanted(storage, wanted),
            _ => Vec::new(),
        };
        if unwanted.is_empty()
            && unwanted_dirs.is_empty()
            && unwanted_networks.is_empty()
            && unwanted_volumes.is_empty()
        {
            return;
        }
        let (context, drain) = (Arc::clone(&self.context), self.drain.clone());
        let removing = async move {
            for id in unwanted {
                remove_attempt(&context.tasks, &id).await;
            }
            network::sweep(&context.tasks, unwanted_networks).await;
            for dirs in unwanted_dirs {
                info!(directory = %dirs.root.display(), "removing a directory without an allocation");
                let removed = blocking::spawn(move || alloc_dirs::remove(&dirs)).await;
                if let Ok(Err(error)) = removed {
                    warn!(%error, "cannot remove a directory without an allocation");
                }
            }
            // Last: it waits for plugins.
            csi_volumes::sweep(&context.tasks, unwanted_volumes).await;
        };
        self.runners.spawn(async move {
            // The next run of the agent finds the rest.
            tokio::select! {
                () = removing => {}
                () = drain.cancelled() => {}
            }
        });
    }
}
