//! The space in etcd: a loop that reads the status of the members, around
//! [`admission::space::SpaceGate`], and the check of new work.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use admission::space::{NoSpace, SpaceGate, SpaceLimits};
use gateway_core::Core;
use service_kit::CancellationToken;
use tracing::{info, warn};

use crate::metrics::Metrics;

/// The interval of looks at the members: etcd takes at most some 100 MB in it, and each look is one
/// small request to each member.
const INTERVAL: Duration = Duration::from_secs(5);
/// The same while new work is refused.
const REFUSING_INTERVAL: Duration = Duration::from_secs(1);

/// The last decision about new work.
#[derive(Debug)]
pub struct Space {
    gate: Mutex<SpaceGate>,
}

impl Space {
    pub(crate) fn new(limits: SpaceLimits) -> Self {
        Self {
            gate: Mutex::new(SpaceGate::new(limits)),
        }
    }

    /// Accepts or refuses new work.
    ///
    /// # Errors
    /// etcd is full, or nearly.
    pub(crate) fn check(&self) -> Result<(), NoSpace> {
        self.lock().check()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, SpaceGate> {
        // A decision is replaced as a whole.
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Follows the status of the members until `stop`.
pub(crate) async fn follow(
    core: Arc<Core>,
    space: Arc<Space>,
    metrics: Metrics,
    stop: CancellationToken,
) {
    loop {
        let members = core.client.members().await;
        let members: Vec<_> = members
            .into_iter()
            .filter_map(|(_, status)| status.ok())
            .collect();
        let before = space.check();
        space.lock().observe(&members);
        let now = space.check();
        match (&before, &now) {
            (Ok(()), Err(refusal)) => warn!(%refusal, "new work is refused"),
            (Err(_), Ok(())) => info!("etcd has space again: new work is accepted"),
            _ => {}
        }
        metrics.refusing_for_space.set(i64::from(now.is_err()));
        let interval = if now.is_err() {
            REFUSING_INTERVAL
        } else {
            INTERVAL
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(interval) => {}
        }
    }
}
