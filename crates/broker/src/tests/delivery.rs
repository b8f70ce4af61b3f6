//! Tokens, time-outs, back-off and the delivery limit.

use std::time::Duration;

use model::{EvalStatus, Evaluation, JobType};

use super::desk::{Desk, WORKER, blocked, eval, eval_id};
use crate::{Effect, Refusal, ReturnReason, SessionId, State, Token};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

#[test]
fn scenario_033_silence_is_a_nack_with_growing_delays_and_a_limit() {
    let mut desk = Desk::with_worker(10);
    desk.put(&[eval(1, "j")]);
    for (attempt, delay) in [(1, Some(1)), (2, Some(20)), (3, None)] {
        assert_eq!(desk.delivery().attempt, attempt);
        desk.pass(60 * SECOND - MS);
        assert_eq!(desk.state(1), Some(State::Unacked));
        desk.pass(MS);
        match delay {
            Some(delay) => {
                assert_eq!(desk.state(1), Some(State::BackingOff), "attempt {attempt}");
                desk.pass(delay * SECOND - MS);
                assert_eq!(desk.deliveries(), []);
                desk.pass(MS);
            }
            None => assert_eq!(desk.state(1), Some(State::Failing)),
        }
    }
    assert_eq!(desk.deliveries(), []);
    assert_eq!(desk.failed().len(), 1);
}

#[test]
fn scenario_034_a_failed_eval_has_a_follow_up_between_one_and_six_minutes_later() {
    let mut waits = Vec::new();
    for number in 1..=200 {
        let mut desk = Desk::with_worker(10);
        desk.broker = crate::Broker::new(desk.config.clone(), 7, number);
        desk.open(WORKER, &JobType::ALL, 10);
        desk.put(&[eval(1, "j")]);
        desk.pass(300 * SECOND);
        let (id, wait) = desk.failed()[0];
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
    let mut desk = Desk::with_worker(10);
    desk.put(&[eval(1, "j")]);
    desk.put(&[eval(2, "j")]);
    // 60 s, back-off 1 s, 60 s, back-off 20 s, 60 s.
    desk.pass(201 * SECOND);
    desk.deliveries();
    assert_eq!(desk.failed().len(), 1);
    desk.pass(10 * SECOND);
    assert_eq!(
        desk.failed().len(),
        1,
        "asked for again, as nothing was written"
    );
    assert_eq!(desk.deliveries(), []);
    desk.finish(eval_id(1), EvalStatus::Failed);
    assert_eq!(desk.delivered(), [eval_id(2)]);
    desk.pass(30 * SECOND);
    assert_eq!(desk.failed(), []);
}

#[test]
fn scenario_035_a_worker_that_extends_is_never_nacked() {
    let mut desk = Desk::with_worker(1);
    desk.put(&[eval(1, "j")]);
    let delivery = desk.delivery();
    for _ in 0..3 {
        desk.pass(30 * SECOND);
        desk.extend(delivery.eval_id, delivery.token).unwrap();
    }
    desk.pass(59 * SECOND);
    desk.ack(delivery.eval_id, delivery.token).unwrap();
    desk.complete(delivery.eval_id);
    assert!(desk.broker.is_empty());
}

#[test]
fn scenario_036_the_token_of_an_expired_delivery_opens_nothing() {
    let mut desk = Desk::with_worker(2);
    desk.put(&[eval(1, "j")]);
    let first = desk.delivery();
    desk.pass(61 * SECOND);
    let second = desk.delivery();
    assert_ne!(first.token, second.token);
    assert_eq!(
        desk.extend(first.eval_id, first.token),
        Err(Refusal::NotOutstanding)
    );
    assert_eq!(
        desk.ack(first.eval_id, first.token),
        Err(Refusal::NotOutstanding)
    );
    assert_eq!(
        desk.nack(first.eval_id, first.token),
        Err(Refusal::NotOutstanding)
    );
    assert_eq!(desk.state(1), Some(State::Unacked));
    desk.extend(second.eval_id, second.token).unwrap();
}

#[test]
fn a_token_of_another_term_opens_nothing() {
    let mut desk = Desk::with_worker(1);
    desk.put(&[eval(1, "j")]);
    let delivery = desk.delivery();
    let forged = Token {
        term: delivery.token.term - 1,
        ..delivery.token
    };
    assert_eq!(
        desk.ack(delivery.eval_id, forged),
        Err(Refusal::NotOutstanding)
    );
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
    let mut desk = Desk::with_worker(10);
    desk.put(&[eval(1, "j")]);
    for _ in 0..2 {
        let delivery = desk.delivery();
        desk.nack(delivery.eval_id, delivery.token).unwrap();
        assert_eq!(desk.state(1), Some(State::BackingOff));
        desk.pass(20 * SECOND);
    }
    let delivery = desk.delivery();
    assert_eq!(delivery.attempt, 3);
    desk.nack(delivery.eval_id, delivery.token).unwrap();
    assert_eq!(desk.failed().len(), 1);
}

#[test]
fn an_eval_that_backs_off_keeps_its_jobs_turn() {
    let mut desk = Desk::with_worker(10);
    desk.put(&[eval(1, "j")]);
    let delivery = desk.delivery();
    desk.nack(delivery.eval_id, delivery.token).unwrap();
    desk.put(&[Evaluation {
        priority: 90,
        ..eval(2, "j")
    }]);
    assert_eq!(desk.deliveries(), []);
    desk.pass(SECOND);
    assert_eq!(desk.delivered(), [eval_id(1)]);
}

#[test]
fn the_outcome_in_the_store_ends_a_delivery_without_an_ack() {
    let mut desk = Desk::with_worker(2);
    desk.put(&[eval(1, "j"), eval(2, "j")]);
    let first = desk.delivery();
    desk.complete(first.eval_id);
    assert_eq!(desk.delivered(), [eval_id(2)]);
    assert_eq!(
        desk.ack(first.eval_id, first.token),
        Ok(()),
        "the ack is only late"
    );
    assert_eq!(desk.nack(first.eval_id, first.token), Ok(()));
    assert_eq!(
        desk.extend(first.eval_id, first.token),
        Err(Refusal::NotOutstanding)
    );
}

#[test]
fn an_ack_without_an_outcome_is_delivered_again() {
    let mut desk = Desk::with_worker(2);
    desk.put(&[eval(1, "j")]);
    let delivery = desk.delivery();
    desk.ack(delivery.eval_id, delivery.token).unwrap();
    desk.pass(10 * SECOND);
    let reasons: Vec<_> = desk
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Returned { reason, .. } => Some(*reason),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, [ReturnReason::NoOutcome]);
    desk.pass(SECOND);
    assert_eq!(desk.delivered(), [eval_id(1)]);
}

#[test]
fn an_acked_delivery_cannot_be_extended_but_acked_again() {
    let mut desk = Desk::with_worker(1);
    desk.put(&[eval(1, "j")]);
    let delivery = desk.delivery();
    desk.ack(delivery.eval_id, delivery.token).unwrap();
    assert_eq!(desk.ack(delivery.eval_id, delivery.token), Ok(()));
    assert_eq!(
        desk.extend(delivery.eval_id, delivery.token),
        Err(Refusal::NotOutstanding)
    );
    assert_eq!(desk.state(1), Some(State::Acked));
}

#[test]
fn scenario_037_an_eval_that_is_blocked_again_and_unblocked_at_once_runs_once_more() {
    let mut desk = Desk::with_worker(5);
    desk.put_at(100, blocked(1, "j", 90, &[]));
    desk.put_node(super::desk::node_id(1), "c1");
    let first = desk.delivery();
    // Blocked again on what it saw before the node of c2 came.
    let seen = desk.revision;
    desk.put_node(super::desk::node_id(2), "c2");
    desk.put(&[blocked(1, "j", seen, &[("c1", false)])]);
    assert_eq!(
        desk.delivered(),
        [eval_id(1)],
        "what it missed sends it round again"
    );
    // The first delivery is over, whether its ack comes or not.
    assert_eq!(
        desk.ack(first.eval_id, first.token),
        Err(Refusal::NotOutstanding)
    );
    assert_eq!(desk.deliveries(), []);
}

#[test]
fn scenario_038_a_nack_after_it_was_blocked_again_delivers_nothing_more() {
    let mut desk = Desk::with_worker(5);
    desk.put_at(100, blocked(1, "j", 90, &[]));
    desk.put_node(super::desk::node_id(1), "c1");
    let first = desk.delivery();
    desk.put(&[blocked(1, "j", desk.revision, &[("c1", false)])]);
    assert_eq!(desk.state(1), Some(State::Blocked));
    assert_eq!(desk.nack(first.eval_id, first.token), Ok(()));
    desk.pass(120 * SECOND);
    assert_eq!(desk.deliveries(), []);
    assert_eq!(desk.state(1), Some(State::Blocked));
}

#[test]
fn a_late_commit_of_a_lost_worker_ends_the_second_delivery_too() {
    let mut desk = Desk::with_worker(5);
    desk.put(&[eval(1, "j")]);
    desk.pass(61 * SECOND);
    assert_eq!(desk.delivered().len(), 2);
    desk.complete(eval_id(1));
    assert!(desk.broker.is_empty());
}

#[test]
fn a_lost_session_shortens_the_wait_for_its_evals_only() {
    let mut desk = Desk::new();
    desk.open(SessionId(1), &JobType::ALL, 1);
    desk.open(SessionId(2), &JobType::ALL, 2);
    desk.put(&[eval(1, "a")]);
    desk.put(&[eval(2, "b")]);
    assert_eq!(desk.delivered(), [1, 2].map(eval_id));
    desk.step(crate::Event::SessionClosed {
        session: SessionId(1),
    });
    desk.pass(5 * SECOND);
    assert_eq!(
        [desk.state(1), desk.state(2)],
        [Some(State::BackingOff), Some(State::Unacked)]
    );
    desk.pass(SECOND);
    let again = desk.delivery();
    assert_eq!((again.eval_id, again.session), (eval_id(1), SessionId(2)));
}

#[test]
fn a_worker_whose_stream_broke_keeps_its_eval_by_extending() {
    let mut desk = Desk::with_worker(1);
    desk.put(&[eval(1, "a")]);
    let delivery = desk.delivery();
    desk.step(crate::Event::SessionClosed { session: WORKER });
    desk.extend(delivery.eval_id, delivery.token).unwrap();
    desk.pass(59 * SECOND);
    assert_eq!(desk.state(1), Some(State::Unacked));
}

#[test]
fn a_closed_session_gets_nothing_more() {
    let mut desk = Desk::with_worker(5);
    desk.step(crate::Event::SessionClosed { session: WORKER });
    desk.credit(5);
    desk.put(&[eval(1, "a")]);
    assert_eq!(desk.deliveries(), []);
    assert_eq!(desk.state(1), Some(State::Ready));
}

#[test]
fn scenario_058_a_redelivery_waits_for_what_the_jobs_last_plan_wrote() {
    let mut desk = Desk::with_worker(5);
    desk.put(&[eval(1, "j")]);
    let created = desk.revision;
    assert_eq!(desk.delivery().wait_index, created);
    // Another evaluation of the job is created, and one is closed: the job's newest counts.
    desk.put(&[eval(2, "j"), eval(3, "j")]);
    let closed = desk.finish(eval_id(3), EvalStatus::Canceled);
    desk.pass(61 * SECOND);
    assert_eq!(desk.delivery().wait_index, closed);
    let complete = desk.complete(eval_id(1));
    assert_eq!(desk.delivery().wait_index, complete);
}

#[test]
fn what_was_settled_says_how_long_it_took() {
    let mut desk = Desk::with_worker(0);
    desk.put(&[eval(1, "j")]);
    desk.pass(2 * SECOND);
    desk.credit(1);
    assert_eq!(desk.delivery().waited, 2 * SECOND);
    desk.pass(3 * SECOND);
    desk.complete(eval_id(1));
    let settled = Effect::Settled {
        eval_id: eval_id(1),
        job_type: JobType::Service,
        processing: 3 * SECOND,
        response: 5 * SECOND,
    };
    assert_eq!(desk.effects, [settled]);
}
