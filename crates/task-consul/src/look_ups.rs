//! Queries of a node: one for each look-up, shared by its tasks, which waits for changes.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use consul::{Client, Failure, Wait};
use rand::RngExt as _;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{Instrument as _, debug};

use crate::answer::Raw;
use crate::query::{Kind, Query};

/// Queries of a node that wait at a time, each with a connection of its own: Consul allows 200 of one
/// client. Beyond it they are polled.
const WAITS: usize = 128;
/// The interval of polls.
const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// Data that changes all the time is read this often at most.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
/// First and longest delay after a failure.
const DELAYS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// A query that no task asks for ends after this time.
const KEPT: Duration = Duration::from_secs(60);

/// The queries of a node. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LookUps {
    client: Client,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queries: Mutex<BTreeMap<Query, Running>>,
    waits: Semaphore,
}

#[derive(Debug)]
struct Running {
    newest: watch::Receiver<Newest>,
    /// When a task has last asked.
    asked: Instant,
}

/// The newest result of a query.
#[derive(Clone, Debug, Default)]
struct Newest {
    /// Kept while Consul fails.
    data: Option<Raw>,
    /// The failure of the last try, without secrets; `None` after a success.
    failure: Option<Failure>,
}

impl LookUps {
    pub fn new(client: Client) -> Self {
        let shared = Shared {
            queries: Mutex::default(),
            waits: Semaphore::new(WAITS),
        };
        Self {
            client,
            shared: Arc::new(shared),
        }
    }

    /// Returns the newest data of a query; the first time, waits for it.
    ///
    /// # Errors
    /// There is no data yet, because Consul does not give it.
    pub async fn get(&self, query: Query) -> Result<Raw, Failure> {
        let mut newest = self.ask(query);
        let is_known = |newest: &Newest| newest.data.is_some() || newest.failure.is_some();
        let known = newest.wait_for(is_known).await.map(|known| known.clone());
        match known {
            Ok(Newest {
                data: Some(data), ..
            }) => Ok(data),
            Ok(Newest { failure, .. }) => Err(failure.unwrap_or(Failure::Throttled)),
            // The query has ended, which it does not while a task asks.
            Err(_) => Err(Failure::Throttled),
        }
    }

    fn ask(&self, query: Query) -> watch::Receiver<Newest> {
        let now = Instant::now();
        match self.shared.queries().entry(query) {
            Entry::Occupied(mut known) => {
                known.get_mut().asked = now;
                known.get().newest.clone()
            }
            Entry::Vacant(new) => {
                let (sender, newest) = watch::channel(Newest::default());
                let run = self.clone().run(new.key().clone(), sender);
                tokio::spawn(run.in_current_span());
                new.insert(Running { newest, asked: now }).newest.clone()
            }
        }
    }

    /// Follows a query until no task asks for it any more.
    async fn run(self, query: Query, newest: watch::Sender<Newest>) {
        let mut wait = Wait::None;
        let mut failures = 0;
        while !self.shared.is_over(&query) {
            let began = Instant::now();
            let slot = self.shared.waits.try_acquire().ok();
            let waits = slot.is_some() && query.kind != Kind::Datacenters;
            let used = if waits { wait } else { Wait::None };
            match self.fetch(&query, used).await {
                Ok((data, index)) => {
                    failures = 0;
                    wait = Wait::after(used, index);
                    newest.send_if_modified(|newest| {
                        let is_new =
                            newest.data.as_ref() != Some(&data) || newest.failure.is_some();
                        newest.failure = None;
                        newest.data = Some(data);
                        is_new
                    });
                    drop(slot);
                    let interval = if waits {
                        SHORTEST_INTERVAL
                    } else {
                        POLL_INTERVAL
                    };
                    // The first answer came at once; the next request waits for a change.
                    if used != Wait::None || !waits {
                        sleep_until(began + interval).await;
                    }
                }
                Err(failure) => {
                    drop(slot);
                    debug!(kind = ?query.kind, %failure, "a look-up in Consul failed");
                    failures += 1;
                    // The index may be of a server that has lost its state.
                    wait = Wait::None;
                    newest.send_modify(|newest| newest.failure = Some(failure));
                    let jitter = rand::rng().random();
                    sleep(backoff::delay(DELAYS, failures, jitter)).await;
                }
            }
        }
    }

    async fn fetch(&self, query: &Query, wait: Wait) -> Result<(Raw, u64), Failure> {
        let (client, scope) = (&self.client, &query.scope);
        Ok(match &query.kind {
            Kind::Key(key) => {
                let found = client.key(key, scope, wait).await?;
                (Raw::Key(found.data), found.index)
            }
            Kind::Keys(prefix) => {
                let found = client.keys(prefix, scope, wait).await?;
                (Raw::Keys(found.data), found.index)
            }
            Kind::Service { name, tag, passing } => {
                let found = client
                    .service((name.as_str(), tag.as_str()), *passing, scope, wait)
                    .await?;
                (Raw::Service(found.data), found.index)
            }
            Kind::Services => {
                let found = client.services(scope, wait).await?;
                (Raw::Services(found.data), found.index)
            }
            Kind::Node(name) => {
                let own = match name.as_str() {
                    "" => client.agent_self().await?.config.node_name,
                    name => name.to_owned(),
                };
                let found = client.node(&own, scope, wait).await?;
                (Raw::Node(found.data), found.index)
            }
            Kind::Nodes => {
                let found = client.nodes(scope, wait).await?;
                (Raw::Nodes(found.data), found.index)
            }
            Kind::Datacenters => (Raw::Datacenters(client.datacenters(&scope.token).await?), 0),
        })
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        self.shared.queries().len()
    }
}

impl Shared {
    fn queries(&self) -> MutexGuard<'_, BTreeMap<Query, Running>> {
        self.queries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a query that no task asks for.
    fn is_over(&self, query: &Query) -> bool {
        let mut queries = self.queries();
        let is_asked = |running: &Running| running.asked.elapsed() < KEPT;
        if queries.get(query).is_some_and(is_asked) {
            return false;
        }
        queries.remove(query);
        true
    }
}

#[cfg(test)]
mod tests {
    use consul::{ConsulConfig, Scope, Token};
    use consul_test_kit::Consul;

    use super::*;

    fn look_ups(consul: &Consul) -> LookUps {
        let config = ConsulConfig {
            address: consul.address(),
            ..ConsulConfig::default()
        };
        LookUps::new(Client::open(&config).unwrap())
    }

    fn key(name: &str) -> Query {
        Query {
            kind: Kind::Key(name.to_owned()),
            scope: Scope::default(),
        }
    }

    async fn value(look_ups: &LookUps, name: &str) -> Option<String> {
        match look_ups.get(key(name)).await.unwrap() {
            Raw::Key(pair) => pair.map(|pair| pair.value),
            other => panic!("{other:?}"),
        }
    }

    /// Waits for a value; a change is there within the time of the check.
    async fn until(look_ups: &LookUps, name: &str, want: Option<&str>) {
        let limit = Duration::from_secs(20);
        let waiting = async {
            while value(look_ups, name).await.as_deref() != want {
                sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(limit, waiting)
            .await
            .expect("the value comes");
    }

    #[tokio::test]
    async fn one_query_follows_a_key_for_all_tasks() {
        let consul = Consul::start().await;
        let look_ups = look_ups(&consul);
        assert_eq!(value(&look_ups, "app/name").await, None);
        let first = value(&look_ups, "app/name");
        let second = value(&look_ups, "app/name");
        assert_eq!(tokio::join!(first, second), (None, None));
        consul.put_key("app/name", "one");
        until(&look_ups, "app/name", Some("one")).await;
        consul.delete_key("app/name");
        until(&look_ups, "app/name", None).await;
        assert_eq!(look_ups.count(), 1);
        // Queries that wait, not polls.
        assert!(consul.count("GET kv/app/name") < 10);
        assert!(consul.count("index=") > 0);
    }

    #[tokio::test]
    async fn an_outage_keeps_the_data_and_its_first_failure_is_reported() {
        let mut consul = Consul::start().await;
        consul.put_key("a", "one");
        let look_ups = look_ups(&consul);
        assert_eq!(value(&look_ups, "a").await.as_deref(), Some("one"));
        consul.stop();
        sleep(Duration::from_millis(300)).await;
        assert_eq!(value(&look_ups, "a").await.as_deref(), Some("one"));
        let failure = look_ups.get(key("b")).await.unwrap_err();
        assert!(matches!(failure, Failure::Call(_)), "{failure}");
        consul.put_key("a", "two");
        consul.serve().await;
        until(&look_ups, "a", Some("two")).await;
    }

    #[tokio::test]
    async fn each_token_has_its_own_data() {
        let consul = Consul::start().await;
        consul.put_key("a", "secret");
        consul.require_token("good");
        let look_ups = look_ups(&consul);
        let with = |token: &str| {
            let mut query = key("a");
            query.scope.token = Token::new(token);
            look_ups.get(query)
        };
        assert!(with("good").await.is_ok());
        let denied = with("bad").await.unwrap_err();
        assert!(matches!(denied, Failure::Forbidden { .. }), "{denied}");
    }
}
