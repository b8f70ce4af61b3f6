//! The leader's loop around [`broker::Broker`]: facts of the store and commands of workers in, effects
//! out.

use broker::facts::Reader;
use broker::{Broker, Effect, Event, RequestId};
use model::Timestamp;
use service_kit::{Clock, SteadyClock};
use store::{Delta, Leadership, Replica};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::handle::{Answer, Command};
use crate::metrics::Metrics;
use crate::performer::Performer;

/// The parts of one leadership term.
pub(crate) struct Term {
    pub(crate) leadership: Leadership,
    pub(crate) config: broker::Config,
    pub(crate) seed: u64,
    pub(crate) replica: Replica,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) performer: Performer,
}

/// The next input of the loop.
enum Next {
    Command(Command),
    Delta(Delta),
    Tick,
    /// A write has ended.
    Written,
}

/// Runs until drained or deposed; the caller drops it when the term is lost.
pub(crate) async fn lead(mut term: Term, drain: CancellationToken) {
    // A step of the wall clock must not make every delivery late.
    let clock = SteadyClock::start(term.clock.clone());
    let now = || Timestamp(clock.now());
    let (snapshot, mut changes) = term.replica.subscribe();
    let mut reader = Reader::new(&snapshot);
    let number = term.leadership.fence().create_revision;
    let mut broker = Broker::new(term.config.clone(), number, term.seed);
    let mut effects = broker.resync(now(), &snapshot);
    info!(
        index = snapshot.index(),
        evals = broker.len(),
        "queues rebuilt"
    );
    drop(snapshot);
    loop {
        term.performer.perform(now(), effects);
        term.metrics.show(&broker.stats());
        let deadline = broker.next_deadline().map(|at| clock.instant(at.0));
        let next = tokio::select! {
            () = drain.cancelled() => break,
            () = term.performer.deposed() => break,
            Some(command) = term.commands.recv() => Next::Command(command),
            delta = changes.next() => match delta {
                Some(delta) => Next::Delta(delta),
                None => break,
            },
            () = term.performer.written() => Next::Written,
            () = sleep_until(deadline) => Next::Tick,
        };
        let now = now();
        effects = match next {
            Next::Command(command) => {
                handle_command(&mut broker, &mut term.performer, now, command)
            }
            Next::Delta(delta) => apply_delta(&mut broker, &mut reader, now, &delta, &term.replica),
            Next::Tick => broker.step(now, Event::Tick),
            Next::Written => Vec::new(),
        };
    }
    term.performer.finish().await;
}

fn apply_delta(
    broker: &mut Broker,
    reader: &mut Reader,
    now: Timestamp,
    delta: &Delta,
    replica: &Replica,
) -> Vec<Effect> {
    match delta {
        Delta::Changes { revision, changes } => {
            let facts = reader.read(*revision, changes, &replica.snapshot());
            if facts.is_empty() {
                return Vec::new();
            }
            broker.step(now, Event::Facts(facts))
        }
        Delta::Resnapshot(snapshot) => {
            *reader = Reader::new(snapshot);
            broker.resync(now, snapshot)
        }
    }
}

fn handle_command(
    broker: &mut Broker,
    performer: &mut Performer,
    now: Timestamp,
    command: Command,
) -> Vec<Effect> {
    let event = match command {
        Command::Open {
            session,
            types,
            credit,
            deliveries,
        } => {
            performer.connect(session, deliveries);
            Event::SessionOpened {
                session,
                types,
                credit,
            }
        }
        Command::Credit { session, credit } => Event::Credit { session, credit },
        Command::Close { session } => {
            performer.disconnect(session);
            Event::SessionClosed { session }
        }
        Command::Acked(deliveries) => {
            let acks = deliveries.into_iter().flat_map(|(eval_id, token)| {
                let request = Performer::NO_REPLY;
                let ack = Event::Ack {
                    request,
                    eval_id,
                    token,
                };
                broker.step(now, ack)
            });
            return acks.collect();
        }
        Command::Answer {
            answer,
            eval_id,
            token,
            reply,
        } => {
            let request: RequestId = performer.expect_reply(reply);
            match answer {
                Answer::Ack => Event::Ack {
                    request,
                    eval_id,
                    token,
                },
                Answer::Nack => Event::Nack {
                    request,
                    eval_id,
                    token,
                },
                Answer::Extend => Event::Extend {
                    request,
                    eval_id,
                    token,
                },
            }
        }
        Command::Stats { reply } => {
            // The caller may have given up.
            let _ = reply.send(broker.stats());
            return Vec::new();
        }
    };
    broker.step(now, event)
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
