//! Empties draining nodes: looks whenever something has changed, writes what the look came to.
//!
//! Each look is at a state that is read from the store, not only from the replica: what an earlier
//! look wrote, or may have written when no answer came, is in it. So nobody is counted as staying
//! who has been told to leave.

use std::time::Duration;

use model::{EvalId, Evaluation, Indexed, Node, NodeId, Timestamp, TriggeredBy};
use service_kit::current_trace_parent;
use state::Key;
use store::{Commit, Delta, Txn, TxnError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug, info, info_span, warn};
use upkeep::drain::{Draining, Look, Mark, Marks, look};

use crate::world::{PATIENCE, World, WorldError};

/// The least time between two looks: what changes within is looked at once. Short beside the
/// seconds that an allocation takes to become healthy elsewhere.
const PACE: Duration = Duration::from_millis(200);

/// How long after a failure is looked again.
const RETRY: Duration = Duration::from_secs(1);

/// Nodes are looked at this often although nothing has been heard of: what was missed is found.
const SLEEP_MAX: Duration = Duration::from_secs(30);

/// Allocations in one transaction. One with all its placement facts has some 4 KiB, so they stay
/// well below a transaction's bytes; and nobody waits behind it.
const MARKS_PER_TXN: usize = 100;

/// Drains until drained itself, or deposed.
pub(crate) async fn empty(world: World, drain: CancellationToken) {
    let (snapshot, mut changes) = world.replica.subscribe();
    let mut draining = Draining::default();
    draining.resync(&snapshot);
    let mut deadline: Option<Timestamp> = None;
    let mut not_before = Instant::now();
    loop {
        let nodes = i64::try_from(draining.len()).unwrap_or(i64::MAX);
        world.metrics.draining_nodes.set(nodes);
        let due = due(&world, &draining, deadline).max(not_before);
        tokio::select! {
            biased;
            () = drain.cancelled() => return,
            () = world.deposed.cancelled() => return,
            // Before the changes, so that they cannot put it off for ever.
            () = tokio::time::sleep_until(due), if !draining.is_empty() => {
                let nodes = draining.take();
                let span = info_span!("node_drain", nodes = nodes.len());
                let looked = looked(&world, nodes, &drain).instrument(span).await;
                let pause = match looked {
                    Ok(next) => {
                        deadline = next;
                        PACE
                    }
                    Err(WorldError::Overtaken) => {
                        debug!("something changed since a drain was looked at");
                        draining.look_again();
                        PACE
                    }
                    Err(error) => {
                        world.note_failure(&error);
                        warn!(%error, "a drain could not go on, it will be tried again");
                        draining.look_again();
                        RETRY
                    }
                };
                not_before = Instant::now() + pause;
            }
            delta = changes.next() => match delta {
                Some(Delta::Changes { changes, .. }) => draining.note(&changes),
                Some(Delta::Resnapshot(snapshot)) => draining.resync(&snapshot),
                None => return,
            },
        }
    }
}

/// Returns when to look next.
fn due(world: &World, draining: &Draining, deadline: Option<Timestamp>) -> Instant {
    let now = Instant::now();
    if draining.is_due() {
        return now;
    }
    let pause = deadline.map_or(SLEEP_MAX, |deadline| deadline.since(world.now()));
    now + pause.min(SLEEP_MAX)
}

/// Looks once and writes what comes of it. Returns when to look again though nothing happens.
async fn looked(
    world: &World,
    nodes: Vec<NodeId>,
    drain: &CancellationToken,
) -> Result<Option<Timestamp>, WorldError> {
    let snapshot = world.replica.linearizable(PATIENCE).await?;
    let now = world.now();
    let Look {
        marks,
        done,
        next_deadline,
    } = look(&snapshot, now, nodes);
    let mut left_behind = LeftBehind::default();
    for marks in &marks {
        if drain.is_cancelled() {
            return Ok(None);
        }
        left_behind.unless_final(write_marks(world, marks, now).await)?;
    }
    for node in done {
        left_behind.unless_final(write_done(world, &node).await)?;
    }
    left_behind.0.map_or(Ok(next_deadline), Err)
}

/// Why the first job or node that could not be written was left behind. The others are nonetheless:
/// a job that somebody changes all the time holds up nobody but itself.
#[derive(Default)]
struct LeftBehind(Option<WorldError>);

impl LeftBehind {
    /// # Errors
    /// What would happen to everybody else, too.
    fn unless_final(&mut self, written: Result<(), WorldError>) -> Result<(), WorldError> {
        match written {
            Err(error @ (WorldError::Overtaken | WorldError::Txn(_))) => {
                debug!(%error, "left for the next look");
                self.0.get_or_insert(error);
                Ok(())
            }
            written => written,
        }
    }
}

async fn write_done(world: &World, node: &Indexed<Node>) -> Result<(), WorldError> {
    let id = node.value.id;
    let mut txn = world.writer.txn();
    txn.update(&Key::Node(id), node.modify_index, &node.value)?;
    let index = commit(world, &txn).await?;
    world.metrics.drains_completed.inc();
    info!(node_id = %id, index, "node drain complete");
    Ok(())
}

/// Writes a job's marks, in as many transactions as they need. Each brings an evaluation along, so
/// that somebody looks at what is marked whatever becomes of the next.
async fn write_marks(world: &World, marks: &Marks, now: Timestamp) -> Result<(), WorldError> {
    let mut pieces: Vec<&[Mark]> = marks.allocs.chunks(MARKS_PER_TXN).collect();
    if pieces.is_empty() {
        // Only the evaluation is owed.
        pieces.push(&[]);
    }
    for piece in pieces {
        let index = commit(world, &piece_txn(world, marks, piece, now)?).await?;
        world.metrics.evals_created.inc();
        world.metrics.drain_migrations.inc_by(piece.len() as u64);
        let (namespace, job_id) = (&marks.job.namespace, &marks.job.job_id);
        let allocs = piece.len();
        info!(%namespace, %job_id, allocs, index, "allocations are to leave their nodes");
    }
    Ok(())
}

/// Makes one transaction. It fails when the job has changed, from which the pace was taken, or a
/// node, whose drain may be over.
fn piece_txn(
    world: &World,
    marks: &Marks,
    piece: &[Mark],
    now: Timestamp,
) -> Result<Txn, TxnError> {
    let mut txn = world.writer.txn();
    let job = Key::Job(marks.job.clone());
    match marks.job_modify_index {
        Some(index) => txn.require_unchanged(&job, index)?,
        None => txn.require_absent(&job)?,
    };
    for mark in piece {
        let node = Key::Node(mark.alloc.node_id);
        txn.require_unchanged(&node, mark.node_modify_index)?;
        txn.update(&Key::Alloc(mark.alloc.id), mark.modify_index, &mark.alloc)?;
    }
    let eval = Evaluation {
        node_id: piece.first().map(|mark| mark.alloc.node_id),
        trace_parent: current_trace_parent(),
        ..Evaluation::pending(
            EvalId::from_random(world.ids.next_u128()),
            marks.job.clone(),
            marks.job_type,
            marks.priority,
            TriggeredBy::NodeDrain,
            now,
        )
    };
    txn.create(&Key::Eval(eval.id), &eval)?;
    Ok(txn)
}

async fn commit(world: &World, txn: &Txn) -> Result<u64, WorldError> {
    match world.writer.commit_surely(txn, PATIENCE).await? {
        Commit::Done { revision } => Ok(revision),
        Commit::Conflict(conflict) if conflict.is_fenced() => Err(WorldError::Deposed),
        Commit::Conflict(_) => Err(WorldError::Overtaken),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_overtaken_holds_up_nobody_else_and_is_looked_at_again() {
        let mut left_behind = LeftBehind::default();
        assert!(left_behind.unless_final(Ok(())).is_ok());
        assert!(left_behind.0.is_none());
        let overtaken = left_behind.unless_final(Err(WorldError::Overtaken));
        assert!(overtaken.is_ok());
        assert!(matches!(left_behind.0, Some(WorldError::Overtaken)));
        let deposed = left_behind.unless_final(Err(WorldError::Deposed));
        assert!(matches!(deposed, Err(WorldError::Deposed)));
    }
}
