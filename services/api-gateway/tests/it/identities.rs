//! Identity tokens of tasks: signed for their node alone, by keys that rotate and are stored sealed.

use std::collections::BTreeSet;

use model::{AllocClient, ClientStatus, Node, WorkloadIdentity};
use proto::internal::v1::{IdentityRequest, SignIdentitiesRequest, SignedIdentity};
use proto::v1;
use service_kit::Clock;
use state::{Entity, Key};
use test_kit::wait_for;
use tonic::{Code, Status};
use workload_identity::{Claims, JWKS_PATH, Jwks, VerifyError};

use crate::sessions::register;
use crate::support::{Suite, WAIT_LIMIT, alloc, ask, job, node};

/// 32 bytes of `a`.
const KEY: &str = "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=";

struct Cluster {
    suite: Suite,
    node: Node,
    alloc: model::Allocation,
    _directory: tempfile::TempDir,
}

impl Cluster {
    /// Two gateways, and a node with one allocation whose task has the identity `aws`.
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let key = directory.path().join("keyring_key");
        std::fs::write(&key, KEY).unwrap();
        let suite = Suite::start_with(2, |config| {
            config.keyring_key_file = Some(key.clone());
            config.oidc_issuer = Some("https://kafila.example".to_owned());
        })
        .await;
        let mut job = job("web");
        job.task_groups[0].tasks[0].identities = vec![WorkloadIdentity {
            name: "aws".to_owned(),
            audience: vec!["sts.amazonaws.com".to_owned()],
            file: true,
            ..WorkloadIdentity::default()
        }];
        let node = node(1);
        register(&suite, 0, &node).await.unwrap();
        let version = Entity::JobVersion(Box::new(job.clone()));
        suite
            .put(&Key::JobVersion(job.key(), job.version), &version)
            .await;
        suite
            .put(&Key::Job(job.key()), &Entity::Job(Box::new(job.clone())))
            .await;
        let alloc = alloc(1, &job, &node, 0);
        suite.put_alloc(&alloc).await;
        let cluster = Self {
            suite,
            node,
            alloc,
            _directory: directory,
        };
        wait_for("the first key", WAIT_LIMIT, async || {
            cluster.jwks(0).await.filter(|keys| !keys.keys.is_empty())
        })
        .await;
        cluster
    }

    async fn sign(&self, node: &Node, identities: &[&str]) -> Result<Vec<SignedIdentity>, Status> {
        let task = self.task();
        let request = |identity: &&str| IdentityRequest {
            alloc_id: self.alloc.id.to_string(),
            task: task.clone(),
            identity: (*identity).to_owned(),
            ..IdentityRequest::default()
        };
        let message = SignIdentitiesRequest {
            node_id: node.id.to_string(),
            secret: node.secret.clone(),
            requests: identities.iter().map(request).collect(),
        };
        let answer = self.suite.sessions(1).sign_identities(ask(message)).await?;
        Ok(answer.into_inner().identities)
    }

    fn task(&self) -> String {
        job("web").task_groups[0].tasks[0].name.clone()
    }

    async fn get(&self, gateway: usize, path: &str) -> String {
        let answer = self.suite.get_http(gateway, path).await;
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        body.to_owned()
    }

    async fn jwks(&self, gateway: usize) -> Option<Jwks> {
        Jwks::parse(self.get(gateway, JWKS_PATH).await.as_bytes()).ok()
    }

    async fn verify(&self, token: &str) -> Result<Claims, VerifyError> {
        let keys = self.jwks(0).await.unwrap();
        keys.verify(token, model::Timestamp(Clock::real().now()))
    }

    async fn keys(&self) -> Vec<v1::SigningKey> {
        let mut operator = self.suite.operator(0);
        let request = v1::ListSigningKeysRequest::default();
        let listed = operator.list_signing_keys(ask(request)).await.unwrap();
        listed.into_inner().signing_keys
    }
}

#[tokio::test]
async fn a_token_verifies_by_the_published_keys_of_another_gateway() {
    let cluster = Cluster::start().await;
    let signed = cluster
        .sign(&cluster.node, &["default", "aws"])
        .await
        .unwrap();
    let default = cluster.verify(&signed[0].token).await.unwrap();
    let aws = cluster.verify(&signed[1].token).await.unwrap();
    let task = cluster.task();
    let group = &cluster.alloc.task_group;
    assert_eq!(aws.sub, format!("global:default:web:{group}:{task}:aws"));
    assert_eq!(aws.iss.as_deref(), Some("https://kafila.example"));
    assert!(aws.aud.contains("sts.amazonaws.com") && !default.aud.contains("sts.amazonaws.com"));
    assert_eq!(aws.nomad_allocation_id, cluster.alloc.id.to_string());
    assert_ne!(aws.jti, default.jti);
    assert_eq!(aws.exp, signed[1].expires_at_ns / 1_000_000_000);
    let document = cluster.get(0, workload_identity::DISCOVERY_PATH).await;
    assert!(
        document.contains("https://kafila.example/.well-known/jwks.json"),
        "{document}"
    );
}

#[tokio::test]
async fn a_node_gets_no_token_of_another_nodes_task() {
    let cluster = Cluster::start().await;
    let other = node(2);
    register(&cluster.suite, 0, &other).await.unwrap();
    let refused = cluster.sign(&other, &["default"]).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    assert!(
        refused.message().contains("is not one of node"),
        "{refused}"
    );
    // Nor with the id of the right node and another secret.
    let posing = Node {
        secret: other.secret.clone() + "x",
        ..cluster.node.clone()
    };
    let refused = cluster.sign(&posing, &["default"]).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    // One refused identity refuses the request.
    let refused = cluster
        .sign(&cluster.node, &["aws", "gcp"])
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    // An ended allocation gets no more.
    let ended = AllocClient {
        status: ClientStatus::Complete,
        ..AllocClient::default()
    };
    let key = Key::AllocClient(cluster.alloc.id);
    cluster
        .suite
        .put(&key, &Entity::AllocClient(Box::new(ended)))
        .await;
    wait_for("the end", WAIT_LIMIT, async || {
        let refused = cluster.sign(&cluster.node, &["aws"]).await.err()?;
        refused.message().contains("has ended").then_some(())
    })
    .await;
}

#[tokio::test]
async fn requests_are_bounded_and_name_their_fields() {
    let cluster = Cluster::start().await;
    let many = vec!["aws"; 65];
    let refused = cluster.sign(&cluster.node, &many).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(
        refused.message().contains("requests: has 65 entries"),
        "{refused}"
    );
    let long = "x".repeat(300);
    let refused = cluster.sign(&cluster.node, &[&long, ""]).await.unwrap_err();
    for field in ["requests[0].identity", "requests[1].identity"] {
        assert!(refused.message().contains(field), "{refused}");
    }
}

#[tokio::test]
async fn tokens_outlive_a_rotation_and_end_with_the_removal_of_their_key() {
    let cluster = Cluster::start().await;
    let before = cluster
        .sign(&cluster.node, &["aws"])
        .await
        .unwrap()
        .remove(0)
        .token;
    let first = cluster.keys().await.remove(0).id;
    let mut operator = cluster.suite.operator(0);
    let remove = |key_id: &str| v1::RemoveSigningKeyRequest {
        key_id: key_id.to_owned(),
    };
    let refused = operator
        .remove_signing_key(ask(remove(&first)))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    operator
        .rotate_signing_key(ask(v1::RotateSigningKeyRequest {}))
        .await
        .unwrap();
    let states: Vec<String> = cluster
        .keys()
        .await
        .into_iter()
        .map(|key| key.state)
        .collect();
    assert_eq!(states, ["retired", "active"]);
    // The other gateway signs with the new key, and both keys are published.
    let after = wait_for("a token of the new key", WAIT_LIMIT, async || {
        let token = cluster
            .sign(&cluster.node, &["aws"])
            .await
            .ok()?
            .remove(0)
            .token;
        let of_first = |token: &str| token.split('.').next().map(str::to_owned);
        (of_first(&token) != of_first(&before)).then_some(token)
    })
    .await;
    assert!(cluster.verify(&before).await.is_ok());
    assert!(cluster.verify(&after).await.is_ok());
    operator
        .remove_signing_key(ask(remove(&first[..8])))
        .await
        .unwrap();
    wait_for("the removal", WAIT_LIMIT, async || {
        let refused = cluster.verify(&before).await.err()?;
        (refused == VerifyError::UnknownKey).then_some(())
    })
    .await;
    assert!(cluster.verify(&after).await.is_ok());
}

#[tokio::test]
async fn of_two_gateways_one_makes_the_first_key_and_the_store_has_it_sealed() {
    let cluster = Cluster::start().await;
    let ids: BTreeSet<String> = cluster.keys().await.into_iter().map(|key| key.id).collect();
    assert_eq!(ids.len(), 1);
    let stored = cluster.suite.get(&Key::Keyring).await.unwrap();
    let Entity::Keyring(keyring) = stored.entity else {
        panic!("another object under the key");
    };
    // The key opens with the key of the file alone, and PKCS #8 of P-256 begins with these bytes.
    let text = serde_json::to_string(&*keyring).unwrap();
    let random = ring::rand::SystemRandom::new();
    let keys = workload_identity::KeyEncryptionKeys::parse(KEY).unwrap();
    workload_identity::keyring::open(&keyring.keys[0], &keys, &random).unwrap();
    for clear in ["MIGHAgEA", "MIGHAgE", "30818702", "PRIVATE"] {
        assert!(!text.contains(clear), "{text}");
    }
    let other = workload_identity::KeyEncryptionKeys::parse(&"b".repeat(64)).unwrap();
    workload_identity::keyring::open(&keyring.keys[0], &other, &random).unwrap_err();
}

#[tokio::test]
async fn without_a_key_file_there_are_no_tokens_and_the_setting_is_named() {
    let suite = Suite::start(1).await;
    let mut operator = suite.operator(0);
    let request = v1::RotateSigningKeyRequest {};
    let refused = operator.rotate_signing_key(ask(request)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    assert!(refused.message().contains("keyring_key_file"), "{refused}");
}
