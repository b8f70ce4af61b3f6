//! OTLP collector that records spans and counts log lines, for tests.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use anyhow::Result;
use data_encoding::HEXLOWER;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{
    LogsService, LogsServiceServer,
};
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::resource::v1::Resource;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Request, Response, Status};

/// One received span.
#[derive(Clone, Debug)]
pub struct SeenSpan {
    pub service: String,
    pub name: String,
    pub trace_id: String,
    pub span_id: String,
    pub parent_span_id: String,
}

/// The signals that a collector accepts; it answers the rest with `UNIMPLEMENTED`.
#[derive(Clone, Copy, Debug)]
pub struct Signals {
    pub traces: bool,
    pub logs: bool,
}

/// A collector; it ends when dropped.
#[derive(Debug)]
pub struct Collector {
    pub address: SocketAddr,
    received: Received,
    _server: AbortOnDropHandle<()>,
}

impl Collector {
    /// Starts a collector of traces on a loopback port.
    ///
    /// # Errors
    /// No port is free.
    pub async fn start() -> Result<Self> {
        let signals = Signals {
            traces: true,
            logs: false,
        };
        Self::listen("127.0.0.1:0", signals).await
    }

    /// Starts a collector on `address`.
    ///
    /// # Errors
    /// The address is in use.
    pub async fn listen(address: &str, signals: Signals) -> Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let received = Received::default();
        let traces = TraceServiceServer::new(received.clone());
        let logs = LogsServiceServer::new(received.clone());
        let server = tokio::spawn(async move {
            let served = tonic::transport::Server::builder()
                .add_optional_service(signals.traces.then_some(traces))
                .add_optional_service(signals.logs.then_some(logs))
                .serve_with_incoming(TcpListenerStream::new(listener))
                .await;
            if let Err(error) = served {
                eprintln!("collector: {error}");
            }
        });
        Ok(Self {
            address,
            received,
            _server: AbortOnDropHandle::new(server),
        })
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn spans(&self) -> Vec<SeenSpan> {
        self.received.lock().spans.clone()
    }

    /// Returns the number of spans of each service.
    pub fn spans_by_service(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for span in &self.received.lock().spans {
            *counts.entry(span.service.clone()).or_default() += 1;
        }
        counts
    }

    /// Returns the number of log lines of each service.
    pub fn lines_by_service(&self) -> BTreeMap<String, u64> {
        self.received.lock().lines.clone()
    }
}

#[derive(Debug, Default)]
struct Contents {
    spans: Vec<SeenSpan>,
    lines: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Default)]
struct Received(Arc<Mutex<Contents>>);

impl Received {
    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().expect("no holder panics")
    }
}

#[tonic::async_trait]
impl TraceService for Received {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let mut contents = self.lock();
        for resource_spans in request.into_inner().resource_spans {
            let service = service_name(resource_spans.resource);
            let spans = resource_spans.scope_spans.into_iter();
            for span in spans.flat_map(|scope| scope.spans) {
                contents.spans.push(SeenSpan {
                    service: service.clone(),
                    name: span.name,
                    trace_id: HEXLOWER.encode(&span.trace_id),
                    span_id: HEXLOWER.encode(&span.span_id),
                    parent_span_id: HEXLOWER.encode(&span.parent_span_id),
                });
            }
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl LogsService for Received {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        let mut contents = self.lock();
        for resource_logs in request.into_inner().resource_logs {
            let scopes = &resource_logs.scope_logs;
            let lines: usize = scopes.iter().map(|scope| scope.log_records.len()).sum();
            let service = service_name(resource_logs.resource);
            *contents.lines.entry(service).or_default() += u64::try_from(lines).unwrap_or(u64::MAX);
        }
        Ok(Response::new(ExportLogsServiceResponse::default()))
    }
}

/// Returns the attribute `service.name`, empty if there is none.
fn service_name(resource: Option<Resource>) -> String {
    let attributes = resource
        .into_iter()
        .flat_map(|resource| resource.attributes);
    let name = attributes
        .filter(|attribute| attribute.key == "service.name")
        .find_map(|attribute| attribute.value?.value);
    match name {
        Some(Value::StringValue(name)) => name,
        _ => String::new(),
    }
}
