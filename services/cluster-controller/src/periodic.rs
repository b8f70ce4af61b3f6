//! The loop around [`upkeep::periodic::Launcher`]: the store's changes and the wall clock in,
//! children of periodic jobs out.
//!
//! Each launch is one transaction: the child, its evaluation and the parent's launch record, which
//! it compares. So whoever comes second (another leader, or the same one whose answer was late)
//! finds the record moved and launches nothing.

use std::time::Duration;

use model::{EvalId, Evaluation, Job, PeriodicLaunch, Timestamp};
use service_kit::{Clock, current_trace_parent};
use state::Key;
use store::{Commit, Delta, Room, TxnError};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug, info, info_span, warn};
use upkeep::periodic::{Due, Effect, Launcher, launch_due, skip_due};

use crate::world::{PATIENCE, World};

/// Launches written at the same time: those of midnight are written in seconds, and the store is
/// not flooded.
const LAUNCHES_IN_FLIGHT: usize = 16;

/// The longest sleep: within it a step of the wall clock is noticed.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// Launches until drained or deposed; the caller drops it when the term is lost.
pub(crate) async fn launch(world: World, clock: Clock, drain: CancellationToken) {
    let (snapshot, mut changes) = world.replica.subscribe();
    let mut launcher = Launcher::default();
    launcher.resync(&snapshot);
    let mut writes = JoinSet::new();
    'leading: loop {
        // Unlike heartbeats, launches go by the clock on the wall.
        let now = Timestamp(clock.now());
        for effect in launcher.step(now, &world.replica.snapshot()) {
            // What is not launched here is due as before, for whoever leads next.
            if !has_room(&mut writes, &drain, &world.deposed).await {
                break 'leading;
            }
            let (world, clock) = (world.clone(), clock.clone());
            writes.spawn(async move { carry_out(&world, &clock, effect).await });
        }
        let tracked = i64::try_from(launcher.tracked()).unwrap_or(i64::MAX);
        world.metrics.periodic_jobs.set(tracked);
        let deadline = launcher.next_deadline();
        let pause = deadline.map_or(SLEEP_MAX, |deadline| deadline.since(now).min(SLEEP_MAX));
        tokio::select! {
            biased;
            () = drain.cancelled() => break,
            () = world.deposed.cancelled() => break,
            delta = changes.next() => match delta {
                Some(Delta::Changes { changes, .. }) => launcher.note(&changes),
                Some(Delta::Resnapshot(snapshot)) => launcher.resync(&snapshot),
                None => break,
            },
            Some(_) = writes.join_next(), if !writes.is_empty() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
    // What is in hand is finished; the process's grace period bounds it.
    while writes.join_next().await.is_some() {}
}

/// Waits until one more launch may be written; `false`: none is to be any more.
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

/// Carries out one decision; what fails is logged, for the machine asks again.
async fn carry_out(world: &World, clock: &Clock, effect: Effect) {
    let (due, is_skipped) = match effect {
        Effect::Launch(due) => (due, false),
        Effect::Skip(due) => (due, true),
    };
    let (namespace, job_id) = (due.job.namespace.clone(), due.job.job_id.clone());
    let span = info_span!("periodic_launch", %namespace, %job_id, at = due.at.as_secs());
    let written = write(world, clock, &due, is_skipped).instrument(span).await;
    match written {
        Ok(true) if is_skipped => {
            world.metrics.periodic_skips.inc();
            info!(%namespace, %job_id, "not launched: a child is still at work");
        }
        Ok(true) => {
            world.metrics.periodic_launches.inc();
            info!(%namespace, %job_id, at = due.at.as_secs(), "launched");
        }
        Ok(false) => debug!(%namespace, %job_id, "launched by another, or changed: left alone"),
        Err(error) => {
            world.metrics.write_failures.inc();
            warn!(%namespace, %job_id, %error, "could not be launched, it will be tried again");
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum LaunchError {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Txn(#[from] TxnError),
    #[error("another leads now")]
    Deposed,
}

/// Returns whether it was written: false when somebody was faster.
async fn write(
    world: &World,
    clock: &Clock,
    due: &Due,
    is_skipped: bool,
) -> Result<bool, LaunchError> {
    let snapshot = world.replica.snapshot();
    let eval_id = EvalId::from_random(world.ids.next_u128());
    let launch = if is_skipped {
        skip_due(&snapshot, due)
    } else {
        launch_due(&snapshot, due, eval_id, Timestamp(clock.now()))
    };
    let Some(launch) = launch else {
        return Ok(false);
    };
    let mut txn = world.writer.txn_with(Room::FollowUp);
    txn.require_unchanged(&Key::Job(due.job.clone()), due.job_index)?;
    put_record(&mut txn, due, &launch.record, launch.record_index)?;
    if let Some((child, eval)) = &launch.child {
        create(&mut txn, child, eval)?;
    }
    match world.writer.commit_surely(&txn, PATIENCE).await {
        Ok(Commit::Done { .. }) => Ok(true),
        Ok(Commit::Conflict(conflict)) if conflict.is_fenced() => {
            world.deposed.cancel();
            Err(LaunchError::Deposed)
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

fn put_record(
    txn: &mut store::Txn,
    due: &Due,
    record: &PeriodicLaunch,
    record_index: Option<u64>,
) -> Result<(), TxnError> {
    let key = Key::PeriodicLaunch(due.job.clone());
    match record_index {
        Some(index) => txn.update(&key, index, record)?,
        None => txn.create(&key, record)?,
    };
    Ok(())
}

fn create(txn: &mut store::Txn, child: &Job, eval: &Evaluation) -> Result<(), TxnError> {
    let key = child.key();
    let mut eval = eval.clone();
    eval.trace_parent = current_trace_parent();
    txn.create(&Key::JobVersion(key.clone(), child.version), child)?;
    txn.create(&Key::Job(key), child)?;
    txn.create(&Key::Eval(eval.id), &eval)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_is_to_end_does_not_queue_for_further_launches() {
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
        // Nor does whoever is deposed while it queues.
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
