//! The controller's own trouble does not count against nodes: stalls, silent gateways, storms.

use std::time::Duration;

use model::NodeStatus::{Down, Ready};
use model::Timestamp;
use proptest::prelude::*;

use super::fleet::{Fleet, GATEWAY, MS, SECOND, id};
use crate::{ControllerHealth, Effect, Event, StreamId};

const OTHER: StreamId = StreamId(2);

/// The process does not run for a while; gateways keep their heartbeats meanwhile.
fn stall(fleet: &mut Fleet, duration: Duration) {
    fleet.now = fleet.now.plus(duration);
    fleet.step(Event::Tick);
}

#[test]
fn a_stall_moves_all_deadlines_and_is_reported() {
    let mut fleet = Fleet::new(3);
    fleet.pass(3 * SECOND);
    fleet.effects.clear();
    fleet.beating.clear();
    stall(&mut fleet, 60 * SECOND);
    let stall = fleet.effects.pop();
    assert!(
        matches!(stall, Some(Effect::Stalled { stall }) if stall >= 60 * SECOND),
        "{stall:?}"
    );
    // Heard of 3 s before the stall: 12 s are left of 15, after 2.5 s in which none counts.
    fleet.pass(14 * SECOND);
    assert_eq!(fleet.transitions(), []);
    let lost = fleet.liveness.stats().lost;
    assert!(lost >= 62 * SECOND && lost <= 63 * SECOND, "{lost:?}");
    fleet.pass(20 * SECOND);
    let mut down = fleet.perform();
    down.sort_unstable_by_key(|(number, _)| *number);
    assert_eq!(down, [(1, Down), (2, Down), (3, Down)], "time counts again");
}

#[test]
fn short_stalls_one_after_the_other_do_not_add_up() {
    let mut fleet = Fleet::new(3);
    fleet.beating.clear();
    for _ in 0..30 {
        stall(&mut fleet, 2 * SECOND);
        fleet.pass(SECOND / 2);
    }
    fleet
        .effects
        .retain(|effect| !matches!(effect, Effect::Stalled { .. }));
    assert_eq!(fleet.effects, []);
}

#[test]
fn time_does_not_count_without_the_store_or_the_lease_or_any_message() {
    let sound = Fleet::new(1).controller_health;
    let without_store = ControllerHealth {
        store_silent_for: 4 * SECOND,
        ..sound
    };
    let without_lease = ControllerHealth {
        leads_for: Duration::ZERO,
        ..sound
    };
    for (what, controller_health, is_speaking, falls) in [
        ("all is well", sound, true, true),
        ("no store", without_store, true, false),
        ("no lease", without_lease, true, false),
        ("no message of any gateway", sound, false, false),
    ] {
        let mut fleet = Fleet::new(5);
        fleet.beating.remove(&2);
        fleet.controller_health = controller_health;
        if !is_speaking {
            fleet.beating.clear();
            fleet.speaking.clear();
        }
        fleet.pass(60 * SECOND);
        assert_eq!(!fleet.refuse().is_empty(), falls, "{what}");
        // Back to normal.
        fleet.controller_health = sound;
        fleet.speaking.insert(GATEWAY);
        fleet.hear(&[1, 3, 4, 5]);
        fleet.beating.extend([1, 3, 4, 5]);
        fleet.pass(16 * SECOND);
        let down = fleet.perform();
        assert_eq!(down, [(2, Down)], "{what}");
    }
}

/// Ten nodes, of which five use another gateway.
fn with_two_gateways() -> Fleet {
    let mut fleet = Fleet::new(10);
    fleet.connect(OTHER);
    for number in 6..=10 {
        fleet.beating.remove(&number);
    }
    fleet
}

#[test]
fn the_nodes_of_a_lost_gateway_get_a_ttl_to_use_another_one() {
    // (loss of the stream, how the gateway is lost, when the nodes are down): seconds after their
    // last heartbeat.
    for (lost_at, ends, down_at) in [(4, true, 15), (8, true, 18), (14, true, 24), (4, false, 19)] {
        let mut fleet = with_two_gateways();
        fleet.hear_at(OTHER, &[6, 7, 8, 9, 10]);
        fleet.pass(lost_at * SECOND);
        if ends {
            fleet.disconnect(OTHER);
        } else {
            // Nothing arrives any more: it is noticed half a TTL later.
            fleet.speaking.remove(&OTHER);
        }
        fleet.pass((down_at - lost_at) * SECOND - SECOND / 10);
        assert_eq!(fleet.transitions(), [], "{lost_at} {ends}");
        fleet.pass(SECOND + SECOND / 10);
        assert_eq!(fleet.transitions().len(), 5, "{lost_at} {ends}");
        let lost = |effect: &Effect| matches!(effect, Effect::GatewayLost { nodes: 5, .. });
        assert_eq!(
            fleet.effects.iter().any(lost),
            down_at > 15,
            "{lost_at} {ends}"
        );
    }
}

#[test]
fn a_gateway_that_comes_and_goes_keeps_no_dead_node_alive() {
    let mut fleet = with_two_gateways();
    fleet.hear_at(OTHER, &[6]);
    fleet.hear(&[7, 8, 9, 10]);
    fleet.beating.extend([7, 8, 9, 10]);
    for _ in 0..12 {
        fleet.pass(2 * SECOND);
        fleet.disconnect(OTHER);
        fleet.connect(OTHER);
    }
    assert_eq!(fleet.perform(), [(6, Down)]);
}

#[test]
fn a_storm_is_written_at_the_pace_of_the_store_and_spares_nodes_that_return_in_time() {
    let mut fleet = Fleet::new(2_000);
    for number in 1..=500 {
        fleet.beating.remove(&number);
    }
    fleet.pass(16 * SECOND);
    let first = fleet.transitions();
    assert_eq!(first.len(), 32, "as many as may be in flight");
    // The others are heard of before their turn: none of them is marked down.
    let returned: Vec<u128> = (1..=500).collect();
    fleet.hear(&returned);
    for _ in 0..500 {
        fleet.step(Event::Written);
    }
    fleet.pass(5 * SECOND);
    let down = |transition: &crate::Transition| transition.to == Down;
    assert!(!fleet.transitions().iter().any(down));
}

#[test]
fn nodes_return_at_a_pace() {
    let mut fleet = Fleet::new(1);
    for number in 2..=1_001 {
        fleet.put_node(number, Down);
    }
    let all: Vec<u128> = (2..=1_001).collect();
    let began = fleet.now;
    fleet.hear(&all);
    let mut returned = fleet.perform();
    assert!(returned.len() <= 32, "{}", returned.len());
    while returned.len() < 1_000 && fleet.now.since(began) < 10 * SECOND {
        let written = fleet.perform();
        if written.is_empty() {
            let deadline = fleet.liveness.next_deadline().unwrap();
            fleet.now = deadline.max(fleet.now.plus(MS));
            fleet.step(Event::Tick);
        }
        returned.extend(written);
    }
    assert_eq!(returned.len(), 1_000);
    assert!(returned.iter().all(|(_, status)| *status == Ready));
    let took = fleet.now.since(began);
    assert!(took >= 1_700 * MS && took <= 3 * SECOND, "{took:?}");
    assert_eq!(fleet.snapshot().node(id(7)).unwrap().value.status, Ready);
}

/// A stall: when it begins after the last one, and how long it is, in steps of 50 ms.
type Stalls = Vec<(u64, u64)>;

fn stalls() -> impl Strategy<Value = Stalls> {
    // Between two stalls the process runs long enough to read what has arrived: 300 ms.
    prop::collection::vec((6..200_u64, 1..600_u64), 0..12)
}

proptest! {
    /// Gateways hear every node within half a TTL, and report every 200 ms; messages that arrived
    /// during a stall are read some time after it, the later ones last.
    #[test]
    fn a_node_whose_heartbeats_reach_a_connected_gateway_is_never_down(
        stalls in stalls(),
        phases in prop::collection::vec(0..100_u64, 4),
        reading in 0..5_u64,
    ) {
        const STEP: Duration = Duration::from_millis(50);
        let mut fleet = Fleet::new(4);
        fleet.beating.clear();
        fleet.speaking.clear();
        fleet.connect(OTHER);
        let began = fleet.now;
        let mut waiting: [Vec<(u64, Vec<u128>)>; 2] = Default::default();
        let mut running = stalls.iter();
        let (mut stalls_at, mut runs_at, mut resumed_at) = (u64::MAX, 0_u64, 0_u64);
        if let Some((after, length)) = running.next() {
            (stalls_at, runs_at) = (*after, after + length);
        }
        for step in 0..3_000_u64 {
            // Each node sends a heartbeat every 5 s, now to one gateway and then to the other.
            let beating: Vec<u128> = (1..=4_u128)
                .zip(&phases)
                .filter(|(_, phase)| (step + **phase).is_multiple_of(100))
                .map(|(number, _)| number)
                .collect();
            let gateway = usize::try_from(step / 100 % 2).unwrap();
            if !beating.is_empty() {
                waiting[gateway].push((step, beating));
            }
            if step.is_multiple_of(20) {
                waiting.iter_mut().for_each(|queue| queue.push((step, Vec::new())));
            }
            if step >= stalls_at && step < runs_at {
                continue;
            }
            if step >= runs_at && stalls_at < runs_at {
                resumed_at = step;
                stalls_at = match running.next() {
                    Some((after, length)) => {
                        let at = step + after;
                        runs_at = at + length;
                        at
                    }
                    None => u64::MAX,
                };
            }
            fleet.now = Timestamp(began.0).plus(STEP * u32::try_from(step).unwrap());
            // The clock first: the worst order.
            fleet.step(Event::Tick);
            if step - resumed_at >= reading {
                for (queue, stream) in waiting.iter_mut().zip([GATEWAY, OTHER]) {
                    for (_, numbers) in queue.drain(..) {
                        let nodes = numbers.iter().map(|number| id(*number)).collect();
                        fleet.step(Event::Heard { stream, nodes });
                    }
                }
            }
            prop_assert_eq!(fleet.transitions(), []);
        }
    }
}
