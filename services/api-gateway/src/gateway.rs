//! State that the handlers of the API share.

use std::sync::Arc;

use gateway_core::{Core, Error};
use node_gateway::NodeGateway;
use service_kit::CancellationToken;

use crate::backup::slot::BackupSlot;
use crate::concurrency_limit::ConcurrencyLimit;
use crate::config::Config;
use crate::events::slots::StreamSlots;
use crate::metrics::Metrics;
use crate::reads::table_changes::TableChanges;
use crate::space::Space;

/// Shared by all handlers of one gateway.
#[derive(Debug)]
pub struct Gateway {
    pub config: Config,
    /// The address that other processes reach it at.
    pub address: String,
    /// The log of this process.
    pub agent: agent::ProcessLog,
    pub core: Arc<Core>,
    /// For the relay of task output.
    pub node: Arc<NodeGateway>,
    pub tables: Arc<TableChanges>,
    pub metrics: Metrics,
    /// Cancelled when streams and blocked reads have to end.
    pub drain: CancellationToken,
    pub dry_runs: ConcurrencyLimit,
    pub streams: StreamSlots,
    /// Refuses new work while etcd is nearly full.
    pub space: Arc<Space>,
    pub backups: BackupSlot,
}

impl Gateway {
    /// Accepts or refuses a request that adds work.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED`: etcd is full, or nearly.
    pub(crate) fn admit_new_work(&self) -> Result<(), Error> {
        self.space.check().map_err(Error::refused)
    }
}

/// The handlers' reference. Cheap to clone.
pub type Shared = Arc<Gateway>;
