//! Reaches other services: connections that are made when first used, and requests that carry a
//! deadline and the trace.

use std::time::Duration;

use tonic::metadata::{AsciiMetadataValue, MetadataMap};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use crate::trace_parent::{TRACE_PARENT, current_trace_parent};

/// How long a connection may take to come up: a machine that answers does so in milliseconds, and
/// a caller wants the time to try another.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a silent connection is probed, and how long the probe may take: a peer that vanished
/// without a word is noticed within 6 s, before anybody waits out an RPC's deadline.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(3);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
#[error("{address:?} is not an address such as http://127.0.0.1:7101")]
pub struct BadAddress {
    address: String,
    #[source]
    source: tonic::transport::Error,
}

/// A channel that adds the current trace to every request.
pub type TracedChannel = InterceptedService<Channel, TraceInterceptor>;

/// Returns a channel to `address` that connects when first used and again whenever it has to.
///
/// # Errors
/// `address` is not a URI.
pub fn connect_lazy(address: &str) -> Result<TracedChannel, BadAddress> {
    let bad = |source| BadAddress {
        address: address.to_owned(),
        source,
    };
    let endpoint = Endpoint::from_shared(address.to_owned()).map_err(bad)?;
    let endpoint = endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .tcp_nodelay(true);
    let channel = net::connect_lazy(&endpoint);
    Ok(InterceptedService::new(channel, TraceInterceptor))
}

/// Returns a request that both sides give up on after `deadline`. For a stream, that is the time
/// until it begins.
pub fn request<T>(message: T, deadline: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(deadline);
    inject(request.metadata_mut());
    request
}

/// Adds the current trace to every request that does not carry one.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceInterceptor;

impl Interceptor for TraceInterceptor {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        inject(request.metadata_mut());
        Ok(request)
    }
}

fn inject(metadata: &mut MetadataMap) {
    if metadata.contains_key(TRACE_PARENT) {
        return;
    }
    if let Ok(parent) = AsciiMetadataValue::try_from(current_trace_parent())
        && !parent.is_empty()
    {
        metadata.insert(TRACE_PARENT, parent);
    }
}
