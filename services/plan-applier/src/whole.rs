//! Writes the pieces of a plan that are only valid together, as [`applier::staged`] says; and finishes
//! or clears away what a former leader has left of one.

use std::sync::Arc;

use applier::{CommitId, Event, Piece, staged};
use model::{EvalId, Timestamp};
use state::{Entity, Key, PlanCommit, Snapshot};
use store::{Txn, TxnError};
use tracing::{error, info, instrument, warn};

use crate::commit::{COMMIT_PATIENCE, Committer, Written, add};

/// How often a piece of a plan that holds is tried to be moved while others keep changing what it
/// touches. Each time somebody else was faster with the very same thing, which is rare twice.
const MOVE_ATTEMPTS_MAX: usize = 64;

/// How many pieces one transaction clears away.
const CLEARED_MAX: usize = 500;

impl Committer {
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
        let pieces = self
            .snapshot_at(shown)
            .await?
            .plan_commit(eval_id)?
            .value
            .pieces;
        for position in 0..pieces {
            let is_last = position + 1 == pieces;
            newest = self
                .move_one(eval_id, position, is_last, newest, now)
                .await?;
        }
        Some(newest)
    }

    /// Moves one piece where it belongs, and returns the revision of that, or `shown` when it is there
    /// already; `None`: the term is over.
    pub(crate) async fn move_one(
        &self,
        eval_id: EvalId,
        position: u32,
        is_last: bool,
        shown: u64,
        now: Timestamp,
    ) -> Option<u64> {
        let mut snapshot = self.snapshot_at(shown).await?;
        for _ in 0..MOVE_ATTEMPTS_MAX {
            let moving = self.moving(&snapshot, eval_id, position, is_last, now);
            let Some((txn, built)) = moving else {
                return Some(shown);
            };
            match self.write_built(&txn, built).await {
                Written::Done(revision) => return Some(revision),
                Written::Overtaken(revision) => snapshot = self.snapshot_at(revision).await?,
                Written::Refused(reason) => {
                    error!(%eval_id, position, reason, "a piece of a plan that holds cannot be moved");
                    return None;
                }
                Written::Deposed => return None,
            }
        }
        warn!(%eval_id, position, "others keep changing what a plan touches: giving up the term");
        None
    }

    /// Builds the transaction that moves a piece; `None`: it was moved.
    fn moving(
        &self,
        snapshot: &Snapshot,
        eval_id: EvalId,
        position: u32,
        is_last: bool,
        now: Timestamp,
    ) -> Option<(Txn, Result<(), TxnError>)> {
        let piece = snapshot.plan_piece(eval_id, position)?;
        let ops = staged::rebase(snapshot, eval_id, position, &piece.value, now);
        let mut txn = self.writer.txn();
        let mut built = add(&mut txn, ops.iter());
        let key = Key::PlanPiece(eval_id, position);
        built = built.and_then(|()| txn.delete(&key, piece.modify_index).map(drop));
        if let Some(commit) = snapshot.plan_commit(eval_id).filter(|_| is_last) {
            let key = Key::PlanCommit(eval_id);
            built = built.and_then(|()| txn.delete(&key, commit.modify_index).map(drop));
        }
        Some((txn, built))
    }

    /// Clears away what was put aside and does not hold, once the replica shows `shown`. Returns the
    /// revision of the last transaction; `None`: the term is over.
    pub(crate) async fn clear(&self, eval_id: EvalId, shown: u64) -> Option<u64> {
        let snapshot = self.snapshot_at(shown).await?;
        let pieces = snapshot.plan_pieces().filter(|(id, ..)| *id == eval_id);
        let pieces: Vec<_> = pieces.collect();
        let mut newest = shown;
        for some in pieces.chunks(CLEARED_MAX) {
            let mut txn = self.writer.txn();
            let mut built = Ok(());
            for (_, position, piece) in some {
                let key = Key::PlanPiece(eval_id, *position);
                built = built.and_then(|()| txn.delete(&key, piece.modify_index).map(drop));
            }
            match self.write_built(&txn, built).await {
                Written::Done(revision) => newest = revision,
                failed => {
                    error!(%eval_id, ?failed, "what was put aside cannot be cleared away");
                    return None;
                }
            }
        }
        Some(newest)
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
            Written::Refused(reason) => Event::Refused {
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
