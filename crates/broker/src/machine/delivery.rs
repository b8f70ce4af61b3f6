//! Deliveries: deliver, ack, nack, extend, and lost sessions.

use model::{EvalId, Timestamp};
use rand::RngExt as _;

use super::{Broker, Outstanding};
use crate::effect::{Delivery, Effect, NotOutstanding, ReturnReason};
use crate::entry::State;
use crate::event::SessionId;
use crate::token::Token;

impl Broker {
    /// Delivers ready evaluations, as far as there is credit, unless the broker is paused.
    pub(super) fn deliver(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        if self.paused {
            return;
        }
        loop {
            let wanted = self.sessions.wanted();
            let Some((job_type, id)) = self.ready.choose(wanted, &mut self.rng) else {
                return;
            };
            let Some(session) = self.sessions.take_turn(job_type, id) else {
                return;
            };
            self.delivery_count += 1;
            let number = self.delivery_count;
            self.set_state(id, State::Unacked, now.plus(self.config.nack_timeout));
            self.deliveries.insert(
                id,
                Outstanding {
                    session,
                    number,
                    delivered_at: now,
                },
            );
            let entry = self.entries.get_mut(&id).expect("what is ready is held");
            entry.deliveries = entry.deliveries.saturating_add(1);
            let wait_index = self
                .job_locks
                .get_mut(&entry.job)
                .wait_index
                .max(self.base_index);
            effects.push(Effect::Deliver(Delivery {
                session,
                eval_id: id,
                token: Token {
                    term: self.term,
                    number,
                },
                job_type,
                wait_index,
                attempt: entry.deliveries,
                waited: now.since(entry.queued_at),
            }));
        }
    }

    /// Stops the nack timer: the worker is done. The delivery ends when the store shows its
    /// outcome.
    pub(super) fn ack(
        &mut self,
        now: Timestamp,
        id: EvalId,
        token: Token,
    ) -> Result<(), NotOutstanding> {
        if self.is_outcome_seen(id) {
            return Ok(());
        }
        if self.outstanding(id, token)? == State::Unacked {
            self.set_state(id, State::Acked, now.plus(self.config.outcome_timeout));
        }
        Ok(())
    }

    pub(super) fn nack(
        &mut self,
        now: Timestamp,
        id: EvalId,
        token: Token,
        effects: &mut Vec<Effect>,
    ) -> Result<(), NotOutstanding> {
        if self.is_outcome_seen(id) {
            return Ok(());
        }
        self.outstanding(id, token)?;
        self.give_back(now, id, ReturnReason::Nacked, effects);
        Ok(())
    }

    /// Starts the nack timer anew.
    pub(super) fn extend(
        &mut self,
        now: Timestamp,
        id: EvalId,
        token: Token,
    ) -> Result<(), NotOutstanding> {
        match self.outstanding(id, token)? {
            State::Unacked => {
                self.set_state(id, State::Unacked, now.plus(self.config.nack_timeout));
                Ok(())
            }
            _ => Err(NotOutstanding),
        }
    }

    /// Tells whether the outcome of an evaluation was seen in the store before its worker's answer,
    /// which then changes nothing.
    fn is_outcome_seen(&self, id: EvalId) -> bool {
        self.entries
            .get(&id)
            .is_none_or(|entry| entry.state == State::Blocked)
    }

    /// Returns the state of the delivery that `token` names, if it is the evaluation's latest.
    fn outstanding(&self, id: EvalId, token: Token) -> Result<State, NotOutstanding> {
        match self.deliveries.get(&id) {
            Some(delivery)
                if token
                    == (Token {
                        term: self.term,
                        number: delivery.number,
                    }) =>
            {
                Ok(self.entries[&id].state)
            }
            _ => Err(NotOutstanding),
        }
    }

    /// Shortens the time that a lost worker's evaluations may stay unanswered.
    pub(super) fn lose_session(&mut self, now: Timestamp, session: SessionId) {
        for id in self.sessions.close(session) {
            let entry = &self.entries[&id];
            let due = entry.due.min(now.plus(self.config.session_grace));
            if entry.state == State::Unacked {
                self.set_state(id, State::Unacked, due);
            }
        }
    }

    /// Ends a delivery without an outcome: the evaluation is delivered again later, or fails after
    /// its last delivery.
    pub(super) fn give_back(
        &mut self,
        now: Timestamp,
        id: EvalId,
        reason: ReturnReason,
        effects: &mut Vec<Effect>,
    ) {
        self.forget_delivery(id);
        let deliveries = self.entries[&id].deliveries;
        let next = if deliveries >= self.config.delivery_limit {
            None
        } else {
            Some(now.plus(self.config.nack_delay(deliveries)))
        };
        effects.push(Effect::Returned {
            eval_id: id,
            reason,
            next,
        });
        match next {
            Some(at) => self.set_state(id, State::BackingOff, at),
            None => self.fail(now, id, effects),
        }
    }

    /// Requests the write that fails an evaluation, again until the store shows it.
    pub(super) fn fail(&mut self, now: Timestamp, id: EvalId, effects: &mut Vec<Effect>) {
        self.set_state(id, State::Failing, now.plus(self.config.write_retry));
        let spread = self
            .config
            .follow_up_spread
            .mul_f64(self.rng.random::<f64>());
        effects.push(Effect::Fail {
            eval_id: id,
            follow_up_after: self.config.follow_up_delay + spread,
        });
    }
}
