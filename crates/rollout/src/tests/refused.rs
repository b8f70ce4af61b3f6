//! Failed writes: backoffs, and a failure without its revert.

use std::time::Duration;

use model::{Deployment, DeploymentGroup, DeploymentId, DeploymentStatus, EvalId, Job, JobKey};
use state::{Change, Entity, Key, State, Write};

use super::fixture::{Fixture, deployment_id, group, job};
use crate::{Config, Reason, Rollout, outcome};

const MS: Duration = Duration::from_millis(1);

/// A fixture whose second version has failed, and which is to go back to the first.
fn failing() -> Fixture {
    failing_after(1)
}

/// The same, with `versions` later than the stable one.
fn failing_after(versions: u64) -> Fixture {
    let mut first = job(1);
    first.task_groups[0].reschedule = None;
    let mut fixture = Fixture::new(&first);
    fixture.mark_stable(0);
    for version in 1..=versions {
        let mut later = Job {
            version,
            ..first.clone()
        };
        later.meta.insert("release".to_owned(), version.to_string());
        fixture.put_job(&later);
    }
    fixture.put_deployment(DeploymentGroup {
        auto_revert: true,
        ..group(1)
    });
    fixture.place(1);
    fixture.scheduled();
    fixture.report(1, false);
    fixture
}

#[test]
fn a_refused_write_is_requested_again_after_a_growing_pause() {
    let mut fixture = failing();
    let first = fixture.action();
    for pause_ms in [500, 1_000, 2_000, 4_000, 5_000, 5_000] {
        fixture.rollout.examine_later(fixture.now, deployment_id());
        fixture.step();
        assert_eq!(fixture.actions, []);
        assert!(!fixture.rollout.has_work(), "the loop would spin");
        fixture.pass(pause_ms * MS - MS);
        assert_eq!(fixture.actions, []);
        fixture.pass(MS);
        assert_eq!(fixture.action().reason, first.reason);
    }
    // Written at last: what fails after that begins anew.
    fixture.rollout.examine_again(deployment_id());
    fixture.step();
    fixture.action();
    fixture.rollout.examine_later(fixture.now, deployment_id());
    fixture.pass(500 * MS);
    fixture.action();
}

#[test]
fn a_clock_that_is_set_back_does_not_make_the_pause_longer() {
    let mut fixture = failing();
    fixture.action();
    fixture.rollout.examine_later(fixture.now, deployment_id());
    fixture.now = model::Timestamp::from_millis(1);
    fixture.step();
    fixture.action();
}

#[test]
fn one_that_waits_does_not_hold_up_another() {
    let deployment = |number: u128| Deployment {
        id: DeploymentId::from_random(number),
        // There is no such job, so it is to be cancelled.
        job: JobKey::new("default", "gone"),
        job_version: 0,
        job_modify_index: 1,
        job_create_index: 1,
        status: DeploymentStatus::Running,
        status_description: String::new(),
        groups: [("web".to_owned(), group(1))].into(),
        eval_priority: 50,
        create_time: model::Timestamp::NEVER,
        modify_time: model::Timestamp::NEVER,
    };
    let (mut state, mut rollout) = (State::default(), Rollout::new(Config::default()));
    let mut put = |revision: u64, rollout: &mut Rollout| {
        let value = deployment(u128::from(revision));
        let change = Change::Put {
            key: Key::Deployment(value.id),
            entity: Entity::Deployment(value.into()),
            create_index: revision,
            modify_index: revision,
        };
        state.apply(revision, [change.clone()]);
        rollout.note(&[change], &state.snapshot());
        state.snapshot()
    };
    let now = model::Timestamp::from_millis(1_000_000);
    let mut next_id = || EvalId::from_random(1);
    let snapshot = put(1, &mut rollout);
    assert_eq!(rollout.step(now, &snapshot, &mut next_id).len(), 1);
    rollout.examine_later(now, DeploymentId::from_random(1));
    let snapshot = put(2, &mut rollout);
    let actions = rollout.step(now, &snapshot, &mut next_id);
    let ids: Vec<_> = actions.iter().map(|action| action.deployment_id).collect();
    assert_eq!(ids, [DeploymentId::from_random(2)]);
    assert_eq!(actions[0].reason, Reason::JobGone);
}

#[test]
fn a_revert_deletes_the_versions_beyond_the_limit() {
    let mut fixture = failing_after(7);
    let whole = fixture.action();
    let deleted: Vec<u64> = whole
        .writes
        .iter()
        .filter(|write| matches!(write, Write::Delete { .. }))
        .filter_map(|write| match write.key() {
            Key::JobVersion(_, version) => Some(*version),
            _ => None,
        })
        .collect();
    // Version 0 is stable and kept; with the reverted one, six are left.
    assert_eq!(deleted, [1, 2, 3]);
    assert_eq!(outcome::without_revert(whole).unwrap().writes.len(), 2);
}

#[test]
fn without_its_revert_a_failure_says_so_and_leaves_the_job_alone() {
    let mut fixture = failing();
    let whole = fixture.action();
    assert!(whole.job().is_some());
    let less = outcome::without_revert(whole.clone()).unwrap();
    assert_eq!(less.job(), None);
    assert_eq!(less.eval(), whole.eval());
    assert_eq!(less.writes.len(), 2, "the deployment and the evaluation");
    assert_eq!(
        less.deployment().unwrap().status_description,
        "Failed due to unhealthy allocations - not rolling back to job version 0 as the job is too \
         large to be stored together with that"
    );
    assert_eq!(
        outcome::without_revert(less),
        None,
        "nothing more to leave out"
    );
}
