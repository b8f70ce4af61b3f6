//! Writes the pieces of a plan that are only valid together, as [`applier::staged`] says; and finishes
//! or clears away what a former leader has left of one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use applier::{CommitId, Event, Piece, staged};
use model::{EvalId, Timestamp};
use state::{Entity, Key, PlanCommit, Progress, Snapshot};
use store::{Txn, TxnError};
use tracing::{error, info, instrument, warn};

use crate::commit::{COMMIT_PATIENCE, Committer, Store, Written, add};

/// How often a piece of a plan that holds is tried to be moved while others keep changing what it
/// touches. Each time somebody else was faster with the very same thing, which is rare twice.
const MOVE_ATTEMPTS_MAX: usize = 64;

/// How many pieces one transaction clears away.
const CLEARED_MAX: usize = 500;

/// Waits before the store is asked once more to take a part that it has refused although there is
/// nothing to be left out of it: from one that a passing shortage is over in, up to one that neither
/// the store nor the log minds for hours.
const MOVE_RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

/// One transaction of a move.
struct Move {
    txn: Txn,
    built: Result<(), TxnError>,
    /// How many of the piece's operations it is about.
    ops: usize,
    /// Whether the piece is gone with it.
    finishes: bool,
}

impl<S: Store> Committer<S> {
    /// Writes all of `pieces` or nothing; says what the machine is to be told.
    #[instrument(skip_all, fields(commit = commit.0, %eval_id, pieces = pieces.len()))]
    pub(crate) async fn commit_whole(
        self,
        commit: CommitId,
        eval_id: EvalId,
        pieces: Vec<Arc<Piece>>,
        now: Timestamp,
    ) -> Event {
        let mut shown = self.replica.applied();
        for (position, piece) in (0..).zip(&pieces) {
            match self.put_aside(eval_id, position, piece).await {
                Written::Done(revision) => shown = revision,
                failed => return self.take_back(commit, eval_id, shown, failed).await,
            }
        }
        match self.record(eval_id, &pieces).await {
            Written::Done(revision) => shown = revision,
            failed => return self.take_back(commit, eval_id, shown, failed).await,
        }
        match self.move_all(eval_id, shown, now).await {
            Some(revision) => Event::Committed { commit, revision },
            // It holds, and whoever leads next moves the rest.
            None => Event::Deposed,
        }
    }

    /// Finishes the plans that hold, and clears away what is left of others. Returns the newest
    /// revision that it has written, or 0; `None`: the term is over.
    pub(crate) async fn settle(&self, now: Timestamp) -> Option<u64> {
        let mut newest = 0;
        let snapshot = self.replica.snapshot();
        for left in staged::left_behind(&snapshot) {
            let (eval_id, pieces) = (left.eval_id, left.positions.len());
            let shown = snapshot.index();
            let revision = if left.holds {
                info!(%eval_id, pieces, "finishing a plan that a former leader has committed");
                self.move_all(eval_id, shown, now).await?
            } else {
                info!(%eval_id, pieces, "clearing away a plan that was not committed");
                self.clear(eval_id, shown).await?
            };
            newest = newest.max(revision);
        }
        Some(newest)
    }

    pub(crate) async fn put_aside(&self, eval_id: EvalId, position: u32, piece: &Piece) -> Written {
        let key = Key::PlanPiece(eval_id, position);
        let entity = Entity::PlanPiece(Box::new(staged::stage(piece)));
        let mut txn = self.writer.txn();
        let built = txn.create(&key, &entity).map(drop);
        self.write_built(&txn, built).await
    }

    /// Makes every piece valid, if everything is as it was when they were verified.
    pub(crate) async fn record(&self, eval_id: EvalId, pieces: &[Arc<Piece>]) -> Written {
        let commit = PlanCommit {
            pieces: u32::try_from(pieces.len()).unwrap_or(u32::MAX),
            begun: None,
        };
        let mut txn = self.writer.txn();
        let built = txn
            .create(&Key::PlanCommit(eval_id), &commit)
            .map(drop)
            .and_then(|()| add(&mut txn, staged::compares(pieces).iter()));
        self.write_built(&txn, built).await
    }

    /// Moves the pieces of a plan that holds, once the replica shows `shown`. Returns the revision of
    /// the last; `None`: the term is over.
    pub(crate) async fn move_all(
        &self,
        eval_id: EvalId,
        shown: u64,
        now: Timestamp,
    ) -> Option<u64> {
        let mut newest = shown;
        let mut ops_max = usize::MAX;
        let pieces = self
            .snapshot_at(shown)
            .await?
            .plan_commit(eval_id)?
            .value
            .pieces;
        for position in 0..pieces {
            newest = self
                .move_one(eval_id, position, newest, now, &mut ops_max)
                .await?;
        }
        Some(newest)
    }

    /// Moves one piece where it belongs, and returns the revision of that, or `shown` when it is there
    /// already; `None`: the term is over.
    ///
    /// The record has promised all of it, so whatever the store says of it, this goes on: in parts of
    /// at most `ops_max` operations, which is halved for as long as one is too large, and then again
    /// and again. Meanwhile no other plan is committed, since none was verified with what is missing.
    pub(crate) async fn move_one(
        &self,
        eval_id: EvalId,
        position: u32,
        shown: u64,
        now: Timestamp,
        ops_max: &mut usize,
    ) -> Option<u64> {
        let mut newest = shown;
        let (mut overtaken, mut wait) = (0, MOVE_RETRY.0);
        loop {
            let snapshot = self.snapshot_at(newest).await?;
            let moving = self.moving(&snapshot, eval_id, position, now, *ops_max);
            let Some(moving) = moving else {
                return Some(newest);
            };
            match self.write_built(&moving.txn, moving.built).await {
                Written::Done(revision) if moving.finishes => return Some(revision),
                Written::Done(revision) => {
                    newest = revision;
                    (overtaken, wait) = (0, MOVE_RETRY.0);
                }
                Written::Overtaken(revision) if overtaken < MOVE_ATTEMPTS_MAX => {
                    newest = newest.max(revision);
                    overtaken += 1;
                }
                Written::Overtaken(_) => {
                    warn!(%eval_id, position, "others keep changing what a plan touches: giving up the term");
                    return None;
                }
                Written::TooLarge(reason) if moving.ops > 1 => {
                    *ops_max = moving.ops / 2;
                    self.metrics.staged_refused.inc();
                    warn!(%eval_id, position, reason, ops = *ops_max, "moving less of a plan at once");
                }
                Written::TooLarge(reason) | Written::Refused(reason) => {
                    self.metrics.staged_refused.inc();
                    error!(
                        %eval_id, position, reason, ?wait,
                        "the store refuses a part of a plan that holds: no other plan is committed \
                         until it takes it"
                    );
                    tokio::select! {
                        () = self.drain.cancelled() => return None,
                        () = tokio::time::sleep(wait) => {}
                    }
                    wait = (wait * 2).min(MOVE_RETRY.1);
                    newest = newest.max(self.replica.applied());
                }
                Written::Deposed => return None,
            }
        }
    }

    /// Builds the transaction that moves a piece, or the next `ops_max` operations of it; `None`: it
    /// was moved.
    fn moving(
        &self,
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
        let part = staged::part(&piece.value, from..until);
        let ops = staged::rebase(snapshot, eval_id, at, &part, now);
        let (piece_key, record_key) = (Key::PlanPiece(eval_id, position), Key::PlanCommit(eval_id));
        let finishes = until == count;
        let is_last = position + 1 == record.value.pieces;
        let mut txn = self.writer.txn();
        let built = add(&mut txn, ops.iter()).and_then(|()| {
            if finishes {
                txn.delete(&piece_key, piece.modify_index)?;
            } else {
                txn.require_unchanged(&piece_key, piece.modify_index)?;
            }
            if finishes && is_last {
                txn.delete(&record_key, record.modify_index)?;
            } else if finishes {
                txn.require_unchanged(&record_key, record.modify_index)?;
            } else {
                let begun = Progress {
                    ops: u32::try_from(until).unwrap_or(u32::MAX),
                    ..at
                };
                let further = PlanCommit {
                    begun: Some(begun),
                    ..record.value
                };
                txn.update(&record_key, record.modify_index, &further)?;
            }
            Ok(())
        });
        Some(Move {
            txn,
            built,
            ops: until.saturating_sub(from),
            finishes,
        })
    }

    /// Clears away what was put aside and does not hold, once the replica shows `shown`. Returns the
    /// revision of the last transaction; `None`: the term is over.
    ///
    /// What the store refuses to have cleared away stays, where nobody counts it: the next term, and
    /// the next plan of the evaluation, try again.
    pub(crate) async fn clear(&self, eval_id: EvalId, shown: u64) -> Option<u64> {
        let mut newest = shown;
        let mut pieces_max = CLEARED_MAX;
        let mut left = BTreeSet::new();
        loop {
            let snapshot = self.snapshot_at(newest).await?;
            let pieces = snapshot
                .plan_pieces()
                .filter(|(id, position, _)| *id == eval_id && !left.contains(position));
            let pieces: Vec<_> = pieces.take(pieces_max).collect();
            if pieces.is_empty() {
                return Some(newest);
            }
            let mut txn = self.writer.txn();
            let mut built = Ok(());
            for (_, position, piece) in &pieces {
                let key = Key::PlanPiece(eval_id, *position);
                built = built.and_then(|()| txn.delete(&key, piece.modify_index).map(drop));
            }
            match self.write_built(&txn, built).await {
                Written::Done(revision) | Written::Overtaken(revision) => {
                    newest = newest.max(revision);
                }
                Written::TooLarge(_) if pieces.len() > 1 => {
                    self.metrics.staged_refused.inc();
                    pieces_max = pieces.len() / 2;
                }
                Written::TooLarge(reason) | Written::Refused(reason) => {
                    self.metrics.staged_refused.inc();
                    error!(%eval_id, reason, "what was put aside cannot be cleared away");
                    left.extend(pieces.iter().map(|(_, position, _)| *position));
                }
                Written::Deposed => return None,
            }
        }
    }

    /// Clears away what does not hold after all, and says so.
    async fn take_back(
        &self,
        commit: CommitId,
        eval_id: EvalId,
        shown: u64,
        failed: Written,
    ) -> Event {
        let seen = match &failed {
            Written::Overtaken(revision) => shown.max(*revision),
            _ => shown,
        };
        if matches!(failed, Written::Deposed) || self.clear(eval_id, seen).await.is_none() {
            return Event::Deposed;
        }
        match failed {
            Written::Refused(reason) | Written::TooLarge(reason) => Event::Refused {
                commit,
                revision: self.replica.applied(),
                reason,
            },
            _ => Event::Conflict {
                commit,
                revision: seen,
            },
        }
    }

    async fn write_built(&self, txn: &Txn, built: Result<(), TxnError>) -> Written {
        match built {
            Ok(()) => self.write(txn).await,
            Err(TxnError::Contradiction { key }) => {
                warn!(?key, "a plan that saw something at two revisions");
                Written::Overtaken(self.replica.applied())
            }
            Err(failure @ (TxnError::TooManyOps { .. } | TxnError::TooManyBytes { .. })) => {
                Written::TooLarge(failure.to_string())
            }
            Err(failure) => {
                error!(%failure, "a transaction cannot be built");
                Written::Refused(failure.to_string())
            }
        }
    }

    async fn snapshot_at(&self, revision: u64) -> Option<Snapshot> {
        match self.replica.wait_for(revision, COMMIT_PATIENCE).await {
            Ok(snapshot) => Some(snapshot),
            Err(failure) => {
                warn!(%failure, "the replica does not get on: giving up the term");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
