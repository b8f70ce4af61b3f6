//! The client: a channel to each gateway, and the calls.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use connections::Dial;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use http::uri::PathAndQuery;
use prost::Message;
use rand::RngExt as _;
use tokio::time::Instant;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status, Streaming};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::address::InvalidAddress;
use crate::attempts::{Attempts, Next};
use crate::config::{Config, ConfigError};
use crate::error::Error;
use crate::method::{Method, Repeat};
use proto::rpc::codec::{EncodedCodec, decoded, encoded};

/// The largest accepted answer: a list of 100,000 allocations with their task events. Tonic's default
/// of 4 MiB holds 4,000.
const MAX_ANSWER_BYTES: usize = 256 << 20;

/// A machine that answers does so in milliseconds, and the call needs time for another gateway.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A gateway that vanished without closing its connections is noticed within 6 s.
const KEEPALIVE: Duration = Duration::from_secs(3);

/// Calls the gateways of a cluster. Connects with the first call; cheap to clone, and clones share the
/// connections.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    gateways: Vec<Gateway>,
    /// Position of the gateway in use.
    current: AtomicUsize,
}

/// A gateway with its connection.
#[derive(Clone)]
pub(crate) struct Gateway {
    position: usize,
    pub(crate) address: String,
    channel: Channel,
    dial: Dial,
}

impl Gateway {
    /// Returns the error of a call without an answer within `limit`.
    fn late(&self, path: &'static str, limit: Duration) -> Error {
        if self.dial.has_connected() {
            Error::silent(path, &self.address, limit)
        } else {
            // Nothing was sent.
            Error::unconnected(path, &self.address, limit)
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.shared.config).finish()
    }
}

impl Client {
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// An address or a file of TLS cannot be used.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        let urls = config.urls()?;
        let connector = match urls.iter().any(|url| url.starts_with("https://")) {
            true => Some(config.tls.connector()?),
            false => None,
        };
        let mut gateways = Vec::new();
        for (position, address) in urls.into_iter().enumerate() {
            let endpoint = endpoint(&address)?;
            let dial = Dial::within(CONNECT_TIMEOUT);
            let channel = match &connector {
                Some(connector) if address.starts_with("https://") => {
                    dial.connect_lazy_with(&endpoint, connector.clone())
                }
                _ => dial.connect_lazy(&endpoint),
            };
            gateways.push(Gateway {
                position,
                address,
                channel,
                dial,
            });
        }
        Ok(Self {
            shared: Arc::new(Shared {
                config,
                gateways,
                current: AtomicUsize::new(0),
            }),
        })
    }

    /// Returns a client with the settings of [`Config::from_env`].
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::new(Config::from_env())
    }

    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// Tells whether there has ever been a connection to a gateway.
    pub fn has_connected(&self) -> bool {
        let mut gateways = self.shared.gateways.iter();
        gateways.any(|gateway| gateway.dial.has_connected())
    }

    /// Tells whether the server is ready: a gateway, or any other service or node at the address.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn is_ready(&self) -> Result<bool, Error> {
        const CHECK: Method<HealthCheckRequest, HealthCheckResponse> =
            Method::new("/grpc.health.v1.Health/Check", |_| Repeat::Safe, |_| ());
        // The empty name asks about the whole process.
        let request = HealthCheckRequest::default();
        let timeout = self.config().timeout;
        let answer = self.unary(CHECK, request, timeout, Duration::ZERO).await?;
        Ok(answer.status() == ServingStatus::Serving)
    }

    /// Returns the gateway that answered last.
    pub(crate) fn gateway(&self) -> &Gateway {
        &self.shared.gateways[self.shared.current.load(Ordering::Relaxed)]
    }

    /// Switches to the next gateway, unless another call has done so.
    pub(crate) fn leave(&self, gateway: &Gateway) {
        let next = (gateway.position + 1) % self.shared.gateways.len();
        let _ = self.shared.current.compare_exchange(
            gateway.position,
            next,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// Leaves the gateway of a stream that broke.
    pub(crate) fn leave_for(&self, error: &Error) {
        let mut gateways = self.shared.gateways.iter();
        if let Some(gateway) = gateways.find(|gateway| gateway.address == error.address()) {
            self.leave(gateway);
        }
    }

    /// Makes a call with its retries. `wait`: the time for which the gateway may block.
    pub(crate) async fn unary<Q, A>(
        &self,
        method: Method<Q, A>,
        mut message: Q,
        timeout: Duration,
        wait: Duration,
    ) -> Result<A, Error>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        (method.prepare)(&mut message);
        let repeat = (method.repeat)(&message);
        let exchange = self.start(method.path, encoded(&message), repeat, timeout, wait);
        let (address, answer) = exchange.await?;
        decoded(answer).map_err(|status| Error::new(method.path, &address, status, timeout))
    }

    /// Boxed, so that its code is not copied into every method's.
    fn start(
        &self,
        path: &'static str,
        message: Bytes,
        repeat: Repeat,
        timeout: Duration,
        wait: Duration,
    ) -> BoxFuture<'_, Result<(String, Bytes), Error>> {
        let attempts = Attempts::new(self.config(), repeat, timeout, wait, Instant::now());
        Box::pin(self.exchange(path, message, attempts))
    }

    /// Exchanges encoded messages, with retries. Returns the gateway that answered, and its answer.
    async fn exchange(
        &self,
        path: &'static str,
        message: Bytes,
        mut attempts: Attempts,
    ) -> Result<(String, Bytes), Error> {
        // An unknown outcome says more than the refused connection of a later attempt.
        let mut unknown: Option<Error> = None;
        loop {
            let gateway = self.gateway().clone();
            let limit = attempts.timeout(Instant::now());
            let attempt = self.attempt(&gateway, path, message.clone(), limit);
            // The request's own timeout begins when there is a connection.
            let error = match tokio::time::timeout(limit, attempt).await {
                Ok(Ok(answer)) => return Ok((gateway.address, answer)),
                Ok(Err(status)) => Error::new(path, &gateway.address, status, limit),
                Err(_) => gateway.late(path, limit),
            };
            if error.is_failover() {
                self.leave(&gateway);
            }
            let chance = rand::rng().random_range(0.0..=1.0);
            match attempts.after(&error, Instant::now(), chance) {
                Next::Again(delay) => {
                    if error.may_have_happened() {
                        unknown = Some(error);
                    }
                    tokio::time::sleep(delay).await;
                }
                Next::GiveUp if error.may_have_happened() || !error.is_failover() => {
                    return Err(error);
                }
                Next::GiveUp => return Err(unknown.unwrap_or(error)),
            }
        }
    }

    async fn attempt(
        &self,
        gateway: &Gateway,
        path: &'static str,
        message: Bytes,
        limit: Duration,
    ) -> Result<Bytes, Status> {
        let mut request = Request::new(message);
        request.set_timeout(limit);
        self.add_metadata(&mut request);
        let mut grpc = self.ready(gateway).await?;
        let path = PathAndQuery::from_static(path);
        let answer = grpc.unary(request, path, EncodedCodec).await?;
        Ok(answer.into_inner())
    }

    /// Opens a stream of answers to one request at the present gateway; `limit` is the time until it
    /// begins.
    pub(crate) async fn open(
        &self,
        path: &'static str,
        message: Bytes,
        limit: Duration,
    ) -> Result<(Gateway, Streaming<Bytes>), Error> {
        let opening = async |mut grpc: Grpc<Channel>| {
            let mut request = Request::new(message);
            self.add_metadata(&mut request);
            grpc.server_streaming(request, PathAndQuery::from_static(path), EncodedCodec)
                .await
        };
        self.opened(path, limit, opening).await
    }

    /// Opens streams in both directions at the present gateway; `limit` is the time until the answers
    /// begin.
    pub(crate) async fn open_duplex(
        &self,
        path: &'static str,
        requests: BoxStream<'static, Bytes>,
        limit: Duration,
    ) -> Result<(Gateway, Streaming<Bytes>), Error> {
        let opening = async |mut grpc: Grpc<Channel>| {
            let mut request = Request::new(requests);
            self.add_metadata(&mut request);
            grpc.streaming(request, PathAndQuery::from_static(path), EncodedCodec)
                .await
        };
        self.opened(path, limit, opening).await
    }

    /// Opens a stream at the present gateway within `limit`, and leaves a gateway that does not answer.
    async fn opened(
        &self,
        path: &'static str,
        limit: Duration,
        opening: impl AsyncFnOnce(Grpc<Channel>) -> Result<Response<Streaming<Bytes>>, Status>,
    ) -> Result<(Gateway, Streaming<Bytes>), Error> {
        let gateway = self.gateway().clone();
        let opening = async { opening(self.ready(&gateway).await?).await };
        let error = match tokio::time::timeout(limit, opening).await {
            Ok(Ok(stream)) => return Ok((gateway, stream.into_inner())),
            Ok(Err(status)) => Error::new(path, &gateway.address, status, limit),
            Err(_) => gateway.late(path, limit),
        };
        if error.is_failover() {
            self.leave(&gateway);
        }
        Err(error)
    }

    async fn ready(&self, gateway: &Gateway) -> Result<Grpc<Channel>, Status> {
        let grpc = Grpc::new(gateway.channel.clone());
        let mut grpc = grpc.max_decoding_message_size(MAX_ANSWER_BYTES);
        let ready = grpc.ready().await;
        ready.map_err(|error| Status::from_error(Box::new(error)))?;
        Ok(grpc)
    }

    fn add_metadata<Q>(&self, request: &mut Request<Q>) {
        if let Some(source) = &self.config().metadata {
            source(request.metadata_mut());
        }
    }
}

fn endpoint(address: &str) -> Result<Endpoint, InvalidAddress> {
    let endpoint = Endpoint::from_shared(address.to_owned()).map_err(|_| InvalidAddress {
        text: address.to_owned(),
        problem: "it is not a URI".to_owned(),
    })?;
    Ok(endpoint
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(connections::STREAM_WINDOW)
        .initial_connection_window_size(connections::CONNECTION_WINDOW)
        .tcp_nodelay(true))
}
