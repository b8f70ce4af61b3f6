//! Accepted connections: with mutual TLS, or plaintext.
//!
//! Each handshake is a task with a timeout, so a slow client delays no other.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::Stream;
use identity::{Identity, Peer};
use net::Listener;
use tls::Credentials;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic::transport::server::Connected;
use tracing::info;

use crate::run::chain;
use crate::transport::Transport;

/// Timeout of a handshake, which takes three messages. Source: Nomad's default.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Handshakes at one time; further connections wait in the system's queue. Each takes some 30 KiB.
const MAX_HANDSHAKES: usize = 512;

/// A listener with its transport. As a stream it yields connections that are ready for requests.
#[derive(Debug)]
pub struct Incoming {
    listener: Listener,
    transport: Transport,
    handshakes: JoinSet<Option<Connection>>,
}

impl Incoming {
    pub fn new(listener: Listener, transport: Transport) -> Self {
        Self {
            listener,
            transport,
            handshakes: JoinSet::new(),
        }
    }

    /// Returns the region whose clients are served; `None` in plaintext.
    pub(crate) fn region(&self) -> Option<&str> {
        self.transport.region()
    }
}

/// Plaintext.
impl From<Listener> for Incoming {
    fn from(listener: Listener) -> Self {
        Self::new(listener, Transport::PLAINTEXT)
    }
}

impl Stream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            while let Poll::Ready(Some(ended)) = this.handshakes.poll_join_next(context) {
                if let Ok(Some(connection)) = ended {
                    return Poll::Ready(Some(Ok(connection)));
                }
            }
            if this.handshakes.len() >= MAX_HANDSHAKES {
                // The next end of a handshake wakes this task.
                return Poll::Pending;
            }
            let Some(accepted) = ready!(Pin::new(&mut this.listener).poll_next(context)) else {
                return Poll::Ready(None);
            };
            let stream = match prepared(accepted) {
                Ok(stream) => stream,
                Err(error) => return Poll::Ready(Some(Err(error))),
            };
            match (this.transport.server(), stream) {
                (None, stream) => return Poll::Ready(Some(Ok(Connection::Plaintext(stream)))),
                (Some((credentials, metrics)), net::Stream::Tcp(stream)) => {
                    let handshake = handshake(credentials.clone(), metrics.clone(), stream);
                    this.handshakes.spawn(handshake);
                }
                (Some(_), net::Stream::Simulated(_)) => {
                    let error = io::Error::other("a simulated network has no TLS");
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}

fn prepared(accepted: io::Result<net::Stream>) -> io::Result<net::Stream> {
    let stream = accepted?;
    // Small messages, answered one by one: waiting to fill a packet only delays them.
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Returns the connection of a client with an identity; refusals are logged and counted.
async fn handshake(
    credentials: Credentials,
    metrics: tls::Metrics,
    stream: TcpStream,
) -> Option<Connection> {
    let client = stream.peer_addr().ok();
    let refuse = |reason: &'static str, error: String| {
        metrics.count_failure(reason);
        info!(?client, reason, error, "connection refused");
        None
    };
    let (stream, leaf) = match timeout(HANDSHAKE_TIMEOUT, tls::accept(&credentials, stream)).await {
        Ok(Ok(accepted)) => accepted,
        Ok(Err(error)) => return refuse(error.reason(), chain(&error)),
        Err(_) => return refuse("timeout", "no handshake in time".to_owned()),
    };
    match Identity::from_certificate(&leaf) {
        Ok(identity) => Some(Connection::Secured(Box::new(stream), identity)),
        Err(error) => refuse("identity", chain(&error)),
    }
}

/// A connection that is ready for requests. Each request has its [`Peer`] in the extensions.
pub enum Connection {
    Plaintext(net::Stream),
    Secured(Box<tls::ServerStream>, Identity),
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        match self {
            Self::Plaintext(_) => Peer::Development,
            Self::Secured(_, identity) => Peer::Certified(identity.clone()),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plaintext(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Secured(stream, _) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plaintext(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Secured(stream, _) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plaintext(stream) => Pin::new(stream).poll_flush(context),
            Self::Secured(stream, _) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plaintext(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Secured(stream, _) => Pin::new(stream).poll_shutdown(context),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plaintext(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Secured(stream, _) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plaintext(stream) => stream.is_write_vectored(),
            Self::Secured(stream, _) => stream.is_write_vectored(),
        }
    }
}
