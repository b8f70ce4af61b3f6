//! Mass failures: more than half of the nodes stop sending heartbeats at once.

use model::NodeStatus::{Down, Ready};

use super::fleet::{Fleet, GATEWAY, MS, SECOND};
use crate::Effect;

fn mass_failures(fleet: &mut Fleet) -> Vec<(usize, usize)> {
    let mut seen = Vec::new();
    fleet.effects.retain(|effect| match effect {
        Effect::MassFailure { silent, nodes, .. } => {
            seen.push((*silent, *nodes));
            false
        }
        _ => true,
    });
    seen
}

#[test]
fn a_mass_failure_is_held_for_one_more_ttl_and_said_once() {
    let mut fleet = Fleet::new(5);
    for number in 1..=3 {
        fleet.beating.remove(&number);
    }
    fleet.pass(15 * SECOND);
    assert_eq!(mass_failures(&mut fleet), [(3, 5)]);
    fleet.pass(10 * SECOND - MS);
    assert_eq!(fleet.effects, []);
    fleet.pass(MS);
    let mut fallen = fleet.perform();
    fallen.sort_unstable_by_key(|(number, _)| *number);
    assert_eq!(fallen, [(1, Down), (2, Down), (3, Down)]);
    fleet.pass(60 * SECOND);
    assert_eq!(fleet.effects, []);
}

#[test]
fn those_that_come_back_while_it_is_held_stay_ready() {
    let mut fleet = Fleet::new(5);
    for number in 1..=4 {
        fleet.beating.remove(&number);
    }
    fleet.pass(20 * SECOND);
    assert_eq!(mass_failures(&mut fleet), [(4, 5)]);
    fleet.beating.extend([1, 2, 3]);
    fleet.hear(&[1, 2, 3]);
    fleet.pass(10 * SECOND);
    assert_eq!(fleet.perform(), [(4, Down)]);
}

#[test]
fn half_is_not_more_than_half_and_one_node_is_no_mass() {
    let mut half = Fleet::new(4);
    half.beating.remove(&1);
    half.beating.remove(&2);
    half.pass(15 * SECOND);
    assert_eq!(half.perform().len(), 2);

    let mut single = Fleet::new(1);
    single.beating.clear();
    single.pass(15 * SECOND);
    assert_eq!(single.perform(), [(1, Down)]);
}

#[test]
fn a_mass_failure_that_comes_in_dribs_is_seen() {
    // Last heard of one second after the other, as heartbeats are.
    let mut fleet = Fleet::new(8);
    for number in 1..=6 {
        fleet.beating.remove(&number);
        fleet.pass(SECOND);
        let rest: Vec<u128> = (number + 1..=6).collect();
        fleet.hear(&rest);
    }
    fleet.pass(9 * SECOND);
    // When the first is over, five others are late already.
    assert_eq!(mass_failures(&mut fleet).len(), 1);
    assert_eq!(fleet.transitions(), []);
}

#[test]
fn a_second_mass_failure_is_held_too() {
    let mut fleet = Fleet::new(10);
    for number in 1..=6 {
        fleet.beating.remove(&number);
    }
    fleet.pass(60 * SECOND);
    assert_eq!(mass_failures(&mut fleet).len(), 1);
    assert_eq!(fleet.perform().len(), 6);
    fleet.effects.clear();
    fleet.pass(60 * SECOND);
    fleet.effects.clear();
    for number in 7..=9 {
        fleet.beating.remove(&number);
    }
    fleet.pass(16 * SECOND);
    assert_eq!(mass_failures(&mut fleet), [(3, 4)]);
    assert_eq!(fleet.transitions(), []);
}

/// Five nodes of which 1, 2 and 3 have long been down.
fn with_three_long_down() -> Fleet {
    let mut fleet = Fleet::new(5);
    for number in 1..=3 {
        fleet.beating.remove(&number);
    }
    fleet.pass(60 * SECOND);
    assert_eq!(fleet.perform().len(), 3);
    fleet.pass(60 * SECOND);
    fleet.effects.clear();
    fleet
}

#[test]
fn writes_to_nodes_that_are_down_do_not_make_them_count() {
    let mut fleet = with_three_long_down();
    for number in 1..=3 {
        // As `node eligibility -disable` does.
        fleet.put_node(number, Down);
    }
    assert_eq!(fleet.liveness.stats().active, 2);
    fleet.beating.remove(&4);
    fleet.pass(15 * SECOND);
    assert_eq!(mass_failures(&mut fleet), []);
    let fallen = fleet.perform();
    assert_eq!(fallen, [(4, Down)], "as soon as ever");
    fleet.pass(60 * SECOND);
    assert_eq!(fleet.effects, []);
}

#[test]
fn nodes_that_have_just_gone_down_are_not_believed_when_a_gateway_returns() {
    let mut fleet = Fleet::new(5);
    for number in 1..=2 {
        fleet.beating.remove(&number);
    }
    fleet.pass(15 * SECOND);
    assert_eq!(fleet.perform().len(), 2);
    fleet.disconnect(GATEWAY);
    fleet.connect(GATEWAY);
    fleet.pass(20 * SECOND);
    fleet.effects.clear();
    assert_eq!(fleet.liveness.stats().active, 3);
    // One more, while the two would be silent for the second time.
    fleet.beating.remove(&3);
    fleet.pass(15 * SECOND);
    assert_eq!(mass_failures(&mut fleet), []);
    assert_eq!(fleet.perform(), [(3, Down)]);
}

#[test]
fn a_node_that_is_down_counts_again_once_it_is_heard_of() {
    let mut fleet = with_three_long_down();
    fleet.put_node(1, Down);
    fleet.hear(&[1]);
    assert_eq!(fleet.perform(), [(1, Ready)]);
    assert_eq!(fleet.liveness.stats().active, 3);
}
