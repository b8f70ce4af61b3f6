//! Tokens, time-outs, back-off and the delivery limit.

use std::time::Duration;

use model::{EvalStatus, Evaluation, JobType};

use super::fixture::{Fixture, WORKER, blocked, eval, eval_id};
use crate::{Effect, NotOutstanding, ReturnReason, SessionId, State, Token};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

#[test]
fn scenario_033_silence_is_a_nack_with_growing_delays_and_a_limit() {
    let mut fixture = Fixture::with_worker(10);
    fixture.put(&[eval(1, "j")]);
    for (attempt, delay) in [(1, Some(1)), (2, Some(20)), (3, None)] {
        assert_eq!(fixture.delivery().attempt, attempt);
        fixture.pass(60 * SECOND - MS);
        assert_eq!(fixture.state(1), Some(State::Unacked));
        fixture.pass(MS);
        match delay {
            Some(delay) => {
                assert_eq!(
                    fixture.state(1),
                    Some(State::BackingOff),
                    "attempt {attempt}"
                );
                fixture.pass(delay * SECOND - MS);
                assert_eq!(fixture.deliveries(), []);
                fixture.pass(MS);
            }
            None => assert_eq!(fixture.state(1), Some(State::Failing)),
        }
    }
    assert_eq!(fixture.deliveries(), []);
    assert_eq!(fixture.failed().len(), 1);
}

#[test]
fn scenario_034_a_failed_eval_has_a_follow_up_between_one_and_six_minutes_later() {
    let mut waits = Vec::new();
    for number in 1..=200 {
        let mut fixture = Fixture::with_worker(10);
        fixture.broker = crate::Broker::new(fixture.config.clone(), 7, number);
        fixture.open(WORKER, &JobType::ALL, 10);
        fixture.put(&[eval(1, "j")]);
        fixture.pass(300 * SECOND);
        let (id, wait) = fixture.failed()[0];
        assert_eq!(id, eval_id(1));
        waits.push(wait);
    }
    let (least, most) = (*waits.iter().min().unwrap(), *waits.iter().max().unwrap());
    assert!(
        least >= 60 * SECOND && most < 360 * SECOND,
        "{least:?} to {most:?}"
    );
    assert!(
        least < 90 * SECOND && most > 330 * SECOND,
        "{least:?} to {most:?} is no even draw"
    );
}

#[test]
fn a_failing_eval_keeps_its_jobs_turn_until_it_is_written() {
    let mut fixture = Fixture::with_worker(10);
    fixture.put(&[eval(1, "j")]);
    fixture.put(&[eval(2, "j")]);
    // 60 s, back-off 1 s, 60 s, back-off 20 s, 60 s.
    fixture.pass(201 * SECOND);
    fixture.deliveries();
    assert_eq!(fixture.failed().len(), 1);
    fixture.pass(10 * SECOND);
    assert_eq!(
        fixture.failed().len(),
        1,
        "asked for again, as nothing was written"
    );
    assert_eq!(fixture.deliveries(), []);
    fixture.finish(eval_id(1), EvalStatus::Failed);
    assert_eq!(fixture.delivered(), [eval_id(2)]);
    fixture.pass(30 * SECOND);
    assert_eq!(fixture.failed(), []);
}

#[test]
fn scenario_035_a_worker_that_extends_is_never_nacked() {
    let mut fixture = Fixture::with_worker(1);
    fixture.put(&[eval(1, "j")]);
    let delivery = fixture.delivery();
    for _ in 0..3 {
        fixture.pass(30 * SECOND);
        fixture.extend(delivery.eval_id, delivery.token).unwrap();
    }
    fixture.pass(59 * SECOND);
    fixture.ack(delivery.eval_id, delivery.token).unwrap();
    fixture.complete(delivery.eval_id);
    assert!(fixture.broker.is_empty());
}

#[test]
fn scenario_036_the_token_of_an_expired_delivery_opens_nothing() {
    let mut fixture = Fixture::with_worker(2);
    fixture.put(&[eval(1, "j")]);
    let first = fixture.delivery();
    fixture.pass(61 * SECOND);
    let second = fixture.delivery();
    assert_ne!(first.token, second.token);
    assert_eq!(
        fixture.extend(first.eval_id, first.token),
        Err(NotOutstanding)
    );
    assert_eq!(fixture.ack(first.eval_id, first.token), Err(NotOutstanding));
    assert_eq!(
        fixture.nack(first.eval_id, first.token),
        Err(NotOutstanding)
    );
    assert_eq!(fixture.state(1), Some(State::Unacked));
    fixture.extend(second.eval_id, second.token).unwrap();
}

#[test]
fn a_token_of_another_term_opens_nothing() {
    let mut fixture = Fixture::with_worker(1);
    fixture.put(&[eval(1, "j")]);
    let delivery = fixture.delivery();
    let forged = Token {
        term: delivery.token.term - 1,
        ..delivery.token
    };
    assert_eq!(fixture.ack(delivery.eval_id, forged), Err(NotOutstanding));
    assert_eq!(
        delivery.token.to_string().parse::<Token>().unwrap(),
        delivery.token
    );
    for text in ["", "7", "7.", ".1", "seven.1", "7.1.2"] {
        assert!(
            text.parse::<Token>()
                .unwrap_err()
                .to_string()
                .contains("<term>.<number>")
        );
    }
}

#[test]
fn an_explicit_nack_returns_at_once_and_counts_as_a_delivery() {
    let mut fixture = Fixture::with_worker(10);
    fixture.put(&[eval(1, "j")]);
    for _ in 0..2 {
        let delivery = fixture.delivery();
        fixture.nack(delivery.eval_id, delivery.token).unwrap();
        assert_eq!(fixture.state(1), Some(State::BackingOff));
        fixture.pass(20 * SECOND);
    }
    let delivery = fixture.delivery();
    assert_eq!(delivery.attempt, 3);
    fixture.nack(delivery.eval_id, delivery.token).unwrap();
    assert_eq!(fixture.failed().len(), 1);
}

#[test]
fn an_eval_that_backs_off_keeps_its_jobs_turn() {
    let mut fixture = Fixture::with_worker(10);
    fixture.put(&[eval(1, "j")]);
    let delivery = fixture.delivery();
    fixture.nack(delivery.eval_id, delivery.token).unwrap();
    fixture.put(&[Evaluation {
        priority: 90,
        ..eval(2, "j")
    }]);
    assert_eq!(fixture.deliveries(), []);
    fixture.pass(SECOND);
    assert_eq!(fixture.delivered(), [eval_id(1)]);
}

#[test]
fn the_outcome_in_the_store_ends_a_delivery_without_an_ack() {
    let mut fixture = Fixture::with_worker(2);
    fixture.put(&[eval(1, "j"), eval(2, "j")]);
    let first = fixture.delivery();
    fixture.complete(first.eval_id);
    assert_eq!(fixture.delivered(), [eval_id(2)]);
    assert_eq!(
        fixture.ack(first.eval_id, first.token),
        Ok(()),
        "the ack is only late"
    );
    assert_eq!(fixture.nack(first.eval_id, first.token), Ok(()));
    assert_eq!(
        fixture.extend(first.eval_id, first.token),
        Err(NotOutstanding)
    );
}

#[test]
fn an_ack_without_an_outcome_is_delivered_again() {
    let mut fixture = Fixture::with_worker(2);
    fixture.put(&[eval(1, "j")]);
    let delivery = fixture.delivery();
    fixture.ack(delivery.eval_id, delivery.token).unwrap();
    fixture.pass(10 * SECOND);
    let reasons: Vec<_> = fixture
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Returned { reason, .. } => Some(*reason),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, [ReturnReason::NoOutcome]);
    fixture.pass(SECOND);
    assert_eq!(fixture.delivered(), [eval_id(1)]);
}

#[test]
fn an_acked_delivery_cannot_be_extended_but_acked_again() {
    let mut fixture = Fixture::with_worker(1);
    fixture.put(&[eval(1, "j")]);
    let delivery = fixture.delivery();
    fixture.ack(delivery.eval_id, delivery.token).unwrap();
    assert_eq!(fixture.ack(delivery.eval_id, delivery.token), Ok(()));
    assert_eq!(
        fixture.extend(delivery.eval_id, delivery.token),
        Err(NotOutstanding)
    );
    assert_eq!(fixture.state(1), Some(State::Acked));
}

#[test]
fn scenario_037_an_eval_that_is_blocked_again_and_unblocked_at_once_runs_once_more() {
    let mut fixture = Fixture::with_worker(5);
    fixture.put_at(100, blocked(1, "j", 90, &[]));
    fixture.put_node(super::fixture::node_id(1), "c1");
    let first = fixture.delivery();
    // Blocked again on what it saw before the node of c2 came.
    let seen = fixture.revision;
    fixture.put_node(super::fixture::node_id(2), "c2");
    fixture.put(&[blocked(1, "j", seen, &[("c1", false)])]);
    assert_eq!(
        fixture.delivered(),
        [eval_id(1)],
        "what it missed sends it round again"
    );
    // The first delivery is over, whether its ack comes or not.
    assert_eq!(fixture.ack(first.eval_id, first.token), Err(NotOutstanding));
    assert_eq!(fixture.deliveries(), []);
}

#[test]
fn scenario_038_a_nack_after_it_was_blocked_again_delivers_nothing_more() {
    let mut fixture = Fixture::with_worker(5);
    fixture.put_at(100, blocked(1, "j", 90, &[]));
    fixture.put_node(super::fixture::node_id(1), "c1");
    let first = fixture.delivery();
    fixture.put(&[blocked(1, "j", fixture.revision, &[("c1", false)])]);
    assert_eq!(fixture.state(1), Some(State::Blocked));
    assert_eq!(fixture.nack(first.eval_id, first.token), Ok(()));
    fixture.pass(120 * SECOND);
    assert_eq!(fixture.deliveries(), []);
    assert_eq!(fixture.state(1), Some(State::Blocked));
}

#[test]
fn a_late_commit_of_a_lost_worker_ends_the_second_delivery_too() {
    let mut fixture = Fixture::with_worker(5);
    fixture.put(&[eval(1, "j")]);
    fixture.pass(61 * SECOND);
    assert_eq!(fixture.delivered().len(), 2);
    fixture.complete(eval_id(1));
    assert!(fixture.broker.is_empty());
}

#[test]
fn a_lost_session_shortens_the_wait_for_its_evals_only() {
    let mut fixture = Fixture::new();
    fixture.open(SessionId(1), &JobType::ALL, 1);
    fixture.open(SessionId(2), &JobType::ALL, 2);
    fixture.put(&[eval(1, "a")]);
    fixture.put(&[eval(2, "b")]);
    assert_eq!(fixture.delivered(), [1, 2].map(eval_id));
    fixture.step(crate::Event::SessionClosed {
        session: SessionId(1),
    });
    fixture.pass(5 * SECOND);
    assert_eq!(
        [fixture.state(1), fixture.state(2)],
        [Some(State::BackingOff), Some(State::Unacked)]
    );
    fixture.pass(SECOND);
    let again = fixture.delivery();
    assert_eq!((again.eval_id, again.session), (eval_id(1), SessionId(2)));
}

#[test]
fn a_worker_whose_stream_broke_keeps_its_eval_by_extending() {
    let mut fixture = Fixture::with_worker(1);
    fixture.put(&[eval(1, "a")]);
    let delivery = fixture.delivery();
    fixture.step(crate::Event::SessionClosed { session: WORKER });
    fixture.extend(delivery.eval_id, delivery.token).unwrap();
    fixture.pass(59 * SECOND);
    assert_eq!(fixture.state(1), Some(State::Unacked));
}

#[test]
fn a_closed_session_gets_nothing_more() {
    let mut fixture = Fixture::with_worker(5);
    fixture.step(crate::Event::SessionClosed { session: WORKER });
    fixture.credit(5);
    fixture.put(&[eval(1, "a")]);
    assert_eq!(fixture.deliveries(), []);
    assert_eq!(fixture.state(1), Some(State::Ready));
}

#[test]
fn scenario_058_a_redelivery_waits_for_the_writes_of_the_jobs_last_plan() {
    let mut fixture = Fixture::with_worker(5);
    fixture.put(&[eval(1, "j")]);
    let created = fixture.revision;
    assert_eq!(fixture.delivery().wait_index, created);
    // Another evaluation of the job is created, and one is closed: the job's newest counts.
    fixture.put(&[eval(2, "j"), eval(3, "j")]);
    let closed = fixture.finish(eval_id(3), EvalStatus::Canceled);
    fixture.pass(61 * SECOND);
    assert_eq!(fixture.delivery().wait_index, closed);
    let complete = fixture.complete(eval_id(1));
    assert_eq!(fixture.delivery().wait_index, complete);
}

#[test]
fn a_settled_evaluation_reports_its_processing_and_response_times() {
    let mut fixture = Fixture::with_worker(0);
    fixture.put(&[eval(1, "j")]);
    fixture.pass(2 * SECOND);
    fixture.credit(1);
    assert_eq!(fixture.delivery().waited, 2 * SECOND);
    fixture.pass(3 * SECOND);
    fixture.complete(eval_id(1));
    let answered = Effect::Answered {
        eval_id: eval_id(1),
        job_type: JobType::Service,
        processing: 3 * SECOND,
        response: 5 * SECOND,
    };
    assert_eq!(fixture.effects, [answered]);
}
