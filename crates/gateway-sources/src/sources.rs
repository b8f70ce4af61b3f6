//! The caller of all sources: one node at its gateways.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use gateway_calls::Gateways;
use local_state::Identity;
use service_watch::Services;

/// Timeout of a call: a gateway answers within milliseconds, and may wait for the store first.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The sources of one node's tasks. Cheap to clone.
#[derive(Clone)]
pub struct GatewaySources {
    pub(crate) gateways: Arc<Gateways>,
    pub(crate) node_id: String,
    pub(crate) secret: String,
    pub(crate) services: Arc<Services>,
}

impl GatewaySources {
    /// `services`: the instances of services as a [`crate::Subscription`] keeps them.
    pub fn new(gateways: Arc<Gateways>, identity: &Identity, services: Arc<Services>) -> Self {
        Self {
            gateways,
            node_id: identity.node_id.to_string(),
            secret: identity.secret.clone(),
            services,
        }
    }
}

/// Leaves out the secret.
impl fmt::Debug for GatewaySources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewaySources")
            .field("node_id", &self.node_id)
            .finish_non_exhaustive()
    }
}
