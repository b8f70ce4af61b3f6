//! The state that all requests for storage systems' volumes share.

use std::sync::Arc;

use gateway_core::Core;
use node_calls::NodeCalls;

/// Executes the requests of users.
#[derive(Debug)]
pub struct CsiVolumes {
    pub(crate) core: Arc<Core>,
    pub(crate) calls: NodeCalls,
}

impl CsiVolumes {
    pub fn new(core: Arc<Core>, calls: NodeCalls) -> Self {
        Self { core, calls }
    }
}
