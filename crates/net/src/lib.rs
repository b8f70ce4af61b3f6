//! Connections and listeners: TCP, or a network that a simulation puts in its place.
//!
//! The one place that opens a socket. In reading order: [`Network`] is what a simulation provides
//! and [`install`]s; [`Listener`] and [`Stream`] are what servers hold; [`connect_lazy`] is how a
//! client gets its channel.

mod connector;
mod listener;
mod stream;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::OnceLock;

use tonic::transport::{Channel, Endpoint};

pub use listener::{Accept, Listener};
pub use stream::{Io, Stream};

/// A future that is boxed, for traits that are objects.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A network that is not the machine's.
pub trait Network: Send + Sync {
    /// Connects the caller to `host:port`.
    fn connect(&self, authority: &str) -> BoxFuture<io::Result<Box<dyn Io>>>;

    /// Listens at an address of the caller's; port 0 is any.
    ///
    /// # Errors
    /// The address is taken, or not the caller's.
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn Accept>>;
}

static INSTALLED: OnceLock<Box<dyn Network>> = OnceLock::new();

/// Has everything in this process use `network` instead of TCP, for as long as it lives.
///
/// # Panics
/// There is one already.
pub fn install(network: Box<dyn Network>) {
    let is_first = INSTALLED.set(network).is_ok();
    assert!(is_first, "a process has one network");
}

fn installed() -> Option<&'static dyn Network> {
    INSTALLED.get().map(Box::as_ref)
}

/// Returns whether a network of a simulation is in the place of TCP.
pub fn is_simulated() -> bool {
    installed().is_some()
}

/// Returns a channel to `endpoint` that connects when first used and again whenever it has to.
pub fn connect_lazy(endpoint: &Endpoint) -> Channel {
    match installed() {
        Some(network) => endpoint.connect_with_connector_lazy(connector::Connector { network }),
        None => endpoint.connect_lazy(),
    }
}

/// Binds a listener; port 0 lets the system choose, and `local_addr` tells which it was.
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
