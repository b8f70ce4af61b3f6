//! The operator pauses the broker: nothing is handed out, nothing is missed.

use std::time::Duration;

use model::JobType;
use state::{Change, Key};

use super::desk::{Desk, WORKER, blocked, eval, eval_id, node_id};
use crate::State;

#[test]
fn a_paused_broker_hands_nothing_out_and_goes_on_where_it_was() {
    let mut desk = Desk::with_worker(10);
    desk.put(&[eval(1, "a")]);
    let (id, token) = {
        let delivery = desk.delivery();
        (delivery.eval_id, delivery.token)
    };
    desk.pause(true);
    assert!(desk.broker.stats().paused);
    desk.put(&[eval(2, "a"), eval(3, "b")]);
    desk.put(&[blocked(4, "c", desk.revision, &[("c1", true)])]);
    desk.put_node(node_id(1), "c1");
    desk.pass(Duration::from_secs(30));
    // What a worker has in hand is its own to finish.
    desk.extend(id, token).unwrap();
    desk.complete(eval_id(1));
    desk.ack(id, token).unwrap();
    desk.pass(Duration::from_secs(600));
    assert_eq!(desk.deliveries(), []);
    let states = [2, 3, 4].map(|number| desk.state(number));
    assert_eq!(states, [Some(State::Ready); 3]);

    desk.pause(false);
    let mut delivered: Vec<_> = desk.deliveries().iter().map(|it| it.eval_id).collect();
    delivered.sort_unstable();
    assert_eq!(delivered, [2, 3, 4].map(eval_id));
}

#[test]
fn a_new_leader_of_a_paused_broker_is_paused_until_the_configuration_is_gone() {
    let mut desk = Desk::new();
    desk.put(&[eval(1, "a")]);
    desk.pause(true);
    desk.elect();
    desk.open(WORKER, &JobType::ALL, 1);
    assert_eq!(desk.deliveries(), []);
    desk.write(vec![Change::Delete {
        key: Key::SchedulerConfig,
    }]);
    assert_eq!(desk.delivery().eval_id, eval_id(1));
}

#[test]
fn what_a_worker_gives_back_stays_while_the_broker_is_paused() {
    let mut desk = Desk::with_worker(1);
    desk.put(&[eval(1, "a")]);
    let (id, token) = {
        let delivery = desk.delivery();
        (delivery.eval_id, delivery.token)
    };
    desk.pause(true);
    desk.nack(id, token).unwrap();
    desk.credit(1);
    desk.pass(Duration::from_secs(60));
    assert_eq!(desk.deliveries(), []);
    desk.pause(false);
    assert_eq!(desk.delivery().attempt, 2);
}
