//! Commits plans whose pieces are only valid together, as described in [`applier::staged`]; finishes or
//! deletes the pieces that a former leader has left behind.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use applier::{CommitId, Event, Piece, staged};
use model::{EvalId, Timestamp};
use state::{Entity, Key, Snapshot, Write};
use tracing::{error, info, instrument, warn};

use crate::commit::{COMMIT_TIMEOUT, Committer, Store, Written};

/// Attempts to move a piece of a committed plan in spite of conflicts. Each conflict is a concurrent
/// write of the same key, which is rare twice in a row.
const MOVE_ATTEMPTS_MAX: usize = 64;

/// Pieces that one transaction deletes.
const DELETED_MAX: usize = 500;

/// Backoff of a part that the store refuses and that cannot be made smaller, first and longest wait:
/// short enough for a passing shortage, and long enough not to load the store or the log for hours.
const MOVE_BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

impl<S: Store> Committer<S> {
    /// Writes all of `pieces` or nothing; returns the machine's event.
    #[instrument(skip_all, fields(commit = commit.0, %eval_id, pieces = pieces.len()))]
    pub(crate) async fn commit_all_at_once(
        self,
        commit: CommitId,
        eval_id: EvalId,
        pieces: Vec<Arc<Piece>>,
        now: Timestamp,
    ) -> Event {
        let mut shown = self.replica.applied();
        for (position, piece) in (0..).zip(&pieces) {
            match self.stage_piece(eval_id, position, piece).await {
                Written::Done(revision) => shown = revision,
                failed => return self.abort(commit, eval_id, shown, failed).await,
            }
        }
        match self.record(eval_id, &pieces).await {
            Written::Done(revision) => shown = revision,
            failed => return self.abort(commit, eval_id, shown, failed).await,
        }
        match self.move_all(eval_id, shown, now).await {
            Some(revision) => Event::Committed { commit, revision },
            // The plan is committed, and the next leader moves the rest.
            None => Event::Deposed,
        }
    }

    /// Finishes committed plans, and deletes the staged pieces of others. Returns the newest written
    /// revision, or 0; `None`: the term is over.
    pub(crate) async fn finish_former_plans(&self, now: Timestamp) -> Option<u64> {
        let mut newest = 0;
        let snapshot = self.replica.snapshot();
        for left in staged::left_behind(&snapshot) {
            let (eval_id, pieces) = (left.eval_id, left.positions.len());
            let shown = snapshot.index();
            let revision = if left.is_committed {
                info!(%eval_id, pieces, "finishing a plan that a former leader has committed");
                self.move_all(eval_id, shown, now).await?
            } else {
                info!(%eval_id, pieces, "deleting the staged pieces of an uncommitted plan");
                self.clear(eval_id, shown).await?
            };
            newest = newest.max(revision);
        }
        Some(newest)
    }

    pub(crate) async fn stage_piece(
        &self,
        eval_id: EvalId,
        position: u32,
        piece: &Piece,
    ) -> Written {
        let key = Key::PlanPiece(eval_id, position);
        let entity = Entity::PlanPiece(Box::new(staged::stage(piece)));
        self.write_all(&[Write::Create { key, entity }]).await
    }

    /// Writes the commit record, which makes every piece valid, if the plan's compares hold.
    pub(crate) async fn record(&self, eval_id: EvalId, pieces: &[Arc<Piece>]) -> Written {
        let writes = staged::commit(eval_id, pieces);
        self.write_all(&writes).await
    }

    /// Moves the pieces of a committed plan, once the replica shows `shown`. Returns the revision of the
    /// last move; `None`: the term is over.
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

    /// Moves one piece and returns the revision of the move, or `shown` when it was moved before;
    /// `None`: the term is over.
    ///
    /// Not `store::decide_and_commit`, which gives up after some conflicts and returns refusals: the plan is
    /// committed, so a refusal by the store does not end the move. It is retried in parts
    /// of at most `ops_max` operations, halved while a part is too large, and then with backoff.
    /// Meanwhile no other plan is committed, because none was verified with the missing writes.
    pub(crate) async fn move_one(
        &self,
        eval_id: EvalId,
        position: u32,
        shown: u64,
        now: Timestamp,
        ops_max: &mut usize,
    ) -> Option<u64> {
        let mut newest = shown;
        let (mut conflicts, mut wait) = (0, MOVE_BACKOFF.0);
        loop {
            let snapshot = self.snapshot_at(newest).await?;
            let moving = staged::next_move(&snapshot, eval_id, position, now, *ops_max);
            let Some(moving) = moving else {
                return Some(newest);
            };
            match self.write_all(&moving.writes).await {
                Written::Done(revision) if moving.finishes => return Some(revision),
                Written::Done(revision) => {
                    newest = revision;
                    (conflicts, wait) = (0, MOVE_BACKOFF.0);
                }
                Written::Conflict(revision) if conflicts < MOVE_ATTEMPTS_MAX => {
                    newest = newest.max(revision);
                    conflicts += 1;
                }
                Written::Conflict(_) => {
                    warn!(%eval_id, position, "repeated conflicts while moving a piece of a plan: giving up the term");
                    return None;
                }
                Written::TooLarge(reason) if moving.ops > 1 => {
                    *ops_max = moving.ops / 2;
                    self.metrics.staged_refused.inc();
                    warn!(%eval_id, position, reason, ops = *ops_max, "too large for one transaction: moving smaller parts of the plan");
                }
                Written::TooLarge(reason) | Written::Refused(reason) => {
                    self.metrics.staged_refused.inc();
                    error!(
                        %eval_id, position, reason, ?wait,
                        "the store refuses a part of a committed plan: no other plan is committed \
                         until it is accepted"
                    );
                    tokio::select! {
                        () = self.drain.cancelled() => return None,
                        () = tokio::time::sleep(wait) => {}
                    }
                    wait = (wait * 2).min(MOVE_BACKOFF.1);
                    newest = newest.max(self.replica.applied());
                }
                Written::Deposed => return None,
            }
        }
    }

    /// Deletes the staged pieces of an uncommitted plan, once the replica shows `shown`. Returns the
    /// revision of the last transaction; `None`: the term is over.
    ///
    /// Pieces whose deletion the store refuses are left behind, where no reader counts them; the next
    /// term and the next plan of the evaluation try again.
    pub(crate) async fn clear(&self, eval_id: EvalId, shown: u64) -> Option<u64> {
        let mut newest = shown;
        let mut pieces_max = DELETED_MAX;
        let mut left = BTreeSet::new();
        loop {
            let snapshot = self.snapshot_at(newest).await?;
            let deletions = staged::deletions(&snapshot, eval_id, &left, pieces_max);
            if deletions.is_empty() {
                return Some(newest);
            }
            let (positions, writes): (Vec<_>, Vec<_>) = deletions.into_iter().unzip();
            match self.write_all(&writes).await {
                Written::Done(revision) | Written::Conflict(revision) => {
                    newest = newest.max(revision);
                }
                Written::TooLarge(_) if positions.len() > 1 => {
                    self.metrics.staged_refused.inc();
                    pieces_max = positions.len() / 2;
                }
                Written::TooLarge(reason) | Written::Refused(reason) => {
                    self.metrics.staged_refused.inc();
                    error!(%eval_id, reason, "cannot delete the staged pieces of a plan");
                    left.extend(positions);
                }
                Written::Deposed => return None,
            }
        }
    }

    /// Deletes the pieces of a plan that was not committed; returns the machine's event.
    async fn abort(&self, commit: CommitId, eval_id: EvalId, shown: u64, failed: Written) -> Event {
        let seen = match &failed {
            Written::Conflict(revision) => shown.max(*revision),
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

    async fn snapshot_at(&self, revision: u64) -> Option<Snapshot> {
        match self.replica.wait_for(revision, COMMIT_TIMEOUT).await {
            Ok(snapshot) => Some(snapshot),
            Err(failure) => {
                warn!(%failure, "the replica does not catch up: giving up the term");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
