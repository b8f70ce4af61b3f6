//! People who ask the gateways for jobs, each one thing after the other, and remember what was
//! answered.
//!
//! In reading order: this file is what a user does next; [`jobs`] is what is asked for; [`calls`]
//! are the requests; [`ledger`] holds what was asked against what was written.

mod calls;
mod jobs;
mod ledger;

use std::time::Duration;

use model::JobKey;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use service_kit::{TracedChannel, connect_lazy};

use self::calls::What;
use self::jobs::Kind;
pub use self::ledger::{Asked, Effect, Ledger, Outcome};
use crate::world::Software;

/// How often a request without an answer is sent again.
const RETRIES: usize = 2;
const NAMESPACE: &str = "default";

/// Returns a machine on which user `number` asks.
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
        // Whoever came first tidies up.
        if self.number > 0 {
            std::future::pending::<()>().await;
        }
        let mut is_stopped = false;
        loop {
            is_stopped = is_stopped || self.stop_launches().await?;
            self.let_rollouts_end().await?;
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
            7..=13 => self.meddle_with_a_rollout().await,
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
        let (request, what) = self.next_change(known);
        let first = self.asker().ask(known.id, request, what);
        // Somebody is impatient, or two are at it: both want the same job at the same moment.
        if self.rng.random_bool(0.3) {
            let (request, what) = self.next_change(known);
            let second = self.asker().ask(known.id, request, what);
            let (first, second) = futures::future::join(first, second).await;
            first.and(second)?;
        } else {
            first.await?;
        }
        Ok(())
    }

    fn next_change(&mut self, known: jobs::Known) -> (String, What) {
        let request = self.next_request();
        let what = match self.rng.random_range(0..10_u32) {
            0 => What::Stop { purge: false },
            1 => What::Stop { purge: true },
            2 | 3 if known.kind == Kind::Service => What::Scale(self.rng.random_range(0..6)),
            _ => What::Register(Box::new(jobs::job(&mut self.rng, known, &request))),
        };
        (request, what)
    }

    /// Somebody who asks one thing.
    fn asker(&mut self) -> Asker {
        Asker {
            gateways: self.gateways.clone(),
            ledger: self.ledger.clone(),
            rng: StdRng::seed_from_u64(self.rng.random()),
        }
    }

    /// Sends what has a token, so it may be sent again: one child comes of it.
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

    /// Has a node drained, or all of them take work again. What becomes of it is seen by what runs.
    async fn drain(&mut self) -> Result<(), String> {
        let (chosen, ends) = (self.rng.random(), self.rng.random_bool(0.6));
        let channel = self.channel()?;
        // Whether it was heard or not, everything must come to rest.
        let _ = calls::drain(channel, chosen, ends).await;
        Ok(())
    }

    async fn meddle_with_a_rollout(&mut self) -> Result<(), String> {
        let (chosen, how) = (self.rng.random(), self.rng.random_range(0..10_u32));
        let channel = self.channel()?;
        let how = match how {
            0 => calls::Meddling::Fail,
            1 => calls::Meddling::Pause,
            2 => calls::Meddling::Resume,
            _ => calls::Meddling::Promote,
        };
        let request = self.next_request();
        let promoted = calls::meddle(channel, chosen, how, &request).await;
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

    /// Nothing comes to rest while the clock launches; returns whether it does not any more.
    async fn stop_launches(&mut self) -> Result<bool, String> {
        let request = self.next_request();
        let what = What::Stop { purge: false };
        let outcome = self.asker().ask(jobs::PERIODIC, request, what).await?;
        Ok(!matches!(outcome, Outcome::Unknown(_)))
    }

    /// What waits for a word gets it.
    async fn let_rollouts_end(&mut self) -> Result<(), String> {
        let channel = self.channel()?;
        let request = self.next_request();
        if let Ok(promoted) = calls::let_end(channel, &request).await {
            promoted
                .into_iter()
                .for_each(|id| self.ledger.add_promoted(id));
        }
        Ok(())
    }
}

/// Asks one thing, until there is an answer.
struct Asker {
    gateways: Vec<String>,
    ledger: Ledger,
    rng: StdRng,
}

impl Asker {
    /// Asks as often as is safe; returns what is known then.
    async fn ask(
        mut self,
        id: &'static str,
        request: String,
        what: What,
    ) -> Result<Outcome, String> {
        let effect = what.effect();
        // Only what has a request id may be asked twice.
        let attempts = match effect {
            Effect::Registered => 1 + RETRIES,
            Effect::Scaled | Effect::Stopped | Effect::Purged => 1,
        };
        let mut outcome = Outcome::Unknown(String::new());
        for attempt in 0..attempts {
            let channel = channel(&self.gateways, &mut self.rng)?;
            let asked = calls::change(channel, id, &request, what.clone());
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
        self.ledger.add(Asked {
            job: JobKey::new(NAMESPACE, id),
            request,
            effect,
            outcome: outcome.clone(),
        });
        Ok(outcome)
    }
}

/// Connects to a gateway, as good as any other.
fn channel(gateways: &[String], rng: &mut StdRng) -> Result<TracedChannel, String> {
    let gateway = rng.random_range(0..gateways.len());
    connect_lazy(&gateways[gateway]).map_err(|error| error.to_string())
}
