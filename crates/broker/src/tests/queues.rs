//! Order, job_locks and delays.

use std::time::Duration;

use model::{EvalStatus, Evaluation, JobKey, JobType};

use super::fixture::{Fixture, WORKER, eval, eval_id};
use crate::{SessionId, State};

fn with_priority(number: u128, job: &str, priority: u8) -> Evaluation {
    Evaluation {
        priority,
        ..eval(number, job)
    }
}

#[test]
fn scenario_029_the_newest_pending_eval_follows_and_the_rest_are_canceled() {
    let mut fixture = Fixture::with_worker(1);
    for number in 1..=3 {
        fixture.put(&[eval(number, "j")]);
    }
    let first = fixture.delivery();
    assert_eq!(first.eval_id, eval_id(1));
    assert_eq!(
        [fixture.state(2), fixture.state(3)],
        [Some(State::Pending); 2]
    );

    fixture.credit(1);
    fixture.ack(first.eval_id, first.token).unwrap();
    assert_eq!(
        fixture.deliveries(),
        [],
        "the outcome has not been seen yet"
    );
    fixture.complete(first.eval_id);
    assert_eq!(fixture.delivered(), [eval_id(3)]);
    fixture.pass(Duration::from_secs(5));
    assert_eq!(fixture.cancelled(), [eval_id(2)]);
}

#[test]
fn scenario_030_a_pending_eval_of_higher_priority_wins_over_a_newer_one() {
    let mut fixture = Fixture::with_worker(2);
    fixture.put(&[eval(1, "j")]);
    fixture.put(&[with_priority(2, "j", 80)]);
    fixture.put(&[with_priority(3, "j", 50)]);
    assert_eq!(fixture.delivered(), [eval_id(1)]);
    fixture.complete(eval_id(1));
    assert_eq!(fixture.delivered(), [eval_id(2)]);
    fixture.pass(Duration::from_secs(1));
    assert_eq!(fixture.cancelled(), [eval_id(3)]);
}

#[test]
fn scenario_031_the_higher_priority_is_delivered_first() {
    let mut fixture = Fixture::new();
    fixture.put(&[with_priority(1, "j1", 50)]);
    fixture.put(&[with_priority(2, "j2", 90)]);
    fixture.put(&[with_priority(3, "j3", 50)]);
    fixture.open(WORKER, &JobType::ALL, 3);
    assert_eq!(fixture.delivered(), [2, 1, 3].map(eval_id));
}

#[test]
fn scenario_032_equal_heads_of_two_types_are_drawn_evenly() {
    let mut fixture = Fixture::with_worker(0);
    let batch = |number| Evaluation {
        job_type: JobType::Batch,
        ..eval(number, &format!("b{number}"))
    };
    fixture.put(&[eval(1, "s1"), batch(2)]);
    let mut services = 0;
    for number in 3..1_003 {
        fixture.credit(1);
        let delivery = fixture.delivery();
        fixture.complete(delivery.eval_id);
        if delivery.job_type == JobType::Service {
            services += 1;
            fixture.put(&[eval(number, &format!("s{number}"))]);
        } else {
            fixture.put(&[batch(number)]);
        }
    }
    // 500 expected, standard deviation 16.
    assert!((420..=580).contains(&services), "{services} of 1,000");
}

#[test]
fn the_head_of_every_type_is_its_best() {
    let mut fixture = Fixture::new();
    let batch = |number, job, priority| Evaluation {
        job_type: JobType::Batch,
        ..with_priority(number, job, priority)
    };
    fixture.put(&[with_priority(1, "s1", 20), with_priority(2, "s2", 60)]);
    fixture.put(&[batch(3, "b1", 90), batch(4, "b2", 40)]);
    fixture.open(WORKER, &JobType::ALL, 4);
    assert_eq!(fixture.delivered(), [3, 2, 4, 1].map(eval_id));
}

#[test]
fn a_worker_is_sent_only_types_it_takes() {
    let mut fixture = Fixture::new();
    fixture.open(WORKER, &[JobType::Batch], 5);
    fixture.put(&[
        eval(1, "s1"),
        Evaluation {
            job_type: JobType::Batch,
            ..eval(2, "b1")
        },
    ]);
    assert_eq!(fixture.delivered(), [eval_id(2)]);
    fixture.open(SessionId(2), &[JobType::Service], 1);
    let delivery = fixture.delivery();
    assert_eq!(
        (delivery.eval_id, delivery.session),
        (eval_id(1), SessionId(2))
    );
}

#[test]
fn no_credit_no_delivery_and_credit_adds_up() {
    let mut fixture = Fixture::with_worker(1);
    fixture.put(&[eval(1, "a"), eval(2, "b"), eval(3, "c"), eval(4, "d")]);
    assert_eq!(fixture.delivered(), [eval_id(1)]);
    fixture.credit(2);
    assert_eq!(fixture.delivered(), [2, 3].map(eval_id));
    fixture.credit(1);
    assert_eq!(fixture.delivered(), [eval_id(4)]);
}

#[test]
fn workers_with_credit_take_turns() {
    let mut fixture = Fixture::new();
    fixture.open(SessionId(1), &JobType::ALL, 2);
    fixture.open(SessionId(2), &JobType::ALL, 2);
    fixture.put(&[eval(1, "a"), eval(2, "b"), eval(3, "c"), eval(4, "d")]);
    let sessions: Vec<u64> = fixture
        .deliveries()
        .iter()
        .map(|delivery| delivery.session.0)
        .collect();
    assert_eq!(sessions, [1, 2, 1, 2]);
}

#[test]
fn scenario_039_a_delayed_eval_does_not_hold_its_jobs_turn() {
    let mut fixture = Fixture::with_worker(5);
    let later = fixture.now.plus(Duration::from_secs(30));
    fixture.put(&[Evaluation {
        wait_until: later,
        ..eval(1, "j")
    }]);
    fixture.put(&[eval(2, "j")]);
    assert_eq!(fixture.delivered(), [eval_id(2)]);
    assert_eq!(fixture.state(1), Some(State::Delayed));
    fixture.complete(eval_id(2));

    fixture.pass(Duration::from_millis(29_999));
    assert_eq!(fixture.deliveries(), []);
    fixture.pass(Duration::from_millis(1));
    assert_eq!(fixture.delivered(), [eval_id(1)]);
}

#[test]
fn a_delayed_eval_that_comes_due_waits_behind_its_jobs_other() {
    let mut fixture = Fixture::with_worker(5);
    let later = fixture.now.plus(Duration::from_secs(1));
    fixture.put(&[
        Evaluation {
            wait_until: later,
            ..eval(1, "j")
        },
        eval(2, "j"),
    ]);
    assert_eq!(fixture.delivered(), [eval_id(2)]);
    fixture.pass(Duration::from_secs(2));
    assert_eq!(fixture.state(1), Some(State::Pending));
    fixture.complete(eval_id(2));
    assert_eq!(fixture.delivered(), [eval_id(1)]);
}

#[test]
fn jobs_of_the_same_id_in_two_namespaces_have_their_own_turns() {
    let mut fixture = Fixture::with_worker(5);
    let other = Evaluation {
        job: JobKey::new("prod", "j"),
        ..eval(2, "j")
    };
    fixture.put(&[eval(1, "j"), other]);
    assert_eq!(fixture.delivered(), [1, 2].map(eval_id));
}

#[test]
fn an_eval_that_is_canceled_elsewhere_leaves_wherever_it_is() {
    let mut fixture = Fixture::new();
    let later = fixture.now.plus(Duration::from_secs(30));
    fixture.put(&[eval(1, "a"), eval(2, "a"), eval(3, "b")]);
    fixture.put(&[Evaluation {
        wait_until: later,
        ..eval(4, "c")
    }]);
    for number in [2, 1, 3, 4] {
        fixture.finish(eval_id(number), EvalStatus::Canceled);
        assert_eq!(fixture.state(number), None, "eval {number}");
    }
    assert!(fixture.broker.is_empty());
    fixture.open(WORKER, &JobType::ALL, 5);
    fixture.pass(Duration::from_secs(60));
    assert_eq!(fixture.effects, []);
}

#[test]
fn the_turn_passes_on_when_its_owner_is_canceled_before_delivery() {
    let mut fixture = Fixture::new();
    fixture.put(&[eval(1, "a"), eval(2, "a")]);
    fixture.finish(eval_id(1), EvalStatus::Canceled);
    fixture.open(WORKER, &JobType::ALL, 5);
    assert_eq!(fixture.delivered(), [eval_id(2)]);
}
