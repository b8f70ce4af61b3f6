//! Channels to other services: they connect on first use, and requests carry a deadline and the
//! trace.

use std::time::Duration;

use connections::{ByteStream, Dial, MessageStream};
use tonic::metadata::{AsciiMetadataValue, MetadataMap};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use crate::trace_parent::{TRACE_PARENT, current_trace_parent};

/// The time limit for opening a connection: a machine that answers does so in milliseconds, and a
/// caller wants the time to try another.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The interval of probes on a silent connection, and the time limit of a probe: a peer that
/// vanished without closing is noticed within 6 s, before the deadline of an RPC.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(3);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(3);
/// Window of HTTP/2 for the one call of a connection inside an RPC. A process that passes the bytes on can hold
/// all of them, so that a slow receiver delays no other RPC on the outer connection. It allows 10 MB/s over
/// 50 ms.
pub const RPC_WINDOW: u32 = 512 * 1024;

/// An address that cannot be dialed.
#[derive(Debug, thiserror::Error)]
pub enum BadAddress {
    #[error("{address:?} is not an address such as http://127.0.0.1:7101")]
    Uri {
        address: String,
        #[source]
        source: tonic::transport::Error,
    },
    #[error("{address:?} needs TLS: set `tls.ca_file`, `tls.cert_file` and `tls.key_file`")]
    NeedsTls { address: String },
    #[error("no name to verify the server at {address:?} by")]
    Name { address: String },
}

impl BadAddress {
    pub(crate) fn name(address: &str) -> Self {
        Self::Name {
            address: address.to_owned(),
        }
    }
}

/// A channel that adds the current trace to every request.
pub type TracedChannel = InterceptedService<Channel, TraceInterceptor>;

/// Returns a plaintext channel to `address` that connects when first used and again whenever it has
/// to.
///
/// # Errors
/// `address` is not a URI, or needs TLS.
pub fn connect_lazy(address: &str) -> Result<TracedChannel, BadAddress> {
    let endpoint = endpoint(address)?;
    if address.starts_with("https://") {
        return Err(BadAddress::NeedsTls {
            address: address.to_owned(),
        });
    }
    let channel = Dial::within(CONNECT_TIMEOUT).connect_lazy(&endpoint);
    Ok(InterceptedService::new(channel, TraceInterceptor))
}

/// As [`connect_lazy`], with TLS.
///
/// # Errors
/// `address` is not a URI.
pub fn connect_lazy_with(
    address: &str,
    connector: tls::Connector,
) -> Result<TracedChannel, BadAddress> {
    let channel = Dial::within(CONNECT_TIMEOUT).connect_lazy_with(&endpoint(address)?, connector);
    Ok(InterceptedService::new(channel, TraceInterceptor))
}

/// Returns a channel on an open connection.
///
/// # Errors
/// The connection has ended.
pub async fn channel_over(
    stream: Box<dyn ByteStream>,
) -> Result<TracedChannel, tonic::transport::Error> {
    let channel = connections::channel_over(&unnamed_endpoint(), stream).await?;
    Ok(InterceptedService::new(channel, TraceInterceptor))
}

/// Returns a channel for one call on a connection inside an RPC. Less than [`RPC_WINDOW`] bytes of the call are
/// on their way to this process at any time.
///
/// # Errors
/// The connection has ended.
pub async fn channel_inside_rpc(
    stream: MessageStream,
) -> Result<TracedChannel, tonic::transport::Error> {
    let endpoint = unnamed_endpoint().initial_stream_window_size(RPC_WINDOW);
    let channel = connections::channel_over(&endpoint, Box::new(stream)).await?;
    Ok(InterceptedService::new(channel, TraceInterceptor))
}

/// Returns the endpoint of an open connection. The server at its other end does not look at the host.
fn unnamed_endpoint() -> Endpoint {
    endpoint("http://connection").expect("a valid address")
}

fn endpoint(address: &str) -> Result<Endpoint, BadAddress> {
    let bad = |source| BadAddress::Uri {
        address: address.to_owned(),
        source,
    };
    let endpoint = Endpoint::from_shared(address.to_owned()).map_err(bad)?;
    Ok(endpoint
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(connections::STREAM_WINDOW)
        .initial_connection_window_size(connections::CONNECTION_WINDOW)
        .tcp_nodelay(true))
}

/// Returns a request that both sides give up on after `deadline`. For a stream, that is the time
/// until it begins.
pub fn request<T>(message: T, deadline: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(deadline);
    add_trace(request.metadata_mut());
    request
}

/// Adds the current trace to every request that does not carry one.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceInterceptor;

impl Interceptor for TraceInterceptor {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        add_trace(request.metadata_mut());
        Ok(request)
    }
}

/// Adds the current trace, unless the request carries one.
pub fn add_trace(metadata: &mut MetadataMap) {
    if metadata.contains_key(TRACE_PARENT) {
        return;
    }
    if let Ok(parent) = AsciiMetadataValue::try_from(current_trace_parent())
        && !parent.is_empty()
    {
        metadata.insert(TRACE_PARENT, parent);
    }
}
