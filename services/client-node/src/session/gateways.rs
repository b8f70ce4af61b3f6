//! Gateways of the cluster: channels, failover, and waits between retries.
//!
//! All loops of a node share one [`GatewayOrder`], so that a failure found by one loop spares the
//! others the same timeout.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use identity::Role;
use proto::internal::v1::node_sessions_client::NodeSessionsClient;
use service_kit::{CancellationToken, IdSource, TracedChannel, Transport};
use tokio::sync::Notify;
use tokio::time::sleep;
use tonic::{Code, Response, Status};
use tracing::{info, warn};

use super::gateway_order::GatewayOrder;

/// A full list of a node with thousands of allocations is larger than gRPC's default of 4 MiB.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

pub(crate) type Client = NodeSessionsClient<TracedChannel>;

/// The gateways of one node.
pub(crate) struct Gateways {
    connections: Mutex<Connections>,
    /// Notified by the first success after failures: waiting retries go on at once.
    recovered: Notify,
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
    pub(crate) fn new(configured: Vec<String>, ids: IdSource, transport: Transport) -> Self {
        Self {
            transport,
            ..Self::with(configured, None, ids)
        }
    }

    /// Uses one channel for all calls.
    pub(crate) fn shared(channel: TracedChannel, ids: IdSource) -> Self {
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
            ids,
            transport: Transport::PLAINTEXT,
        }
    }

    /// Calls the current gateway, and records the result.
    pub(crate) async fn call<T>(
        &self,
        call: impl AsyncFnOnce(Client) -> Result<Response<T>, Status>,
    ) -> Result<T, Status> {
        let (address, client) = self.current()?;
        match call(client).await {
            Ok(response) => {
                self.answered();
                Ok(response.into_inner())
            }
            Err(status) => {
                self.refused(&address, &status);
                Err(naming(&address, &status))
            }
        }
    }

    /// Waits before a retry: at most `limit`, and no longer than until another call succeeds.
    pub(crate) async fn pause(&self, limit: Duration, ended: &CancellationToken) {
        tokio::select! {
            () = sleep(limit) => {}
            () = self.recovered.notified() => {}
            () = ended.cancelled() => {}
        }
    }

    /// Replaces the list by the one that a gateway sent.
    pub(crate) fn replace(&self, addresses: &[String]) {
        let mut connections = self.lock();
        let Connections {
            order,
            channels,
            shared,
        } = &mut *connections;
        if shared.is_none() && order.replace(addresses, || self.ids.next_u64()) {
            info!(gateways = ?addresses, "the gateways of the cluster");
            channels.retain(|address, _| order.contains(address));
        }
    }

    pub(crate) fn answered(&self) {
        if self.lock().order.succeeded() {
            self.recovered.notify_waiters();
        }
    }

    /// Records a refusal. One that concerns the gateway, not the request, starts a failover.
    pub(crate) fn refused(&self, address: &str, status: &Status) {
        let is_gateway_failure = matches!(
            status.code(),
            Code::Unavailable
                | Code::DeadlineExceeded
                | Code::Unknown
                | Code::Cancelled
                | Code::Internal
                | Code::Unimplemented
                | Code::ResourceExhausted
        );
        if !is_gateway_failure {
            return;
        }
        if let Some(next) = self.lock().order.failed(address) {
            warn!(
                gateway = address,
                next,
                message = status.message(),
                "gateway failed; trying another"
            );
        }
    }

    /// Returns the current gateway and a client for it.
    pub(crate) fn current(&self) -> Result<(String, Client), Status> {
        let mut connections = self.lock();
        let address = connections.order.current().to_owned();
        let known = connections
            .shared
            .clone()
            .or_else(|| connections.channels.get(&address).cloned());
        let channel = match known {
            Some(channel) => channel,
            None => {
                let channel = self.transport.connect_lazy(&address, Role::Gateway);
                let channel = channel.map_err(|error| {
                    connections.order.skip();
                    Status::unavailable(error.to_string())
                })?;
                connections
                    .channels
                    .insert(address.clone(), channel.clone());
                channel
            }
        };
        drop(connections);
        let client = Client::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Ok((address, client))
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        // Each critical section leaves consistent data.
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the error with the gateway's address: an operator with several gateways looks for the one
/// that failed.
pub(crate) fn naming(address: &str, status: &Status) -> Status {
    let message = format!("gateway {address}: {}", status.message());
    let (details, metadata) = (status.details().to_vec(), status.metadata().clone());
    Status::with_details_and_metadata(status.code(), message, details.into(), metadata)
}
