//! The metrics of one service, and the HTTP server that shows them and the service's health.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::IntoResponse;
use axum::routing::get;
use connections::Listener;
use futures::future::BoxFuture;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::documents::{Documents, Found};
use crate::nomad_names::{self, Labels};
use crate::process::ProcessCollector;

/// Everything one service measures. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics {
    service: Arc<str>,
    registry: Arc<Mutex<Registry>>,
    ready: watch::Sender<bool>,
    /// Labels of the metrics under Nomad's names; unset: those are not served.
    nomad_labels: Arc<OnceLock<Labels>>,
    documents: Documents,
}

impl Metrics {
    /// Makes a registry for `service`, with the process's own metrics (`process_…`) in it.
    pub fn new(service: &str) -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(ProcessCollector));
        Self {
            service: service.replace('-', "_").into(),
            registry: Arc::new(Mutex::new(registry)),
            ready: watch::Sender::new(false),
            nomad_labels: Arc::default(),
            documents: Documents::default(),
        }
    }

    /// Serves families of [`nomad_names::ALIASES`] under both names, with `labels` under Nomad's. Once for
    /// a registry.
    pub fn serve_nomad_names(&self, labels: Labels) {
        let _ = self.nomad_labels.set(labels);
    }

    /// Lets `declare` register metrics under `kafila_<service>_`; returns its result.
    pub fn register<T>(&self, declare: impl FnOnce(&mut Registry) -> T) -> T {
        let mut registry = self.lock();
        declare(registry.sub_registry_with_prefix(format!("kafila_{}", self.service)))
    }

    /// Serves a JSON document at `path` to every caller; `produce` returns its text, or `None` while it
    /// is not available. It must not block.
    pub fn serve_json(
        &self,
        path: &'static str,
        produce: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) {
        self.documents.add(path, Arc::new(produce));
    }

    /// Says whether the service can do its work; `/readyz` and gRPC health repeat it. Not ready at
    /// first.
    pub fn set_ready(&self, ready: bool) {
        self.ready.send_replace(ready);
    }

    /// Returns the readiness set by [`Self::set_ready`], now and later.
    pub fn readiness(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// Returns every metric in OpenMetrics text.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.lock())
            .expect("writing to a String cannot fail");
        match self.nomad_labels.get() {
            Some(labels) => nomad_names::add(&text, labels),
            None => text,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Registry> {
        // Registering pushes onto vectors: a panic leaves the registry whole.
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves `/metrics`, `/healthz` (the process lives), `/readyz` (it can work) and the documents until
    /// drained.
    ///
    /// # Errors
    /// The listener is broken.
    pub fn serve(
        self,
        listener: impl Into<Listener>,
        drain: CancellationToken,
    ) -> BoxFuture<'static, std::io::Result<()>> {
        self.serve_on(listener.into(), drain)
    }

    fn serve_on(
        self,
        listener: Listener,
        drain: CancellationToken,
    ) -> BoxFuture<'static, std::io::Result<()>> {
        // Boxed here, so that the HTTP server is compiled in this crate and not in every service.
        Box::pin(self.serve_until_drained(listener, drain))
    }

    async fn serve_until_drained(
        self,
        listener: Listener,
        drain: CancellationToken,
    ) -> std::io::Result<()> {
        let listener = match listener {
            Listener::Tcp(listener) => listener,
            Listener::Simulated(_) => {
                // A simulation has no scrapes.
                drain.cancelled().await;
                return Ok(());
            }
        };
        let router = Router::new()
            .route("/metrics", get(show_metrics))
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(show_ready))
            .fallback(get(show_document))
            .with_state(self);
        axum::serve(listener, router)
            .with_graceful_shutdown(drain.cancelled_owned())
            .await
    }
}

async fn show_metrics(State(metrics): State<Metrics>) -> impl IntoResponse {
    const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    // Some collectors go through the whole state, or read many small files.
    match blocking::spawn(move || metrics.encode()).await {
        Ok(text) => Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text)),
        Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

async fn show_document(State(metrics): State<Metrics>, path: Uri) -> impl IntoResponse {
    const HEADERS: [(header::HeaderName, &str); 2] = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "public, max-age=300"),
    ];
    match metrics.documents.find(path.path()) {
        Found::Text(text) => Ok((HEADERS, text)),
        Found::Unavailable => Err(StatusCode::SERVICE_UNAVAILABLE),
        Found::Unknown => Err(StatusCode::NOT_FOUND),
    }
}

async fn show_ready(State(metrics): State<Metrics>) -> (StatusCode, &'static str) {
    if *metrics.ready.borrow() {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    async fn get_path(address: std::net::SocketAddr, path: &str) -> String {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn metrics_and_health_are_served_until_drained() {
        let metrics = Metrics::new("eval-broker");
        let acks = Counter::<u64>::default();
        metrics.register(|registry| registry.register("acks", "Acked deliveries", acks.clone()));
        acks.inc();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let drain = CancellationToken::new();
        let server = tokio::spawn(metrics.clone().serve(listener, drain.clone()));

        let shown = get_path(address, "/metrics").await;
        assert!(shown.contains("kafila_eval_broker_acks_total 1"), "{shown}");
        assert!(shown.contains("process_resident_memory_bytes"), "{shown}");
        assert!(
            get_path(address, "/healthz")
                .await
                .starts_with("HTTP/1.1 200")
        );
        assert!(
            get_path(address, "/readyz")
                .await
                .starts_with("HTTP/1.1 503")
        );
        metrics.set_ready(true);
        assert!(
            get_path(address, "/readyz")
                .await
                .starts_with("HTTP/1.1 200")
        );

        let text = Arc::new(Mutex::new(None::<String>));
        let shown = Arc::clone(&text);
        metrics.serve_json("/keys.json", move || shown.lock().unwrap().clone());
        let answer = get_path(address, "/keys.json").await;
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        *text.lock().unwrap() = Some("{}".to_owned());
        let answer = get_path(address, "/keys.json?x=1").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(
            answer.contains("content-type: application/json"),
            "{answer}"
        );
        assert!(answer.ends_with("{}"), "{answer}");
        let answer = get_path(address, "/other.json").await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");

        drain.cancel();
        server.await.unwrap().unwrap();
    }
}
