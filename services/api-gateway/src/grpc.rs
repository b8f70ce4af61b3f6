//! RPCs of the public API: decode requests, call the rest of the crate, encode answers.
//!
//! `query` has the list and get that all nouns share, `context` what all decisions need to know.

mod agent;
mod allocation_operations;
mod allocations;
mod context;
mod csi;
mod deployment_updates;
mod deployments;
mod etcd;
mod evaluations;
mod events;
mod explain;
mod introductions;
mod job_answers;
mod job_operations;
mod job_reads;
mod job_versions;
mod jobs;
mod namespaces;
mod node_pools;
mod node_requests;
mod nodes;
mod operator;
mod plan;
mod query;
mod revocations;
mod scaling_policies;
mod services;
mod variables;
mod volumes;

use gateway_core::MAX_REQUEST_BYTES;
use proto::internal::v1::{
    node_connections_server, node_introductions_server, node_sessions_server,
};
use proto::v1::agent_server::{self, AgentServer};
use proto::v1::allocations_server::{self, AllocationsServer};
use proto::v1::csi_volumes_server::{self, CsiVolumesServer};
use proto::v1::deployments_server::{self, DeploymentsServer};
use proto::v1::evaluations_server::{self, EvaluationsServer};
use proto::v1::events_server::{self, EventsServer};
use proto::v1::jobs_server::{self, JobsServer};
use proto::v1::namespaces_server::{self, NamespacesServer};
use proto::v1::node_pools_server::{self, NodePoolsServer};
use proto::v1::nodes_server::{self, NodesServer};
use proto::v1::operator_server::{self, OperatorServer};
use proto::v1::scaling_policies_server::{self, ScalingPoliciesServer};
use proto::v1::services_server::{self, ServicesServer};
use proto::v1::variables_server::{self, VariablesServer};
use proto::v1::volumes_server::{self, VolumesServer};
use tonic::service::Routes;

use crate::gateway::Shared;
use crate::grpc::query::Api;

/// The names of all services in [`routes`].
pub(crate) const RPC_SERVICES: [&str; 18] = [
    agent_server::SERVICE_NAME,
    jobs_server::SERVICE_NAME,
    allocations_server::SERVICE_NAME,
    evaluations_server::SERVICE_NAME,
    events_server::SERVICE_NAME,
    nodes_server::SERVICE_NAME,
    namespaces_server::SERVICE_NAME,
    node_pools_server::SERVICE_NAME,
    deployments_server::SERVICE_NAME,
    operator_server::SERVICE_NAME,
    scaling_policies_server::SERVICE_NAME,
    services_server::SERVICE_NAME,
    variables_server::SERVICE_NAME,
    volumes_server::SERVICE_NAME,
    csi_volumes_server::SERVICE_NAME,
    node_sessions_server::SERVICE_NAME,
    node_introductions_server::SERVICE_NAME,
    node_connections_server::SERVICE_NAME,
];

/// Returns all services of a gateway.
pub fn routes(gateway: Shared) -> Routes {
    let nodes = node_gateway::grpc::service(gateway.node.clone());
    let introductions = node_gateway::introduction::service(gateway.node.clone());
    let connections =
        node_connections::relay_service::service(gateway.node_calls.connections.clone());
    let api = Api { gateway };
    Routes::new(JobsServer::new(api.clone()).max_decoding_message_size(MAX_REQUEST_BYTES))
        .add_service(AgentServer::new(api.clone()))
        .add_service(AllocationsServer::new(api.clone()))
        .add_service(EvaluationsServer::new(api.clone()))
        .add_service(EventsServer::new(api.clone()))
        .add_service(NodesServer::new(api.clone()))
        .add_service(NamespacesServer::new(api.clone()))
        .add_service(NodePoolsServer::new(api.clone()))
        .add_service(DeploymentsServer::new(api.clone()))
        .add_service(OperatorServer::new(api.clone()))
        .add_service(ScalingPoliciesServer::new(api.clone()))
        .add_service(ServicesServer::new(api.clone()))
        .add_service(VariablesServer::new(api.clone()))
        .add_service(VolumesServer::new(api.clone()))
        .add_service(CsiVolumesServer::new(api))
        .add_service(nodes)
        .add_service(introductions)
        .add_service(connections)
}
