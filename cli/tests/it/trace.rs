//! The command is the root of the trace that its calls are part of.

use std::sync::{Arc, Mutex};

use data_encoding::HEXLOWER;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::command::kafila;
use crate::gateway::Gateway;
use crate::state::FakeState;

#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Span>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let scopes = request
            .into_inner()
            .resource_spans
            .into_iter()
            .flat_map(|it| it.scope_spans);
        self.0
            .lock()
            .unwrap()
            .extend(scopes.flat_map(|scope| scope.spans));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tokio::test]
async fn every_call_is_part_of_the_commands_trace() {
    let collector = Collector::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let serving = tonic::transport::Server::builder()
        .add_service(TraceServiceServer::new(collector.clone()))
        .serve_with_incoming(TcpListenerStream::new(listener));
    let server = tokio::spawn(serving);

    let gateway = Gateway::start(FakeState::running()).await;
    let line = kafila("job status web").env("KAFILA_OTLP_ENDPOINT", &endpoint);
    line.at(&gateway.address).await.ended(0);
    server.abort();

    let spans = collector.0.lock().unwrap().clone();
    let root = spans
        .iter()
        .find(|span| span.name == "kafila job status")
        .expect("a root span");
    assert!(root.parent_span_id.is_empty());
    let trace_id = HEXLOWER.encode(&root.trace_id);
    let state = gateway.state();
    assert!(state.seen.len() >= 5, "{:?}", state.seen);
    for seen in &state.seen {
        let parent = seen.trace_parent.clone().unwrap_or_default();
        assert!(
            parent.contains(&trace_id),
            "{seen:?} is not part of {trace_id}"
        );
    }
}

#[tokio::test]
async fn a_collector_that_is_not_there_changes_nothing_but_the_time() {
    let gateway = Gateway::start(FakeState::running()).await;
    let line = kafila("job status").env("KAFILA_OTLP_ENDPOINT", "http://127.0.0.1:1");
    let said = line.at(&gateway.address).await;
    said.ended(0).printed(&["web"]);
    assert_eq!(said.stderr, "");
}
