//! A job as it was submitted: its file with all defaults, in the cluster's region and a node pool.

use std::borrow::Cow;

use jobspec::{CanonicalJob, canonicalise};
use model::{FieldErrors, Job, JobKey, Timestamp};
use state::Snapshot;

use super::{namespace_rules, region};

/// A submitted job. Its node pool may depend on its namespace, and so on a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct SubmittedJob {
    job: Job,
    /// The file leaves the node pool to the job's namespace.
    names_no_pool: bool,
    /// Legal but probably unintended, a sentence each.
    pub warnings: Vec<String>,
}

impl SubmittedJob {
    /// Reads the job that `spec` asks for in the region `cluster`, submitted at `now`.
    ///
    /// # Errors
    /// All invalid fields; there is no job.
    pub fn read(
        spec: Option<&job_fields::Job>,
        cluster: &str,
        now: Timestamp,
    ) -> Result<Self, FieldErrors> {
        let Some(spec) = spec else {
            let mut errors = FieldErrors::default();
            errors.push("job", "missing: want the job to register");
            return Err(errors);
        };
        let CanonicalJob { mut job, warnings } = canonicalise(spec, now)?;
        region::put_in(&mut job, cluster)?;
        Ok(Self {
            job,
            names_no_pool: spec.node_pool.as_deref().is_none_or(str::is_empty),
            warnings,
        })
    }

    pub fn key(&self) -> JobKey {
        self.job.key()
    }

    /// Returns the job as it is registered: without a node pool of its own it is in the default pool of
    /// its namespace.
    pub fn in_pool(&self, snapshot: &Snapshot) -> Cow<'_, Job> {
        namespace_rules::with_node_pool(snapshot, &self.job, self.names_no_pool)
    }
}

#[cfg(test)]
mod tests {
    use model::Namespace;
    use model::namespace::NodePoolRules;
    use state::{Entity, Key};
    use test_kit::{Stored, builders};

    use super::*;

    const NOW: Timestamp = Timestamp(5);

    fn spec() -> job_fields::Job {
        job_fields::Job::from(&builders::service("web", 1))
    }

    #[test]
    fn a_job_is_in_the_cluster_s_region_and_in_its_namespace_s_pool() {
        let mut stored = Stored::default();
        let namespace = Namespace {
            node_pools: NodePoolRules {
                default: "batch".to_owned(),
                ..NodePoolRules::default()
            },
            ..Namespace::named("default")
        };
        let key = Key::Namespace("default".to_owned());
        stored.put(key, Entity::Namespace(Box::new(namespace)));
        let snapshot = stored.snapshot();
        for (pool, expected) in [(None, "batch"), (Some(""), "batch"), (Some("gpu"), "gpu")] {
            let spec = job_fields::Job {
                node_pool: pool.map(str::to_owned),
                region: None,
                ..spec()
            };
            let submitted = SubmittedJob::read(Some(&spec), "eu", NOW).unwrap();
            let job = submitted.in_pool(&snapshot);
            assert_eq!(
                (job.node_pool.as_str(), job.region.as_str()),
                (expected, "eu")
            );
            assert_eq!(job.submit_time, NOW);
        }
    }

    #[test]
    fn a_job_of_another_region_and_no_job_are_refused() {
        let elsewhere = job_fields::Job {
            region: Some("us".to_owned()),
            ..spec()
        };
        for (spec, field) in [(Some(&elsewhere), "region"), (None, "job")] {
            let errors = SubmittedJob::read(spec, "eu", NOW).unwrap_err();
            assert_eq!(errors.0[0].field, field);
        }
    }
}
