//! Connections and listeners: TCP, or a simulated network in its place.
//!
//! Services and nodes open their gRPC sockets here alone, so that a simulation can replace them. In reading
//! order: [`Network`] is implemented and [`install`]ed by a simulation; [`Listener`] and [`Stream`] are for
//! servers; [`connect_lazy`] creates a client's channel.
//!
//! A simulation has none of the other sockets: those of TLS (`tls::connect`), of etcd's TLS and metrics
//! (`store::socket`, `store::quota`), of checks of services (`task_runner::probe`), of Vault and Consul
//! (`http_client`), of DNS (`service_dns`), and Unix sockets to supervisors, engines and plugins.

mod connector;
mod exchange;
mod listener;
mod network;
mod stream;

use std::io;
use std::net::SocketAddr;

use network::installed;
use tonic::transport::{Channel, Endpoint};

pub use exchange::exchange;
pub use listener::{Accept, Listener};
pub use network::{BoxFuture, Network, install, is_simulated};
pub use stream::{Io, Stream};

/// Returns a channel to `endpoint` that connects on first use and reconnects as needed.
pub fn connect_lazy(endpoint: &Endpoint) -> Channel {
    match installed() {
        Some(network) => endpoint.connect_with_connector_lazy(connector::Connector { network }),
        None => endpoint.connect_lazy(),
    }
}

/// Binds a listener; with port 0 the system chooses a port, which `local_addr` returns.
///
/// # Errors
/// The address is taken or not this machine's.
pub async fn bind(address: SocketAddr) -> io::Result<Listener> {
    match installed() {
        Some(network) => network.listen(address).map(Listener::Simulated),
        None => tokio::net::TcpListener::bind(address)
            .await
            .map(Listener::Tcp),
    }
}
