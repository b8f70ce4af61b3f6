//! Blocked evaluations: unblocking, missed capacity, duplicates.

use std::time::Duration;

use model::{
    AllocId, ClientStatus, EvalStatus, Evaluation, JobType, NodeEligibility, NodeStatus, Timestamp,
    TriggeredBy,
};
use state::{Change, Entity, Key};

use super::fixture::{Fixture, blocked, eval, eval_id, node_id};
use crate::{State, outcome};

const CLASSES: &[(&str, bool)] = &[("c1", true), ("c2", false)];

#[test]
fn scenario_040_capacity_of_an_ineligible_class_changes_nothing() {
    let mut fixture = Fixture::with_worker(5);
    fixture.put_at(101, blocked(1, "j", 100, CLASSES));
    fixture.put_node(node_id(1), "c2");
    assert_eq!(fixture.state(1), Some(State::Blocked));
    assert_eq!(fixture.deliveries(), []);
}

#[test]
fn scenario_041_a_class_never_seen_unblocks() {
    let mut fixture = Fixture::with_worker(5);
    fixture.put_at(101, blocked(1, "j", 100, CLASSES));
    fixture.put_node(node_id(1), "c3");
    assert_eq!(fixture.delivered(), [eval_id(1)]);
}

#[test]
fn an_eligible_class_unblocks_and_an_escaped_eval_takes_any() {
    let mut fixture = Fixture::with_worker(5);
    fixture.put_at(101, blocked(1, "j", 100, CLASSES));
    let escaped = Evaluation {
        escaped_computed_class: true,
        ..blocked(2, "k", 100, &[])
    };
    fixture.put(&[escaped]);
    assert_eq!(fixture.broker.stats().escaped, 1);
    fixture.put_node(node_id(1), "c2");
    assert_eq!(fixture.delivered(), [eval_id(2)]);
    fixture.put_node(node_id(2), "c1");
    assert_eq!(fixture.delivered(), [eval_id(1)]);
}

#[test]
fn scenario_066_a_ready_node_that_registers_with_more_of_something_unblocks_its_class() {
    let mut fixture = Fixture::with_worker(5);
    fixture.put_node(node_id(1), "c1");
    fixture.put_node(node_id(2), "c2");
    fixture.put_at(101, blocked(1, "j", 100, CLASSES));
    fixture.put_node(node_id(2), "c2");
    assert_eq!(fixture.state(1), Some(State::Blocked));
    fixture.put_node(node_id(1), "c1");
    assert_eq!(fixture.delivered(), [eval_id(1)]);
}

#[test]
fn scenario_042_capacity_that_came_after_the_snapshot_is_not_missed() {
    let mut fixture = Fixture::with_worker(5);
    fixture.revision = 104;
    assert_eq!(fixture.put_node(node_id(1), "c1"), 105);
    fixture.put_at(110, blocked(1, "j", 104, CLASSES));
    assert_eq!(fixture.delivered(), [eval_id(1)]);
}

#[test]
fn scenario_043_capacity_that_the_snapshot_had_is_no_news() {
    for snapshot_index in [105, 106] {
        let mut fixture = Fixture::with_worker(5);
        fixture.revision = 104;
        fixture.put_node(node_id(1), "c1");
        // Newer, and of no use.
        fixture.put_node(node_id(2), "c2");
        fixture.put_at(110, blocked(1, "j", snapshot_index, CLASSES));
        assert_eq!(
            fixture.state(1),
            Some(State::Blocked),
            "snapshot {snapshot_index}"
        );
    }
}

#[test]
fn missed_capacity_counts_by_class_and_for_escaped_evals_always() {
    // (class that gained at 105, eligibility, escaped, runs again)
    let cases = [
        ("c2", CLASSES, false, false),
        ("c3", CLASSES, false, true),
        ("c2", &[], true, true),
        ("c2", CLASSES, true, true),
    ];
    for (class, classes, escaped, again) in cases {
        let mut fixture = Fixture::with_worker(5);
        fixture.revision = 104;
        fixture.put_node(node_id(1), class);
        let eval = Evaluation {
            escaped_computed_class: escaped,
            ..blocked(1, "j", 104, classes)
        };
        fixture.put_at(110, eval);
        assert_eq!(
            fixture.delivered().len(),
            usize::from(again),
            "{class} {escaped}"
        );
    }
}

#[test]
fn a_gain_of_the_same_node_after_the_snapshot_is_not_missed() {
    for (gained, again) in [(1, true), (2, false)] {
        let mut fixture = Fixture::with_worker(5);
        fixture.revision = 104;
        fixture.put_node(node_id(gained), "c1");
        fixture.put_at(110, system(1, "j", 1));
        assert_eq!(
            fixture.delivered().len(),
            usize::from(again),
            "node {gained}"
        );
    }
}

#[test]
fn gains_are_remembered_as_long_as_a_snapshot_may_be_older() {
    let mut fixture = Fixture::with_worker(5);
    fixture.revision = 104;
    fixture.put_node(node_id(1), "c1");
    fixture.pass(Duration::from_secs(14 * 60));
    fixture.put_node(node_id(2), "c2");
    fixture.put(&[blocked(1, "j", 104, CLASSES)]);
    assert_eq!(fixture.delivered(), [eval_id(1)]);
}

#[test]
fn looking_at_everything_anew_takes_nothing_from_a_worker() {
    let mut fixture = Fixture::with_worker(5);
    fixture.put_at(101, blocked(1, "j", 100, CLASSES));
    fixture.put_node(node_id(1), "c1");
    let delivery = fixture.delivery();
    // The store has it blocked, as it was before.
    fixture.resync();
    assert_eq!(fixture.state(1), Some(State::Unacked));
    fixture.ack(eval_id(1), delivery.token).unwrap();
    assert_eq!(fixture.state(1), Some(State::Acked));
}

#[test]
fn gains_are_forgotten_when_no_snapshot_can_be_older() {
    let mut fixture = Fixture::with_worker(5);
    fixture.revision = 104;
    fixture.put_node(node_id(1), "c1");
    fixture.pass(Duration::from_secs(16 * 60));
    fixture.put_node(node_id(2), "c2");
    fixture.put(&[blocked(1, "j", 104, CLASSES)]);
    assert_eq!(fixture.state(1), Some(State::Blocked));
}

#[test]
fn scenario_044_a_newer_blocked_eval_replaces_the_jobs_older_one() {
    let mut fixture = Fixture::with_worker(5);
    fixture.put_at(101, blocked(1, "j", 100, CLASSES));
    fixture.put_at(121, blocked(2, "j", 120, CLASSES));
    assert_eq!(
        [fixture.state(1), fixture.state(2)],
        [Some(State::Superseded), Some(State::Blocked)]
    );
    fixture.pass(Duration::from_secs(1));
    assert_eq!(fixture.cancelled(), [eval_id(1)]);
    // Until it is written.
    fixture.pass(fixture.config.write_retry);
    assert_eq!(fixture.cancelled(), [eval_id(1)]);
}

#[test]
fn scenario_045_an_older_blocked_eval_that_comes_later_is_canceled() {
    let mut fixture = Fixture::with_worker(5);
    fixture.put_at(102, blocked(1, "j", 200, CLASSES));
    fixture.put_at(121, blocked(2, "j", 120, CLASSES));
    assert_eq!(
        [fixture.state(1), fixture.state(2)],
        [Some(State::Blocked), Some(State::Superseded)]
    );
}

#[test]
fn scenario_046_an_eval_that_lost_races_is_tried_again_after_a_minute() {
    let mut fixture = Fixture::with_worker(5);
    let lost = |number, job| Evaluation {
        triggered_by: TriggeredBy::MaxPlanAttempts,
        ..blocked(number, job, 100, CLASSES)
    };
    fixture.put(&[lost(1, "j"), blocked(2, "k", 100, CLASSES)]);
    fixture.pass(Duration::from_millis(59_999));
    assert_eq!(fixture.deliveries(), []);
    fixture.pass(Duration::from_millis(1));
    assert_eq!(fixture.delivered(), [eval_id(1)]);
    fixture.pass(Duration::from_secs(600));
    assert_eq!(
        fixture.state(2),
        Some(State::Blocked),
        "time alone does not help this one"
    );
}

#[test]
fn scenario_047_a_lost_alloc_is_no_capacity_but_an_ended_one_is() {
    for (status, runs) in [
        (ClientStatus::Lost, false),
        (ClientStatus::Unknown, false),
        (ClientStatus::Running, false),
        (ClientStatus::Complete, true),
        (ClientStatus::Failed, true),
    ] {
        let mut fixture = Fixture::with_worker(5);
        let alloc = AllocId::from_random(1);
        fixture.put_node(node_id(1), "c1");
        fixture.put_alloc(alloc, node_id(1));
        fixture.put(&[blocked(1, "j", fixture.revision, CLASSES)]);
        fixture.report(alloc, status);
        assert_eq!(fixture.delivered().len(), usize::from(runs), "{status:?}");
    }
}

#[test]
fn a_change_of_a_node_unblocks_only_if_the_node_becomes_schedulable() {
    let cases = [
        (NodeStatus::Down, NodeEligibility::Eligible, false),
        (NodeStatus::Initializing, NodeEligibility::Eligible, false),
        (NodeStatus::Ready, NodeEligibility::Ineligible, false),
        (NodeStatus::Ready, NodeEligibility::Eligible, true),
    ];
    for (status, eligibility, runs) in cases {
        let mut fixture = Fixture::with_worker(5);
        fixture.put_node_as(
            node_id(1),
            "c1",
            NodeStatus::Down,
            NodeEligibility::Ineligible,
        );
        fixture.put(&[blocked(1, "j", fixture.revision, CLASSES)]);
        fixture.put_node_as(node_id(1), "c1", status, eligibility);
        assert_eq!(
            fixture.delivered().len(),
            usize::from(runs),
            "{status:?} {eligibility:?}"
        );
    }
}

#[test]
fn a_registered_volume_unblocks_evaluations_that_its_node_could_take() {
    let volume = |deleting: bool| {
        let volume = model::Volume {
            namespace: "default".into(),
            name: "data".into(),
            node_id: node_id(1),
            id: model::VolumeId::from_random(1),
            host_path: "/srv/data".into(),
            capabilities: Vec::new(),
            deleting,
            create_time: Timestamp(1),
            modify_time: Timestamp(1),
        };
        Change::Put {
            key: Key::Volume(volume.key()),
            entity: Entity::Volume(Box::new(volume)),
            create_index: 0,
            modify_index: 0,
        }
    };
    for (class, deleting, runs) in [
        ("c1", false, true),
        ("c2", false, false),
        ("c1", true, false),
    ] {
        let mut fixture = Fixture::with_worker(5);
        fixture.put_node(node_id(1), class);
        fixture.put(&[blocked(1, "j", fixture.revision, CLASSES)]);
        fixture.write(vec![volume(deleting)]);
        let case = format!("{class} {deleting}");
        assert_eq!(fixture.delivered().len(), usize::from(runs), "{case}");
    }
    // A leader that was not there when it came.
    let mut fixture = Fixture::with_worker(5);
    let before = fixture.put_node(node_id(1), "c1");
    let after = fixture.write(vec![volume(false)]);
    fixture.put(&[
        blocked(1, "j", before, CLASSES),
        blocked(2, "k", after, CLASSES),
    ]);
    fixture.elect();
    assert_eq!(fixture.state(1), Some(State::Ready));
    assert_eq!(fixture.state(2), Some(State::Blocked));
}

#[test]
fn scenario_048_a_full_success_leaves_no_blocked_eval_behind() {
    let mut fixture = Fixture::with_worker(5);
    fixture.put(&[blocked(1, "j", 100, CLASSES)]);
    fixture.put(&[eval(2, "j")]);
    fixture.complete(eval_id(2));
    fixture.pass(Duration::from_secs(1));
    assert_eq!(fixture.cancelled(), [eval_id(1)]);

    // As the plan-applier writes it: in the same transaction, with nothing left to cancel.
    let mut fixture = Fixture::with_worker(5);
    fixture.put(&[blocked(1, "j", 100, CLASSES)]);
    fixture.put(&[eval(2, "j")]);
    let done = |number| Evaluation {
        status: EvalStatus::Complete,
        ..fixture.stored(eval_id(number))
    };
    let gone = Evaluation {
        status: EvalStatus::Canceled,
        ..fixture.stored(eval_id(1))
    };
    let done = done(2);
    fixture.put(&[done, gone]);
    fixture.pass(Duration::from_secs(1));
    assert_eq!(fixture.cancelled(), []);
    assert!(fixture.broker.is_empty());
}

#[test]
fn scenario_008_a_blocked_eval_says_which_success_made_it_needless() {
    let mut fixture = Fixture::with_worker(5);
    fixture.put(&[eval(3, "j")]);
    fixture.complete(eval_id(3));
    fixture.put(&[blocked(1, "j", 100, CLASSES)]);
    let stored = |fixture: &Fixture| {
        let snapshot = fixture.replica.snapshot();
        let waits = snapshot.eval(eval_id(1)).unwrap();
        let by = outcome::placed_all_since(&snapshot, waits);
        outcome::canceled(&waits.value, by, fixture.now)
    };
    // A success before the evaluation was blocked does not supersede it.
    assert!(
        stored(&fixture)
            .status_description
            .starts_with("a newer evaluation")
    );
    fixture.put(&[eval(2, "j"), eval(4, "k")]);
    fixture.complete(eval_id(2));
    fixture.complete(eval_id(4));
    fixture.pass(Duration::from_secs(1));
    assert_eq!(fixture.cancelled(), [eval_id(1)]);
    let canceled = stored(&fixture);
    assert_eq!(canceled.status, EvalStatus::Canceled);
    let want = format!("evaluation \"{}\" successful", eval_id(2));
    assert_eq!(canceled.status_description, want);
    // Once, and for all: the store knows, and so does the broker.
    fixture.put(&[canceled]);
    fixture.pass(Duration::from_secs(60));
    assert_eq!(fixture.cancelled(), []);
    assert_eq!(fixture.state(1), None);
}

#[test]
fn a_success_that_left_something_out_keeps_the_blocked_eval() {
    let mut fixture = Fixture::with_worker(5);
    fixture.put(&[blocked(1, "j", 100, CLASSES)]);
    fixture.put(&[eval(2, "j")]);
    let mut partial = Evaluation {
        status: EvalStatus::Complete,
        ..fixture.stored(eval_id(2))
    };
    partial
        .failed_task_groups
        .insert("web".to_owned(), Default::default());
    fixture.put(&[partial]);
    assert_eq!(fixture.state(1), Some(State::Blocked));
    let snapshot = fixture.replica.snapshot();
    let waits = snapshot.eval(eval_id(1)).unwrap();
    assert_eq!(outcome::placed_all_since(&snapshot, waits), None);
}

#[test]
fn an_unblocked_eval_waits_for_its_jobs_turn() {
    let mut fixture = Fixture::with_worker(5);
    fixture.put(&[blocked(1, "j", 100, CLASSES)]);
    fixture.put(&[eval(2, "j")]);
    fixture.put_node(node_id(1), "c1");
    assert_eq!(fixture.delivered(), [eval_id(2)]);
    assert_eq!(fixture.state(1), Some(State::Pending));
}

fn system(number: u128, job: &str, node: u128) -> Evaluation {
    Evaluation {
        job_type: JobType::System,
        node_id: Some(node_id(node)),
        ..blocked(number, job, 100, &[("c1", false)])
    }
}

#[test]
fn a_system_job_has_one_blocked_eval_per_node() {
    let mut fixture = Fixture::with_worker(5);
    fixture.put(&[system(1, "j", 1), system(2, "j", 2)]);
    assert_eq!(
        [fixture.state(1), fixture.state(2)],
        [Some(State::Blocked); 2]
    );
    fixture.put(&[system(3, "j", 2)]);
    assert_eq!(
        [fixture.state(1), fixture.state(2)],
        [Some(State::Blocked), Some(State::Superseded)]
    );
    // The very node unblocks its own, whatever is known of its class.
    fixture.put_node(node_id(1), "c1");
    assert_eq!(fixture.delivered(), [eval_id(1)]);
    fixture.complete(eval_id(1));
    fixture.pass(Duration::from_secs(1));
    assert_eq!(
        fixture.cancelled(),
        [2, 3].map(eval_id),
        "a full success clears every node"
    );
}

#[test]
fn a_service_job_has_one_blocked_eval_whatever_node_it_names() {
    let mut fixture = Fixture::with_worker(5);
    let named = |number, node| Evaluation {
        job_type: JobType::Service,
        ..system(number, "j", node)
    };
    fixture.put(&[named(1, 1)]);
    fixture.put(&[named(2, 2)]);
    assert_eq!(
        [fixture.state(1), fixture.state(2)],
        [Some(State::Superseded), Some(State::Blocked)]
    );
}
