//! Whether a service can do its work: its replica has listed the store, and hears of it, and the
//! store takes transactions as large as ours.

use std::time::Duration;

use service_kit::Metrics;
use service_kit::run::chain;
use store::{Client, Replica};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

/// How long the store may be silent before the service counts as unable to work. A quiet store
/// says something every second, and a replica gives a silent one up after 5 s: beyond twice that,
/// trying again has not helped.
const SILENCE_LIMIT: Duration = Duration::from_secs(10);

/// How often it is looked at: a tenth of the limit.
const INTERVAL: Duration = Duration::from_secs(1);

/// How often the first list is looked for: a service starts within moments.
const FIRST_INTERVAL: Duration = Duration::from_millis(20);

/// How often a store that takes too little is said to: each etcd has to be restarted by hand, which
/// takes minutes.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(60);

/// Shows readiness until `ended`, then says that it is not.
pub async fn show(client: Client, replica: Replica, metrics: Metrics, ended: CancellationToken) {
    let mut was_ready = false;
    let mut interval = FIRST_INTERVAL;
    let mut limits = Limits::default();
    let started = Instant::now();
    let mut was_missed = false;
    loop {
        let heard = replica.last_contact();
        let is_heard = replica.applied() > 0 && heard.is_some_and(|age| age < SILENCE_LIMIT);
        if !is_heard {
            // It may come back as another one.
            limits.suffice = false;
        } else if !limits.suffice {
            tokio::select! {
                () = ended.cancelled() => break,
                () = limits.probe(&client) => {}
            }
        }
        let is_ready = is_heard && limits.suffice;
        if is_ready != was_ready {
            if is_ready {
                info!("ready: the replica follows the store");
            } else {
                warn!(?heard, endpoints = ?client.endpoints(), "not ready: nothing is heard of etcd");
            }
            metrics.set_ready(is_ready);
            was_ready = is_ready;
        }
        if heard.is_none() && !was_missed && started.elapsed() > SILENCE_LIMIT {
            warn!(endpoints = ?client.endpoints(), "not ready: etcd has not answered yet");
            was_missed = true;
        }
        if is_heard {
            interval = INTERVAL;
        }
        tokio::select! {
            () = ended.cancelled() => break,
            () = tokio::time::sleep(interval) => {}
        }
    }
    metrics.set_ready(false);
}

/// What is known of how large a transaction the store takes.
#[derive(Debug, Default)]
struct Limits {
    suffice: bool,
    complained: Option<Instant>,
}

impl Limits {
    /// Asks the store; says so when it takes too little.
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
                "not ready: the store cannot be worked with"
            );
            self.complained = Some(Instant::now());
        }
    }
}
