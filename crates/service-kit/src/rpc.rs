//! The layer around every RPC of a server: a span that continues the caller's trace, a deadline
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
/// The deadline of a caller that asks for a longer one: a blocking query's longest wait, 10 minutes,
/// and a minute to answer it. A stream has begun to answer long before, and goes on.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(11 * 60);

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
        let limit = time_limit(request.headers());
        let answer = async move {
            let started = tokio::time::Instant::now();
            let response = match limit {
                Ok(limit) => match tokio::time::timeout(limit, inner.call(request)).await {
                    Ok(response) => response?,
                    Err(_) => {
                        let message = format!("no answer within {} s", limit.as_secs());
                        Status::deadline_exceeded(message).into_http()
                    }
                },
                Err(malformed) => malformed.into_http(),
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

/// Returns how long a call may take here. Shorter deadlines are tonic's to watch; but one that it
/// cannot read it passes over, and so would a call without end be made.
fn time_limit(headers: &HeaderMap) -> Result<Duration, Status> {
    let Some(value) = headers.get("grpc-timeout") else {
        return Ok(DEFAULT_TIMEOUT);
    };
    if is_timeout(value.as_bytes()) {
        return Ok(LONGEST_TIMEOUT);
    }
    Err(Status::invalid_argument(format!(
        "grpc-timeout is {value:?}: want up to eight digits and a unit (H, M, S, m, u or n), as in 30S"
    )))
}

/// Source: gRPC over HTTP/2.
fn is_timeout(text: &[u8]) -> bool {
    let Some((unit, digits)) = text.split_last() else {
        return false;
    };
    (1..=8).contains(&digits.len())
        && digits.iter().all(u8::is_ascii_digit)
        && b"HMSmun".contains(unit)
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tonic::Code;

    use super::*;

    /// Calls a service that never answers; returns the status and how long that took.
    async fn call(timeout: Option<&'static str>) -> (Code, Duration) {
        let layer = RpcLayer {
            service: "test".into(),
            metrics: None,
        };
        let silent = tower::service_fn(|_: Request<Body>| {
            std::future::pending::<Result<Response<Body>, Infallible>>()
        });
        let mut request = Request::new(Body::empty());
        if let Some(timeout) = timeout {
            let value = http::HeaderValue::from_static(timeout);
            request.headers_mut().insert("grpc-timeout", value);
        }
        let began = tokio::time::Instant::now();
        let response = layer.layer(silent).call(request).await.unwrap();
        let status = Status::from_header_map(response.headers()).unwrap();
        (status.code(), began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn no_call_goes_on_without_end() {
        let seconds = |elapsed: Duration| elapsed.as_secs();
        let (code, elapsed) = call(None).await;
        assert_eq!((code, seconds(elapsed)), (Code::DeadlineExceeded, 60));
        for large in ["99999999H", "00000011M", "12M", "30S", "5n"] {
            let (code, elapsed) = call(Some(large)).await;
            assert_eq!(
                (code, seconds(elapsed)),
                (Code::DeadlineExceeded, 660),
                "{large}"
            );
        }
        for malformed in [
            "",
            "S",
            "30",
            "30s",
            "-1S",
            "+1S",
            "1.5S",
            "999999999S",
            "1 S",
            "inf",
        ] {
            let (code, elapsed) = call(Some(malformed)).await;
            assert_eq!(
                (code, elapsed),
                (Code::InvalidArgument, Duration::ZERO),
                "{malformed:?}"
            );
        }
    }
}
