//! The registry of hollow nodes: pairs of a name, lost allocations, acknowledged starts.

use super::*;

const SLOT: Slot = Slot { group: 0, index: 3 };

fn registry() -> Registry {
    let mut registry = Registry::default();
    assert_eq!(registry.group("default", "web", "g"), 0);
    registry
}

fn started(id: u128, is_canary: bool) -> Event {
    Event::Started {
        id,
        slot: SLOT,
        is_canary,
    }
}

fn ended(id: u128) -> Event {
    Event::Ended { id, slot: SLOT }
}

#[test]
fn one_allocation_on_two_nodes_is_a_violation_at_once() {
    let mut registry = registry();
    registry.record(1, &[started(7, false)], 0);
    registry.record(2, &[started(7, false)], 0);
    assert_eq!(registry.violations.len(), 1);
    let text = &registry.violations[0];
    assert!(
        text.contains("default/web/g[3]") && text.contains("nodes 1 and 2"),
        "{text}"
    );
}

#[test]
fn a_name_that_runs_twice_is_a_violation_only_if_the_servers_want_both() {
    let mut registry = registry();
    registry.record(1, &[started(7, false)], 0);
    registry.record(2, &[started(8, false)], 100);
    assert_eq!(registry.pairs(1_099, 1_000), []);
    assert_eq!(registry.pairs(1_100, 1_000), [Pair(7, 8)]);
    assert_eq!(registry.violations, Vec::<String>::new());
    registry.doubled(Pair(7, 8));
    assert_eq!(registry.violations.len(), 1);
    assert_eq!(registry.pairs(9_000, 1_000), [], "told once");
    registry.doubled(Pair(7, 8));
    assert_eq!(registry.violations.len(), 1);
}

#[test]
fn a_replacement_that_outlives_the_other_and_a_canary_are_no_pairs() {
    let mut registry = registry();
    registry.record(1, &[started(7, false)], 0);
    registry.record(2, &[started(8, false)], 0);
    registry.record(1, &[ended(7)], 10);
    registry.record(3, &[started(9, true)], 10);
    assert_eq!(registry.pairs(9_000, 0), []);
    // After the canary, an ordinary one that joins the running ordinary one.
    registry.record(4, &[started(10, false)], 20);
    assert_eq!(registry.pairs(9_000, 0), [Pair(8, 10)]);
}

#[test]
fn the_time_of_a_replacement_counts_from_the_death() {
    let mut registry = registry();
    registry.record(1, &[started(7, false)], 0);
    registry.died(1, &[ended(7)], 1_000);
    assert_eq!(registry.missing(), 1);
    registry.record(2, &[started(8, false)], 13_500);
    assert_eq!(registry.missing(), 0);
    assert_eq!(registry.progress.replaced_after, [12_500]);
    // A planned end is not a death.
    registry.record(2, &[ended(8)], 14_000);
    assert_eq!((registry.missing(), registry.running()), (0, 0));
}

#[test]
fn a_node_that_beats_in_time_must_not_be_called_down() {
    for (silence, violations) in [(5_000, 1), (10_000, 1), (10_001, 0)] {
        let mut registry = registry();
        registry.called_down(1, silence, 10_000);
        assert_eq!(registry.violations.len(), violations, "{silence}");
        assert_eq!(registry.progress.downs, 1);
    }
}

#[test]
fn a_lost_allocation_of_a_living_node_is_a_violation() {
    let mut registry = registry();
    registry.record(1, &[Event::CalledLost { id: 7, slot: SLOT }], 0);
    assert_eq!((registry.progress.lost, registry.violations.len()), (1, 1));
}

#[test]
fn a_start_is_acknowledged_once_and_a_job_is_placed_once() {
    let mut registry = registry();
    registry.await_first(0, 100);
    let assigned = Event::Assigned { id: 7, slot: SLOT };
    registry.record(1, &[assigned, started(7, false)], 150);
    registry.record(1, &[Event::Assigned { id: 8, slot: SLOT }], 190);
    registry.acknowledged_running(7);
    registry.acknowledged_running(7);
    let progress = &registry.progress;
    assert_eq!(progress.placed_after, [50]);
    assert_eq!(
        (progress.assigned, progress.reported, registry.awaited()),
        (2, 1, 0)
    );
}
