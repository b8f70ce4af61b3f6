//! The revision of the last committed plan of each job.

use model::JobKey;
use rustc_hash::FxHashMap;

/// Jobs with an entry of their own: some tens of megabytes.
const JOBS_MAX: usize = 200_000;

/// **Invariant**: the returned revision of a job is never before its last commit. It may be later;
/// then one plan is refused without need, and its worker plans again.
#[derive(Debug)]
pub(crate) struct History {
    /// The revision of every job without an entry.
    floor: u64,
    commits: FxHashMap<JobKey, u64>,
    newest: u64,
}

impl History {
    /// Plans made before `election_revision` may have missed commits of the last leader.
    pub(crate) fn new(election_revision: u64) -> Self {
        Self {
            floor: election_revision,
            commits: FxHashMap::default(),
            newest: election_revision,
        }
    }

    pub(crate) fn last_commit(&self, job: &JobKey) -> u64 {
        self.commits
            .get(job)
            .copied()
            .unwrap_or(self.floor)
            .max(self.floor)
    }

    /// Returns the revision of the last commit of any plan.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    pub(crate) fn committed(&mut self, job: &JobKey, revision: u64) {
        self.newest = self.newest.max(revision);
        if self.commits.len() >= JOBS_MAX && !self.commits.contains_key(job) {
            self.drop_older_half();
        }
        self.commits.insert(job.clone(), revision);
    }

    fn drop_older_half(&mut self) {
        let mut revisions: Vec<_> = self.commits.values().copied().collect();
        let middle = revisions.len() / 2;
        let (_, median, _) = revisions.select_nth_unstable(middle);
        self.floor = self.floor.max(*median);
        let floor = self.floor;
        self.commits.retain(|_, revision| *revision > floor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_entry_never_returns_an_earlier_revision() {
        let job = |number: usize| JobKey::new("default", number.to_string().as_str());
        let mut history = History::new(1);
        for number in 0..=JOBS_MAX {
            history.committed(&job(number), 2 + number as u64);
        }
        assert!(history.commits.len() < JOBS_MAX, "some are dropped");
        for number in (0..=JOBS_MAX).step_by(997) {
            assert!(history.last_commit(&job(number)) >= 2 + number as u64);
        }
    }
}
