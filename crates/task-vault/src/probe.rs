//! The node's attributes of Vault, from its health.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing::{info, warn};
use vault::{Client, Health};

/// Time for one probe: the agent starts while Vault is down, and other probes wait for this one.
const LIMIT: Duration = Duration::from_secs(3);
/// Interval of the probes until the first answer. Source: Nomad's public behaviour.
const FIRST_INTERVAL: Duration = Duration::from_secs(15);

/// The attributes as last probed. Cheap to clone.
///
/// They stay through an outage: a node whose attributes came and went would be evaluated again and again,
/// and tasks wait for Vault on their node anyway.
#[derive(Clone, Debug)]
pub struct Probe {
    client: Client,
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    attributes: BTreeMap<String, String>,
    /// The last probe has failed.
    is_down: bool,
}

impl Probe {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            known: Arc::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks Vault for its health.
    pub async fn refresh(&self) {
        let found = tokio::time::timeout(LIMIT, self.client.health()).await;
        let found = match found {
            Ok(Ok(health)) => attributes(&health),
            Ok(Err(failure)) => Err(failure.to_string()),
            Err(_) => Err(format!("no answer within {} s", LIMIT.as_secs())),
        };
        let mut known = self.known();
        match found {
            Ok(found) => {
                if known.is_down || known.attributes.is_empty() {
                    info!("Vault is reached");
                }
                known.attributes = found;
                known.is_down = false;
            }
            Err(reason) => {
                if !known.is_down {
                    warn!(reason, "Vault is not reached");
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

/// Source: Nomad's attributes. A sealed Vault is one that no task can use yet.
fn attributes(health: &Health) -> Result<BTreeMap<String, String>, String> {
    if !health.initialized {
        return Err("Vault is not initialized".to_owned());
    }
    if health.sealed {
        return Err("Vault is sealed".to_owned());
    }
    let pairs = [
        ("vault.accessible", "true"),
        ("vault.version", &health.version),
        ("vault.cluster_id", &health.cluster_id),
        ("vault.cluster_name", &health.cluster_name),
    ];
    let known = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    Ok(known
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect())
}
