//! Context shared by the runners of one node. Several nodes may live in one process, each with its
//! own context.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alloc_network::Networks;
use artifact_fetch::Artifacts;
use csi_node::Storage;
use lifecycle::Limits;
use local_state::LocalState;
use model::NodeId;
use service_kit::{Clock, IdSource};
use task_drivers::{Driver, NodeFacts};
use tokio::sync::Semaphore;

use crate::clock::Clocks;
use crate::consul_services::ConsulServices;
use crate::data_source::{DataSource, NoData};
use crate::metrics::Metrics;
use crate::reporter::Reporter;
use crate::token_source::{NoTokens, TokenSource};
use crate::volume_source::{NoVolumes, VolumeSource};

/// Networks that are set up or removed at a time: each step runs some programs.
const NETWORK_SLOTS: usize = 8;

/// Commands beside tasks at a time: each has up to 1 MiB of buffers, and a person or a script in front.
const EXEC_SLOTS: usize = 16;

/// The drivers of a node, by name.
pub type Drivers = BTreeMap<&'static str, Arc<dyn Driver>>;

pub struct Context {
    pub node_id: NodeId,
    pub drivers: Drivers,
    pub facts: NodeFacts,
    pub limits: Limits,
    /// The directory of the allocations' files; `None` on a node without storage.
    pub alloc_dir: Option<PathBuf>,
    /// `None` on a node without storage: its tasks use no network.
    pub networks: Option<Arc<Networks>>,
    /// Limits the networks that change at a time.
    pub network_slots: Semaphore,
    /// Limits the commands beside tasks; `None`: the node runs none.
    pub exec_slots: Option<Arc<Semaphore>>,
    /// The node's downloads; `None` on a node without storage.
    pub artifacts: Option<Arc<Artifacts>>,
    /// Plugins of storage, and their mounts; `None` on a node without storage.
    pub storage: Option<Arc<Storage>>,
    pub state: LocalState,
    pub reporter: Reporter,
    pub clocks: Clocks,
    pub ids: IdSource,
    pub metrics: Metrics,
    /// Signs the identity tokens of tasks.
    pub tokens: Arc<dyn TokenSource>,
    /// Looks up variables and services for templates.
    pub data: Arc<dyn DataSource>,
    /// Tells which of storage systems' volumes an allocation needs.
    pub volumes: Arc<dyn VolumeSource>,
    /// The node's Vault; `None`: it has none.
    pub vault: Option<task_vault::Node>,
    /// The node's Consul for tokens and look-ups; `None`: it has none.
    pub consul: Option<task_consul::Node>,
    /// The node's services in Consul; `None`: it has no Consul.
    pub consul_services: Option<ConsulServices>,
    /// Kill every task when the agent ends.
    pub stop_tasks_on_exit: bool,
    /// Timeout of the agent's shutdown.
    pub shutdown_grace_period: Duration,
}

impl Context {
    /// The context of a node without directories, facts or limits of its own.
    pub fn new(node_id: NodeId, drivers: Drivers, state: LocalState, ids: IdSource) -> Self {
        Self {
            node_id,
            drivers,
            facts: NodeFacts::default(),
            limits: Limits::default(),
            alloc_dir: None,
            networks: None,
            network_slots: Semaphore::new(NETWORK_SLOTS),
            exec_slots: Some(Arc::new(Semaphore::new(EXEC_SLOTS))),
            artifacts: None,
            storage: None,
            state,
            reporter: Reporter::default(),
            clocks: Clocks::new(Clock::real()),
            ids,
            metrics: Metrics::default(),
            tokens: Arc::new(NoTokens),
            data: Arc::new(NoData),
            volumes: Arc::new(NoVolumes),
            vault: None,
            consul: None,
            consul_services: None,
            stop_tasks_on_exit: false,
            shutdown_grace_period: Duration::from_secs(1),
        }
    }

    #[cfg(test)]
    pub(crate) fn for_test(state: LocalState, driver: impl Driver + 'static) -> Self {
        let drivers = Drivers::from([(driver.name(), Arc::new(driver) as Arc<dyn Driver>)]);
        Self::new(NodeId::from_random(1), drivers, state, IdSource::seeded(1))
    }
}
