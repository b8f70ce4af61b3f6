//! Readiness of a service: its replica has listed the store and still receives updates, and the store
//! accepts transactions of our size. A service may have a condition of its own.

use std::time::Duration;

use service_kit::Metrics;
use service_kit::run::chain;
use store::{Client, Replica};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

/// The longest silence of the store after which the service is still ready. An idle store still
/// sends progress every second, and a replica reconnects after 5 s of silence. Beyond twice that,
/// reconnecting has not helped.
const LAST_CONTACT_MAX: Duration = Duration::from_secs(10);

/// The interval of checks: a tenth of the limit.
const INTERVAL: Duration = Duration::from_secs(1);

/// The interval until the first list: a service starts within moments.
const FIRST_INTERVAL: Duration = Duration::from_millis(20);

/// The interval of the log message about limits that are too low: each etcd has to be restarted by
/// hand, which takes minutes.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(60);

/// The parts of a service that readiness depends on, and the metrics that show it.
pub(crate) struct Readiness {
    pub(crate) client: Client,
    pub(crate) replica: Replica,
    pub(crate) metrics: Metrics,
    /// The service's own condition. Once true it stays so.
    pub(crate) condition: watch::Receiver<bool>,
}

/// Publishes readiness until `ended`, then that the service is not ready.
pub(crate) async fn show(readiness: Readiness, ended: CancellationToken) {
    let Readiness {
        client,
        replica,
        metrics,
        mut condition,
    } = readiness;
    let mut was_ready = false;
    let mut interval = FIRST_INTERVAL;
    let mut limits = Limits::default();
    let started = Instant::now();
    let mut was_missed = false;
    loop {
        let heard = replica.last_contact();
        let is_heard = replica.applied() > 0 && heard.is_some_and(|age| age < LAST_CONTACT_MAX);
        if !is_heard {
            // Another store may answer next.
            limits.suffice = false;
        } else if !limits.suffice {
            tokio::select! {
                () = ended.cancelled() => break,
                () = limits.probe(&client) => {}
            }
        }
        let is_ready = is_heard && limits.suffice && *condition.borrow_and_update();
        if is_ready != was_ready {
            if is_ready {
                info!("ready: the replica follows the store");
            } else {
                warn!(?heard, endpoints = ?client.endpoints(), "not ready: etcd does not respond");
            }
            metrics.set_ready(is_ready);
            was_ready = is_ready;
        }
        if heard.is_none() && !was_missed && started.elapsed() > LAST_CONTACT_MAX {
            warn!(endpoints = ?client.endpoints(), "not ready: etcd has not answered yet");
            was_missed = true;
        }
        if is_heard {
            interval = INTERVAL;
        }
        tokio::select! {
            () = ended.cancelled() => break,
            // An error: the condition does not change any more.
            Ok(()) = condition.changed() => {}
            () = tokio::time::sleep(interval) => {}
        }
    }
    metrics.set_ready(false);
}

/// The known limits of the store.
#[derive(Debug, Default)]
struct Limits {
    suffice: bool,
    complained: Option<Instant>,
}

impl Limits {
    /// Probes the store, and logs limits that are too low.
    async fn probe(&mut self, client: &Client) {
        let Err(failure) = client.probe_limits().await else {
            self.suffice = true;
            return;
        };
        if failure.is_retriable() {
            return;
        }
        if self
            .complained
            .is_none_or(|last| last.elapsed() > COMPLAINT_INTERVAL)
        {
            error!(
                failure = chain(&failure),
                endpoints = ?client.endpoints(),
                "not ready: the limits of etcd are too low"
            );
            self.complained = Some(Instant::now());
        }
    }
}
