//! The source of templates' secrets: look-ups become requests to Vault with the task's token.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use login_provider::TokenWatch;
use rand::RngExt as _;
use serde_json::{Value, json};
use service_kit::Clock;
use template::Lookup;
use template::source::{Answer, Hidden};
use template_watch::{Fetch, FetchError, Fetched};
use vault::kv::{self, Mount, Use};
use vault::schedule::{self, Origin, SecretStep};
use vault::{Client, Failure, Secret, Token};

use crate::node::Node;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Secrets of one task.
#[derive(Clone, Debug)]
pub struct Secrets {
    client: Client,
    token: TokenWatch,
    poll_interval: Duration,
    clock: Clock,
    known: Arc<Mutex<Known>>,
}

/// Knowledge from earlier answers.
#[derive(Debug, Default)]
struct Known {
    /// By path.
    mounts: BTreeMap<String, Mount>,
    /// Leases that are renewed, by look-up.
    leases: BTreeMap<Lookup, Lease>,
}

/// A lease that can be renewed.
#[derive(Clone, Debug)]
struct Lease {
    id: String,
    first: Duration,
    /// The token that it belongs to.
    generation: u64,
}

impl Secrets {
    /// The secrets of a task whose token is in `namespace`; empty: the node's.
    pub fn new(node: &Node, namespace: &str, token: TokenWatch, clock: Clock) -> Self {
        Self {
            client: node.client().in_namespace(namespace),
            token,
            poll_interval: node.poll_interval(),
            clock,
            known: Arc::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn look_up(self, lookup: Lookup) -> Result<Fetched, FetchError> {
        let state = self.token.now();
        let Some(token) = state.token else {
            let reason = state
                .problem
                .unwrap_or_else(|| "the login is under way".to_owned());
            return Err(FetchError::new(format!(
                "the task has no token of Vault: {reason}"
            )));
        };
        let result = match &lookup {
            Lookup::Secret { path } => self.read(&lookup, path, &token, state.generation).await,
            Lookup::Secrets { path } => self.list(path, &token).await,
            Lookup::SecretWrite { path, values } => {
                self.write(&lookup, (path, values), &token, state.generation)
                    .await
            }
            _ => {
                let problem = format!("this node has no {}", lookup.system());
                Err(Failure::request(problem))
            }
        };
        result.map_err(|failure| {
            if matches!(failure, Failure::Forbidden { .. }) {
                self.token.request_test();
            }
            FetchError {
                message: failure.to_string(),
                retry_after: failure.retry_after(),
            }
        })
    }

    async fn read(
        &self,
        lookup: &Lookup,
        path: &str,
        token: &Token,
        generation: u64,
    ) -> Result<Fetched, Failure> {
        if let Some(fetched) = self.renew(lookup, token, generation).await? {
            return Ok(fetched);
        }
        let (path, version) = kv::split_version(path).map_err(Failure::request)?;
        let path = self.api_path(path, Use::Read, token).await?.0;
        let secret = self.client.read(&path, version, token).await?;
        if secret.is_deleted_version() {
            return Err(Failure::Absent);
        }
        Ok(self.fetched(lookup, secret, Origin::Read, generation))
    }

    async fn list(&self, path: &str, token: &Token) -> Result<Fetched, Failure> {
        let path = self.api_path(path, Use::List, token).await?.0;
        let names = match self.client.list(&path, token).await {
            Ok(secret) => secret.keys(),
            // An empty folder does not exist.
            Err(Failure::Absent) => Vec::new(),
            Err(failure) => return Err(failure),
        };
        Ok(Fetched {
            answer: Some(Answer::Names(names)),
            again: Some(self.poll_interval),
        })
    }

    async fn write(
        &self,
        lookup: &Lookup,
        (path, values): (&str, &Hidden),
        token: &Token,
        generation: u64,
    ) -> Result<Fetched, Failure> {
        if let Some(fetched) = self.renew(lookup, token, generation).await? {
            return Ok(fetched);
        }
        let (path, is_kv2) = self.api_path(path, Use::Read, token).await?;
        let data = json!(values.0);
        let data = if is_kv2 {
            json!({ "data": data })
        } else {
            data
        };
        let secret = self.client.write(&path, &data, token).await?;
        Ok(self.fetched(lookup, secret, Origin::Write, generation))
    }

    /// Renews the lease of an earlier answer. `None`: there is none, or it has ended or ends soon.
    async fn renew(
        &self,
        lookup: &Lookup,
        token: &Token,
        generation: u64,
    ) -> Result<Option<Fetched>, Failure> {
        let lease = self.known().leases.remove(lookup);
        // The leases of a lost token end with it.
        let Some(lease) = lease.filter(|lease| lease.generation == generation) else {
            return Ok(None);
        };
        match self.client.renew_lease(&lease.id, token).await {
            Ok(renewed) => {
                let length = renewed.lease().unwrap_or_default();
                if !renewed.renewable || schedule::is_near_its_end(length, lease.first) {
                    return Ok(None);
                }
                self.known().leases.insert(lookup.clone(), lease);
                Ok(Some(Fetched {
                    answer: None,
                    again: Some(length / 2),
                }))
            }
            Err(failure) if failure.is_transient() => {
                self.known().leases.insert(lookup.clone(), lease);
                Err(failure)
            }
            Err(_) => Ok(None),
        }
    }

    fn fetched(
        &self,
        lookup: &Lookup,
        mut secret: Secret,
        origin: Origin,
        generation: u64,
    ) -> Fetched {
        let now = self.clock.now() / NANOS_PER_SECOND;
        let jitter = rand::rng().random();
        let again = match schedule::secret(&secret, origin, self.poll_interval, now, jitter) {
            SecretStep::Renew(after) => {
                let lease = Lease {
                    id: secret.lease_id.clone(),
                    first: secret.lease().unwrap_or_default(),
                    generation,
                };
                self.known().leases.insert(lookup.clone(), lease);
                Some(after)
            }
            SecretStep::Read(after) => Some(after),
            SecretStep::Keep => None,
        };
        // A new token, as from auth/token/create, is data of the template.
        if let (Value::Null, Some(auth)) = (&secret.data, &secret.auth) {
            secret.data = json!({ "client_token": auth.token.expose(), "accessor": auth.accessor });
        }
        let answer = template::source::Secret {
            request_id: secret.request_id,
            lease_id: secret.lease_id,
            lease_duration: secret.lease_duration,
            renewable: secret.renewable,
            data: secret.data,
        };
        Fetched {
            answer: Some(Answer::Secret(answer)),
            again,
        }
    }

    /// The path of the API, and whether KV version 2 is mounted there. A token that may not see the mount may
    /// have a right to the path as it is written.
    async fn api_path(
        &self,
        path: &str,
        usage: Use,
        token: &Token,
    ) -> Result<(String, bool), Failure> {
        let known = {
            let known = self.known();
            let mut mounts = known.mounts.values();
            mounts.find(|mount| path.starts_with(&mount.path)).cloned()
        };
        let mount = match known {
            Some(mount) => mount,
            None => match self.client.mount(path, token).await {
                Ok(mount) => {
                    self.known()
                        .mounts
                        .insert(mount.path.clone(), mount.clone());
                    mount
                }
                Err(failure) if failure.is_transient() => return Err(failure),
                Err(_) => return Ok((path.to_owned(), false)),
            },
        };
        Ok((mount.api_path(path, usage), mount.is_kv2))
    }
}

impl Fetch for Secrets {
    fn fetch(&self, lookup: Lookup) -> BoxFuture<'static, Result<Fetched, FetchError>> {
        Box::pin(self.clone().look_up(lookup))
    }
}
