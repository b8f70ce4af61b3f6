//! The leader's loop around [`rollout::Rollout`]: the store's changes in, transactions out.

use std::time::Duration;

use futures::StreamExt as _;
use model::Timestamp;
use rollout::{Action, Rollout};
use store::{Delta, Replica, Subscription};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::performer::{Performed, Performer};

/// Concurrent actions: a hundred rollouts that become healthy together take a few round trips.
const WRITES_IN_FLIGHT: usize = 16;

/// The time limit for the replica to show the last write; it takes milliseconds.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest sleep: the wall clock may be set, and deadlines are wall time.
const SLEEP_MAX: Duration = Duration::from_secs(30);

/// Runs until drained or deposed; the caller drops it when the term is lost.
pub(crate) async fn lead(
    performer: Performer,
    config: rollout::Config,
    replica: Replica,
    drain: CancellationToken,
) {
    let (snapshot, mut changes) = replica.subscribe();
    let mut rollout = Rollout::new(config);
    rollout.resync(&snapshot);
    info!(index = snapshot.index(), "watching deployments");
    while !drain.is_cancelled() {
        take_in_waiting(&mut rollout, &mut changes, &replica).await;
        let actions = rollout.step(performer.now(), &replica.snapshot(), &mut || {
            performer.eval_id()
        });
        performer
            .metrics
            .active
            .set(i64::try_from(rollout.len()).unwrap_or(i64::MAX));
        if !actions.is_empty() {
            if perform_all(&performer, &mut rollout, actions).await == Term::Over {
                warn!("another replica leads");
                return;
            }
            continue;
        }
        if rollout.has_work() {
            continue;
        }
        let pause = until(rollout.next_deadline(), performer.now());
        tokio::select! {
            () = drain.cancelled() => break,
            delta = changes.next() => match delta {
                Some(delta) => apply_delta(&mut rollout, &delta, &replica),
                None => break,
            },
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Processes every change that has arrived, without waiting for more.
async fn take_in_waiting(rollout: &mut Rollout, changes: &mut Subscription, replica: &Replica) {
    loop {
        tokio::select! {
            biased;
            Some(delta) = changes.next() => apply_delta(rollout, &delta, replica),
            () = std::future::ready(()) => return,
        }
    }
}

fn apply_delta(rollout: &mut Rollout, delta: &Delta, replica: &Replica) {
    match delta {
        Delta::Changes { changes, .. } => rollout.note(changes, &replica.snapshot()),
        Delta::Resnapshot(snapshot) => rollout.resync(snapshot),
    }
}

/// The state of the leadership term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Term {
    Continues,
    Over,
}

/// Performs actions and waits until the replica shows them. Otherwise they would be requested twice.
async fn perform_all(performer: &Performer, rollout: &mut Rollout, actions: Vec<Action>) -> Term {
    let mut seen_at = 0;
    let mut results = futures::stream::iter(actions)
        .map(|action| async { (action.deployment_id, performer.perform(action).await) })
        .buffer_unordered(WRITES_IN_FLIGHT);
    while let Some((deployment_id, performed)) = results.next().await {
        match performed {
            Performed::SeenAt(revision) => {
                seen_at = seen_at.max(revision);
                // After a conflict the action may still be due.
                rollout.examine_again(deployment_id);
            }
            // Only this deployment backs off.
            Performed::Failed => rollout.examine_later(performer.now(), deployment_id),
            Performed::Deposed => return Term::Over,
        }
    }
    if let Err(error) = performer.replica.wait_for(seen_at, CATCH_UP_TIMEOUT).await {
        warn!(%error, index = seen_at, "the replica does not show the last write");
    }
    Term::Continues
}

fn until(deadline: Option<Timestamp>, now: Timestamp) -> Duration {
    deadline.map_or(SLEEP_MAX, |deadline| deadline.since(now).min(SLEEP_MAX))
}
