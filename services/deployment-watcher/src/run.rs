//! The leader's loop: the store's changes in, transactions out.

use std::time::Duration;

use futures::StreamExt as _;
use model::Timestamp;
use rollout::{Action, Rollout};
use store::{Delta, Replica, Subscription};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::world::{Performed, World};

/// Actions written at the same time: a hundred rollouts that become healthy together are through
/// in a few round trips.
const WRITES_IN_FLIGHT: usize = 16;

/// How long the replica may take to show what was just written; it takes milliseconds.
const CATCH_UP_PATIENCE: Duration = Duration::from_secs(10);

/// The longest sleep: the wall clock may be set, and deadlines are wall time.
const SLEEP_MAX: Duration = Duration::from_secs(30);

/// Leads until drained or deposed; the caller drops it when the term is lost.
pub(crate) async fn lead(
    world: World,
    config: rollout::Config,
    replica: Replica,
    drain: CancellationToken,
) {
    let (snapshot, mut changes) = replica.subscribe();
    let mut rollout = Rollout::new(config);
    rollout.resync(&snapshot);
    info!(index = snapshot.index(), "watching over deployments");
    while !drain.is_cancelled() {
        take_in_waiting(&mut rollout, &mut changes, &replica).await;
        let actions = rollout.step(world.now(), &replica.snapshot(), &mut || world.eval_id());
        world
            .metrics
            .active
            .set(i64::try_from(rollout.len()).unwrap_or(i64::MAX));
        if !actions.is_empty() {
            if carry_out(&world, &mut rollout, actions).await == Term::Over {
                warn!("another leads");
                return;
            }
            continue;
        }
        if rollout.has_work() {
            continue;
        }
        let pause = until(rollout.next_deadline(), world.now());
        tokio::select! {
            () = drain.cancelled() => break,
            delta = changes.next() => match delta {
                Some(delta) => take_in(&mut rollout, &delta, &replica),
                None => break,
            },
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Takes in every change that has arrived, without waiting for more.
async fn take_in_waiting(rollout: &mut Rollout, changes: &mut Subscription, replica: &Replica) {
    loop {
        tokio::select! {
            biased;
            Some(delta) = changes.next() => take_in(rollout, &delta, replica),
            () = std::future::ready(()) => return,
        }
    }
}

fn take_in(rollout: &mut Rollout, delta: &Delta, replica: &Replica) {
    match delta {
        Delta::Changes { changes, .. } => rollout.note(changes, &replica.snapshot()),
        Delta::Resnapshot(snapshot) => rollout.resync(snapshot),
    }
}

/// Whether there is a point in going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Term {
    GoesOn,
    Over,
}

/// Writes actions and waits until the replica shows them: else they would be asked for twice.
async fn carry_out(world: &World, rollout: &mut Rollout, actions: Vec<Action>) -> Term {
    let mut seen_at = 0;
    let mut results = futures::stream::iter(actions)
        .map(|action| async { (action.deployment_id, world.perform(action).await) })
        .buffer_unordered(WRITES_IN_FLIGHT);
    while let Some((deployment_id, performed)) = results.next().await {
        match performed {
            Performed::SeenAt(revision) => {
                seen_at = seen_at.max(revision);
                // An overtaken action may still be due, on what overtook it.
                rollout.look_again(deployment_id);
            }
            // This one waits; the others go on.
            Performed::Failed => rollout.look_later(world.now(), deployment_id),
            Performed::Deposed => return Term::Over,
        }
    }
    if let Err(error) = world.replica.wait_for(seen_at, CATCH_UP_PATIENCE).await {
        warn!(%error, index = seen_at, "the replica does not show what was written");
    }
    Term::GoesOn
}

fn until(deadline: Option<Timestamp>, now: Timestamp) -> Duration {
    deadline.map_or(SLEEP_MAX, |deadline| deadline.since(now).min(SLEEP_MAX))
}
