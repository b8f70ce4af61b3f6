//! The layer that decides whether a call reaches its handler: the only place that does.
//!
//! It reads the [`Peer`] that the transport left in the request's extensions, asks `authorization`, and leaves
//! the [`Caller`] there for the handler. It reads no message: whether a node speaks of itself is decided
//! where its request is decoded.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use authorization::AccessRefusal;
use futures::future::{BoxFuture, FutureExt as _};
use http::{Request, Response};
use identity::{Caller, Peer};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};
use tracing::warn;

/// The minimum time between two log lines about refusals: a misconfigured caller retries for ever.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    method: &'static str,
    role: &'static str,
}

/// Counts refusals.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessMetrics {
    refused: Family<RefusalLabels, Counter>,
}

impl AccessMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register(
            "rights_refused",
            "RPCs refused because the caller has no right to call them, by method and role",
            metrics.refused.clone(),
        );
        metrics
    }
}

/// Puts [`AccessService`] around a server's services.
#[derive(Clone, Debug)]
pub(crate) struct AccessLayer {
    /// The server's region, from its certificate; `None`: it has none.
    region: Option<Arc<str>>,
    metrics: Option<AccessMetrics>,
    log: Arc<Mutex<RefusalLog>>,
}

impl AccessLayer {
    pub(crate) fn new(metrics: Option<AccessMetrics>, region: Option<&str>) -> Self {
        Self {
            region: region.map(Arc::from),
            metrics,
            log: Arc::default(),
        }
    }

    fn decide(&self, request: &mut Request<Body>) -> Result<(), Status> {
        // Every transport leaves a peer; a request without one has no rights.
        let peer = request.extensions().get::<Peer>().cloned();
        let caller = Caller::new(peer.unwrap_or(Peer::Anonymous));
        match authorization::check(request.uri().path(), &caller, self.region.as_deref()) {
            Ok(_) => {
                request.extensions_mut().insert(caller);
                Ok(())
            }
            Err(refusal) => Err(self.refuse(&refusal)),
        }
    }

    fn refuse(&self, refusal: &AccessRefusal) -> Status {
        if let Some(method) = refusal.method() {
            let role = refusal.role();
            if let Some(metrics) = &self.metrics {
                let labels = RefusalLabels { method, role };
                metrics.refused.get_or_create(&labels).inc();
            }
            let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(omitted) = log.record(Instant::now()) {
                warn!(method, role, omitted, %refusal, "call refused");
            }
        }
        match refusal {
            // Without words, as tonic's: the command takes those of other libraries for foreign servers.
            AccessRefusal::UnknownMethod => Status::unimplemented(""),
            AccessRefusal::Unauthenticated { .. } => Status::unauthenticated(refusal.to_string()),
            AccessRefusal::Role { .. } | AccessRefusal::Region { .. } => {
                Status::permission_denied(refusal.to_string())
            }
        }
    }
}

/// Bounds the log lines about refusals.
#[derive(Debug, Default)]
struct RefusalLog {
    last: Option<Instant>,
    omitted: u64,
}

impl RefusalLog {
    /// Returns how many refusals were not logged since the last line if this one is to be logged.
    fn record(&mut self, now: Instant) -> Option<u64> {
        let is_early = self
            .last
            .is_some_and(|last| now.duration_since(last) < LOG_INTERVAL);
        if is_early {
            self.omitted += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.omitted))
    }
}

impl<S> Layer<S> for AccessLayer {
    type Service = AccessService<S>;

    fn layer(&self, inner: S) -> AccessService<S> {
        AccessService {
            inner,
            layer: self.clone(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct AccessService<S> {
    inner: S,
    layer: AccessLayer,
}

impl<S> Service<Request<Body>> for AccessService<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        match self.layer.decide(&mut request) {
            Ok(()) => self.inner.call(request).boxed(),
            Err(status) => std::future::ready(Ok(status.into_http())).boxed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use identity::{Identity, Role};
    use tonic::Code;

    use super::*;

    const SUBMIT: &str = "/kafila.internal.v1.PlanApplier/Submit";

    fn peer(role: Role) -> Peer {
        Peer::Certified(Identity::new(role, "global", "p1").unwrap())
    }

    fn layer(metrics: &AccessMetrics) -> AccessLayer {
        AccessLayer::new(Some(metrics.clone()), Some("global"))
    }

    /// Calls a handler that answers with its caller; returns the status, or that caller.
    async fn call(layer: &AccessLayer, path: &str, peer: Option<Peer>) -> Result<Caller, Status> {
        let handler = tower::service_fn(|request: Request<Body>| {
            let mut response = Response::new(Body::empty());
            response
                .extensions_mut()
                .insert(Caller::of(request.extensions()));
            std::future::ready(Ok::<_, Infallible>(response))
        });
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = path.parse().unwrap();
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        let response = layer.layer(handler).call(request).await.unwrap();
        match Status::from_header_map(response.headers()) {
            Some(status) => Err(status),
            None => Ok(Caller::of(response.extensions())),
        }
    }

    #[tokio::test]
    async fn the_handler_gets_the_caller_that_the_transport_has_verified() {
        let layer = layer(&AccessMetrics::default());
        let caller = call(&layer, SUBMIT, Some(peer(Role::Worker))).await;
        assert_eq!(caller.unwrap(), Caller::new(peer(Role::Worker)));
        let introduce = "/kafila.internal.v1.NodeIntroductions/Introduce";
        let caller = call(&layer, introduce, Some(Peer::Anonymous)).await;
        assert_eq!(caller.unwrap(), Caller::ANONYMOUS);
    }

    #[tokio::test]
    async fn a_call_without_the_right_does_not_reach_the_handler() {
        let metrics = AccessMetrics::default();
        let layer = layer(&metrics);
        let refused = call(&layer, SUBMIT, Some(peer(Role::Node)))
            .await
            .unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
        for part in ["node p1", "PlanApplier/Submit", "role worker"] {
            assert!(refused.message().contains(part), "{refused}");
        }
        for nobody in [None, Some(Peer::Anonymous)] {
            let refused = call(&layer, SUBMIT, nobody).await.unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated);
            assert!(refused.message().contains("role worker"), "{refused}");
        }
        let count = |role| {
            let method = &SUBMIT[1..];
            metrics
                .refused
                .get_or_create(&RefusalLabels { method, role })
                .get()
        };
        assert_eq!((count("node"), count("none"), count("worker")), (1, 2, 0));
    }

    #[tokio::test]
    async fn a_path_outside_the_table_is_unimplemented_and_no_label() {
        let metrics = AccessMetrics::default();
        let layer = layer(&metrics);
        for peer in [Peer::Development, peer(Role::Operator)] {
            let refused = call(&layer, "/kafila.v1.Jobs/Nothing", Some(peer)).await;
            assert_eq!(refused.unwrap_err().code(), Code::Unimplemented);
        }
        let mut registry = Registry::default();
        registry.register("refused", "", metrics.refused.clone());
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        assert!(!text.contains("Nothing"), "{text}");
    }

    #[tokio::test]
    async fn in_development_every_caller_has_all_rights() {
        let layer = layer(&AccessMetrics::default());
        let caller = call(&layer, SUBMIT, Some(Peer::Development)).await;
        assert!(caller.unwrap().is_development());
    }

    #[tokio::test]
    async fn a_certificate_of_another_region_has_no_rights() {
        let layer = AccessLayer::new(None, Some("eu"));
        let refused = call(&layer, SUBMIT, Some(peer(Role::Worker)));
        assert_eq!(refused.await.unwrap_err().code(), Code::PermissionDenied);
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_are_logged_once_a_second_with_the_number_of_those_omitted() {
        let mut log = RefusalLog::default();
        assert_eq!(log.record(Instant::now()), Some(0));
        for _ in 0..3 {
            assert_eq!(log.record(Instant::now()), None);
        }
        tokio::time::advance(LOG_INTERVAL).await;
        assert_eq!(log.record(Instant::now()), Some(3));
        tokio::time::advance(LOG_INTERVAL).await;
        assert_eq!(log.record(Instant::now()), Some(0));
    }
}
