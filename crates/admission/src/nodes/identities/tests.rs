//! Grants of tokens.

use model::consul::Consul;
use model::vault::Vault;
use model::{AllocClient, Allocation, ClientStatus, Service};
use test_kit::builders;
use test_kit::stored::Stored;

use super::*;

fn node(number: u128) -> NodeId {
    builders::node(number).id
}

struct Fixture {
    stored: Stored,
    alloc: Allocation,
}

/// A job with one running allocation on node 1, after `change`.
fn running(change: impl FnOnce(&mut Job)) -> Fixture {
    let mut job = builders::service("web", 1);
    job.task_groups[0].tasks.truncate(1);
    job.task_groups[0].tasks[0].name = "server".to_owned();
    change(&mut job);
    let alloc = builders::allocation(1, &job, node(1));
    let mut stored = Stored::default();
    stored.put_job(&job);
    stored.put_alloc(&alloc);
    Fixture { stored, alloc }
}

impl Fixture {
    fn ask(
        &self,
        node_id: NodeId,
        identity: &str,
        audience: &[&str],
    ) -> Result<Grant, IdentityRefusal> {
        let request = TokenRequest {
            alloc_id: self.alloc.id,
            workload: Workload::Task("server".to_owned()),
            identity: identity.to_owned(),
            audience: audience.iter().map(|text| (*text).to_owned()).collect(),
        };
        grant(&self.stored.snapshot(), node_id, &request)
    }
}

fn vault() -> Vault {
    Vault {
        policies: Vec::new(),
        role: "reader".to_owned(),
        namespace: "team".to_owned(),
        cluster: "default".to_owned(),
        env: true,
        disable_file: false,
        change_mode: model::template::ChangeMode::Restart,
        change_signal: String::new(),
        allow_token_expiration: false,
    }
}

#[test]
fn a_node_gets_tokens_of_its_own_allocations_only() {
    let fixture = running(|_| {});
    let granted = fixture.ask(node(1), "default", &[]).unwrap();
    assert_eq!(granted.audience, ["nomadproject.io"]);
    assert_eq!(granted.ttl, WorkloadIdentity::TTL_DEFAULT);
    assert_eq!(granted.workload.name(), "server");
    // A node with a valid certificate of its own, stolen or not.
    let refused = fixture.ask(node(2), "default", &[]).unwrap_err();
    assert_eq!(refused.kind(), Kind::Denied);
    // The answer about an allocation that does not exist is the same.
    let mut unknown = fixture.alloc.clone();
    unknown.id = AllocId::from_random(99);
    let other = Fixture {
        alloc: unknown,
        ..fixture
    };
    let missing = other.ask(node(2), "default", &[]).unwrap_err();
    let anonymous = |refusal: &IdentityRefusal| {
        refusal
            .to_string()
            .replace(|c: char| c.is_ascii_hexdigit(), "")
    };
    assert_eq!(anonymous(&refused), anonymous(&missing));
}

#[test]
fn an_ended_allocation_gets_none() {
    let mut fixture = running(|_| {});
    let client = AllocClient {
        status: ClientStatus::Complete,
        ..AllocClient::default()
    };
    let key = state::Key::AllocClient(fixture.alloc.id);
    let entity = state::Entity::AllocClient(Box::new(client));
    fixture.stored.put(key, entity);
    let refused = fixture.ask(node(1), "default", &[]).unwrap_err();
    assert_eq!(refused, IdentityRefusal::Ended(fixture.alloc.id));
}

#[test]
fn the_job_says_the_audience_and_the_life_of_its_identities() {
    let fixture = running(|job| {
        job.task_groups[0].tasks[0].identities = vec![WorkloadIdentity {
            name: "aws".to_owned(),
            audience: vec!["sts.amazonaws.com".to_owned()],
            ttl: Duration::from_secs(600),
            ..WorkloadIdentity::default()
        }];
    });
    let granted = fixture.ask(node(1), "aws", &[]).unwrap();
    assert_eq!(granted.audience, ["sts.amazonaws.com"]);
    assert_eq!(granted.ttl, Duration::from_secs(600));
    for (identity, audience) in [("aws", ["other"]), ("default", ["sts.amazonaws.com"])] {
        let refused = fixture.ask(node(1), identity, &audience).unwrap_err();
        assert_eq!(refused, IdentityRefusal::Audience(identity.to_owned()));
    }
    let refused = fixture.ask(node(1), "gcp", &[]).unwrap_err();
    assert!(
        refused.to_string().contains("identity { name = \"gcp\" }"),
        "{refused}"
    );
}

#[test]
fn a_login_at_vault_needs_the_vault_block_of_that_cluster() {
    let fixture = running(|job| job.task_groups[0].tasks[0].vault = Some(vault()));
    let granted = fixture.ask(node(1), "vault_default", &[]).unwrap();
    assert_eq!(granted.audience, ["vault.io"]);
    assert_eq!(granted.ttl, LOGIN_TTL);
    assert_eq!(granted.vault_role.as_deref(), Some("reader"));
    assert_eq!(granted.vault_namespace.as_deref(), Some("team"));
    let granted = fixture
        .ask(node(1), "vault_default", &["v.example"])
        .unwrap();
    assert_eq!(granted.audience, ["v.example"]);
    for identity in ["vault_other", "consul_default", "vault"] {
        let refused = fixture.ask(node(1), identity, &["v.example"]).unwrap_err();
        assert!(
            matches!(refused, IdentityRefusal::NoIdentity { .. }),
            "{refused}"
        );
    }
    // Declared in the job: its audience and life count, and the role of the block.
    let fixture = running(|job| {
        let task = &mut job.task_groups[0].tasks[0];
        task.vault = Some(vault());
        task.identities = vec![WorkloadIdentity {
            name: "vault_default".to_owned(),
            audience: vec!["ours".to_owned()],
            ..WorkloadIdentity::default()
        }];
    });
    let granted = fixture.ask(node(1), "vault_default", &[]).unwrap();
    assert_eq!(
        (granted.audience, granted.vault_role),
        (vec!["ours".to_owned()], Some("reader".to_owned()))
    );
    assert!(
        fixture
            .ask(node(1), "vault_default", &["v.example"])
            .is_err()
    );
}

#[test]
fn a_login_at_consul_needs_a_consul_block_and_may_be_a_services() {
    let fixture = running(|job| {
        job.task_groups[0].consul = Some(Consul {
            cluster: "default".to_owned(),
            namespace: "eu".to_owned(),
            partition: String::new(),
        });
        job.task_groups[0].services = vec![Service {
            name: "db".to_owned(),
            ..Service::default()
        }];
    });
    let granted = fixture.ask(node(1), "consul_default", &[]).unwrap();
    assert_eq!(
        (granted.audience, granted.consul_namespace),
        (vec!["consul.io".to_owned()], Some("eu".to_owned()))
    );
    let of_service = |name: &str, identity: &str| {
        let request = TokenRequest {
            alloc_id: fixture.alloc.id,
            workload: Workload::Service {
                task: None,
                name: name.to_owned(),
            },
            identity: identity.to_owned(),
            audience: Vec::new(),
        };
        grant(&fixture.stored.snapshot(), node(1), &request)
    };
    assert_eq!(
        of_service("db", "consul_default").unwrap().workload.name(),
        "db"
    );
    assert!(matches!(
        of_service("x", "consul_default"),
        Err(IdentityRefusal::NoWorkload { .. })
    ));
    assert!(matches!(
        of_service("db", "default"),
        Err(IdentityRefusal::NoIdentity { .. })
    ));
}

#[test]
fn a_child_has_the_name_of_its_parent() {
    let fixture = running(|job| job.parent_id = "nightly".to_owned());
    let granted = fixture.ask(node(1), "default", &[]).unwrap();
    assert_eq!(granted.job_id, "nightly");
}
