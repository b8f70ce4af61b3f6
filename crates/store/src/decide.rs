//! Decisions on snapshots and their commits, made again after a conflict.
//!
//! A decision is a pure function of a snapshot; [`decide_and_commit`] is the loop that commits it,
//! and makes it again when another writer was faster. Services differ in their timeouts, metrics
//! and errors, which they give as a [`Transactor`].

use state::Snapshot;

use crate::retry::Retry;
use crate::txn::Txn;
use crate::writer::Commit;

/// The decision on one snapshot.
pub enum Decision<T> {
    /// Final, also if the snapshot is outdated.
    Known(T),
    /// Final in a fresh snapshot; in an older one the decision is made again.
    IfFresh(T),
    /// To be committed in order.
    Commit {
        txns: Vec<Txn>,
        /// The decision is made again before any commit, unless the snapshot is fresh.
        needs_fresh: bool,
        /// Takes the revision of the last commit, 0 if there was none.
        answer: Box<dyn FnOnce(u64) -> T + Send>,
    },
}

/// A service's reads and commits.
pub trait Transactor {
    type Error;

    /// Returns a state that includes every write acknowledged before the call.
    fn fresh(&self) -> impl Future<Output = Result<Snapshot, Self::Error>> + Send;

    /// Returns a state that includes `revision`.
    fn wait_for(&self, revision: u64)
    -> impl Future<Output = Result<Snapshot, Self::Error>> + Send;

    /// Commits a transaction, and determines its outcome when the answer does not come. A retry is
    /// left to the caller only after a conflict.
    fn commit(&self, txn: &Txn) -> impl Future<Output = Result<Commit, Self::Error>> + Send;
}

/// Decides on `snapshot` and commits the decision. After a conflict it decides again, on a state that
/// includes the conflicting write; from the second conflict on with a pause before. An error of
/// `decide` is final only in a fresh snapshot.
///
/// Returns `None` after `attempts` decisions.
///
/// # Errors
/// Those of `decide` and of the transactor.
pub async fn decide_and_commit<S, T>(
    transactor: &S,
    mut snapshot: Snapshot,
    attempts: usize,
    mut decide: impl FnMut(&Snapshot) -> Result<Decision<T>, S::Error>,
) -> Result<Option<T>, S::Error>
where
    S: Transactor,
{
    let mut is_fresh = false;
    let mut is_first_conflict = true;
    let mut backoff = Retry::after_conflicts();
    // The newest commit, of this attempt or of an earlier one that conflicted halfway.
    let mut newest = 0;
    for _ in 0..attempts {
        let (txns, answer) = match decide(&snapshot) {
            Ok(Decision::Known(done)) => return Ok(Some(done)),
            Ok(Decision::IfFresh(done)) if is_fresh => return Ok(Some(done)),
            Err(error) if is_fresh => return Err(error),
            Ok(Decision::Commit {
                txns,
                needs_fresh,
                answer,
            }) if is_fresh || !needs_fresh => (txns, answer),
            Ok(_) | Err(_) => {
                snapshot = transactor.fresh().await?;
                is_fresh = true;
                continue;
            }
        };
        let mut conflict = None;
        for txn in &txns {
            match transactor.commit(txn).await? {
                Commit::Done { revision } => newest = newest.max(revision),
                Commit::Conflict(found) => {
                    conflict = Some(found.revision);
                    break;
                }
            }
        }
        let Some(revision) = conflict else {
            return Ok(Some(answer(newest)));
        };
        if !std::mem::take(&mut is_first_conflict) {
            backoff.wait().await;
        }
        snapshot = transactor.wait_for(revision.max(newest)).await?;
        is_fresh = true;
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
