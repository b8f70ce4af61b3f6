//! Assembles a gRPC server: health, reflection, spans, deadlines, and an orderly end.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use connections::Listener;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio_stream::StreamExt as _;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tracing::{info, warn};

use crate::abortable::Abortable;
use crate::access::{AccessLayer, AccessMetrics};
use crate::incoming::Incoming;
use crate::metrics::Metrics;
use crate::rpc::{RpcLayer, RpcMetrics};
use crate::settings::ListenConfig;

/// The interval of probes on an idle connection, and the time limit of the answer: a vanished peer
/// is noticed within 20 s, for two packets a connection every 10 s.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Requests of a connection that are in progress at a time; further ones wait in the client, where they cost this
/// process nothing. A gateway works on as many requests about jobs, so that one client alone is never refused.
const MAX_STREAMS: u32 = 1_024;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}")]
    Bind {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("cannot listen on {address} (`{setting}`)")]
    BindSetting {
        setting: &'static str,
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("cannot build the gRPC reflection service from its descriptors")]
    Reflection(#[source] tonic_reflection::server::Error),
    #[error("the gRPC server failed")]
    Transport(#[from] tonic::transport::Error),
}

/// The options of a server beside its routes.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The service's name, in spans and logs.
    pub service: &'static str,
    /// The full names of the gRPC services in the routes, for health and reflection: their
    /// generated `SERVICE_NAME`s.
    pub rpc_services: Vec<&'static str>,
    /// An encoded `FileDescriptorSet` that declares them, for reflection; it may declare more.
    pub descriptors: &'static [u8],
    /// The metrics that count RPCs, and whose readiness the server's health repeats; `None`: RPCs
    /// are not counted, and the server is healthy until drained.
    pub metrics: Option<Metrics>,
    /// The time that RPCs have to finish after the drain began; then their connections are closed.
    pub shutdown_grace_period: Duration,
}

/// Binds a listener; port 0 lets the system choose, and `local_addr` tells which it was.
///
/// # Errors
/// The address is taken or not this machine's.
pub async fn bind(address: SocketAddr) -> Result<Listener, ServeError> {
    connections::bind(address)
        .await
        .map_err(|source| ServeError::Bind { address, source })
}

/// Binds the listeners of gRPC and of metrics.
///
/// # Errors
/// An address is taken or not this machine's; the error names the setting.
pub async fn bind_all(listen: &ListenConfig) -> Result<(Listener, Listener), ServeError> {
    let grpc = bind_setting("listen.grpc", listen.grpc).await?;
    let metrics = bind_setting("listen.metrics", listen.metrics).await?;
    Ok((grpc, metrics))
}

async fn bind_setting(setting: &'static str, address: SocketAddr) -> Result<Listener, ServeError> {
    let bound = connections::bind(address).await;
    bound.map_err(|source| ServeError::BindSetting {
        setting,
        address,
        source,
    })
}

/// Serves `routes`, health and reflection until drained, then ends: new connections are refused at
/// once, open RPCs may finish within the grace period, the rest is cut.
///
/// # Errors
/// The descriptor sets are malformed, or the listener is broken.
pub fn serve(
    incoming: impl Into<Incoming>,
    routes: Routes,
    options: ServeOptions,
    drain: CancellationToken,
) -> BoxFuture<'static, Result<(), ServeError>> {
    // Boxed here, so that the HTTP/2 server is compiled in this crate and not in every service.
    Box::pin(serve_until_drained(incoming.into(), routes, options, drain))
}

async fn serve_until_drained(
    incoming: Incoming,
    routes: Routes,
    options: ServeOptions,
    drain: CancellationToken,
) -> Result<(), ServeError> {
    let (reporter, health) = tonic_health::server::health_reporter();
    let mut reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(options.descriptors)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET);
    for name in options.rpc_services.iter().chain(&ALWAYS_SERVED) {
        reflection = reflection.with_service_name(*name);
    }
    let reflection = reflection.build_v1().map_err(ServeError::Reflection)?;
    let health_of = Health {
        reporter,
        names: options.rpc_services,
    };
    let readiness = options.metrics.as_ref().map(Metrics::readiness);

    let access_metrics = options.metrics.as_ref();
    let access_metrics = access_metrics.map(|metrics| metrics.register(AccessMetrics::register));
    let access = AccessLayer::new(access_metrics, incoming.region());
    let layer = RpcLayer {
        service: options.service.into(),
        metrics: options
            .metrics
            .map(|metrics| metrics.register(RpcMetrics::register)),
    };
    let cut = CancellationToken::new();
    let stop = CancellationToken::new();
    let connection_cut = cut.clone();
    let incoming = incoming
        .map(move |accepted| Ok::<_, io::Error>(Abortable::new(accepted?, connection_cut.clone())));
    let server = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .max_concurrent_streams(MAX_STREAMS)
        // After a pause of this process, all requests of a connection may have been given up. With `h2`'s limit
        // of 20, the connection would end.
        .http2_max_pending_accept_reset_streams(Some(MAX_STREAMS as usize))
        .initial_stream_window_size(connections::STREAM_WINDOW)
        .initial_connection_window_size(connections::CONNECTION_WINDOW)
        .layer(layer)
        .layer(access)
        .add_routes(routes.add_service(health).add_service(reflection))
        .serve_with_incoming_shutdown(incoming, stop.clone().cancelled_owned());
    tokio::pin!(server);

    tokio::select! {
        ended = &mut server => return Ok(ended?),
        () = drain.cancelled() => {}
        () = health_of.follow(readiness) => {}
    }
    health_of.set(false).await;
    stop.cancel();
    if let Ok(ended) = tokio::time::timeout(options.shutdown_grace_period, &mut server).await {
        info!(service = options.service, "gRPC server drained");
        return Ok(ended?);
    }
    warn!(
        service = options.service,
        "grace period is over: cutting the connections left"
    );
    cut.cancel();
    Ok(server.await?)
}

/// The RPC services of every server beside its own routes.
const ALWAYS_SERVED: [&str; 2] = [
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
];

/// The health of the whole server (the empty name) and of each service on it: all the same.
struct Health {
    reporter: HealthReporter,
    names: Vec<&'static str>,
}

impl Health {
    async fn set(&self, is_serving: bool) {
        let status = if is_serving {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        for name in self.names.iter().chain(&[""]) {
            self.reporter.set_service_status(name, status).await;
        }
    }

    /// Repeats the service's readiness, for ever.
    async fn follow(&self, readiness: Option<watch::Receiver<bool>>) {
        let Some(mut readiness) = readiness else {
            self.set(true).await;
            return std::future::pending().await;
        };
        loop {
            let is_ready = *readiness.borrow_and_update();
            self.set(is_ready).await;
            if readiness.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_check_response::ServingStatus as Answer;
    use tonic_health::pb::health_client::HealthClient;
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

    use super::*;
    use crate::channel::{connect_lazy, request};

    const TIMEOUT: Duration = Duration::from_secs(10);
    /// Any name will do: the routes are empty.
    const SERVED: &str = "kafila.v1.Example";

    struct Running {
        address: String,
        metrics: Metrics,
        drain: CancellationToken,
        server: tokio::task::JoinHandle<Result<(), ServeError>>,
    }

    #[tokio::test]
    async fn an_address_that_is_taken_is_named_with_its_setting() {
        let taken = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let address = taken.local_addr().unwrap();
        let grpc = ListenConfig {
            grpc: address,
            ..ListenConfig::default()
        };
        let metrics = ListenConfig {
            metrics: address,
            ..ListenConfig::default()
        };
        for (listen, setting) in [(grpc, "listen.grpc"), (metrics, "listen.metrics")] {
            let error = bind_all(&listen).await.expect_err("the address is taken");
            let expected = format!("cannot listen on {address} (`{setting}`)");
            assert_eq!(error.to_string(), expected);
        }
    }

    async fn start(grace: Duration) -> Running {
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (metrics, drain) = (Metrics::new("example"), CancellationToken::new());
        metrics.set_ready(true);
        let options = ServeOptions {
            service: "example",
            rpc_services: vec![SERVED],
            descriptors: tonic_health::pb::FILE_DESCRIPTOR_SET,
            metrics: Some(metrics.clone()),
            shutdown_grace_period: grace,
        };
        let server = tokio::spawn(serve(listener, Routes::default(), options, drain.clone()));
        Running {
            address,
            metrics,
            drain,
            server,
        }
    }

    fn check(service: &str) -> tonic::Request<HealthCheckRequest> {
        request(
            HealthCheckRequest {
                service: service.to_owned(),
            },
            TIMEOUT,
        )
    }

    #[tokio::test]
    async fn health_answers_for_the_server_and_for_each_service() {
        let running = start(TIMEOUT).await;
        let mut client = HealthClient::new(connect_lazy(&running.address).unwrap());
        for service in ["", SERVED] {
            let answer = client.check(check(service)).await.unwrap().into_inner();
            assert_eq!(answer.status(), Answer::Serving, "{service:?}");
        }
        let unknown = client.check(check("no.such.Service")).await.unwrap_err();
        assert_eq!(unknown.code(), tonic::Code::NotFound);
        let text = running.metrics.encode();
        let line =
            "kafila_example_rpc_calls_total{method=\"grpc.health.v1.Health/Check\",code=\"0\"} 2";
        assert!(text.contains(line), "{text}");
        running.drain.cancel();
        drop(client);
        running.server.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn reflection_lists_the_services() {
        let running = start(TIMEOUT).await;
        let mut client = ServerReflectionClient::new(connect_lazy(&running.address).unwrap());
        let question = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::ListServices(String::new())),
        };
        let questions = tokio_stream::iter([question]);
        let mut answers = client
            .server_reflection_info(request(questions, TIMEOUT))
            .await
            .unwrap()
            .into_inner();
        let answer = answers
            .message()
            .await
            .unwrap()
            .unwrap()
            .message_response
            .unwrap();
        let MessageResponse::ListServicesResponse(list) = answer else {
            panic!("{answer:?}")
        };
        // Not what the descriptors declare, but what is served.
        let names: Vec<_> = list.service.iter().map(|service| &service.name).collect();
        assert_eq!(names, [SERVED, ALWAYS_SERVED[0], ALWAYS_SERVED[1]]);
    }

    #[tokio::test]
    async fn health_follows_readiness() {
        let running = start(TIMEOUT).await;
        let mut client = HealthClient::new(connect_lazy(&running.address).unwrap());
        let mut statuses = client.watch(check("")).await.unwrap().into_inner();
        for (is_ready, expected) in [(true, Answer::Serving), (false, Answer::NotServing)] {
            running.metrics.set_ready(is_ready);
            while statuses.message().await.unwrap().unwrap().status() != expected {}
        }
        running.drain.cancel();
        drop((statuses, client));
        running.server.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_drain_refuses_new_connections_and_tells_watchers_of_health() {
        let running = start(TIMEOUT).await;
        let mut client = HealthClient::new(connect_lazy(&running.address).unwrap());
        let mut statuses = client.watch(check("")).await.unwrap().into_inner();
        assert_eq!(
            statuses.message().await.unwrap().unwrap().status(),
            Answer::Serving
        );
        running.drain.cancel();
        assert_eq!(
            statuses.message().await.unwrap().unwrap().status(),
            Answer::NotServing
        );
        drop((statuses, client));
        running.server.await.unwrap().unwrap();
        let mut late = HealthClient::new(connect_lazy(&running.address).unwrap());
        assert!(late.check(check("")).await.is_err());
    }

    #[tokio::test]
    async fn a_stream_that_never_ends_is_cut_after_the_grace_period() {
        let running = start(Duration::from_millis(50)).await;
        let mut client = HealthClient::new(connect_lazy(&running.address).unwrap());
        let mut statuses = client.watch(check("")).await.unwrap().into_inner();
        running.drain.cancel();
        let ended = tokio::time::timeout(TIMEOUT, running.server).await;
        ended
            .expect("the server ends although a stream is open")
            .unwrap()
            .unwrap();
        while let Ok(Some(_)) = statuses.message().await {}
    }

    #[tokio::test]
    async fn an_unknown_path_does_not_become_a_label() {
        let running = start(TIMEOUT).await;
        let channel = connect_lazy(&running.address).unwrap();
        let mut client =
            tonic_reflection::pb::v1alpha::server_reflection_client::ServerReflectionClient::new(
                channel,
            );
        let questions = tokio_stream::iter([]);
        let refused = client
            .server_reflection_info(request(questions, TIMEOUT))
            .await
            .unwrap_err();
        assert_eq!(refused.code(), tonic::Code::Unimplemented);
        let text = running.metrics.encode();
        assert!(
            text.contains("method=\"unknown\",code=\"12\"") && !text.contains("v1alpha"),
            "{text}"
        );
    }
}
