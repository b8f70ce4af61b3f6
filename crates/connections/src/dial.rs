//! Channels whose connections have a time limit.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::time::error::Elapsed;
use tonic::transport::{Channel, Endpoint};
use tower::{Service, ServiceExt as _};

use crate::ByteStream;
use crate::connector::Connector;
use crate::network::{BoxFuture, installed};

type BoxError = Box<dyn Error + Send + Sync>;

type Connecting = BoxFuture<Result<TokioIo<Box<dyn ByteStream>>, BoxError>>;

/// The server did not accept a connection within this time. Nothing was sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectTimeout(pub Duration);

impl fmt::Display for ConnectTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is left of a deadline has fractions of a millisecond.
        let millis = self.0.as_nanos().div_ceil(1_000_000);
        let limit = Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX));
        write!(f, "no connection within {limit:?}")
    }
}

impl Error for ConnectTimeout {}

/// Creates channels whose connections have a time limit, and notes their first connection. Clones share the
/// note.
///
/// The limit covers the look-up of the host's name and the TLS handshake. `connect_timeout` of an [`Endpoint`]
/// covers no look-up in plaintext, and with a connector its error cannot be told from a connection that broke:
/// endpoints of these channels have none.
#[derive(Clone, Debug)]
pub struct Dial {
    limit: Duration,
    has_connected: Arc<AtomicBool>,
}

impl Dial {
    pub fn within(limit: Duration) -> Self {
        Self {
            limit,
            has_connected: Arc::default(),
        }
    }

    /// Tells whether there has ever been a connection.
    pub fn has_connected(&self) -> bool {
        self.has_connected.load(Ordering::Acquire)
    }

    /// Returns a channel to `endpoint` that connects on first use and reconnects as needed.
    pub fn connect_lazy(&self, endpoint: &Endpoint) -> Channel {
        if let Some(network) = installed() {
            return self.connect_lazy_with(endpoint, Connector { network });
        }
        // As the endpoint's own connector.
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        // Divided among the addresses of a name, so that the last one has time, too.
        connector.set_connect_timeout(Some(self.limit));
        self.connect_lazy_with(endpoint, connector)
    }

    /// As [`Self::connect_lazy`], with a connector.
    pub fn connect_lazy_with<C, S>(&self, endpoint: &Endpoint, connector: C) -> Channel
    where
        C: Service<Uri, Response = TokioIo<S>> + Clone + Send + 'static,
        C::Future: Send + 'static,
        C::Error: Into<BoxError>,
        S: ByteStream + 'static,
    {
        endpoint.connect_with_connector_lazy(Limited::new(connector, self.clone()))
    }
}

/// A connector with a time limit: one type for all connectors, because the code of a channel is copied for each.
struct Limited {
    connect: Box<dyn FnMut(Uri) -> Connecting + Send>,
    dial: Dial,
}

impl Limited {
    fn new<C, S>(connector: C, dial: Dial) -> Self
    where
        C: Service<Uri, Response = TokioIo<S>> + Clone + Send + 'static,
        C::Future: Send + 'static,
        C::Error: Into<BoxError>,
        S: ByteStream + 'static,
    {
        let connect = move |uri| -> Connecting {
            let connecting = connector.clone().oneshot(uri);
            Box::pin(async move {
                let connection = connecting.await.map_err(Into::into)?;
                let stream: Box<dyn ByteStream> = Box::new(connection.into_inner());
                Ok(TokioIo::new(stream))
            })
        };
        Self {
            connect: Box::new(connect),
            dial,
        }
    }
}

impl Service<Uri> for Limited {
    type Response = TokioIo<Box<dyn ByteStream>>;
    type Error = BoxError;
    type Future = Connecting;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Connecting {
        let Dial {
            limit,
            has_connected,
        } = self.dial.clone();
        let connecting = tokio::time::timeout(limit, (self.connect)(uri));
        Box::pin(async move {
            let late = || -> BoxError { Box::new(ConnectTimeout(limit)) };
            match connecting.await {
                Ok(Ok(connection)) => {
                    has_connected.store(true, Ordering::Release);
                    Ok(connection)
                }
                Ok(Err(error)) => Err(if is_timeout(&*error) { late() } else { error }),
                Err(_) => Err(late()),
            }
        })
    }
}

/// Tells whether a connector's own time limit ended the connecting.
fn is_timeout(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let inner = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        // Not among the sources, which skip it.
        if inner.is_some_and(|inner| inner.is::<Elapsed>()) {
            return true;
        }
        next = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::io::DuplexStream;

    use super::*;

    const LIMIT: Duration = Duration::from_millis(20);

    /// Connects once to a server that does as `connecting` does.
    async fn connect<F>(connecting: F) -> (Dial, Option<BoxError>)
    where
        F: Future<Output = io::Result<TokioIo<DuplexStream>>> + Send + 'static,
    {
        let dial = Dial::within(LIMIT);
        let connecting = Arc::new(Mutex::new(Some(connecting)));
        let connector = tower::service_fn(move |_: Uri| {
            let mut connecting = connecting.lock().expect("no panic");
            connecting.take().expect("one call")
        });
        let mut limited = Limited::new(connector, dial.clone());
        let connected = limited.call(Uri::from_static("http://g:1")).await;
        (dial, connected.err())
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_is_not_connected() {
        let (dial, error) = connect(std::future::pending()).await;
        let error = error.expect("the limit ends it");
        assert_eq!(error.to_string(), "no connection within 20ms");
        assert!(error.is::<ConnectTimeout>());
        assert!(!dial.has_connected());
    }

    #[test]
    fn the_time_limit_is_shown_in_whole_milliseconds() {
        let late = ConnectTimeout(Duration::from_nanos(999_998_001));
        assert_eq!(late.to_string(), "no connection within 1s");
    }

    #[tokio::test]
    async fn the_limit_of_the_connector_is_a_limit_too() {
        let elapsed = tokio::time::timeout(Duration::ZERO, std::future::pending::<()>()).await;
        let elapsed = elapsed.expect_err("it is pending");
        let late = io::Error::new(io::ErrorKind::TimedOut, elapsed);
        let (_, error) = connect(std::future::ready(Err(late))).await;
        assert!(error.expect("it is late").is::<ConnectTimeout>());
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let (dial, error) = connect(std::future::ready(Err(refused))).await;
        assert!(error.expect("it is refused").is::<io::Error>());
        assert!(!dial.has_connected());
    }

    #[tokio::test]
    async fn a_connection_is_noted() {
        let (near, _far) = tokio::io::duplex(16);
        let (dial, error) = connect(std::future::ready(Ok(TokioIo::new(near)))).await;
        assert!(error.is_none() && dial.has_connected());
    }
}
