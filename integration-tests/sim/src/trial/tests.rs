//! The check that nodes at rest have applied every assignment, on good and bad states.

use invariants::Fact;
use model::{
    AllocClient, ClientStatus, Deployment, DeploymentGroup, DeploymentHealth, DeploymentId,
    DeploymentStatus, DesiredStatus, EvalStatus, TaskState, Timestamp,
};
use state::{Entity, Key};
use test_kit::builders;

use super::{unrest, waits_for_room};
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

/// An allocation of a rollout, by health, and whether it was preempted.
type Canary = (Option<bool>, bool);

const NEW: Canary = (None, false);
const HEALTHY: Canary = (Some(true), false);
const UNHEALTHY: Canary = (Some(false), false);
const PREEMPTED: Canary = (None, true);
const HEALTHY_PREEMPTED: Canary = (Some(true), true);

/// Returns whether a rollout that is `running` and wants two canaries may be under way at rest.
fn may_wait(running: Running, canaries: &[Canary]) -> bool {
    let (node, mut job) = (builders::node(1), builders::service("web", 3));
    job.version = 1;
    let rollout = Deployment {
        id: DeploymentId::from_random(1),
        job: job.key(),
        job_version: 1,
        job_modify_index: 1,
        job_create_index: 1,
        status: DeploymentStatus::Running,
        status_description: String::new(),
        groups: [(
            "web".to_owned(),
            DeploymentGroup {
                promoted: running.promoted,
                auto_promote: running.auto_promote,
                desired_canaries: 2,
                desired_total: 3,
                ..DeploymentGroup::default()
            },
        )]
        .into(),
        eval_priority: 50,
        create_time: Timestamp(1),
        modify_time: Timestamp(1),
    };
    let mut eval = builders::evaluation(1, &job);
    eval.status = match running.is_blocked {
        true => EvalStatus::Blocked,
        false => EvalStatus::Complete,
    };
    let mut writes = vec![(Key::Eval(eval.id), Some(Entity::Eval(Box::new(eval))))];
    for (number, (health, is_preempted)) in (1..).zip(canaries) {
        let mut alloc = builders::allocation(number, &job, node.id);
        if *is_preempted {
            alloc.desired_status = DesiredStatus::Evict;
        }
        alloc.deployment_id = Some(rollout.id);
        let health = health.map(|healthy| DeploymentHealth {
            healthy,
            time: Timestamp(1),
            deployment_id: alloc.deployment_id,
        });
        let client = AllocClient {
            status: ClientStatus::Running,
            health,
            ..AllocClient::default()
        };
        let report = Entity::AllocClient(Box::new(client));
        writes.push((Key::AllocClient(alloc.id), Some(report)));
        let key = Key::Alloc(alloc.id);
        writes.push((key, Some(Entity::Alloc(Box::new(alloc)))));
    }
    let entity = Entity::Deployment(Box::new(rollout.clone()));
    writes.push((Key::Deployment(rollout.id), Some(entity)));
    waits_for_room(&seen([writes]).snapshot(), &rollout)
}

/// A running rollout.
#[derive(Clone, Copy)]
struct Running {
    /// An evaluation waits for room.
    is_blocked: bool,
    auto_promote: bool,
    promoted: bool,
}

#[test]
fn a_rollout_waits_for_room_while_no_deadline_runs() {
    let manual = Running {
        is_blocked: true,
        auto_promote: false,
        promoted: false,
    };
    let automatic = Running {
        auto_promote: true,
        ..manual
    };
    let promoted = Running {
        promoted: true,
        ..manual
    };
    let roomy = Running {
        is_blocked: false,
        ..manual
    };
    for (name, running, canaries, expected) in [
        ("none had a place", manual, &[][..], true),
        ("none is left", manual, &[HEALTHY_PREEMPTED; 2], true),
        ("one is left", manual, &[HEALTHY, HEALTHY_PREEMPTED], true),
        ("both", manual, &[HEALTHY; 2], true),
        (
            "one replaced",
            manual,
            &[HEALTHY, HEALTHY_PREEMPTED, NEW],
            false,
        ),
        (
            "one was not healthy yet",
            manual,
            &[HEALTHY, PREEMPTED],
            false,
        ),
        ("one is not healthy yet", manual, &[HEALTHY, NEW], false),
        ("one is unhealthy", manual, &[HEALTHY, UNHEALTHY], false),
        ("room", roomy, &[HEALTHY, HEALTHY_PREEMPTED], false),
        ("automatic", automatic, &[], true),
        (
            "automatic, one is left",
            automatic,
            &[HEALTHY, HEALTHY_PREEMPTED],
            false,
        ),
        ("promoted", promoted, &[HEALTHY; 2], false),
        ("promoted, all healthy", promoted, &[HEALTHY; 3], true),
    ] {
        assert_eq!(may_wait(running, canaries), expected, "{name}");
    }
}
