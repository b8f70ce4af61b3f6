//! Attributes of a service that the node uses, as last probed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tracing::{info, warn};

/// Time for one probe: the node's agent starts while the service is down, and other probes wait for this one.
const LIMIT: Duration = Duration::from_secs(3);
/// Interval of the probes until the first answer. Source: Nomad's public behaviour.
const FIRST_INTERVAL: Duration = Duration::from_secs(15);

/// Reads the attributes once.
type Read = dyn Fn() -> BoxFuture<'static, Result<BTreeMap<String, String>, String>> + Send + Sync;

/// The attributes of one service. Cheap to clone.
///
/// They stay through an outage: a node whose attributes came and went would be evaluated again and again,
/// and tasks and services of the node wait for the service anyway.
#[derive(Clone)]
pub struct Probe {
    service: &'static str,
    read: Arc<Read>,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    attributes: BTreeMap<String, String>,
    /// The last probe has failed.
    is_down: bool,
}

impl Probe {
    /// A probe without an answer yet. `service` is the name in logs, as in `Vault`; `read` gives the reason why
    /// there are no attributes.
    pub fn new(
        service: &'static str,
        read: impl Fn() -> BoxFuture<'static, Result<BTreeMap<String, String>, String>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            service,
            read: Arc::new(read),
            known: Arc::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the service.
    pub async fn refresh(&self) {
        let found = tokio::time::timeout(LIMIT, (self.read)()).await;
        let found =
            found.unwrap_or_else(|_| Err(format!("no answer within {} s", LIMIT.as_secs())));
        let service = self.service;
        let mut known = self.known();
        match found {
            Ok(found) => {
                if known.is_down || known.attributes.is_empty() {
                    info!(service, "the service is reached");
                }
                known.attributes = found;
                known.is_down = false;
            }
            Err(reason) => {
                if !known.is_down {
                    warn!(service, reason, "the service is not reached");
                }
                known.is_down = true;
            }
        }
    }

    pub fn attributes(&self) -> BTreeMap<String, String> {
        self.known().attributes.clone()
    }

    /// The time until the next probe: `usual`, and less before the first answer. `jitter` (0 to 1) takes up to
    /// a tenth off, so that the nodes of a cluster do not ask at once.
    pub fn interval(&self, usual: Duration, jitter: f64) -> Duration {
        let is_known = !self.known().attributes.is_empty();
        let interval = if is_known {
            usual
        } else {
            usual.min(FIRST_INTERVAL)
        };
        interval.mul_f64(1.0 - 0.1 * jitter.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn the_attributes_stay_through_an_outage() {
        let answer = Arc::new(Mutex::new(Err("it is down".to_owned())));
        let answers = Arc::clone(&answer);
        let probe = Probe::new("Vault", move || {
            let answer = answers.lock().unwrap().clone();
            Box::pin(async { answer })
        });
        probe.refresh().await;
        assert!(probe.attributes().is_empty());
        assert_eq!(probe.interval(MINUTE, 0.0), FIRST_INTERVAL);
        let found = BTreeMap::from([("vault.version".to_owned(), "1.15.2".to_owned())]);
        *answer.lock().unwrap() = Ok(found.clone());
        probe.refresh().await;
        assert_eq!(probe.attributes(), found);
        assert_eq!(probe.interval(MINUTE, 1.0), Duration::from_secs(54));
        *answer.lock().unwrap() = Err("it is down again".to_owned());
        probe.refresh().await;
        assert_eq!(probe.attributes(), found, "an outage does not move tasks");
        assert_eq!(probe.interval(MINUTE, 0.0), MINUTE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_service_holds_nothing_up() {
        let probe = Probe::new("Consul", || Box::pin(std::future::pending()));
        let began = tokio::time::Instant::now();
        probe.refresh().await;
        assert_eq!(began.elapsed(), LIMIT);
        assert!(probe.attributes().is_empty());
    }
}
