//! One run of a service check: a request to the task, and the verdict on its answer.
//!
//! Source: Nomad's public behaviour for http and tcp; the gRPC health checking protocol for grpc.

use std::collections::BTreeMap;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use lifecycle::{CheckOutcome, CheckResult};
use model::service::{CheckType, ServiceCheck};
use task_drivers::TaskEnv;
use tls::{Clients, Connector, Credentials, Expect, Files, ServerName, Verify};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::services::Target;

/// The kept part of an answer. Source: Nomad's limit.
pub(crate) const MAX_OUTPUT_BYTES: usize = 3 * 1_024;

/// A check with the values of its node.
#[derive(Debug)]
pub(crate) struct Probe {
    check_type: CheckType,
    /// `None`: the allocation has no such port.
    target: Option<Target>,
    is_https: bool,
    server_name: String,
    skip_verify: bool,
    method: String,
    path: String,
    header: BTreeMap<String, Vec<String>>,
    body: String,
    grpc_service: String,
    grpc_uses_tls: bool,
    /// Loaded by the first run over TLS that can: reading the system's certificates takes milliseconds.
    credentials: OnceCell<Credentials>,
}

impl Probe {
    /// Replaces the references of a check.
    pub(crate) fn new(check: &ServiceCheck, target: Option<Target>, env: &TaskEnv<'_>) -> Self {
        let header = check.header.iter().map(|(name, values)| {
            let values = values.iter().map(|value| env.interpolate(value));
            (name.clone(), values.collect())
        });
        Self {
            check_type: check.check_type,
            target,
            is_https: check.protocol == "https",
            server_name: env.interpolate(&check.tls_server_name),
            skip_verify: check.tls_skip_verify,
            method: check.method.clone(),
            path: env.interpolate(&check.path),
            header: header.collect(),
            body: env.interpolate(&check.body),
            grpc_service: env.interpolate(&check.grpc_service),
            grpc_uses_tls: check.grpc_use_tls,
            credentials: OnceCell::new(),
        }
    }

    /// Runs the check once. The caller bounds the time.
    pub(crate) async fn run(&self) -> CheckResult {
        let Some(target) = &self.target else {
            return failure("the allocation has no such port");
        };
        let answer = match self.check_type {
            CheckType::Tcp => self.connect(target).await.map(|_| success("connected")),
            CheckType::Http => self.http(target).await,
            CheckType::Grpc => self.grpc(target).await,
            CheckType::Script => Err("scripts have no address".to_owned()),
        };
        answer.unwrap_or_else(|error| failure(&error))
    }

    async fn connect(&self, target: &Target) -> Result<TcpStream, String> {
        let address = (target.host.as_str(), target.port);
        let stream = TcpStream::connect(address).await;
        stream.map_err(|error| format!("cannot connect to {}: {error}", target.authority()))
    }

    async fn http(&self, target: &Target) -> Result<CheckResult, String> {
        let stream = self.connect(target).await?;
        if !self.is_https {
            return self.request(target, stream).await;
        }
        let connector = self.connector().await?.for_http1();
        let stream = connector.handshake(stream, &target.host).await;
        let stream = stream.map_err(|error| format!("TLS with {}: {error}", target.authority()))?;
        self.request(target, stream).await
    }

    async fn connector(&self) -> Result<Connector, String> {
        let credentials = self.credentials.get_or_try_init(|| load(self.skip_verify));
        let credentials = credentials.await?.clone();
        let expect = match self.server_name.as_str() {
            "" => Expect::Host,
            name => Expect::Name(
                ServerName::try_from(name.to_owned())
                    .map_err(|error| format!("tls_server_name {name:?}: {error}"))?,
            ),
        };
        Ok(Connector::new(credentials, expect))
    }

    async fn request<S>(&self, target: &Target, stream: S) -> Result<CheckResult, String>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| format!("HTTP with {}: {error}", target.authority()))?;
        let exchange = async {
            let response = sender.send_request(self.message(target)?).await;
            let response = response.map_err(|error| format!("no answer: {error}"))?;
            let code = response.status().as_u16();
            let mut output = Vec::new();
            let mut body = response.into_body();
            while output.len() < MAX_OUTPUT_BYTES
                && let Some(frame) = body.frame().await
            {
                let frame = frame.map_err(|error| format!("the answer broke off: {error}"))?;
                output.extend_from_slice(frame.data_ref().map_or(&[][..], |data| &data[..]));
            }
            output.truncate(MAX_OUTPUT_BYTES);
            Ok(CheckResult {
                // Source: Nomad's public behaviour.
                outcome: if (200..400).contains(&code) {
                    CheckOutcome::Passed
                } else {
                    CheckOutcome::Failed
                },
                code,
                output: String::from_utf8_lossy(&output).into_owned(),
            })
        };
        connections::exchange(connection, exchange).await
    }

    fn message(&self, target: &Target) -> Result<Request<Full<Bytes>>, String> {
        let method = match self.method.as_str() {
            "" => Method::GET,
            name => Method::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?,
        };
        let slash = if self.path.starts_with('/') { "" } else { "/" };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{slash}{}", self.path))
            .header(hyper::header::USER_AGENT, "Kafila");
        let is_set = |name: &str| self.header.keys().any(|it| it.eq_ignore_ascii_case(name));
        if !is_set("host") {
            request = request.header(hyper::header::HOST, target.authority());
        }
        for (name, values) in &self.header {
            for value in values {
                request = request.header(name, value);
            }
        }
        let body = Full::new(Bytes::from(self.body.clone()));
        request
            .body(body)
            .map_err(|error| format!("the request is invalid: {error}"))
    }

    async fn grpc(&self, target: &Target) -> Result<CheckResult, String> {
        let scheme = if self.grpc_uses_tls { "https" } else { "http" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{}", target.authority()));
        let endpoint = endpoint.map_err(|error| error.to_string())?;
        let channel = if self.grpc_uses_tls {
            let connecting = endpoint.connect_with_connector(self.connector().await?);
            let connected = connecting.await.map_err(|error| {
                let reason = service_kit::run::chain(&error);
                format!("TLS with {}: {reason}", target.authority())
            });
            connected?
        } else {
            connections::connect_lazy(&endpoint)
        };
        let mut client = HealthClient::new(channel);
        let request = HealthCheckRequest {
            service: self.grpc_service.clone(),
        };
        match client.check(request).await {
            Ok(response) => {
                let status = response.into_inner().status();
                let text = status.as_str_name();
                Ok(match status {
                    ServingStatus::Serving => success(text),
                    _ => failure(text),
                })
            }
            Err(status) => Err(format!("{}: {}", status.code(), status.message())),
        }
    }
}

/// Loads the system's certificates.
async fn load(skip_verify: bool) -> Result<Credentials, String> {
    let verify = if skip_verify {
        Verify::Nothing
    } else {
        Verify::Servers
    };
    let loading = move || {
        let (files, clients) = (Files::default(), Clients::Certified);
        Credentials::load_with("checks", files, verify, clients, |_| Ok(()))
    };
    match blocking::spawn(loading).await {
        Ok(loaded) => loaded.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

fn success(output: &str) -> CheckResult {
    CheckResult {
        outcome: CheckOutcome::Passed,
        code: 0,
        output: output.to_owned(),
    }
}

fn failure(output: &str) -> CheckResult {
    CheckResult {
        outcome: CheckOutcome::Failed,
        ..success(output)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU16, Ordering};

    use model::service::ServiceCheck;
    use rustls::ServerConfig;
    use rustls::crypto::ring;
    use rustls_pki_types::PrivateKeyDer;
    use task_drivers::NodeFacts;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use tonic::transport::Server;

    use super::*;

    /// A server that answers every request with `code` and `body`; returns its port and the newest request.
    async fn serve(
        code: Arc<AtomicU16>,
        body: &'static str,
    ) -> (u16, Arc<std::sync::Mutex<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(std::sync::Mutex::new(String::new()));
        let newest = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 4_096];
                let length = stream.read(&mut request).await.unwrap_or(0);
                let text = String::from_utf8_lossy(&request[..length]).into_owned();
                *newest.lock().unwrap() = text;
                let (code, length) = (code.load(Ordering::SeqCst), body.len());
                let answer = format!("HTTP/1.1 {code} X\r\nContent-Length: {length}\r\n\r\n{body}");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        (port, seen)
    }

    fn probe(check: &ServiceCheck, port: u16) -> Probe {
        let job = test_kit::builders::service("web", 1);
        let node = NodeFacts::default();
        let alloc = test_kit::builders::allocation(1, &job, model::NodeId::from_random(1));
        let env = TaskEnv::of_group(&job, &job.task_groups[0], &alloc, &node);
        let host = "127.0.0.1".to_owned();
        Probe::new(check, Some(Target { host, port }), &env)
    }

    fn has_passed(result: &CheckResult) -> bool {
        result.outcome == CheckOutcome::Passed
    }

    fn of(check_type: CheckType) -> ServiceCheck {
        ServiceCheck {
            check_type,
            ..ServiceCheck::default()
        }
    }

    #[tokio::test]
    async fn an_http_check_passes_with_200_to_399_and_keeps_3_kib_of_the_answer() {
        const LONG: &str = include_str!("probe.rs");
        let code = Arc::new(AtomicU16::new(200));
        let (port, _) = serve(Arc::clone(&code), LONG).await;
        let check = ServiceCheck {
            path: "/health".to_owned(),
            ..of(CheckType::Http)
        };
        for (status, passed) in [(200, true), (399, true), (400, false), (503, false)] {
            code.store(status, Ordering::SeqCst);
            let result = probe(&check, port).run().await;
            assert_eq!(
                (has_passed(&result), result.code),
                (passed, status),
                "{}",
                result.output
            );
            assert_eq!(result.output.len(), MAX_OUTPUT_BYTES);
            assert!(LONG.starts_with(&result.output));
        }
    }

    #[tokio::test]
    async fn an_http_check_sends_what_the_job_says() {
        let (port, seen) = serve(Arc::new(AtomicU16::new(204)), "").await;
        let check = ServiceCheck {
            path: "health?of=${NOMAD_JOB_ID}".to_owned(),
            method: "POST".to_owned(),
            body: "of ${NOMAD_JOB_ID}".to_owned(),
            header: [("X-A".to_owned(), vec!["1".to_owned(), "2".to_owned()])].into(),
            ..of(CheckType::Http)
        };
        assert!(has_passed(&probe(&check, port).run().await));
        let request = seen.lock().unwrap().to_lowercase();
        for part in [
            "post /health?of=web http/1.1\r\n",
            &format!("host: 127.0.0.1:{port}\r\n"),
            "user-agent: kafila\r\n",
            "x-a: 1\r\nx-a: 2\r\n",
            "content-length: 6\r\n",
        ] {
            assert!(request.contains(part), "{part:?} in {request}");
        }
    }

    #[tokio::test]
    async fn a_tcp_check_passes_if_the_port_is_open() {
        let (port, _) = serve(Arc::new(AtomicU16::new(200)), "").await;
        assert!(has_passed(&probe(&of(CheckType::Tcp), port).run().await));
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = closed.local_addr().unwrap().port();
        drop(closed);
        for check_type in [CheckType::Tcp, CheckType::Http, CheckType::Grpc] {
            let result = probe(&of(check_type), port).run().await;
            assert!(
                !has_passed(&result) && !result.output.is_empty(),
                "{result:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_grpc_check_asks_the_health_service() {
        let (reporter, health) = tonic_health::server::health_reporter();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
        tokio::spawn(Server::builder().add_service(health).serve(address));
        let check = |service: &str| ServiceCheck {
            grpc_service: service.to_owned(),
            ..of(CheckType::Grpc)
        };
        let until = async || {
            loop {
                let result = probe(&check(""), port).run().await;
                if has_passed(&result) {
                    return result;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        let limit = std::time::Duration::from_secs(10);
        let result = tokio::time::timeout(limit, until()).await.unwrap();
        assert_eq!(result.output, "SERVING");
        let unknown = probe(&check("web"), port).run().await;
        assert!(!has_passed(&unknown), "{unknown:?}");
        reporter
            .set_service_status("web", tonic_health::ServingStatus::NotServing)
            .await;
        let result = probe(&check("web"), port).run().await;
        assert_eq!(
            (has_passed(&result), result.output.as_str()),
            (false, "NOT_SERVING")
        );
    }

    /// Accepts TLS with a certificate of its own, which no authority has issued.
    fn acceptor() -> TlsAcceptor {
        let issued = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(issued.signing_key.serialize_der()).unwrap();
        let chain = vec![issued.cert.der().clone()];
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }

    /// A server with TLS that answers every request; returns its port.
    async fn serve_tls() -> u16 {
        let acceptor = acceptor();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A client that refuses the certificate ends the handshake.
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    continue;
                };
                let mut request = vec![0; 4_096];
                let _ = stream.read(&mut request).await;
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nup";
                let _ = stream.write_all(answer).await;
                let _ = stream.flush().await;
            }
        });
        port
    }

    #[tokio::test]
    async fn a_grpc_check_with_tls_verifies_the_certificate_unless_the_job_says_otherwise() {
        let (_, health) = tonic_health::server::health_reporter();
        let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let plain_port = plain.local_addr().unwrap().port();
        drop(plain);
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], plain_port));
        tokio::spawn(Server::builder().add_service(health).serve(address));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let acceptor = acceptor();
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let mut stream = acceptor.accept(stream).await?;
                    let mut server = TcpStream::connect(("127.0.0.1", plain_port)).await?;
                    tokio::io::copy_bidirectional(&mut stream, &mut server).await
                });
            }
        });
        let grpc = |skip_verify| ServiceCheck {
            grpc_use_tls: true,
            tls_skip_verify: skip_verify,
            ..of(CheckType::Grpc)
        };
        let until = async || {
            loop {
                let result = probe(&grpc(true), port).run().await;
                if has_passed(&result) {
                    return result;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        let limit = std::time::Duration::from_secs(10);
        let result = tokio::time::timeout(limit, until()).await.unwrap();
        assert_eq!(result.output, "SERVING");
        let refused = probe(&grpc(false), port).run().await;
        assert!(!has_passed(&refused), "{refused:?}");
        assert!(refused.output.contains("certificate"), "{refused:?}");
        // A server without TLS.
        let refused = probe(&grpc(true), plain_port).run().await;
        assert!(!has_passed(&refused), "{refused:?}");
    }

    #[tokio::test]
    async fn an_https_check_verifies_the_certificate_unless_the_job_says_otherwise() {
        let port = serve_tls().await;
        let https = |skip_verify| ServiceCheck {
            path: "/".to_owned(),
            protocol: "https".to_owned(),
            tls_skip_verify: skip_verify,
            ..of(CheckType::Http)
        };
        let refused = probe(&https(false), port).run().await;
        assert!(!has_passed(&refused), "{refused:?}");
        assert!(refused.output.contains("certificate"), "{refused:?}");
        let accepted = probe(&https(true), port).run().await;
        assert_eq!(
            (has_passed(&accepted), accepted.code),
            (true, 200),
            "{accepted:?}"
        );
        assert_eq!(accepted.output, "up");
        // A server without TLS.
        let (plain, _) = serve(Arc::new(AtomicU16::new(200)), "").await;
        assert!(!has_passed(&probe(&https(true), plain).run().await));
    }
}
