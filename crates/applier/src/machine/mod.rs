//! Keeps plans going: one is verified while another is committed, and what is verified meanwhile
//! shares the next transaction.
//!
//! ```text
//! Submit → queue ─ Verify → verified ─ Commit → answered
//!             ▲                │           │
//!             └────────────────┴───────────┘ a commit failed: everything built on it again
//! ```
//!
//! **Invariant**: transactions are sent one after the other, in the order in which their plans were
//! verified, so each was verified on top of everything before it.
//! **Invariant**: at most one plan of a job is between queue and answer. Its plans need no other
//! order: each must be made on a snapshot that shows the one before.

mod history;
mod queue;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use model::{AllocId, EvalId, JobKey, Plan, PlanResult};
use state::Snapshot;

use crate::cut::Piece;
use crate::pending::Pending;
use crate::verify::{Accepted, Verdict};
use history::History;
use queue::{Queue, Queued};

/// How often a plan's transaction may fail before its worker is asked to plan anew. What it was
/// verified against changes faster than it can be committed, so a new plan is the better try.
const COMMIT_ATTEMPTS_MAX: u32 = 4;

/// Why a plan is sent back whose transaction met something that it did not expect.
const OVERTAKEN: &str = "what the plan is built on changed before the commit";

/// How often it may fail in company.
const SHARED_ATTEMPTS_MAX: u32 = 2;

/// How many operations may be verified ahead of the transaction that is out: enough to fill the
/// next one twice. More would only be verified again when a commit fails, and would overtake plans
/// of higher priority that come in meanwhile.
const OPERATIONS_AHEAD_MAX: usize = 2 * crate::cut::OPERATIONS_MAX;

/// Names one submitted plan; chosen by the caller, never twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Names one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub u64);

/// What the machine is told.
#[derive(Clone, Debug)]
pub enum Event {
    /// A worker's plan. The replica has reached the snapshot that it was made on.
    Submit {
        ticket: Ticket,
        plan: Box<Plan>,
    },
    /// The answer to [`Effect::Verify`].
    Verified {
        ticket: Ticket,
        verdict: Verdict,
    },
    Committed {
        commit: CommitId,
        revision: u64,
    },
    /// A compare failed, so nothing of the transaction was written as of `revision`.
    Conflict {
        commit: CommitId,
        revision: u64,
    },
    /// The store would not take the transaction, and says why: nothing of it was written, and
    /// nothing will be if it is sent again. `revision` is what the replica has reached.
    Refused {
        commit: CommitId,
        revision: u64,
        reason: String,
    },
    /// It is not known whether the transaction was or will be carried out, or its fence has failed:
    /// whoever leads next starts from what is there.
    Deposed,
    /// The replica has moved on; sent while [`Applier::wanted_revision`] says so.
    Replica,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Judge `plan` against the replica as it was in this step, and what is on its way.
    Verify {
        ticket: Ticket,
        plan: Arc<Plan>,
        pending: Arc<Pending>,
    },
    /// Write `parts` in one transaction, fenced by the election.
    Commit {
        commit: CommitId,
        parts: Vec<Arc<Piece>>,
    },
    /// Write all of `pieces`, which one transaction cannot hold, or nothing of them, as
    /// [`crate::staged`] says. Its last revision is that of the commit.
    CommitWhole {
        commit: CommitId,
        eval_id: EvalId,
        pieces: Vec<Arc<Piece>>,
    },
    Answer {
        ticket: Ticket,
        answer: Answer,
    },
    /// Stop leading: see [`Event::Deposed`].
    StepDown,
}

/// What a worker is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Result(PlanResult),
    /// Too many plans are queued; nothing was written.
    Overloaded,
    /// No longer the leader. Whether anything was written has to be looked up.
    Unavailable,
}

/// A plan that may be committed once those before it are.
#[derive(Clone, Debug)]
struct Verified {
    queued: Queued,
    accepted: Accepted,
    /// Not sent yet, first to last.
    pieces: VecDeque<Arc<Piece>>,
    /// What earlier pieces of this plan placed.
    placed: Vec<AllocId>,
    /// The revision of the last of them; 0: none was sent.
    committed_index: u64,
}

impl Verified {
    /// Tells whether its pieces are worth nothing by themselves.
    fn is_indivisible(&self) -> bool {
        self.queued.plan.all_at_once && self.pieces.len() > 1
    }

    fn operations(&self) -> usize {
        self.pieces.iter().map(|piece| piece.ops.len()).sum()
    }
}

/// The transaction that is out, and whose plans are in it.
#[derive(Clone, Debug)]
struct Commit {
    id: CommitId,
    parts: Vec<Arc<Piece>>,
    plans: Vec<Verified>,
}

/// The machine.
#[derive(Debug)]
pub struct Applier {
    queue: Queue,
    /// The plan being judged, and whether it has to be judged again whatever comes of it.
    verifying: Option<(Queued, bool)>,
    verified: VecDeque<Verified>,
    commit: Option<Commit>,
    /// Plans that touch what is being committed; back to the queue when that is settled.
    waiting: Vec<Queued>,
    /// What is verified, sent, or committed and not shown by the replica yet.
    pending: Arc<Pending>,
    /// Committed pieces that the replica may not show yet, with their revisions, oldest first.
    unshown: VecDeque<(u64, Vec<Arc<Piece>>)>,
    history: History,
    /// Nothing is verified before the replica has reached this.
    wanted_revision: u64,
    next_commit: u64,
    is_deposed: bool,
}

impl Applier {
    /// Starts a leader's machine; `election_revision` is the revision that made it leader.
    ///
    /// The replica has reached that revision: what earlier leaders committed is in it.
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
        }
    }

    /// Takes in one event; `replica` is the newest snapshot of committed state.
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
            Event::Verified { ticket, verdict } => self.judged(ticket, verdict, &mut effects),
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

    /// Returns the revision that the replica must reach before more is verified, as long as plans
    /// wait for it: then the loop sends [`Event::Replica`].
    pub fn wanted_revision(&self, replica_index: u64) -> Option<u64> {
        let waits = !self.queue.is_empty() && self.verifying.is_none();
        (waits && self.wanted_revision > replica_index).then_some(self.wanted_revision)
    }

    /// Returns how many plans are not answered yet, and how many of them are not verified.
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

    /// Takes the next plan out of the queue and has it judged, unless enough is verified already.
    fn verify_next(&mut self, replica: &Snapshot, effects: &mut Vec<Effect>) {
        while self.verifying.is_none() && replica.index() >= self.wanted_revision {
            let ahead: usize = self.verified.iter().map(Verified::operations).sum();
            if ahead >= OPERATIONS_AHEAD_MAX {
                return;
            }
            let Some(queued) = self.next_queued() else {
                return;
            };
            let plan = &queued.plan;
            let last = self.history.last_commit(&plan.job);
            if plan.snapshot_index < last {
                // A duplicate delivery must first see what the other one placed.
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

    /// Takes out the first plan whose job has no other on its way.
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

    /// Forgets what the replica shows by now.
    fn drop_shown(&mut self, replica: &Snapshot) {
        while self
            .unshown
            .front()
            .is_some_and(|(revision, _)| *revision <= replica.index())
        {
            let Some((_, parts)) = self.unshown.pop_front() else {
                return;
            };
            let pending = Arc::make_mut(&mut self.pending);
            parts.iter().for_each(|piece| pending.remove(piece));
        }
    }

    fn judged(&mut self, ticket: Ticket, verdict: Verdict, effects: &mut Vec<Effect>) {
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
            Verdict::Accepted(mut accepted) => {
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
            Verdict::Refused(refused) => {
                effects.push(refusal(ticket, refused.reason, refused.refresh_index));
            }
            Verdict::Waits if self.commit.is_none() && self.verified.is_empty() => {
                // Settled while it was judged.
                self.queue.put_back(queued);
            }
            Verdict::Waits => self.waiting.push(queued),
        }
    }

    /// Sends the next transaction when none is out, and answers plans that have nothing to write.
    fn send(&mut self, effects: &mut Vec<Effect>) {
        while self.commit.is_none() {
            let Some(first) = self.verified.pop_front() else {
                self.queue.put_all_back(&mut self.waiting);
                return;
            };
            if first.pieces.is_empty() {
                self.answer(first, effects);
                continue;
            }
            if first.is_indivisible() {
                self.send_whole(first, effects);
                return;
            }
            let mut plans = vec![first];
            let mut parts = Vec::new();
            self.gather(&mut plans, &mut parts);
            let id = CommitId(self.next_commit);
            self.next_commit += 1;
            effects.push(Effect::Commit {
                commit: id,
                parts: parts.clone(),
            });
            self.commit = Some(Commit { id, parts, plans });
        }
    }

    /// Sends all of a plan's pieces, which together are as one transaction.
    fn send_whole(&mut self, mut plan: Verified, effects: &mut Vec<Effect>) {
        let id = CommitId(self.next_commit);
        self.next_commit += 1;
        let pieces: Vec<_> = plan.pieces.drain(..).collect();
        effects.push(Effect::CommitWhole {
            commit: id,
            eval_id: plan.queued.plan.eval_id,
            pieces: pieces.clone(),
        });
        self.commit = Some(Commit {
            id,
            parts: pieces,
            plans: vec![plan],
        });
    }

    /// Takes the first plan's next piece, and whole plans that fit beside it.
    fn gather(&mut self, plans: &mut Vec<Verified>, parts: &mut Vec<Arc<Piece>>) {
        let Some(first) = plans.first_mut() else {
            return;
        };
        let is_last = first.pieces.len() == 1;
        let is_alone = first.queued.is_alone;
        let Some(piece) = first.pieces.pop_front() else {
            return;
        };
        let (mut operations, mut bytes) = (piece.ops.len(), piece.bytes);
        parts.push(piece);
        if !is_last || is_alone {
            return;
        }
        while let Some(next) = self.verified.front() {
            let piece = next.pieces.front().filter(|_| next.pieces.len() == 1);
            let fits = piece.is_some_and(|piece| piece.has_room(operations, bytes));
            if !fits || next.queued.is_alone {
                return;
            }
            let Some(mut next) = self.verified.pop_front() else {
                return;
            };
            if let Some(piece) = next.pieces.pop_front() {
                operations += piece.ops.len();
                bytes += piece.bytes;
                parts.push(piece);
            }
            plans.push(next);
        }
    }

    fn committed(&mut self, id: CommitId, revision: u64, effects: &mut Vec<Effect>) {
        let Some(commit) = self.commit.take_if(|commit| commit.id == id) else {
            return;
        };
        // A plan has one part, or all of them.
        let is_alone = commit.plans.len() == 1;
        for (position, mut verified) in commit.plans.into_iter().enumerate() {
            let parts = if is_alone {
                &commit.parts[..]
            } else {
                &commit.parts[position..=position]
            };
            self.history.committed(&verified.queued.plan.job, revision);
            verified.committed_index = revision;
            let ops = parts.iter().flat_map(|part| &part.ops);
            verified
                .placed
                .extend(ops.filter_map(crate::op::Op::created_alloc));
            if verified.pieces.is_empty() {
                self.answer(verified, effects);
            } else {
                self.verified.push_front(verified);
            }
        }
        self.unshown.push_back((revision, commit.parts));
    }

    fn answer(&self, verified: Verified, effects: &mut Vec<Effect>) {
        let Verified {
            queued,
            accepted,
            placed,
            committed_index,
            ..
        } = verified;
        let is_whole = accepted.rejected_nodes.is_empty();
        // What others have committed before this plan is part of why it was cut down.
        let seen = accepted
            .base_index
            .max(self.history.newest())
            .max(committed_index);
        let result = PlanResult {
            placed,
            rejected_nodes: accepted.rejected_nodes,
            refused: None,
            commit_index: committed_index,
            refresh_index: if is_whole { 0 } else { seen },
        };
        effects.push(Effect::Answer {
            ticket: queued.ticket,
            answer: Answer::Result(result),
        });
    }

    /// Nothing of the transaction was written: whatever was verified with it or on top of it is
    /// verified again, on a replica that shows what was in the way. When the store has `refused`
    /// it, that is said of a plan that was alone in it; of several, each is sent alone next.
    fn failed(
        &mut self,
        id: CommitId,
        revision: u64,
        refused: Option<&str>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(commit) = self.commit.take_if(|commit| commit.id == id) else {
            return;
        };
        self.wanted_revision = self.wanted_revision.max(revision);
        self.forget_predictions();
        let was_alone = commit.plans.len() == 1;
        for verified in commit.plans {
            let mut queued = verified.queued;
            queued.commit_attempts += 1;
            // Verified again, most show what was in the way. If one does not, it fails alone.
            queued.is_alone = refused.is_some() || queued.commit_attempts >= SHARED_ATTEMPTS_MAX;
            let is_last_try =
                queued.commit_attempts >= COMMIT_ATTEMPTS_MAX || refused.is_some() && was_alone;
            let reason = refused.unwrap_or(OVERTAKEN).to_owned();
            if verified.committed_index > 0 {
                // Its first pieces are there; the worker plans the rest anew.
                let result = PlanResult {
                    placed: verified.placed,
                    rejected_nodes: verified.accepted.rejected_nodes,
                    refused: Some(reason),
                    commit_index: verified.committed_index,
                    refresh_index: revision,
                };
                let answer = Answer::Result(result);
                effects.push(Effect::Answer {
                    ticket: queued.ticket,
                    answer,
                });
            } else if is_last_try {
                effects.push(refusal(queued.ticket, reason, revision));
            } else {
                self.queue.put_back(queued);
            }
        }
        for verified in self.verified.drain(..) {
            self.queue.put_back(verified.queued);
        }
        if let Some((_, is_stale)) = &mut self.verifying {
            *is_stale = true;
        }
        self.queue.put_all_back(&mut self.waiting);
    }

    /// Keeps of what is on its way only what is committed.
    fn forget_predictions(&mut self) {
        let mut pending = Pending::default();
        for piece in self.unshown.iter().flat_map(|(_, parts)| parts) {
            pending.add(piece);
        }
        self.pending = Arc::new(pending);
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

fn refusal(ticket: Ticket, reason: String, refresh_index: u64) -> Effect {
    let result = PlanResult {
        refused: Some(reason),
        refresh_index,
        ..PlanResult::default()
    };
    Effect::Answer {
        ticket,
        answer: Answer::Result(result),
    }
}
