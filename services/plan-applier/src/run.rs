//! The leader's loop: passes plans, verdicts and commits through the machine, and sends the answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use applier::bad_nodes::Tracker;
use applier::{Answer, Applier, Effect, Event, PlanVerification, Ticket};
use model::{NodeId, PlanResult, Timestamp};
use service_kit::Clock;
use state::Snapshot;
use store::pace::commit_interval;
use store::{Replica, Writer};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, error, info, info_span};

use crate::commit::{Committer, Store};
use crate::metrics::Metrics;
use crate::submission_queue::Submission;

/// Timeout of one wait for the replica, repeated while plans wait for it.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(10);

/// The dependencies of the loop.
pub(crate) struct Context<S = Writer> {
    pub(crate) replica: Replica,
    pub(crate) committer: Committer<S>,
    pub(crate) clock: Clock,
    pub(crate) verify_threads: usize,
    /// `None`: rejections are not counted.
    pub(crate) bad_nodes: Option<Tracker>,
    pub(crate) metrics: Metrics,
}

/// The outcome of a concurrent task.
pub(crate) struct Done {
    pub(crate) event: Event,
    /// Nodes that rejected their part of a plan.
    pub(crate) refusing: Vec<NodeId>,
}

impl From<Event> for Done {
    fn from(event: Event) -> Self {
        let refusing = Vec::new();
        Self { event, refusing }
    }
}

/// The caller that waits for a plan's answer.
struct Waiter {
    answer: oneshot::Sender<Answer>,
    span: Span,
    since: Instant,
}

/// The loop's state.
struct Loop<S> {
    context: Context<S>,
    applier: Applier,
    waiters: BTreeMap<Ticket, Waiter>,
    /// At most one verification and one commit.
    work: JoinSet<Done>,
    /// Nodes being marked; few, because the tracker limits them.
    marking: JoinSet<()>,
    tickets: u64,
    /// The begin of the last commit.
    commit_began: Instant,
    /// The end of the machine's hold.
    held_until: Option<Instant>,
}

/// Leads until drained or deposed; the caller drops the future when the term is lost.
pub(crate) async fn lead<S: Store>(
    context: Context<S>,
    mut submissions: mpsc::Receiver<Submission>,
    revision: u64,
    drain: CancellationToken,
) {
    let now = Timestamp(context.clock.now());
    // Callers with plans in the queue meanwhile have their own timeouts.
    let Some(finished) = context.committer.finish_former_plans(now).await else {
        return;
    };
    let revision = revision.max(finished);
    info!(index = revision, "taking plans");
    let mut this = Loop {
        context,
        applier: Applier::new(revision),
        waiters: BTreeMap::new(),
        work: JoinSet::new(),
        marking: JoinSet::new(),
        tickets: 0,
        commit_began: Instant::now(),
        held_until: None,
    };
    let mut is_open = true;
    while is_open || !this.waiters.is_empty() {
        let wanted = this.applier.wanted_revision(this.context.replica.applied());
        let replica = this.context.replica.clone();
        let held_until = this.held_until;
        let event = tokio::select! {
            () = drain.cancelled(), if !submissions.is_closed() => {
                // Buffered plans can still be received.
                submissions.close();
                continue;
            }
            submission = submissions.recv(), if is_open => match submission {
                Some(submission) => this.admit(submission),
                None => {
                    is_open = false;
                    continue;
                }
            },
            Some(done) = this.work.join_next(), if !this.work.is_empty() => match done {
                Ok(Done { event, refusing }) => {
                    this.count(&refusing);
                    event
                }
                Err(panic) => {
                    error!(%panic, "verifying or committing panicked: giving up the term");
                    Event::Deposed
                }
            },
            Some(_) = this.marking.join_next(), if !this.marking.is_empty() => continue,
            () = until(held_until), if held_until.is_some() => {
                this.held_until = None;
                this.applier.release();
                Event::Replica
            }
            // After a timeout the loop checks again.
            _ = replica.wait_for(wanted.unwrap_or_default(), CATCH_UP_TIMEOUT), if wanted.is_some() => {
                Event::Replica
            }
        };
        if !this.step(event) {
            return;
        }
    }
}

impl<S: Store> Loop<S> {
    fn admit(&mut self, submission: Submission) -> Event {
        let Submission { plan, answer, span } = submission;
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        self.waiters.insert(
            ticket,
            Waiter {
                answer,
                span,
                since: Instant::now(),
            },
        );
        Event::Submit { ticket, plan }
    }

    /// Passes an event, and those that follow at once, to the machine and executes its effects;
    /// `false` ends the term.
    fn step(&mut self, event: Event) -> bool {
        let mut leads = true;
        let mut next = Some(event);
        while let Some(event) = next.take() {
            let snapshot = self.context.replica.snapshot();
            if matches!(event, Event::Committed { .. }) {
                self.hold();
            }
            for effect in self.applier.step(&snapshot, event) {
                match effect {
                    Effect::Verify {
                        ticket,
                        plan,
                        pending,
                    } => {
                        let verifying = self.verification(ticket, plan, pending, &snapshot);
                        next = verifying.and_then(|verify| self.verify_here(verify));
                    }
                    effect => leads &= self.execute(effect),
                }
            }
        }
        let depth = i64::try_from(self.waiters.len()).unwrap_or(i64::MAX);
        self.context.metrics.queue_depth.set(depth);
        leads
    }
    /// Executes an effect other than a verification; `false` ends the term.
    fn execute(&mut self, effect: Effect) -> bool {
        match effect {
            Effect::Commit { commit, pieces } => {
                self.commit_began = Instant::now();
                let committing = self.context.committer.clone().commit(commit, pieces);
                let committing = async { Done::from(committing.await) };
                self.work.spawn(committing.in_current_span());
            }
            Effect::CommitAllAtOnce {
                commit,
                eval_id,
                pieces,
            } => {
                let now = Timestamp(self.context.clock.now());
                let committer = self.context.committer.clone();
                let committing = committer.commit_all_at_once(commit, eval_id, pieces, now);
                let committing = async { Done::from(committing.await) };
                self.work.spawn(committing.in_current_span());
            }
            Effect::Answer { ticket, answer } => self.answer(ticket, answer),
            Effect::StepDown => return false,
            Effect::Verify { .. } => unreachable!("verifications are started by their step"),
        }
        true
    }

    /// Lets small plans gather after a commit, while others wait already.
    fn hold(&mut self) {
        if !self.applier.gains_from_hold() {
            return;
        }
        let interval = commit_interval(self.commit_began.elapsed());
        self.held_until = Some(self.commit_began + interval);
        self.applier.hold();
    }

    /// Starts the verification of a large plan on another thread, and returns that of a quick one.
    fn verification(
        &mut self,
        ticket: Ticket,
        plan: Arc<model::Plan>,
        pending: Arc<applier::Pending>,
        snapshot: &Snapshot,
    ) -> Option<impl FnOnce() -> Done + use<S>> {
        let parent = self
            .waiters
            .get(&ticket)
            .and_then(|waiter| waiter.span.id());
        let span = info_span!(parent: parent, "verify", index = snapshot.index());
        let now = Timestamp(self.context.clock.now());
        let (threads, metrics) = (self.context.verify_threads, self.context.metrics.clone());
        let (snapshot, is_quick) = (snapshot.clone(), applier::is_quick(&plan));
        let verify = move || {
            let _entered = span.entered();
            let began = Instant::now();
            let verified = crate::verify::verify(&snapshot, &pending, &plan, now, threads);
            let crate::verify::Verified { verdict, refusing } = verified;
            metrics.evaluate.observe(began.elapsed().as_secs_f64());
            if let PlanVerification::Accepted(accepted) = &verdict {
                metrics
                    .nodes_rejected
                    .inc_by(accepted.rejected_nodes.len() as u64);
            }
            let event = Event::Verified { ticket, verdict };
            Done { event, refusing }
        };
        if is_quick {
            return Some(verify);
        }
        blocking::spawn_in(&mut self.work, verify);
        None
    }

    /// Verifies a quick plan; returns the event. A panic ends the term, as on another thread.
    fn verify_here(&mut self, verify: impl FnOnce() -> Done) -> Option<Event> {
        let verified = std::panic::catch_unwind(std::panic::AssertUnwindSafe(verify));
        let Ok(Done { event, refusing }) = verified else {
            error!("verifying panicked: giving up the term");
            return Some(Event::Deposed);
        };
        self.count(&refusing);
        Some(event)
    }

    /// Counts rejections, and marks nodes that reach the threshold.
    fn count(&mut self, refusing: &[NodeId]) {
        let now = Timestamp(self.context.clock.now());
        let Some(tracker) = &mut self.context.bad_nodes else {
            return;
        };
        for id in refusing {
            if tracker.rejected(now, *id) {
                let committer = self.context.committer.clone();
                let span = info_span!("bad_node", node_id = %id);
                let marking = committer.mark_ineligible(*id, now);
                self.marking.spawn(marking.instrument(span));
            }
        }
    }

    fn answer(&mut self, ticket: Ticket, answer: Answer) {
        let Some(waiter) = self.waiters.remove(&ticket) else {
            return;
        };
        let metrics = &self.context.metrics;
        metrics.submit.observe(waiter.since.elapsed().as_secs_f64());
        if let Answer::Result(result) = &answer {
            metrics.plan(result_label(result));
            metrics.placements.inc_by(result.placed.len() as u64);
            info!(
                parent: &waiter.span,
                index = result.commit_index,
                placed = result.placed.len(),
                rejected_nodes = ?result.rejected_nodes,
                refused = result.refused,
                "plan answered"
            );
        }
        // A caller that has given up reads the outcome from the store.
        let _ = waiter.answer.send(answer);
    }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

fn result_label(result: &PlanResult) -> &'static str {
    if result.refused.is_some() {
        "refused"
    } else if result.refresh_index == 0 {
        "whole"
    } else {
        "partial"
    }
}

#[cfg(test)]
mod tests;
