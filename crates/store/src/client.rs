//! The connection to etcd, with reads.
//!
//! Cheap to clone; every request has a deadline. Writes go through a [`crate::Writer`].

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use etcd_client::{ConnectOptions, GetOptions, GetResponse, KvClient, LeaseClient};
use etcd_client::{MaintenanceClient, WatchClient};
use etcd_client::{Txn as EtcdTxn, TxnOp};
use futures::future::BoxFuture;
use rand::RngExt as _;
use state::{Entity, Key};
use tokio::time::{Instant, timeout_at};
use tonic::transport::{Channel, Endpoint};
use tower::util::BoxCloneSyncService;
use tracing::warn;

use crate::codec;
use crate::error::{Class, Error, classify, is_compacted};
use crate::keys::Keyspace;
use crate::login::{Login, User};
use crate::member::Member;
use crate::members::Members;
use crate::quota::QuotaReader;
use crate::retry::Retry;
use crate::revision;
use crate::socket::{Access, Connection, Timing};
use crate::txn::{Limits, SizeClass};
use crate::unsecured::PlaintextRefusal;

/// The largest message accepted from etcd. tonic's own 4 MiB fail on a page of 10,000 objects;
/// 512 MiB hold such a page of jobs with 50 KiB each.
const MAX_MESSAGE_BYTES: usize = 512 << 20;
/// etcd applies its limit of bytes to writes, and to every message with this much on top.
const READ_MARGIN_BYTES: usize = 512 << 10;
/// Timeout of connecting to one member.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A silently lost member is detected within 5 s.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(3);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(2);
/// Attempts per member of a request that never left this process: until the failover to another
/// member, each attempt goes to the same one.
const ATTEMPTS_PER_ENDPOINT: usize = 4;

/// Stands for the address of an embedded store.
const IN_PROCESS: &str = "this process";

/// Options of a client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The prefix of every key.
    pub prefix: String,
    /// The deadline of one request. etcd itself gives up a proposal after 7 s by default; 5 s is
    /// acceptable for a waiting user.
    pub request_timeout: Duration,
    pub limits: Limits,
    /// Certificates for endpoints with `https://`.
    pub tls: Option<tls::Credentials>,
    /// The user of etcd's authentication.
    pub user: Option<User>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            prefix: crate::keys::DEFAULT_PREFIX.to_owned(),
            request_timeout: Duration::from_secs(5),
            limits: Limits::DEFAULT,
            tls: None,
            user: None,
        }
    }
}

/// A connection to etcd.
#[derive(Clone)]
pub struct Client {
    pub(crate) kv: KvClient,
    pub(crate) watch: WatchClient,
    pub(crate) lease: LeaseClient,
    /// For snapshots, which any member can send.
    pub(crate) snapshots: MaintenanceClient,
    pub(crate) keyspace: Keyspace,
    pub(crate) request_timeout: Duration,
    pub(crate) limits: Limits,
    /// One connection per member, each opened on first use.
    pub(crate) maintenance: Arc<[Member]>,
    attempts: usize,
    /// 0: not known yet.
    cluster_id: Arc<AtomicU64>,
    pub(crate) endpoints: Arc<[String]>,
    refusal: PlaintextRefusal,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("keyspace", &self.keyspace)
            .finish_non_exhaustive()
    }
}

/// An object with the revisions of its key.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    pub entity: Entity,
    pub create_revision: u64,
    pub mod_revision: u64,
}

impl Client {
    /// Creates a client of the etcd cluster with the members `endpoints`; connects on first use.
    ///
    /// # Errors
    /// There is no endpoint, or one is not a URI.
    pub fn connect(
        endpoints: &[String],
        options: ClientOptions,
    ) -> BoxFuture<'_, Result<Self, Error>> {
        // Boxed here and below: the etcd client is compiled in this crate and not in every service.
        Box::pin(Self::connect_to(endpoints, options))
    }

    async fn connect_to(endpoints: &[String], options: ClientOptions) -> Result<Self, Error> {
        let connect = ConnectOptions::new()
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_keep_alive(KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT)
            .with_keep_alive_while_idle(true)
            // Without it, a watch on a member that lost its quorum just falls silent.
            .with_require_leader(true);
        let access = Access {
            timing: Timing {
                connect_timeout: CONNECT_TIMEOUT,
                keep_alive_interval: KEEP_ALIVE_INTERVAL,
                keep_alive_timeout: KEEP_ALIVE_TIMEOUT,
            },
            credentials: options.tls.clone(),
            login: options.user.clone().map(|user| Arc::new(Login::new(user))),
            no_key: options.prefix.clone(),
            refusal: PlaintextRefusal::default(),
        };
        let client = match (connections::is_simulated(), endpoints) {
            // The etcd client opens sockets by itself.
            (true, [endpoint]) => {
                let connect = ConnectOptions::new().with_require_leader(true);
                let channel = etcd_client::Channel::Tonic(simulated_channel(endpoint)?);
                etcd_client::Client::from_channel(channel, Some(connect)).await
            }
            (_, [_, _, ..]) => {
                let first = rand::rng().random_range(0..endpoints.len());
                let members = Members::new(endpoints, &access, first).await?;
                let channel = etcd_client::Channel::Custom(BoxCloneSyncService::new(members));
                etcd_client::Client::from_channel(channel, Some(connect)).await
            }
            (_, [endpoint]) => {
                let channel = access.channel(endpoint, Connection::default());
                let channel = channel.map_err(|source| {
                    let source = etcd_client::Error::TransportError(source);
                    Error::from_etcd("connect", endpoints, source)
                })?;
                let channel = etcd_client::Channel::Custom(BoxCloneSyncService::new(channel));
                etcd_client::Client::from_channel(channel, Some(connect)).await
            }
            // An error.
            (_, []) => etcd_client::Client::connect(endpoints, Some(connect)).await,
        };
        let client = client.map_err(|source| Error::from_etcd("connect", endpoints, source))?;
        let mut maintenance = Vec::new();
        for endpoint in endpoints {
            maintenance.push(maintenance_member(endpoint, &access).await?);
        }
        Ok(Self {
            refusal: access.refusal,
            ..Self::new(&client, maintenance, options, endpoints)
        })
    }

    /// Creates a client of an embedded etcd behind `channel`, without a socket.
    ///
    /// # Errors
    /// Those of the etcd client; without credentials it has none.
    pub async fn from_channel(channel: Channel, options: ClientOptions) -> Result<Self, Error> {
        let connect = ConnectOptions::new().with_require_leader(true);
        let channel = etcd_client::Channel::Tonic(channel);
        let client = etcd_client::Client::from_channel(channel, Some(connect))
            .await
            .map_err(|source| Error::from_etcd("connect", &[], source))?;
        let member = Member {
            endpoint: IN_PROCESS.to_owned(),
            client: client.maintenance_client(),
            quota: QuotaReader::new(IN_PROCESS, None),
        };
        Ok(Self::new(
            &client,
            vec![member],
            options,
            &[IN_PROCESS.to_owned()],
        ))
    }

    fn new(
        client: &etcd_client::Client,
        maintenance: Vec<Member>,
        options: ClientOptions,
        endpoints: &[String],
    ) -> Self {
        Self {
            maintenance: maintenance.into(),
            kv: client
                .kv_client()
                .max_decoding_message_size(MAX_MESSAGE_BYTES),
            watch: client
                .watch_client()
                .max_decoding_message_size(MAX_MESSAGE_BYTES),
            lease: client.lease_client(),
            snapshots: client.maintenance_client(),
            keyspace: Keyspace::new(&options.prefix),
            request_timeout: options.request_timeout,
            limits: options.limits,
            cluster_id: Arc::default(),
            attempts: endpoints.len() * ATTEMPTS_PER_ENDPOINT,
            endpoints: endpoints.into(),
            refusal: PlaintextRefusal::default(),
        }
    }

    pub fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    /// Returns the members' addresses, for display.
    pub fn endpoints(&self) -> &[String] {
        &self.endpoints
    }

    /// Checks with read-only transactions that etcd accepts as many operations and bytes as ours may
    /// have.
    ///
    /// # Errors
    /// [`Error::LimitsTooLow`] when it does not; any other error: unknown.
    pub fn probe_limits(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async {
            self.read_with_most_operations().await?;
            self.read_with_most_bytes().await
        })
    }

    /// Reads a key that is as long as the largest transaction.
    async fn read_with_most_bytes(&self) -> Result<(), Error> {
        let largest = self.limits.with(SizeClass::FollowUp).max_bytes;
        let mut key = self.keyspace.prefix().as_bytes().to_vec();
        key.resize(largest + READ_MARGIN_BYTES, b'.');
        self.call("probe the limit of a request", || {
            let (mut kv, key) = (self.kv.clone(), key.clone());
            async move { kv.get(key, Some(GetOptions::new().with_keys_only())).await }
        })
        .await?;
        Ok(())
    }

    async fn read_with_most_operations(&self) -> Result<(), Error> {
        let read = TxnOp::get(
            self.keyspace.prefix(),
            Some(GetOptions::new().with_keys_only()),
        );
        let txn = EtcdTxn::new().and_then(vec![read; self.limits.max_ops]);
        self.call("probe the limits of a transaction", || {
            let (mut kv, txn) = (self.kv.clone(), txn.clone());
            async move { kv.txn(txn).await }
        })
        .await?;
        Ok(())
    }

    /// Returns the store's revision, at least that of every write acknowledged before the call.
    ///
    /// # Errors
    /// etcd has no leader, cannot be reached, or does not answer in time.
    pub async fn current_revision(&self) -> Result<u64, Error> {
        // The cheapest linearizable read: a key that never exists.
        let options = GetOptions::new().with_keys_only();
        let response = self
            .range("read the revision", self.keyspace.prefix(), options)
            .await?;
        Ok(self.note_revision(&response))
    }

    /// Returns the id of the etcd cluster, from its last response; `None` before the first. A cluster
    /// restored from a backup has another id, unless it was given the same members' addresses and
    /// the same `--initial-cluster-token`.
    pub fn cluster_id(&self) -> Option<u64> {
        Some(self.cluster_id.load(Ordering::Relaxed)).filter(|id| *id != 0)
    }

    /// Returns the revision of a response, and notes the cluster's id.
    pub(crate) fn note_revision(&self, response: &GetResponse) -> u64 {
        if let Some(header) = response.header() {
            self.cluster_id
                .store(header.cluster_id(), Ordering::Relaxed);
        }
        header_revision(response)
    }

    /// Returns the object under `key`; `None` when it is absent or cannot be decoded (which is
    /// logged).
    ///
    /// # Errors
    /// etcd has no leader, cannot be reached, or does not answer in time.
    pub async fn get(&self, key: &Key) -> Result<Option<Stored>, Error> {
        self.get_with(key, GetOptions::new()).await
    }

    /// As [`Self::get`], as of `revision`.
    ///
    /// # Errors
    /// [`Error::Compacted`] when that revision is no longer kept; those of [`Self::get`].
    pub async fn get_at(&self, key: &Key, revision: u64) -> Result<Option<Stored>, Error> {
        let options = GetOptions::new().with_revision(revision::to_etcd(revision));
        self.get_with(key, options).await
    }

    async fn get_with(&self, key: &Key, options: GetOptions) -> Result<Option<Stored>, Error> {
        let text = self.keyspace.encode(key);
        let response = self.range("read a key", &text, options).await?;
        let Some(kv) = response.kvs().first() else {
            return Ok(None);
        };
        match codec::decode(key, kv.value()) {
            Ok(entity) => Ok(Some(Stored {
                entity,
                create_revision: revision::from_etcd(kv.create_revision()),
                mod_revision: revision::from_etcd(kv.mod_revision()),
            })),
            Err(error) => {
                warn!(key = text, %error, "skipping a value that cannot be decoded");
                Ok(None)
            }
        }
    }

    pub(crate) fn range<'a>(
        &'a self,
        doing: &'static str,
        key: &'a str,
        options: GetOptions,
    ) -> BoxFuture<'a, Result<GetResponse, Error>> {
        Box::pin(self.call(doing, move || {
            let (mut kv, options) = (self.kv.clone(), options.clone());
            async move { kv.get(key, Some(options)).await }
        }))
    }

    /// Makes one request with a deadline; retries it when it never left this process.
    pub(crate) async fn call<T, Attempt>(
        &self,
        doing: &'static str,
        attempt: impl Fn() -> Attempt,
    ) -> Result<T, Error>
    where
        Attempt: Future<Output = Result<T, etcd_client::Error>>,
    {
        self.call_within(self.request_timeout, doing, attempt).await
    }

    pub(crate) async fn call_within<T, Attempt>(
        &self,
        timeout: Duration,
        doing: &'static str,
        attempt: impl Fn() -> Attempt,
    ) -> Result<T, Error>
    where
        Attempt: Future<Output = Result<T, etcd_client::Error>>,
    {
        let deadline = Instant::now() + timeout;
        let mut retry = Retry::default();
        let mut left = self.attempts;
        loop {
            left = left.saturating_sub(1);
            let error = match timeout_at(deadline, attempt()).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => error,
                Err(_) => {
                    return Err(Error::Unknown {
                        doing,
                        source: None,
                    });
                }
            };
            if is_compacted(&error) {
                return Err(Error::Compacted { revision: 0 });
            }
            let wait = retry.next_wait();
            if classify(&error) != Class::NotSent || left == 0 || Instant::now() + wait >= deadline
            {
                let error = Error::from_etcd(doing, &self.endpoints, error);
                return Err(error.with_refusal(self.refusal.get()));
            }
            tokio::time::sleep(wait).await;
        }
    }
}

/// Returns the way to one member, which connects on first use.
async fn maintenance_member(endpoint: &str, access: &Access) -> Result<Member, Error> {
    let failed = |source| Error::from_etcd("connect", &[endpoint.to_owned()], source);
    let (channel, plain) = if connections::is_simulated() {
        (
            etcd_client::Channel::Tonic(simulated_channel(endpoint)?),
            None,
        )
    } else {
        let channel = access.channel(endpoint, Connection::default());
        let channel = channel.map_err(|error| failed(error.into()))?;
        let plain = channel.channel.clone();
        let channel = etcd_client::Channel::Custom(BoxCloneSyncService::new(channel));
        (channel, Some(plain))
    };
    let client = etcd_client::Client::from_channel(channel, None).await;
    Ok(Member {
        endpoint: endpoint.to_owned(),
        client: client.map_err(failed)?.maintenance_client(),
        quota: QuotaReader::new(endpoint, plain),
    })
}

/// Returns a channel with the settings of the etcd client's own.
fn simulated_channel(endpoint: &str) -> Result<Channel, Error> {
    let bad = |source| {
        let source = etcd_client::Error::TransportError(source);
        Error::from_etcd("connect", &[endpoint.to_owned()], source)
    };
    let endpoint = Endpoint::from_shared(endpoint.to_owned()).map_err(bad)?;
    let endpoint = endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true);
    Ok(connections::connect_lazy(&endpoint))
}

pub(crate) fn header_revision(response: &GetResponse) -> u64 {
    response
        .header()
        .map_or(0, |header| revision::from_etcd(header.revision()))
}
