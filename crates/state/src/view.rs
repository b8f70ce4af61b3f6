//! One allocation, its desired and its client side together.

use std::sync::Arc;

use model::{AllocClient, Allocation, ClientStatus, DeploymentHealth};

/// An allocation as readers see it. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct AllocView {
    pub alloc: Arc<Allocation>,
    pub create_index: u64,
    /// The revision of the last change of the desired side: `AllocModifyIndex`.
    pub alloc_modify_index: u64,
    /// What the node last told; `None` until it has told anything.
    pub client: Option<Arc<AllocClient>>,
    /// The revision of that; 0 until then.
    pub client_modify_index: u64,
}

impl AllocView {
    pub fn modify_index(&self) -> u64 {
        self.alloc_modify_index.max(self.client_modify_index)
    }

    /// Returns the client status that holds: the node's word, unless the server has decided for it.
    ///
    /// `lost` is final unless the node had reported an end before; `unknown` holds until the node
    /// reports again.
    pub fn client_status(&self) -> ClientStatus {
        let told = self.client.as_ref().map(|client| client.status);
        match self.alloc.client_status_override {
            Some(ClientStatus::Unknown) if self.client_modify_index > self.alloc_modify_index => {
                told.unwrap_or_default()
            }
            Some(decided) => match told {
                Some(status) if status.is_terminal() => status,
                _ => decided,
            },
            None => told.unwrap_or_default(),
        }
    }

    pub fn is_client_terminal(&self) -> bool {
        self.client_status().is_terminal()
    }

    /// Tells whether it no longer counts: stopped or evicted by the server, or ended on its node.
    pub fn is_terminal(&self) -> bool {
        self.alloc.is_server_terminal() || self.is_client_terminal()
    }

    /// Returns the node's verdict for the deployment that the allocation now belongs to.
    pub fn health(&self) -> Option<DeploymentHealth> {
        self.alloc.deployment_id?;
        self.verdict()
    }

    /// Returns the node's verdict on the allocation as it now is: for its deployment, or without
    /// one by how its group migrates.
    pub fn verdict(&self) -> Option<DeploymentHealth> {
        self.client
            .as_ref()?
            .health
            .filter(|health| health.deployment_id == self.alloc.deployment_id)
    }
}
