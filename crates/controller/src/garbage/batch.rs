//! Deletions packed into transactions.

use model::{ClientStatus, Ended, JobKey, JobTally};
use state::{AllocView, Key, Write};

/// Deletions in one transaction at most: with the fence, the guard and the tally they stay below the
/// store's limit of 1,000 operations.
pub(super) const DELETIONS_MAX: usize = 900;

/// One transaction of a sweep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The deletions, and the guard: the compare of the job that they belong to, which is unchanged
    /// or still absent. A batch that deletes the job itself needs none.
    pub writes: Vec<Write>,
    /// The job that is deleted. It has to be checked again on a fresh snapshot
    /// ([`super::job::check_before_deletion`]).
    pub deleted_job: Option<JobKey>,
    /// Counts to add to the stored tally in the same transaction ([`super::tally::add`]).
    pub tally: Option<(JobKey, JobTally)>,
    pub counts: Counts,
}

/// Deleted objects by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub evals: u64,
    pub allocs: u64,
    pub jobs: u64,
    pub deployments: u64,
    pub nodes: u64,
}

impl Counts {
    pub fn add(&mut self, more: Self) {
        self.evals += more.evals;
        self.allocs += more.allocs;
        self.jobs += more.jobs;
        self.deployments += more.deployments;
        self.nodes += more.nodes;
    }

    pub fn total(self) -> u64 {
        self.evals + self.allocs + self.jobs + self.deployments + self.nodes
    }
}

/// Packs related deletions into batches.
pub(super) struct Packer<'a> {
    /// The compare that every batch carries.
    guard: Option<Write>,
    /// The incarnation of a job whose ended allocations are counted; `None`: the job is gone.
    tallied: Option<(JobKey, u64)>,
    deletions: Vec<(Key, u64)>,
    batch: Batch,
    out: &'a mut Vec<Batch>,
}

impl<'a> Packer<'a> {
    pub(super) fn new(
        guard: Option<Write>,
        tallied: Option<(JobKey, u64)>,
        out: &'a mut Vec<Batch>,
    ) -> Self {
        Self {
            guard,
            tallied,
            deletions: Vec::new(),
            batch: Batch::default(),
            out,
        }
    }

    /// Adds a few deletions, keys with their modify indexes, that stay in one transaction.
    pub(super) fn add(&mut self, deletions: impl IntoIterator<Item = (Key, u64)>, counts: Counts) {
        let before = self.deletions.len();
        self.deletions.extend(deletions);
        if self.deletions.len() > DELETIONS_MAX {
            let late = self.deletions.split_off(before);
            self.close();
            self.deletions = late;
        }
        self.batch.counts.add(counts);
    }

    /// Adds both sides of an allocation.
    pub(super) fn add_alloc(&mut self, view: &AllocView) {
        let id = view.alloc.id;
        let client = (view.client_modify_index > 0)
            .then_some((Key::AllocClient(id), view.client_modify_index));
        let counts = Counts {
            allocs: 1,
            ..Counts::default()
        };
        let desired = [(Key::Alloc(id), view.alloc_modify_index)];
        self.add(desired.into_iter().chain(client), counts);
        self.count(view);
    }

    fn count(&mut self, view: &AllocView) {
        let Some((key, job_create_index)) = &self.tallied else {
            return;
        };
        if view.alloc.job_create_index != *job_create_index {
            return;
        }
        let one = match view.client_status() {
            ClientStatus::Complete => Ended {
                complete: 1,
                ..Ended::default()
            },
            ClientStatus::Failed => Ended {
                failed: 1,
                ..Ended::default()
            },
            ClientStatus::Lost => Ended {
                lost: 1,
                ..Ended::default()
            },
            ClientStatus::Pending | ClientStatus::Running | ClientStatus::Unknown => return,
        };
        let (_, tally) = self.batch.tally.get_or_insert_with(|| {
            let tally = JobTally {
                job_create_index: *job_create_index,
                ..JobTally::default()
            };
            (key.clone(), tally)
        });
        let mut more = JobTally::default();
        more.groups.insert(view.alloc.task_group.to_string(), one);
        tally.add(&more);
    }

    pub(super) fn close(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        let deletions = std::mem::take(&mut self.deletions);
        if deletions.is_empty() {
            return;
        }
        batch.deleted_job = deletions.iter().find_map(|(key, _)| match key {
            Key::Job(key) => Some(key.clone()),
            _ => None,
        });
        if batch.deleted_job.is_none() {
            // The deletion of the job compares it.
            batch.writes.extend(self.guard.clone());
        }
        let deletions = deletions.into_iter();
        let deletions = deletions.map(|(key, modify_index)| Write::Delete { key, modify_index });
        batch.writes.extend(deletions);
        self.out.push(batch);
    }
}
