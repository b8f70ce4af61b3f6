//! A new leader, and a change feed that was lost.

use std::time::Duration;

use model::{AllocId, ClientStatus, EvalStatus, Evaluation, JobType};
use state::State as Replica;

use super::fixture::{Fixture, WORKER, blocked, eval, eval_id, node_id, put_eval};
use crate::State;

#[test]
fn a_new_leader_holds_everything_that_is_open() {
    let mut fixture = Fixture::new();
    let later = fixture.now.plus(Duration::from_secs(30));
    fixture.put(&[
        eval(1, "a"),
        eval(2, "a"),
        Evaluation {
            wait_until: later,
            ..eval(3, "b")
        },
    ]);
    fixture.put(&[blocked(4, "c", fixture.revision, &[])]);
    fixture.put(&[eval(5, "d")]);
    fixture.finish(eval_id(5), EvalStatus::Failed);
    fixture.elect();
    let states = [1, 2, 3, 4, 5].map(|number| fixture.state(number));
    assert_eq!(
        states[2..],
        [Some(State::Delayed), Some(State::Blocked), None]
    );
    let job_locks = [states[0], states[1]];
    assert!(job_locks.contains(&Some(State::Ready)) && job_locks.contains(&Some(State::Pending)));
    assert_eq!(fixture.broker.stats().waiting, 1);
}

#[test]
fn a_new_leaders_first_deliveries_wait_for_everything_before_it() {
    let mut fixture = Fixture::new();
    fixture.put(&[eval(1, "a"), eval(2, "b")]);
    let closed = fixture.complete(eval_id(2));
    fixture.put_node(node_id(1), "c1");
    fixture.elect();
    fixture.open(WORKER, &JobType::ALL, 1);
    let delivery = fixture.delivery();
    assert_eq!(
        delivery.wait_index, closed,
        "no evaluation has changed since"
    );
    assert_eq!(delivery.token.term, fixture.term);
}

type Happening<'a> = &'a dyn Fn(&mut Fixture) -> u64;

#[test]
fn scenario_049_capacity_that_came_without_a_leader_is_not_missed() {
    // (what came after the snapshot, is the blocked evaluation run)
    let node_came = |fixture: &mut Fixture| fixture.put_node(node_id(2), "c1");
    let other_class = |fixture: &mut Fixture| fixture.put_node(node_id(2), "c2");
    let alloc_ended =
        |fixture: &mut Fixture| fixture.report(AllocId::from_random(1), ClientStatus::Complete);
    let nothing = |fixture: &mut Fixture| fixture.revision;
    let cases: [(&str, Happening<'_>, bool); 4] = [
        ("a node came", &node_came, true),
        ("a node of an ineligible class came", &other_class, false),
        ("an alloc ended", &alloc_ended, true),
        ("nothing", &nothing, false),
    ];
    for (what, happen, runs) in cases {
        let mut fixture = Fixture::new();
        fixture.put_node(node_id(1), "c1");
        fixture.put_alloc(AllocId::from_random(1), node_id(1));
        let seen = fixture.revision;
        happen(&mut fixture);
        // There is no leader: the old one never saw the change.
        fixture.put(&[blocked(1, "j", seen, &[("c1", true), ("c2", false)])]);
        fixture.elect();
        let expected = if runs { State::Ready } else { State::Blocked };
        assert_eq!(fixture.state(1), Some(expected), "{what}");
    }
}

#[test]
fn of_several_blocked_evals_of_a_job_a_new_leader_keeps_the_newest() {
    let mut fixture = Fixture::new();
    let mut replica = Replica::default();
    let old = blocked(1, "j", 100, &[]);
    let new = blocked(2, "j", 120, &[]);
    replica.apply(130, [put_eval(&new), put_eval(&old)]);
    fixture.replica = replica;
    fixture.elect();
    assert_eq!(
        [fixture.state(1), fixture.state(2)],
        [Some(State::Superseded), Some(State::Blocked)]
    );
}

#[test]
fn a_resync_keeps_deliveries_and_drops_closed_evaluations() {
    let mut fixture = Fixture::with_worker(2);
    fixture.put(&[eval(1, "a"), eval(2, "b"), eval(3, "c"), eval(4, "a")]);
    let deliveries = fixture.deliveries();
    assert_eq!(deliveries.len(), 2);
    // Changes that the feed did not tell.
    let changes = [
        put_eval(&Evaluation {
            status: EvalStatus::Complete,
            ..eval(1, "a")
        }),
        put_eval(&eval(5, "e")),
    ];
    fixture.revision += 1;
    let changes: Vec<_> = changes
        .into_iter()
        .map(|change| restamp(change, fixture.revision))
        .collect();
    fixture.replica.apply(fixture.revision, changes);
    fixture.resync();
    let states = [1, 2, 3, 4, 5].map(|number| fixture.state(number));
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
    fixture
        .extend(deliveries[1].eval_id, deliveries[1].token)
        .unwrap();
}

#[test]
fn a_resync_that_finds_nothing_new_changes_nothing() {
    let mut fixture = Fixture::with_worker(1);
    fixture.put(&[
        eval(1, "a"),
        eval(2, "a"),
        eval(3, "b"),
        blocked(4, "c", 5, &[("c1", false)]),
    ]);
    let before = fixture.broker.stats();
    fixture.effects.clear();
    fixture.resync();
    assert_eq!(fixture.broker.stats(), before);
    assert_eq!(fixture.effects, []);
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
