//! Policies and the name of a job that its groups inherit.

use std::time::Duration;

use model::job::JobType;

/// Policies that groups without their own take from their job.
pub(super) struct Inherited<'a> {
    pub(super) job_name: &'a str,
    pub(super) job_type: JobType,
    pub(super) update: Option<&'a job_fields::UpdateStrategy>,
    pub(super) reschedule: Option<&'a job_fields::ReschedulePolicy>,
    pub(super) migrate: Option<&'a job_fields::MigrateStrategy>,
}

impl Inherited<'_> {
    /// The window in which restarts are counted, when nothing else is asked for.
    pub(super) fn restart_interval(&self) -> Duration {
        match self.job_type {
            JobType::Service | JobType::System => Duration::from_secs(30 * 60),
            JobType::Batch | JobType::Sysbatch => Duration::from_secs(24 * 3_600),
        }
    }
}
