//! The loop that keeps a node's services registered, and the states of their checks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use consul::agent::{CheckProbe, CheckState, Registration};
use consul::{Client, Failure};
use rand::RngExt as _;
use rand::rngs::StdRng;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{debug, info, warn};

use crate::plan::{Actual, CHECK_PREFIX, Step, steps};

/// The interval of comparisons without a change. Source: Nomad's public behaviour.
const SYNC_INTERVAL: Duration = Duration::from_secs(30);
/// The interval of looks at the states of checks, which deployments and restarts wait for. It is one request
/// to the agent on the same machine, however many checks there are.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// First and longest delay after a failure.
const DELAYS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// Services of an earlier run stay for this long after the start: the runners of their allocations find
/// their tasks again meanwhile. Source: Nomad's public behaviour.
const LEFTOVERS_AFTER: Duration = Duration::from_secs(60);
/// Time for the last deregistrations when the node's agent ends.
const LAST_SYNC_LIMIT: Duration = Duration::from_secs(2);

/// The services of a node. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Services {
    client: Client,
    shared: Arc<Shared>,
    leftovers_after: Duration,
}

#[derive(Debug)]
struct Shared {
    known: Mutex<Known>,
    wake: Notify,
    states: watch::Sender<States>,
}

#[derive(Debug, Default)]
struct Known {
    /// Owner, an allocation -> its services.
    wanted: BTreeMap<String, Vec<Registration>>,
    /// Services that ended in this run, until the agent has none of them.
    departed: BTreeSet<String>,
}

/// The states of the node's checks, as Consul last told them.
#[derive(Clone, Debug, Default)]
pub struct States {
    /// The number of answers so far: an old state is not a new result.
    pub round: u64,
    /// Id of the check -> its state.
    pub by_id: Arc<BTreeMap<String, CheckReport>>,
}

/// The state of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    pub state: CheckState,
    pub output: String,
}

impl Services {
    pub fn new(client: Client) -> Self {
        let shared = Shared {
            known: Mutex::default(),
            wake: Notify::new(),
            states: watch::Sender::new(States::default()),
        };
        Self {
            client,
            shared: Arc::new(shared),
            leftovers_after: LEFTOVERS_AFTER,
        }
    }

    /// Replaces the services of an owner; without any, all of its services are deregistered. Returns at once.
    pub fn put(&self, owner: &str, services: Vec<Registration>) {
        let mut known = self.known();
        let before = if services.is_empty() {
            let Some(before) = known.wanted.remove(owner) else {
                return;
            };
            before
        } else {
            if known.wanted.get(owner) == Some(&services) {
                return;
            }
            let before = known.wanted.insert(owner.to_owned(), services);
            before.unwrap_or_default()
        };
        let now = known.wanted.get(owner).map_or(&[][..], Vec::as_slice);
        let gone = before
            .iter()
            .filter(|old| now.iter().all(|new| new.id != old.id));
        let gone: Vec<String> = gone.map(|old| old.id.clone()).collect();
        known.departed.extend(gone);
        drop(known);
        self.shared.wake.notify_one();
    }

    /// The states of the checks; a change is one of states alone, not of the round.
    pub fn states(&self) -> watch::Receiver<States> {
        self.shared.states.subscribe()
    }

    /// Sends the result of a check that the node runs itself.
    pub async fn update_check(&self, id: &str, state: CheckState, output: &str) {
        match self.client.update_check(id, state, output).await {
            Ok(()) => {}
            // The next run of the check sends its result again.
            Err(failure) => debug!(check = id, %failure, "Consul has no result of a check"),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.shared
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the services registered until `ended`, and sends the last deregistrations then. `rng` spreads
    /// retries.
    pub async fn run(&self, mut rng: StdRng, ended: impl Future<Output = ()>) {
        tokio::pin!(ended);
        let started = Instant::now();
        let mut problem = Problem::default();
        let mut next_sync = started;
        loop {
            let now = Instant::now();
            let is_sync = now >= next_sync;
            let result = if is_sync {
                let leftovers_too = started.elapsed() >= self.leftovers_after;
                self.sync(leftovers_too).await.map(|()| Look::Complete)
            } else {
                self.poll().await
            };
            let look = result.as_ref().map_or(Look::Complete, |look| *look);
            let wait = match problem.after(result.map(drop)) {
                Some(failures) => {
                    next_sync = now;
                    backoff::delay(DELAYS, failures, rng.random())
                }
                None if look == Look::ChecksMissing => {
                    next_sync = now;
                    Duration::ZERO
                }
                None => {
                    if is_sync {
                        next_sync = now + SYNC_INTERVAL;
                    }
                    self.interval()
                }
            };
            tokio::select! {
                biased;
                () = &mut ended => break,
                () = self.shared.wake.notified() => next_sync = now,
                () = sleep_until(Instant::now() + wait) => {}
            }
        }
        // Tasks that go on keep their services.
        if !self.known().departed.is_empty() {
            let _ = timeout(LAST_SYNC_LIMIT, self.sync(false)).await;
        }
    }

    /// The time until the next look.
    fn interval(&self) -> Duration {
        let known = self.known();
        let services = known.wanted.values().flatten();
        let is_ttl = |probe: &CheckProbe| matches!(probe, CheckProbe::Ttl { .. });
        let mut checks = services.flat_map(|service| &service.checks);
        if checks.any(|check| !is_ttl(&check.probe)) {
            POLL_INTERVAL
        } else {
            SYNC_INTERVAL
        }
    }

    /// Reads the states of checks.
    async fn poll(&self) -> Result<Look, Failure> {
        let checks = self.client.agent_checks().await?;
        let is_complete = {
            let known = self.known();
            let services = known.wanted.values().flatten();
            let mut wanted = services.flat_map(|service| &service.checks);
            wanted.all(|check| checks.contains_key(&check.id))
        };
        self.publish(&checks);
        Ok(if is_complete {
            Look::Complete
        } else {
            Look::ChecksMissing
        })
    }

    fn publish(&self, checks: &BTreeMap<String, consul::agent::AgentCheck>) {
        let own = checks.iter().filter(|(id, _)| id.starts_with(CHECK_PREFIX));
        let own = own.map(|(id, check)| {
            let report = CheckReport {
                state: check.status,
                output: check.output.clone(),
            };
            (id.clone(), report)
        });
        let found: BTreeMap<String, CheckReport> = own.collect();
        self.shared.states.send_if_modified(|states| {
            states.round += 1;
            let is_changed = *states.by_id != found;
            if is_changed {
                states.by_id = Arc::new(found);
            }
            is_changed
        });
    }

    /// Compares and repairs, once. All steps are tried; the first failure is returned.
    async fn sync(&self, leftovers_too: bool) -> Result<(), Failure> {
        let actual = Actual {
            services: self.client.agent_services().await?,
            checks: self.client.agent_checks().await?,
        };
        self.publish(&actual.checks);
        let (wanted, steps) = {
            let mut known = self.known();
            // Deregistered, or never registered.
            known.departed.retain(|id| actual.services.contains_key(id));
            let wanted: BTreeMap<String, Registration> = known
                .wanted
                .values()
                .flatten()
                .map(|service| (service.id.clone(), service.clone()))
                .collect();
            let by_id = wanted.iter().map(|(id, it)| (id.as_str(), it)).collect();
            let steps = steps(&by_id, &known.departed, &actual, leftovers_too);
            (wanted, steps)
        };
        let mut first = Ok(());
        for step in steps {
            let done = match &step {
                Step::Deregister(id) => self.client.deregister(id).await,
                Step::DeregisterCheck(id) => self.client.deregister_check(id).await,
                Step::Register(id) => match wanted.get(id) {
                    Some(service) => self.client.register(service).await,
                    None => Ok(()),
                },
            };
            match done {
                Ok(()) => info!(?step, "service or check changed in Consul"),
                // The next requests would fail as well, each after its timeout.
                Err(failure) if failure.is_transient() => return Err(failure),
                Err(failure) => {
                    warn!(?step, %failure, "Consul refuses a service");
                    first = first.and(Err(failure));
                }
            }
        }
        first
    }
}

/// The result of a look at the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Complete,
    /// The agent has lost checks, and probably services: it was restarted without its data.
    ChecksMissing,
}

/// Failures in a row.
#[derive(Debug, Default)]
struct Problem {
    failures: u32,
    last: Option<Failure>,
}

impl Problem {
    /// Returns the number of failures after this result; `None`: it is a success. Logs each reason once.
    fn after(&mut self, result: Result<(), Failure>) -> Option<u32> {
        let Err(failure) = result else {
            if self.last.take().is_some() {
                info!("Consul has the node's services again");
            }
            self.failures = 0;
            return None;
        };
        self.failures = self.failures.saturating_add(1);
        if self.last.as_ref() != Some(&failure) {
            warn!(%failure, "the node's services in Consul may be outdated");
        }
        self.last = Some(failure);
        Some(self.failures)
    }
}

#[cfg(test)]
mod tests;
