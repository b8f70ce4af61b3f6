//! Staged pieces: their compares, and the rebase onto changes by others.

use std::sync::Arc;

use applier::{Piece, PlanVerification, staged};
use model::{Allocation, EvalStatus, Plan};
use state::{Entity, Key, PlanCommit, PlanPiece, Progress, Write};

use crate::store::{NOW, Store, stop};

fn accepted(store: &Store, plan: &Plan) -> Vec<Arc<Piece>> {
    match applier::verify(&store.snapshot(), plan, NOW) {
        PlanVerification::Accepted(accepted) => accepted.pieces,
        other => panic!("{other:?}"),
    }
}

fn written(ops: &[Write]) -> Vec<&Write> {
    ops.iter().filter(|op| op.entity().is_some()).collect()
}

/// A plan that stops one allocation and places another, with its staged piece.
fn exchange(store: &mut Store) -> (Plan, Allocation, PlanPiece) {
    let node = store.add_node(1, |_| {});
    let old = store.running("web", node, 100);
    let old = store.alloc(old);
    let mut plan = store.start_plan("web");
    plan.stops.entry(node).or_default().push(stop(old.id));
    store.place(&mut plan, node, 50);
    let job = store.snapshot().job(&plan.job).unwrap().create_index;
    for alloc in plan.placements.values_mut().flatten() {
        alloc.job_create_index = job;
    }
    let pieces = accepted(store, &plan);
    assert_eq!(pieces.len(), 1);
    (plan, old, staged::stage(&pieces[0]))
}

fn rebased(store: &Store, plan: &Plan, piece: &PlanPiece) -> Vec<Write> {
    let at = Progress { piece: 0, ops: 0 };
    staged::rebase(&store.snapshot(), plan.eval_id, at, piece, NOW)
}

#[test]
fn unchanged_objects_are_written_as_staged() {
    let mut store = Store::new(1);
    let (plan, _, piece) = exchange(&mut store);
    let ops = rebased(&store, &plan, &piece);
    let meant: Vec<_> = piece
        .ops
        .iter()
        .filter_map(|op| op.entity().cloned())
        .collect();
    let found: Vec<_> = ops.iter().filter_map(|op| op.entity().cloned()).collect();
    assert_eq!(found, meant);
    // The job and the node are compared as they are now.
    let compared = |key: &Key| {
        let found = ops
            .iter()
            .find(|op| op.key() == key && op.entity().is_none());
        found.is_some()
    };
    assert!(compared(&Key::Job(plan.job.clone())));
    let node = *plan.placements.keys().next().unwrap();
    assert!(compared(&Key::Node(node)));
}

#[test]
fn a_piece_that_was_written_already_adds_nothing() {
    let mut store = Store::new(2);
    let (plan, _, piece) = exchange(&mut store);
    let pieces = accepted(&store, &plan);
    store.commit(&pieces).unwrap();
    let ops = rebased(&store, &plan, &piece);
    assert!(ops.iter().all(|op| op.created_alloc().is_none()), "{ops:?}");
}

#[test]
fn a_mark_of_others_stays_on_an_allocation() {
    let mut store = Store::new(3);
    let (plan, old, piece) = exchange(&mut store);
    let mut marked = old.clone();
    marked.transition.migrate = true;
    let key = Key::Alloc(old.id);
    store.put(key.clone(), Entity::Alloc(Box::new(marked)));
    let ops = rebased(&store, &plan, &piece);
    let op = ops.iter().find(|op| *op.key() == key).unwrap();
    let Some(Entity::Alloc(alloc)) = op.entity() else {
        panic!("{op:?}");
    };
    assert!(alloc.transition.migrate && alloc.is_server_terminal());
    store
        .commit(&[Arc::new(Piece { ops, bytes: 0 })])
        .expect("built on what is there");
}

#[test]
fn an_evaluation_that_ended_otherwise_keeps_its_outcome() {
    let mut store = Store::new(4);
    let (plan, _, piece) = exchange(&mut store);
    let mut eval = store.snapshot().eval(plan.eval_id).unwrap().value.clone();
    eval.status = EvalStatus::Failed;
    let key = Key::Eval(plan.eval_id);
    store.put(key.clone(), Entity::Eval(Box::new(eval)));
    let ops = rebased(&store, &plan, &piece);
    assert!(written(&ops).iter().all(|op| *op.key() != key));
    assert!(ops.iter().any(|op| op.created_alloc().is_some()));
}

#[test]
fn a_changed_node_gets_its_allocations_and_the_job_an_evaluation() {
    let mut store = Store::new(5);
    let (plan, _, piece) = exchange(&mut store);
    let before = rebased(&store, &plan, &piece);
    let node = *plan.placements.keys().next().unwrap();
    store.edit_node(node, |node| node.status_description.push('.'));
    let ops = rebased(&store, &plan, &piece);
    assert_eq!(written(&ops).len(), written(&before).len() + 1);
    let Some(Entity::Eval(eval)) = ops.last().and_then(Write::entity) else {
        panic!("{ops:?}");
    };
    assert_eq!((&eval.job, eval.status), (&plan.job, EvalStatus::Pending));
    assert_eq!(eval.previous_eval, Some(plan.eval_id));
}

/// The number of compares is limited; those of the whole plan come first.
#[test]
fn the_record_compares_as_much_as_a_transaction_can_hold() {
    let mut store = Store::new(6);
    let mut plan = store.start_plan("large");
    plan.all_at_once = true;
    for number in 1..=1_500 {
        let node = store.add_node(number, |_| {});
        store.place(&mut plan, node, 1);
    }
    let pieces = accepted(&store, &plan);
    assert!(pieces.len() > 1);
    let compares = staged::compares(&pieces);
    assert!(
        compares.len() > 900 && compares.len() < 1_000,
        "{}",
        compares.len()
    );
    let first: Vec<&Key> = compares.iter().take(2).map(Write::key).collect();
    let expected = [Key::Job(plan.job.clone()), Key::Eval(plan.eval_id)];
    assert_eq!(first, expected.iter().collect::<Vec<_>>());
    assert!(compares.iter().all(|op| op.entity().is_none()));
}

/// Each move compares what it relies on, so that no piece is moved twice.
#[test]
fn a_piece_is_moved_with_its_deletion_and_the_last_one_with_the_record() {
    let mut store = Store::new(7);
    let (plan, _, piece) = exchange(&mut store);
    let id = plan.eval_id;
    let (first, last) = (Key::PlanPiece(id, 0), Key::PlanPiece(id, 1));
    let record = Key::PlanCommit(id);
    let next = |store: &Store, position, ops_max| {
        staged::next_move(&store.snapshot(), id, position, NOW, ops_max)
    };
    let deleted = |key: &Key, modify_index| Write::Delete {
        key: key.clone(),
        modify_index,
    };
    assert_eq!(next(&store, 0, usize::MAX), None, "nothing is staged");
    let [first_index, last_index] = [&first, &last].map(|key| {
        let entity = Entity::PlanPiece(Box::new(piece.clone()));
        store.put(key.clone(), entity)
    });
    assert_eq!(next(&store, 0, usize::MAX), None, "it is not committed");
    let commit = PlanCommit {
        pieces: 2,
        begun: None,
    };
    let record_index = store.put(record.clone(), Entity::PlanCommit(commit));

    let moved = next(&store, 0, usize::MAX).unwrap();
    assert!(moved.finishes);
    assert_eq!(moved.ops, piece.ops.len());
    let [.., of_piece, of_record] = moved.writes.as_slice() else {
        panic!("{moved:?}")
    };
    assert_eq!(of_piece, &deleted(&first, first_index));
    assert_eq!(of_record, &Write::require(record.clone(), record_index));
    let moved = next(&store, 1, usize::MAX).unwrap();
    assert_eq!(moved.writes.last(), Some(&deleted(&record, record_index)));

    // In parts, the record keeps the progress.
    let part = next(&store, 1, 2).unwrap();
    assert_eq!((part.ops, part.finishes), (2, false));
    let [.., of_piece, Write::Update { key, entity, .. }] = part.writes.as_slice() else {
        panic!("{part:?}")
    };
    assert_eq!(of_piece, &Write::require(last, last_index));
    assert_eq!(key, &record);
    let begun = PlanCommit {
        begun: Some(Progress { piece: 1, ops: 2 }),
        ..commit
    };
    assert_eq!(entity, &Entity::PlanCommit(begun));
    store.put(record.clone(), entity.clone());
    let rest = next(&store, 1, usize::MAX).unwrap();
    assert_eq!((rest.ops, rest.finishes), (piece.ops.len() - 2, true));
}

#[test]
fn a_plan_is_committed_by_a_record_and_its_compares() {
    let mut store = Store::new(8);
    let (plan, ..) = exchange(&mut store);
    let pieces = accepted(&store, &plan);
    let writes = staged::commit(plan.eval_id, &pieces);
    assert_eq!(writes[0].key(), &Key::PlanCommit(plan.eval_id));
    assert_eq!(
        writes[0].entity(),
        Some(&Entity::PlanCommit(PlanCommit {
            pieces: 1,
            begun: None
        }))
    );
    assert_eq!(writes[1..], staged::compares(&pieces));
}
