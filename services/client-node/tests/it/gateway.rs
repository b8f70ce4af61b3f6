//! A scripted gateway, which records the calls of nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use model::{AllocClient, AllocId, Allocation, ClientStatus, DesiredStatus, Job, Node, NodeId};
use proto::internal::v1::look_up_request::Data;
use proto::internal::v1::node_sessions_server::{NodeSessions, NodeSessionsServer};
use proto::internal::v1::{
    AllocationsUpdate, Assignment, AwaitConnectionsRequest, AwaitConnectionsResponse,
    CsiMountsRequest, CsiMountsResponse, HeartbeatRequest, HeartbeatResponse, LookUpRequest,
    LookUpResponse, NewerReport, OpenConnectionRequest, OpenConnectionResponse,
    RegisterNodeRequest, RegisterNodeResponse, ReportAllocationsRequest, ReportAllocationsResponse,
    ServiceInstance, ServiceInstances, SignIdentitiesRequest, SignIdentitiesResponse,
    SignedIdentity, WatchAllocationsRequest, WatchServicesRequest, WatchServicesResponse,
};
use proto::v1;
use service_kit::CancellationToken;
use test_kit::wait_for;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

/// Timeout of these tests; an idle machine takes moments.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// State of the cluster; several gateways may share it.
#[derive(Clone)]
pub(crate) struct Cluster {
    /// Makes the ids of its allocations unique: agents find processes by them, and the clusters of
    /// the tests share one machine.
    salt: u128,
    facts: Arc<Mutex<Facts>>,
    /// Counts changes, for the streams.
    changed: Arc<watch::Sender<u64>>,
}

#[derive(Default)]
pub(crate) struct Facts {
    pub(crate) revision: u64,
    pub(crate) store_id: String,
    allocs: BTreeMap<AllocId, (Allocation, u64)>,
    jobs: BTreeMap<(String, u64), Job>,
    /// Sent to every stream once, instead of the state.
    raw: Option<AllocationsUpdate>,
    /// Sent instead of the state while set: the view of a stale gateway.
    behind: Option<AllocationsUpdate>,
    pub(crate) registrations: Vec<Node>,
    known: BTreeSet<NodeId>,
    pub(crate) heartbeats: u64,
    /// The gateways that refuse heartbeats.
    pub(crate) refusing: BTreeSet<String>,
    /// The gateway of each heartbeat, also of the refused ones.
    pub(crate) beats: Vec<String>,
    /// Calls of [`NodeSessions::await_connections`].
    pub(crate) awaited: usize,
    /// The gateway of each registration.
    pub(crate) registered_at: Vec<String>,
    /// The gateway of each stream.
    pub(crate) watched_at: Vec<String>,
    /// The node's status in the answers to heartbeats.
    pub(crate) node_status: &'static str,
    pub(crate) ttl: Duration,
    /// Revisions that streams were opened with.
    pub(crate) seen: Vec<u64>,
    /// The last report of each allocation.
    pub(crate) reported: BTreeMap<AllocId, AllocClient>,
    /// Number of reports of each allocation.
    pub(crate) told: BTreeMap<AllocId, usize>,
    /// The number of reports in each call.
    pub(crate) calls: Vec<usize>,
    /// Number of the next report calls that fail.
    pub(crate) failing_reports: usize,
    /// Reports of these are refused as invalid.
    pub(crate) refused: BTreeSet<AllocId>,
    /// Name of a service -> its instances.
    pub(crate) services: BTreeMap<String, Vec<ServiceInstance>>,
    /// Path of a variable -> its items; empty: the gateway has no data.
    pub(crate) variables: BTreeMap<String, BTreeMap<String, String>>,
    /// Every token that the gateways sign; empty: they have no key.
    pub(crate) token: String,
    /// Behaves like a gateway of an earlier version: assignments have no report numbers.
    pub(crate) hides_numbers: bool,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        let facts = Facts {
            revision: 10,
            ttl: Duration::from_secs(2),
            node_status: "ready",
            ..Facts::default()
        };
        Self {
            salt: rand::random(),
            facts: Arc::new(Mutex::new(facts)),
            changed: Arc::new(watch::Sender::new(0)),
        }
    }

    pub(crate) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap()
    }

    fn change(&self, change: impl FnOnce(&mut Facts)) {
        let mut facts = self.facts();
        facts.revision += 1;
        change(&mut facts);
        drop(facts);
        self.changed.send_modify(|count| *count += 1);
    }

    /// The id of the allocation with this number.
    pub(crate) fn alloc_id(&self, number: u128) -> AllocId {
        AllocId::from_random(self.salt ^ number)
    }

    /// Assigns an allocation of the job's first group.
    pub(crate) fn assign(&self, number: u128, job: &Job) -> AllocId {
        self.assign_as(number, job, |_| {})
    }

    pub(crate) fn assign_as(
        &self,
        number: u128,
        job: &Job,
        edit: impl FnOnce(&mut Allocation),
    ) -> AllocId {
        let node_id = self
            .facts()
            .registrations
            .last()
            .map(|node| node.id)
            .unwrap_or_default();
        let mut alloc = test_kit::builders::allocation(number, job, node_id);
        alloc.id = self.alloc_id(number);
        edit(&mut alloc);
        let id = alloc.id;
        self.change(|facts| {
            facts
                .jobs
                .insert((job.id.clone(), job.version), job.clone());
            facts.allocs.insert(id, (alloc, facts.revision));
        });
        id
    }

    /// Changes the desired side of an allocation.
    pub(crate) fn edit(&self, id: AllocId, edit: impl FnOnce(&mut Allocation)) {
        self.change(|facts| {
            let revision = facts.revision;
            let (alloc, index) = facts.allocs.get_mut(&id).unwrap();
            edit(alloc);
            *index = revision;
        });
    }

    pub(crate) fn stop(&self, id: AllocId) {
        self.edit(id, |alloc| alloc.desired_status = DesiredStatus::Stop);
    }

    /// Forgets an allocation, as the servers' own garbage collection does.
    pub(crate) fn collect(&self, id: AllocId) {
        self.change(|facts| drop(facts.allocs.remove(&id)));
    }

    /// Forgets every job, as when it is purged: its allocations are still listed.
    pub(crate) fn purge_jobs(&self) {
        self.change(|facts| facts.jobs.clear());
    }

    /// Restores an older copy, as from a backup: it counts from `revision`, and has lost later
    /// allocations and reports.
    pub(crate) fn go_back(&self, revision: u64, store_id: &str, later: AllocId) {
        let mut facts = self.facts();
        facts.revision = revision;
        facts.store_id = store_id.to_owned();
        facts.allocs.remove(&later);
        for (_, index) in facts.allocs.values_mut() {
            *index = revision.min(*index);
        }
        facts.reported.clear();
        drop(facts);
        self.send_again();
    }

    /// Makes gateways stale: they send this state.
    pub(crate) fn fall_behind(&self, known: AllocationsUpdate) {
        self.facts().behind = Some(known);
        self.send_again();
    }

    pub(crate) fn catch_up(&self) {
        self.facts().behind = None;
        self.send_again();
    }

    /// Forgets every node, so that they register again.
    pub(crate) fn forget_nodes(&self) {
        self.facts().known.clear();
    }

    /// Sends a message to every open stream.
    pub(crate) fn send(&self, update: AllocationsUpdate) {
        self.facts().raw = Some(update);
        self.changed.send_modify(|count| *count += 1);
    }

    /// Sends the state again.
    pub(crate) fn send_again(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    pub(crate) fn status(&self, id: AllocId) -> Option<ClientStatus> {
        self.facts().reported.get(&id).map(|client| client.status)
    }

    pub(crate) fn reported(&self, id: AllocId) -> AllocClient {
        self.facts().reported[&id].clone()
    }

    /// Waits until a node has reported the status.
    pub(crate) async fn until(&self, id: AllocId, status: ClientStatus) -> AllocClient {
        let reached = async || (self.status(id) == Some(status)).then_some(());
        let waiting = wait_for("the status", LIMIT * 2, reached);
        if tokio::time::timeout(LIMIT, waiting).await.is_err() {
            panic!(
                "{id} is not {status:?} but {:#?}",
                self.facts().reported.get(&id)
            );
        }
        self.reported(id)
    }

    pub(crate) async fn until_fact<T>(
        &self,
        what: &str,
        mut look: impl FnMut(&Facts) -> Option<T>,
    ) -> T {
        wait_for(what, LIMIT, async || look(&self.facts())).await
    }

    /// Returns the full list.
    pub(crate) fn full(&self) -> AllocationsUpdate {
        let mut facts = self.facts();
        if let Some(raw) = facts.raw.take() {
            drop(facts);
            // Then the current state.
            self.send_again();
            return raw;
        }
        if let Some(behind) = &facts.behind {
            return behind.clone();
        }
        let assignment = |(alloc, index): &(Allocation, u64)| {
            let client = facts.reported.get(&alloc.id);
            let mut wire = v1::Allocation::from(alloc);
            wire.alloc_modify_index = *index;
            wire.client_status = client
                .map_or("", |client| client.status.as_str())
                .to_owned();
            Assignment {
                allocation: Some(wire),
                trace_parent: String::new(),
                volume_paths: Default::default(),
                report_number: client
                    .filter(|_| !facts.hides_numbers)
                    .map_or(0, |client| client.report),
            }
        };
        AllocationsUpdate {
            revision: facts.revision,
            full: true,
            assignments: facts.allocs.values().map(assignment).collect(),
            removed_alloc_ids: Vec::new(),
            jobs: facts.jobs.values().map(v1::Job::from).collect(),
            store_id: facts.store_id.clone(),
        }
    }
}

/// A gateway of the cluster, until dropped.
pub(crate) struct Gateway {
    pub(crate) address: String,
    _cut: tokio_util::sync::DropGuard,
}

impl Gateway {
    pub(crate) async fn start(cluster: &Cluster) -> Self {
        Self::start_at(cluster, SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    pub(crate) async fn start_at(cluster: &Cluster, address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let cut = CancellationToken::new();
        let service = NodeSessionsServer::new(Api {
            cluster: cluster.clone(),
            address: address.clone(),
            cut: cut.clone(),
        });
        let incoming = TcpListenerStream::new(listener);
        let serving = Server::builder()
            .add_service(service)
            .serve_with_incoming_shutdown(incoming, cut.clone().cancelled_owned());
        tokio::spawn(serving);
        Self {
            address,
            _cut: cut.drop_guard(),
        }
    }

    pub(crate) fn socket_address(&self) -> SocketAddr {
        self.address
            .strip_prefix("http://")
            .unwrap()
            .parse()
            .unwrap()
    }
}

struct Api {
    cluster: Cluster,
    address: String,
    cut: CancellationToken,
}

impl Api {
    fn check(&self, node_id: &str) -> Result<(), Status> {
        let node_id: NodeId = node_id.parse().unwrap();
        if self.cluster.facts().known.contains(&node_id) {
            Ok(())
        } else {
            Err(Status::not_found(format!("no node {node_id}")))
        }
    }
}

#[tonic::async_trait]
impl NodeSessions for Api {
    async fn register(
        &self,
        request: Request<RegisterNodeRequest>,
    ) -> Result<Response<RegisterNodeResponse>, Status> {
        let request = request.into_inner();
        let mut node = Node::try_from(request.node.unwrap()).unwrap();
        node.secret = request.secret;
        let mut facts = self.cluster.facts();
        facts.known.insert(node.id);
        facts.registrations.push(node);
        facts.registered_at.push(self.address.clone());
        Ok(Response::new(RegisterNodeResponse {
            heartbeat_ttl: Some(proto::duration_to_wire(facts.ttl)),
            status: "ready".to_owned(),
            ..RegisterNodeResponse::default()
        }))
    }

    async fn heartbeat(
        &self,
        request: Request<HeartbeatRequest>,
    ) -> Result<Response<HeartbeatResponse>, Status> {
        self.check(&request.into_inner().node_id)?;
        let mut facts = self.cluster.facts();
        facts.beats.push(self.address.clone());
        if facts.refusing.contains(&self.address) {
            return Err(Status::unavailable("no relay"));
        }
        facts.heartbeats += 1;
        Ok(Response::new(HeartbeatResponse {
            heartbeat_ttl: Some(proto::duration_to_wire(facts.ttl)),
            status: facts.node_status.to_owned(),
            ..HeartbeatResponse::default()
        }))
    }

    type WatchServicesStream =
        Pin<Box<dyn Stream<Item = Result<WatchServicesResponse, Status>> + Send>>;

    /// Answers each request with the instances of its services, and again after each change.
    async fn watch_services(
        &self,
        request: Request<Streaming<WatchServicesRequest>>,
    ) -> Result<Response<Self::WatchServicesStream>, Status> {
        let mut requests = request.into_inner();
        let first = requests.message().await?.unwrap();
        self.check(&first.node_id)?;
        let cluster = self.cluster.clone();
        let changes = tokio_stream::wrappers::WatchStream::new(self.cluster.changed.subscribe());
        let names = Arc::new(Mutex::new(first.services));
        let newest = Arc::clone(&names);
        let asked = requests.map(move |request| {
            *newest.lock().unwrap() = request?.services;
            Ok(())
        });
        let due = asked.merge(changes.map(|_| Ok(())));
        let responses = due.map(move |due: Result<(), Status>| {
            due?;
            let facts = cluster.facts();
            let names = names.lock().unwrap().clone().into_iter();
            let changed = names.map(|service| ServiceInstances {
                instances: facts
                    .services
                    .get(&service.name)
                    .cloned()
                    .unwrap_or_default(),
                refusal: String::new(),
                service: Some(service),
            });
            Ok(WatchServicesResponse {
                changed: changed.collect(),
            })
        });
        let cut = self.cut.clone();
        let until_cut = futures::StreamExt::take_until(responses, cut.cancelled_owned());
        Ok(Response::new(Box::pin(until_cut)))
    }

    type AwaitConnectionsStream =
        Pin<Box<dyn Stream<Item = Result<AwaitConnectionsResponse, Status>> + Send>>;
    type OpenConnectionStream =
        Pin<Box<dyn Stream<Item = Result<OpenConnectionResponse, Status>> + Send>>;

    /// As a gateway that is older than these connections.
    async fn await_connections(
        &self,
        _: Request<AwaitConnectionsRequest>,
    ) -> Result<Response<Self::AwaitConnectionsStream>, Status> {
        self.cluster.facts().awaited += 1;
        Err(Status::unimplemented(""))
    }

    async fn open_connection(
        &self,
        _: Request<Streaming<OpenConnectionRequest>>,
    ) -> Result<Response<Self::OpenConnectionStream>, Status> {
        Err(Status::unimplemented(""))
    }

    type WatchAllocationsStream =
        Pin<Box<dyn Stream<Item = Result<AllocationsUpdate, Status>> + Send>>;

    async fn watch_allocations(
        &self,
        request: Request<WatchAllocationsRequest>,
    ) -> Result<Response<Self::WatchAllocationsStream>, Status> {
        let request = request.into_inner();
        self.check(&request.node_id)?;
        let mut facts = self.cluster.facts();
        facts.seen.push(request.seen_revision);
        facts.watched_at.push(self.address.clone());
        drop(facts);
        let cluster = self.cluster.clone();
        let changes = tokio_stream::wrappers::WatchStream::new(self.cluster.changed.subscribe());
        let cut = self.cut.clone();
        let updates = changes.map(move |_| Ok(cluster.full()));
        let until_cut = futures::StreamExt::take_until(updates, cut.cancelled_owned());
        Ok(Response::new(Box::pin(until_cut)))
    }

    async fn report_allocations(
        &self,
        request: Request<ReportAllocationsRequest>,
    ) -> Result<Response<ReportAllocationsResponse>, Status> {
        let request = request.into_inner();
        self.check(&request.node_id)?;
        let mut facts = self.cluster.facts();
        facts.calls.push(request.reports.len());
        if facts.failing_reports > 0 {
            facts.failing_reports -= 1;
            return Err(Status::unavailable("not now"));
        }
        let reports: Vec<(AllocId, AllocClient)> = request
            .reports
            .into_iter()
            .map(|report| {
                let client = AllocClient::try_from(report.client.unwrap()).unwrap();
                (report.alloc_id.parse().unwrap(), client)
            })
            .collect();
        if reports.iter().any(|(id, _)| facts.refused.contains(id)) {
            return Err(Status::invalid_argument("nonsense"));
        }
        for (id, _) in &reports {
            *facts.told.entry(*id).or_default() += 1;
        }
        let mut newer = Vec::new();
        for (id, client) in reports {
            let stored = facts.reported.get(&id).map_or(0, |stored| stored.report);
            if client.report < stored {
                newer.push(NewerReport {
                    alloc_id: id.to_string(),
                    report_number: stored,
                });
            } else {
                facts.reported.insert(id, client);
            }
        }
        Ok(Response::new(ReportAllocationsResponse {
            revision: facts.revision,
            newer_reports: newer,
        }))
    }
    async fn sign_identities(
        &self,
        request: Request<SignIdentitiesRequest>,
    ) -> Result<Response<SignIdentitiesResponse>, Status> {
        let token = self.cluster.facts().token.clone();
        if token.is_empty() {
            return Err(Status::unavailable("this gateway has no key"));
        }
        let now = service_kit::Clock::real().now();
        let signed = SignedIdentity {
            token,
            issued_at_ns: now,
            expires_at_ns: now + 3_600_000_000_000,
        };
        let count = request.into_inner().requests.len();
        Ok(Response::new(SignIdentitiesResponse {
            identities: vec![signed; count],
        }))
    }
    async fn look_up(
        &self,
        request: Request<LookUpRequest>,
    ) -> Result<Response<LookUpResponse>, Status> {
        let facts = self.cluster.facts();
        let Some(Data::Variable(path)) = request.into_inner().data else {
            return Err(Status::unavailable("this gateway has no data"));
        };
        if facts.variables.is_empty() {
            return Err(Status::unavailable("this gateway has no data"));
        }
        let found = facts.variables.get(&path).map(|items| v1::Variable {
            path: path.clone(),
            items: items.clone().into_iter().collect(),
            ..v1::Variable::default()
        });
        Ok(Response::new(LookUpResponse {
            variables: found.into_iter().collect(),
            ..LookUpResponse::default()
        }))
    }

    /// No volumes: the jobs of these tests ask for none.
    async fn csi_mounts(
        &self,
        _: Request<CsiMountsRequest>,
    ) -> Result<Response<CsiMountsResponse>, Status> {
        Err(Status::unavailable("this gateway has no volumes"))
    }
}
