//! Channels to one member of etcd: TCP, with TLS for `https://`.

use std::io;
use std::net::TcpStream as StdTcpStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tls::{ClientStream, Connector, Credentials, Expect};
use tokio::net::TcpStream;
use tokio_util::either::Either;
use tonic::codegen::http::Uri;
use tonic::transport::Endpoint;
use tower::service_fn;

use crate::login::{LoggedIn, Login};
use crate::unsecured::{PlaintextRefusal, Unsecured};

/// The open connection of a channel, or the last one.
pub(crate) type Connection = Arc<Mutex<Option<StdTcpStream>>>;

/// Timeouts and intervals of connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) connect_timeout: Duration,
    pub(crate) keep_alive_interval: Duration,
    pub(crate) keep_alive_timeout: Duration,
}

/// The way to every member of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) timing: Timing,
    /// Certificates for `https://`.
    pub(crate) credentials: Option<Credentials>,
    pub(crate) login: Option<Arc<Login>>,
    /// Shared by all connections.
    pub(crate) refusal: PlaintextRefusal,
    /// A key that never exists, and that our user may read.
    pub(crate) no_key: String,
}

impl Access {
    /// Returns a channel that connects on first use and again as needed, and keeps the socket in
    /// `opened`.
    ///
    /// # Errors
    /// `address` is not a URI.
    pub(crate) fn channel(
        &self,
        address: &str,
        opened: Connection,
    ) -> Result<LoggedIn, tonic::transport::Error> {
        let endpoint = Endpoint::from_shared(address.to_owned())?
            .connect_timeout(self.timing.connect_timeout)
            .http2_keep_alive_interval(self.timing.keep_alive_interval)
            .keep_alive_timeout(self.timing.keep_alive_timeout)
            .keep_alive_while_idle(true);
        let connector = self
            .credentials
            .clone()
            .map(|credentials| Connector::new(credentials, Expect::Host));
        let refusal = self.refusal.clone();
        let channel = endpoint.connect_with_connector_lazy(service_fn(move |uri: Uri| {
            let (opened, connector) = (Arc::clone(&opened), connector.clone());
            let refusal = refusal.clone();
            async move {
                let stream = connect(&uri, connector, &opened, refusal).await;
                stream.map(TokioIo::new)
            }
        }));
        Ok(LoggedIn {
            channel,
            login: self.login.clone(),
        })
    }
}

async fn connect(
    uri: &Uri,
    connector: Option<Connector>,
    opened: &Connection,
    refusal: PlaintextRefusal,
) -> io::Result<Either<Unsecured<TcpStream>, ClientStream>> {
    let is_secured = uri.scheme_str() == Some("https");
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = uri.port_u16().unwrap_or(if is_secured { 443 } else { 80 });
    let socket = TcpStream::connect((host, port)).await?;
    socket.set_nodelay(true)?;
    let socket = socket.into_std()?;
    let second = socket.try_clone()?;
    *opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(second);
    let socket = TcpStream::from_std(socket)?;
    match (is_secured, connector) {
        (false, _) => Ok(Either::Left(Unsecured::new(socket, refusal))),
        (true, Some(connector)) => connector.open(socket, host).await.map(Either::Right),
        (true, None) => Err(io::Error::other(
            "https:// needs certificates: set `etcd.ca_file`",
        )),
    }
}
