//! Look-ups of jobs and versions, and the refusals of those that do not exist.

use std::sync::Arc;

use model::refusal::{Kind, Refusal};
use model::{Indexed, Job, JobKey};
use state::Snapshot;

/// The maximum number of similar ids that a refusal names.
const MAX_NAMED: usize = 5;

/// There is no such job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no job {job_id:?} in namespace {namespace:?}{hint}")]
pub struct NoSuchJob {
    namespace: String,
    job_id: String,
    /// Jobs whose ids begin alike.
    hint: String,
}

impl NoSuchJob {
    pub fn new(snapshot: &Snapshot, key: &JobKey) -> Self {
        let alike: Vec<&str> = snapshot
            .jobs()
            .map(|job| &job.value)
            .filter(|job| *job.namespace == *key.namespace && job.id.starts_with(&*key.job_id))
            .map(|job| job.id.as_str())
            .take(MAX_NAMED)
            .collect();
        let hint = if alike.is_empty() {
            String::new()
        } else {
            format!("; there is {}", alike.join(", "))
        };
        Self {
            namespace: key.namespace.to_string(),
            job_id: key.job_id.to_string(),
            hint,
        }
    }
}

impl Refusal for NoSuchJob {
    fn kind(&self) -> Kind {
        Kind::NotFound
    }
}

/// A version that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MissingVersion {
    #[error(transparent)]
    Job(#[from] NoSuchJob),
    #[error("job {job_id:?} has no version {version}: it keeps {kept}")]
    Version {
        job_id: String,
        version: u64,
        kept: String,
    },
}

impl Refusal for MissingVersion {
    fn kind(&self) -> Kind {
        Kind::NotFound
    }
}

/// Returns the job `key`.
///
/// # Errors
/// There is none; the refusal names jobs whose ids begin alike.
pub fn find_job<'a>(
    snapshot: &'a Snapshot,
    key: &JobKey,
) -> Result<&'a Arc<Indexed<Job>>, NoSuchJob> {
    let job = snapshot.job(key);
    job.ok_or_else(|| NoSuchJob::new(snapshot, key))
}

/// Returns a version of the job `key`, which may be purged.
///
/// # Errors
/// There is none; the refusal names the versions that are kept.
pub fn find_version<'a>(
    snapshot: &'a Snapshot,
    key: &JobKey,
    version: u64,
) -> Result<&'a Arc<Indexed<Job>>, MissingVersion> {
    let row = snapshot.job_version(key, version);
    row.ok_or_else(|| {
        let kept = snapshot.job_versions(key);
        let kept: Vec<String> = kept.map(|row| row.value.version.to_string()).collect();
        if kept.is_empty() {
            return NoSuchJob::new(snapshot, key).into();
        }
        MissingVersion::Version {
            job_id: key.job_id.to_string(),
            version,
            kept: kept.join(", "),
        }
    })
}

#[cfg(test)]
mod tests {
    use test_kit::{Stored, builders};

    use super::*;

    #[test]
    fn a_missing_job_is_named_with_jobs_that_begin_alike() {
        let mut stored = Stored::default();
        for id in ["web-1", "web-2", "db"] {
            stored.put_job(&builders::service(id, 1));
        }
        let mut other = builders::service("web-3", 1);
        other.namespace = "dev".into();
        stored.put_job(&other);
        let snapshot = stored.snapshot();
        let missing = |id: &str| {
            let key = JobKey::new("default", id);
            find_job(&snapshot, &key).unwrap_err().to_string()
        };
        assert_eq!(
            missing("web"),
            "no job \"web\" in namespace \"default\"; there is web-1, web-2"
        );
        assert_eq!(missing("api"), "no job \"api\" in namespace \"default\"");
        let found = find_job(&snapshot, &JobKey::new("default", "db")).unwrap();
        assert_eq!(found.value.id, "db");
    }

    #[test]
    fn a_missing_version_is_named_with_those_that_are_kept() {
        let mut stored = Stored::default();
        let mut job = builders::service("web", 1);
        for version in [0, 1] {
            job.version = version;
            stored.put_job(&job);
        }
        let snapshot = stored.snapshot();
        let key = job.key();
        assert_eq!(find_version(&snapshot, &key, 1).unwrap().value.version, 1);
        let missing = find_version(&snapshot, &key, 7).unwrap_err().to_string();
        assert_eq!(missing, "job \"web\" has no version 7: it keeps 0, 1");
        let unknown = find_version(&snapshot, &JobKey::new("default", "api"), 0);
        assert!(
            matches!(unknown, Err(MissingVersion::Job(_))),
            "{unknown:?}"
        );
    }
}
