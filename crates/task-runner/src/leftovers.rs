//! Leftover attempts: tasks with driver records that are of no use any more.

use std::time::Duration;

use model::AllocId;
use task_drivers::{DriverError, TaskId};
use tracing::{info, warn};

use crate::context::Context;

/// Tries to remove an attempt's records. The supervisor has confirmed the end, so few retries cover a
/// machine in distress; the rest is removed with the allocation, or by the next run of the agent.
pub(crate) const REMOVE_TRIES: u32 = 3;
/// The pause before the next try to remove an attempt's records.
pub(crate) const ATTEMPT_RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Kill timeout of a leftover attempt.
const LEFTOVER_GRACE: Duration = Duration::from_secs(5);

/// Stops an attempt and removes its records, in every driver that has some.
pub async fn remove_attempt(context: &Context, id: &TaskId) {
    for driver in context.drivers.values() {
        for _ in 0..REMOVE_TRIES {
            if !driver.leftovers_of(id.alloc_id).contains(id) {
                break;
            }
            info!(%id, driver = driver.name(), "removing a leftover task");
            let cleared = async {
                driver.stop(id, "", LEFTOVER_GRACE).await?;
                driver.forget(id).await?;
                Ok::<(), DriverError>(())
            };
            let Err(error) = cleared.await else {
                break;
            };
            let error = service_kit::run::chain(&error);
            warn!(%id, error, "cannot remove a leftover task");
            tokio::time::sleep(ATTEMPT_RETRY_PAUSE).await;
        }
    }
}

/// Stops an allocation's attempts and removes their records. Returns whether none is left.
pub(crate) async fn remove_all_attempts(context: &Context, alloc_id: AllocId) -> bool {
    let left = || {
        let drivers = context.drivers.values();
        drivers.flat_map(move |driver| driver.leftovers_of(alloc_id))
    };
    for id in left().collect::<Vec<_>>() {
        remove_attempt(context, &id).await;
    }
    left().next().is_none()
}
