//! Unhealthy allocations, reverts, and jobs that are no more.

use std::time::Duration;

use model::{Deployment, DeploymentGroup, DeploymentStatus, DesiredStatus, Job};
use state::{Key, Write};

use super::fixture::{Fixture, MINUTE, alloc_id, deployment_id, expected_index, group, job, key};
use crate::{Action, Cause, Reason};

fn description(action: &Action) -> &str {
    let deployment: &Deployment = action.deployment().expect("the deployment");
    assert_eq!(deployment.status, DeploymentStatus::Failed);
    &deployment.status_description
}

/// A job of which nothing that failed is replaced.
fn without_reschedule(count: u32) -> Job {
    let mut job = job(count);
    job.task_groups[0].reschedule = None;
    job
}

fn reverting() -> DeploymentGroup {
    DeploymentGroup {
        auto_revert: true,
        ..group(1)
    }
}

#[test]
fn scenario_076_without_time_to_progress_an_unhealthy_alloc_fails_the_deployment() {
    let hasty = DeploymentGroup {
        progress_deadline: Duration::ZERO,
        ..group(2)
    };
    let mut fixture = Fixture::deploying(&job(2), hasty, 2);
    fixture.report(1, false);
    let action = fixture.perform();
    assert_eq!(action.reason, Reason::Failed(Cause::Unhealthy));
    assert_eq!(description(&action), "Failed due to unhealthy allocations");
    assert!(action.job().is_none());
    assert!(
        action.eval().is_some(),
        "the scheduler stops what is under way"
    );
    assert_eq!(fixture.actions, []);
}

#[test]
fn an_unhealthy_alloc_that_nothing_may_replace_fails_the_deployment() {
    let mut fixture = Fixture::deploying(&without_reschedule(2), group(2), 2);
    fixture.report(1, false);
    assert_eq!(fixture.action().reason, Reason::Failed(Cause::Unhealthy));
}

#[test]
fn an_unhealthy_alloc_that_may_be_replaced_makes_the_scheduler_look() {
    let mut fixture = Fixture::deploying(&job(1), group(1), 1);
    fixture.report(1, false);
    let action = fixture.perform();
    assert_eq!(action.reason, Reason::Health);
    assert!(action.deployment().is_none() && action.eval().is_some());
}

/// The scheduler replaces it once the delay is over.
#[test]
fn a_first_attempt_is_waited_for_even_if_its_delay_is_as_long_as_the_interval() {
    let mut job = job(1);
    let policy = job.task_groups[0].reschedule.as_mut().unwrap();
    (policy.unlimited, policy.attempts) = (false, 1);
    (policy.delay, policy.interval) = (MINUTE, MINUTE);
    let mut fixture = Fixture::deploying(&job, group(1), 1);
    fixture.report(1, false);
    assert_eq!(fixture.perform().reason, Reason::Health);
}

#[test]
fn an_unhealthy_alloc_that_was_replaced_is_forgiven() {
    for replaced in [true, false] {
        let mut fixture = Fixture::deploying(&without_reschedule(1), group(1), 1);
        fixture.change_alloc(1, |alloc| {
            if replaced {
                alloc.next_alloc = Some(alloc_id(2));
            } else {
                alloc.desired_status = DesiredStatus::Stop;
            }
        });
        fixture.report(1, false);
        assert!(
            fixture
                .actions
                .iter()
                .all(|action| action.reason == Reason::Health),
            "{replaced}"
        );
    }
}

#[test]
fn a_failure_without_a_stable_version_says_so() {
    let mut fixture = Fixture::deploying(&without_reschedule(1), reverting(), 1);
    fixture.report(1, false);
    let action = fixture.action();
    assert_eq!(
        description(&action),
        "Failed due to unhealthy allocations - no stable job version to auto revert to"
    );
    assert!(action.job().is_none() && action.eval().is_some());
    let ended = &action.deployment().unwrap().groups["web"];
    let counts = ended.final_counts.unwrap();
    assert_eq!((counts.placed, counts.healthy, counts.unhealthy), (1, 0, 1));
}

#[test]
fn scenario_075_a_job_that_is_its_own_stable_version_is_not_written_again() {
    let mut fixture = Fixture::new(&without_reschedule(1));
    fixture.mark_stable(0);
    fixture.put_job(&Job {
        version: 1,
        ..without_reschedule(1)
    });
    fixture.put_deployment(reverting());
    fixture.place(1);
    fixture.report(1, false);
    let action = fixture.action();
    assert_eq!(
        description(&action),
        "Failed due to unhealthy allocations - not rolling back to stable job version 0 as \
         current job has same specification"
    );
    assert!(action.job().is_none());
}

#[test]
fn a_revert_takes_the_newest_stable_version_and_only_where_its_group_asks() {
    for auto_revert in [true, false] {
        let mut fixture = Fixture::new(&without_reschedule(1));
        for version in 0..4 {
            let mut job = Job {
                version,
                ..without_reschedule(1)
            };
            job.meta.insert("release".to_owned(), version.to_string());
            fixture.put_job(&job);
            if version < 2 {
                fixture.mark_stable(version);
            }
        }
        let before = fixture.snapshot().job(&key()).unwrap().modify_index;
        fixture.put_deployment(DeploymentGroup {
            auto_revert,
            ..group(1)
        });
        fixture.place(1);
        fixture.report(1, false);
        let action = fixture.action();
        let Some(job) = action.job() else {
            assert!(!auto_revert);
            continue;
        };
        assert!(auto_revert);
        assert_eq!(
            expected_index(&action, &Key::Job(key())),
            Some(before),
            "written only if it is unchanged"
        );
        assert_eq!((job.version, job.meta["release"].as_str()), (4, "1"));
    }
}

#[test]
fn the_deployment_of_a_job_that_is_gone_is_cancelled() {
    let mut fixture = Fixture::deploying(&job(1), group(1), 1);
    fixture.delete(Key::Job(key()));
    let action = fixture.perform();
    assert_eq!(action.reason, Reason::JobGone);
    assert_eq!(
        action.deployment().unwrap().status,
        DeploymentStatus::Cancelled
    );
    assert!(action.eval().is_none());
    // The store may have a job that only later versions can decode.
    let absent = Write::RequireAbsent {
        key: Key::Job(key()),
    };
    assert!(action.writes.contains(&absent));

    // Another job of the same name is not the one that was deployed.
    let mut fixture = Fixture::deploying(&job(1), group(1), 1);
    fixture.delete(Key::Job(key()));
    fixture.actions.clear();
    fixture.put_job(&job(1));
    let action = fixture.action();
    assert_eq!(action.reason, Reason::JobGone);
    let read = fixture.snapshot().job(&key()).unwrap().modify_index;
    assert_eq!(expected_index(&action, &Key::Job(key())), Some(read));
}

#[test]
fn writes_compare_the_revisions_that_were_read() {
    let mut fixture = Fixture::deploying(&without_reschedule(1), group(1), 1);
    let read = fixture.stored_deployment().modify_index;
    fixture.report(1, false);
    let key = Key::Deployment(deployment_id());
    assert_eq!(expected_index(&fixture.action(), &key), Some(read));
}

#[test]
fn nothing_goes_back_to_a_version_that_was_stopped() {
    let mut fixture = Fixture::new(&without_reschedule(1));
    fixture.mark_stable(0);
    for (version, stop) in [(1, true), (2, false)] {
        let mut job = Job {
            version,
            stop,
            ..without_reschedule(1)
        };
        job.meta.insert("release".to_owned(), version.to_string());
        fixture.put_job(&job);
    }
    // It was stable while it ran; that it was stopped is a version of its own.
    fixture.mark_stable(1);
    fixture.put_deployment(reverting());
    fixture.place(1);
    fixture.report(1, false);
    let action = fixture.action();
    let job = action.job().expect("it goes back");
    assert!(!job.stop && !job.meta.contains_key("release"));
}

#[test]
fn one_late_group_that_asks_for_it_takes_the_job_back() {
    for asking in ["api", "web"] {
        let mut fixture = Fixture::new(&job(1));
        fixture.mark_stable(0);
        let mut newer = Job {
            version: 1,
            ..job(1)
        };
        newer.meta.insert("release".to_owned(), "2".to_owned());
        fixture.put_job(&newer);
        fixture.put_deployment(group(1));
        fixture.change_deployment(|it| {
            it.groups.insert("api".to_owned(), group(1));
            it.groups.get_mut(asking).expect("the group").auto_revert = true;
        });
        fixture.place(1);
        fixture.place(2);
        fixture.change_alloc(2, |alloc| alloc.task_group = "api".into());
        fixture.scheduled();
        fixture.pass(10 * MINUTE);
        let action = fixture.action();
        assert_eq!(action.reason, Reason::Failed(Cause::ProgressDeadline));
        assert!(action.job().is_some(), "{asking} asks for it");
    }
}
