//! A trace across two servers and the lines within it, as an OTLP collector gets them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

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
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span;
use service_kit::server::{ServeOptions, bind, serve};
use service_kit::{
    CancellationToken, SpanParent as _, Telemetry, TelemetryConfig, connect_lazy,
    current_trace_parent, request,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tracing::{Instrument as _, debug, info, info_span, warn};

const TIMEOUT: Duration = Duration::from_secs(20);

struct Collector {
    exports: mpsc::UnboundedSender<ExportTraceServiceRequest>,
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.exports.send(request.into_inner()).unwrap();
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

struct LogCollector {
    exports: mpsc::UnboundedSender<ExportLogsServiceRequest>,
}

#[tonic::async_trait]
impl LogsService for LogCollector {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        self.exports.send(request.into_inner()).unwrap();
        Ok(Response::new(ExportLogsServiceResponse::default()))
    }
}

/// The address of a collector, and what it gets.
struct Collected {
    endpoint: String,
    traces: mpsc::UnboundedReceiver<ExportTraceServiceRequest>,
    logs: mpsc::UnboundedReceiver<ExportLogsServiceRequest>,
}

async fn collector() -> Collected {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (exports, traces) = mpsc::unbounded_channel();
    let service = TraceServiceServer::new(Collector { exports });
    let (exports, logs) = mpsc::unbounded_channel();
    let server = tonic::transport::Server::builder()
        .add_service(service)
        .add_service(LogsServiceServer::new(LogCollector { exports }))
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(server);
    Collected {
        endpoint,
        traces,
        logs,
    }
}

async fn example_server(service: &'static str) -> String {
    let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let options = ServeOptions {
        service,
        rpc_services: Vec::new(),
        descriptors: &[],
        metrics: None,
        shutdown_grace_period: Duration::ZERO,
    };
    tokio::spawn(serve(
        listener,
        Routes::default(),
        options,
        CancellationToken::new(),
    ));
    address
}

async fn call(address: &str) {
    let mut client = HealthClient::new(connect_lazy(address).unwrap());
    client
        .check(request(HealthCheckRequest::default(), TIMEOUT))
        .await
        .unwrap();
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> &'a str {
    let found = attributes.iter().find(|attribute| attribute.key == key);
    value(found.and_then(|attribute| attribute.value.as_ref()))
}

fn value(value: Option<&AnyValue>) -> &str {
    match value {
        Some(AnyValue {
            value: Some(Value::StringValue(text)),
        }) => text,
        _ => "",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_trace_reaches_through_servers_and_stored_objects_and_has_its_lines() {
    let Collected {
        endpoint,
        traces: mut exports,
        logs,
    } = collector().await;
    let config = TelemetryConfig {
        otlp_endpoint: Some(endpoint),
        otlp_logs: true,
        ..TelemetryConfig::default()
    };
    let telemetry = Telemetry::start("kafila-dev", &config).unwrap();
    Telemetry::start("again", &config).expect_err("one a process");
    let (gateway, broker) = (
        example_server("api-gateway").await,
        example_server("broker").await,
    );

    let stored = async {
        call(&gateway).await;
        info!(job_id = "web", "registered");
        debug!("not printed");
        warn!(target: "h2::codec", "carries the export");
        current_trace_parent()
    };
    let stored = stored.instrument(info_span!("register")).await;
    // Later and elsewhere, from what was stored.
    let span = info_span!("schedule");
    span.set_parent_from(&stored);
    call(&broker).instrument(span).await;
    telemetry.shutdown().await;

    // Tests beside this one may export spans, too, in traces of their own.
    let mut exported = Vec::<Span>::new();
    let spans = loop {
        let export = tokio::time::timeout(TIMEOUT, exports.recv())
            .await
            .expect("four spans of one trace")
            .unwrap();
        for resource in export.resource_spans {
            let attributes = &resource.resource.as_ref().unwrap().attributes;
            assert_eq!(text(attributes, "service.name"), "kafila-dev");
            let scopes = resource.scope_spans.into_iter();
            exported.extend(scopes.flat_map(|scope| scope.spans));
        }
        let Some(register) = exported.iter().find(|span| span.name == "register") else {
            continue;
        };
        let of_trace = exported
            .iter()
            .filter(|span| span.trace_id == register.trace_id);
        let spans: BTreeMap<String, &Span> = of_trace
            .map(|span| {
                let service = text(&span.attributes, "service");
                (format!("{} {service}", span.name), span)
            })
            .collect();
        if spans.len() == 4 {
            break spans
                .into_iter()
                .map(|(name, span)| (name, span.clone()))
                .collect::<BTreeMap<_, _>>();
        }
    };
    let span = |name: &str| {
        spans
            .get(name)
            .unwrap_or_else(|| panic!("{name:?} of {spans:?}"))
    };
    let (register, schedule) = (span("register "), span("schedule "));
    let at_gateway = span("grpc.health.v1.Health/Check api-gateway");
    let at_broker = span("grpc.health.v1.Health/Check broker");
    assert_eq!(at_gateway.parent_span_id, register.span_id);
    assert_eq!(schedule.parent_span_id, register.span_id);
    assert_eq!(at_broker.parent_span_id, schedule.span_id);
    let lines = lines(logs);
    let body = |line: &LogRecord| value(line.body.as_ref()).to_owned();
    let bodies: Vec<String> = lines.iter().map(body).collect();
    let position = bodies.iter().position(|it| it == "registered");
    let registered = &lines[position.expect("it is exported")];
    assert_eq!(text(&registered.attributes, "job_id"), "web");
    assert_eq!(registered.severity_text, "INFO");
    assert_eq!(registered.trace_id, register.trace_id);
    assert_eq!(registered.span_id, register.span_id);
    let left_out = ["not printed", "carries the export"];
    assert!(
        !bodies.iter().any(|it| left_out.contains(&it.as_str())),
        "{bodies:?}"
    );
}

/// Returns the lines that were exported before the end of the telemetry.
fn lines(mut exports: mpsc::UnboundedReceiver<ExportLogsServiceRequest>) -> Vec<LogRecord> {
    let mut lines = Vec::new();
    while let Ok(export) = exports.try_recv() {
        for resource in export.resource_logs {
            let attributes = &resource.resource.as_ref().unwrap().attributes;
            assert_eq!(text(attributes, "service.name"), "kafila-dev");
            let scopes = resource.scope_logs.into_iter();
            lines.extend(scopes.flat_map(|scope| scope.log_records));
        }
    }
    lines
}
