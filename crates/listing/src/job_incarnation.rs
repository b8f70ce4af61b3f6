//! The incarnation of a job: its life from a registration to its purge. A job that is registered again after a
//! purge has the same id and is another incarnation.

use model::JobKey;
use state::Snapshot;

/// The incarnation of a job, or all of them, whose allocations or deployments a list shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobIncarnation {
    /// The creation of the current job; `None`: all of them.
    current: Option<u64>,
}

impl JobIncarnation {
    /// Returns the incarnation of the current job, or `all` of them. Without a current job, after its purge,
    /// the objects of former ones are listed.
    pub fn of(snapshot: &Snapshot, key: &JobKey, all: bool) -> Self {
        let job = snapshot.job(key).filter(|_| !all);
        Self {
            current: job.map(|job| job.create_index),
        }
    }

    /// Tells whether an object of the job that was created at this index is listed.
    pub fn contains(self, job_create_index: u64) -> bool {
        self.current
            .is_none_or(|current| job_create_index == current)
    }
}

#[cfg(test)]
mod tests {
    use state::Key;
    use test_kit::{Stored, builders};

    use super::*;

    #[test]
    fn objects_of_a_former_job_are_listed_on_request_and_after_a_purge() {
        let mut stored = Stored::default();
        let job = builders::service("web", 1);
        let former = stored.put_job(&job);
        stored.delete(Key::Job(job.key()));
        let purged = JobIncarnation::of(&stored.snapshot(), &job.key(), false);
        assert!(purged.contains(former));
        let current = stored.put_job(&job);
        let listed = |all| {
            let incarnation = JobIncarnation::of(&stored.snapshot(), &job.key(), all);
            [former, current].map(|index| incarnation.contains(index))
        };
        assert_eq!(listed(false), [false, true]);
        assert_eq!(listed(true), [true, true]);
    }
}
