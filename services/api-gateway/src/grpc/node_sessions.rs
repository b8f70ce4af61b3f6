//! `kafila.internal.v1.NodeSessions`: nodes register, say that they live, are told what to run, and
//! tell what became of it.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::unfold;
use model::{AllocClient, FieldErrors, Indexed, Node, NodeId, NodeStatus};
use proto::duration_to_wire;
use proto::internal::v1::node_sessions_server::NodeSessions;
use proto::internal::v1::{
    AllocationsUpdate, HeartbeatRequest, HeartbeatResponse, NewerReport, RegisterNodeRequest,
    RegisterNodeResponse, ReportAllocationsRequest, ReportAllocationsResponse,
    WatchAllocationsRequest,
};
use service_kit::current_trace_parent;
use state::Snapshot;
use store::WaitError;
use tokio::time::Instant;
use tonic::{Request, Response, Status};
use tracing::{debug, error, info, warn};

use super::{Api, Parts};
use crate::error::Error;
use crate::gateway::{Shared, Step};
use crate::metrics::Held;
use crate::nodes::assignments::{SentJobs, changed, full};
use crate::nodes::node_evals::node_evals;
use crate::nodes::registration::{self, Registration};
use crate::nodes::report_loop::Stored;
use crate::nodes::reports::{self, Reports};
use crate::nodes::sessions::{Due, OpenSession};
use crate::nodes::{gate, registration::check};
use crate::settings::node_pools;
use crate::writes::Write;

/// How many jobs on one node are looked at again in the transaction that changes its record, which
/// has a thousand operations at most. Further ones follow in transactions of their own.
pub(super) const MAX_NODE_EVALS: usize = 900;
/// How long the replica may take to reach what a node has seen before the store itself is asked: a
/// replica is milliseconds behind.
const CATCH_UP: Duration = Duration::from_secs(1);
/// How long the store may take to say where it is. With [`CATCH_UP`] well within the 10 s that a
/// node waits for its stream.
const ASK_STORE: Duration = Duration::from_secs(3);

#[tonic::async_trait]
impl NodeSessions for Api {
    type WatchAllocationsStream = Parts<AllocationsUpdate>;

    async fn register(
        &self,
        request: Request<RegisterNodeRequest>,
    ) -> Result<Response<RegisterNodeResponse>, Status> {
        let response = Box::pin(self.register_node(request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn heartbeat(
        &self,
        request: Request<HeartbeatRequest>,
    ) -> Result<Response<HeartbeatResponse>, Status> {
        let request = request.into_inner();
        let node = self.open_session(&request.node_id, &request.secret).await?;
        let gateway = &self.gateway;
        gateway.heard().heard(node.value.id, Instant::now());
        gateway.metrics.heartbeats.inc();
        Ok(Response::new(HeartbeatResponse {
            heartbeat_ttl: Some(duration_to_wire(gateway.config.heartbeat_ttl)),
            status: node.value.status.as_str().to_owned(),
            eligibility: node.value.eligibility.as_str().to_owned(),
            gateways: gateway.gateways.clone(),
        }))
    }

    async fn watch_allocations(
        &self,
        request: Request<WatchAllocationsRequest>,
    ) -> Result<Response<Self::WatchAllocationsStream>, Status> {
        let request = request.into_inner();
        let node = self.open_session(&request.node_id, &request.secret).await?;
        let node_id = node.value.id;
        let gateway = Arc::clone(&self.gateway);
        // First the session, then the state: a change in between is noted in the session.
        let session = gateway.sessions.open(node_id);
        let seen = request.seen_revision;
        let catch_up = catch_up(&gateway, seen).await?;
        let store_id = store_id(&gateway, catch_up);
        session.note_full();
        info!(%node_id, seen, store_id, "node watches its allocations");
        let held = Held::new(&gateway.metrics.node_sessions);
        let watch = Watch {
            gateway,
            session,
            node_id,
            sent: SentJobs::default(),
            store_id,
            revision: 0,
            _held: held,
        };
        Ok(Response::new(Box::pin(unfold(Some(watch), next_update))))
    }

    async fn report_allocations(
        &self,
        request: Request<ReportAllocationsRequest>,
    ) -> Result<Response<ReportAllocationsResponse>, Status> {
        let stored = Box::pin(self.report(request.into_inner())).await?;
        let newer = stored.newer.iter().map(|(alloc_id, report)| NewerReport {
            alloc_id: alloc_id.to_string(),
            report: *report,
        });
        Ok(Response::new(ReportAllocationsResponse {
            revision: stored.revision,
            newer: newer.collect(),
        }))
    }
}

impl Api {
    /// Returns the node that calls; looks again in a fresh snapshot before it says that there is no
    /// such node, because it may have registered with another gateway a moment ago.
    async fn open_session(&self, node_id: &str, secret: &str) -> Result<Arc<Indexed<Node>>, Error> {
        let snapshot = self.gateway.snapshot(true).await?;
        match gate::open(&snapshot, node_id, secret) {
            Err(gate::Refusal::Unknown(_)) => {
                let fresh = self.gateway.fresh().await?;
                Ok(gate::open(&fresh, node_id, secret)?)
            }
            result => Ok(result?),
        }
    }

    async fn register_node(
        &self,
        request: RegisterNodeRequest,
    ) -> Result<RegisterNodeResponse, Error> {
        let gateway = &self.gateway;
        let node = read_node(request)?;
        let now = gateway.now();
        let trace_parent = current_trace_parent();
        let node_id = node.id;
        let decide = |snapshot: &Snapshot| {
            let stored = snapshot.node(node_id).map(|stored| &**stored);
            let status = stored.map_or(NodeStatus::Initializing, |stored| stored.value.status);
            match registration::decide(stored, node.clone(), now)? {
                Registration::Unchanged => {
                    let index = stored.map_or(0, |stored| stored.modify_index);
                    let pool = &node.node_pool;
                    let missing = node_pools::is_missing(snapshot, pool);
                    let Some(write) = node_pools::join_as_node(snapshot, pool).filter(|_| missing)
                    else {
                        return Ok(Step::Known((index, status, Vec::new())));
                    };
                    Ok(Step::Commit {
                        writes: vec![write],
                        answer: Box::new(move |_| (index, status, Vec::new())),
                    })
                }
                Registration::Write {
                    write,
                    feasibility_changed,
                } => {
                    let mut writes = vec![*write];
                    writes.extend(node_pools::join_as_node(snapshot, &node.node_pool));
                    let mut further = Vec::new();
                    if feasibility_changed {
                        let next_id = || gateway.next_eval_id();
                        let mut evals = node_evals(snapshot, &node, now, &trace_parent, next_id);
                        further = evals.split_off(evals.len().min(MAX_NODE_EVALS));
                        writes.extend(evals);
                    }
                    let answer = Box::new(move |revision| (revision, status, further));
                    Ok(Step::Commit { writes, answer })
                }
            }
        };
        let (node_modify_index, status, further) = gateway
            .carry_out(|| format!("node {node_id}"), decide)
            .await?;
        self.commit_further(node_id, &further).await?;
        info!(%node_id, index = node_modify_index, "node registered");
        // It lives: its first heartbeat need not be waited for.
        gateway.heard().heard(node_id, Instant::now());
        Ok(RegisterNodeResponse {
            heartbeat_ttl: Some(duration_to_wire(gateway.config.heartbeat_ttl)),
            node_modify_index,
            status: status.as_str().to_owned(),
            gateways: gateway.gateways.clone(),
        })
    }

    /// Writes the evaluations that found no room in the transaction that changed a node.
    pub(super) async fn commit_further(
        &self,
        node_id: NodeId,
        further: &[Write],
    ) -> Result<(), Error> {
        let gateway = &self.gateway;
        for evals in further.chunks(MAX_NODE_EVALS) {
            // Their ids are new, so nothing can be in the way.
            if let Err(error) = gateway.commit(evals, gateway.deadline()).await {
                let left = further.len();
                error!(%node_id, left, %error, "jobs on a changed node are not looked at again");
                return Err(error);
            }
        }
        Ok(())
    }

    async fn report(&self, request: ReportAllocationsRequest) -> Result<Stored, Error> {
        let reports = read_reports(&request)?;
        let node = self.open_session(&request.node_id, &request.secret).await?;
        let node_id = node.value.id;
        check_present(&node)?;
        let mut snapshot = self.gateway.snapshot(true).await?;
        let (mut known, missing) = reports::check(&snapshot, node_id, reports.clone())?;
        if !missing.is_empty() {
            // Collected, or placed a moment ago: only a fresh snapshot can tell.
            snapshot = self.gateway.fresh().await?;
            let (all, collected) = reports::check(&snapshot, node_id, reports)?;
            if !collected.is_empty() {
                debug!(%node_id, count = collected.len(), "reports of collected allocations");
            }
            known = all;
        }
        if known.is_empty() {
            return Ok(Stored {
                revision: snapshot.index(),
                newer: Vec::new(),
            });
        }
        self.gateway
            .reports
            .store(node_id, known, current_trace_parent())
            .await
    }
}

/// Source: Nomad's public behaviour: what was decided about a node's allocations while it was away
/// has to reach it first.
fn check_present(node: &Indexed<Node>) -> Result<(), reports::Refusal> {
    match node.value.status {
        NodeStatus::Initializing | NodeStatus::Ready => Ok(()),
        status @ (NodeStatus::Disconnected | NodeStatus::Down) => {
            let node_id = node.value.id;
            Err(reports::Refusal::NodeAway {
                node_id,
                status: status.as_str(),
            })
        }
    }
}

fn read_node(request: RegisterNodeRequest) -> Result<Node, FieldErrors> {
    let Some(node) = request.node else {
        let mut errors = FieldErrors::default();
        errors.push("node", "missing: want the node's record");
        return Err(errors);
    };
    let node = Node {
        secret: request.secret,
        ..node.try_into()?
    };
    check(&node)?;
    Ok(node)
}

/// Reads the reports; of several of one allocation the last counts.
fn read_reports(request: &ReportAllocationsRequest) -> Result<Reports, FieldErrors> {
    let mut errors = FieldErrors::default();
    let mut reports = Reports::new();
    for (position, report) in request.reports.iter().enumerate() {
        let at = format!("reports[{position}]");
        let alloc_id = report
            .alloc_id
            .parse()
            .map_err(|error: model::ids::InvalidId| {
                errors.push(format!("{at}.alloc_id"), error.to_string());
            });
        let client = match report.client.clone().map(AllocClient::try_from) {
            Some(Ok(client)) => Some(client),
            Some(Err(found)) => {
                let placed = found.0.into_iter().map(|mut error| {
                    error.field = format!("{at}.{}", error.field);
                    error
                });
                errors.0.extend(placed);
                None
            }
            None => {
                errors.push(
                    format!("{at}.client"),
                    "missing: want the allocation's client side",
                );
                None
            }
        };
        if let (Ok(alloc_id), Some(client)) = (alloc_id, client) {
            reports::add(&mut reports, alloc_id, client);
        }
    }
    errors.into_result(reports)
}

/// How a gateway stands to what a node has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CatchUp {
    /// The replica shows it.
    Reached,
    /// The store is older: it was restored from a backup, or is another one.
    WentBack,
}

/// Waits until the replica shows at least what the node has acted on, or until it is certain that
/// there is nothing to wait for.
///
/// Only the store's own word is proof of that: a linearizable read that began after the node had
/// seen a revision, and tells an older one.
async fn catch_up(gateway: &Shared, seen: u64) -> Result<CatchUp, Error> {
    match gateway.replica.wait_for(seen.max(1), CATCH_UP).await {
        Ok(_) => return Ok(CatchUp::Reached),
        Err(WaitError::Timeout { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let fresh = match tokio::time::timeout(ASK_STORE, gateway.fresh()).await {
        Ok(fresh) => fresh?,
        Err(_) => {
            let applied = gateway.replica.applied();
            return Err(Error::Behind { seen, applied });
        }
    };
    let current = fresh.index();
    if current >= seen {
        return Ok(CatchUp::Reached);
    }
    warn!(
        seen,
        current, "the store is older than what a node has seen: was it restored from a backup?"
    );
    Ok(CatchUp::WentBack)
}

/// Names what a stream's revisions count in.
///
/// An etcd that was restored to the same addresses bears the same cluster id. A stream that goes
/// back for a node then has a name of its own, so that the node does not take it for one of a
/// gateway that is behind; the node's next stream has the cluster's name again.
fn store_id(gateway: &Shared, catch_up: CatchUp) -> String {
    let cluster_id = gateway.replica.client().cluster_id().unwrap_or_default();
    match catch_up {
        CatchUp::Reached => format!("{cluster_id:x}"),
        CatchUp::WentBack => format!("{cluster_id:x}-{:x}", gateway.ids.next_u128()),
    }
}

/// One node's stream.
struct Watch {
    gateway: Shared,
    session: OpenSession,
    node_id: NodeId,
    sent: SentJobs,
    /// What the stream's revisions count in.
    store_id: String,
    /// The revision of the last update; it never goes back.
    revision: u64,
    _held: Held,
}

/// Returns the next update, made when the connection is ready to take it; after an error nothing.
async fn next_update(
    watch: Option<Watch>,
) -> Option<(Result<AllocationsUpdate, Status>, Option<Watch>)> {
    let mut watch = watch?;
    let ended = loop {
        let due = tokio::select! {
            biased;
            () = watch.session.replaced.cancelled() => break Error::Replaced,
            () = watch.gateway.drain.cancelled() => break Error::Draining,
            due = watch.session.due() => due,
        };
        match watch.update(&due) {
            Some(Ok(update)) => return Some((Ok(update), Some(watch))),
            Some(Err(error)) => break error,
            None => {}
        }
    };
    Some((Err(ended.into()), None))
}

impl Watch {
    /// Returns what to send; `None`: it has been sent already.
    fn update(&mut self, due: &Due) -> Option<Result<AllocationsUpdate, Error>> {
        let snapshot = self.gateway.replica.snapshot();
        let mut update = match due {
            Due::Full => {
                self.gateway.metrics.full_updates.inc();
                full(&snapshot, self.node_id, &mut self.sent)
            }
            Due::Changed { revision, .. } if *revision <= self.revision => return None,
            Due::Changed {
                revision,
                alloc_ids,
            } => changed(&snapshot, *revision, alloc_ids, &mut self.sent),
        };
        if update.revision < self.revision {
            // The store was restored from a backup: the node has to start over.
            let (seen, applied) = (self.revision, update.revision);
            return Some(Err(Error::Behind { seen, applied }));
        }
        self.revision = update.revision;
        update.store_id.clone_from(&self.store_id);
        self.gateway
            .metrics
            .assignments_sent
            .inc_by(update.assignments.len() as u64);
        Some(Ok(update))
    }
}
