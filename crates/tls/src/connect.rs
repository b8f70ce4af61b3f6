//! Connections to servers.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::io::AsyncBufReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower::Service;

use crate::credentials::Credentials;

/// The time for which a new connection waits for the server's first bytes. A server that waits for
/// the client costs this much a connection.
const FIRST_BYTES_TIMEOUT: Duration = Duration::from_millis(500);

/// The error of a server that closes the connection during the handshake, as etcd without TLS does.
const CLOSED: &str = "the server closed the connection during the TLS handshake: if it speaks no TLS, \
                      use http://";

/// Source: RFC 7301, the registered name of HTTP/1.1.
const ALPN_HTTP1: &[u8] = b"http/1.1";

/// A connection to a verified server.
pub type ClientStream = tokio_rustls::client::TlsStream<TcpStream>;

/// The name that a server's certificate has to carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The host of the address, a DNS name or an IP address.
    Host,
    /// This DNS name, whatever the address.
    Name(ServerName<'static>),
}

/// A further condition on the verified certificate of a server (DER). The error completes "the server's
/// certificate is …".
pub type ServerCheck = fn(&[u8]) -> Result<(), String>;

/// A server with a verified certificate that is not the one to talk to.
#[derive(Debug, thiserror::Error)]
#[error("the server's certificate is {0}")]
pub(crate) struct RefusedServer(pub(crate) String);

/// Connects to `host:port` of a URI with TLS; for channels.
#[derive(Clone, Debug)]
pub struct Connector {
    credentials: Credentials,
    expect: Expect,
    check: Option<ServerCheck>,
    is_http1: bool,
}

impl Connector {
    pub fn new(credentials: Credentials, expect: Expect) -> Self {
        Self {
            credentials,
            expect,
            check: None,
            is_http1: false,
        }
    }

    /// Refuses servers whose certificate does not meet the condition, before anything is sent to them.
    #[must_use]
    pub fn checking(self, check: ServerCheck) -> Self {
        Self {
            check: Some(check),
            ..self
        }
    }

    /// Offers HTTP/1.1 instead of HTTP/2.
    #[must_use]
    pub fn for_http1(self) -> Self {
        Self {
            is_http1: true,
            ..self
        }
    }

    /// Performs the handshake on a connection to `host`.
    ///
    /// # Errors
    /// The server's certificate is refused, or the connection broke.
    pub async fn handshake(&self, stream: TcpStream, host: &str) -> io::Result<ClientStream> {
        let name = match &self.expect {
            Expect::Name(name) => name.clone(),
            Expect::Host => ServerName::try_from(host.to_owned())
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?,
        };
        let mut config = self.credentials.client();
        if self.is_http1 {
            Arc::make_mut(&mut config).alpn_protocols = vec![ALPN_HTTP1.to_vec()];
        }
        let connector = TlsConnector::from(config);
        let connected = connector.connect(name, stream).await;
        let connected = connected.map_err(|error| match error.kind() {
            // The library's words are "tls handshake eof".
            io::ErrorKind::UnexpectedEof => io::Error::new(error.kind(), CLOSED),
            _ => error,
        })?;
        if let Some(check) = self.check {
            let chain = connected.get_ref().1.peer_certificates();
            let leaf = chain
                .and_then(|chain| chain.first())
                .map_or(&[][..], |leaf| leaf);
            check(leaf)
                .map_err(|it| io::Error::new(io::ErrorKind::PermissionDenied, RefusedServer(it)))?;
        }
        Ok(connected)
    }

    /// As [`Self::handshake`], and waits up to half a second for the server's first bytes: for HTTP/2
    /// servers, which send theirs at once.
    ///
    /// With TLS 1.3 the server judges the client's certificate after the client's handshake. Its refusal
    /// is the first it sends, else HTTP/2's settings; found later, it would be the end of a connection,
    /// without the reason.
    ///
    /// # Errors
    /// Those of [`Self::handshake`], and the server refuses the client's certificate.
    pub async fn open(&self, stream: TcpStream, host: &str) -> io::Result<ClientStream> {
        let mut stream = self.handshake(stream, host).await?;
        if let Ok(first) = timeout(FIRST_BYTES_TIMEOUT, stream.fill_buf()).await {
            first?;
        }
        Ok(stream)
    }

    async fn connect(self, uri: Uri) -> io::Result<TokioIo<ClientStream>> {
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let port = uri.port_u16().unwrap_or(443);
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        let stream = self.open(stream, host).await?;
        Ok(TokioIo::new(stream))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<ClientStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}
