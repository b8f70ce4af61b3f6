//! The deletion timeout loop, around [`controller::deletions::Deletions`].

use std::time::Duration;

use controller::deletions::Deletions;
use store::SizeClass;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::term::{Term, WriteError};

/// The longest pause between two looks: there are few objects to look at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Removes expired marks until drained or deposed; the caller drops it when the term is lost.
pub(crate) async fn remove_expired_marks(term: Term, timeout: Duration, drain: CancellationToken) {
    let mut deletions = Deletions::new(timeout);
    let pause = timeout.min(LOOK_EVERY);
    loop {
        for unmark in deletions.expired(term.now(), &term.replica.snapshot()) {
            if drain.is_cancelled() || term.deposed.is_cancelled() {
                return;
            }
            let key = unmark.key().clone();
            match term.write(vec![unmark], SizeClass::New).await {
                Ok(_) => {
                    term.metrics.deletions_taken_back.inc();
                    warn!(?key, "deletion timed out: the object is in use again");
                }
                Err(WriteError::Conflict) => debug!(?key, "deleted or changed meanwhile"),
                Err(error) => {
                    term.metrics.write_failures.inc();
                    info!(?key, %error, "cannot revert a timed-out deletion; retrying");
                }
            }
        }
        tokio::select! {
            () = drain.cancelled() => return,
            () = term.deposed.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}
