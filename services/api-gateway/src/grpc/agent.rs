//! `kafila.v1.Agent`: the log of this gateway, of the leader of a service, of any other process, or of a
//! node.

use std::time::Duration;

use admission::jobs::alloc_node::AllocNode;
use futures::StreamExt as _;
use gateway_core::{Error, is_unanswered};
use identity::Role;
use listing::find;
use model::ProcessKey;
use process_log::{Lines, has_target};
use proto::status::invalid_field;
use proto::v1;
use proto::v1::agent_client::AgentClient;
use proto::v1::agent_server::Agent;
use service_host::role_of;
use service_kit::{TracedChannel, request as with_deadline};
use tonic::{Code, Request, Response, Status};
use tracing::info;

use super::query::Api;
use crate::SERVICE;

/// The timeout until another process answers: it reads memory, and the connection may be new.
const TIMEOUT: Duration = Duration::from_secs(5);

#[tonic::async_trait]
impl Agent for Api {
    type MonitorStream = Lines;

    async fn monitor(
        &self,
        request: Request<v1::MonitorRequest>,
    ) -> Result<Response<Self::MonitorStream>, Status> {
        let request = request.into_inner();
        let Some(mut peer) = self.peer(request.target.as_ref()).await? else {
            info!(filter = request.filter, "log is read remotely");
            return Ok(Response::new(self.gateway.agent.open(&request)?));
        };
        let forwarded = v1::MonitorRequest {
            target: None,
            ..request
        };
        let answer = peer.client.monitor(with_deadline(forwarded, TIMEOUT)).await;
        let lines = answer.map_err(|status| peer.failed(&status))?.into_inner();
        let drain = self.gateway.drain.clone();
        // Pulled by the caller's connection, so a slow caller slows the process down, which drops lines.
        let relayed = lines
            .map(move |lines| lines.map_err(|status| peer.failed(&status)))
            .take_until(drain.cancelled_owned());
        Ok(Response::new(relayed.boxed()))
    }

    async fn get_log_level(
        &self,
        request: Request<v1::GetLogLevelRequest>,
    ) -> Result<Response<v1::GetLogLevelResponse>, Status> {
        let Some(mut peer) = self.peer(request.get_ref().target.as_ref()).await? else {
            return Ok(Response::new(self.gateway.agent.level()?));
        };
        let forwarded = with_deadline(v1::GetLogLevelRequest { target: None }, TIMEOUT);
        let answer = peer.client.get_log_level(forwarded).await;
        let level = answer.map_err(|status| peer.failed(&status))?.into_inner();
        Ok(Response::new(level))
    }

    async fn set_log_level(
        &self,
        request: Request<v1::SetLogLevelRequest>,
    ) -> Result<Response<v1::SetLogLevelResponse>, Status> {
        let request = request.into_inner();
        let Some(mut peer) = self.peer(request.target.as_ref()).await? else {
            return Ok(Response::new(self.gateway.agent.set_level(&request)?));
        };
        info!(
            peer = peer.name,
            filter = request.filter,
            "log level is set"
        );
        let forwarded = v1::SetLogLevelRequest {
            target: None,
            ..request
        };
        let answer = peer.client.set_log_level(with_deadline(forwarded, TIMEOUT));
        let level = answer.await.map_err(|status| peer.failed(&status))?;
        Ok(Response::new(level.into_inner()))
    }
}

/// Another process.
struct Peer {
    /// For messages: a service or a node, with its address.
    name: String,
    client: AgentClient<TracedChannel>,
}

impl Peer {
    /// Converts the status of the process: an unreachable one is `UNAVAILABLE`, and its refusal is passed
    /// on.
    fn failed(&self, status: &Status) -> Status {
        let (name, message) = (&self.name, status.message());
        match status.code() {
            _ if is_unanswered(status) => {
                let text = format!("{name} cannot be reached: {message}");
                Error::new(Code::Unavailable, text).into()
            }
            Code::Unimplemented => Status::failed_precondition(format!(
                "{name} is too old to serve its log: upgrade it"
            )),
            // With its details: the fields that are invalid.
            Code::InvalidArgument => status.clone(),
            code => Status::new(code, format!("{name}: {message}")),
        }
    }
}

impl Api {
    /// Returns the process that a request is about; `None`: this one.
    ///
    /// # Errors
    /// The target is unknown, or has no address.
    async fn peer(&self, target: Option<&v1::AgentTarget>) -> Result<Option<Peer>, Status> {
        let Some(target) = target.filter(|target| has_target(Some(target))) else {
            return Ok(None);
        };
        match (
            target.service.as_str(),
            target.node_id.as_str(),
            target.process.as_str(),
        ) {
            (SERVICE, "", "") => Ok(None),
            (service, "", "") => self.leader(service).map(Some),
            ("", id, "") => self.node(id).await.map(Some),
            ("", "", address) => self.process(address).await,
            (_, _, "") => {
                let message = "want a service or a node, not both";
                Err(invalid_field("target.node_id", message))
            }
            _ => {
                let message = "want a process alone, without a service and a node";
                Err(invalid_field("target.process", message))
            }
        }
    }

    /// Finds a registered process; `None`: it is this one.
    async fn process(&self, address: &str) -> Result<Option<Peer>, Status> {
        let found = self.gateway.core.look(|snapshot| {
            let is_meant = |key: &ProcessKey| {
                let host = key.address.split_once("://").map(|(_, host)| host);
                key.address == address || host == Some(address)
            };
            let mut keys = snapshot.processes().map(|(key, _)| key);
            let found = keys.find(|key| is_meant(key)).cloned();
            found.ok_or_else(|| {
                let message = format!(
                    "no process {address:?} is running: 'kafila operator processes' shows them"
                );
                Error::new(Code::NotFound, message)
            })
        });
        let ProcessKey { service, address } = found.await?;
        if address == self.gateway.address {
            return Ok(None);
        }
        let role = role_of(&service).ok_or_else(|| {
            Status::failed_precondition(format!("{service:?} is not a service of this version"))
        })?;
        let client = self.dial(&service, &address, role)?;
        let name = format!("the {service} at {address}");
        Ok(Some(Peer { name, client }))
    }

    fn dial(
        &self,
        service: &str,
        address: &str,
        role: Role,
    ) -> Result<AgentClient<TracedChannel>, Status> {
        let transport = &self.gateway.node_calls.transport;
        let channel = transport
            .connect_lazy(address, role)
            .map_err(|error| Status::internal(format!("{service}: {error}")))?;
        Ok(AgentClient::new(channel))
    }

    fn leader(&self, service: &str) -> Result<Peer, Status> {
        let invalid = |message: &str| Err(invalid_field("target.service", message));
        let role = match role_of(service) {
            Some(Role::Node) => return invalid("a node is chosen by its id: set target.node_id"),
            Some(Role::Worker) => {
                return invalid(
                    "scheduler-workers have no leader: choose one of 'kafila operator processes' by \
                     its address (-process)",
                );
            }
            Some(role) => role,
            None => {
                return invalid(
                    "no such service: want api-gateway, cluster-controller, deployment-watcher, \
                     eval-broker or plan-applier",
                );
            }
        };
        let Some(leader) = self.gateway.core.replica.leader(service) else {
            let message = format!(
                "no {service} leads: choose one of 'kafila operator processes' by its address (-process)"
            );
            return Err(Error::new(Code::Unavailable, message).into());
        };
        Ok(Peer {
            name: format!("the {service} at {}", leader.address),
            client: self.dial(service, &leader.address, role)?,
        })
    }

    async fn node(&self, id: &str) -> Result<Peer, Status> {
        let found = self.gateway.core.look(|snapshot| {
            let id = find::node(snapshot, id)?;
            let node = snapshot.node(id).expect("found in this snapshot");
            Ok(AllocNode::from(&node.value))
        });
        let node = found.await?;
        let name = format!("node {} at {}", node.name, node.address);
        match node_calls::channel(&self.gateway.node_calls, &node).await {
            Ok(channel) => Ok(Peer {
                name,
                client: AgentClient::new(channel),
            }),
            Err(reason) => {
                let text = format!("{name} cannot be reached: {reason}");
                Err(Error::new(Code::Unavailable, text).into())
            }
        }
    }
}
