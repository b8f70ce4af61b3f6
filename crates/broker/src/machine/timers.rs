//! Expired timers of evaluations, by state.

use model::{EvalId, Timestamp};

use super::Broker;
use crate::config::{CANCEL_BATCH, TIMERS_PER_STEP};
use crate::effect::{Effect, ReturnReason};
use crate::entry::State;

impl Broker {
    /// Fires timers that are due; the rest of a big wave follows with the next step, at once.
    pub(super) fn fire_timers(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        self.retry_after_conflicts(now);
        let mut needless = Vec::new();
        for _ in 0..TIMERS_PER_STEP {
            let Some(id) = self.timers.first_due(now) else {
                break;
            };
            self.fire(now, id, &mut needless, effects);
        }
        effects.extend(needless.chunks(CANCEL_BATCH).map(|batch| Effect::Cancel {
            eval_ids: batch.to_vec(),
        }));
    }

    fn fire(
        &mut self,
        now: Timestamp,
        id: EvalId,
        needless: &mut Vec<EvalId>,
        effects: &mut Vec<Effect>,
    ) {
        match self.entries[&id].state {
            State::Delayed => self.enqueue(now, id),
            State::BackingOff => self.set_state(id, State::Ready, Timestamp::NEVER),
            State::Unacked => self.give_back(now, id, ReturnReason::TimedOut, effects),
            State::Acked => self.give_back(now, id, ReturnReason::NoOutcome, effects),
            State::Failing => self.fail(now, id, effects),
            State::Superseded => {
                needless.push(id);
                let due = now.plus(self.config.write_retry);
                self.set_state(id, State::Superseded, due);
            }
            state @ (State::Ready | State::Pending | State::Blocked) => {
                unreachable!("{state:?} has no timer");
            }
        }
    }
}
