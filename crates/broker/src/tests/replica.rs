//! A new leader, and a change feed that was lost.

use std::time::Duration;

use model::{AllocId, ClientStatus, EvalStatus, Evaluation, JobType};
use state::State as Replica;

use super::desk::{Desk, WORKER, blocked, eval, eval_id, node_id, put_eval};
use crate::State;

#[test]
fn a_new_leader_holds_everything_that_is_open() {
    let mut desk = Desk::new();
    let later = desk.now.plus(Duration::from_secs(30));
    desk.put(&[
        eval(1, "a"),
        eval(2, "a"),
        Evaluation {
            wait_until: later,
            ..eval(3, "b")
        },
    ]);
    desk.put(&[blocked(4, "c", desk.revision, &[])]);
    desk.put(&[eval(5, "d")]);
    desk.finish(eval_id(5), EvalStatus::Failed);
    desk.elect();
    let states = [1, 2, 3, 4, 5].map(|number| desk.state(number));
    assert_eq!(
        states[2..],
        [Some(State::Delayed), Some(State::Blocked), None]
    );
    let turns = [states[0], states[1]];
    assert!(turns.contains(&Some(State::Ready)) && turns.contains(&Some(State::Pending)));
    assert_eq!(desk.broker.stats().waiting, 1);
}

#[test]
fn a_new_leaders_first_deliveries_wait_for_everything_before_it() {
    let mut desk = Desk::new();
    desk.put(&[eval(1, "a"), eval(2, "b")]);
    let closed = desk.complete(eval_id(2));
    desk.put_node(node_id(1), "c1");
    desk.elect();
    desk.open(WORKER, &JobType::ALL, 1);
    let delivery = desk.delivery();
    assert_eq!(
        delivery.wait_index, closed,
        "no evaluation has changed since"
    );
    assert_eq!(delivery.token.term, desk.term);
}

type Happening<'a> = &'a dyn Fn(&mut Desk) -> u64;

#[test]
fn scenario_049_capacity_that_came_while_nobody_led_is_not_missed() {
    // (what came after the snapshot, is the blocked evaluation run)
    let node_came = |desk: &mut Desk| desk.put_node(node_id(2), "c1");
    let other_class = |desk: &mut Desk| desk.put_node(node_id(2), "c2");
    let alloc_ended =
        |desk: &mut Desk| desk.report(AllocId::from_random(1), ClientStatus::Complete);
    let nothing = |desk: &mut Desk| desk.revision;
    let cases: [(&str, Happening<'_>, bool); 4] = [
        ("a node came", &node_came, true),
        ("a node of an ineligible class came", &other_class, false),
        ("an alloc ended", &alloc_ended, true),
        ("nothing", &nothing, false),
    ];
    for (what, happen, runs) in cases {
        let mut desk = Desk::new();
        desk.put_node(node_id(1), "c1");
        desk.put_alloc(AllocId::from_random(1), node_id(1));
        let seen = desk.revision;
        happen(&mut desk);
        // Nobody leads: the old leader never heard of it.
        desk.put(&[blocked(1, "j", seen, &[("c1", true), ("c2", false)])]);
        desk.elect();
        let expected = if runs { State::Ready } else { State::Blocked };
        assert_eq!(desk.state(1), Some(expected), "{what}");
    }
}

#[test]
fn of_several_blocked_evals_of_a_job_a_new_leader_keeps_the_newest() {
    let mut desk = Desk::new();
    let mut replica = Replica::default();
    let old = blocked(1, "j", 100, &[]);
    let new = blocked(2, "j", 120, &[]);
    replica.apply(130, [put_eval(&new), put_eval(&old)]);
    desk.replica = replica;
    desk.elect();
    assert_eq!(
        [desk.state(1), desk.state(2)],
        [Some(State::Superseded), Some(State::Blocked)]
    );
}

#[test]
fn a_resync_keeps_what_workers_have_and_drops_what_is_closed() {
    let mut desk = Desk::with_worker(2);
    desk.put(&[eval(1, "a"), eval(2, "b"), eval(3, "c"), eval(4, "a")]);
    let deliveries = desk.deliveries();
    assert_eq!(deliveries.len(), 2);
    // Changes that the feed did not tell.
    let changes = [
        put_eval(&Evaluation {
            status: EvalStatus::Complete,
            ..eval(1, "a")
        }),
        put_eval(&eval(5, "e")),
    ];
    desk.revision += 1;
    let changes: Vec<_> = changes
        .into_iter()
        .map(|change| restamp(change, desk.revision))
        .collect();
    desk.replica.apply(desk.revision, changes);
    desk.resync();
    let states = [1, 2, 3, 4, 5].map(|number| desk.state(number));
    assert_eq!(
        states,
        [
            None,
            Some(State::Unacked),
            Some(State::Ready),
            Some(State::Ready),
            Some(State::Ready)
        ]
    );
    desk.extend(deliveries[1].eval_id, deliveries[1].token)
        .unwrap();
}

#[test]
fn a_resync_that_finds_nothing_new_changes_nothing() {
    let mut desk = Desk::with_worker(1);
    desk.put(&[
        eval(1, "a"),
        eval(2, "a"),
        eval(3, "b"),
        blocked(4, "c", 5, &[("c1", false)]),
    ]);
    let before = desk.broker.stats();
    desk.effects.clear();
    desk.resync();
    assert_eq!(desk.broker.stats(), before);
    assert_eq!(desk.effects, []);
}

fn restamp(change: state::Change, revision: u64) -> state::Change {
    match change {
        state::Change::Put { key, entity, .. } => state::Change::Put {
            key,
            entity,
            create_index: revision,
            modify_index: revision,
        },
        delete @ state::Change::Delete { .. } => delete,
    }
}
