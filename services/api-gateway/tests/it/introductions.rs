//! Nodes that join with a token: over TLS, at gateways with and without a CA of nodes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use api_gateway::Config;
use identity::{Identity, Role};
use pki::{Authority, AuthorityRequest, CertificateRequest, Moment, NodeAuthorityRequest, Serial};
use proto::internal::v1::node_introductions_client::NodeIntroductionsClient;
use proto::internal::v1::node_sessions_client::NodeSessionsClient;
use proto::internal::v1::{
    HeartbeatRequest, IntroduceNodeRequest, IntroduceNodeResponse, RegisterNodeRequest,
    RenewCertificateRequest, ReportAllocationsRequest, WatchAllocationsRequest,
};
use proto::v1;
use proto::v1::nodes_client::NodesClient;
use rcgen::{CertificateParams, Issuer, KeyPair, SanType};
use service_kit::{Clock, IdSource, ListenConfig, TlsConfig, TracedChannel, Transport, request};
use test_kit::builders;
use tonic::{Code, Status};

use crate::support::{Suite, WAIT_LIMIT};

/// An address of a node, which no test dials.
const ADDRESS: &str = "http://10.0.0.9:7201";

/// The files of a cluster: a CA, a CA of nodes, certificates.
struct Cluster {
    directory: tempfile::TempDir,
    ca: Authority,
    ids: IdSource,
}

impl Cluster {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let ids = IdSource::from_os();
        let made = AuthorityRequest {
            common_name: "a CA".to_owned(),
            days: 10,
            is_constrained: false,
            additional_domains: Vec::new(),
        };
        let made = pki::create_authority(&made, moment(&ids)).unwrap();
        let ca = Authority::read(&made.certificate_pem, &made.key_pem).unwrap();
        let nodes = NodeAuthorityRequest {
            common_name: "a CA of nodes".to_owned(),
            days: 10,
            region: "global".to_owned(),
        };
        let nodes = pki::create_node_authority(&nodes, moment(&ids)).unwrap();
        let it = Self { directory, ca, ids };
        it.write("ca.pem", &made.certificate_pem);
        it.write("node-ca.pem", &nodes.certificate_pem);
        it.write("node-ca-key.pem", &nodes.key_pem);
        it
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// Returns the settings of a process with these texts as certificate and key.
    fn tls(&self, name: &str, certificate: &str, key: &str) -> TlsConfig {
        TlsConfig {
            ca_file: Some(self.path("ca.pem")),
            cert_file: Some(self.write(&format!("{name}.pem"), certificate)),
            key_file: Some(self.write(&format!("{name}-key.pem"), key)),
            ..TlsConfig::default()
        }
    }

    fn certified(&self, role: Role) -> TlsConfig {
        let wish = CertificateRequest {
            identity: Identity::new(role, "global", "one").unwrap(),
            days: 5,
            dns_names: Vec::new(),
            addresses: Vec::new(),
        };
        let issued = self.ca.issue(&wish, moment(&self.ids)).unwrap();
        self.tls(role.as_str(), &issued.certificate_pem, &issued.key_pem)
    }

    fn edit(&self, config: &mut Config) {
        config.tls = self.certified(Role::Gateway);
        config.node_ca_cert_file = Some(self.path("node-ca.pem"));
        config.node_ca_key_file = Some(self.path("node-ca-key.pem"));
    }

    async fn start(&self) -> Suite {
        Suite::start_with(1, |config| self.edit(config)).await
    }

    /// Returns a channel of a caller without a certificate.
    fn stranger(&self, suite: &Suite) -> TracedChannel {
        let transport = Transport::without_certificate(&self.path("ca.pem"), "global").unwrap();
        let channel = transport.connect_lazy(suite.address(0), Role::Gateway);
        channel.unwrap()
    }

    fn operator(&self, suite: &Suite) -> NodesClient<TracedChannel> {
        NodesClient::new(channel(
            &self.certified(Role::Operator),
            suite,
            Role::Operator,
        ))
    }

    /// Creates a token of this wish; returns its text.
    async fn token(&self, suite: &Suite, wish: v1::CreateIntroductionTokenRequest) -> String {
        let created = self.operator(suite).create_introduction_token(wish).await;
        created.unwrap().into_inner().token
    }

    /// Introduces the node with this key (PEM).
    async fn introduce(
        &self,
        suite: &Suite,
        token: &str,
        key: &str,
    ) -> Result<IntroduceNodeResponse, Status> {
        let message = IntroduceNodeRequest {
            token: token.to_owned(),
            signing_request: pki::sign_request(key).unwrap(),
            ..IntroduceNodeRequest::default()
        };
        let mut client = NodeIntroductionsClient::new(self.stranger(suite));
        let answer = client.introduce(request(message, WAIT_LIMIT)).await?;
        Ok(answer.into_inner())
    }
}

fn moment(ids: &IdSource) -> Moment {
    Moment {
        now: i64::try_from(Clock::real().now() / 1_000_000_000).unwrap(),
        serial: Serial(ids.next_u128()),
    }
}

fn channel(tls: &TlsConfig, suite: &Suite, role: Role) -> TracedChannel {
    let transport = Transport::open(tls, &ListenConfig::default(), role).unwrap();
    transport
        .connect_lazy(suite.address(0), Role::Gateway)
        .unwrap()
}

fn once() -> v1::CreateIntroductionTokenRequest {
    v1::CreateIntroductionTokenRequest::default()
}

async fn register(channel: TracedChannel, node: &model::Node) -> Result<(), Status> {
    let message = RegisterNodeRequest {
        node: Some(node.into()),
        secret: "a secret".to_owned(),
    };
    let mut client = NodeSessionsClient::new(channel);
    client
        .register(request(message, WAIT_LIMIT))
        .await
        .map(drop)
}

#[tokio::test]
async fn a_node_joins_with_a_token_and_registers_with_its_certificate() {
    let cluster = Cluster::new();
    let suite = cluster.start().await;
    let token = cluster.token(&suite, once()).await;
    let key = pki::create_key().unwrap();
    let joined = cluster.introduce(&suite, &token, &key).await.unwrap();
    let tls = cluster.tls("n1", &joined.certificate, &key);
    let mut node = builders::node(1);
    node.id = joined.node_id.parse().unwrap();
    node.address = ADDRESS.to_owned();
    register(channel(&tls, &suite, Role::Node), &node)
        .await
        .unwrap();
    let mut other = builders::node(2);
    other.address = ADDRESS.to_owned();
    let refused = register(channel(&tls, &suite, Role::Node), &other).await;
    assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
    // The answer was lost: the same key gets the same id again.
    let again = cluster.introduce(&suite, &token, &key).await.unwrap();
    assert_eq!(again.node_id, joined.node_id);
}

#[tokio::test]
async fn a_used_a_stolen_an_expired_and_an_unknown_token_are_refused() {
    let cluster = Cluster::new();
    let suite = cluster.start().await;
    let token = cluster.token(&suite, once()).await;
    let refusal = async |token: &str| {
        let key = pki::create_key().unwrap();
        let refused = cluster.introduce(&suite, token, &key).await.unwrap_err();
        (refused.code(), refused.message().to_owned())
    };
    let key = pki::create_key().unwrap();
    cluster.introduce(&suite, &token, &key).await.unwrap();
    let (code, message) = refusal(&token).await;
    assert_eq!(code, Code::PermissionDenied);
    assert!(message.contains("used up"), "{message}");

    let ttl = proto::duration_to_wire(Duration::from_secs(1));
    let short = v1::CreateIntroductionTokenRequest {
        ttl: Some(ttl),
        ..once()
    };
    let short = cluster.token(&suite, short).await;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let (code, message) = refusal(&short).await;
    assert_eq!(code, Code::PermissionDenied);
    assert!(message.contains("has expired"), "{message}");

    let mut wrong = token.clone();
    wrong.pop();
    wrong.push(if token.ends_with('0') { '1' } else { '0' });
    let (code, message) = refusal(&wrong).await;
    assert_eq!(code, Code::PermissionDenied);
    assert!(message.contains("unknown"), "{message}");
    let (code, message) = refusal("hunter2").await;
    assert_eq!(code, Code::InvalidArgument);
    assert!(message.contains("token"), "{message}");
}

#[tokio::test]
async fn the_store_has_no_secret_of_a_token() {
    let cluster = Cluster::new();
    let suite = cluster.start().await;
    let token = cluster.token(&suite, once()).await;
    let (id, secret) = admission::nodes::introduction::read_token(&token).unwrap();
    let stored = suite.store.get(&state::Key::IntroductionToken(id)).await;
    let stored = format!("{:?}", stored.unwrap().unwrap());
    assert!(stored.contains("secret_sha256") && !stored.contains(secret));
    let list = v1::ListIntroductionTokensRequest::default();
    let listed = cluster
        .operator(&suite)
        .list_introduction_tokens(list)
        .await;
    let listed = listed.unwrap().into_inner().introduction_tokens;
    assert_eq!(listed[0].id, id.to_string());
    let delete = v1::DeleteIntroductionTokenRequest {
        token_id: id.to_string()[..8].to_owned(),
    };
    let deleted = cluster
        .operator(&suite)
        .delete_introduction_token(delete)
        .await;
    assert_eq!(deleted.unwrap().into_inner().token_id, id.to_string());
    let key = pki::create_key().unwrap();
    let refused = cluster.introduce(&suite, &token, &key).await.unwrap_err();
    assert!(refused.message().contains("deleted"), "{refused}");
}

#[tokio::test]
async fn without_a_certificate_nothing_else_can_be_called() {
    let cluster = Cluster::new();
    let suite = cluster.start().await;
    for method in authorization::METHODS {
        if method.access == authorization::Access::Anyone {
            continue;
        }
        let refused = call(cluster.stranger(&suite), suite.address(0), method.name).await;
        assert_eq!(refused, Code::Unauthenticated, "{}", method.name);
    }
}

/// Calls a method with an empty message; returns the code of its answer.
async fn call(mut channel: TracedChannel, address: &str, method: &str) -> Code {
    use tower::{Service as _, ServiceExt as _};
    let empty = http::Request::post(format!("{address}/{method}"))
        .header("content-type", "application/grpc")
        .body(tonic::body::Body::empty())
        .unwrap();
    let answer = channel.ready().await.unwrap().call(empty).await.unwrap();
    Code::from_bytes(answer.headers()["grpc-status"].as_bytes())
}

#[tokio::test]
async fn with_the_key_of_the_ca_of_nodes_no_operator_can_be_made() {
    let cluster = Cluster::new();
    let suite = cluster.start().await;
    let read = |name: &str| std::fs::read_to_string(cluster.path(name)).unwrap();
    let stolen = KeyPair::from_pem(&read("node-ca-key.pem")).unwrap();
    let issuer = Issuer::from_ca_cert_pem(&read("node-ca.pem"), stolen).unwrap();
    let forge = |role: Role, dns_name: &str| {
        let identity = Identity::new(role, "global", "0190c8a0-0000-4000-8000-000000000001");
        let uri = identity.unwrap().uri();
        let mut params = CertificateParams::new(vec![dns_name.to_owned()]).unwrap();
        let uri = SanType::URI(uri.as_str().try_into().unwrap());
        params.subject_alt_names.push(uri);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        files(&cluster, role, &certificate.pem(), &key.serialize_pem())
    };
    let list = async |files: tls::Files| {
        let credentials = tls::Credentials::load("services", files).unwrap();
        let name = tls::ServerName::try_from("gateway.global.kafila").unwrap();
        let connector = tls::Connector::new(credentials, tls::Expect::Name(name));
        let channel = service_kit::channel::connect_lazy_with(suite.address(0), connector).unwrap();
        let mut client = NodesClient::new(channel);
        let empty = v1::ListNodesRequest::default();
        client.list(request(empty, WAIT_LIMIT)).await.map(drop)
    };
    // A certificate of a node is accepted, and has its rights only.
    let node = list(forge(Role::Node, "node.global.kafila")).await;
    assert_eq!(node.unwrap_err().code(), Code::PermissionDenied);
    // The name constraints refuse the name of the role, and without it there is no identity.
    for dns_name in [
        "operator.global.kafila",
        "one.operator.global.kafila",
        "node.global.kafila",
        "example.com",
    ] {
        let refused = list(forge(Role::Operator, dns_name)).await.unwrap_err();
        assert!(
            !matches!(
                refused.code(),
                Code::PermissionDenied | Code::Unauthenticated
            ),
            "{dns_name}: the handshake fails, and no request arrives: {refused:?}"
        );
    }
}

fn files(cluster: &Cluster, role: Role, certificate: &str, key: &str) -> tls::Files {
    let config = cluster.tls(&format!("forged-{role}"), certificate, key);
    tls::Files {
        ca: config.ca_file,
        own: Some(tls::KeyPair {
            cert: config.cert_file.unwrap(),
            key: config.key_file.unwrap(),
        }),
        ..tls::Files::default()
    }
}

#[tokio::test]
async fn a_node_renews_its_certificate_with_its_key() {
    let cluster = Cluster::new();
    let suite = cluster.start().await;
    let token = cluster.token(&suite, once()).await;
    let key = pki::create_key().unwrap();
    let joined = cluster.introduce(&suite, &token, &key).await.unwrap();
    let tls = cluster.tls("n1", &joined.certificate, &key);
    let renew = async |key: &str| {
        let mut client = NodeIntroductionsClient::new(channel(&tls, &suite, Role::Node));
        let message = RenewCertificateRequest {
            signing_request: pki::sign_request(key).unwrap(),
        };
        let answer = client.renew(request(message, WAIT_LIMIT)).await?;
        Ok::<_, Status>(answer.into_inner().certificate)
    };
    let renewed = renew(&key).await.unwrap();
    assert_ne!(renewed, joined.certificate);
    let identity = pki::Description::read(&renewed).unwrap().identity.unwrap();
    assert_eq!(identity.name(), joined.node_id);
    let refused = renew(&pki::create_key().unwrap()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("keeps its key"), "{refused}");
    // One with a certificate of the CA was not introduced.
    let by_hand = CertificateRequest {
        identity: Identity::new(Role::Node, "global", &builders::node(7).id.to_string()).unwrap(),
        days: 5,
        dns_names: Vec::new(),
        addresses: Vec::new(),
    };
    let by_hand = cluster.ca.issue(&by_hand, moment(&cluster.ids)).unwrap();
    let tls = cluster.tls("n7", &by_hand.certificate_pem, &by_hand.key_pem);
    let mut client = NodeIntroductionsClient::new(channel(&tls, &suite, Role::Node));
    let message = RenewCertificateRequest {
        signing_request: pki::sign_request(&by_hand.key_pem).unwrap(),
    };
    let refused = client
        .renew(request(message, WAIT_LIMIT))
        .await
        .unwrap_err();
    assert!(refused.message().contains("not introduced"), "{refused}");
}

#[tokio::test]
async fn a_revoked_node_loses_its_stream_its_calls_and_its_certificates_at_every_gateway() {
    let cluster = Cluster::new();
    let suite = Suite::start_with(2, |config| cluster.edit(config)).await;
    let token = cluster.token(&suite, once()).await;
    let key = pki::create_key().unwrap();
    let joined = cluster.introduce(&suite, &token, &key).await.unwrap();
    let tls = cluster.tls("n1", &joined.certificate, &key);
    let mut node = builders::node(1);
    node.id = joined.node_id.parse().unwrap();
    node.address = ADDRESS.to_owned();
    let own = || channel(&tls, &suite, Role::Node);
    register(own(), &node).await.unwrap();
    let watch = WatchAllocationsRequest {
        node_id: joined.node_id.clone(),
        secret: "a secret".to_owned(),
        seen_revision: 0,
    };
    let mut client = NodeSessionsClient::new(own());
    let updates = client.watch_allocations(request(watch, WAIT_LIMIT)).await;
    let mut updates = updates.unwrap().into_inner();
    updates.message().await.unwrap().expect("the first update");

    // Through the other gateway, by a prefix.
    let transport = Transport::open(
        &cluster.certified(Role::Operator),
        &ListenConfig::default(),
        Role::Operator,
    );
    let second = transport
        .unwrap()
        .connect_lazy(suite.address(1), Role::Gateway)
        .unwrap();
    let mut operator = NodesClient::new(second);
    let wish = v1::RevokeNodeRequest {
        node_id: joined.node_id[..12].to_owned(),
        reason: "sold".to_owned(),
    };
    let revoked = operator.revoke(wish.clone()).await.unwrap().into_inner();
    assert_eq!(
        (&*revoked.node_id, &*revoked.node_name),
        (&*joined.node_id, &*node.name)
    );
    assert_eq!(revoked.usable_token_id, "", "it is used up");
    let again = operator.revoke(wish).await.unwrap().into_inner();
    assert_eq!(again.index, revoked.index, "the second one changes nothing");

    // The open stream ends, and the reason names the remedy.
    let ended = loop {
        match updates.message().await {
            Ok(update) => drop(update.expect("an error ends the stream")),
            Err(status) => break status,
        }
    };
    let denied = |status: &Status| {
        assert_eq!(status.code(), Code::PermissionDenied, "{status}");
        assert!(
            status.message().contains("introduction reinstate"),
            "{status}"
        );
    };
    denied(&ended);
    let beat = HeartbeatRequest {
        node_id: joined.node_id.clone(),
        secret: "a secret".to_owned(),
    };
    let refused = client.heartbeat(request(beat.clone(), WAIT_LIMIT)).await;
    denied(&refused.unwrap_err());
    let report = ReportAllocationsRequest {
        node_id: joined.node_id.clone(),
        secret: "a secret".to_owned(),
        ..ReportAllocationsRequest::default()
    };
    let refused = client.report_allocations(request(report, WAIT_LIMIT)).await;
    denied(&refused.unwrap_err());
    node.meta.insert("changed".to_owned(), "yes".to_owned());
    denied(&register(own(), &node).await.unwrap_err());
    let renew = RenewCertificateRequest {
        signing_request: pki::sign_request(&key).unwrap(),
    };
    let mut renewals = NodeIntroductionsClient::new(own());
    let refused = renewals.renew(request(renew.clone(), WAIT_LIMIT)).await;
    denied(&refused.unwrap_err());
    let refused = cluster.introduce(&suite, &token, &key).await;
    denied(&refused.unwrap_err());

    let listed = operator.list_revocations(v1::ListRevocationsRequest::default());
    let listed = listed.await.unwrap().into_inner().revocations;
    assert_eq!(
        (listed.len(), &*listed[0].node_name, &*listed[0].reason),
        (1, &*node.name, "sold")
    );

    // The certificate is valid still, so a reinstated node goes on with it.
    let reinstate = v1::ReinstateNodeRequest {
        node_id: joined.node_id.clone(),
    };
    operator.reinstate(reinstate.clone()).await.unwrap();
    register(own(), &node).await.unwrap();
    renewals.renew(request(renew, WAIT_LIMIT)).await.unwrap();
    let refused = operator.reinstate(reinstate).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    assert!(refused.message().contains("is not revoked"), "{refused}");
}

#[tokio::test]
async fn the_certificate_of_an_unknown_node_is_revoked_by_its_whole_id() {
    let cluster = Cluster::new();
    let suite = cluster.start().await;
    let id = builders::node(7).id.to_string();
    let mut operator = cluster.operator(&suite);
    let wish = |node_id: &str| v1::RevokeNodeRequest {
        node_id: node_id.to_owned(),
        reason: String::new(),
    };
    let refused = operator.revoke(wish(&id[..8])).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound, "{refused}");
    let revoked = operator.revoke(wish(&id)).await.unwrap().into_inner();
    assert_eq!((&*revoked.node_id, &*revoked.node_name), (&*id, ""));
    let by_hand = CertificateRequest {
        identity: Identity::new(Role::Node, "global", &id).unwrap(),
        days: 5,
        dns_names: Vec::new(),
        addresses: Vec::new(),
    };
    let by_hand = cluster.ca.issue(&by_hand, moment(&cluster.ids)).unwrap();
    let tls = cluster.tls("n7", &by_hand.certificate_pem, &by_hand.key_pem);
    let mut node = builders::node(7);
    node.address = ADDRESS.to_owned();
    let refused = register(channel(&tls, &suite, Role::Node), &node).await;
    assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
}

#[tokio::test]
async fn a_node_is_held_to_the_pool_of_its_token() {
    let cluster = Cluster::new();
    let suite = cluster.start().await;
    let wish = v1::CreateIntroductionTokenRequest {
        node_pool: "gpu".to_owned(),
        ..once()
    };
    let token = cluster.token(&suite, wish).await;
    let key = pki::create_key().unwrap();
    let joined = cluster.introduce(&suite, &token, &key).await.unwrap();
    let tls = cluster.tls("n1", &joined.certificate, &key);
    let mut node = builders::node(1);
    node.id = joined.node_id.parse().unwrap();
    node.address = ADDRESS.to_owned();
    let refused = register(channel(&tls, &suite, Role::Node), &node).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("\"gpu\""), "{refused}");
    node.node_pool = "gpu".to_owned();
    register(channel(&tls, &suite, Role::Node), &node)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_gateway_without_a_ca_of_nodes_introduces_none_and_says_so() {
    let cluster = Cluster::new();
    let suite = Suite::start_with(1, |config| config.tls = cluster.certified(Role::Gateway)).await;
    let created = cluster
        .operator(&suite)
        .create_introduction_token(once())
        .await;
    let refused = created.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("node_ca_cert_file"), "{refused}");
    let key = pki::create_key().unwrap();
    let refused = cluster.introduce(&suite, "any", &key).await.unwrap_err();
    let problem = tls::Problem::of(&refused);
    assert_eq!(problem, Some(tls::Problem::CertificateRequired));
}

#[tokio::test]
async fn a_ca_of_nodes_that_could_issue_for_other_roles_is_refused_at_the_start() {
    let cluster = Cluster::new();
    let made = AuthorityRequest {
        common_name: "another CA".to_owned(),
        days: 10,
        is_constrained: true,
        additional_domains: Vec::new(),
    };
    let made = pki::create_authority(&made, moment(&cluster.ids)).unwrap();
    let run = async |edit: &dyn Fn(&mut Config)| {
        let mut config = Config {
            listen: ListenConfig::default(),
            ..Config::default()
        };
        cluster.edit(&mut config);
        edit(&mut config);
        let app = match api_gateway::App::build(config).await {
            Ok(app) => app,
            Err(error) => return service_kit::run::chain(&error),
        };
        let running = app.run(service_kit::CancellationToken::new());
        let ended = tokio::time::timeout(WAIT_LIMIT, running).await.unwrap();
        service_kit::run::chain(&ended.unwrap_err())
    };
    let (cert, key) = (
        cluster.write("wrong.pem", &made.certificate_pem),
        cluster.write("wrong-key.pem", &made.key_pem),
    );
    let set = |config: &mut Config, cert: &Path, key: &Path| {
        config.node_ca_cert_file = Some(cert.to_owned());
        config.node_ca_key_file = Some(key.to_owned());
    };
    let error = run(&|config| set(config, &cert, &key)).await;
    assert!(error.contains("-node-ca"), "{error}");
    let error = run(&|config| config.node_ca_key_file = None).await;
    assert!(error.contains("need each other"), "{error}");
    let error = run(&|config| config.node_ca_key_file = Some("missing.pem".into())).await;
    assert!(error.contains("missing.pem"), "{error}");
    let error = run(&|config| config.node_certificate_ttl = Duration::from_secs(1)).await;
    assert!(error.contains("node_certificate_ttl"), "{error}");
}
