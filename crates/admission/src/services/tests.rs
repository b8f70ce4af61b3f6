//! Registrations: stored with reports, hidden, deleted, and removed as leftovers.

use model::{
    AllocClient, AllocId, Allocation, ClientStatus, Node, NodeStatus, ServiceRegistration,
    Timestamp,
};
use state::{Entity, Key, Snapshot, Write};
use test_kit::{Stored, builders};

use super::{DeleteRefusal, delete, leftovers};
use crate::nodes::reports::{Reports, decide};

const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);

fn registration(name: &str) -> ServiceRegistration {
    ServiceRegistration {
        id: format!("_nomad-task-x-group-web-{name}-http"),
        name: name.to_owned(),
        tags: vec!["v1".to_owned()],
        address: "10.0.0.7".to_owned(),
        port: 8080,
        ..ServiceRegistration::default()
    }
}

/// A service job with one allocation on one node.
struct Fixture {
    stored: Stored,
    node: Node,
    alloc: Allocation,
}

fn fixture() -> Fixture {
    let mut stored = Stored::default();
    let (node, job) = (builders::node(1), builders::service("web", 1));
    stored.put_node(&node);
    stored.put_job(&job);
    let alloc = builders::allocation(1, &job, node.id);
    stored.put_alloc(&alloc);
    Fixture {
        stored,
        node,
        alloc,
    }
}

impl Fixture {
    /// Stores a report with these services.
    fn report(&mut self, number: u64, status: ClientStatus, names: &[&str]) -> Option<Write> {
        let client = AllocClient {
            status,
            report: number,
            services: names.iter().map(|name| registration(name)).collect(),
            ..AllocClient::default()
        };
        self.send(client)
    }

    fn send(&mut self, client: AllocClient) -> Option<Write> {
        let reports = Reports::from([(self.alloc.id, client)]);
        let outcome = decide(&self.stored.snapshot(), &reports, NOW).pop()?;
        self.apply(&outcome.write);
        if let Some(write) = &outcome.services {
            self.apply(write);
        }
        outcome.services
    }

    fn apply(&mut self, write: &Write) {
        match write {
            Write::Create { key, entity } | Write::Update { key, entity, .. } => {
                self.stored.put(key.clone(), entity.clone());
            }
            Write::Delete { key, .. } => self.stored.delete(key.clone()),
            other => panic!("{other:?}"),
        }
    }

    fn names(&self) -> Vec<String> {
        let snapshot: Snapshot = self.stored.snapshot();
        let services = snapshot.services();
        services.map(|it| it.registration.name.clone()).collect()
    }
}

#[test]
fn registrations_come_and_go_with_the_reports_of_their_allocation() {
    use ClientStatus::{Complete, Running};
    let mut fixture = fixture();
    assert_eq!(fixture.report(1, ClientStatus::Pending, &[]), None);
    fixture.report(2, Running, &["api", "web"]);
    assert_eq!(fixture.names(), ["api", "web"]);
    // The same services again are no write of their own.
    assert_eq!(fixture.report(3, Running, &["api", "web"]), None);
    fixture.report(4, Running, &["web"]);
    assert_eq!(fixture.names(), ["web"]);
    // A late report changes nothing.
    assert_eq!(fixture.report(3, Running, &["api"]), None);
    assert_eq!(fixture.names(), ["web"]);
    // An ended allocation has no service, whatever its node says.
    let ended = fixture.report(5, Complete, &["web"]);
    assert!(matches!(ended, Some(Write::Delete { .. })), "{ended:?}");
    assert_eq!(fixture.names(), [""; 0]);
}

#[test]
fn a_pending_result_of_checks_keeps_the_stored_one() {
    use model::ServiceHealth::{Failing, Passing, Pending};
    let mut fixture = fixture();
    let mut health = |number: u64, health| {
        let client = AllocClient {
            status: ClientStatus::Running,
            services: vec![ServiceRegistration {
                health,
                ..registration("api")
            }],
            report: number,
            ..AllocClient::default()
        };
        fixture.send(client);
        let snapshot = fixture.stored.snapshot();
        let services = snapshot.alloc_services(fixture.alloc.id).unwrap();
        services.value.registrations[0].health
    };
    assert_eq!(health(1, Pending), Pending);
    assert_eq!(health(2, Passing), Passing);
    assert_eq!(health(3, Pending), Passing, "the agent was restarted");
    assert_eq!(health(4, Failing), Failing);
    assert_eq!(health(5, Pending), Failing);
}

#[test]
fn the_client_side_is_stored_without_the_registrations() {
    let mut fixture = fixture();
    fixture.report(1, ClientStatus::Running, &["api"]);
    let snapshot = fixture.stored.snapshot();
    let client = snapshot.alloc(fixture.alloc.id).unwrap().client.clone();
    assert_eq!(client.unwrap().services, []);
}

#[test]
fn services_of_a_node_that_is_down_are_hidden_until_it_is_back() {
    let mut fixture = fixture();
    fixture.report(1, ClientStatus::Running, &["api"]);
    fixture.node.status = NodeStatus::Down;
    fixture.stored.put_node(&fixture.node);
    assert_eq!(fixture.names(), [""; 0]);
    fixture.node.status = NodeStatus::Ready;
    fixture.stored.put_node(&fixture.node);
    assert_eq!(fixture.names(), ["api"]);
}

#[test]
fn registrations_of_lost_and_of_collected_allocations_are_leftovers() {
    let mut fixture = fixture();
    fixture.report(1, ClientStatus::Running, &["api"]);
    assert_eq!(leftovers(&fixture.stored.snapshot()), []);
    fixture.alloc.client_status_override = Some(ClientStatus::Lost);
    fixture.stored.put_alloc(&fixture.alloc);
    assert_eq!(fixture.names(), [""; 0]);
    let found = leftovers(&fixture.stored.snapshot());
    assert!(
        matches!(found.as_slice(), [Write::Delete { .. }]),
        "{found:?}"
    );
    // A value whose allocation was collected.
    let mut stored = Stored::default();
    let services = model::AllocServices {
        registrations: vec![registration("api")],
        deleted: Vec::new(),
    };
    let key = Key::Services(AllocId::from_random(9));
    stored.put(key, Entity::Services(Box::new(services)));
    assert_eq!(leftovers(&stored.snapshot()).len(), 1);
}

#[test]
fn a_deleted_registration_is_hidden_until_its_node_takes_it_back() {
    use ClientStatus::Running;
    let mut fixture = fixture();
    fixture.report(1, Running, &["api", "web"]);
    let id = registration("api").id;
    let snapshot = fixture.stored.snapshot();
    let write = delete(&snapshot, "default", "api", &id).unwrap();
    fixture.apply(&write);
    assert_eq!(fixture.names(), ["web"]);
    // A report of the same services does not undo the deletion; a new start does.
    fixture.report(2, Running, &["api", "web"]);
    assert_eq!(fixture.names(), ["web"]);
    fixture.report(3, Running, &["web"]);
    fixture.report(4, Running, &["api", "web"]);
    assert_eq!(fixture.names(), ["api", "web"]);
}

#[test]
fn an_unknown_registration_is_not_deleted() {
    let mut fixture = fixture();
    fixture.report(1, ClientStatus::Running, &["api"]);
    let snapshot = fixture.stored.snapshot();
    for (namespace, name, id) in [
        ("default", "api", "x".to_owned()),
        ("default", "web", registration("api").id),
        ("dev", "api", registration("api").id),
    ] {
        let refusal = delete(&snapshot, namespace, name, &id).unwrap_err();
        assert!(matches!(refusal, DeleteRefusal::NotFound { .. }));
        assert!(
            refusal
                .to_string()
                .contains("service registration not found")
        );
    }
}

#[test]
fn the_tags_of_a_canary_apply_until_its_promotion() {
    let mut fixture = fixture();
    let mut group = model::DeploymentGroup::default();
    let mut deployment = model::Deployment {
        id: model::DeploymentId::from_random(3),
        job: fixture.alloc.job_key(),
        job_version: 0,
        job_modify_index: 1,
        job_create_index: 1,
        status: model::DeploymentStatus::Running,
        status_description: String::new(),
        groups: [("web".to_owned(), group.clone())].into(),
        eval_priority: 50,
        create_time: NOW,
        modify_time: NOW,
    };
    let key = Key::Deployment(deployment.id);
    let put = |fixture: &mut Fixture, deployment: &model::Deployment| {
        let entity = Entity::Deployment(Box::new(deployment.clone()));
        fixture.stored.put(key.clone(), entity);
    };
    put(&mut fixture, &deployment);
    fixture.alloc.canary = true;
    fixture.alloc.deployment_id = Some(deployment.id);
    fixture.stored.put_alloc(&fixture.alloc);
    let services = model::AllocServices {
        registrations: vec![ServiceRegistration {
            canary_tags: vec!["canary".to_owned()],
            ..registration("api")
        }],
        deleted: Vec::new(),
    };
    let entity = Entity::Services(Box::new(services));
    fixture.stored.put(Key::Services(fixture.alloc.id), entity);
    let tags = |fixture: &Fixture| {
        let snapshot = fixture.stored.snapshot();
        let mut services = snapshot.services();
        services.next().unwrap().tags.to_vec()
    };
    assert_eq!(tags(&fixture), ["canary"]);
    group.promoted = true;
    deployment.groups.insert("web".to_owned(), group);
    put(&mut fixture, &deployment);
    assert_eq!(tags(&fixture), ["v1"]);
}
