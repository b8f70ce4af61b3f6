//! The written evaluations.

use std::time::Duration;

use model::{EvalStatus, Evaluation, NodeId, Timestamp, TriggeredBy};

use super::fixture::{blocked, eval, eval_id};
use crate::outcome;

#[test]
fn a_failed_eval_and_its_follow_up_name_each_other() {
    let now = Timestamp::from_millis(5_000);
    let original = Evaluation {
        priority: 70,
        node_id: Some(NodeId::from_random(4)),
        trace_parent: "00-trace".to_owned(),
        ..eval(1, "j")
    };
    let failed = outcome::failed(&original, 3, Some(eval_id(2)), now);
    let next = outcome::follow_up(&original, eval_id(2), now, Duration::from_secs(90));
    assert_eq!(failed.status, EvalStatus::Failed);
    assert!(failed.status_description.contains("delivery limit of 3"));
    assert_eq!(
        (failed.next_eval, next.previous_eval),
        (Some(eval_id(2)), Some(eval_id(1)))
    );
    assert_eq!(failed.modify_time, now);
    assert_eq!(
        (next.status, next.triggered_by, next.priority, next.job_type),
        (
            EvalStatus::Pending,
            TriggeredBy::FailedFollowUp,
            70,
            original.job_type
        )
    );
    assert_eq!(next.job, original.job);
    assert_eq!(next.wait_until, Timestamp::from_millis(95_000));
    assert_eq!(next.trace_parent, "00-trace");
}

#[test]
fn a_canceled_eval_says_why() {
    let now = Timestamp::from_millis(5_000);
    let pending = outcome::canceled(&eval(1, "j"), None, now);
    let waiting = outcome::canceled(&blocked(1, "j", 5, &[]), None, now);
    assert_eq!([pending.status, waiting.status], [EvalStatus::Canceled; 2]);
    assert_ne!(pending.status_description, waiting.status_description);
}

#[test]
fn a_change_is_later_than_the_creation_even_when_clocks_disagree() {
    let made = Evaluation {
        create_time: Timestamp(50),
        ..eval(1, "j")
    };
    assert_eq!(
        outcome::canceled(&made, None, Timestamp(7)).modify_time,
        Timestamp(51)
    );
}
