//! The etcd member in use, with failover to another.
//!
//! A health check asks the member in use with the cheapest request that needs a quorum. When it does
//! not answer in time and another member does, all requests go to the other one, and the connection
//! to the first is closed. So requests, watches and lease renewals under way on it fail at once and
//! not at their deadline. While no member answers, no connection is closed: the quorum may be lost,
//! and waiting is the only option.
//!
//! The connection is also closed once when etcd has elected a new leader: a proposal on its way to
//! the old leader is lost, and the member that forwarded it reports that only after seven seconds.
//!
//! A balancer over all members would send a share of the requests to a member that is partitioned
//! or frozen, for as long as its connection looks alive.

use std::fmt;
use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use etcd_client::{ConnectOptions, GetOptions, KvClient};
use futures::future::{BoxFuture, select_ok};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service};
use tracing::{info, warn};

use crate::error::{Class, Error, classify};
use crate::login::LoggedIn;
use crate::socket::{Access, Connection};

/// Interval of health checks without failures. A silent member delays requests by this and
/// [`ANSWER_TIMEOUT`] at most.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Timeout of a health check. Over links of 200 ms each way an answer takes 0.8 to 1.2 s, and an
/// election of etcd takes 1 to 2 s.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(1_500);
/// Time without a failover that takes back one doubling of the timeout: see [`FailoverBackoff`].
const CALM_PERIOD: Duration = Duration::from_secs(20);
/// Limit of doublings of the timeout: to 12 s, longer than any request waits.
const MAX_DOUBLINGS: u32 = 3;

/// A channel to the member in use. Cheap to clone; the health checks end with the last clone.
#[derive(Clone)]
pub(crate) struct Members {
    shared: Arc<Shared>,
}

struct Shared {
    /// At least two.
    members: Vec<Member>,
    current: AtomicUsize,
    /// The newest known term of etcd's own leader election; 0: none yet.
    raft_term: AtomicU64,
    /// Notified when a request fails in transport.
    request_failed: Arc<Notify>,
}

struct Member {
    address: String,
    channel: LoggedIn,
    kv: KvClient,
    /// A key that never exists.
    no_key: String,
    /// The open connection, or the last one.
    connection: Connection,
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Members").finish_non_exhaustive()
    }
}

impl Members {
    /// Connects on first use; `first` is the position of the member to use first.
    ///
    /// # Errors
    /// An endpoint is not a URI.
    pub(crate) async fn new(
        endpoints: &[String],
        access: &Access,
        first: usize,
    ) -> Result<Self, Error> {
        let mut members = Vec::new();
        for address in endpoints {
            let member = Member::new(address, access).await;
            members.push(member.map_err(|source| Error::from_etcd("connect", endpoints, source))?);
        }
        let request_failed = Arc::new(Notify::new());
        let shared = Arc::new(Shared {
            current: AtomicUsize::new(first % members.len().max(1)),
            raft_term: AtomicU64::new(0),
            members,
            request_failed: Arc::clone(&request_failed),
        });
        tokio::spawn(monitor(Arc::downgrade(&shared), request_failed));
        Ok(Self { shared })
    }

    #[cfg(test)]
    fn current(&self) -> usize {
        self.shared.current.load(Ordering::Relaxed)
    }
}

impl Service<Request<Body>> for Members {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let request_failed = Arc::clone(&self.shared.request_failed);
        let mut channel = self.shared.current().channel.clone();
        Box::pin(async move {
            let answer = channel.call(request).await;
            if answer.is_err() {
                request_failed.notify_one();
            }
            answer
        })
    }
}

impl Shared {
    fn current(&self) -> &Member {
        &self.members[self.current.load(Ordering::Relaxed)]
    }

    /// Checks the member in use; fails over when it does not answer and another does.
    async fn check(&self, backoff: &mut FailoverBackoff) {
        let left = self.current.load(Ordering::Relaxed);
        let limit = backoff.timeout(Instant::now());
        if let Some(term) = self.members[left].answer(limit).await {
            let known = self.raft_term.fetch_max(term, Ordering::Relaxed);
            // Several elections in a row are an unstable cluster, and reconnecting adds load.
            if known != 0 && term > known && limit == ANSWER_TIMEOUT {
                info!(
                    term,
                    "etcd has elected a leader: reconnecting, because requests may be lost"
                );
                self.members[left].disconnect();
                backoff.note(Instant::now());
            }
            return;
        }
        let others = (0..self.members.len()).filter(|number| *number != left);
        let asked = others.map(|number| {
            Box::pin(async move {
                let term = self.members[number].answer(limit).await.ok_or(())?;
                Ok::<_, ()>((number, term))
            })
        });
        let Ok(((found, term), _)) = select_ok(asked).await else {
            return;
        };
        self.raft_term.fetch_max(term, Ordering::Relaxed);
        warn!(
            from = self.members[left].address,
            to = self.members[found].address,
            "a member of etcd does not answer: using another"
        );
        self.current.store(found, Ordering::Relaxed);
        self.members[left].disconnect();
        backoff.note(Instant::now());
    }
}

/// Timeout of health checks, which doubles with each failover and halves with each calm period.
///
/// A failed member causes one failover. Repeated failovers mean that all members are slow, and each
/// failover makes them slower, because every request under way is sent again.
#[derive(Debug, Default)]
struct FailoverBackoff {
    count: u32,
    last: Option<Instant>,
}

impl FailoverBackoff {
    fn note(&mut self, now: Instant) {
        self.count = (self.recent(now) + 1).min(MAX_DOUBLINGS);
        self.last = Some(now);
    }

    fn recent(&self, now: Instant) -> u32 {
        let Some(last) = self.last else {
            return 0;
        };
        let calm = now.saturating_duration_since(last).as_secs() / CALM_PERIOD.as_secs();
        self.count
            .saturating_sub(u32::try_from(calm).unwrap_or(u32::MAX))
    }

    fn timeout(&self, now: Instant) -> Duration {
        ANSWER_TIMEOUT * (1 << self.recent(now))
    }
}

/// Runs health checks at an interval and after failed requests, until all channels are dropped.
async fn monitor(shared: Weak<Shared>, request_failed: Arc<Notify>) {
    let mut backoff = FailoverBackoff::default();
    loop {
        // A pause bounds the rate of checks while requests keep failing.
        sleep(CHECK_INTERVAL / 10).await;
        tokio::select! {
            () = sleep(CHECK_INTERVAL) => {}
            () = request_failed.notified() => {}
        }
        let Some(shared) = shared.upgrade() else {
            return;
        };
        shared.check(&mut backoff).await;
    }
}

impl Member {
    async fn new(address: &str, access: &Access) -> Result<Self, etcd_client::Error> {
        let connection = Connection::default();
        let channel = access.channel(address, Arc::clone(&connection))?;
        let options = ConnectOptions::new().with_require_leader(true);
        let own = etcd_client::Channel::Custom(BoxCloneSyncService::new(channel.clone()));
        let client = etcd_client::Client::from_channel(own, Some(options)).await?;
        Ok(Self {
            address: address.to_owned(),
            channel,
            kv: client.kv_client(),
            no_key: access.no_key.clone(),
            connection,
        })
    }

    /// Sends a request that the member can answer only with a quorum; returns etcd's term.
    async fn answer(&self, limit: Duration) -> Option<u64> {
        let mut kv = self.kv.clone();
        let options = GetOptions::new().with_keys_only();
        match timeout(limit, kv.get(self.no_key.as_str(), Some(options))).await {
            Ok(Ok(response)) => Some(response.header().map_or(0, |header| header.raft_term())),
            // Refused, for lack of permission for example: the member answers all the same.
            Ok(Err(error)) => (classify(&error) == Class::Refused).then_some(0),
            Err(_) => None,
        }
    }

    /// Closes the connection: everything under way on it fails at once.
    fn disconnect(&self) {
        let connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(socket) = &*connection {
            // An error means that it was closed already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

#[cfg(test)]
mod tests {
    use model::LeaderInfo;
    use state::Key;
    use store_test_kit::TestStore;
    use test_kit::proxy::{Mode, Proxy};
    use test_kit::writes;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::client::{Client, ClientOptions};
    use crate::replica::{Replica, ReplicaOptions};
    use crate::unsecured::PlaintextRefusal;

    /// Below a request's deadline of 5 s, and above the time of two failovers in a row.
    const SOON: Duration = Duration::from_millis(4_800);

    struct Cluster {
        members: Vec<Proxy>,
        store: TestStore,
    }

    /// Two members: one server behind two proxies.
    async fn two_ways() -> Cluster {
        let store = TestStore::start().await;
        let mut members = Vec::new();
        for _ in 0..2 {
            members.push(Proxy::start(store.address).await.unwrap());
        }
        Cluster { members, store }
    }

    fn endpoints(cluster: &Cluster) -> Vec<String> {
        cluster.members.iter().map(Proxy::endpoint).collect()
    }

    fn access(timing: crate::socket::Timing) -> Access {
        Access {
            timing,
            credentials: None,
            login: None,
            no_key: "/kafila/v1/".to_owned(),
            refusal: PlaintextRefusal::default(),
        }
    }

    /// Breaks one member after the other, never both, and calls `check` each time.
    async fn each_gone(cluster: &Cluster, mode: Mode, mut check: impl AsyncFnMut(u32)) {
        for round in 0..2 {
            let (gone, there) = (
                &cluster.members[round % 2],
                &cluster.members[(round + 1) % 2],
            );
            there.set(Mode::Open);
            gone.set(mode);
            check(u32::try_from(round).unwrap()).await;
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn requests_continue_when_a_member_falls_silent_or_stops() {
        for mode in [Mode::Hold, Mode::Cut] {
            let cluster = two_ways().await;
            let options = ClientOptions::default();
            let client = Client::connect(&endpoints(&cluster), options)
                .await
                .unwrap();
            client.current_revision().await.unwrap();
            each_gone(&cluster, mode, async |round| {
                for request in 0..5 {
                    let began = Instant::now();
                    // A request under way fails; retried, as by every caller, it is answered.
                    let mut answer = client.current_revision().await;
                    while answer.is_err() && began.elapsed() < SOON {
                        sleep(Duration::from_millis(50)).await;
                        answer = client.current_revision().await;
                    }
                    assert!(
                        answer.is_ok() && began.elapsed() < SOON,
                        "{mode:?}, round {round}, request {request}: {answer:?} after {:?}",
                        began.elapsed()
                    );
                }
            })
            .await;
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_replica_continues_when_its_member_falls_silent() {
        let cluster = two_ways().await;
        let options = ClientOptions::default();
        let client = Client::connect(&endpoints(&cluster), options.clone())
            .await
            .unwrap();
        let direct = Client::from_channel(cluster.store.etcd.channel(), options)
            .await
            .unwrap();
        let drain = CancellationToken::new();
        let replica = Replica::start(client, ReplicaOptions::default(), drain.clone());
        replica.ready(SOON).await.unwrap();
        each_gone(&cluster, Mode::Hold, async |round| {
            let began = Instant::now();
            let info = LeaderInfo {
                address: "http://a:1".to_owned(),
                replica: "a".to_owned(),
            };
            let writer = direct.unfenced_writer();
            let mut txn = writer.txn();
            txn.add(&writes::create(
                &Key::Election(format!("service-{round}")),
                &info,
            ))
            .unwrap();
            let revision = writer.commit(&txn).await.unwrap().revision().unwrap();
            let reached = replica.wait_for(revision, SOON).await;
            assert!(
                reached.is_ok(),
                "round {round}: not within {:?}",
                began.elapsed()
            );
        })
        .await;
        drain.cancel();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn without_an_answering_member_there_is_no_failover() {
        let cluster = two_ways().await;
        let timing = crate::socket::Timing {
            connect_timeout: Duration::from_secs(2),
            keep_alive_interval: Duration::from_secs(30),
            keep_alive_timeout: Duration::from_secs(30),
        };
        let members = Members::new(&endpoints(&cluster), &access(timing), 1)
            .await
            .unwrap();
        assert!(
            members
                .shared
                .current()
                .answer(ANSWER_TIMEOUT)
                .await
                .is_some()
        );
        cluster
            .members
            .iter()
            .for_each(|member| member.set(Mode::Hold));
        members.shared.check(&mut FailoverBackoff::default()).await;
        assert_eq!(members.current(), 1);
        cluster.members[0].set(Mode::Open);
        members.shared.check(&mut FailoverBackoff::default()).await;
        assert_eq!(members.current(), 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_connection_is_closed_when_etcd_has_elected_a_leader() {
        let cluster = two_ways().await;
        let client = Client::connect(&endpoints(&cluster), ClientOptions::default())
            .await
            .unwrap();
        let replica = Replica::start(client, ReplicaOptions::default(), CancellationToken::new());
        replica.ready(SOON).await.unwrap();
        let timing = crate::socket::Timing {
            connect_timeout: Duration::from_secs(2),
            keep_alive_interval: Duration::from_secs(30),
            keep_alive_timeout: Duration::from_secs(30),
        };
        let members = Members::new(&endpoints(&cluster), &access(timing), 0)
            .await
            .unwrap();
        members.shared.check(&mut FailoverBackoff::default()).await;
        let connection = || {
            let member = members.shared.current();
            let socket = member.connection.lock().unwrap();
            socket.as_ref().unwrap().local_addr().unwrap()
        };
        let before = connection();
        members.shared.check(&mut FailoverBackoff::default()).await;
        assert_eq!(connection(), before, "the same term");
        // As if the known term were older.
        members.shared.raft_term.fetch_sub(1, Ordering::Relaxed);
        assert_ne!(
            members.shared.raft_term.load(Ordering::Relaxed),
            0,
            "a term of 2 or more"
        );
        members.shared.check(&mut FailoverBackoff::default()).await;
        members.shared.check(&mut FailoverBackoff::default()).await;
        assert_ne!(connection(), before);
    }

    #[test]
    fn repeated_failovers_double_the_timeout_and_calm_halves_it() {
        let mut backoff = FailoverBackoff::default();
        let now = Instant::now();
        assert_eq!(backoff.timeout(now), ANSWER_TIMEOUT);
        backoff.note(now);
        assert_eq!(backoff.timeout(now), ANSWER_TIMEOUT * 2);
        (0..10).for_each(|_| backoff.note(now));
        assert_eq!(backoff.timeout(now), ANSWER_TIMEOUT * 8);
        assert_eq!(backoff.timeout(now + CALM_PERIOD * 2), ANSWER_TIMEOUT * 2);
        backoff.note(now + CALM_PERIOD * 2);
        assert_eq!(backoff.timeout(now + CALM_PERIOD * 2), ANSWER_TIMEOUT * 4);
        assert_eq!(backoff.timeout(now + CALM_PERIOD * 20), ANSWER_TIMEOUT);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn health_checks_end_with_the_last_client() {
        let cluster = two_ways().await;
        let timing = crate::socket::Timing {
            connect_timeout: Duration::from_secs(2),
            keep_alive_interval: Duration::from_secs(30),
            keep_alive_timeout: Duration::from_secs(30),
        };
        let members = Members::new(&endpoints(&cluster), &access(timing), 0)
            .await
            .unwrap();
        let shared = Arc::downgrade(&members.shared);
        drop(members);
        tokio::time::sleep(CHECK_INTERVAL * 3).await;
        assert_eq!(shared.strong_count(), 0);
    }
}
