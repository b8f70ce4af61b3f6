//! The check that nodes at rest have applied every assignment, on good and bad states.

use invariants::Fact;
use model::{AllocClient, ClientStatus, DesiredStatus, TaskState};
use state::{Entity, Key};
use test_kit::builders;

use super::unrest;
use crate::testing::seen;

/// Returns whether the check reports a node with a `desired` allocation whose reported status is
/// `status`.
fn is_undone(desired: DesiredStatus, status: Option<ClientStatus>) -> bool {
    let client = status.map(|status| AllocClient {
        status,
        ..AllocClient::default()
    });
    is_reported_undone(desired, client)
}

/// As [`is_undone`], with the whole report.
fn is_reported_undone(desired: DesiredStatus, report: Option<AllocClient>) -> bool {
    let (node, job) = (builders::node(1), builders::service("web", 1));
    let mut alloc = builders::allocation(1, &job, node.id);
    alloc.desired_status = desired;
    let id = alloc.id;
    let report = report.map(|client| {
        let entity = Entity::AllocClient(Box::new(client));
        vec![(Key::AllocClient(id), Some(entity))]
    });
    let placed = vec![
        (Key::Node(node.id), Some(Entity::Node(Box::new(node)))),
        (Key::Alloc(id), Some(Entity::Alloc(Box::new(alloc)))),
    ];
    let checker = seen([placed].into_iter().chain(report));
    let found = unrest(&checker, 1);
    found
        .iter()
        .any(|violation| violation.fact == Fact::DesiredStateIsReached)
}

#[test]
fn a_wanted_allocation_runs_or_has_run() {
    let run = DesiredStatus::Run;
    assert!(!is_undone(run, Some(ClientStatus::Running)));
    assert!(!is_undone(run, Some(ClientStatus::Complete)));
    assert!(!is_undone(run, Some(ClientStatus::Failed)));
    assert!(is_undone(run, Some(ClientStatus::Pending)));
    assert!(is_undone(run, None), "no report");
}

#[test]
fn a_stopped_allocation_has_ended() {
    for desired in [DesiredStatus::Stop, DesiredStatus::Evict] {
        assert!(!is_undone(desired, Some(ClientStatus::Complete)));
        assert!(!is_undone(desired, Some(ClientStatus::Failed)));
        assert!(is_undone(desired, Some(ClientStatus::Running)));
        assert!(is_undone(desired, Some(ClientStatus::Pending)));
        assert!(is_undone(desired, None), "no report");
    }
}

#[test]
fn a_task_that_waits_for_its_restart_has_started() {
    let restarting = |restarts| {
        let state = TaskState {
            restarts,
            ..TaskState::default()
        };
        let client = AllocClient {
            task_states: [("server".into(), state)].into(),
            ..AllocClient::default()
        };
        assert_eq!(client.status, ClientStatus::Pending);
        Some(client)
    };
    assert!(is_reported_undone(DesiredStatus::Run, restarting(0)));
    assert!(!is_reported_undone(DesiredStatus::Run, restarting(1)));
    assert!(is_reported_undone(DesiredStatus::Stop, restarting(1)));
}
