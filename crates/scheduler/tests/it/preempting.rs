//! Properties of preemption, over random histories in which it may be enabled for any type of job.

use std::cell::Cell;

use model::{AllocId, DesiredStatus, TriggeredBy};
use placement::check_change;
use state::Snapshot;

use crate::random_history::{ALL, Observation, RandomHistory, play};

/// The minimum difference between the priorities of winner and victim.
const PRIORITY_DELTA: u8 = 10;

fn priority(snapshot: &Snapshot, id: AllocId) -> u8 {
    let alloc = &snapshot.alloc(id).unwrap().alloc;
    let version = snapshot.job_version(&alloc.job_key(), alloc.job_version);
    version.unwrap().value.priority
}

/// Checks all victims of a plan; returns their number.
fn check_victims(history: &RandomHistory, shown: &Observation<'_>) -> u64 {
    let seed = history.seed;
    let (plan, after) = (&shown.decision.plan, history.cluster.snapshot());
    let mut count = 0;
    for (node_id, stops) in &plan.preemptions {
        let node = &after.node(*node_id).unwrap().value;
        let usage = after.usage(*node_id).cloned().unwrap_or_default();
        for stop in stops {
            count += 1;
            let victim = &after.alloc(stop.alloc_id).unwrap().alloc;
            let winner = &after.alloc(stop.preempted_by.unwrap()).unwrap().alloc;
            let may_ask = history
                .cluster
                .config
                .preemption
                .is_enabled(shown.job.job_type);
            assert!(may_ask, "seed {seed}: {:?} may not", shown.job.job_type);
            assert_eq!(victim.desired_status, DesiredStatus::Evict, "seed {seed}");
            assert_ne!(victim.job_key(), winner.job_key(), "seed {seed}");
            assert_eq!(victim.node_id, winner.node_id, "seed {seed}");
            assert!(winner.preempted_allocs.contains(&victim.id), "seed {seed}");
            let (own, other) = (priority(&after, winner.id), priority(&after, victim.id));
            assert!(
                own >= other + PRIORITY_DELTA,
                "seed {seed}: {other} makes way for {own}"
            );
            let fits = check_change(node, &usage, [], [&victim.resources]);
            assert!(
                fits.is_err(),
                "seed {seed}: {} need not go from {}",
                victim.name(),
                node.name
            );
        }
    }
    count
}

#[test]
fn only_the_less_important_make_way_and_no_more_than_must() {
    let evicted = Cell::new(0);
    play(ALL, |history, shown| {
        evicted.set(evicted.get() + check_victims(history, &shown));
    });
    assert!(evicted.get() > 50, "only {} made way", evicted.get());
}

#[test]
fn victims_are_counted_and_their_jobs_evaluated() {
    play(ALL, |history, shown| {
        let seed = history.seed;
        let plan = &shown.decision.plan;
        let evicted = plan.preemptions.values().flatten().count();
        let counted = shown.decision.desired_updates.values();
        let counted: u32 = counted.map(|desired| desired.preemptions).sum();
        assert_eq!(evicted, counted as usize, "seed {seed}");
        let placed = plan.placements.values().flatten();
        let listed: usize = placed
            .filter(|alloc| shown.before.alloc(alloc.id).is_none())
            .map(|alloc| alloc.preempted_allocs.len())
            .sum();
        assert_eq!(evicted, listed, "seed {seed}");
        let after = history.cluster.snapshot();
        for stop in plan.preemptions.values().flatten() {
            let victim = &after.alloc(stop.alloc_id).unwrap().alloc;
            let job = victim.job_key();
            let evals = after.evals_by_job(&job).filter(|eval| {
                eval.value.triggered_by == TriggeredBy::Preemption
                    && eval.create_index > shown.before.index()
            });
            assert_eq!(evals.count(), 1, "seed {seed}: {}", victim.name());
        }
    });
}

#[test]
fn nothing_is_preempted_where_a_node_has_room() {
    play(ALL, |history, shown| {
        let (seed, plan) = (history.seed, &shown.decision.plan);
        for winner in plan.placements.values().flatten() {
            let is_new = shown.before.alloc(winner.id).is_none();
            if winner.preempted_allocs.is_empty() || !is_new || !is_anywhere(&shown) {
                continue;
            }
            let group = shown.job.task_group(&winner.task_group).unwrap();
            let is_picky = !group.constraints.is_empty()
                || !group.networks.is_empty()
                || !group.volumes.is_empty()
                || !winner.resources.devices.is_empty();
            // Another version may have asked for something else.
            if is_picky || winner.job_version != shown.job.version {
                continue;
            }
            for node in shown.before.nodes().map(|node| &node.value) {
                let usage = history.cluster.snapshot().usage(node.id).cloned();
                let usage = usage.unwrap_or_default();
                // Migrations of the plan may leave room that was not there before.
                let is_left =
                    plan.stops.contains_key(&node.id) || plan.preemptions.contains_key(&node.id);
                let fits = check_change(node, &usage, [], [&winner.resources]);
                assert!(
                    !node.is_schedulable() || is_left || fits.is_err() || node.id == winner.node_id,
                    "seed {seed}: {} has room for {}",
                    node.name,
                    winner.name()
                );
            }
        }
    });
}

fn is_anywhere(shown: &Observation<'_>) -> bool {
    !shown.job.job_type.is_per_node()
}
