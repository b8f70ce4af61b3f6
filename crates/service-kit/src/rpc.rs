//! What surrounds every RPC a server answers: a span that continues the caller's trace, a deadline
//! for callers that set none, and two metrics.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};
use tracing::{Instrument as _, Span, field};

use crate::trace_parent::{SpanParent as _, TRACE_PARENT};

/// The deadline of a caller that sets none. Long enough for any RPC of ours that does not stream;
/// a blocking query waits longer and says so in its `grpc-timeout`.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Stands for every path that no service here answers: paths come from outside, and a metric's
/// labels must be few.
const UNKNOWN_METHOD: &str = "unknown";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    method: String,
    code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MethodLabels {
    method: String,
}

#[derive(Clone, Debug)]
pub(crate) struct RpcMetrics {
    calls: Family<CallLabels, Counter>,
    seconds: Family<MethodLabels, Histogram, fn() -> Histogram>,
}

impl RpcMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let calls = Family::default();
        registry.register(
            "rpc_calls",
            "RPCs answered, by method and gRPC code",
            calls.clone(),
        );
        let seconds = Family::new_with_constructor(new_histogram as fn() -> Histogram);
        registry.register(
            "rpc_seconds",
            "Time until an RPC's answer began",
            seconds.clone(),
        );
        Self { calls, seconds }
    }

    fn record(&self, method: &str, code: tonic::Code, elapsed: Duration) {
        let method = if code == tonic::Code::Unimplemented {
            UNKNOWN_METHOD
        } else {
            method
        };
        let labels = CallLabels {
            method: method.to_owned(),
            code: i32::from(code).to_string(),
        };
        self.calls.get_or_create(&labels).inc();
        let labels = MethodLabels {
            method: method.to_owned(),
        };
        self.seconds
            .get_or_create(&labels)
            .observe(elapsed.as_secs_f64());
    }
}

/// 0.5 ms to 16 s: from an answer out of memory to a write that waited for an election.
fn new_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.0005, 2.0, 16))
}

/// Puts [`RpcService`] around a server's services.
#[derive(Clone, Debug)]
pub(crate) struct RpcLayer {
    pub(crate) service: Arc<str>,
    pub(crate) metrics: Option<RpcMetrics>,
}

impl<S> Layer<S> for RpcLayer {
    type Service = RpcService<S>;

    fn layer(&self, inner: S) -> RpcService<S> {
        RpcService {
            inner,
            layer: self.clone(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct RpcService<S> {
    inner: S,
    layer: RpcLayer,
}

impl<S> Service<Request<Body>> for RpcService<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // The instance that was polled ready makes the call; its clone waits for the next.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let metrics = self.layer.metrics.clone();
        let method = request.uri().path().trim_start_matches('/').to_owned();
        let span = open_span(&self.layer.service, &method, request.headers());
        let has_deadline = request.headers().contains_key("grpc-timeout");
        let answer = async move {
            let started = tokio::time::Instant::now();
            let call = inner.call(request);
            let response = if has_deadline {
                call.await?
            } else {
                match tokio::time::timeout(DEFAULT_TIMEOUT, call).await {
                    Ok(response) => response?,
                    Err(_) => Status::deadline_exceeded("no answer within 60 s").into_http(),
                }
            };
            // An error has its status in the header; a stream that began has it at its end.
            let code = Status::from_header_map(response.headers())
                .map_or(tonic::Code::Ok, |status| status.code());
            Span::current().record("rpc.grpc.status_code", i32::from(code));
            if let Some(metrics) = metrics {
                metrics.record(&method, code, started.elapsed());
            }
            Ok(response)
        };
        Box::pin(answer.instrument(span))
    }
}

/// Opens the span of one RPC, named after its method, as a child of the caller's.
fn open_span(service: &str, method: &str, headers: &HeaderMap) -> Span {
    let span = tracing::info_span!(
        "rpc",
        otel.name = method,
        otel.kind = "server",
        service,
        rpc.grpc.status_code = field::Empty,
    );
    if let Some(parent) = headers
        .get(TRACE_PARENT)
        .and_then(|value| value.to_str().ok())
    {
        span.set_parent_from(parent);
    }
    span
}
