//! Until when a deployment must get further.

use model::{DeploymentGroup, DeploymentStatus};

use super::site::{MINUTE, Site, alloc_id, deployment_id, group, job};
use crate::{Cause, Reason, require_progress_by};

fn canaries(auto_promote: bool) -> DeploymentGroup {
    DeploymentGroup {
        desired_canaries: 1,
        auto_promote,
        placed_canaries: vec![alloc_id(1)],
        ..group(4)
    }
}

fn deadline_minutes(site: &Site, since: model::Timestamp) -> Option<u128> {
    let by = require_progress_by(&site.snapshot(), &site.deployment(), "web")?;
    Some(by.since(since).as_secs().into()).map(|seconds: u128| seconds / 60)
}

#[test]
fn scenario_073_a_canary_that_waits_for_promotion_does_not_fail() {
    let mut site = Site::deploying(&job(4), canaries(false), 1);
    site.pass(MINUTE);
    site.report(1, true);
    site.perform();
    site.scheduled();
    site.pass(30 * MINUTE);
    assert_eq!(site.actions, []);
    // A user promotes; from now on the group must progress.
    let promoted = site.now;
    site.change_deployment(|deployment| {
        deployment
            .groups
            .get_mut("web")
            .expect("the group")
            .promoted = true;
    });
    assert_eq!(deadline_minutes(&site, promoted), Some(10));
    site.pass(10 * MINUTE);
    assert_eq!(
        site.action().reason,
        Reason::Failed(Cause::ProgressDeadline)
    );
}

#[test]
fn scenario_074_each_health_starts_the_clock_anew_and_a_standstill_fails_and_reverts() {
    let mut site = Site::new(&job(4));
    site.mark_stable(0);
    let mut newer = model::Job {
        version: 1,
        ..job(4)
    };
    newer.meta.insert("release".to_owned(), "2".to_owned());
    site.put_job(&newer);
    let start = site.now;
    site.put_deployment(DeploymentGroup {
        auto_revert: true,
        ..group(4)
    });
    site.place(1);
    site.pass(9 * MINUTE);
    site.report(1, true);
    site.perform();
    site.scheduled();
    assert_eq!(deadline_minutes(&site, start), Some(19));
    site.pass(10 * MINUTE - std::time::Duration::from_millis(1));
    assert_eq!(site.actions, []);
    site.pass(std::time::Duration::from_millis(1));

    let action = site.perform();
    assert_eq!(action.reason, Reason::Failed(Cause::ProgressDeadline));
    let failed = action.deployment.expect("the deployment").value;
    assert_eq!(failed.status, DeploymentStatus::Failed);
    assert_eq!(
        failed.status_description,
        "Failed due to progress deadline - rolling back to job version 0"
    );
    let reverted = action.job.expect("the job").value;
    assert_eq!((reverted.version, reverted.submit_time), (2, site.now));
    assert!(!reverted.spec_differs(&job(4)));
    assert_eq!(
        action.eval.expect("an evaluation").deployment_id,
        Some(deployment_id())
    );
    site.pass(60 * MINUTE);
    assert_eq!(site.actions, []);
}

#[test]
fn scenario_077_a_paused_deployment_has_no_deadline_and_resuming_starts_the_clock() {
    let mut site = Site::deploying(&job(4), group(4), 1);
    site.change_deployment(|deployment| deployment.status = DeploymentStatus::Paused);
    site.pass(60 * MINUTE);
    assert_eq!(site.actions, []);
    let resumed = site.now;
    site.change_deployment(|deployment| deployment.status = DeploymentStatus::Running);
    assert_eq!(deadline_minutes(&site, resumed), Some(10));
    site.pass(9 * MINUTE);
    assert_eq!(site.actions, []);
    site.pass(MINUTE);
    assert_eq!(
        site.action().reason,
        Reason::Failed(Cause::ProgressDeadline)
    );
}

#[test]
fn the_clock_starts_with_the_first_allocation() {
    let mut site = Site::deploying(&job(4), group(4), 0);
    site.pass(60 * MINUTE);
    assert_eq!(
        (site.actions.len(), deadline_minutes(&site, site.now)),
        (0, None)
    );
    let placed = site.now;
    site.place(1);
    assert_eq!(deadline_minutes(&site, placed), Some(10));
    site.pass(MINUTE);
    site.place(2);
    assert_eq!(
        deadline_minutes(&site, placed),
        Some(10),
        "a second placement is no progress"
    );
    site.pass(9 * MINUTE);
    assert_eq!(
        site.action().reason,
        Reason::Failed(Cause::ProgressDeadline)
    );
}

#[test]
fn an_allocation_updated_in_place_counts_from_the_deployments_start() {
    let mut site = Site::new(&job(1));
    site.place(1);
    site.pass(60 * MINUTE);
    let start = site.now;
    site.put_deployment(group(1));
    assert_eq!(deadline_minutes(&site, start), Some(10));
}

#[test]
fn a_group_that_has_what_it_wants_has_no_deadline_left() {
    let mut site = Site::deploying(&job(1), group(1), 1);
    site.report(1, true);
    site.perform();
    // The scheduler is slow to call it a success.
    site.pass(60 * MINUTE);
    assert_eq!(site.actions, []);
}

#[test]
fn a_group_without_a_deadline_is_given_all_the_time() {
    let forever = DeploymentGroup {
        progress_deadline: std::time::Duration::ZERO,
        ..group(2)
    };
    let mut site = Site::deploying(&job(2), forever, 1);
    site.pass(10_000 * MINUTE);
    assert_eq!(site.actions, []);
}

#[test]
fn each_group_answers_for_its_own_deadline() {
    let mut site = Site::deploying(&job(2), group(1), 1);
    site.change_deployment(|deployment| {
        let slow = DeploymentGroup {
            progress_deadline: 30 * MINUTE,
            ..group(1)
        };
        deployment.groups.insert("slow".to_owned(), slow);
    });
    site.place(2);
    site.change_alloc(2, |alloc| alloc.task_group = "slow".into());
    site.report(1, true);
    site.scheduled();
    site.actions.clear();
    site.pass(29 * MINUTE);
    assert_eq!(site.actions, []);
    site.pass(MINUTE);
    assert_eq!(
        site.action().reason,
        Reason::Failed(Cause::ProgressDeadline)
    );
}

#[test]
fn the_deadline_that_is_shown_stays_when_the_deployment_fails_of_it() {
    let mut site = Site::deploying(&job(1), group(1), 1);
    let start = site.now;
    assert_eq!(deadline_minutes(&site, start), Some(10));
    site.pass(10 * MINUTE);
    site.perform();
    assert_eq!(site.deployment().status, DeploymentStatus::Failed);
    assert_eq!(site.deployment().modify_time, site.now);
    assert_eq!(deadline_minutes(&site, start), Some(10));
}
