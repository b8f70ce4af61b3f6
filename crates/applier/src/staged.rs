//! Plans that are written as a whole although one transaction cannot hold them.
//!
//! ```text
//! put piece 0 aside … put piece n aside → commit record → move piece 0 … move piece n
//!            nothing is valid             all of it is       (the record goes with the last)
//! ```
//!
//! The record's transaction carries the plan's compares, so at its revision everything was as it had
//! been verified. What changes afterwards changes for a plan that holds: [`rebase`] writes each piece
//! as if it had been there before the change. No other plan is committed in between, by whichever
//! leader, so nobody else adds to what allocations hold.
//!
//! **Invariant**: a piece is moved in the transaction that deletes it, so it is moved once. One that
//! etcd finds too large is moved in parts ([`part`]), each with the record that says how far it is.
//! **Invariant**: a leader begins by moving what holds and deleting what does not ([`left_behind`]).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use model::{Allocation, EvalId, Evaluation, Indexed, Job, JobKey, Timestamp, TriggeredBy};
use state::{Entity, Key, PlanPiece, Progress, Snapshot, StagedOp};

use crate::cut::Piece;
use crate::op::Op;

/// Returns a piece as it is put aside.
pub fn stage(piece: &Piece) -> PlanPiece {
    let ops = piece.ops.iter().map(|op| StagedOp {
        key: op.key().clone(),
        modify_index: match op {
            Op::Create { .. } => 0,
            Op::Update { modify_index, .. } | Op::Check { modify_index, .. } => *modify_index,
        },
        entity: op.entity().cloned(),
    });
    PlanPiece { ops: ops.collect() }
}

/// Returns what the commit record's transaction compares: all that the pieces are built on, as far
/// as there is room beside the record. Whole kinds come first that decide over the plan; nodes and
/// allocations beyond that are looked at when their piece is moved.
pub fn compares(pieces: &[Arc<Piece>]) -> Vec<Op> {
    let mut seen = BTreeSet::new();
    let mut compares = Vec::new();
    let ops = pieces.iter().flat_map(|piece| &piece.ops);
    for op in ops {
        let modify_index = match op {
            Op::Create { .. } => continue,
            Op::Update { modify_index, .. } | Op::Check { modify_index, .. } => *modify_index,
        };
        if seen.insert(op.key().clone()) {
            compares.push(Op::Check {
                key: op.key().clone(),
                modify_index,
            });
        }
    }
    let rank = |op: &Op| match op.key() {
        Key::Node(_) => 1,
        Key::Alloc(_) => 2,
        _ => 0,
    };
    compares.sort_by_key(rank);
    let mut room = Piece::default();
    compares.retain(|op| room.take(op.clone()));
    compares
}

/// What a former leader has left behind of one plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftBehind {
    pub eval_id: EvalId,
    /// Whether it is to be moved where it belongs; else it is to be deleted.
    pub holds: bool,
    /// Which pieces are there, in order.
    pub positions: Vec<u32>,
}

/// Lists what was left behind; usually nothing.
pub fn left_behind(snapshot: &Snapshot) -> Vec<LeftBehind> {
    let mut found = BTreeMap::<EvalId, Vec<u32>>::new();
    for (eval_id, _) in snapshot.plan_commits() {
        found.entry(eval_id).or_default();
    }
    for (eval_id, position, _) in snapshot.plan_pieces() {
        found.entry(eval_id).or_default().push(position);
    }
    let left = found.into_iter().map(|(eval_id, positions)| LeftBehind {
        eval_id,
        holds: snapshot.plan_commit(eval_id).is_some(),
        positions,
    });
    left.collect()
}

/// Returns some of a piece's operations, and what they are built on wherever that stands in the piece.
pub fn part(piece: &PlanPiece, range: Range<usize>) -> Cow<'_, PlanPiece> {
    if range == (0..piece.ops.len()) {
        return Cow::Borrowed(piece);
    }
    let writes = piece.ops.iter().enumerate();
    let writes = writes.filter(|(index, op)| range.contains(index) && op.entity.is_some());
    let writes: Vec<_> = writes.map(|(_, op)| op).collect();
    let nodes = writes.iter().filter_map(|op| match &op.entity {
        Some(Entity::Alloc(alloc)) => Some(alloc.node_id),
        _ => None,
    });
    let nodes: BTreeSet<_> = nodes.collect();
    let checks = piece.ops.iter().filter(|op| match &op.key {
        Key::Node(id) => op.entity.is_none() && nodes.contains(id),
        _ => op.entity.is_none(),
    });
    Cow::Owned(PlanPiece {
        ops: checks.chain(writes).cloned().collect(),
    })
}

/// Returns what is written for a piece of a plan that holds (or the part of one that comes after
/// what `at` says), built on `snapshot`: what others have
/// changed meanwhile, of what is theirs, stays.
///
/// - A placement whose job is gone (or another of the same name) is left out: whatever else of the job
///   there is will be stopped, too.
/// - A node that is not as it was verified gets its allocations all the same, as if they had been
///   there before; and the job is looked at again, because whoever changed the node did not see them.
/// - An allocation that was marked meanwhile keeps the mark; one that was collected stays away.
/// - A deployment or an evaluation that has ended otherwise keeps its end.
pub fn rebase(
    snapshot: &Snapshot,
    eval_id: EvalId,
    at: Progress,
    piece: &PlanPiece,
    now: Timestamp,
) -> Vec<Op> {
    let mut ops = Vec::with_capacity(piece.ops.len());
    let mut nodes_differ = false;
    let job = placed_for(snapshot, piece);
    for op in &piece.ops {
        let current = current_index(snapshot, &op.key);
        match (&op.entity, &op.key) {
            (None, Key::Node(_)) => {
                nodes_differ |= current != op.modify_index;
                ops.push(check(&op.key, current));
            }
            // What the record has compared.
            (None, _) => {}
            (Some(entity), _) if op.modify_index == 0 => {
                let needs_job = matches!(op.key, Key::Alloc(_) | Key::Deployment(_));
                let is_there = current != 0;
                if !is_there && (job.is_some() || !needs_job) {
                    ops.push(Op::Create {
                        key: op.key.clone(),
                        entity: entity.clone(),
                    });
                }
            }
            (Some(entity), _) if current == op.modify_index => ops.push(Op::Update {
                key: op.key.clone(),
                entity: entity.clone(),
                modify_index: current,
            }),
            (Some(entity), _) => ops.extend(merged(snapshot, entity)),
        }
    }
    if let Some(job) = job {
        // So that it is not purged, with the version that is placed, at this very moment.
        ops.push(check(&Key::Job(job.value.key()), job.modify_index));
        if nodes_differ {
            let eval = look_again(job, eval_id, at, now);
            ops.push(Op::Create {
                key: Key::Eval(eval.id),
                entity: Entity::Eval(Box::new(eval)),
            });
        }
    }
    ops
}

/// Returns the job that the piece places allocations for, if it is still the same.
fn placed_for<'s>(snapshot: &'s Snapshot, piece: &PlanPiece) -> Option<&'s Arc<Indexed<Job>>> {
    let mut keys = piece.ops.iter().filter_map(|op| match &op.key {
        Key::Job(key) => Some(key),
        _ => None,
    });
    let key: &JobKey = keys.next()?;
    let job = snapshot.job(key)?;
    let mut allocs = piece.ops.iter().filter_map(|op| match &op.entity {
        Some(Entity::Alloc(alloc)) if op.modify_index == 0 => Some(alloc),
        _ => None,
    });
    let is_same = allocs.all(|alloc| alloc.job_create_index == job.create_index);
    is_same.then_some(job)
}

fn check(key: &Key, modify_index: u64) -> Op {
    let key = key.clone();
    Op::Check { key, modify_index }
}

/// Returns the mod revision of what a plan writes or compares; 0: it is not there.
fn current_index(snapshot: &Snapshot, key: &Key) -> u64 {
    let index = match key {
        Key::Alloc(id) => snapshot.alloc(*id).map(|view| view.alloc_modify_index),
        Key::Eval(id) => snapshot.eval(*id).map(|row| row.modify_index),
        Key::Deployment(id) => snapshot.deployment(*id).map(|row| row.modify_index),
        Key::Node(id) => snapshot.node(*id).map(|row| row.modify_index),
        Key::Job(key) => snapshot.job(key).map(|row| row.modify_index),
        Key::VolumeClaim(id) => snapshot.volume_claim(*id).map(|row| row.modify_index),
        _ => None,
    };
    index.unwrap_or(0)
}

/// Lays what a plan wants to be written over what others have written since; `None`: theirs stays.
fn merged(snapshot: &Snapshot, entity: &Entity) -> Option<Op> {
    Some(match entity {
        Entity::Alloc(alloc) => {
            let view = snapshot.alloc(alloc.id)?;
            // Others only ever mark it.
            let alloc = Allocation {
                transition: view.alloc.transition,
                ..Allocation::clone(alloc)
            };
            Op::Update {
                key: Key::Alloc(alloc.id),
                entity: Entity::Alloc(Box::new(alloc)),
                modify_index: view.alloc_modify_index,
            }
        }
        Entity::Deployment(wanted) => {
            let stored = snapshot.deployment(wanted.id)?;
            if !stored.value.status.is_active() {
                return None;
            }
            let mut deployment = stored.value.clone();
            deployment.status = wanted.status;
            deployment
                .status_description
                .clone_from(&wanted.status_description);
            deployment.modify_time = wanted.modify_time;
            Op::Update {
                key: Key::Deployment(wanted.id),
                entity: Entity::Deployment(Box::new(deployment)),
                modify_index: stored.modify_index,
            }
        }
        Entity::Eval(wanted) => {
            let stored = snapshot.eval(wanted.id)?;
            if stored.value.status.is_terminal() {
                return None;
            }
            Op::Update {
                key: Key::Eval(wanted.id),
                entity: entity.clone(),
                modify_index: stored.modify_index,
            }
        }
        _ => return None,
    })
}

/// Asks for another look at a job whose new allocations are on nodes that have changed.
fn look_again(job: &Indexed<Job>, eval_id: EvalId, at: Progress, now: Timestamp) -> Evaluation {
    let job = &job.value;
    // One for each part that is moved, the same whoever moves it.
    let part = u128::from(at.ops) << 32 | u128::from(at.piece);
    let bits = eval_id.0.as_u128().rotate_left(64) ^ (part + 1);
    let mut eval = Evaluation::pending(
        EvalId::from_random(bits),
        job.key(),
        job.job_type,
        job.priority,
        TriggeredBy::NodeUpdate,
        now,
    );
    eval.previous_eval = Some(eval_id);
    eval
}
