//! Connections and listeners: TCP, or a simulated network in its place.
//!
//! Services and nodes open their gRPC sockets here alone, so that a simulation can replace them. In reading
//! order: [`Network`] is implemented and [`install`]ed by a simulation; [`Listener`] and [`Stream`] are for
//! servers; [`Dial`] creates a client's channel with a time limit for connecting, [`connect_lazy`] one without;
//! [`connect`] opens a connection, and [`channel_over`] creates a channel on one. [`MessageStream`] is a connection inside an RPC.
//!
//! A simulation has none of the other sockets: those of TLS (`tls::connect`), of etcd's TLS and metrics
//! (`store::socket`, `store::quota`), of checks of services (`task_runner::probe`), of Vault and Consul
//! (`http_client`), of DNS (`service_dns`), and Unix sockets to supervisors, engines and plugins.

mod connector;
mod dial;
mod exchange;
mod listener;
mod message_stream;
mod network;
mod stream;

use std::io;
use std::net::SocketAddr;

use http::Uri;
use hyper_util::rt::TokioIo;
use network::installed;
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::transport::{Channel, Endpoint};

pub use dial::{ConnectTimeout, Dial};
pub use exchange::exchange;
pub use listener::{Accept, Listener};
pub use message_stream::{Incoming, MESSAGES, MessageStream, Messages};
pub use network::{BoxFuture, Network, install, is_simulated};
pub use stream::{Io, Stream};

/// Window of HTTP/2 for one stream: bytes that its receiver has not read. It allows 20 MB/s over 50 ms.
pub const STREAM_WINDOW: u32 = 1024 * 1024;
/// Window of HTTP/2 for all streams of a connection.
///
/// The `h2` crate ends a connection whose unread DATA frames waste more than half of this, and a frame below 256
/// bytes wastes what it lacks: with `hyper`'s own windows, a reader that stops for a while in a stream of small
/// messages, or some thousand small requests at a server without time for them, break the connection for all
/// its streams. With this one, a stream of messages of 20 bytes is stopped by its own window at a fifth of the
/// limit.
pub const CONNECTION_WINDOW: u32 = 128 * 1024 * 1024;

/// Returns a channel to `endpoint` that connects on first use and reconnects as needed.
pub fn connect_lazy(endpoint: &Endpoint) -> Channel {
    match installed() {
        Some(network) => endpoint.connect_with_connector_lazy(connector::Connector { network }),
        None => endpoint.connect_lazy(),
    }
}

/// Connects to `host:port`.
///
/// # Errors
/// The host is unknown, or nothing listens there.
pub async fn connect(authority: &str) -> io::Result<Stream> {
    let stream = match installed() {
        Some(network) => Stream::Simulated(network.connect(authority).await?),
        None => Stream::Tcp(tokio::net::TcpStream::connect(authority).await?),
    };
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// An open connection: bytes in both directions.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Returns a channel on an open connection. It does not connect again: its calls fail once the connection has
/// ended.
///
/// # Errors
/// The connection has ended.
pub async fn channel_over(
    endpoint: &Endpoint,
    stream: Box<dyn ByteStream>,
) -> Result<Channel, tonic::transport::Error> {
    let mut stream = Some(TokioIo::new(stream));
    let connector = tower::service_fn(move |_: Uri| {
        let stream = stream.take();
        std::future::ready(stream.ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected)))
    });
    endpoint.connect_with_connector(connector).await
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
