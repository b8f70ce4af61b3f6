//! The drain loop, around [`controller::drain::decide`]: decides after each change, and writes the decisions.
//!
//! Each look reads the latest state from the store, not only the replica, so it includes the writes
//! of earlier looks, even those without an answer. Otherwise it would count marked allocations as
//! staying.

use std::time::Duration;

use controller::drain::{Completion, DrainDecisions, DrainingNodes, JobMarks, MarkTxn, decide};
use model::{NodeId, Timestamp};
use store::{Delta, SizeClass};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug, info, info_span, warn};

use crate::term::{Term, WRITE_TIMEOUT, WriteError};

/// The shortest time from the end of a look to the next look: changes within it are handled together.
/// It is short compared to the seconds that a replacement takes to become healthy.
const PACE: Duration = Duration::from_millis(200);

/// The delay of the next look after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// The longest time between two looks: a fallback for missed changes.
const SLEEP_MAX: Duration = Duration::from_secs(30);

/// Drains nodes until the service itself is drained, or deposed.
pub(crate) async fn drain_nodes(term: Term, drain: CancellationToken) {
    let (snapshot, mut changes) = term.replica.subscribe();
    let mut draining = DrainingNodes::default();
    draining.resync(&snapshot);
    let mut deadline: Option<Timestamp> = None;
    let mut not_before = Instant::now();
    loop {
        let nodes = i64::try_from(draining.len()).unwrap_or(i64::MAX);
        term.metrics.draining_nodes.set(nodes);
        let due = due(&term, &draining, deadline).max(not_before);
        tokio::select! {
            biased;
            () = drain.cancelled() => return,
            () = term.deposed.cancelled() => return,
            // Before the changes, so that a stream of them cannot starve it.
            () = tokio::time::sleep_until(due), if !draining.is_empty() => {
                let nodes = draining.take();
                let span = info_span!("node_drain", nodes = nodes.len());
                let looked = look_and_write(&term, nodes, &drain).instrument(span).await;
                let pause = match looked {
                    Ok(next) => {
                        deadline = next;
                        PACE
                    }
                    Err(WriteError::Conflict) => {
                        debug!("conflict: retrying");
                        draining.look_again();
                        PACE
                    }
                    Err(error) => {
                        term.metrics.write_failures.inc();
                        warn!(%error, "cannot continue a node drain; retrying");
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

/// Returns the time of the next look.
fn due(term: &Term, draining: &DrainingNodes, deadline: Option<Timestamp>) -> Instant {
    let now = Instant::now();
    if draining.is_due() {
        return now;
    }
    let pause = deadline.map_or(SLEEP_MAX, |deadline| deadline.since(term.now()));
    now + pause.min(SLEEP_MAX)
}

/// Looks once and writes the decisions. Returns the time of the next look if nothing changes.
async fn look_and_write(
    term: &Term,
    nodes: Vec<NodeId>,
    drain: &CancellationToken,
) -> Result<Option<Timestamp>, WriteError> {
    let snapshot = term.replica.linearizable(WRITE_TIMEOUT).await?;
    let now = term.now();
    let DrainDecisions {
        marks,
        done,
        next_deadline,
    } = decide(&snapshot, now, nodes, &mut || term.eval_id());
    let mut first_conflict = FirstConflict::default();
    for marks in marks {
        if drain.is_cancelled() {
            return Ok(None);
        }
        first_conflict.unless_fatal(write_marks(term, marks).await)?;
    }
    for completion in done {
        first_conflict.unless_fatal(write_done(term, completion).await)?;
    }
    first_conflict.0.map_or(Ok(next_deadline), Err)
}

/// The first error of a single job or node. The others are written nonetheless, so that a job that
/// changes all the time delays only itself.
#[derive(Default)]
struct FirstConflict(Option<WriteError>);

impl FirstConflict {
    /// # Errors
    /// Errors that would hit every other write, too.
    fn unless_fatal(&mut self, written: Result<(), WriteError>) -> Result<(), WriteError> {
        match written {
            Err(
                error @ (WriteError::Conflict | WriteError::Store(store::Error::Unbuildable(_))),
            ) => {
                debug!(%error, "left to the next look");
                self.0.get_or_insert(error);
                Ok(())
            }
            written => written,
        }
    }
}

async fn write_done(term: &Term, completion: Completion) -> Result<(), WriteError> {
    let node_id = completion.node_id;
    let index = term.write(vec![completion.write], SizeClass::New).await?;
    term.metrics.drains_completed.inc();
    info!(%node_id, index, "node drain complete");
    Ok(())
}

/// Writes a job's marks, one transaction after the other. Each creates an evaluation, so that the
/// scheduler sees the marks even if the next transaction fails.
async fn write_marks(term: &Term, marks: JobMarks) -> Result<(), WriteError> {
    let (namespace, job_id) = (&marks.job.namespace, &marks.job.job_id);
    for MarkTxn { allocs, writes } in marks.txns {
        let index = term.write(writes, SizeClass::New).await?;
        term.metrics.evals_created.inc();
        term.metrics.drain_migrations.inc_by(allocs as u64);
        info!(%namespace, %job_id, allocs, index, "allocations marked for migration");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_of_one_job_does_not_stop_the_others() {
        let mut first_conflict = FirstConflict::default();
        assert!(first_conflict.unless_fatal(Ok(())).is_ok());
        assert!(first_conflict.0.is_none());
        let conflict = first_conflict.unless_fatal(Err(WriteError::Conflict));
        assert!(conflict.is_ok());
        assert!(matches!(first_conflict.0, Some(WriteError::Conflict)));
        let deposed = first_conflict.unless_fatal(Err(WriteError::Deposed));
        assert!(matches!(deposed, Err(WriteError::Deposed)));
    }
}
