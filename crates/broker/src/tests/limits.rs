//! Limits of each step.

use std::time::Duration;

use model::{Evaluation, JobType};

use super::fixture::{Fixture, WORKER, eval, eval_id};
use crate::config::{CANCEL_BATCH, CREDIT_MAX, TIMERS_PER_STEP};
use crate::{Broker, Effect, Event, Fact, OpenEval};

#[test]
fn cancellations_come_in_batches() {
    let mut fixture = Fixture::new();
    let count = CANCEL_BATCH as u128 + 2;
    let evals: Vec<_> = (1..=count + 1).map(|number| eval(number, "j")).collect();
    fixture.put(&evals);
    fixture.complete(eval_id(1));
    fixture.pass(Duration::from_secs(1));
    let batches: Vec<usize> = fixture
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Cancel { eval_ids } => Some(eval_ids.len()),
            _ => None,
        })
        .collect();
    assert_eq!(batches, [CANCEL_BATCH, 1]);
}

#[test]
fn credit_is_capped() {
    let mut fixture = Fixture::with_worker(u32::MAX);
    fixture.credit(u32::MAX);
    let evals: Vec<_> = (1..=u128::from(CREDIT_MAX) + 5)
        .map(|number| eval(number, &number.to_string()))
        .collect();
    fixture.put(&evals);
    assert_eq!(fixture.deliveries().len(), CREDIT_MAX as usize);
}

#[test]
fn a_wave_of_timers_takes_several_steps_and_none_is_lost() {
    let mut broker = Broker::new(crate::Config::default(), 7, 1);
    let fixture = Fixture::new();
    let (now, due) = (fixture.now, fixture.now.plus(Duration::from_secs(1)));
    let count = TIMERS_PER_STEP + 1;
    let facts = (0..count as u128)
        .map(|number| {
            let value = Evaluation {
                wait_until: due,
                ..eval(number, &number.to_string())
            };
            Fact::Open(OpenEval::new(
                &value,
                1,
                1,
                &state::State::default().snapshot(),
            ))
        })
        .collect();
    broker.step(now, Event::Facts(facts));
    broker.step(due, Event::Tick);
    assert_eq!(broker.stats().ready, TIMERS_PER_STEP);
    assert_eq!(broker.next_deadline(), Some(due), "the rest is due at once");
    let types = JobType::ALL.into_iter().collect();
    broker.step(
        due,
        Event::SessionOpened {
            session: WORKER,
            types,
            credit: 0,
        },
    );
    assert_eq!(
        (broker.stats().ready, broker.next_deadline()),
        (count, None)
    );
}
