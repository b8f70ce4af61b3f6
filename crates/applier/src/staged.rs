//! Staged plans: plans that are committed atomically in several transactions.
//!
//! ```text
//! stage piece 0 … stage piece n → commit record → move piece 0 … move piece n
//!        nothing is valid          all is valid    (the last deletes the record)
//! ```
//!
//! The record's transaction carries the plan's compares, so at its revision the state was as
//! verified. Later changes by others happen to a committed plan: [`rebase`] writes each piece as if it
//! had been written before the change. No leader commits another plan in between, so no other writer
//! adds to the resources that allocations hold.
//!
//! **Invariant**: a piece is moved in the transaction that deletes it, so it is moved once. A piece
//! that etcd finds too large is moved in parts ([`part`]), each with an update of the record's
//! progress.
//! **Invariant**: a leader begins by moving committed plans and deleting uncommitted ones
//! ([`left_behind`]).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use model::{Allocation, EvalId, Evaluation, Indexed, Job, JobKey, Timestamp, TriggeredBy};
use state::{Entity, Key, PlanCommit, PlanPiece, Progress, Snapshot, Write};

use crate::piece::Piece;

/// Returns the staged form of a piece.
pub fn stage(piece: &Piece) -> PlanPiece {
    PlanPiece {
        ops: piece.ops.clone(),
    }
}

/// Returns the compares of the commit record's transaction: those of all pieces, as far as one
/// transaction has room. Objects that concern the whole plan come first, then nodes, then
/// allocations; the rest is handled when its piece is moved.
pub fn compares(pieces: &[Arc<Piece>]) -> Vec<Write> {
    let mut seen = BTreeSet::new();
    let mut compares = Vec::new();
    let ops = pieces.iter().flat_map(|piece| &piece.ops);
    for op in ops {
        let is_new = matches!(op, Write::Create { .. });
        if !is_new && seen.insert(op.key().clone()) {
            compares.push(Write::require(op.key().clone(), op.expected_index()));
        }
    }
    let rank = |op: &Write| match op.key() {
        Key::Node(_) => 1,
        Key::Alloc(_) => 2,
        _ => 0,
    };
    compares.sort_by_key(rank);
    let mut room = Piece::default();
    compares.retain(|op| room.try_push(op.clone()));
    compares
}

/// Returns the transaction that commits a staged plan: the commit record, which makes every piece
/// valid, if the plan's compares hold.
pub fn commit(eval_id: EvalId, pieces: &[Arc<Piece>]) -> Vec<Write> {
    let record = PlanCommit {
        pieces: u32::try_from(pieces.len()).unwrap_or(u32::MAX),
        begun: None,
    };
    let create = Write::Create {
        key: Key::PlanCommit(eval_id),
        entity: Entity::PlanCommit(record),
    };
    [create].into_iter().chain(compares(pieces)).collect()
}

/// Staged pieces that a former leader has left behind of one plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrphanedPieces {
    pub eval_id: EvalId,
    /// True if the plan is committed: its pieces are moved. Otherwise they are deleted.
    pub is_committed: bool,
    /// The positions of the remaining pieces, ascending.
    pub positions: Vec<u32>,
}

/// Lists the plans left behind; usually none.
pub fn left_behind(snapshot: &Snapshot) -> Vec<OrphanedPieces> {
    let mut found = BTreeMap::<EvalId, Vec<u32>>::new();
    for (eval_id, _) in snapshot.plan_commits() {
        found.entry(eval_id).or_default();
    }
    for (eval_id, position, _) in snapshot.plan_pieces() {
        found.entry(eval_id).or_default().push(position);
    }
    let left = found
        .into_iter()
        .map(|(eval_id, positions)| OrphanedPieces {
            eval_id,
            is_committed: snapshot.plan_commit(eval_id).is_some(),
            positions,
        });
    left.collect()
}

/// Returns the deletions of an uncommitted plan's pieces, at most `max`, by position; without those in
/// `left`, which the store refuses to delete.
pub fn deletions(
    snapshot: &Snapshot,
    eval_id: EvalId,
    left: &BTreeSet<u32>,
    max: usize,
) -> Vec<(u32, Write)> {
    let pieces = snapshot
        .plan_pieces()
        .filter(|(id, position, _)| *id == eval_id && !left.contains(position));
    let deletions = pieces.map(|(_, position, piece)| {
        let delete = Write::Delete {
            key: Key::PlanPiece(eval_id, position),
            modify_index: piece.modify_index,
        };
        (position, delete)
    });
    deletions.take(max).collect()
}

/// One transaction of a move.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    pub writes: Vec<Write>,
    /// Number of the piece's operations in it.
    pub ops: usize,
    /// True if it deletes the piece.
    pub finishes: bool,
}

/// Returns the transaction that moves a piece of a committed plan, or its next `ops_max` operations;
/// `None`: it is moved.
pub fn next_move(
    snapshot: &Snapshot,
    eval_id: EvalId,
    position: u32,
    now: Timestamp,
    ops_max: usize,
) -> Option<Move> {
    let piece = snapshot.plan_piece(eval_id, position)?;
    let record = snapshot.plan_commit(eval_id)?;
    let at = record.value.progress(position);
    let from = usize::try_from(at.ops).unwrap_or(usize::MAX);
    let count = piece.value.ops.len();
    let until = from.saturating_add(ops_max).min(count);
    let part = part(&piece.value, from..until);
    let mut writes = rebase(snapshot, eval_id, at, &part, now);
    let (piece_key, record_key) = (Key::PlanPiece(eval_id, position), Key::PlanCommit(eval_id));
    let finishes = until == count;
    let is_last = position + 1 == record.value.pieces;
    let piece_index = piece.modify_index;
    writes.push(if finishes {
        Write::Delete {
            key: piece_key,
            modify_index: piece_index,
        }
    } else {
        Write::require(piece_key, piece_index)
    });
    let record_index = record.modify_index;
    writes.push(if finishes && is_last {
        Write::Delete {
            key: record_key,
            modify_index: record_index,
        }
    } else if finishes {
        Write::require(record_key, record_index)
    } else {
        let begun = Progress {
            ops: u32::try_from(until).unwrap_or(u32::MAX),
            ..at
        };
        Write::Update {
            key: record_key,
            modify_index: record_index,
            entity: Entity::PlanCommit(PlanCommit {
                begun: Some(begun),
                ..record.value
            }),
        }
    });
    Some(Move {
        writes,
        ops: until.saturating_sub(from),
        finishes,
    })
}

/// Returns a range of a piece's writes, with the compares that they need from anywhere in the piece.
pub fn part(piece: &PlanPiece, range: Range<usize>) -> Cow<'_, PlanPiece> {
    if range == (0..piece.ops.len()) {
        return Cow::Borrowed(piece);
    }
    let writes = piece.ops.iter().enumerate();
    let writes = writes.filter(|(index, op)| range.contains(index) && !op.is_compare());
    let writes: Vec<_> = writes.map(|(_, op)| op).collect();
    let nodes = writes.iter().filter_map(|op| match op.entity() {
        Some(Entity::Alloc(alloc)) => Some(alloc.node_id),
        _ => None,
    });
    let nodes: BTreeSet<_> = nodes.collect();
    let checks = piece.ops.iter().filter(|op| match op.key() {
        Key::Node(id) => op.is_compare() && nodes.contains(id),
        _ => op.is_compare(),
    });
    Cow::Owned(PlanPiece {
        ops: checks.chain(writes).cloned().collect(),
    })
}

/// Returns the writes of a piece of a committed plan (or of its part that starts at `at`), based on
/// `snapshot`. Changes by others since the commit are kept.
///
/// - A placement of a deleted or recreated job is left out: the job's other allocations will be
///   stopped, too.
/// - A changed node still gets its allocations, as if they had been written before the change. The
///   job gets another evaluation, because the writer of that change did not see them.
/// - An allocation that was marked meanwhile keeps the mark; a collected one is not written again.
/// - A deployment or an evaluation that ended otherwise keeps that end.
pub fn rebase(
    snapshot: &Snapshot,
    eval_id: EvalId,
    at: Progress,
    piece: &PlanPiece,
    now: Timestamp,
) -> Vec<Write> {
    let mut ops = Vec::with_capacity(piece.ops.len());
    let mut nodes_differ = false;
    let job = placed_for(snapshot, piece);
    for op in &piece.ops {
        let current = current_index(snapshot, op.key());
        match op {
            Write::RequireUnchanged { key, .. } | Write::RequireAbsent { key } => {
                // The commit record's transaction has compared everything else.
                if matches!(key, Key::Node(_)) {
                    nodes_differ |= current != op.expected_index();
                    ops.push(Write::require(key.clone(), current));
                }
            }
            Write::Create { key, .. } => {
                let needs_job = matches!(key, Key::Alloc(_) | Key::Deployment(_));
                let is_there = current != 0;
                if !is_there && (job.is_some() || !needs_job) {
                    ops.push(op.clone());
                }
            }
            Write::Update { modify_index, .. } | Write::Delete { modify_index, .. }
                if current == *modify_index =>
            {
                ops.push(op.clone());
            }
            Write::Update { entity, .. } => ops.extend(merged(snapshot, entity)),
            // Changed or deleted by others since.
            Write::Delete { .. } => {}
        }
    }
    if let Some(job) = job {
        // Prevents a concurrent purge of the job and of the placed version.
        ops.push(Write::require(Key::Job(job.value.key()), job.modify_index));
        if nodes_differ {
            let eval = another_eval(job, eval_id, at, now);
            ops.push(Write::Create {
                key: Key::Eval(eval.id),
                entity: Entity::Eval(Box::new(eval)),
            });
        }
    }
    ops
}

/// Returns the job of the piece's placements, if it still exists and was not recreated.
fn placed_for<'s>(snapshot: &'s Snapshot, piece: &PlanPiece) -> Option<&'s Arc<Indexed<Job>>> {
    let mut keys = piece.ops.iter().filter_map(|op| match op.key() {
        Key::Job(key) => Some(key),
        _ => None,
    });
    let key: &JobKey = keys.next()?;
    let job = snapshot.job(key)?;
    let mut allocs = piece.ops.iter().filter_map(|op| match op {
        Write::Create {
            entity: Entity::Alloc(alloc),
            ..
        } => Some(alloc),
        _ => None,
    });
    let is_same = allocs.all(|alloc| alloc.job_create_index == job.create_index);
    is_same.then_some(job)
}

/// Returns the mod revision of a key that a plan writes or compares; 0: absent.
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

/// Merges a plan's write with later writes of others; `None`: theirs is kept.
fn merged(snapshot: &Snapshot, entity: &Entity) -> Option<Write> {
    Some(match entity {
        Entity::Alloc(alloc) => {
            let view = snapshot.alloc(alloc.id)?;
            // Others only ever set its transition marks.
            let alloc = Allocation {
                transition: view.alloc.transition,
                ..Allocation::clone(alloc)
            };
            Write::Update {
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
            Write::Update {
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
            Write::Update {
                key: Key::Eval(wanted.id),
                entity: entity.clone(),
                modify_index: stored.modify_index,
            }
        }
        _ => return None,
    })
}

/// Returns another evaluation of a job whose new allocations are on changed nodes.
fn another_eval(job: &Indexed<Job>, eval_id: EvalId, at: Progress, now: Timestamp) -> Evaluation {
    let job = &job.value;
    // One per moved part; deterministic, so that a retry by another leader creates the same.
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
