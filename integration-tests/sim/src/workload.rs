//! Workload: simulated users that change jobs through the gateways and record the answers.
//!
//! In reading order: this file chooses the next action of a user; [`jobs`] generates jobs; [`calls`]
//! makes the requests; [`ledger`] compares the answers with the history.

mod calls;
mod jobs;
mod ledger;

use std::time::Duration;

use model::JobKey;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use service_kit::{TracedChannel, connect_lazy};

use self::calls::Change;
use self::jobs::Kind;
pub use self::ledger::{Effect, Ledger, Outcome, Request};
use crate::environment::Software;

/// Retries of a request without an answer.
const RETRIES: usize = 2;
const NAMESPACE: &str = "default";

/// Returns the software of user `number`.
pub fn software(number: u64, seed: u64, gateways: Vec<String>, ledger: Ledger) -> Software {
    Box::new(move || {
        let user = User {
            number,
            gateways: gateways.clone(),
            ledger: ledger.clone(),
            rng: StdRng::seed_from_u64(seed),
            count: 0,
        };
        Box::pin(user.run())
    })
}

struct User {
    number: u64,
    gateways: Vec<String>,
    ledger: Ledger,
    rng: StdRng,
    count: u32,
}

impl User {
    async fn run(mut self) -> Result<(), String> {
        if self.number == 0 {
            self.allow_preemption().await?;
        }
        while !self.ledger.is_over() {
            self.wait(40..1_600).await;
            self.act().await?;
        }
        // The first user cleans up.
        if self.number > 0 {
            std::future::pending::<()>().await;
        }
        let mut is_stopped = false;
        loop {
            is_stopped = is_stopped || self.stop_launches().await?;
            self.release_rollouts().await?;
            self.wait(900..1_100).await;
        }
    }

    async fn wait(&mut self, millis: std::ops::Range<u64>) {
        let pause = self.rng.random_range(millis);
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }

    async fn act(&mut self) -> Result<(), String> {
        match self.rng.random_range(0..100_u32) {
            0..=6 => self.drain().await,
            7..=13 => self.change_a_rollout().await,
            14..=16 => self.collect_garbage().await,
            17..=24 => self.dispatch().await,
            _ => self.change_a_job().await,
        }
    }

    fn channel(&mut self) -> Result<TracedChannel, String> {
        channel(&self.gateways, &mut self.rng)
    }

    fn next_request(&mut self) -> String {
        self.count += 1;
        format!("u{}r{}", self.number, self.count)
    }

    async fn change_a_job(&mut self) -> Result<(), String> {
        let known = jobs::draw(&mut self.rng);
        let (request, change) = self.next_change(known);
        let first = self.requester().send(known.id, request, change);
        // Sometimes two concurrent changes of the same job.
        if self.rng.random_bool(0.3) {
            let (request, change) = self.next_change(known);
            let second = self.requester().send(known.id, request, change);
            let (first, second) = futures::future::join(first, second).await;
            first.and(second)?;
        } else {
            first.await?;
        }
        Ok(())
    }

    fn next_change(&mut self, known: jobs::Known) -> (String, Change) {
        let request = self.next_request();
        let change = match self.rng.random_range(0..10_u32) {
            0 => Change::Stop { purge: false },
            1 => Change::Stop { purge: true },
            2 | 3 if known.kind == Kind::Service => Change::Scale(self.rng.random_range(0..6)),
            _ => Change::Register(Box::new(jobs::job(&mut self.rng, known, &request))),
        };
        (request, change)
    }

    fn requester(&mut self) -> Requester {
        Requester {
            gateways: self.gateways.clone(),
            ledger: self.ledger.clone(),
            rng: StdRng::seed_from_u64(self.rng.random()),
        }
    }

    /// Dispatches a job with retries. The token makes it idempotent: one child per token.
    async fn dispatch(&mut self) -> Result<(), String> {
        let token = self.next_request();
        for _ in 0..=RETRIES {
            let channel = self.channel()?;
            if calls::dispatch(channel, jobs::PARAMETERIZED, &token).await {
                break;
            }
            self.wait(10..500).await;
        }
        Ok(())
    }

    /// Drains a node, or ends every drain.
    async fn drain(&mut self) -> Result<(), String> {
        let (chosen, ends) = (self.rng.random(), self.rng.random_bool(0.6));
        let channel = self.channel()?;
        // The suite must come to rest whether or not it succeeded.
        let _ = calls::drain(channel, chosen, ends).await;
        Ok(())
    }

    async fn change_a_rollout(&mut self) -> Result<(), String> {
        let (chosen, drawn) = (self.rng.random(), self.rng.random_range(0..10_u32));
        let channel = self.channel()?;
        let action = match drawn {
            0 => calls::RolloutAction::Fail,
            1 => calls::RolloutAction::Pause,
            2 => calls::RolloutAction::Resume,
            _ => calls::RolloutAction::Promote,
        };
        let request = self.next_request();
        let promoted = calls::change_rollout(channel, chosen, action, &request).await;
        if let Ok(Some(id)) = promoted {
            self.ledger.add_promoted(id);
        }
        Ok(())
    }

    async fn collect_garbage(&mut self) -> Result<(), String> {
        let channel = self.channel()?;
        let _ = calls::collect_garbage(channel).await;
        Ok(())
    }

    async fn allow_preemption(&mut self) -> Result<(), String> {
        let channel = self.channel()?;
        let _ = calls::allow_preemption(channel).await;
        Ok(())
    }

    /// Stops the periodic job, because its launches prevent rest. Returns whether it is stopped.
    async fn stop_launches(&mut self) -> Result<bool, String> {
        let request = self.next_request();
        let change = Change::Stop { purge: false };
        let outcome = self
            .requester()
            .send(jobs::PERIODIC, request, change)
            .await?;
        Ok(!matches!(outcome, Outcome::Unknown(_)))
    }

    /// Resumes and promotes the rollouts that wait for a user.
    async fn release_rollouts(&mut self) -> Result<(), String> {
        let channel = self.channel()?;
        let request = self.next_request();
        if let Ok(promoted) = calls::release_rollouts(channel, &request).await {
            promoted
                .into_iter()
                .for_each(|id| self.ledger.add_promoted(id));
        }
        Ok(())
    }
}

/// One request, with retries.
struct Requester {
    gateways: Vec<String>,
    ledger: Ledger,
    rng: StdRng,
}

impl Requester {
    /// Sends the request, with as many retries as are safe. Returns the outcome.
    async fn send(
        mut self,
        id: &'static str,
        request: String,
        change: Change,
    ) -> Result<Outcome, String> {
        let effect = change.effect();
        // Only a request with an id is idempotent.
        let attempts = match effect {
            Effect::Registered => 1 + RETRIES,
            Effect::Scaled | Effect::Stopped | Effect::Purged => 1,
        };
        let number = (self.ledger).open(JobKey::new(NAMESPACE, id), request.clone(), effect);
        let mut outcome = Outcome::Unknown(String::new());
        for attempt in 0..attempts {
            let channel = channel(&self.gateways, &mut self.rng)?;
            let asked = calls::change(channel, id, &request, change.clone());
            outcome = Box::pin(asked).await;
            if let Outcome::Refused { is_certain, .. } = &mut outcome {
                *is_certain = attempt == 0;
            }
            if !matches!(outcome, Outcome::Unknown(_)) {
                break;
            }
            let pause = self.rng.random_range(10..500);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        self.ledger.record_outcome(number, outcome.clone());
        Ok(outcome)
    }
}

/// Connects to a random gateway.
fn channel(gateways: &[String], rng: &mut StdRng) -> Result<TracedChannel, String> {
    let gateway = rng.random_range(0..gateways.len());
    connect_lazy(&gateways[gateway]).map_err(|error| error.to_string())
}
