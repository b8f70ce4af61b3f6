//! The applier's state machine: pipelines verification and commits, and groups plans into
//! transactions.
//!
//! ```text
//! Submit → queue ─ Verify → verified ─ Commit → answered
//!             ▲                │           │
//!             └────────────────┴───────────┘ a commit failed: retry everything based on it
//! ```
//!
//! **Invariant**: transactions are sent one after the other, in the order in which their plans were
//! verified, so each was verified on top of everything before it.
//! **Invariant**: at most one plan of a job is between queue and answer. The plans of a job need no
//! other order: each must be made on a snapshot that shows the previous one.

mod history;
mod message;
mod outcomes;
mod queue;
mod verified;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use model::{JobKey, Plan};
use state::Snapshot;

use crate::pending::Pending;
use crate::piece::Piece;
use crate::verify::verdict::PlanVerification;
use history::History;
use message::refusal;
pub use message::{Answer, CommitId, Effect, Event, Ticket};
use queue::{Queue, Queued};
use verified::{Commit, Verified};

/// Operations verified ahead of the transaction under way: enough for two transactions. More would
/// only be verified again after a failed commit, and would overtake later plans of higher priority.
const OPERATIONS_AHEAD_MAX: usize = 2 * crate::piece::OPERATIONS_MAX;

/// Operations that are sent although the machine is held: a larger transaction costs the store as much
/// for each of them.
const OPERATIONS_HELD_MAX: usize = crate::piece::OPERATIONS_MAX / 4;

/// The machine.
#[derive(Debug)]
pub struct Applier {
    queue: Queue,
    /// The plan under verification, and whether it has to be verified again in any case.
    verifying: Option<(Queued, bool)>,
    verified: VecDeque<Verified>,
    commit: Option<Commit>,
    /// Plans that depend on the transaction under way; they return to the queue when it is settled.
    waiting: Vec<Queued>,
    /// Writes that are verified, sent, or committed but not in the replica yet.
    pending: Arc<Pending>,
    /// Committed pieces that may not be in the replica yet, with their revisions, oldest first.
    unshown: VecDeque<(u64, Vec<Arc<Piece>>)>,
    history: History,
    /// The replica must reach this revision before the next verification.
    wanted_revision: u64,
    next_commit: u64,
    is_deposed: bool,
    /// See [`Applier::hold`].
    is_held: bool,
}

impl Applier {
    /// Starts a leader's machine; `election_revision` is the revision that made it leader.
    ///
    /// The replica has reached that revision, so it shows all commits of earlier leaders.
    pub fn new(election_revision: u64) -> Self {
        Self {
            queue: Queue::default(),
            verifying: None,
            verified: VecDeque::new(),
            commit: None,
            waiting: Vec::new(),
            pending: Arc::default(),
            unshown: VecDeque::new(),
            history: History::new(election_revision),
            wanted_revision: election_revision,
            next_commit: 0,
            is_deposed: false,
            is_held: false,
        }
    }

    /// Tells whether small plans gain from a hold: others wait beside the one that is answered next. A lone
    /// plan never waits.
    pub fn gains_from_hold(&self) -> bool {
        let (unanswered, _) = self.depth();
        unanswered >= 2
    }

    /// Lets small plans gather: from now on transactions are sent only when they are large, until
    /// [`Self::release`].
    pub fn hold(&mut self) {
        self.is_held = true;
    }

    /// Ends a hold; the next step sends what has gathered.
    pub fn release(&mut self) {
        self.is_held = false;
    }

    /// Handles one event; `replica` is the newest snapshot of committed state.
    pub fn step(&mut self, replica: &Snapshot, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.is_deposed {
            if let Event::Submit { ticket, .. } = event {
                effects.push(Effect::Answer {
                    ticket,
                    answer: Answer::Unavailable,
                });
            }
            return effects;
        }
        match event {
            Event::Submit { ticket, plan } => self.submit(ticket, plan, &mut effects),
            Event::Verified { ticket, verdict } => {
                self.handle_verdict(ticket, verdict, &mut effects)
            }
            Event::Committed { commit, revision } => self.committed(commit, revision, &mut effects),
            Event::Conflict { commit, revision } => {
                self.failed(commit, revision, None, &mut effects);
            }
            Event::Refused {
                commit,
                revision,
                reason,
            } => self.failed(commit, revision, Some(&reason), &mut effects),
            Event::Deposed => self.step_down(&mut effects),
            Event::Replica => {}
        }
        if !self.is_deposed {
            self.drop_shown(replica);
            self.send(&mut effects);
            self.verify_next(replica, &mut effects);
        }
        effects
    }

    /// Returns the revision that queued plans wait for; `None` when they do not. When the replica has
    /// reached it, the loop sends [`Event::Replica`].
    pub fn wanted_revision(&self, replica_index: u64) -> Option<u64> {
        let waits = !self.queue.is_empty() && self.verifying.is_none();
        (waits && self.wanted_revision > replica_index).then_some(self.wanted_revision)
    }

    /// Returns the number of unanswered plans, and of those that are still queued.
    pub fn depth(&self) -> (usize, usize) {
        let queued = self.queue.len() + self.waiting.len();
        let committing = self.commit.as_ref().map_or(0, |commit| commit.plans.len());
        let verifying = usize::from(self.verifying.is_some());
        (
            queued + verifying + self.verified.len() + committing,
            queued,
        )
    }

    fn submit(&mut self, ticket: Ticket, plan: Box<Plan>, effects: &mut Vec<Effect>) {
        if !self.queue.submit(ticket, plan) {
            effects.push(Effect::Answer {
                ticket,
                answer: Answer::Overloaded,
            });
        }
    }

    /// Requests the verification of the next queued plan, unless enough is verified already.
    fn verify_next(&mut self, replica: &Snapshot, effects: &mut Vec<Effect>) {
        while self.verifying.is_none() && replica.index() >= self.wanted_revision {
            if self.operations_ahead() >= OPERATIONS_AHEAD_MAX {
                return;
            }
            let Some(queued) = self.next_queued() else {
                return;
            };
            let plan = &queued.plan;
            let last = self.history.last_commit(&plan.job);
            if plan.snapshot_index < last {
                // A duplicate delivery must first see the placements of the other one.
                let reason = format!(
                    "a plan for job {} was committed after the snapshot",
                    plan.job
                );
                effects.push(refusal(queued.ticket, reason, last));
                continue;
            }
            let (plan, pending) = (Arc::clone(plan), Arc::clone(&self.pending));
            effects.push(Effect::Verify {
                ticket: queued.ticket,
                plan,
                pending,
            });
            self.verifying = Some((queued, false));
        }
    }

    /// Returns the number of verified operations that are not sent yet.
    fn operations_ahead(&self) -> usize {
        self.verified.iter().map(Verified::operations).sum()
    }

    /// Takes the first queued plan whose job has no other plan under way.
    fn next_queued(&mut self) -> Option<Queued> {
        let committing = self.commit.iter().flat_map(|commit| &commit.plans);
        let ahead = committing
            .chain(&self.verified)
            .map(|verified| &verified.queued);
        let busy: BTreeSet<&JobKey> = ahead
            .chain(&self.waiting)
            .map(|queued| &queued.plan.job)
            .collect();
        self.queue.pop(&busy)
    }

    /// Drops pending writes that the replica shows by now.
    fn drop_shown(&mut self, replica: &Snapshot) {
        while self
            .unshown
            .front()
            .is_some_and(|(revision, _)| *revision <= replica.index())
        {
            let Some((_, pieces)) = self.unshown.pop_front() else {
                return;
            };
            let pending = Arc::make_mut(&mut self.pending);
            pieces.iter().for_each(|piece| pending.remove(piece));
        }
    }

    fn handle_verdict(
        &mut self,
        ticket: Ticket,
        verdict: PlanVerification,
        effects: &mut Vec<Effect>,
    ) {
        let is_awaited = self
            .verifying
            .as_ref()
            .is_some_and(|(queued, _)| queued.ticket == ticket);
        let Some((queued, is_stale)) = self.verifying.take_if(|_| is_awaited) else {
            return;
        };
        if is_stale {
            self.queue.put_back(queued);
            return;
        }
        match verdict {
            PlanVerification::Accepted(mut accepted) => {
                let pieces = VecDeque::from(std::mem::take(&mut accepted.pieces));
                let pending = Arc::make_mut(&mut self.pending);
                pieces.iter().for_each(|piece| pending.add(piece));
                self.verified.push_back(Verified {
                    queued,
                    accepted,
                    pieces,
                    placed: Vec::new(),
                    committed_index: 0,
                });
            }
            PlanVerification::Refused(refused) => {
                effects.push(refusal(ticket, refused.reason, refused.refresh_index));
            }
            PlanVerification::Waits if self.commit.is_none() && self.verified.is_empty() => {
                // Settled during the verification.
                self.queue.put_back(queued);
            }
            PlanVerification::Waits => self.waiting.push(queued),
        }
    }

    /// Sends the next transaction when none is under way, and answers plans without writes.
    fn send(&mut self, effects: &mut Vec<Effect>) {
        while self.commit.is_none() {
            let operations = self.operations_ahead();
            if self.is_held && operations > 0 && operations < OPERATIONS_HELD_MAX {
                return;
            }
            let Some(first) = self.verified.pop_front() else {
                self.queue.put_all_back(&mut self.waiting);
                return;
            };
            if first.pieces.is_empty() {
                self.answer(first, effects);
                continue;
            }
            if first.is_indivisible() {
                self.send_all_at_once(first, effects);
                return;
            }
            let mut plans = vec![first];
            let mut pieces = Vec::new();
            self.gather(&mut plans, &mut pieces);
            let id = CommitId(self.next_commit);
            self.next_commit += 1;
            effects.push(Effect::Commit {
                commit: id,
                pieces: pieces.clone(),
            });
            self.commit = Some(Commit { id, pieces, plans });
        }
    }

    /// Sends all pieces of a plan, to be committed atomically.
    fn send_all_at_once(&mut self, mut plan: Verified, effects: &mut Vec<Effect>) {
        let id = CommitId(self.next_commit);
        self.next_commit += 1;
        let pieces: Vec<_> = plan.pieces.drain(..).collect();
        effects.push(Effect::CommitAllAtOnce {
            commit: id,
            eval_id: plan.queued.plan.eval_id,
            pieces: pieces.clone(),
        });
        self.commit = Some(Commit {
            id,
            pieces,
            plans: vec![plan],
        });
    }

    /// Takes the first plan's next piece, and further complete plans that fit beside it.
    fn gather(&mut self, plans: &mut Vec<Verified>, pieces: &mut Vec<Arc<Piece>>) {
        let Some(first) = plans.first_mut() else {
            return;
        };
        let is_last = first.pieces.len() == 1;
        let must_commit_alone = first.queued.must_commit_alone;
        let Some(piece) = first.pieces.pop_front() else {
            return;
        };
        let (mut operations, mut bytes) = (piece.ops.len(), piece.bytes);
        pieces.push(piece);
        if !is_last || must_commit_alone {
            return;
        }
        while let Some(next) = self.verified.front() {
            let piece = next.pieces.front().filter(|_| next.pieces.len() == 1);
            let fits = piece.is_some_and(|piece| piece.has_room(operations, bytes));
            if !fits || next.queued.must_commit_alone {
                return;
            }
            let Some(mut next) = self.verified.pop_front() else {
                return;
            };
            if let Some(piece) = next.pieces.pop_front() {
                operations += piece.ops.len();
                bytes += piece.bytes;
                pieces.push(piece);
            }
            plans.push(next);
        }
    }

    fn step_down(&mut self, effects: &mut Vec<Effect>) {
        self.is_deposed = true;
        let committing = self
            .commit
            .take()
            .into_iter()
            .flat_map(|commit| commit.plans);
        let ahead = committing
            .chain(self.verified.drain(..))
            .map(|verified| verified.queued);
        let verifying = self.verifying.take().map(|(queued, _)| queued);
        let rest = self.queue.drain().chain(std::mem::take(&mut self.waiting));
        for queued in ahead.chain(verifying).chain(rest) {
            let (ticket, answer) = (queued.ticket, Answer::Unavailable);
            effects.push(Effect::Answer { ticket, answer });
        }
        effects.push(Effect::StepDown);
    }
}
