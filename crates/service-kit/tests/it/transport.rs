//! Mutual TLS between two processes: identities, refusals, slow clients.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::extract::Request;
use identity::{Identity, Peer, Role};
use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair as RcgenKey, SanType,
};
use service_kit::channel::channel_over;
use service_kit::server::{ServeOptions, bind, serve};
use service_kit::{
    CancellationToken, ConfigError, Incoming, ListenConfig, Metrics, TlsConfig, TracedChannel,
    Transport, connect_lazy, request,
};
use tempfile::TempDir;
use tls::Problem;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tonic::service::Routes;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::{Service as _, ServiceExt as _};

const TIMEOUT: Duration = Duration::from_secs(30);

/// An authority with a directory for its files.
struct Authority {
    issuer: CertifiedIssuer<'static, RcgenKey>,
    directory: TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = RcgenKey::generate().unwrap();
        let it = Self {
            issuer: CertifiedIssuer::self_signed(params, key).unwrap(),
            directory: tempfile::tempdir().unwrap(),
        };
        std::fs::write(it.path("ca.pem"), it.issuer.pem()).unwrap();
        it
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the settings of a process with a new certificate.
    fn settings(&self, role: Role, name: &str) -> TlsConfig {
        self.issue(Self::params(role, name), name)
    }

    fn params(role: Role, name: &str) -> CertificateParams {
        let identity = Identity::new(role, "global", name).unwrap();
        let own_name = identity.own_dns_name().unwrap();
        let mut params = CertificateParams::new(vec![identity.dns_name(), own_name]).unwrap();
        let uri = Ia5String::try_from(identity.uri()).unwrap();
        params.subject_alt_names.push(SanType::URI(uri));
        params
    }

    fn issue(&self, params: CertificateParams, name: &str) -> TlsConfig {
        let key = RcgenKey::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let (cert_file, key_file) = (self.path(&format!("{name}.pem")), self.path(name));
        std::fs::write(&cert_file, certificate.pem()).unwrap();
        std::fs::write(&key_file, key.serialize_pem()).unwrap();
        TlsConfig {
            ca_file: Some(self.path("ca.pem")),
            cert_file: Some(cert_file),
            key_file: Some(key_file),
            ..TlsConfig::default()
        }
    }

    fn transport(&self, role: Role, name: &str) -> Transport {
        open(&self.settings(role, name), role).unwrap()
    }
}

/// Returns the transport of a process on loopback addresses.
fn open(config: &TlsConfig, role: Role) -> Result<Transport, ConfigError> {
    Transport::open(config, &ListenConfig::default(), role)
}

/// A method that workers may call.
const ACK: &str = "/kafila.internal.v1.EvalBroker/Ack";

/// Returns the caller of a request, in a header.
async fn caller_identity(request: Request) -> impl axum::response::IntoResponse {
    let peer = match request.extensions().get::<Peer>() {
        Some(Peer::Certified(identity)) => identity.to_string(),
        other => format!("{other:?}"),
    };
    [("identity", peer)]
}

/// Starts a gateway; returns its address as others dial it.
async fn gateway(transport: Transport, metrics: Metrics) -> (SocketAddr, CancellationToken) {
    let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    let drain = CancellationToken::new();
    let options = ServeOptions {
        service: "gateway",
        rpc_services: Vec::new(),
        descriptors: tonic_health::pb::FILE_DESCRIPTOR_SET,
        metrics: None,
        shutdown_grace_period: Duration::from_millis(100),
    };
    let routes = Routes::from(axum::Router::new().route(ACK, axum::routing::any(caller_identity)));
    let incoming = Incoming::new(listener, transport.clone());
    tokio::spawn(serve(incoming, routes, options, drain.clone()));
    tokio::spawn(transport.keep_fresh(None, metrics, drain.clone()));
    (address, drain)
}

async fn ask_identity(mut channel: TracedChannel, address: &str) -> String {
    let request = http::Request::post(format!("{address}{ACK}"))
        .header("content-type", "application/grpc")
        .body(tonic::body::Body::empty())
        .unwrap();
    let response = channel.ready().await.unwrap().call(request).await.unwrap();
    response.headers()["identity"].to_str().unwrap().to_owned()
}

/// Returns the gRPC code of a refused call.
async fn refusal(mut channel: TracedChannel, url: String) -> tonic::Code {
    let request = http::Request::post(url)
        .header("content-type", "application/grpc")
        .body(tonic::body::Body::empty())
        .unwrap();
    let response = channel.ready().await.unwrap().call(request).await.unwrap();
    tonic::Code::from_bytes(response.headers()["grpc-status"].as_bytes())
}

async fn check(channel: TracedChannel) -> Result<(), tonic::Status> {
    let message = HealthCheckRequest::default();
    let answer = HealthClient::new(channel)
        .check(request(message, TIMEOUT))
        .await;
    answer.map(|_| ())
}

async fn problem(channel: TracedChannel) -> Problem {
    let status = check(channel).await.unwrap_err();
    Problem::of(&status).unwrap_or_else(|| panic!("{status:?}"))
}

#[tokio::test]
async fn a_request_has_the_identity_of_its_client() {
    let authority = Authority::new();
    let server = authority.transport(Role::Gateway, "g1");
    let (address, drain) = gateway(server, Metrics::new("gateway")).await;
    let worker = authority.transport(Role::Worker, "w7");
    // An address without its scheme of TLS gets TLS all the same.
    for scheme in ["https", "http"] {
        let dialed = format!("{scheme}://{address}");
        let channel = worker.connect_lazy(&dialed, Role::Gateway).unwrap();
        let identity = ask_identity(channel, &dialed).await;
        assert_eq!(identity, "worker w7 of region global");
    }
    drain.cancel();
}

#[tokio::test]
async fn a_certificate_reaches_the_methods_of_its_role_only() {
    let authority = Authority::new();
    let server = authority.transport(Role::Gateway, "g1");
    let (address, drain) = gateway(server, Metrics::new("gateway")).await;
    let address = format!("https://{address}");
    for (role, method) in [
        (Role::Node, ACK),
        (Role::Node, "/kafila.internal.v1.PlanApplier/Submit"),
        (Role::Worker, "/kafila.v1.Jobs/Register"),
    ] {
        let caller = authority.transport(role, "c1");
        let channel = caller.connect_lazy(&address, Role::Gateway).unwrap();
        let code = refusal(channel, format!("{address}{method}")).await;
        assert_eq!(code, tonic::Code::PermissionDenied, "{role} {method}");
    }
    drain.cancel();
}

#[tokio::test]
async fn without_tls_a_request_has_the_peer_of_development() {
    let (address, drain) = gateway(Transport::PLAINTEXT, Metrics::new("gateway")).await;
    let dialed = format!("http://{address}");
    let channel = Transport::PLAINTEXT
        .connect_lazy(&dialed, Role::Gateway)
        .unwrap();
    assert_eq!(ask_identity(channel, &dialed).await, "Some(Development)");
    let secured = Transport::PLAINTEXT.connect_lazy("https://10.0.0.1:1", Role::Gateway);
    assert!(secured.unwrap_err().to_string().contains("needs TLS"));
    let worker = Authority::new().transport(Role::Worker, "w7");
    let channel = worker.connect_lazy(&dialed, Role::Gateway).unwrap();
    assert_eq!(problem(channel).await, Problem::NotTls);
    drain.cancel();
}

#[tokio::test]
async fn refusals_have_their_reason() {
    let authority = Authority::new();
    let metrics = Metrics::new("gateway");
    let server = authority.transport(Role::Gateway, "g1");
    let (address, drain) = gateway(server, metrics.clone()).await;
    let address = format!("https://{address}");

    let worker = authority.transport(Role::Worker, "w7");
    let wrong_role = worker.connect_lazy(&address, Role::Broker).unwrap();
    let wrong_role = problem(wrong_role).await;
    assert!(matches!(wrong_role, Problem::WrongName { .. }));

    // Of the right role, but not the process that was dialed.
    let other = worker.dial_to(&address, Role::Gateway, "g2").await;
    let other = Problem::of(&other.err().unwrap()).unwrap();
    assert!(matches!(other, Problem::WrongName { .. }), "{other:?}");
    let same = worker.dial_to(&address, Role::Gateway, "g1").await.unwrap();
    check(channel_over(same).await.unwrap()).await.unwrap();

    let stranger = Authority::new().transport(Role::Worker, "w7");
    let unknown = stranger.connect_lazy(&address, Role::Gateway).unwrap();
    assert_eq!(problem(unknown).await, Problem::UnknownAuthority);

    let plaintext = connect_lazy(&address.replace("https", "http")).unwrap();
    assert_eq!(problem(plaintext).await, Problem::NeedsTls);

    // Of our authority, but without an identity.
    let params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
    let settings = authority.issue(params, "nameless");
    let error = open(&settings, Role::Worker).unwrap_err();
    assert!(error.to_string().contains("spiffe://"), "{error}");
    drain.cancel();
}

#[tokio::test]
async fn silent_clients_delay_no_other() {
    let authority = Authority::new();
    let server = authority.transport(Role::Gateway, "g1");
    let (address, drain) = gateway(server, Metrics::new("gateway")).await;
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let worker = authority.transport(Role::Worker, "w7");
    let channel = worker
        .connect_lazy(&format!("https://{address}"), Role::Gateway)
        .unwrap();
    let began = Instant::now();
    check(channel).await.unwrap();
    // The timeout of one handshake is 5 s.
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    drain.cancel();
}

#[tokio::test]
async fn settings_that_make_no_transport_are_refused() {
    let authority = Authority::new();
    let complete = authority.settings(Role::Worker, "w7");
    let error = |config: &TlsConfig| {
        let refused = open(config, Role::Gateway);
        refused.unwrap_err().to_string()
    };
    assert!(error(&complete).contains("it is for a worker"));
    let mut partial = complete.clone();
    partial.key_file = None;
    assert!(error(&partial).contains("key_file"));
    let mut both = complete.clone();
    both.insecure = true;
    assert!(error(&both).contains("insecure"));
    assert!(error(&TlsConfig::default()).contains("tls.insecure"));
    assert!(
        !open(&TlsConfig::insecure(), Role::Gateway)
            .unwrap()
            .is_secured()
    );
    let mut elsewhere = complete;
    elsewhere.region = "eu".to_owned();
    let error = open(&elsewhere, Role::Worker).unwrap_err();
    assert!(error.to_string().contains("region"), "{error}");
}

/// Such a process would start and even lead, and no peer could call it.
#[tokio::test]
async fn a_certificate_that_peers_would_refuse_is_refused_by_its_files_and_settings() {
    let authority = Authority::new();
    let good = authority.settings(Role::Broker, "b1");
    open(&good, Role::Broker).unwrap();
    let text = |config: &TlsConfig| open(config, Role::Broker).unwrap_err().to_string();
    let name = |path: &Option<PathBuf>| path.as_ref().unwrap().display().to_string();

    let stranger = Authority::new();
    let foreign = TlsConfig {
        ca_file: Some(stranger.path("ca.pem")),
        ..good.clone()
    };
    let error = text(&foreign);
    for part in [
        "`tls.ca_file`, `tls.cert_file`: ",
        &name(&foreign.ca_file),
        &name(&foreign.cert_file),
        "another authority has issued it",
        "kafila tls cert create",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    // The CA of nodes is unknown to the other services.
    let listen = ListenConfig::default();
    let node_ca = authority.path("ca.pem");
    let refused = Transport::open_with(&foreign, &listen, Role::Broker, Some(&node_ca));
    assert!(refused.unwrap_err().to_string().contains("`tls.ca_file`"));

    let mismatched = TlsConfig {
        key_file: authority.settings(Role::Broker, "b3").key_file,
        ..good.clone()
    };
    let error = text(&mismatched);
    for part in [
        "`tls.cert_file`, `tls.key_file`: ",
        &name(&mismatched.key_file),
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }

    let mut params = Authority::params(Role::Broker, "b4");
    params.not_before = rcgen::date_time_ymd(2019, 1, 1);
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let expired = authority.issue(params, "b4");
    let error = text(&expired);
    for part in ["`tls.cert_file`: ", &name(&expired.cert_file), "2020"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

/// Starts a gateway that accepts nodes without a certificate; its CA of nodes is another authority.
async fn gateway_of_nodes(
    authority: &Authority,
    nodes: &Authority,
    metrics: &Metrics,
) -> (SocketAddr, CancellationToken) {
    let settings = authority.settings(Role::Gateway, "g1");
    let listen = ListenConfig::default();
    let node_ca = nodes.path("ca.pem");
    let server = Transport::open_with(&settings, &listen, Role::Gateway, Some(&node_ca)).unwrap();
    gateway(server, metrics.clone()).await
}

#[tokio::test]
async fn a_caller_without_a_certificate_is_accepted_by_gateways_with_a_ca_of_nodes_only() {
    let (authority, nodes) = (Authority::new(), Authority::new());
    let metrics = Metrics::new("gateway");
    let (address, drain) = gateway_of_nodes(&authority, &nodes, &metrics).await;
    let address = format!("https://{address}");
    let stranger = Transport::without_certificate(&authority.path("ca.pem"), "global").unwrap();
    assert!(stranger.is_secured() && stranger.identity().is_none());
    for method in [ACK, "/kafila.v1.Jobs/List"] {
        let channel = stranger.connect_lazy(&address, Role::Gateway).unwrap();
        let code = refusal(channel, format!("{address}{method}")).await;
        assert_eq!(code, tonic::Code::Unauthenticated, "{method}");
    }
    // A node has its certificate from the CA of nodes, and the gateway's from the other authority.
    let mut node = nodes.settings(Role::Node, "n1");
    node.ca_file = Some(authority.path("ca.pem"));
    let node = open(&node, Role::Node).unwrap();
    let channel = node.connect_lazy(&address, Role::Gateway).unwrap();
    let code = refusal(channel, format!("{address}{ACK}")).await;
    assert_eq!(code, tonic::Code::PermissionDenied);
    drain.cancel();

    let plain = authority.transport(Role::Gateway, "g2");
    let (address, drain) = gateway(plain, Metrics::new("gateway")).await;
    let channel = stranger.connect_lazy(&format!("https://{address}"), Role::Gateway);
    let problem = problem(channel.unwrap()).await;
    assert_eq!(problem, Problem::CertificateRequired);
    drain.cancel();
}

#[tokio::test]
async fn callers_without_a_certificate_take_a_limited_number_of_connections() {
    const LIMIT: usize = 128;
    let (authority, nodes) = (Authority::new(), Authority::new());
    let metrics = Metrics::new("gateway");
    let (address, drain) = gateway_of_nodes(&authority, &nodes, &metrics).await;
    let url = format!("https://{address}");
    let stranger = Transport::without_certificate(&authority.path("ca.pem"), "global").unwrap();
    let call = || async {
        let mut channel = stranger.connect_lazy(&url, Role::Gateway).unwrap();
        let request = http::Request::post(format!("{url}{ACK}"))
            .body(tonic::body::Body::empty())
            .unwrap();
        let answer = channel.ready().await.unwrap().call(request).await;
        (channel, answer.is_ok())
    };
    let mut open = Vec::new();
    for _ in 0..LIMIT {
        let (channel, is_answered) = call().await;
        assert!(is_answered);
        open.push(channel);
    }
    assert!(!call().await.1, "one more is refused");
    // Those with a certificate are not affected.
    let worker = authority.transport(Role::Worker, "w7");
    let channel = worker.connect_lazy(&url, Role::Gateway).unwrap();
    assert_eq!(
        ask_identity(channel, &url).await,
        "worker w7 of region global"
    );
    drop(open);
    let freed = async { while !call().await.1 {} };
    tokio::time::timeout(TIMEOUT, freed).await.unwrap();
    drain.cancel();
}

#[test]
fn a_ca_of_nodes_needs_tls() {
    let settings = TlsConfig::insecure();
    let listen = ListenConfig::default();
    let node_ca = PathBuf::from("node-ca.pem");
    let refused = Transport::open_with(&settings, &listen, Role::Gateway, Some(&node_ca));
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("node_ca_cert_file"), "{error}");
}
