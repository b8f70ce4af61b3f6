//! New health makes the scheduler look, once.

use std::time::Duration;

use model::{ClientStatus, DeploymentHealth, EvalStatus, Evaluation, JobType, TriggeredBy};

use super::fixture::{Fixture, deployment_id, group, job, key};
use crate::Reason;

const WINDOW: Duration = Duration::from_millis(250);

#[test]
fn the_last_allocation_that_becomes_healthy_makes_the_scheduler_look_at_once() {
    let mut fixture = Fixture::deploying(&job(2), group(2), 2);
    fixture.report(1, true);
    assert_eq!(
        fixture.actions,
        [],
        "the second may follow within the window"
    );
    fixture.report(2, true);
    let action = fixture.perform();
    assert_eq!(action.reason, Reason::Health);
    let eval = action.eval().expect("an evaluation").clone();
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
    assert_eq!(action.writes.len(), 1, "the evaluation and nothing else");
    fixture.pass(Duration::from_secs(60));
    assert_eq!(fixture.actions, [], "one look is enough");
}

#[test]
fn health_that_comes_in_dribs_is_gathered_for_a_window() {
    let mut fixture = Fixture::deploying(&job(3), group(3), 3);
    fixture.report(1, true);
    fixture.pass(WINDOW / 2);
    fixture.report(2, true);
    assert_eq!(fixture.actions, []);
    fixture.pass(WINDOW / 2 - Duration::from_millis(1));
    assert_eq!(fixture.actions, []);
    fixture.pass(Duration::from_millis(1));
    fixture.perform();
    fixture.report(3, true);
    assert_eq!(
        fixture.perform().reason,
        Reason::Health,
        "its health is newer than the last look"
    );
}

#[test]
fn a_verdict_that_a_scheduler_has_seen_needs_no_look() {
    let mut fixture = Fixture::deploying(&job(2), group(2), 2);
    fixture.report(1, true);
    fixture.scheduled();
    fixture.pass(Duration::from_secs(1));
    assert_eq!(fixture.actions, []);
}

#[test]
fn evaluations_that_know_of_a_health_report_suffice() {
    // (status, snapshot relative to the health report, delayed, is an evaluation needed)
    let cases = [
        (EvalStatus::Pending, None, false, false),
        (EvalStatus::Pending, None, true, true),
        (EvalStatus::Complete, Some(0), false, false),
        (EvalStatus::Complete, Some(1), false, true),
        // Made by a plan that did not know of the report, though it is newer.
        (EvalStatus::Blocked, Some(1), false, true),
        (EvalStatus::Blocked, Some(0), false, false),
        (EvalStatus::Canceled, None, false, true),
        // Its follow-up will look.
        (EvalStatus::Failed, None, false, false),
    ];
    for (status, before, delayed, asked) in cases {
        let mut fixture = Fixture::deploying(&job(2), group(2), 2);
        fixture.report(1, true);
        let mut eval = Evaluation {
            status,
            ..fixture.eval()
        };
        if delayed {
            eval.wait_until = fixture.now.plus(Duration::from_secs(600));
        }
        if let Some(before) = before {
            eval.snapshot_index = fixture.revision - before;
        }
        fixture.put_eval(eval);
        fixture.pass(WINDOW);
        assert_eq!(
            fixture.actions.len(),
            usize::from(asked),
            "{status:?} {before:?} {delayed}"
        );
    }
}

#[test]
fn an_update_that_brings_no_new_verdict_is_no_news() {
    let mut fixture = Fixture::deploying(&job(2), group(2), 2);
    fixture.report(1, true);
    fixture.scheduled();
    let said = fixture
        .snapshot()
        .alloc(super::fixture::alloc_id(1))
        .unwrap()
        .health();
    fixture.put_client(1, ClientStatus::Running, said);
    fixture.pass(WINDOW);
    assert_eq!(fixture.actions, []);
}

#[test]
fn a_verdict_about_another_deployment_is_no_news() {
    let mut fixture = Fixture::deploying(&job(1), group(1), 1);
    let other = DeploymentHealth {
        healthy: true,
        time: fixture.now,
        deployment_id: Some(model::DeploymentId::from_random(2)),
    };
    fixture.put_client(1, ClientStatus::Running, Some(other));
    fixture.pass(WINDOW);
    assert_eq!(fixture.actions, []);
    assert_eq!(fixture.rollout.len(), 1, "nor is anything remembered of it");
}

#[test]
fn a_new_leader_requests_a_missing_evaluation() {
    let mut fixture = Fixture::deploying(&job(2), group(2), 2);
    fixture.report(1, true);
    fixture.elect();
    fixture.pass(WINDOW);
    assert_eq!(fixture.perform().reason, Reason::Health);
    fixture.elect();
    fixture.pass(WINDOW);
    assert_eq!(fixture.actions, [], "the evaluation is there");
}

#[test]
fn an_action_that_was_not_written_is_asked_for_again() {
    let mut fixture = Fixture::deploying(&job(1), group(1), 1);
    fixture.report(1, true);
    let first = fixture.action();
    fixture.rollout.examine_again(deployment_id());
    fixture.step();
    let second = fixture.action();
    assert_eq!(first.reason, second.reason);
}

#[test]
fn a_paused_stopped_or_newer_job_is_left_to_others() {
    let mut paused = Fixture::deploying(&job(1), group(1), 1);
    paused.change_deployment(|deployment| deployment.status = model::DeploymentStatus::Paused);
    let mut stopped = Fixture::deploying(&job(1), group(1), 1);
    stopped.put_job(&model::Job {
        stop: true,
        ..job(1)
    });
    let mut newer = Fixture::deploying(&job(1), group(1), 1);
    newer.put_job(&model::Job {
        version: 1,
        ..job(1)
    });
    for (name, fixture) in [
        ("paused", &mut paused),
        ("stopped", &mut stopped),
        ("newer", &mut newer),
    ] {
        fixture.report(1, false);
        fixture.pass(Duration::from_secs(3_600));
        assert_eq!(fixture.actions, [], "{name}");
        assert_eq!(fixture.rollout.next_deadline(), None, "{name}");
    }
}
