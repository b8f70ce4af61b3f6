//! Until when a deployment must get further.

use model::{DeploymentGroup, DeploymentStatus};

use super::fixture::{Fixture, MINUTE, alloc_id, deployment_id, group, job};
use crate::{Cause, Reason, require_progress_by};

fn canaries(auto_promote: bool) -> DeploymentGroup {
    DeploymentGroup {
        desired_canaries: 1,
        auto_promote,
        placed_canaries: vec![alloc_id(1)],
        ..group(4)
    }
}

fn deadline_minutes(fixture: &Fixture, since: model::Timestamp) -> Option<u128> {
    let by = require_progress_by(&fixture.snapshot(), &fixture.deployment(), "web")?;
    Some(by.since(since).as_secs().into()).map(|seconds: u128| seconds / 60)
}

#[test]
fn scenario_073_a_canary_that_waits_for_promotion_does_not_fail() {
    let mut fixture = Fixture::deploying(&job(4), canaries(false), 1);
    fixture.pass(MINUTE);
    fixture.report(1, true);
    fixture.perform();
    fixture.scheduled();
    fixture.pass(30 * MINUTE);
    assert_eq!(fixture.actions, []);
    // A user promotes; from now on the group must progress.
    let promoted = fixture.now;
    fixture.change_deployment(|deployment| {
        deployment
            .groups
            .get_mut("web")
            .expect("the group")
            .promoted = true;
    });
    assert_eq!(deadline_minutes(&fixture, promoted), Some(10));
    fixture.pass(10 * MINUTE);
    assert_eq!(
        fixture.action().reason,
        Reason::Failed(Cause::ProgressDeadline)
    );
}

#[test]
fn scenario_074_each_health_starts_the_clock_anew_and_a_standstill_fails_and_reverts() {
    let mut fixture = Fixture::new(&job(4));
    fixture.mark_stable(0);
    let mut newer = model::Job {
        version: 1,
        ..job(4)
    };
    newer.meta.insert("release".to_owned(), "2".to_owned());
    fixture.put_job(&newer);
    let start = fixture.now;
    fixture.put_deployment(DeploymentGroup {
        auto_revert: true,
        ..group(4)
    });
    fixture.place(1);
    fixture.pass(9 * MINUTE);
    fixture.report(1, true);
    fixture.perform();
    fixture.scheduled();
    assert_eq!(deadline_minutes(&fixture, start), Some(19));
    fixture.pass(10 * MINUTE - std::time::Duration::from_millis(1));
    assert_eq!(fixture.actions, []);
    fixture.pass(std::time::Duration::from_millis(1));

    let action = fixture.perform();
    assert_eq!(action.reason, Reason::Failed(Cause::ProgressDeadline));
    let failed = action.deployment().expect("the deployment");
    assert_eq!(failed.status, DeploymentStatus::Failed);
    assert_eq!(
        failed.status_description,
        "Failed due to progress deadline - rolling back to job version 0"
    );
    let reverted = action.job().expect("the job");
    assert_eq!((reverted.version, reverted.submit_time), (2, fixture.now));
    assert!(!reverted.spec_differs(&job(4)));
    assert_eq!(
        action.eval().expect("an evaluation").deployment_id,
        Some(deployment_id())
    );
    fixture.pass(60 * MINUTE);
    assert_eq!(fixture.actions, []);
}

#[test]
fn scenario_077_a_paused_deployment_has_no_deadline_and_resuming_starts_the_clock() {
    let mut fixture = Fixture::deploying(&job(4), group(4), 1);
    fixture.change_deployment(|deployment| deployment.status = DeploymentStatus::Paused);
    fixture.pass(60 * MINUTE);
    assert_eq!(fixture.actions, []);
    let resumed = fixture.now;
    fixture.change_deployment(|deployment| deployment.status = DeploymentStatus::Running);
    assert_eq!(deadline_minutes(&fixture, resumed), Some(10));
    fixture.pass(9 * MINUTE);
    assert_eq!(fixture.actions, []);
    fixture.pass(MINUTE);
    assert_eq!(
        fixture.action().reason,
        Reason::Failed(Cause::ProgressDeadline)
    );
}

#[test]
fn the_clock_starts_with_the_first_allocation() {
    let mut fixture = Fixture::deploying(&job(4), group(4), 0);
    fixture.pass(60 * MINUTE);
    assert_eq!(
        (
            fixture.actions.len(),
            deadline_minutes(&fixture, fixture.now)
        ),
        (0, None)
    );
    let placed = fixture.now;
    fixture.place(1);
    assert_eq!(deadline_minutes(&fixture, placed), Some(10));
    fixture.pass(MINUTE);
    fixture.place(2);
    assert_eq!(
        deadline_minutes(&fixture, placed),
        Some(10),
        "a second placement is no progress"
    );
    fixture.pass(9 * MINUTE);
    assert_eq!(
        fixture.action().reason,
        Reason::Failed(Cause::ProgressDeadline)
    );
}

#[test]
fn an_allocation_updated_in_place_counts_from_the_deployments_start() {
    let mut fixture = Fixture::new(&job(1));
    fixture.place(1);
    fixture.pass(60 * MINUTE);
    let start = fixture.now;
    fixture.put_deployment(group(1));
    assert_eq!(deadline_minutes(&fixture, start), Some(10));
}

#[test]
fn a_healthy_group_has_no_deadline_left() {
    let mut fixture = Fixture::deploying(&job(1), group(1), 1);
    fixture.report(1, true);
    fixture.perform();
    // The scheduler is slow to call it a success.
    fixture.pass(60 * MINUTE);
    assert_eq!(fixture.actions, []);
}

#[test]
fn a_group_without_a_deadline_is_given_all_the_time() {
    let forever = DeploymentGroup {
        progress_deadline: std::time::Duration::ZERO,
        ..group(2)
    };
    let mut fixture = Fixture::deploying(&job(2), forever, 1);
    fixture.pass(10_000 * MINUTE);
    assert_eq!(fixture.actions, []);
}

#[test]
fn each_group_answers_for_its_own_deadline() {
    let mut fixture = Fixture::deploying(&job(2), group(1), 1);
    fixture.change_deployment(|deployment| {
        let slow = DeploymentGroup {
            progress_deadline: 30 * MINUTE,
            ..group(1)
        };
        deployment.groups.insert("slow".to_owned(), slow);
    });
    fixture.place(2);
    fixture.change_alloc(2, |alloc| alloc.task_group = "slow".into());
    fixture.report(1, true);
    fixture.scheduled();
    fixture.actions.clear();
    fixture.pass(29 * MINUTE);
    assert_eq!(fixture.actions, []);
    fixture.pass(MINUTE);
    assert_eq!(
        fixture.action().reason,
        Reason::Failed(Cause::ProgressDeadline)
    );
}

#[test]
fn the_deadline_that_is_shown_stays_when_the_deployment_fails_of_it() {
    let mut fixture = Fixture::deploying(&job(1), group(1), 1);
    let start = fixture.now;
    assert_eq!(deadline_minutes(&fixture, start), Some(10));
    fixture.pass(10 * MINUTE);
    fixture.perform();
    assert_eq!(fixture.deployment().status, DeploymentStatus::Failed);
    assert_eq!(fixture.deployment().modify_time, fixture.now);
    assert_eq!(deadline_minutes(&fixture, start), Some(10));
}
