//! `kafila.internal.v1.NodeSessions`: registration, heartbeats, assignments and reports of nodes.

use std::pin::Pin;
use std::sync::Arc;

use admission::nodes::heartbeats::{self, HeartbeatRefusal, Relay};
use admission::nodes::node_evals::EvalInputs;
use admission::nodes::registration::{self, Registration};
use admission::nodes::reports;
use admission::nodes::session::{self, SessionRefusal};
use futures::Stream;
use gateway_core::{Error, MAX_REQUEST_BYTES, Step, first_request};
use identity::Caller;
use model::{Indexed, Node};
use proto::duration_to_wire;
use proto::internal::v1::node_sessions_server::{NodeSessions, NodeSessionsServer};
use proto::internal::v1::{
    AllocationsUpdate, AwaitConnectionsRequest, AwaitConnectionsResponse, CsiMountsRequest,
    CsiMountsResponse, HeartbeatRequest, HeartbeatResponse, LookUpRequest, LookUpResponse,
    NewerReport, OpenConnectionRequest, OpenConnectionResponse, RegisterNodeRequest,
    RegisterNodeResponse, ReportAllocationsRequest, ReportAllocationsResponse,
    SignIdentitiesRequest, SignIdentitiesResponse, WatchAllocationsRequest, WatchServicesRequest,
    WatchServicesResponse,
};
use service_kit::current_trace_parent;
use state::Snapshot;
use tokio::time::Instant;
use tonic::{Request, Response, Status, Streaming};
use tracing::{debug, info};

use crate::csi;
use crate::identities;
use crate::look_ups;
use crate::node_gateway::NodeGateway;
use crate::report_loop::Stored;
use crate::requests::{read_node, read_reports, stored_size};
use crate::{service_watch, watch};

/// Implements the RPCs of nodes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct NodeApi {
    gateway: Arc<NodeGateway>,
}

/// Returns the gRPC service of `gateway`.
pub fn service(gateway: Arc<NodeGateway>) -> NodeSessionsServer<NodeApi> {
    NodeSessionsServer::new(NodeApi { gateway }).max_decoding_message_size(MAX_REQUEST_BYTES)
}

#[tonic::async_trait]
impl NodeSessions for NodeApi {
    type WatchAllocationsStream =
        Pin<Box<dyn Stream<Item = Result<AllocationsUpdate, Status>> + Send>>;
    type WatchServicesStream =
        Pin<Box<dyn Stream<Item = Result<WatchServicesResponse, Status>> + Send>>;
    type AwaitConnectionsStream =
        Pin<Box<dyn Stream<Item = Result<AwaitConnectionsResponse, Status>> + Send>>;
    type OpenConnectionStream =
        Pin<Box<dyn Stream<Item = Result<OpenConnectionResponse, Status>> + Send>>;

    async fn register(
        &self,
        request: Request<RegisterNodeRequest>,
    ) -> Result<Response<RegisterNodeResponse>, Status> {
        let caller = Caller::of(request.extensions());
        let response = Box::pin(self.register_node(&caller, request.into_inner())).await?;
        Ok(Response::new(response))
    }

    async fn heartbeat(
        &self,
        request: Request<HeartbeatRequest>,
    ) -> Result<Response<HeartbeatResponse>, Status> {
        let caller = Caller::of(request.extensions());
        let node = self.handle_heartbeat(&caller, request.into_inner()).await?;
        let gateway = &self.gateway;
        Ok(Response::new(HeartbeatResponse {
            heartbeat_ttl: Some(duration_to_wire(gateway.config.heartbeat_ttl)),
            status: node.value.status.as_str().to_owned(),
            eligibility: node.value.eligibility.as_str().to_owned(),
            gateways: gateway.config.gateways.clone(),
        }))
    }

    async fn watch_allocations(
        &self,
        request: Request<WatchAllocationsRequest>,
    ) -> Result<Response<Self::WatchAllocationsStream>, Status> {
        let caller = Caller::of(request.extensions());
        let request = request.into_inner();
        let node = self
            .open_session(&caller, &request.node_id, &request.secret)
            .await?;
        let gateway = Arc::clone(&self.gateway);
        let updates = watch::open(gateway, node.value.id, request.seen_revision).await?;
        Ok(Response::new(Box::pin(updates)))
    }

    async fn report_allocations(
        &self,
        request: Request<ReportAllocationsRequest>,
    ) -> Result<Response<ReportAllocationsResponse>, Status> {
        let caller = Caller::of(request.extensions());
        let stored = Box::pin(self.report(&caller, request.into_inner())).await?;
        let newer = stored.newer.iter().map(|(alloc_id, report)| NewerReport {
            alloc_id: alloc_id.to_string(),
            report_number: *report,
        });
        Ok(Response::new(ReportAllocationsResponse {
            revision: stored.revision,
            newer_reports: newer.collect(),
        }))
    }

    async fn sign_identities(
        &self,
        request: Request<SignIdentitiesRequest>,
    ) -> Result<Response<SignIdentitiesResponse>, Status> {
        let caller = Caller::of(request.extensions());
        let signed = Box::pin(self.sign(&caller, request.into_inner())).await;
        let metrics = &self.gateway.metrics;
        match &signed {
            Ok(response) => metrics
                .identity_tokens
                .inc_by(response.identities.len() as u64),
            Err(_) => metrics.identity_refusals.inc(),
        };
        Ok(Response::new(signed?))
    }

    async fn look_up(
        &self,
        request: Request<LookUpRequest>,
    ) -> Result<Response<LookUpResponse>, Status> {
        let caller = Caller::of(request.extensions());
        let request = request.into_inner();
        let answer = Box::pin(async {
            let node = self.open_session(&caller, &request.node_id, &request.secret);
            let node_id = node.await?.value.id;
            look_ups::look_up(&self.gateway, node_id, request).await
        });
        Ok(Response::new(answer.await?))
    }

    async fn csi_mounts(
        &self,
        request: Request<CsiMountsRequest>,
    ) -> Result<Response<CsiMountsResponse>, Status> {
        let caller = Caller::of(request.extensions());
        let request = request.into_inner();
        let answer = Box::pin(async {
            let node = self.open_session(&caller, &request.node_id, &request.secret);
            let node_id = node.await?.value.id;
            csi::mounts(&self.gateway, node_id, &request).await
        });
        Ok(Response::new(answer.await?))
    }

    async fn watch_services(
        &self,
        request: Request<Streaming<WatchServicesRequest>>,
    ) -> Result<Response<Self::WatchServicesStream>, Status> {
        let caller = Caller::of(request.extensions());
        let mut requests = request.into_inner();
        let first = first_request(&mut requests).await?;
        let node = self
            .open_session(&caller, &first.node_id, &first.secret)
            .await?;
        let gateway = Arc::clone(&self.gateway);
        let responses = service_watch::open(gateway, node.value.id, first, requests)?;
        Ok(Response::new(Box::pin(responses)))
    }

    async fn await_connections(
        &self,
        request: Request<AwaitConnectionsRequest>,
    ) -> Result<Response<Self::AwaitConnectionsStream>, Status> {
        let caller = Caller::of(request.extensions());
        let AwaitConnectionsRequest { node_id, secret } = request.into_inner();
        let node = self.open_session(&caller, &node_id, &secret).await?;
        let connections = &self.gateway.node_calls.connections;
        let requests = connections.await_connections(node.value.id);
        Ok(Response::new(Box::pin(requests)))
    }

    async fn open_connection(
        &self,
        request: Request<Streaming<OpenConnectionRequest>>,
    ) -> Result<Response<Self::OpenConnectionStream>, Status> {
        let caller = Caller::of(request.extensions());
        let mut requests = request.into_inner();
        let first = first_request(&mut requests).await?;
        let node = self
            .open_session(&caller, &first.node_id, &first.secret)
            .await?;
        let connections = &self.gateway.node_calls.connections;
        let responses = connections.accept(node.value.id, &first.connection_id, requests)?;
        Ok(Response::new(Box::pin(responses)))
    }
}

impl NodeApi {
    /// Returns the calling node. An unknown node is looked up in a fresh snapshot, too, because it may
    /// have registered with another gateway a moment ago.
    async fn open_session(
        &self,
        caller: &Caller,
        node_id: &str,
        secret: &str,
    ) -> Result<Arc<Indexed<Node>>, Error> {
        let snapshot = self.gateway.core.snapshot(true).await?;
        match session::open(&snapshot, caller, node_id, secret) {
            Err(SessionRefusal::Unknown(_)) => {
                let fresh = self.gateway.core.fresh().await?;
                Ok(session::open(&fresh, caller, node_id, secret)?)
            }
            result => Ok(result?),
        }
    }

    /// Records a heartbeat of the calling node.
    ///
    /// # Errors
    /// The caller is not the node; the relay to the cluster-controller does not work. A heartbeat that
    /// is refused because of the relay is recorded as well: should the relay recover, it counts.
    async fn handle_heartbeat(
        &self,
        caller: &Caller,
        request: HeartbeatRequest,
    ) -> Result<Arc<Indexed<Node>>, Error> {
        let HeartbeatRequest { node_id, secret } = request;
        let gateway = &self.gateway;
        gateway.metrics.heartbeats.inc();
        let Err(refusal) = self.check_relay() else {
            let node = self.open_session(caller, &node_id, &secret).await?;
            self.record(&node);
            return Ok(node);
        };
        gateway.metrics.heartbeats_refused.inc();
        // A gateway that is cut off does not wait for the store to look an unknown node up.
        match session::open(&gateway.core.replica.snapshot(), caller, &node_id, &secret) {
            Ok(node) => self.record(&node),
            Err(SessionRefusal::Unknown(_)) => {}
            Err(denied) => return Err(denied.into()),
        }
        Err(refusal.into())
    }

    fn check_relay(&self) -> Result<(), HeartbeatRefusal> {
        let gateway = &self.gateway;
        let relay = Relay {
            unconfirmed_for: gateway
                .heartbeats
                .lock()
                .unconfirmed_for(Instant::now().into_std()),
            replica_age: gateway.core.replica.last_contact(),
        };
        heartbeats::check(gateway.config.heartbeat_ttl, relay)
    }

    fn record(&self, node: &Indexed<Node>) {
        let mut heartbeats = self.gateway.heartbeats.lock();
        heartbeats.record(node.value.id, Instant::now().into_std());
    }

    async fn register_node(
        &self,
        caller: &Caller,
        request: RegisterNodeRequest,
    ) -> Result<RegisterNodeResponse, Error> {
        let gateway = &self.gateway;
        let node = read_node(request)?;
        session::check_self(caller, node.id)?;
        let now = gateway.core.now();
        let trace_parent = current_trace_parent();
        let node_id = node.id;
        let decide = |snapshot: &Snapshot| {
            let inputs = EvalInputs {
                now,
                trace_parent: &trace_parent,
                next_id: &|| gateway.core.next_eval_id(),
            };
            let Registration {
                status,
                kept_index,
                changes,
            } = registration::decide(snapshot, &node, &inputs)?;
            Ok(match kept_index {
                Some(index) if changes.writes.is_empty() => Step::Known((index, status)),
                _ => Step::Commit {
                    writes: changes.writes,
                    answer: Box::new(move |revision| (kept_index.unwrap_or(revision), status)),
                },
            })
        };
        let (node_modify_index, status) = gateway
            .core
            .execute(|| format!("node {node_id}"), decide)
            .await?;
        info!(%node_id, index = node_modify_index, "node registered");
        // A registration counts as a heartbeat.
        gateway
            .heartbeats
            .lock()
            .record(node_id, Instant::now().into_std());
        Ok(RegisterNodeResponse {
            heartbeat_ttl: Some(duration_to_wire(gateway.config.heartbeat_ttl)),
            node_modify_index,
            status: status.as_str().to_owned(),
            gateways: gateway.config.gateways.clone(),
        })
    }

    async fn sign(
        &self,
        caller: &Caller,
        request: SignIdentitiesRequest,
    ) -> Result<SignIdentitiesResponse, Error> {
        let requests = identities::read(&request)?;
        let node = self
            .open_session(caller, &request.node_id, &request.secret)
            .await?;
        identities::sign(&self.gateway, node.value.id, &requests).await
    }

    async fn report(
        &self,
        caller: &Caller,
        request: ReportAllocationsRequest,
    ) -> Result<Stored, Error> {
        let reports = read_reports(&request)?;
        let node = self
            .open_session(caller, &request.node_id, &request.secret)
            .await?;
        let node_id = node.value.id;
        reports::check_present(&node.value)?;
        let mut snapshot = self.gateway.core.snapshot(true).await?;
        let (mut known, missing) =
            reports::check(&snapshot, node_id, reports.clone(), stored_size)?;
        if !missing.is_empty() {
            // Collected, or placed a moment ago: a fresh snapshot tells which.
            snapshot = self.gateway.core.fresh().await?;
            let (all, collected) = reports::check(&snapshot, node_id, reports, stored_size)?;
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
