//! State that the handlers of the API share.

use std::sync::Arc;

use gateway_core::Core;
use node_gateway::NodeGateway;
use service_kit::CancellationToken;

use crate::concurrency_limit::ConcurrencyLimit;
use crate::config::Config;
use crate::events::slots::StreamSlots;
use crate::metrics::Metrics;
use crate::reads::table_changes::TableChanges;

/// Shared by all handlers of one gateway.
#[derive(Debug)]
pub struct Gateway {
    pub config: Config,
    pub core: Arc<Core>,
    /// For the relay of task output.
    pub node: Arc<NodeGateway>,
    pub tables: Arc<TableChanges>,
    pub metrics: Metrics,
    /// Cancelled when streams and blocked reads have to end.
    pub drain: CancellationToken,
    pub dry_runs: ConcurrencyLimit,
    pub streams: StreamSlots,
}

/// The handlers' reference. Cheap to clone.
pub type Shared = Arc<Gateway>;
