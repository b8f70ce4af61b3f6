//! Deletions packed into transactions.

use model::{ClientStatus, Ended, JobKey, JobTally};
use state::{AllocView, Key};

/// How many deletions one transaction has at most: each compares and writes, and with the guards
/// and the tally it stays below the store's bound of 1,000 operations.
pub(super) const OPS_MAX: usize = 900;

/// One transaction's worth of garbage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// The job that it is about: it must be as it was looked at, or still not exist.
    pub guard: Option<Guard>,
    /// Keys with the revision of their last change.
    pub deletes: Vec<(Key, u64)>,
    /// To be added to what is stored, in the same transaction.
    pub tally: Option<(JobKey, JobTally)>,
    pub counts: Counts,
}

/// What must be true of a job for what belongs to it to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    Unchanged(JobKey, u64),
    Absent(JobKey),
}

/// How many objects of each kind.
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

/// Makes batches out of deletions that belong together.
pub(super) struct Packer<'a> {
    guard: Option<Guard>,
    /// The incarnation whose ended allocations are counted; `None`: nobody asks for them any more.
    tallied: Option<(JobKey, u64)>,
    batch: Batch,
    out: &'a mut Vec<Batch>,
}

impl<'a> Packer<'a> {
    pub(super) fn new(
        guard: Option<Guard>,
        tallied: Option<(JobKey, u64)>,
        out: &'a mut Vec<Batch>,
    ) -> Self {
        Self {
            batch: Batch {
                guard: guard.clone(),
                ..Batch::default()
            },
            guard,
            tallied,
            out,
        }
    }

    /// Adds deletions that are carried out together or not at all; they must be few.
    pub(super) fn add(&mut self, deletes: impl IntoIterator<Item = (Key, u64)>, counts: Counts) {
        let before = self.batch.deletes.len();
        self.batch.deletes.extend(deletes);
        if self.batch.deletes.len() > OPS_MAX {
            let late = self.batch.deletes.split_off(before);
            self.close();
            self.batch.deletes = late;
        }
        self.batch.counts.add(counts);
    }

    /// Adds an allocation, both sides of it.
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
        let next = Batch {
            guard: self.guard.clone(),
            ..Batch::default()
        };
        let full = std::mem::replace(&mut self.batch, next);
        if !full.deletes.is_empty() {
            self.out.push(full);
        }
    }
}
