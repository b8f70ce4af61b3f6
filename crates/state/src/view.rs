//! One allocation: its desired side and its client side together.

use std::sync::Arc;

use model::{AllocClient, Allocation, ClientStatus, DeploymentHealth};

/// An allocation as readers see it. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct AllocView {
    pub alloc: Arc<Allocation>,
    pub create_index: u64,
    /// The revision of the last change of the desired side: `AllocModifyIndex`.
    pub alloc_modify_index: u64,
    /// The node's last report; `None` before the first.
    pub client: Option<Arc<AllocClient>>,
    /// The revision of that report; 0 before the first.
    pub client_modify_index: u64,
}

impl AllocView {
    pub fn modify_index(&self) -> u64 {
        self.alloc_modify_index.max(self.client_modify_index)
    }

    /// Returns the effective client status: the reported one, unless a server override applies.
    ///
    /// `lost` is final unless the node had reported an end before; `unknown` holds until the node
    /// reports again.
    pub fn client_status(&self) -> ClientStatus {
        let reported = self.client.as_ref().map(|client| client.status);
        match self.alloc.client_status_override {
            Some(ClientStatus::Unknown) if self.client_modify_index > self.alloc_modify_index => {
                reported.unwrap_or_default()
            }
            Some(decided) => match reported {
                Some(status) if status.is_terminal() => status,
                _ => decided,
            },
            None => reported.unwrap_or_default(),
        }
    }

    pub fn is_client_terminal(&self) -> bool {
        self.client_status().is_terminal()
    }

    /// Returns whether it holds no resources any more: stopped or evicted by the server, or ended on
    /// its node.
    pub fn is_terminal(&self) -> bool {
        self.alloc.is_server_terminal() || self.is_client_terminal()
    }

    /// Returns the node's verdict for the deployment that the allocation now belongs to.
    pub fn health(&self) -> Option<DeploymentHealth> {
        self.alloc.deployment_id?;
        self.verdict()
    }

    /// Returns the node's verdict on the allocation: for its current deployment, or without one by
    /// its group's `migrate` block.
    pub fn verdict(&self) -> Option<DeploymentHealth> {
        self.client
            .as_ref()?
            .health
            .filter(|health| health.deployment_id == self.alloc.deployment_id)
    }
}
