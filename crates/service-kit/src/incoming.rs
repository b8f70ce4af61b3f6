//! Accepted connections: with mutual TLS, or plaintext.
//!
//! Each handshake is a task with a timeout, so a slow client delays no other. Connections without a
//! client certificate, which only some servers accept, are few and short.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use connections::{ByteStream, Listener};
use futures::Stream;
use identity::{Identity, Peer};
use tls::Credentials;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep, timeout};
use tonic::transport::server::Connected;
use tracing::info;

use crate::run::chain;
use crate::transport::Transport;

/// Timeout of a handshake, which takes three messages. Source: Nomad's default.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Handshakes at one time; further connections wait in the system's queue. Each takes some 30 KiB.
const MAX_HANDSHAKES: usize = 512;

/// Open connections without a client certificate. A node joins within a second; more nodes at one time
/// retry. They must not take the file descriptors of others.
const MAX_ANONYMOUS: usize = 128;
/// The longest life of such a connection: the introduction of a node, with a slow store.
const ANONYMOUS_LIFETIME: Duration = Duration::from_secs(30);

/// A listener with its transport. As a stream it yields connections that are ready for requests.
#[derive(Debug)]
pub struct Incoming {
    listener: Listener,
    transport: Transport,
    handshakes: JoinSet<Option<Connection>>,
    anonymous: Arc<Semaphore>,
    /// Connections that do not come from the listener; `None`: there are none.
    opened: Option<mpsc::Receiver<Opened>>,
}

/// A connection that this process has opened, and on which the other end sends the requests.
pub struct Opened {
    pub stream: Box<dyn ByteStream>,
    /// The other end: see [`Transport::peer_of`].
    pub peer: Peer,
}

impl Incoming {
    pub fn new(listener: Listener, transport: Transport) -> Self {
        Self {
            listener,
            transport,
            handshakes: JoinSet::new(),
            anonymous: Arc::new(Semaphore::new(MAX_ANONYMOUS)),
            opened: None,
        }
    }

    /// Yields the connections that this process opens, too.
    #[must_use]
    pub fn with_opened(self, opened: mpsc::Receiver<Opened>) -> Self {
        Self {
            opened: Some(opened),
            ..self
        }
    }

    fn poll_opened(&mut self, context: &mut Context<'_>) -> Poll<Connection> {
        let Some(opened) = &mut self.opened else {
            return Poll::Pending;
        };
        match ready!(opened.poll_recv(context)) {
            Some(opened) => Poll::Ready(Connection::Opened(opened)),
            None => {
                self.opened = None;
                Poll::Pending
            }
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
        if let Poll::Ready(connection) = this.poll_opened(context) {
            return Poll::Ready(Some(Ok(connection)));
        }
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
                (Some((credentials, metrics)), connections::Stream::Tcp(stream)) => {
                    let anonymous = Arc::clone(&this.anonymous);
                    let handshake =
                        handshake(credentials.clone(), metrics.clone(), stream, anonymous);
                    this.handshakes.spawn(handshake);
                }
                (Some(_), connections::Stream::Simulated(_)) => {
                    let error = io::Error::other("a simulated network has no TLS");
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}

fn prepared(accepted: io::Result<connections::Stream>) -> io::Result<connections::Stream> {
    let stream = accepted?;
    // Small messages, answered one by one: waiting to fill a packet only delays them.
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Returns the connection of a client with an identity, or of one without a certificate if the server
/// accepts such; refusals are logged and counted.
async fn handshake(
    credentials: Credentials,
    metrics: tls::Metrics,
    stream: TcpStream,
    anonymous: Arc<Semaphore>,
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
    let Some(leaf) = leaf else {
        return match anonymous.try_acquire_owned() {
            Ok(permit) => Some(Connection::Anonymous(Box::new(Anonymous {
                stream,
                end: Box::pin(sleep(ANONYMOUS_LIFETIME)),
                _permit: permit,
            }))),
            Err(_) => refuse(
                "too_many_anonymous",
                format!("{MAX_ANONYMOUS} clients without a certificate are connected"),
            ),
        };
    };
    match Identity::from_certificate(&leaf) {
        Ok(identity) => Some(Connection::Secured(Box::new(stream), identity)),
        Err(error) => refuse("identity", chain(&error)),
    }
}

/// A connection that is ready for requests. Each request has its [`Peer`] in the extensions.
pub enum Connection {
    Plaintext(connections::Stream),
    Secured(Box<tls::ServerStream>, Identity),
    Anonymous(Box<Anonymous>),
    Opened(Opened),
}

/// A connection of a client without a certificate, which ends after [`ANONYMOUS_LIFETIME`].
pub struct Anonymous {
    stream: tls::ServerStream,
    end: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl Anonymous {
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.end.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        match self {
            Self::Plaintext(_) => Peer::Development,
            Self::Secured(_, identity) => Peer::Certified(identity.clone()),
            Self::Anonymous(_) => Peer::Anonymous,
            Self::Opened(it) => it.peer.clone(),
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
            Self::Anonymous(it) => it.poll_read(context, buffer),
            Self::Opened(it) => Pin::new(&mut it.stream).poll_read(context, buffer),
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
            Self::Anonymous(it) => Pin::new(&mut it.stream).poll_write(context, bytes),
            Self::Opened(it) => Pin::new(&mut it.stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plaintext(stream) => Pin::new(stream).poll_flush(context),
            Self::Secured(stream, _) => Pin::new(stream).poll_flush(context),
            Self::Anonymous(it) => Pin::new(&mut it.stream).poll_flush(context),
            Self::Opened(it) => Pin::new(&mut it.stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plaintext(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Secured(stream, _) => Pin::new(stream).poll_shutdown(context),
            Self::Anonymous(it) => Pin::new(&mut it.stream).poll_shutdown(context),
            Self::Opened(it) => Pin::new(&mut it.stream).poll_shutdown(context),
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
            Self::Anonymous(it) => Pin::new(&mut it.stream).poll_write_vectored(context, slices),
            Self::Opened(it) => Pin::new(&mut it.stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plaintext(stream) => stream.is_write_vectored(),
            Self::Secured(stream, _) => stream.is_write_vectored(),
            Self::Anonymous(it) => it.stream.is_write_vectored(),
            Self::Opened(it) => it.stream.is_write_vectored(),
        }
    }
}
