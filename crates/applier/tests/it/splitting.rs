//! Splitting: pieces within a transaction's limits, together the whole plan, in a safe order.

use std::collections::BTreeSet;

use applier::piece::{BYTES_MAX, OPERATIONS_MAX};
use applier::{Piece, PlanVerification, verify};
use model::plan::Stop;
use model::{AllocMetric, DesiredStatus, Plan, StoredMetric};
use state::{Entity, Key, Write};

use crate::store::{NOW, Store, stop};

fn pieces(store: &Store, plan: &Plan) -> Vec<std::sync::Arc<Piece>> {
    match verify(&store.snapshot(), plan, NOW) {
        PlanVerification::Accepted(accepted) => accepted.pieces,
        other => panic!("{other:?}"),
    }
}

/// Returns a plan of `count` placements, ten a node, that also stops `stops` running ones.
fn large_plan(store: &mut Store, count: usize, stops: usize) -> Plan {
    let nodes: Vec<_> = (1..=count.div_ceil(10).max(1))
        .map(|number| store.add_node(number as u128, |node| node.resources.cpu_mhz = 1_000_000))
        .collect();
    let mut running = store.start_plan("web");
    let old: Vec<_> = (0..stops)
        .map(|position| {
            let node = nodes[position % nodes.len()];
            (node, store.place(&mut running, node, 1))
        })
        .collect();
    for piece in pieces(store, &running) {
        store.commit(&[piece]).unwrap();
    }
    let mut plan = store.start_plan("web");
    for position in 0..count {
        let node = nodes[position % nodes.len()];
        store.place(&mut plan, node, 1);
    }
    for (node, id) in old {
        let stops: &mut Vec<Stop> = plan.stops.entry(node).or_default();
        stops.push(stop(id));
    }
    plan
}

fn check_bounds(pieces: &[std::sync::Arc<Piece>]) {
    for piece in pieces {
        // The writer's fence is one more.
        assert!(
            piece.ops.len() < OPERATIONS_MAX,
            "{} operations",
            piece.ops.len()
        );
        assert!(piece.bytes < BYTES_MAX, "{} bytes", piece.bytes);
        let values = piece
            .ops
            .iter()
            .filter_map(Write::entity)
            .map(|entity| match entity {
                Entity::Alloc(alloc) => serde_json::to_vec(alloc).unwrap().len(),
                Entity::Eval(eval) => serde_json::to_vec(eval).unwrap().len(),
                _ => 0,
            });
        assert!(values.sum::<usize>() < piece.bytes);
    }
}

#[test]
fn a_large_plan_is_split_within_the_limits_and_loses_nothing() {
    let mut store = Store::new(1);
    let plan = large_plan(&mut store, 3_000, 500);
    let pieces = pieces(&store, &plan);
    assert!(pieces.len() >= 4, "{} pieces", pieces.len());
    check_bounds(&pieces);
    let ops = || pieces.iter().flat_map(|piece| &piece.ops);
    let created: BTreeSet<_> = ops().filter_map(Write::created_alloc).collect();
    let wanted: BTreeSet<_> = plan
        .placements
        .values()
        .flatten()
        .map(|alloc| alloc.id)
        .collect();
    assert_eq!(created, wanted);
    for piece in &pieces {
        store.commit(std::slice::from_ref(piece)).unwrap();
    }
    let stops = plan.stops.values().flatten();
    assert!(
        stops
            .into_iter()
            .all(|stop| store.alloc(stop.alloc_id).is_server_terminal())
    );
}

#[test]
fn stops_come_first_and_the_outcome_last() {
    let mut store = Store::new(2);
    let plan = large_plan(&mut store, 1_500, 100);
    let pieces = pieces(&store, &plan);
    let writes: Vec<_> = pieces
        .iter()
        .flat_map(|piece| &piece.ops)
        .filter_map(Write::entity)
        .collect();
    let is_stop = |entity: &&Entity| matches!(entity, Entity::Alloc(alloc) if alloc.desired_status == DesiredStatus::Stop);
    assert!(writes[..100].iter().all(is_stop));
    assert!(!writes[100..].iter().any(is_stop));
    assert!(matches!(writes.last(), Some(Entity::Eval(_))));
}

#[test]
fn every_piece_compares_the_job_the_evaluation_and_its_nodes() {
    let mut store = Store::new(3);
    let plan = large_plan(&mut store, 1_500, 0);
    for piece in pieces(&store, &plan) {
        let keys: BTreeSet<_> = piece.ops.iter().map(Write::key).collect();
        assert!(keys.contains(&Key::Job(plan.job.clone())));
        assert!(keys.contains(&Key::Eval(plan.eval_id)));
        for op in &piece.ops {
            if let Some(Entity::Alloc(alloc)) = op.entity() {
                assert!(keys.contains(&Key::Node(alloc.node_id)));
            }
        }
        assert_eq!(keys.len(), piece.ops.len(), "no key twice");
    }
}

#[test]
fn heavy_allocations_make_more_pieces() {
    let mut store = Store::new(4);
    let mut plan = large_plan(&mut store, 900, 0);
    assert_eq!(pieces(&store, &plan).len(), 1);
    for alloc in plan.placements.values_mut().flatten() {
        alloc.desired_description = "\u{1}".repeat(1_000);
        alloc.metric = Some(StoredMetric::from(AllocMetric {
            constraint_filtered: [("why \"not\"".repeat(100), 1)].into(),
            ..AllocMetric::default()
        }));
    }
    let pieces = pieces(&store, &plan);
    assert!(pieces.len() > 5, "{} pieces", pieces.len());
    check_bounds(&pieces);
}

#[test]
fn a_plan_that_changes_nothing_only_ends_its_evaluation() {
    let mut store = Store::new(5);
    let plan = store.start_plan("web");
    let pieces = pieces(&store, &plan);
    assert_eq!(pieces.len(), 1);
    let writes: Vec<_> = pieces[0].ops.iter().filter_map(Write::entity).collect();
    assert!(matches!(writes.as_slice(), [Entity::Eval(_)]));
}
