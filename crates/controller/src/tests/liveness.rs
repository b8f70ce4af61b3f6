//! Missed heartbeats, heartbeats and grace periods.

use model::NodeStatus::{Down, Initializing, Ready};
use state::Key;

use super::fleet::{Fleet, GATEWAY, MS, SECOND, id};
use crate::Effect;

#[test]
fn a_silent_node_is_down_after_its_ttl_and_the_grace() {
    let mut fleet = Fleet::new(3);
    fleet.beating.remove(&2);
    fleet.pass(15 * SECOND - MS);
    assert_eq!(fleet.transitions(), []);
    fleet.pass(MS);
    assert_eq!(fleet.perform(), [(2, Down)]);
    let node = fleet.snapshot().node(id(2)).unwrap().value.clone();
    assert!(node.status_description.contains("no heartbeat for 15 s"));
    assert_eq!(node.status_updated_at, fleet.now);
    fleet.pass(600 * SECOND);
    assert_eq!(fleet.effects, []);
    assert_eq!(fleet.liveness.stats().active, 2);
}

#[test]
fn scenario_060_a_dead_node_is_known_as_soon_among_five_thousand() {
    let mut fleet = Fleet::new(5_000);
    fleet.beating.remove(&7);
    fleet.pass(15 * SECOND - MS);
    assert_eq!(fleet.transitions(), []);
    fleet.pass(MS);
    assert_eq!(fleet.perform(), [(7, Down)]);
}

#[test]
fn scenario_065_heartbeats_of_a_ready_node_write_nothing() {
    let mut fleet = Fleet::new(1);
    for _ in 0..1_000 {
        fleet.pass(SECOND);
        fleet.hear(&[1]);
    }
    assert_eq!(fleet.effects, []);
}

#[test]
fn scenario_061_a_new_leader_gives_every_node_a_full_ttl_of_grace() {
    let mut fleet = Fleet::unheard(3);
    fleet.hear(&[1, 3]);
    fleet.beating.extend([1, 3]);
    fleet.pass(25 * SECOND - MS);
    assert_eq!(fleet.transitions(), []);
    fleet.pass(MS);
    assert_eq!(fleet.perform(), [(2, Down)]);
}

#[test]
fn a_new_node_is_ready_with_its_first_heartbeat() {
    let mut fleet = Fleet::new(1);
    fleet.put_node(2, Initializing);
    assert_eq!(fleet.transitions(), [], "it has registered, no more");
    fleet.hear(&[2]);
    assert_eq!(fleet.perform(), [(2, Ready)]);
    fleet.hear(&[2]);
    assert_eq!(fleet.effects, []);
}

#[test]
fn a_heartbeat_that_overtakes_the_registration_is_not_forgotten() {
    let mut fleet = Fleet::new(1);
    fleet.hear(&[2]);
    assert_eq!(fleet.effects, []);
    fleet.put_node(2, Initializing);
    assert_eq!(fleet.perform(), [(2, Ready)]);
}

#[test]
fn a_new_node_that_is_never_heard_of_goes_down() {
    let mut fleet = Fleet::new(3);
    fleet.put_node(4, Initializing);
    fleet.pass(15 * SECOND);
    assert_eq!(fleet.perform(), [(4, Down)]);
}

#[test]
fn a_heartbeat_of_an_unregistered_node_is_forgotten() {
    let mut fleet = Fleet::new(1);
    fleet.hear(&[9]);
    assert_eq!(fleet.liveness.stats().active, 2);
    fleet.pass(15 * SECOND);
    assert_eq!(fleet.liveness.stats().active, 1);
    assert_eq!(fleet.effects, []);
}

#[test]
fn scenario_064_a_down_node_that_is_heard_of_is_ready_at_once() {
    let mut fleet = Fleet::new(3);
    fleet.beating.remove(&2);
    fleet.pass(20 * SECOND);
    fleet.perform();
    assert_eq!(fleet.status(2), Down);
    fleet.pass(60 * SECOND);
    fleet.hear(&[2]);
    assert_eq!(fleet.perform(), [(2, Ready)]);
}

#[test]
fn a_node_that_comes_back_while_it_is_written_down_is_brought_back() {
    let mut fleet = Fleet::new(3);
    fleet.beating.remove(&2);
    fleet.pass(15 * SECOND);
    fleet.hear(&[2]);
    assert_eq!(fleet.perform(), [(2, Down)], "it was on its way");
    assert_eq!(
        fleet.perform(),
        [(2, Ready)],
        "without waiting for another heartbeat"
    );
}

#[test]
fn a_transition_that_was_not_written_is_asked_for_again() {
    let mut fleet = Fleet::new(3);
    fleet.beating.remove(&2);
    fleet.pass(15 * SECOND);
    assert_eq!(fleet.transitions().len(), 1);
    fleet.pass(10 * SECOND - MS);
    assert_eq!(fleet.transitions(), []);
    fleet.pass(MS);
    assert_eq!(fleet.transitions().len(), 1);

    let mut fleet = Fleet::new(3);
    fleet.put_node(4, Initializing);
    fleet.hear(&[4]);
    assert_eq!(fleet.transitions().len(), 1);
    fleet.hear(&[4]);
    assert_eq!(fleet.transitions(), [], "under way");
    fleet.pass(10 * SECOND);
    fleet.hear(&[4]);
    assert_eq!(fleet.transitions().len(), 1);
}

#[test]
fn a_purged_node_is_forgotten() {
    let mut fleet = Fleet::new(2);
    fleet.beating.remove(&2);
    fleet.delete(Key::Node(id(2)));
    assert_eq!(fleet.liveness.stats().active, 1);
    fleet.pass(60 * SECOND);
    assert_eq!(fleet.effects, []);
}

#[test]
fn without_gateways_silence_means_nothing() {
    let mut fleet = Fleet::new(3);
    fleet.beating.clear();
    fleet.disconnect(GATEWAY);
    assert_eq!(std::mem::take(&mut fleet.effects), [Effect::Blind]);
    fleet.pass(3_600 * SECOND);
    assert_eq!(fleet.effects, []);

    // Back again: every node gets the time to find a gateway.
    fleet.connect(GATEWAY);
    fleet.pass(20 * SECOND);
    fleet.hear(&[1, 3]);
    fleet.beating.extend([1, 3]);
    assert_eq!(fleet.effects, []);
    fleet.pass(5 * SECOND);
    assert_eq!(fleet.perform(), [(2, Down)]);
}

#[test]
fn a_node_believed_alive_is_not_taken_for_one_that_was_heard_of() {
    let mut fleet = Fleet::new(3);
    fleet.beating.remove(&2);
    fleet.pass(15 * SECOND);
    fleet.perform();
    fleet.disconnect(GATEWAY);
    fleet.connect(GATEWAY);
    fleet.put_node(2, Down);
    assert_eq!(fleet.transitions(), []);
    assert_eq!(fleet.status(2), Down);
}
