//! The launch loop of periodic jobs, around [`controller::periodic::Launcher`]: the store's changes
//! and the wall clock in, child jobs out.
//!
//! Each launch is one transaction: the child, its evaluation and the parent's launch record, which
//! it compares. So a second launch of the same time, by another leader or a retry, fails.

use std::time::Duration;

use controller::periodic::{Due, Effect, Launcher, launch_due, skip_due};
use model::Timestamp;
use service_kit::Clock;
use store::{Delta, SizeClass};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug, info, info_span, warn};

use crate::term::{Term, WriteError};

/// Concurrent launches: those of midnight take seconds, without flooding the store.
const LAUNCHES_IN_FLIGHT: usize = 16;

/// The longest sleep. It bounds how late a step of the wall clock is noticed.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// Runs until drained or deposed; the caller drops it when the term is lost.
pub(crate) async fn launch(term: Term, clock: Clock, drain: CancellationToken) {
    let (snapshot, mut changes) = term.replica.subscribe();
    let mut launcher = Launcher::default();
    launcher.resync(&snapshot);
    let mut writes = JoinSet::new();
    'leading: loop {
        // Unlike heartbeats, launches follow the wall clock.
        let now = Timestamp(clock.now());
        for effect in launcher.step(now, &term.replica.snapshot()) {
            // A launch that is not performed here stays due for the next leader.
            if !has_room(&mut writes, &drain, &term.deposed).await {
                break 'leading;
            }
            let (term, clock) = (term.clone(), clock.clone());
            writes.spawn(async move { perform(&term, &clock, effect).await });
        }
        let tracked = i64::try_from(launcher.tracked()).unwrap_or(i64::MAX);
        term.metrics.periodic_jobs.set(tracked);
        let deadline = launcher.next_deadline();
        let pause = deadline.map_or(SLEEP_MAX, |deadline| deadline.since(now).min(SLEEP_MAX));
        tokio::select! {
            biased;
            () = drain.cancelled() => break,
            () = term.deposed.cancelled() => break,
            delta = changes.next() => match delta {
                Some(Delta::Changes { changes, .. }) => launcher.note(&changes),
                Some(Delta::Resnapshot(snapshot)) => launcher.resync(&snapshot),
                None => break,
            },
            Some(_) = writes.join_next(), if !writes.is_empty() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
    // Finish the started writes; the process's grace period bounds this.
    while writes.join_next().await.is_some() {}
}

/// Waits until one more launch may start; `false`: the loop has to end.
async fn has_room(
    writes: &mut JoinSet<()>,
    drain: &CancellationToken,
    deposed: &CancellationToken,
) -> bool {
    while writes.len() >= LAUNCHES_IN_FLIGHT {
        tokio::select! {
            biased;
            () = drain.cancelled() => return false,
            () = deposed.cancelled() => return false,
            _ = writes.join_next() => {}
        }
    }
    !drain.is_cancelled() && !deposed.is_cancelled()
}

/// Performs one effect; failures are logged, and the effect is requested again.
async fn perform(term: &Term, clock: &Clock, effect: Effect) {
    let (due, is_skipped) = match effect {
        Effect::Launch(due) => (due, false),
        Effect::Skip(due) => (due, true),
    };
    let (namespace, job_id) = (due.job.namespace.clone(), due.job.job_id.clone());
    let span = info_span!("periodic_launch", %namespace, %job_id, at = due.at.as_secs());
    let written = write(term, clock, &due, is_skipped).instrument(span).await;
    match written {
        Ok(true) if is_skipped => {
            term.metrics.periodic_skips.inc();
            info!(%namespace, %job_id, "periodic launch skipped: a child is still active");
        }
        Ok(true) => {
            term.metrics.periodic_launches.inc();
            info!(%namespace, %job_id, at = due.at.as_secs(), "periodic job launched");
        }
        Ok(false) => {
            debug!(%namespace, %job_id, "periodic launch dropped: launched already, or the job has changed")
        }
        Err(error) => {
            term.metrics.write_failures.inc();
            warn!(%namespace, %job_id, %error, "cannot launch a periodic job; retrying");
        }
    }
}

/// Performs a launch, or skips it. `false`: another launch was faster.
async fn write(
    term: &Term,
    clock: &Clock,
    due: &Due,
    is_skipped: bool,
) -> Result<bool, WriteError> {
    let snapshot = term.replica.snapshot();
    let writes = if is_skipped {
        skip_due(&snapshot, due)
    } else {
        launch_due(&snapshot, due, term.eval_id(), Timestamp(clock.now()))
    };
    let Some(writes) = writes else {
        return Ok(false);
    };
    match term.write(writes, SizeClass::FollowUp).await {
        Ok(_) => Ok(true),
        Err(WriteError::Conflict) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_drained_or_deposed_leader_does_not_wait_for_further_launches() {
        let (drain, deposed) = (CancellationToken::new(), CancellationToken::new());
        let mut writes = JoinSet::new();
        for _ in 0..LAUNCHES_IN_FLIGHT {
            assert!(has_room(&mut writes, &drain, &deposed).await);
            writes.spawn(std::future::pending());
        }
        let hour = Duration::from_secs(3_600);
        let queueing = tokio::time::timeout(hour, has_room(&mut writes, &drain, &deposed)).await;
        assert!(queueing.is_err(), "there is none");
        let ending = async {
            tokio::time::sleep(hour).await;
            drain.cancel();
        };
        let (has_room, ()) = tokio::join!(has_room(&mut writes, &drain, &deposed), ending);
        assert!(!has_room);
        // The same when it is deposed while it waits.
        let (still, another_leads) = (CancellationToken::new(), CancellationToken::new());
        let ending = async {
            tokio::time::sleep(hour).await;
            another_leads.cancel();
        };
        let queueing = super::has_room(&mut writes, &still, &another_leads);
        let queueing = tokio::time::timeout(2 * hour, queueing);
        let (has_room, ()) = tokio::join!(queueing, ending);
        assert_eq!(has_room, Ok(false));
        let mut writes = JoinSet::new();
        assert!(!super::has_room(&mut writes, &drain, &deposed).await);
        let drain = CancellationToken::new();
        assert!(super::has_room(&mut writes, &drain, &deposed).await);
        deposed.cancel();
        assert!(!super::has_room(&mut writes, &drain, &deposed).await);
    }
}
