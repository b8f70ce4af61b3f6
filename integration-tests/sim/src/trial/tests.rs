//! At rest nodes have done as they were told: a good state passes, a bad one is found.

use invariants::Fact;
use model::{AllocClient, ClientStatus, DesiredStatus};
use state::{Entity, Key};
use test_kit::builders;

use super::unrest;
use crate::testing::seen;

/// Whether a node is found to owe something that is told `desired` of an allocation, and has told
/// `status` of it, if anything.
fn is_undone(desired: DesiredStatus, status: Option<ClientStatus>) -> bool {
    let (node, job) = (builders::node(1), builders::service("web", 1));
    let mut alloc = builders::allocation(1, &job, node.id);
    alloc.desired_status = desired;
    let id = alloc.id;
    let told = status.map(|status| AllocClient {
        status,
        ..AllocClient::default()
    });
    let told = told.map(|client| {
        let entity = Entity::AllocClient(Box::new(client));
        vec![(Key::AllocClient(id), Some(entity))]
    });
    let placed = vec![
        (Key::Node(node.id), Some(Entity::Node(Box::new(node)))),
        (Key::Alloc(id), Some(Entity::Alloc(Box::new(alloc)))),
    ];
    let watcher = seen([placed].into_iter().chain(told));
    let found = unrest(&watcher, 1);
    found
        .iter()
        .any(|violation| violation.fact == Fact::NodesDoAsTold)
}

#[test]
fn what_is_to_run_runs_or_has_run() {
    let run = DesiredStatus::Run;
    assert!(!is_undone(run, Some(ClientStatus::Running)));
    assert!(!is_undone(run, Some(ClientStatus::Complete)));
    assert!(!is_undone(run, Some(ClientStatus::Failed)));
    assert!(is_undone(run, Some(ClientStatus::Pending)));
    assert!(is_undone(run, None), "nothing was told of it");
}

#[test]
fn what_is_to_end_has_ended() {
    for desired in [DesiredStatus::Stop, DesiredStatus::Evict] {
        assert!(!is_undone(desired, Some(ClientStatus::Complete)));
        assert!(!is_undone(desired, Some(ClientStatus::Failed)));
        assert!(is_undone(desired, Some(ClientStatus::Running)));
        assert!(is_undone(desired, Some(ClientStatus::Pending)));
        assert!(is_undone(desired, None), "nothing was told of it");
    }
}
