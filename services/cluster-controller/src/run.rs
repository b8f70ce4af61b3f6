//! The liveness loop, around [`controller::Liveness`]: heartbeats and the store's changes in, node
//! transitions out.

use std::time::Duration;

use controller::{Effect, Event, Liveness};
use model::{NodeId, Timestamp};
use store::{Delta, Replica};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, error, info, info_span, warn};

use crate::report::Inbox;
use crate::term::Term;

/// Concurrent transitions: a rack that reconnects is written within a second, and a whole cluster
/// does not flood the store.
const WRITES_IN_FLIGHT: usize = 32;

/// The longest sleep; an idle tick is cheap.
const SLEEP_MAX: Duration = Duration::from_secs(5);

/// Runs until drained or deposed; the caller drops it when the term is lost.
pub(crate) async fn lead(
    term: Term,
    config: controller::Config,
    replica: Replica,
    mut inbox: Inbox,
    drain: CancellationToken,
) {
    let (snapshot, mut changes) = replica.subscribe();
    info!(
        index = snapshot.index(),
        nodes = snapshot.node_count(),
        "watching nodes"
    );
    let mut liveness = Liveness::new(config);
    let mut effects = liveness.resync(term.now(), &snapshot);
    let mut writes = JoinSet::new();
    loop {
        for effect in effects {
            if writes.len() >= WRITES_IN_FLIGHT {
                writes.join_next().await;
            }
            perform(effect, &term, &mut writes);
        }
        let stats = liveness.stats();
        term.metrics
            .heartbeat_active
            .set(i64::try_from(stats.active).unwrap_or(i64::MAX));
        term.metrics
            .gateways
            .set(i64::try_from(stats.gateways).unwrap_or(i64::MAX));
        let pause = until(liveness.next_deadline(), term.now());
        // Reports before the clock: a node with a report in the queue is not silent.
        let event = tokio::select! {
            biased;
            () = drain.cancelled() => break,
            () = term.deposed.cancelled() => break,
            Ok(()) = inbox.gateways.changed() => {
                Event::Gateways { connected: *inbox.gateways.borrow_and_update() }
            }
            Some(nodes) = inbox.reports.recv() => merge_waiting(nodes, &mut inbox),
            delta = changes.next() => match delta {
                Some(Delta::Changes { changes, .. }) => {
                    liveness.note(term.now(), &changes);
                    Event::Tick
                }
                Some(Delta::Resnapshot(snapshot)) => {
                    effects = liveness.resync(term.now(), &snapshot);
                    continue;
                }
                None => break,
            },
            Some(_) = writes.join_next(), if !writes.is_empty() => Event::Tick,
            () = tokio::time::sleep(pause) => Event::Tick,
        };
        effects = liveness.step(term.now(), event, &replica.snapshot());
    }
    // Finish the started writes; the process's grace period bounds this.
    while writes.join_next().await.is_some() {}
}

/// Merges all waiting reports into one event. Otherwise, after a pause of this process, the nodes of
/// the second report would look silent while the first is processed.
fn merge_waiting(mut nodes: Vec<NodeId>, inbox: &mut Inbox) -> Event {
    while let Ok(more) = inbox.reports.try_recv() {
        nodes.extend(more);
    }
    Event::Heard { nodes }
}

fn perform(effect: Effect, term: &Term, writes: &mut JoinSet<()>) {
    let term = term.clone();
    match effect {
        Effect::Transition(transition) => {
            let span = info_span!("node_transition", node_id = %transition.node_id);
            writes.spawn(async move { term.transition(transition).await }.instrument(span));
        }
        Effect::Evaluate { node_id } => {
            let span = info_span!("node_evaluate", %node_id);
            writes.spawn(async move { term.evaluate(node_id).await }.instrument(span));
        }
        Effect::MassFailure {
            silent,
            nodes,
            held_until,
        } => {
            term.metrics.mass_failures.inc();
            let held = held_until.since(term.now()).as_secs();
            error!(
                silent,
                nodes,
                "most nodes stopped sending heartbeats at once: none is marked down for another {held} s"
            );
        }
        Effect::Blind => warn!("no gateway is connected: nodes are not marked down until one is"),
    }
}

fn until(deadline: Option<Timestamp>, now: Timestamp) -> Duration {
    deadline.map_or(SLEEP_MAX, |deadline| deadline.since(now).min(SLEEP_MAX))
}
