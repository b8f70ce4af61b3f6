//! Waiting for outcomes: evaluations, deployments, a whole run of a job.

use std::time::Duration;

use tokio::time::Instant;

use crate::client::Client;
use crate::error::Error;
use crate::v1;

/// Longest time of one blocking read.
const WAIT: Duration = Duration::from_secs(30);

/// The outcome of [`Client::run_job`].
#[derive(Clone, Debug)]
pub struct JobRun {
    pub registration: v1::RegisterJobResponse,
    /// `None`: the job is periodic or parameterized. `failed_task_groups` has the groups without a
    /// place.
    pub evaluation: Option<v1::Evaluation>,
    /// `None`: the job has no deployment, such as a batch job.
    pub deployment: Option<v1::Deployment>,
}

/// A wait that did not end well.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    #[error(transparent)]
    Call(#[from] Error),
    #[error("evaluation {} failed: {}", .0.id, .0.status_description)]
    EvaluationFailed(Box<v1::Evaluation>),
    #[error("deployment {} is {}: {}", .0.id, .0.status, .0.status_description)]
    DeploymentFailed(Box<v1::Deployment>),
    #[error("{0} has not ended in time")]
    Timeout(String),
}

/// The progress of an awaited object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Running,
    Ended,
    Failed,
}

fn evaluation_progress(status: &str) -> Progress {
    match status {
        "complete" | "canceled" => Progress::Ended,
        "failed" => Progress::Failed,
        _ => Progress::Running,
    }
}

fn deployment_progress(status: &str) -> Progress {
    match status {
        "successful" => Progress::Ended,
        "failed" | "cancelled" => Progress::Failed,
        _ => Progress::Running,
    }
}

/// Returns the time for the next blocking read.
fn left(deadline: Instant, what: &str) -> Result<Duration, WaitError> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(WaitError::Timeout(what.to_owned()));
    }
    Ok(left.min(WAIT))
}

fn everywhere() -> Option<v1::QueryOptions> {
    Some(v1::QueryOptions {
        namespace: "*".to_owned(),
        ..Default::default()
    })
}

impl Client {
    /// Registers a job and waits for its evaluation and its deployment. A job without a namespace is
    /// registered in the client's.
    ///
    /// # Errors
    /// The registration, the evaluation or the deployment failed, or has not ended after `timeout`.
    pub async fn run_job(&self, mut job: v1::Job, timeout: Duration) -> Result<JobRun, WaitError> {
        let deadline = Instant::now() + timeout;
        let namespace = job.namespace.take().filter(|name| !name.is_empty());
        let namespace = namespace.unwrap_or_else(|| self.config().namespace.clone());
        job.namespace = Some(namespace.clone());
        let job_id = job.id.clone().unwrap_or_default();
        let request = v1::RegisterJobRequest {
            job: Some(job),
            ..Default::default()
        };
        let registration = self.jobs().register(request).await?;
        if registration.eval_id.is_empty() {
            return Ok(JobRun {
                registration,
                evaluation: None,
                deployment: None,
            });
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let evaluation = self
            .wait_for_evaluation(&registration.eval_id, left)
            .await?;
        let request = v1::ListJobDeploymentsRequest {
            options: Some(v1::QueryOptions {
                namespace,
                ..Default::default()
            }),
            job_id,
            all: false,
        };
        let found = self.jobs().list_deployments(request).await?.deployments;
        let mut found = found.into_iter();
        // The deployment of this version; another one may have followed.
        let index = registration.job_modify_index;
        let deployment = match found.find(|known| known.job_modify_index == index) {
            None => None,
            Some(known) => {
                let left = deadline.saturating_duration_since(Instant::now());
                Some(self.wait_for_deployment(&known.id, left).await?)
            }
        };
        Ok(JobRun {
            registration,
            evaluation: Some(evaluation),
            deployment,
        })
    }

    /// Waits until an evaluation is complete or canceled (superseded by a newer one). A complete one may
    /// lack places: see its `failed_task_groups`.
    ///
    /// # Errors
    /// The scheduler gave it up, or it has not ended after `timeout`.
    pub async fn wait_for_evaluation(
        &self,
        eval_id: &str,
        timeout: Duration,
    ) -> Result<v1::Evaluation, WaitError> {
        let deadline = Instant::now() + timeout;
        let mut index = 0;
        loop {
            let left = left(deadline, &format!("evaluation {eval_id}"))?;
            let request = v1::GetEvaluationRequest {
                options: everywhere(),
                eval_id: eval_id.to_owned(),
            };
            let answer = self
                .evaluations()
                .get(request)
                .blocking(index, left)
                .await?;
            let evaluation = answer.evaluation.unwrap_or_default();
            match evaluation_progress(&evaluation.status) {
                Progress::Ended => return Ok(evaluation),
                Progress::Failed => return Err(WaitError::EvaluationFailed(Box::new(evaluation))),
                Progress::Running => index = answer.meta.unwrap_or_default().index,
            }
        }
    }

    /// Waits until a deployment is successful.
    ///
    /// # Errors
    /// It failed or was cancelled, or has not ended after `timeout`.
    pub async fn wait_for_deployment(
        &self,
        deployment_id: &str,
        timeout: Duration,
    ) -> Result<v1::Deployment, WaitError> {
        let deadline = Instant::now() + timeout;
        let mut index = 0;
        loop {
            let left = left(deadline, &format!("deployment {deployment_id}"))?;
            let request = v1::GetDeploymentRequest {
                options: everywhere(),
                deployment_id: deployment_id.to_owned(),
            };
            let answer = self
                .deployments()
                .get(request)
                .blocking(index, left)
                .await?;
            let deployment = answer.deployment.unwrap_or_default();
            match deployment_progress(&deployment.status) {
                Progress::Ended => return Ok(deployment),
                Progress::Failed => return Err(WaitError::DeploymentFailed(Box::new(deployment))),
                Progress::Running => index = answer.meta.unwrap_or_default().index,
            }
        }
    }

    /// Stops a job of the client's namespace; with `purge`, deletes it as well.
    ///
    /// # Errors
    /// The call failed.
    pub async fn stop_job(
        &self,
        job_id: &str,
        purge: bool,
    ) -> Result<v1::DeregisterJobResponse, Error> {
        let request = v1::DeregisterJobRequest {
            namespace: self.config().namespace.clone(),
            job_id: job_id.to_owned(),
            purge,
            ..Default::default()
        };
        self.jobs().deregister(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_final_states_end_a_wait() {
        for (status, expected) in [
            ("pending", Progress::Running),
            ("blocked", Progress::Running),
            ("complete", Progress::Ended),
            ("canceled", Progress::Ended),
            ("failed", Progress::Failed),
            ("of a later version", Progress::Running),
        ] {
            assert_eq!(evaluation_progress(status), expected, "{status}");
        }
        for (status, expected) in [
            ("running", Progress::Running),
            ("paused", Progress::Running),
            ("successful", Progress::Ended),
            ("failed", Progress::Failed),
            ("cancelled", Progress::Failed),
        ] {
            assert_eq!(deployment_progress(status), expected, "{status}");
        }
    }
}
