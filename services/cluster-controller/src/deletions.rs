//! The loop around [`upkeep::deletions::Deletions`]: takes back the marks of deletions that nobody
//! finishes.

use std::time::Duration;

use store::{Commit, TxnError};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use upkeep::deletions::{Deletions, TakeBack};

use crate::world::{PATIENCE, World};

/// The longest time between two looks: there are few objects to look at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Looks until drained or deposed; the caller drops it when the term is lost.
pub(crate) async fn take_back(world: World, patience: Duration, drain: CancellationToken) {
    let mut deletions = Deletions::new(patience);
    let pause = patience.min(LOOK_EVERY);
    loop {
        for mark in deletions.look(world.now(), &world.replica.snapshot()) {
            if drain.is_cancelled() || world.deposed.is_cancelled() {
                return;
            }
            let key = mark.key.clone();
            match write(&world, &mark).await {
                Ok(true) => {
                    world.metrics.deletions_taken_back.inc();
                    warn!(?key, "its deletion was begun and not finished: it is back");
                }
                Ok(false) => debug!(?key, "deleted, or changed: left alone"),
                Err(error) => {
                    world.metrics.write_failures.inc();
                    info!(?key, %error, "its deletion could not be taken back, it is tried again");
                }
            }
        }
        tokio::select! {
            () = drain.cancelled() => return,
            () = world.deposed.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum TakeBackError {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Txn(#[from] TxnError),
    #[error("another leads now")]
    Deposed,
}

/// Returns whether it was written: false when somebody was faster.
async fn write(world: &World, mark: &TakeBack) -> Result<bool, TakeBackError> {
    let mut txn = world.writer.txn();
    txn.update(&mark.key, mark.modify_index, &mark.entity)?;
    match world.writer.commit_surely(&txn, PATIENCE).await {
        Ok(Commit::Done { .. }) => Ok(true),
        Ok(Commit::Conflict(conflict)) if conflict.is_fenced() => {
            world.deposed.cancel();
            Err(TakeBackError::Deposed)
        }
        Ok(Commit::Conflict(_)) => Ok(false),
        Err(error) => {
            if matches!(error, store::Error::Deposed { .. }) {
                world.deposed.cancel();
            }
            Err(error.into())
        }
    }
}
