//! New health makes the scheduler look, once.

use std::time::Duration;

use model::{ClientStatus, DeploymentHealth, EvalStatus, Evaluation, JobType, TriggeredBy};

use super::site::{Site, deployment_id, group, job, key};
use crate::Reason;

const WINDOW: Duration = Duration::from_millis(250);

#[test]
fn the_last_allocation_that_becomes_healthy_makes_the_scheduler_look_at_once() {
    let mut site = Site::deploying(&job(2), group(2), 2);
    site.report(1, true);
    assert_eq!(site.actions, [], "the second may follow within the window");
    site.report(2, true);
    let action = site.perform();
    assert_eq!(action.reason, Reason::Health);
    let eval = action.eval.expect("an evaluation");
    assert_eq!(
        (eval.job, eval.deployment_id),
        (key(), Some(deployment_id()))
    );
    assert_eq!(
        (eval.triggered_by, eval.status, eval.priority, eval.job_type),
        (
            TriggeredBy::DeploymentWatcher,
            EvalStatus::Pending,
            70,
            JobType::Service
        )
    );
    assert!(action.deployment.is_none() && action.job.is_none() && action.stable.is_none());
    site.pass(Duration::from_secs(60));
    assert_eq!(site.actions, [], "one look is enough");
}

#[test]
fn health_that_comes_in_dribs_is_gathered_for_a_window() {
    let mut site = Site::deploying(&job(3), group(3), 3);
    site.report(1, true);
    site.pass(WINDOW / 2);
    site.report(2, true);
    assert_eq!(site.actions, []);
    site.pass(WINDOW / 2 - Duration::from_millis(1));
    assert_eq!(site.actions, []);
    site.pass(Duration::from_millis(1));
    site.perform();
    site.report(3, true);
    assert_eq!(
        site.perform().reason,
        Reason::Health,
        "its health is newer than the last look"
    );
}

#[test]
fn a_verdict_that_a_scheduler_has_seen_needs_no_look() {
    let mut site = Site::deploying(&job(2), group(2), 2);
    site.report(1, true);
    site.scheduled();
    site.pass(Duration::from_secs(1));
    assert_eq!(site.actions, []);
}

#[test]
fn what_counts_as_having_looked() {
    // (status, snapshot relative to the verdict, delayed, must a look be asked for)
    let cases = [
        (EvalStatus::Pending, None, false, false),
        (EvalStatus::Pending, None, true, true),
        (EvalStatus::Complete, Some(0), false, false),
        (EvalStatus::Complete, Some(1), false, true),
        // Made by a plan that did not know of the verdict, though it is newer.
        (EvalStatus::Blocked, Some(1), false, true),
        (EvalStatus::Blocked, Some(0), false, false),
        (EvalStatus::Canceled, None, false, true),
        // Its follow-up will look.
        (EvalStatus::Failed, None, false, false),
    ];
    for (status, before, delayed, asked) in cases {
        let mut site = Site::deploying(&job(2), group(2), 2);
        site.report(1, true);
        let mut eval = Evaluation {
            status,
            ..site.eval()
        };
        if delayed {
            eval.wait_until = site.now.plus(Duration::from_secs(600));
        }
        if let Some(before) = before {
            eval.snapshot_index = site.revision - before;
        }
        site.put_eval(eval);
        site.pass(WINDOW);
        assert_eq!(
            site.actions.len(),
            usize::from(asked),
            "{status:?} {before:?} {delayed}"
        );
    }
}

#[test]
fn an_update_that_brings_no_new_verdict_is_no_news() {
    let mut site = Site::deploying(&job(2), group(2), 2);
    site.report(1, true);
    site.scheduled();
    let said = site
        .snapshot()
        .alloc(super::site::alloc_id(1))
        .unwrap()
        .health();
    site.put_client(1, ClientStatus::Running, said);
    site.pass(WINDOW);
    assert_eq!(site.actions, []);
}

#[test]
fn a_verdict_about_another_deployment_is_no_news() {
    let mut site = Site::deploying(&job(1), group(1), 1);
    let other = DeploymentHealth {
        healthy: true,
        time: site.now,
        deployment_id: Some(model::DeploymentId::from_random(2)),
    };
    site.put_client(1, ClientStatus::Running, Some(other));
    site.pass(WINDOW);
    assert_eq!(site.actions, []);
    assert_eq!(site.rollout.len(), 1, "nor is anything remembered of it");
}

#[test]
fn a_new_leader_asks_for_what_the_old_one_did_not() {
    let mut site = Site::deploying(&job(2), group(2), 2);
    site.report(1, true);
    site.elect();
    site.pass(WINDOW);
    assert_eq!(site.perform().reason, Reason::Health);
    site.elect();
    site.pass(WINDOW);
    assert_eq!(site.actions, [], "the evaluation is there");
}

#[test]
fn an_action_that_was_not_written_is_asked_for_again() {
    let mut site = Site::deploying(&job(1), group(1), 1);
    site.report(1, true);
    let first = site.action();
    site.rollout.look_again(deployment_id());
    site.step();
    let second = site.action();
    assert_eq!(first.reason, second.reason);
}

#[test]
fn a_paused_stopped_or_newer_job_is_left_to_others() {
    let mut paused = Site::deploying(&job(1), group(1), 1);
    paused.change_deployment(|deployment| deployment.status = model::DeploymentStatus::Paused);
    let mut stopped = Site::deploying(&job(1), group(1), 1);
    stopped.put_job(&model::Job {
        stop: true,
        ..job(1)
    });
    let mut newer = Site::deploying(&job(1), group(1), 1);
    newer.put_job(&model::Job {
        version: 1,
        ..job(1)
    });
    for (name, site) in [
        ("paused", &mut paused),
        ("stopped", &mut stopped),
        ("newer", &mut newer),
    ] {
        site.report(1, false);
        site.pass(Duration::from_secs(3_600));
        assert_eq!(site.actions, [], "{name}");
        assert_eq!(site.rollout.next_deadline(), None, "{name}");
    }
}
