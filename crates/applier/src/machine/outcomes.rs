//! Outcomes of transactions: plans are answered, sent on, or verified again.

use std::sync::Arc;

use model::PlanResult;
use state::Write;

use super::Applier;
use super::message::{Answer, CommitId, Effect, refusal};
use super::verified::Verified;
use crate::pending::Pending;

/// Failed commits of a plan before its worker has to plan again. The state changes faster than the
/// plan can be committed, so a new plan has a better chance.
const COMMIT_ATTEMPTS_MAX: u32 = 4;

/// Reason of a refusal after conflicts.
const OVERTAKEN: &str = "the state that the plan is based on changed before the commit";

/// Failed commits in a shared transaction before the plan is sent alone.
const SHARED_ATTEMPTS_MAX: u32 = 2;

impl Applier {
    pub(super) fn committed(&mut self, id: CommitId, revision: u64, effects: &mut Vec<Effect>) {
        let Some(commit) = self.commit.take_if(|commit| commit.id == id) else {
            return;
        };
        // A plan alone has all pieces; in a group each plan has one.
        let is_alone = commit.plans.len() == 1;
        for (position, mut verified) in commit.plans.into_iter().enumerate() {
            let pieces = if is_alone {
                &commit.pieces[..]
            } else {
                &commit.pieces[position..=position]
            };
            self.history.committed(&verified.queued.plan.job, revision);
            verified.committed_index = revision;
            let ops = pieces.iter().flat_map(|piece| &piece.ops);
            verified.placed.extend(ops.filter_map(Write::created_alloc));
            if verified.pieces.is_empty() {
                self.answer(verified, effects);
            } else {
                self.verified.push_front(verified);
            }
        }
        self.unshown.push_back((revision, commit.pieces));
    }

    pub(super) fn answer(&self, verified: Verified, effects: &mut Vec<Effect>) {
        let Verified {
            queued,
            accepted,
            placed,
            committed_index,
            ..
        } = verified;
        let is_whole = accepted.rejected_nodes.is_empty();
        // Commits before this plan may be the reason for its rejected nodes.
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

    /// Handles a transaction of which nothing was written. Plans verified with it or on top of it are
    /// verified again, on a replica that shows the conflict. When the store has `refused` it, a plan
    /// alone in it is answered with the reason; of several plans each is sent alone next.
    pub(super) fn failed(
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
            // The next verification detects most conflicts. A plan that still fails then fails alone.
            queued.must_commit_alone =
                refused.is_some() || queued.commit_attempts >= SHARED_ATTEMPTS_MAX;
            let is_last_try =
                queued.commit_attempts >= COMMIT_ATTEMPTS_MAX || refused.is_some() && was_alone;
            let reason = refused.unwrap_or(OVERTAKEN).to_owned();
            if verified.committed_index > 0 {
                // Its first pieces are committed; the worker plans the rest again.
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

    /// Keeps only committed writes in the overlay.
    fn forget_predictions(&mut self) {
        let mut pending = Pending::default();
        for piece in self.unshown.iter().flat_map(|(_, pieces)| pieces) {
            pending.add(piece);
        }
        self.pending = Arc::new(pending);
    }
}
