//! The liveness loop, around [`controller::Liveness`]: heartbeats and the store's changes in, node
//! transitions out.

use std::time::Duration;

use controller::{ControllerHealth, Effect, Event, Liveness};
use model::Timestamp;
use store::{Delta, Leadership, Replica};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, error, info, info_span, warn};

use crate::report::Inbox;
use crate::term::Term;

/// The longest sleep; an idle tick is cheap.
const SLEEP_MAX: Duration = Duration::from_secs(5);

/// Runs until drained or deposed; the caller drops it when the term is lost.
pub(crate) async fn lead(
    term: Term,
    leadership: Leadership,
    replica: Replica,
    inbox: Inbox,
    drain: CancellationToken,
) {
    let (snapshot, mut changes) = replica.subscribe();
    info!(
        index = snapshot.index(),
        nodes = snapshot.node_count(),
        "watching nodes"
    );
    let mut liveness = Liveness::new(term.config.clone());
    let mut effects = liveness.resync(term.now(), &snapshot);
    let mut writes = JoinSet::new();
    loop {
        for effect in effects {
            perform(effect, &term, &inbox, &mut writes);
        }
        let stats = liveness.stats();
        term.metrics
            .heartbeat_active
            .set(i64::try_from(stats.active).unwrap_or(i64::MAX));
        term.metrics
            .gateways
            .set(i64::try_from(stats.gateways).unwrap_or(i64::MAX));
        term.metrics
            .heartbeat_time_lost
            .set(stats.lost.as_secs_f64());
        let pause = until(liveness.next_deadline(), term.now());
        let event = tokio::select! {
            () = drain.cancelled() => break,
            () = term.deposed.cancelled() => break,
            () = inbox.arrived() => Event::Tick,
            Some(_) = writes.join_next(), if !writes.is_empty() => Event::Written,
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
            () = tokio::time::sleep(pause) => Event::Tick,
        };
        // Whatever the loop woke for, heartbeats come first: a node whose heartbeat waits is not silent.
        let mut events = inbox.take();
        events.push(event);
        while writes.try_join_next().is_some() {
            events.push(Event::Written);
        }
        let controller_health = controller_health(&leadership, &replica);
        effects = liveness.step(term.now(), controller_health, events, &replica.snapshot());
    }
    // Finish the started writes; the process's grace period bounds this.
    while writes.join_next().await.is_some() {}
}

fn controller_health(leadership: &Leadership, replica: &Replica) -> ControllerHealth {
    let now = Instant::now();
    let deadline = leadership.deadline();
    ControllerHealth {
        store_silent_for: replica.last_contact().unwrap_or_default(),
        leads_for: deadline.saturating_duration_since(now),
    }
}

fn perform(effect: Effect, term: &Term, inbox: &Inbox, writes: &mut JoinSet<()>) {
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
            error!(
                silent,
                nodes,
                held_seconds = held_until.since(term.now()).as_secs(),
                "most nodes stopped sending heartbeats at once: none is marked down for now"
            );
        }
        Effect::Blind => warn!("no gateway is connected: nodes are not marked down until one is"),
        Effect::GatewayLost { stream, nodes } => {
            let gateway = inbox.name(stream);
            warn!(
                gateway,
                nodes,
                "no messages from a gateway: its nodes have one heartbeat TTL to use another"
            );
        }
        Effect::Stalled { stall } => warn!(
            stall_ms = stall.as_millis(),
            "this process was stalled: the time does not count against nodes"
        ),
    }
}

fn until(deadline: Option<Timestamp>, now: Timestamp) -> Duration {
    deadline.map_or(SLEEP_MAX, |deadline| deadline.since(now).min(SLEEP_MAX))
}
