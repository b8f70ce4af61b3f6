//! Whether a service can do its work: its replica has listed the store, and hears of it.

use std::time::Duration;

use service_kit::Metrics;
use store::Replica;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// How long the store may be silent before the service counts as unable to work. A quiet store
/// says something every second, and a replica gives a silent one up after 5 s: beyond twice that,
/// trying again has not helped.
const SILENCE_LIMIT: Duration = Duration::from_secs(10);

/// How often it is looked at: a tenth of the limit.
const INTERVAL: Duration = Duration::from_secs(1);

/// How often the first list is looked for: a service starts within moments.
const FIRST_INTERVAL: Duration = Duration::from_millis(20);

/// Shows readiness until `ended`, then says that it is not.
pub async fn show(replica: Replica, metrics: Metrics, ended: CancellationToken) {
    let mut was_ready = false;
    let mut interval = FIRST_INTERVAL;
    loop {
        let heard = replica.last_contact();
        let is_ready = replica.applied() > 0 && heard.is_some_and(|age| age < SILENCE_LIMIT);
        if is_ready != was_ready {
            if is_ready {
                info!("ready: the replica follows the store");
                interval = INTERVAL;
            } else {
                warn!(?heard, "not ready: nothing is heard of the store");
            }
            metrics.set_ready(is_ready);
            was_ready = is_ready;
        }
        tokio::select! {
            () = ended.cancelled() => break,
            () = tokio::time::sleep(interval) => {}
        }
    }
    metrics.set_ready(false);
}
