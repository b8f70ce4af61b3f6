//! What belongs to one job: its evaluations, allocations, versions, and in the end itself.

use std::time::Duration;

use model::job::{JobType, ReschedulePolicy};
use model::{ClientStatus, Evaluation, Indexed, Job, JobKey, Timestamp};
use rustc_hash::FxHashSet;
use state::{AllocView, Key, Snapshot};

use super::batch::{Batch, Counts, Guard, Packer};
use super::{Thresholds, is_dead};

pub(super) fn sweep(
    snapshot: &Snapshot,
    key: &JobKey,
    now: Timestamp,
    thresholds: &Thresholds,
    out: &mut Vec<Batch>,
) {
    let job = snapshot.job(key).map(AsRef::as_ref);
    let owner = Owner {
        snapshot,
        key,
        job,
        is_dead: is_dead(snapshot, key),
        now,
        thresholds,
    };
    if job.is_some() && owner.may_go() {
        owner.remove_all(out);
    } else {
        owner.remove_ended(out);
    }
}

/// One job, or what a purged one has left.
struct Owner<'a> {
    snapshot: &'a Snapshot,
    key: &'a JobKey,
    job: Option<&'a Indexed<Job>>,
    is_dead: bool,
    now: Timestamp,
    thresholds: &'a Thresholds,
}

impl<'a> Owner<'a> {
    fn guard(&self) -> Guard {
        match self.job {
            Some(job) => Guard::Unchanged(self.key.clone(), job.modify_index),
            None => Guard::Absent(self.key.clone()),
        }
    }

    /// Tells whether the job itself may go, and so all that belongs to it.
    fn may_go(&self) -> bool {
        let Some(job) = self.job else {
            return false;
        };
        let is_over = self.is_dead && (job.value.stop || runs_to_end(job.value.job_type));
        let limit = self.thresholds.job;
        is_over
            && self.is_old(job.value.submit_time, limit)
            && self.evals().all(|eval| self.has_ended(&eval.value, limit))
            && self.allocs().all(|view| self.is_removable(view, limit))
            && self
                .snapshot
                .deployments_by_job(self.key)
                .all(|deployment| !deployment.value.status.is_active())
    }

    fn remove_all(&self, out: &mut Vec<Batch>) {
        let mut packer = Packer::new(Some(self.guard()), None, out);
        for view in self.allocs() {
            packer.add_alloc(view);
        }
        for eval in self.evals() {
            packer.add([(Key::Eval(eval.value.id), eval.modify_index)], EVAL);
        }
        for deployment in self.snapshot.deployments_by_job(self.key) {
            let counts = Counts {
                deployments: 1,
                ..Counts::default()
            };
            let key = Key::Deployment(deployment.value.id);
            packer.add([(key, deployment.modify_index)], counts);
        }
        for version in self.snapshot.job_versions(self.key) {
            packer.add(self.version(version), Counts::default());
        }
        let tally = self.snapshot.job_tally(self.key);
        let tally = tally.map(|tally| (Key::JobTally(self.key.clone()), tally.modify_index));
        packer.add(tally, Counts::default());
        // Last: until then, what is left is a dead job's, and the next sweep goes on with it.
        let job = self
            .job
            .map(|job| (Key::Job(self.key.clone()), job.modify_index));
        packer.add(
            job,
            Counts {
                jobs: 1,
                ..Counts::default()
            },
        );
        packer.close();
    }

    /// Removes what has ended; the job, if there is one, stays.
    fn remove_ended(&self, out: &mut Vec<Batch>) {
        let tallied = self.job.map(|job| (self.key.clone(), job.create_index));
        let mut packer = Packer::new(Some(self.guard()), tallied, out);
        let newest = self.evals().max_by_key(|eval| eval.modify_index);
        let kept = newest
            .filter(|_| self.job.is_some())
            .map(|eval| eval.value.id);
        let mut gone = FxHashSet::default();
        for view in self.allocs() {
            if self.may_forget(view) {
                packer.add_alloc(view);
                gone.insert(view.alloc.id);
            }
        }
        for eval in self.evals() {
            let id = eval.value.id;
            let mut placed = self.snapshot.allocs_by_eval(id);
            let is_free = placed.all(|view| gone.contains(&view.alloc.id));
            if Some(id) != kept && is_free && self.may_forget_eval(eval) {
                packer.add([(Key::Eval(id), eval.modify_index)], EVAL);
            }
        }
        if self.job.is_none() {
            self.remove_orphans(&mut packer, &gone);
        }
        packer.close();
    }

    /// Removes what a purged job has left beside evaluations and allocations.
    fn remove_orphans(&self, packer: &mut Packer<'_>, gone: &FxHashSet<model::AllocId>) {
        let stays = |view: &&AllocView| !gone.contains(&view.alloc.id);
        let needed: FxHashSet<u64> = self
            .allocs()
            .filter(stays)
            .map(|view| view.alloc.job_version)
            .collect();
        for version in self.snapshot.job_versions(self.key) {
            if !needed.contains(&version.value.version) {
                packer.add(self.version(version), Counts::default());
            }
        }
        if let Some(tally) = self.snapshot.job_tally(self.key) {
            let key = Key::JobTally(self.key.clone());
            packer.add([(key, tally.modify_index)], Counts::default());
        }
        // Markers whose version went before them.
        let markers = self.snapshot.all_stable_versions();
        for (key, version, modify_index) in markers.filter(|(key, ..)| *key == self.key) {
            if self.snapshot.job_version(key, version).is_none() {
                let key = Key::JobStable(key.clone(), version);
                packer.add([(key, modify_index)], Counts::default());
            }
        }
    }

    /// Returns the deletions of a version and of the mark that it is stable.
    fn version(&self, version: &Indexed<Job>) -> impl Iterator<Item = (Key, u64)> {
        let number = version.value.version;
        let marker = self.snapshot.stable_index(self.key, number);
        let row = (
            Key::JobVersion(self.key.clone(), number),
            version.modify_index,
        );
        let marker = marker.map(|index| (Key::JobStable(self.key.clone(), number), index));
        std::iter::once(row).chain(marker)
    }

    fn evals(&self) -> impl Iterator<Item = &'a Indexed<Evaluation>> {
        self.snapshot.evals_by_job(self.key).map(AsRef::as_ref)
    }

    fn allocs(&self) -> impl Iterator<Item = &'a AllocView> {
        self.snapshot.allocs_by_job(self.key)
    }

    /// Tells whether an allocation may go while its job stays.
    fn may_forget(&self, view: &AllocView) -> bool {
        let limit = self.limit(self.type_of(view));
        self.is_removable(view, limit)
            && (self.results_may_go() || self.is_of_the_past(view.create_index))
    }

    fn may_forget_eval(&self, eval: &Indexed<Evaluation>) -> bool {
        self.has_ended(&eval.value, self.limit(eval.value.job_type))
            && (self.results_may_go() || self.is_of_the_past(eval.create_index))
    }

    /// Batch work without its results would be done again.
    fn results_may_go(&self) -> bool {
        match self.job {
            Some(job) if runs_to_end(job.value.job_type) => {
                self.is_dead && (job.value.stop || self.thresholds.is_forced)
            }
            Some(_) | None => true,
        }
    }

    /// Tells whether the job has been registered anew since.
    fn is_of_the_past(&self, create_index: u64) -> bool {
        self.job.is_some_and(|job| create_index < job.modify_index)
    }

    fn type_of(&self, view: &AllocView) -> JobType {
        let version = self.snapshot.job_version(self.key, view.alloc.job_version);
        let job = version.map(AsRef::as_ref).or(self.job);
        job.map_or(JobType::Service, |job| job.value.job_type)
    }

    fn limit(&self, job_type: JobType) -> Duration {
        if runs_to_end(job_type) {
            self.thresholds.batch_eval
        } else {
            self.thresholds.eval
        }
    }

    fn has_ended(&self, eval: &Evaluation, limit: Duration) -> bool {
        eval.status.is_terminal() && self.is_old(eval.modify_time, limit)
    }

    /// Tells whether nothing can come of an allocation any more.
    fn is_removable(&self, view: &AllocView, limit: Duration) -> bool {
        let told = view.client.as_ref();
        let told = told.map_or(Timestamp::NEVER, |client| client.modify_time);
        let changed = view.alloc.modify_time.max(view.alloc.create_time).max(told);
        view.is_terminal()
            && view.client_status() != ClientStatus::Running
            && self.is_old(changed, limit)
            && !self.may_be_replaced(view)
    }

    /// Tells whether a scheduler may still want to replace an allocation that failed.
    fn may_be_replaced(&self, view: &AllocView) -> bool {
        let is_wanted = self.job.is_some_and(|job| !job.value.stop) && !self.is_dead;
        let has_failed = view.client_status() == ClientStatus::Failed;
        if !is_wanted
            || !has_failed
            || view.alloc.is_server_terminal()
            || view.alloc.next_alloc.is_some()
        {
            return false;
        }
        let Some(policy) = self.policy(view) else {
            return false;
        };
        if policy.unlimited {
            return true;
        }
        match view.alloc.reschedules.last() {
            Some(last) => self.now.since(last.time) < policy.interval,
            None => policy.attempts > 0,
        }
    }

    fn policy(&self, view: &AllocView) -> Option<&'a ReschedulePolicy> {
        let version = self.snapshot.job_version(self.key, view.alloc.job_version);
        let job = version.map(AsRef::as_ref).or(self.job)?;
        let group = job.value.task_group(&view.alloc.task_group)?;
        group.reschedule.as_ref()
    }

    fn is_old(&self, changed: Timestamp, limit: Duration) -> bool {
        changed.plus(limit) <= self.now
    }
}

const EVAL: Counts = Counts {
    evals: 1,
    allocs: 0,
    jobs: 0,
    deployments: 0,
    nodes: 0,
};

fn runs_to_end(job_type: JobType) -> bool {
    matches!(job_type, JobType::Batch | JobType::Sysbatch)
}
