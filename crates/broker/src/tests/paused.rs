//! The operator pauses the broker: nothing is handed out, nothing is missed.

use std::time::Duration;

use model::JobType;
use state::{Change, Key};

use super::fixture::{Fixture, WORKER, blocked, eval, eval_id, node_id};
use crate::State;

#[test]
fn a_paused_broker_hands_nothing_out_and_goes_on_where_it_was() {
    let mut fixture = Fixture::with_worker(10);
    fixture.put(&[eval(1, "a")]);
    let (id, token) = {
        let delivery = fixture.delivery();
        (delivery.eval_id, delivery.token)
    };
    fixture.pause(true);
    assert!(fixture.broker.stats().paused);
    fixture.put(&[eval(2, "a"), eval(3, "b")]);
    fixture.put(&[blocked(4, "c", fixture.revision, &[("c1", true)])]);
    fixture.put_node(node_id(1), "c1");
    fixture.pass(Duration::from_secs(30));
    // A worker may finish the evaluations that it holds.
    fixture.extend(id, token).unwrap();
    fixture.complete(eval_id(1));
    fixture.ack(id, token).unwrap();
    fixture.pass(Duration::from_secs(600));
    assert_eq!(fixture.deliveries(), []);
    let states = [2, 3, 4].map(|number| fixture.state(number));
    assert_eq!(states, [Some(State::Ready); 3]);

    fixture.pause(false);
    let mut delivered: Vec<_> = fixture.deliveries().iter().map(|it| it.eval_id).collect();
    delivered.sort_unstable();
    assert_eq!(delivered, [2, 3, 4].map(eval_id));
}

#[test]
fn a_new_leader_of_a_paused_broker_is_paused_until_the_configuration_is_gone() {
    let mut fixture = Fixture::new();
    fixture.put(&[eval(1, "a")]);
    fixture.pause(true);
    fixture.elect();
    fixture.open(WORKER, &JobType::ALL, 1);
    assert_eq!(fixture.deliveries(), []);
    fixture.write(vec![Change::Delete {
        key: Key::SchedulerConfig,
    }]);
    assert_eq!(fixture.delivery().eval_id, eval_id(1));
}

#[test]
fn a_nacked_evaluation_stays_while_the_broker_is_paused() {
    let mut fixture = Fixture::with_worker(1);
    fixture.put(&[eval(1, "a")]);
    let (id, token) = {
        let delivery = fixture.delivery();
        (delivery.eval_id, delivery.token)
    };
    fixture.pause(true);
    fixture.nack(id, token).unwrap();
    fixture.credit(1);
    fixture.pass(Duration::from_secs(60));
    assert_eq!(fixture.deliveries(), []);
    fixture.pause(false);
    assert_eq!(fixture.delivery().attempt, 2);
}
