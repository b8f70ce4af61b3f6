//! The two backends of the contract tests, and their test data.

use std::net::SocketAddr;
use std::time::Duration;

use model::{EvalStatus, Evaluation};
use state::Key;
use store::{Client, ClientOptions, Commit, Delta, Replica, ReplicaOptions, Subscription, Writer};
use store_test_kit::TestStore;
use test_kit::builders::{evaluation, service};
use test_kit::etcd::Etcd;
use test_kit::proxy::Proxy;
use test_kit::writes;
use tokio_util::sync::CancellationToken;

/// Limit of waits for prompt events: generous, for loaded machines.
pub(crate) const WAIT_LIMIT: Duration = Duration::from_secs(20);
/// The deadline of requests that get no answer.
pub(crate) const SHORT: Duration = Duration::from_millis(300);

/// A server under the contract.
pub(crate) struct Backend {
    address: SocketAddr,
    server: Server,
}

enum Server {
    Embedded(TestStore),
    Etcd(#[expect(dead_code, reason = "held until the test ends")] Etcd),
}

impl Backend {
    pub(crate) async fn embedded() -> Option<Self> {
        let store = TestStore::start().await;
        Some(Self {
            address: store.address,
            server: Server::Embedded(store),
        })
    }

    /// Returns `None` without an etcd binary.
    pub(crate) async fn etcd() -> Option<Self> {
        if !test_kit::etcd::available() {
            return None;
        }
        let etcd = Etcd::start().await.unwrap();
        Some(Self {
            address: etcd.address(),
            server: Server::Etcd(etcd),
        })
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns a client; that of the embedded etcd has no socket, as in `kafila dev`.
    pub(crate) async fn client(&self) -> Client {
        match &self.server {
            Server::Embedded(store) => {
                Client::from_channel(store.etcd.channel(), ClientOptions::default())
                    .await
                    .unwrap()
            }
            Server::Etcd(_) => connect(&self.endpoint(), ClientOptions::default()).await,
        }
    }

    pub(crate) async fn proxy(&self) -> Proxy {
        Proxy::start(self.address).await.unwrap()
    }

    /// Returns the plain etcd client, for operations that the store does not have.
    pub(crate) async fn raw(&self) -> etcd_client::Client {
        etcd_client::Client::connect([self.endpoint()], None)
            .await
            .unwrap()
    }

    /// Compacts everything before the newest revision.
    pub(crate) async fn compact(&self) {
        let mut raw = self.raw().await;
        let newest = raw
            .get("x", None)
            .await
            .unwrap()
            .header()
            .unwrap()
            .revision();
        raw.compact(newest, None).await.unwrap();
    }
}

pub(crate) async fn connect(endpoint: &str, options: ClientOptions) -> Client {
    Client::connect(&[endpoint.to_owned()], options)
        .await
        .unwrap()
}

/// Returns a client through `proxy` with short request timeouts.
pub(crate) async fn impatient(proxy: &Proxy) -> Client {
    let options = ClientOptions {
        request_timeout: SHORT,
        ..ClientOptions::default()
    };
    connect(&proxy.endpoint(), options).await
}

pub(crate) async fn replica(client: &Client) -> Replica {
    let replica = Replica::start(client.clone(), ReplicaOptions::default(), never());
    replica.ready(WAIT_LIMIT).await.unwrap();
    replica
}

/// Returns a drain token that is never cancelled.
pub(crate) fn never() -> CancellationToken {
    CancellationToken::new()
}

/// Returns evaluation number `number`, pending.
pub(crate) fn eval(number: u128) -> Evaluation {
    evaluation(number, &service("web", 1))
}

pub(crate) fn key(eval: &Evaluation) -> Key {
    Key::Eval(eval.id)
}

/// Returns the same evaluation with another status.
pub(crate) fn complete(mut eval: Evaluation) -> Evaluation {
    eval.status = EvalStatus::Complete;
    eval
}

/// Returns a subscriber's next item, which must come in time.
pub(crate) async fn next(changes: &mut Subscription) -> Option<Delta> {
    tokio::time::timeout(WAIT_LIMIT, changes.next())
        .await
        .expect("an item in time")
}

/// Stores a new evaluation and returns the revision.
pub(crate) async fn create(writer: &Writer, eval: &Evaluation) -> u64 {
    let mut txn = writer.txn();
    txn.add(&writes::create(&key(eval), eval)).unwrap();
    done(writer.commit(&txn).await.unwrap())
}

/// Replaces an evaluation and returns the revision.
pub(crate) async fn update(writer: &Writer, mod_revision: u64, eval: &Evaluation) -> u64 {
    let mut txn = writer.txn();
    txn.add(&writes::update(&key(eval), mod_revision, eval))
        .unwrap();
    done(writer.commit(&txn).await.unwrap())
}

pub(crate) fn done(commit: Commit) -> u64 {
    commit.revision().unwrap_or_else(|| panic!("{commit:?}"))
}

/// Runs each test on both backends.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                if let Some(backend) = crate::support::Backend::embedded().await {
                    super::$name(backend).await;
                }
            })*
        }
        mod etcd {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                if let Some(backend) = crate::support::Backend::etcd().await {
                    super::$name(backend).await;
                }
            })*
        }
    };
}
pub(crate) use on_both;
