//! The driver of a fleet: connections and heartbeats of all its nodes. Their streams are in [`watch`], their
//! reports in [`reports`].

mod reports;
mod watch;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::StreamExt as _;
use kafila_client::Client as ApiClient;
use proto::internal::v1 as internal;
use proto::internal::v1::node_sessions_client::NodeSessionsClient;
use proto::v1;
use service_kit::{Clock, IdSource, TracedChannel, connect_lazy, request};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tonic::{Code, Status};

use super::heartbeat_silence::HeartbeatSilence;
use super::node::{Behaviour, Millis, Node};
use super::registry::{Pair, Registry};
use super::script::Script;
use super::wire;

/// A gateway accepts 200 streams a connection: one for each node, and room for calls.
const NODES_PER_CONNECTION: u32 = 100;
/// Registrations in flight.
const REGISTERING: usize = 64;
/// The interval of real nodes between two batches of reports.
const TICK: Duration = Duration::from_millis(25);
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a call that failed.
const RETRY_PAUSE: Millis = 500;
const MAX_MESSAGE_BYTES: usize = 64 << 20;
const REPORTS_PER_CALL: usize = 4_096;
/// Time for a stop to reach its node, before the servers are asked about two runs of a name.
const PAIR_AGE: Millis = 2_000;
const PAIR_INTERVAL: Duration = Duration::from_secs(2);

type Sessions = NodeSessionsClient<TracedChannel>;

/// Settings of a fleet.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) nodes: u32,
    pub(crate) racks: u32,
    pub(crate) behaviour: Behaviour,
    /// Gateways; connections take them by turns.
    pub(crate) gateways: Vec<String>,
}

/// A running fleet. Its nodes end with the runtime.
pub(crate) struct Fleet {
    options: Options,
    run: String,
    members: Vec<Arc<Member>>,
    connections: Vec<Sessions>,
    registry: Mutex<Registry>,
    scripts: Mutex<HashMap<(u32, u64), Arc<Script>>>,
    heartbeats: DueNodes,
    reports: DueNodes,
    epoch: Instant,
    epoch_ns: u64,
    ttl: AtomicU64,
    lag: AtomicU64,
    /// Nodes whose first stream has begun.
    watching: AtomicU32,
}

struct Member {
    number: u32,
    id: u128,
    secret: u128,
    state: Mutex<State>,
    /// Notified when the node dies or comes back.
    turned: Notify,
}

#[derive(Default)]
struct State {
    node: Node,
    is_dead: bool,
    is_sending: bool,
    /// Time of the earliest entry among the due reports.
    scheduled: Option<Millis>,
    heartbeats: HeartbeatSilence,
}

impl Member {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Nodes by the time of their next action.
#[derive(Default)]
struct DueNodes(Mutex<BinaryHeap<Reverse<(Millis, u32)>>>);

impl DueNodes {
    fn add(&self, at: Millis, number: u32) {
        lock(&self.0).push(Reverse((at, number)));
    }

    fn due(&self, now: Millis) -> Vec<(Millis, u32)> {
        let mut heap = lock(&self.0);
        let mut due = Vec::new();
        while let Some(Reverse((at, number))) = heap.peek().copied() {
            if at > now {
                break;
            }
            heap.pop();
            due.push((at, number));
        }
        due
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each critical section leaves consistent data.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fleet {
    /// Registers the nodes and waits until all of them have a stream.
    ///
    /// # Errors
    /// A gateway's address is no URL or needs TLS; a gateway refuses a node.
    pub(crate) async fn start(options: Options) -> Result<Arc<Self>> {
        let ids = IdSource::from_os();
        let count = options.nodes.div_ceil(NODES_PER_CONNECTION) as usize;
        ensure!(!options.gateways.is_empty(), "no gateway address is set");
        let mut connections = Vec::with_capacity(count);
        for position in 0..count {
            let gateway = &options.gateways[position % options.gateways.len()];
            let channel = connect_lazy(gateway).context(
                "hollow nodes share connections, and a node's certificate is for one node: with TLS, use \
                 -nodes=0, which loads the cluster's own nodes",
            )?;
            let sessions = Sessions::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
            connections.push(sessions);
        }
        let member = |number| {
            Arc::new(Member {
                number,
                id: uuid::Builder::from_random_bytes(ids.next_u128().to_be_bytes())
                    .into_uuid()
                    .as_u128(),
                secret: ids.next_u128(),
                state: Mutex::default(),
                turned: Notify::new(),
            })
        };
        let fleet = Arc::new(Self {
            run: format!("{:06x}", ids.next_u64() & 0xff_ffff),
            members: (0..options.nodes).map(member).collect(),
            options,
            connections,
            registry: Mutex::default(),
            scripts: Mutex::default(),
            heartbeats: DueNodes::default(),
            reports: DueNodes::default(),
            epoch: Instant::now(),
            epoch_ns: Clock::real().now(),
            ttl: AtomicU64::new(10_000),
            lag: AtomicU64::new(0),
            watching: AtomicU32::new(0),
        });
        // The first nodes send heartbeats while the last ones register.
        tokio::spawn(Arc::clone(&fleet).send_heartbeats());
        let registering = futures::stream::iter(&fleet.members)
            .map(|member| fleet.register(member))
            .buffer_unordered(REGISTERING);
        let answers: Vec<Result<()>> = registering.collect().await;
        answers.into_iter().collect::<Result<()>>()?;
        tokio::spawn(Arc::clone(&fleet).report());
        for member in &fleet.members {
            tokio::spawn(Arc::clone(&fleet).watch(Arc::clone(member)));
        }
        while fleet.watching.load(Ordering::Relaxed) < fleet.size() {
            sleep(TICK).await;
        }
        Ok(fleet)
    }

    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry> {
        lock(&self.registry)
    }

    /// Returns a name for this run that no other has.
    pub(crate) fn run(&self) -> &str {
        &self.run
    }

    pub(crate) fn size(&self) -> u32 {
        self.options.nodes
    }

    pub(crate) fn now(&self) -> Millis {
        Millis::try_from(self.epoch.elapsed().as_millis()).unwrap_or(Millis::MAX)
    }

    /// Returns the longest delay of a heartbeat by this process itself.
    pub(crate) fn lag(&self) -> Duration {
        Duration::from_millis(self.lag.load(Ordering::Relaxed))
    }

    /// Returns the id of a node, as text.
    pub(crate) fn node_id(&self, number: u32) -> String {
        wire::text(self.members[number as usize].id)
    }

    /// Ends nodes as a power cut does.
    pub(crate) fn kill(&self, numbers: impl IntoIterator<Item = u32>) {
        for number in numbers {
            let member = &self.members[number as usize];
            let events = {
                let mut state = member.state();
                state.is_dead = true;
                state.scheduled = None;
                state.node.die()
            };
            self.registry().died(number, &events, self.now());
            member.turned.notify_one();
        }
    }

    /// Starts killed nodes again.
    ///
    /// # Errors
    /// Those of [`Self::start`].
    pub(crate) async fn revive(&self, numbers: impl IntoIterator<Item = u32>) -> Result<()> {
        for number in numbers {
            let member = &self.members[number as usize];
            member.state().is_dead = false;
            self.register(member).await?;
            member.turned.notify_one();
        }
        Ok(())
    }

    fn sessions(&self, member: &Member) -> Sessions {
        self.connections[(member.number / NODES_PER_CONNECTION) as usize].clone()
    }

    fn ttl(&self) -> Millis {
        self.ttl.load(Ordering::Relaxed)
    }

    async fn register(&self, member: &Member) -> Result<()> {
        let message = internal::RegisterNodeRequest {
            node: Some(wire::record(
                &self.run,
                member.number,
                member.id,
                self.options.racks,
            )),
            secret: wire::text(member.secret),
        };
        loop {
            let call = self
                .sessions(member)
                .register(request(message.clone(), CALL_TIMEOUT))
                .await;
            match call {
                Ok(answer) => {
                    self.learn_ttl(answer.into_inner().heartbeat_ttl);
                    break;
                }
                Err(status) if is_passing(&status) => {
                    sleep(Duration::from_millis(RETRY_PAUSE)).await;
                }
                Err(status) => {
                    return Err(status)
                        .with_context(|| format!("registering node {}", member.number));
                }
            }
        }
        let now = self.now();
        member.state().heartbeats.register(now);
        // Spread over the interval, as the heartbeats of real nodes are.
        let wait = rand::random_range(0..=self.ttl() / 2);
        self.heartbeats.add(now + wait, member.number);
        Ok(())
    }

    fn learn_ttl(&self, wire: Option<prost_types::Duration>) {
        let ttl = wire.and_then(|ttl| Duration::try_from(ttl).ok());
        if let Some(ttl) = ttl.filter(|ttl| !ttl.is_zero()) {
            let millis = Millis::try_from(ttl.as_millis()).unwrap_or(Millis::MAX);
            self.ttl.store(millis, Ordering::Relaxed);
        }
    }

    async fn send_heartbeats(self: Arc<Self>) {
        loop {
            sleep(TICK).await;
            let now = self.now();
            for (at, number) in self.heartbeats.due(now) {
                self.lag.fetch_max(now - at, Ordering::Relaxed);
                let member = Arc::clone(&self.members[number as usize]);
                {
                    let mut state = member.state();
                    if state.is_dead {
                        continue;
                    }
                    state.heartbeats.send(now, self.ttl());
                }
                let fleet = Arc::clone(&self);
                tokio::spawn(async move { fleet.send_heartbeat(&member).await });
            }
        }
    }

    async fn send_heartbeat(&self, member: &Member) {
        let message = internal::HeartbeatRequest {
            node_id: wire::text(member.id),
            secret: wire::text(member.secret),
        };
        let ttl = self.ttl();
        let timeout = Duration::from_millis(ttl / 4);
        let answer = self
            .sessions(member)
            .heartbeat(request(message, timeout))
            .await;
        if member.state().is_dead {
            return;
        }
        match answer {
            Ok(answer) => {
                let answer = answer.into_inner();
                self.learn_ttl(answer.heartbeat_ttl);
                if answer.status == "down" {
                    let silence = member.state().heartbeats.silence();
                    self.registry().called_down(member.number, silence, ttl);
                    // Schedules the next heartbeat.
                    if let Err(error) = self.register(member).await {
                        self.registry().violations.push(format!("{error:#}"));
                    }
                    return;
                }
                let wait = rand::random_range(ttl * 9 / 20..=ttl / 2);
                self.heartbeats.add(self.now() + wait, member.number);
            }
            Err(status) if is_passing(&status) => {
                self.heartbeats.add(self.now() + RETRY_PAUSE, member.number);
            }
            Err(_) => {
                // The servers do not know the node any more.
                if let Err(error) = self.register(member).await {
                    self.registry().violations.push(format!("{error:#}"));
                }
            }
        }
    }

    /// Schedules the reports of a node, at its next change or now if it has reports.
    fn schedule(&self, state: &mut State, number: u32, now: Millis) {
        let reports = (state.node.has_reports() && !state.is_sending).then_some(now);
        let next = [reports, state.node.next_due()].into_iter().flatten().min();
        if let Some(at) = next
            && state.scheduled.is_none_or(|scheduled| at < scheduled)
        {
            state.scheduled = Some(at);
            self.reports.add(at, number);
        }
    }

    /// Asks the servers about names that run twice, until the runtime ends.
    pub(crate) async fn check_pairs(self: Arc<Self>, api: ApiClient) {
        loop {
            sleep(PAIR_INTERVAL).await;
            let pairs = self.registry().pairs(self.now(), PAIR_AGE);
            for pair in pairs {
                if is_wanted(&api, pair.0).await && is_wanted(&api, pair.1).await {
                    self.registry().doubled(Pair(pair.0, pair.1));
                }
            }
        }
    }
}

/// Returns whether the servers want the allocation to run and count it as live.
async fn is_wanted(api: &ApiClient, id: u128) -> bool {
    let request = v1::GetAllocationRequest {
        alloc_id: wire::text(id),
        ..v1::GetAllocationRequest::default()
    };
    let answer = api.allocations().get(request).await;
    let alloc = answer.ok().and_then(|answer| answer.allocation);
    alloc.is_some_and(|alloc| {
        let is_live = matches!(
            alloc.client_status.as_str(),
            "pending" | "running" | "unknown"
        );
        alloc.desired_status == "run" && is_live
    })
}

/// Returns whether a call may succeed later.
fn is_passing(status: &Status) -> bool {
    !matches!(
        status.code(),
        Code::InvalidArgument | Code::NotFound | Code::PermissionDenied | Code::Unauthenticated
    )
}
