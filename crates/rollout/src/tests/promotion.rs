//! Promotion without being asked, and canaries that are not well.

use std::time::Duration;

use model::{ClientStatus, DeploymentGroup, DeploymentStatus, DesiredStatus};

use super::fixture::{Fixture, MINUTE, alloc_id, group, job};
use crate::{Cause, Reason};

fn canaries(desired: u32) -> DeploymentGroup {
    DeploymentGroup {
        desired_canaries: desired,
        auto_promote: true,
        placed_canaries: (1..=desired).map(alloc_id).collect(),
        ..group(4)
    }
}

#[test]
fn healthy_canaries_are_promoted_with_auto_promote() {
    let mut fixture = Fixture::deploying(&job(4), canaries(2), 2);
    fixture.report(1, true);
    fixture.pass(MINUTE);
    assert_eq!(fixture.perform().reason, Reason::Health, "one of two");
    fixture.scheduled();
    fixture.report(2, true);
    let action = fixture.perform();
    assert_eq!(action.reason, Reason::AutoPromoted);
    let promoted = action.deployment().expect("the deployment");
    assert!(promoted.groups["web"].promoted);
    assert!(action.eval().is_some(), "the others follow");
    assert_eq!(fixture.actions, [], "once");
}

#[test]
fn scenario_078_one_group_that_waits_for_a_user_holds_up_the_others() {
    let mut fixture = Fixture::deploying(&job(4), canaries(1), 2);
    fixture.change_deployment(|deployment| {
        let asks = DeploymentGroup {
            auto_promote: false,
            placed_canaries: vec![alloc_id(2)],
            ..canaries(1)
        };
        deployment.groups.insert("asks".to_owned(), asks);
    });
    fixture.change_alloc(2, |alloc| alloc.task_group = "asks".into());
    fixture.report(1, true);
    fixture.report(2, true);
    assert_eq!(fixture.perform().reason, Reason::Health);
    fixture.scheduled();
    fixture.pass(60 * MINUTE);
    assert_eq!(fixture.actions, []);
    // Once the user has promoted that group, nothing is left to ask for.
    fixture.change_deployment(|deployment| {
        deployment.groups.get_mut("asks").unwrap().promoted = true;
    });
    assert_eq!(fixture.perform().reason, Reason::AutoPromoted);
}

#[test]
fn a_paused_deployment_is_not_promoted() {
    let mut fixture = Fixture::deploying(&job(4), canaries(1), 1);
    fixture.change_deployment(|deployment| deployment.status = DeploymentStatus::Paused);
    fixture.report(1, true);
    fixture.pass(60 * MINUTE);
    assert_eq!(fixture.actions, []);
    fixture.change_deployment(|deployment| deployment.status = DeploymentStatus::Running);
    assert_eq!(fixture.perform().reason, Reason::AutoPromoted);
}

#[test]
fn canaries_that_were_healthy_one_after_the_other_are_not_promoted_and_fail_in_the_end() {
    let mut fixture = Fixture::deploying(&job(4), canaries(2), 2);
    fixture.report(1, true);
    let said = fixture.snapshot().alloc(alloc_id(1)).unwrap().health();
    fixture.put_client(1, ClientStatus::Failed, said);
    fixture.scheduled();
    fixture.actions.clear();
    fixture.report(2, true);
    fixture.scheduled();
    fixture.actions.clear();
    let last = fixture.now;
    fixture.pass(60 * MINUTE);
    let action = fixture.action();
    assert_eq!(action.reason, Reason::Failed(Cause::ProgressDeadline));
    let failed = action.deployment().unwrap();
    assert_eq!(failed.modify_time, last.plus(10 * MINUTE));
}

#[test]
fn healthy_allocations_that_are_no_canaries_do_not_count_for_the_promotion() {
    for auto_promote in [true, false] {
        let mut fixture = Fixture::deploying(
            &job(4),
            DeploymentGroup {
                auto_promote,
                ..canaries(1)
            },
            2,
        );
        fixture.report(2, true);
        fixture.scheduled();
        fixture.actions.clear();
        fixture.pass(60 * MINUTE);
        assert_eq!(
            fixture.action().reason,
            Reason::Failed(Cause::ProgressDeadline)
        );
    }
}

#[test]
fn a_canary_that_fails_while_a_user_takes_time_fails_the_deployment_as_late() {
    for (waited, cause) in [
        (Duration::ZERO, Cause::Unhealthy),
        (30 * MINUTE, Cause::ProgressDeadline),
    ] {
        let mut job = job(4);
        job.task_groups[0].reschedule = None;
        let asks = DeploymentGroup {
            auto_promote: false,
            ..canaries(1)
        };
        let mut fixture = Fixture::deploying(&job, asks, 1);
        fixture.report(1, true);
        fixture.scheduled();
        fixture.actions.clear();
        fixture.pass(waited);
        assert_eq!(fixture.actions, []);
        fixture.report(1, false);
        assert_eq!(fixture.action().reason, Reason::Failed(cause));
    }
}

#[test]
fn a_canary_beside_enough_healthy_ones_that_fails_late_fails_the_deployment_as_late() {
    for (waited, cause) in [
        (Duration::ZERO, Cause::Unhealthy),
        (30 * MINUTE, Cause::ProgressDeadline),
    ] {
        let mut job = job(4);
        job.task_groups[0].reschedule = None;
        let asks = DeploymentGroup {
            auto_promote: false,
            placed_canaries: vec![alloc_id(1), alloc_id(2)],
            ..canaries(1)
        };
        let mut fixture = Fixture::deploying(&job, asks, 2);
        fixture.report(1, true);
        fixture.report(2, true);
        fixture.scheduled();
        fixture.actions.clear();
        fixture.pass(waited);
        assert_eq!(fixture.actions, []);
        fixture.report(2, false);
        assert_eq!(fixture.action().reason, Reason::Failed(cause));
    }
}

#[test]
fn a_user_is_waited_for_whatever_has_become_of_canaries_that_were_healthy() {
    let asks = DeploymentGroup {
        auto_promote: false,
        ..canaries(1)
    };
    let mut fixture = Fixture::deploying(&job(4), asks, 1);
    fixture.report(1, true);
    fixture.scheduled();
    fixture.change_alloc(1, |alloc| alloc.desired_status = DesiredStatus::Stop);
    fixture.actions.clear();
    fixture.pass(60 * MINUTE);
    assert_eq!(fixture.actions, []);
}
