//! Gateways of the cluster: channels, failover, and waits between retries.
//!
//! All loops of a node share one [`GatewayOrder`], so that a failure found by one loop spares the
//! others the same timeout.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use identity::Role;
use node_session::GatewayOrder;
use proto::internal::v1::node_sessions_client::NodeSessionsClient;
use service_kit::{CancellationToken, IdSource, TracedChannel, Transport};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tonic::{Response, Status};
use tracing::{info, warn};

use crate::failure::cause;
use crate::tls_failure;

/// A full list of a node with thousands of allocations is larger than gRPC's default of 4 MiB.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

pub type Client = NodeSessionsClient<TracedChannel>;

/// The gateways of one node.
pub struct Gateways {
    connections: Mutex<Connections>,
    /// Notified by the first success after failures: waiting retries go on at once.
    recovered: Notify,
    /// The gateway that accepted the last heartbeat.
    heartbeat_gateway: watch::Sender<Option<String>>,
    ids: IdSource,
    transport: Transport,
}

struct Connections {
    order: GatewayOrder,
    channels: HashMap<String, TracedChannel>,
    /// One channel for every address, shared by the simulated nodes of a process.
    shared: Option<TracedChannel>,
}

impl Gateways {
    pub fn new(configured: Vec<String>, ids: IdSource, transport: Transport) -> Self {
        // As they are dialed, for the log: `http://` would look like plaintext.
        let dialed = configured.iter().map(|address| transport.dialed(address));
        let gateways = Self::with(dialed.collect(), None, ids);
        Self {
            transport,
            ..gateways
        }
    }

    /// Uses one channel for all calls.
    pub fn shared(channel: TracedChannel, ids: IdSource) -> Self {
        Self::with(vec!["the shared channel".to_owned()], Some(channel), ids)
    }

    fn with(configured: Vec<String>, shared: Option<TracedChannel>, ids: IdSource) -> Self {
        let connections = Connections {
            order: GatewayOrder::new(configured),
            channels: HashMap::new(),
            shared,
        };
        Self {
            connections: Mutex::new(connections),
            recovered: Notify::new(),
            heartbeat_gateway: watch::Sender::new(None),
            ids,
            transport: Transport::PLAINTEXT,
        }
    }

    /// Calls the current gateway, and records the result.
    pub async fn call<T>(
        &self,
        call: impl AsyncFnOnce(Client) -> Result<Response<T>, Status>,
    ) -> Result<T, Status> {
        self.call_avoiding(None, call).await.1
    }

    /// Calls the current gateway, or another one if that is `avoided`, and records the result. Returns
    /// it with the gateway's address.
    pub async fn call_avoiding<T>(
        &self,
        avoided: Option<&str>,
        call: impl AsyncFnOnce(Client) -> Result<Response<T>, Status>,
    ) -> (String, Result<T, Status>) {
        let (address, client) = self.client(avoided);
        let answer = match client {
            Ok(client) => call(client).await,
            Err(status) => return (address, Err(status)),
        };
        let result = match answer {
            Ok(response) => {
                self.answered();
                Ok(response.into_inner())
            }
            Err(status) => {
                self.refused(&address, &status);
                Err(naming(&address, &status))
            }
        };
        (address, result)
    }

    /// Records that the gateway at `address` accepted a heartbeat.
    pub fn heartbeat_accepted(&self, address: &str) {
        self.heartbeat_gateway.send_if_modified(|known| {
            let is_new = known.as_deref() != Some(address);
            if is_new {
                *known = Some(address.to_owned());
            }
            is_new
        });
    }

    /// Returns a receiver of the gateway that accepts the node's heartbeats, as it changes.
    pub fn heartbeat_gateway(&self) -> watch::Receiver<Option<String>> {
        self.heartbeat_gateway.subscribe()
    }

    /// Moves the gateway at `address` to the end of the order.
    pub fn leave(&self, address: &str) {
        self.lock().order.failed(address);
    }

    /// Returns the number of known gateways.
    pub fn count(&self) -> usize {
        self.lock().order.count()
    }

    /// Waits before a retry: at most `limit`, and no longer than until another call succeeds.
    pub async fn pause(&self, limit: Duration, ended: &CancellationToken) {
        tokio::select! {
            () = sleep(limit) => {}
            () = self.recovered.notified() => {}
            () = ended.cancelled() => {}
        }
    }

    /// Replaces the list by the one that a gateway sent.
    pub fn replace(&self, addresses: &[String]) {
        // Gateways announce themselves with `http://` also where all connections use TLS.
        let dialed = addresses.iter().map(|it| self.transport.dialed(it));
        let addresses: Vec<String> = dialed.collect();
        let mut connections = self.lock();
        let Connections {
            order,
            channels,
            shared,
        } = &mut *connections;
        if shared.is_none() && order.replace(&addresses, &mut self.ids.rng()) {
            info!(gateways = ?addresses, "the gateways of the cluster");
            channels.retain(|address, _| order.contains(address));
        }
    }

    pub fn answered(&self) {
        if self.lock().order.succeeded() {
            self.recovered.notify_waiters();
        }
    }

    /// Records a refusal. One that concerns the gateway, not the request, starts a failover.
    pub fn refused(&self, address: &str, status: &Status) {
        if !cause(status).is_of_gateway() {
            return;
        }
        if let Some(next) = self.lock().order.failed(address) {
            let message = problem(status);
            warn!(
                gateway = address,
                next, message, "gateway failed; trying another"
            );
        }
    }

    /// Returns the current gateway and a client for it.
    pub fn current(&self) -> Result<(String, Client), Status> {
        let (address, client) = self.client(None);
        Ok((address, client?))
    }

    /// Returns the current gateway and a channel to it, for other RPCs than those of sessions.
    pub fn current_channel(&self) -> Result<(String, TracedChannel), Status> {
        let (address, channel) = self.channel(None);
        Ok((address, channel?))
    }

    fn client(&self, avoided: Option<&str>) -> (String, Result<Client, Status>) {
        let (address, channel) = self.channel(avoided);
        let client = |channel| Client::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
        (address, channel.map(client))
    }

    fn channel(&self, avoided: Option<&str>) -> (String, Result<TracedChannel, Status>) {
        let mut connections = self.lock();
        let address = connections.order.current_but(avoided).to_owned();
        let known = connections
            .shared
            .clone()
            .or_else(|| connections.channels.get(&address).cloned());
        let channel = match known {
            Some(channel) => channel,
            None => {
                let channel = match self.transport.connect_lazy(&address, Role::Gateway) {
                    Ok(channel) => channel,
                    Err(error) => {
                        connections.order.failed(&address);
                        return (address, Err(Status::unavailable(error.to_string())));
                    }
                };
                connections
                    .channels
                    .insert(address.clone(), channel.clone());
                channel
            }
        };
        (address, Ok(channel))
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        // Each critical section leaves consistent data.
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the error with the gateway's address, because an operator with several gateways looks for the
/// one that failed, and with the settings to check if TLS is the reason.
pub fn naming(address: &str, status: &Status) -> Status {
    let message = format!("gateway {address}: {}", problem(status));
    let (details, metadata) = (status.details().to_vec(), status.metadata().clone());
    Status::with_details_and_metadata(status.code(), message, details.into(), metadata)
}

/// Returns the reason of a failed call.
fn problem(status: &Status) -> String {
    /// The message of a broken connection. Source: tonic's channel.
    const NO_REASON: &str = "transport error";
    if let Some(text) = tls_failure::text(status) {
        return text;
    }
    match innermost_cause(status) {
        Some(cause) if status.message() == NO_REASON => format!("the connection broke: {cause}"),
        _ => status.message().to_owned(),
    }
}

/// Returns the innermost cause of `status`; only one that this side made has any.
fn innermost_cause(status: &Status) -> Option<&(dyn Error + 'static)> {
    let mut cause = status.source()?;
    while let Some(source) = cause.source() {
        cause = source;
    }
    Some(cause)
}
