//! Which of etcd's members is asked: one of them, for as long as it answers.
//!
//! Members are asked in turn how they are, by the cheapest request that needs a majority. A member
//! that does not answer in time while another does is left: everything goes to the other, and what
//! is still under way at the one that was left (requests, watches, leases being kept) is cut, so
//! that whoever waits for it hears so now and not when a deadline passes. While none answers,
//! nothing is cut: the majority may be gone, and waiting is all there is to do.
//!
//! The same is done once when etcd has elected a leader: a proposal that was on its way to the old
//! one is lost, and the member that sent it there only says so after seven seconds.
//!
//! A balancer that spreads requests over all members would hand each of them to one that is cut off
//! or stopped in its tracks as long as its connection looks alive.

use std::fmt;
use std::net::{Shutdown, TcpStream as StdTcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use etcd_client::{ConnectOptions, GetOptions, KvClient};
use futures::future::{BoxFuture, select_ok};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tonic::body::Body;
use tonic::codegen::http::{Request, Response, Uri};
use tonic::transport::{Channel, Endpoint};
use tower::{BoxError, Service, ServiceExt as _, service_fn};
use tracing::{info, warn};

use crate::error::{Class, Error, classify};

/// How often the member in use is asked how it is, when nothing fails: with [`PATIENCE`], how long
/// a member that falls silent holds everybody up.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// How long a member may take to answer. One that is asked over links of 200 ms each way takes 0.8
/// to 1.2 s, and an election of etcd's 1 to 2 s.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// For how long nobody has to be left before a member may take no longer again: see [`Leavings`].
const CALM: Duration = Duration::from_secs(20);
/// How often patience is doubled at most: to 12 s, more than any request waits.
const MOST_DOUBLED: u32 = 3;
/// A key that there never is.
const NO_KEY: &str = "/kafila-member-in-use";

/// How connections are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) connect_timeout: Duration,
    pub(crate) keep_alive_interval: Duration,
    pub(crate) keep_alive_timeout: Duration,
}

/// A channel to whichever member is in use. Cheap to clone; the task that asks the members ends
/// with the last clone.
#[derive(Clone)]
pub(crate) struct Members {
    shared: Arc<Shared>,
}

struct Shared {
    /// At least two.
    members: Vec<Member>,
    current: AtomicUsize,
    /// The newest of etcd's own terms that was heard of; 0: none yet.
    raft_term: AtomicU64,
    /// Rung when a request fails on the way.
    trouble: Arc<Notify>,
}

struct Member {
    address: String,
    channel: Channel,
    kv: KvClient,
    /// The connection that is open, or was last.
    connection: Connection,
}

type Connection = Arc<Mutex<Option<StdTcpStream>>>;

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Members").finish_non_exhaustive()
    }
}

impl Members {
    /// Connects when first used; `first` says whom to ask first.
    ///
    /// # Errors
    /// An endpoint is not a URI.
    pub(crate) async fn new(
        endpoints: &[String],
        timing: Timing,
        first: usize,
    ) -> Result<Self, Error> {
        let mut members = Vec::new();
        for address in endpoints {
            let member = Member::new(address, timing).await;
            members.push(member.map_err(|source| Error::from_etcd("connect", endpoints, source))?);
        }
        let trouble = Arc::new(Notify::new());
        let shared = Arc::new(Shared {
            current: AtomicUsize::new(first % members.len().max(1)),
            raft_term: AtomicU64::new(0),
            members,
            trouble: Arc::clone(&trouble),
        });
        tokio::spawn(keep_asking(Arc::downgrade(&shared), trouble));
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
        let trouble = Arc::clone(&self.shared.trouble);
        let mut channel = self.shared.current().channel.clone();
        Box::pin(async move {
            let answer = async { channel.ready().await?.call(request).await }.await;
            if answer.is_err() {
                trouble.notify_one();
            }
            Ok(answer?)
        })
    }
}

impl Shared {
    fn current(&self) -> &Member {
        &self.members[self.current.load(Ordering::Relaxed)]
    }

    /// Asks the member in use, and leaves it when it does not answer and another does.
    async fn look(&self, leavings: &mut Leavings) {
        let left = self.current.load(Ordering::Relaxed);
        let patience = leavings.patience(Instant::now());
        if let Some(term) = self.members[left].answer(patience).await {
            let known = self.raft_term.fetch_max(term, Ordering::Relaxed);
            // Elections in a row are a cluster in trouble, which cutting connections only adds to.
            if known != 0 && term > known && patience == PATIENCE {
                info!(
                    term,
                    "etcd has elected a leader: asking again what may be lost"
                );
                self.members[left].disconnect();
                leavings.note(Instant::now());
            }
            return;
        }
        let others = (0..self.members.len()).filter(|number| *number != left);
        let asked = others.map(|number| {
            Box::pin(async move {
                let term = self.members[number].answer(patience).await.ok_or(())?;
                Ok::<_, ()>((number, term))
            })
        });
        let Ok(((found, term), _)) = select_ok(asked).await else {
            return;
        };
        self.raft_term.fetch_max(term, Ordering::Relaxed);
        warn!(
            left = self.members[left].address,
            taken = self.members[found].address,
            "a member of etcd does not answer: asking another"
        );
        self.current.store(found, Ordering::Relaxed);
        self.members[left].disconnect();
        leavings.note(Instant::now());
    }
}

/// How often a member has been left lately.
///
/// One that has gone is left once. Where members are left again and again all of them are slow, and
/// every leaving makes them slower, since everything under way is asked once more: so each leaving
/// doubles how long a member may take, and each while of calm halves it.
#[derive(Debug, Default)]
struct Leavings {
    count: u32,
    last: Option<Instant>,
}

impl Leavings {
    fn note(&mut self, now: Instant) {
        self.count = (self.recent(now) + 1).min(MOST_DOUBLED);
        self.last = Some(now);
    }

    fn recent(&self, now: Instant) -> u32 {
        let Some(last) = self.last else {
            return 0;
        };
        let calm = now.saturating_duration_since(last).as_secs() / CALM.as_secs();
        self.count
            .saturating_sub(u32::try_from(calm).unwrap_or(u32::MAX))
    }

    fn patience(&self, now: Instant) -> Duration {
        PATIENCE * (1 << self.recent(now))
    }
}

/// Looks every now and then, and when there is trouble, as long as anybody is interested.
async fn keep_asking(shared: Weak<Shared>, trouble: Arc<Notify>) {
    let mut leavings = Leavings::default();
    loop {
        // Trouble that goes on rings all the time; a pause bounds how often it is looked at.
        sleep(ASK_EVERY / 10).await;
        tokio::select! {
            () = sleep(ASK_EVERY) => {}
            () = trouble.notified() => {}
        }
        let Some(shared) = shared.upgrade() else {
            return;
        };
        shared.look(&mut leavings).await;
    }
}

impl Member {
    async fn new(address: &str, timing: Timing) -> Result<Self, etcd_client::Error> {
        let endpoint = Endpoint::from_shared(address.to_owned())?
            .connect_timeout(timing.connect_timeout)
            .http2_keep_alive_interval(timing.keep_alive_interval)
            .keep_alive_timeout(timing.keep_alive_timeout)
            .keep_alive_while_idle(true);
        let connection = Connection::default();
        let opened = Arc::clone(&connection);
        let channel = endpoint.connect_with_connector_lazy(service_fn(move |uri: Uri| {
            let opened = Arc::clone(&opened);
            async move {
                let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
                let port = uri.port_u16().unwrap_or(80);
                let socket = TcpStream::connect((host, port)).await?;
                socket.set_nodelay(true)?;
                let socket = socket.into_std()?;
                let second = socket.try_clone()?;
                *opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(second);
                Ok::<_, std::io::Error>(TokioIo::new(TcpStream::from_std(socket)?))
            }
        }));
        let options = ConnectOptions::new().with_require_leader(true);
        let own = etcd_client::Channel::Tonic(channel.clone());
        let client = etcd_client::Client::from_channel(own, Some(options)).await?;
        Ok(Self {
            address: address.to_owned(),
            channel,
            kv: client.kv_client(),
            connection,
        })
    }

    /// Asks the member something that it cannot answer without a majority of its peers. Returns
    /// etcd's term.
    async fn answer(&self, patience: Duration) -> Option<u64> {
        let mut kv = self.kv.clone();
        let options = GetOptions::new().with_keys_only();
        match timeout(patience, kv.get(NO_KEY, Some(options))).await {
            Ok(Ok(response)) => Some(response.header().map_or(0, |header| header.raft_term())),
            // It may not be read by us, say: it is there all the same.
            Ok(Err(error)) => (classify(&error) == Class::Refused).then_some(0),
            Err(_) => None,
        }
    }

    /// Cuts the connection: everything under way on it fails at once.
    fn disconnect(&self) {
        let connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(socket) = &*connection {
            // An error means that it was gone already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

#[cfg(test)]
mod tests {
    use embedded_etcd::{Config, EmbeddedEtcd};
    use model::LeaderInfo;
    use state::Key;
    use test_kit::proxy::{Mode, Proxy};
    use tokio::net::TcpListener;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::client::{Client, ClientOptions};
    use crate::replica::{Replica, ReplicaOptions};

    /// Below a request's deadline of 5 s, and above what it takes to leave two members in a row.
    const SOON: Duration = Duration::from_millis(4_800);

    struct Cluster {
        members: Vec<Proxy>,
        etcd: EmbeddedEtcd,
    }

    /// Two members: in truth one, with two ways to it.
    async fn two_ways() -> Cluster {
        let etcd = EmbeddedEtcd::start(Config::in_memory()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut members = Vec::new();
        for _ in 0..2 {
            members.push(Proxy::start(address).await.unwrap());
        }
        tokio::spawn(etcd.serve(listener, CancellationToken::new()));
        Cluster { members, etcd }
    }

    fn endpoints(cluster: &Cluster) -> Vec<String> {
        cluster.members.iter().map(Proxy::endpoint).collect()
    }

    /// Takes away one member after the other, never both, and calls `check` each time.
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
    async fn requests_go_on_when_a_member_falls_silent_or_goes() {
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
                    // What was under way is cut; asked again, as every caller does, it is answered.
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
    async fn a_replica_goes_on_when_its_member_falls_silent() {
        let cluster = two_ways().await;
        let options = ClientOptions::default();
        let client = Client::connect(&endpoints(&cluster), options.clone())
            .await
            .unwrap();
        let direct = Client::from_channel(cluster.etcd.channel(), options)
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
            txn.create(&Key::Election(format!("service-{round}")), &info)
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
    async fn while_no_member_answers_none_is_left() {
        let cluster = two_ways().await;
        let timing = Timing {
            connect_timeout: Duration::from_secs(2),
            keep_alive_interval: Duration::from_secs(30),
            keep_alive_timeout: Duration::from_secs(30),
        };
        let members = Members::new(&endpoints(&cluster), timing, 1).await.unwrap();
        assert!(members.shared.current().answer(PATIENCE).await.is_some());
        cluster
            .members
            .iter()
            .for_each(|member| member.set(Mode::Hold));
        members.shared.look(&mut Leavings::default()).await;
        assert_eq!(members.current(), 1);
        cluster.members[0].set(Mode::Open);
        members.shared.look(&mut Leavings::default()).await;
        assert_eq!(members.current(), 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_under_way_is_cut_when_etcd_has_elected_a_leader() {
        let cluster = two_ways().await;
        let client = Client::connect(&endpoints(&cluster), ClientOptions::default())
            .await
            .unwrap();
        let replica = Replica::start(client, ReplicaOptions::default(), CancellationToken::new());
        replica.ready(SOON).await.unwrap();
        let timing = Timing {
            connect_timeout: Duration::from_secs(2),
            keep_alive_interval: Duration::from_secs(30),
            keep_alive_timeout: Duration::from_secs(30),
        };
        let members = Members::new(&endpoints(&cluster), timing, 0).await.unwrap();
        members.shared.look(&mut Leavings::default()).await;
        let connection = || {
            let member = members.shared.current();
            let socket = member.connection.lock().unwrap();
            socket.as_ref().unwrap().local_addr().unwrap()
        };
        let before = connection();
        members.shared.look(&mut Leavings::default()).await;
        assert_eq!(connection(), before, "the same term");
        // As if what was heard before had been of an older one.
        members.shared.raft_term.fetch_sub(1, Ordering::Relaxed);
        assert_ne!(
            members.shared.raft_term.load(Ordering::Relaxed),
            0,
            "a term of 2 or more"
        );
        members.shared.look(&mut Leavings::default()).await;
        members.shared.look(&mut Leavings::default()).await;
        assert_ne!(connection(), before);
    }

    #[test]
    fn whoever_leaves_again_and_again_becomes_patient_and_calm_makes_up_for_it() {
        let mut leavings = Leavings::default();
        let now = Instant::now();
        assert_eq!(leavings.patience(now), PATIENCE);
        leavings.note(now);
        assert_eq!(leavings.patience(now), PATIENCE * 2);
        (0..10).for_each(|_| leavings.note(now));
        assert_eq!(leavings.patience(now), PATIENCE * 8);
        assert_eq!(leavings.patience(now + CALM * 2), PATIENCE * 2);
        leavings.note(now + CALM * 2);
        assert_eq!(leavings.patience(now + CALM * 2), PATIENCE * 4);
        assert_eq!(leavings.patience(now + CALM * 20), PATIENCE);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn nobody_is_asked_for_a_client_that_is_gone() {
        let cluster = two_ways().await;
        let timing = Timing {
            connect_timeout: Duration::from_secs(2),
            keep_alive_interval: Duration::from_secs(30),
            keep_alive_timeout: Duration::from_secs(30),
        };
        let members = Members::new(&endpoints(&cluster), timing, 0).await.unwrap();
        let shared = Arc::downgrade(&members.shared);
        drop(members);
        tokio::time::sleep(ASK_EVERY * 3).await;
        assert_eq!(shared.strong_count(), 0);
    }
}
