//! The leader's loop: heartbeats and the store's changes in, transitions out.

use std::time::Duration;

use model::{NodeId, Timestamp};
use store::{Delta, Replica};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, error, info, info_span, warn};
use upkeep::{Effect, Event, Liveness};

use crate::report::Inbox;
use crate::world::World;

/// Transitions written at the same time: a rack that comes back is written in a second, and the
/// store is not flooded when everything does.
const WRITES_IN_FLIGHT: usize = 32;

/// The longest sleep; a tick that finds nothing to do costs nothing.
const SLEEP_MAX: Duration = Duration::from_secs(5);

/// Leads until drained or deposed; the caller drops it when the term is lost.
pub(crate) async fn lead(
    world: World,
    config: upkeep::Config,
    replica: Replica,
    mut inbox: Inbox,
    drain: CancellationToken,
) {
    let (snapshot, mut changes) = replica.subscribe();
    info!(
        index = snapshot.index(),
        nodes = snapshot.node_count(),
        "watching over the nodes"
    );
    let mut liveness = Liveness::new(config);
    let mut effects = liveness.resync(world.now(), &snapshot);
    let mut writes = JoinSet::new();
    loop {
        for effect in effects {
            if writes.len() >= WRITES_IN_FLIGHT {
                writes.join_next().await;
            }
            carry_out(effect, &world, &mut writes);
        }
        let stats = liveness.stats();
        world
            .metrics
            .heartbeat_active
            .set(i64::try_from(stats.active).unwrap_or(i64::MAX));
        world
            .metrics
            .gateways
            .set(i64::try_from(stats.gateways).unwrap_or(i64::MAX));
        let pause = until(liveness.next_deadline(), world.now());
        // Beats before the clock: what is waiting to be heard is not silence.
        let event = tokio::select! {
            biased;
            () = drain.cancelled() => break,
            () = world.deposed.cancelled() => break,
            Ok(()) = inbox.gateways.changed() => {
                Event::Gateways { connected: *inbox.gateways.borrow_and_update() }
            }
            Some(nodes) = inbox.reports.recv() => all_heard(nodes, &mut inbox),
            delta = changes.next() => match delta {
                Some(Delta::Changes { changes, .. }) => {
                    liveness.note(world.now(), &changes);
                    Event::Tick
                }
                Some(Delta::Resnapshot(snapshot)) => {
                    effects = liveness.resync(world.now(), &snapshot);
                    continue;
                }
                None => break,
            },
            Some(_) = writes.join_next(), if !writes.is_empty() => Event::Tick,
            () = tokio::time::sleep(pause) => Event::Tick,
        };
        effects = liveness.step(world.now(), event, &replica.snapshot());
    }
    // What is in hand is finished; the process's grace period bounds it.
    while writes.join_next().await.is_some() {}
}

/// Returns everything that waits to be heard as one event: after a stall of ours, the first report
/// must not make the nodes of the next one look silent.
fn all_heard(mut nodes: Vec<NodeId>, inbox: &mut Inbox) -> Event {
    while let Ok(more) = inbox.reports.try_recv() {
        nodes.extend(more);
    }
    Event::Heard { nodes }
}

fn carry_out(effect: Effect, world: &World, writes: &mut JoinSet<()>) {
    let world = world.clone();
    match effect {
        Effect::Transition(transition) => {
            let span = info_span!("node_transition", node_id = %transition.node_id);
            writes.spawn(async move { world.transition(transition).await }.instrument(span));
        }
        Effect::Evaluate { node_id } => {
            let span = info_span!("node_evaluate", %node_id);
            writes.spawn(async move { world.evaluate(node_id).await }.instrument(span));
        }
        Effect::MassFailure {
            silent,
            nodes,
            held_until,
        } => {
            world.metrics.mass_failures.inc();
            let held = held_until.since(world.now()).as_secs();
            error!(
                silent,
                nodes,
                "most nodes have fallen silent at once; none is taken for down for another {held} s"
            );
        }
        Effect::Blind => warn!("no gateway reports: silence says nothing until one does"),
    }
}

fn until(deadline: Option<Timestamp>, now: Timestamp) -> Duration {
    deadline.map_or(SLEEP_MAX, |deadline| deadline.since(now).min(SLEEP_MAX))
}
