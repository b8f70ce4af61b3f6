//! Driver of the monitor: calls the gateway and shows the output.

use std::time::Duration;

use proto::v1;
use service_kit::Clock;
use tokio::time::Instant;

use super::machine::{Monitor, Options};
use super::question::{Ask, Event, WAIT};
use super::screen::Screen;
use crate::connection::{Blocking, Connection};
use crate::error::Error;
use crate::exit::Exit;
use crate::render::Style;
use crate::retries;

/// Minimum time between two requests if the first brought no change. Limits the request rate to a
/// gateway that answers blocking queries immediately.
const PACE: Duration = Duration::from_millis(100);

/// The watched object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Evaluation(String),
    Deployment(String),
}

/// A monitor with its dependencies.
pub(crate) struct Follow<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) clock: &'a Clock,
    /// Has the time of the last answer.
    pub(crate) style: Style,
    pub(crate) screen: Screen,
    pub(crate) options: Options,
}

impl Follow<'_> {
    /// Watches until everything has ended.
    ///
    /// Cancel-safe: it only reads.
    ///
    /// # Errors
    /// Standard output is closed or full.
    pub(crate) async fn run(mut self, subject: &Subject) -> Result<Exit, Error> {
        let options = self.options.clone();
        let mut monitor = match subject {
            Subject::Evaluation(id) => Monitor::of_evaluation(options, id),
            Subject::Deployment(id) => Monitor::of_deployment(options, id),
        };
        let mut backoff = retries::backoff();
        let mut rng = self.connection.ids().rng();
        let title = monitor.start(&self.style_now());
        self.show(&title)?;
        loop {
            let ask = monitor.ask();
            if let Ask::Nothing(exit) = ask {
                return Ok(exit);
            }
            let asked = Instant::now();
            let event = self.answer(ask).await;
            let lost = matches!(event, Event::Lost(_));
            let outputs = monitor.step(&self.style_now(), event);
            self.show(&outputs)?;
            if lost && !matches!(monitor.ask(), Ask::Nothing(_)) {
                tokio::time::sleep(backoff.next(&mut rng)).await;
                continue;
            }
            backoff.reset();
            if outputs.is_empty() {
                tokio::time::sleep_until(asked + PACE).await;
            }
        }
    }

    fn style_now(&mut self) -> Style {
        self.style.times.now_ns = self.clock.now();
        self.style.clone()
    }

    fn show(&mut self, outputs: &[super::line::Output]) -> Result<(), Error> {
        for output in outputs {
            self.screen.show(&self.style.times, output)?;
        }
        Ok(())
    }

    async fn answer(&self, ask: Ask) -> Event {
        let answer = match ask {
            Ask::Evaluation { id, after } => self.evaluation(&id, after).await,
            Ask::Deployment { id, after } => self.deployment(&id, after).await,
            Ask::Deployments { job_id, after } => self.deployments(&job_id, after).await,
            Ask::Job { job_id } => self.job(&job_id).await,
            Ask::IsPaused => return Event::IsPaused(self.is_paused().await),
            Ask::Nothing(_) => return Event::NotFound,
        };
        answer.unwrap_or_else(|error| {
            if error.is_not_found() {
                Event::NotFound
            } else if error.is_transient() {
                Event::Lost(error.reason())
            } else {
                Event::Refused(error.to_string())
            }
        })
    }

    async fn evaluation(&self, id: &str, after: u64) -> Result<Event, Error> {
        let namespace = &self.options.namespace;
        let blocking = Blocking { after, wait: WAIT };
        let (evaluation, index) = self.connection.evaluation(namespace, id, blocking).await?;
        // Read after the evaluation, so that a terminal one is shown with all its allocations.
        let allocs = self
            .connection
            .evaluation_allocations(namespace, id)
            .await?;
        Ok(Event::Evaluation {
            evaluation: Box::new(evaluation),
            allocs,
            index,
        })
    }

    async fn deployment(&self, id: &str, after: u64) -> Result<Event, Error> {
        let namespace = &self.options.namespace;
        let blocking = Blocking { after, wait: WAIT };
        let (deployment, index) = self.connection.deployment(namespace, id, blocking).await?;
        // An allocation that is not healthy yet may have a task that fails to start.
        let may_fail = |group: &v1::DeploymentGroup| {
            group.unhealthy_allocs > 0 || group.healthy_allocs < group.placed_allocs
        };
        let may_fail = deployment.task_groups.values().any(may_fail);
        let allocs = if self.style.verbose || may_fail {
            of_deployment(self.connection, &deployment).await?
        } else {
            Vec::new()
        };
        Ok(Event::Deployment {
            deployment: Box::new(deployment),
            allocs,
            index,
        })
    }

    async fn deployments(&self, job_id: &str, after: u64) -> Result<Event, Error> {
        let namespace = &self.options.namespace;
        let blocking = Blocking { after, wait: WAIT };
        let answer = self.connection.job_deployments(namespace, job_id, blocking);
        let (deployments, index) = answer.await?;
        Ok(Event::Deployments { deployments, index })
    }

    async fn job(&self, job_id: &str) -> Result<Event, Error> {
        let namespace = &self.options.namespace;
        let found = Box::pin(self.connection.job_with_allocs(namespace, job_id)).await?;
        Ok(Event::Job(Box::new(found)))
    }

    /// Only for a hint: errors count as not paused, the next request will report them.
    async fn is_paused(&self) -> bool {
        let config = self.connection.scheduler_config().await;
        config.is_ok_and(|config| config.pause_eval_broker)
    }
}

/// Returns the allocations that are part of a deployment.
///
/// # Errors
/// The request fails.
pub(crate) async fn of_deployment(
    connection: &Connection,
    deployment: &v1::Deployment,
) -> Result<Vec<v1::Allocation>, Error> {
    let (namespace, job_id) = (&deployment.namespace, &deployment.job_id);
    let mut allocs = connection.job_allocations(namespace, job_id, false).await?;
    allocs.retain(|alloc| alloc.deployment_id == deployment.id);
    Ok(allocs)
}
