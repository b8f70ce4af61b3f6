//! Garbage of one job: its evaluations, allocations, versions, and in the end the job itself.

use std::time::Duration;

use model::job::JobType;
use model::{ClientStatus, Evaluation, Indexed, Job, JobKey, JobTally, Timestamp};
use placement::reschedule::has_place;
use rustc_hash::FxHashSet;
use state::{AllocView, JobStatus, Key, Snapshot, Write};

use super::batch::{Batch, Counts, Packer};
use super::thresholds::Thresholds;

pub(super) fn is_dead(snapshot: &Snapshot, key: &JobKey) -> bool {
    snapshot.job_status(key) == Some(JobStatus::Dead)
}

/// A job that was dead has an open evaluation or a live allocation again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InUse;

/// Checks a job on a fresh snapshot right before its deletion, and returns the compare that keeps
/// the answer true.
///
/// A registration without changes creates an evaluation and leaves the job as it is, so comparing
/// the job alone misses it. This check sees the evaluations until now. Later ones rewrite the job's
/// version, which the returned write compares; `None`: the version is gone.
///
/// # Errors
/// [`InUse`]: the job must stay.
pub fn check_before_deletion(fresh: &Snapshot, key: &JobKey) -> Result<Option<Write>, InUse> {
    let mut evals = fresh.evals_by_job(key);
    let mut allocs = fresh.allocs_by_job(key);
    if evals.any(|eval| !eval.value.status.is_terminal()) || allocs.any(|view| !view.is_terminal())
    {
        return Err(InUse);
    }
    let version = fresh.job(key).and_then(|job| {
        let row = fresh.job_version(key, job.value.version)?;
        Some(Write::version_unchanged(row))
    });
    Ok(version)
}

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
    if job.is_some() && owner.may_be_deleted() {
        owner.remove_all(out);
    } else {
        owner.remove_ended(out);
    }
}

/// One job, or the remains of a purged one.
struct Owner<'a> {
    snapshot: &'a Snapshot,
    key: &'a JobKey,
    job: Option<&'a Indexed<Job>>,
    is_dead: bool,
    now: Timestamp,
    thresholds: &'a Thresholds,
}

impl<'a> Owner<'a> {
    /// Requires that the job is unchanged, or still absent.
    fn guard(&self) -> Write {
        let modify_index = self.job.map_or(0, |job| job.modify_index);
        Write::require(Key::Job(self.key.clone()), modify_index)
    }

    /// Tells whether the job itself may be deleted, with all that belongs to it.
    fn may_be_deleted(&self) -> bool {
        let Some(job) = self.job else {
            return false;
        };
        let is_over = self.is_dead && (job.value.stop || job.value.job_type.runs_to_end());
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

    /// Deletes the job, and then all that belonged to it.
    ///
    /// The job is deleted first: the rest is orphaned then, whatever becomes of the transactions
    /// after this one.
    fn remove_all(&self, out: &mut Vec<Batch>) {
        let Some(job) = self.job else { return };
        let mut packer = Packer::new(Some(self.guard()), None, out);
        let deleted = (Key::Job(self.key.clone()), job.modify_index);
        let record = self.snapshot.periodic_launch(self.key);
        let record = record.map(|row| (Key::PeriodicLaunch(self.key.clone()), row.modify_index));
        let token = self.token();
        packer.add(
            [deleted].into_iter().chain(record).chain(token),
            Counts {
                jobs: 1,
                ..Counts::default()
            },
        );
        packer.close();
        if let Some(batch) = out.last_mut() {
            batch.tally = self.one_child_less();
        }
        let key = Key::Job(self.key.clone());
        let mut packer = Packer::new(Some(Write::RequireAbsent { key }), None, out);
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
        packer.add(self.tags(), Counts::default());
        self.remove_scaling_events(&mut packer);
        packer.close();
    }

    fn remove_scaling_events(&self, packer: &mut Packer<'_>) {
        for (group, row) in self.snapshot.scaling_events_by_job(self.key) {
            let key = Key::ScalingEvents(self.key.clone(), group.to_owned());
            packer.add([(key, row.modify_index)], Counts::default());
        }
    }

    fn parent(&self) -> Option<JobKey> {
        let job = &self.job?.value;
        let parent = JobKey::new(job.namespace.as_str(), job.parent_id.as_str());
        (!job.parent_id.is_empty()).then_some(parent)
    }

    /// Returns the dispatch token of this child. Once both are gone, the token dispatches anew.
    fn token(&self) -> Option<(Key, u64)> {
        let (job, parent) = (&self.job?.value, self.parent()?);
        let row = self.snapshot.dispatch_token(&parent, &job.dispatch_token)?;
        let key = Key::DispatchToken(parent, job.dispatch_token.clone());
        (row.value.child_id == job.id).then_some((key, row.modify_index))
    }

    /// Returns the addition to the parent's tally for this child.
    fn one_child_less(&self) -> Option<(JobKey, JobTally)> {
        let parent = self.parent()?;
        let tally = JobTally {
            job_create_index: self.snapshot.job(&parent)?.create_index,
            children: 1,
            ..JobTally::default()
        };
        Some((parent, tally))
    }

    /// Deletes ended objects; the job, if there is one, stays.
    fn remove_ended(&self, out: &mut Vec<Batch>) {
        let tallied = self.job.map(|job| (self.key.clone(), job.create_index));
        let mut packer = Packer::new(Some(self.guard()), tallied, out);
        let newest = self.evals().max_by_key(|eval| eval.modify_index);
        let kept = newest
            .filter(|_| self.job.is_some())
            .map(|eval| eval.value.id);
        let mut gone = FxHashSet::default();
        for view in self.allocs() {
            if self.may_delete(view) {
                packer.add_alloc(view);
                gone.insert(view.alloc.id);
            }
        }
        for eval in self.evals() {
            let id = eval.value.id;
            let mut placed = self.snapshot.allocs_by_eval(id);
            let is_free = placed.all(|view| gone.contains(&view.alloc.id));
            if Some(id) != kept && is_free && self.may_delete_eval(eval) {
                packer.add([(Key::Eval(id), eval.modify_index)], EVAL);
            }
        }
        if self.job.is_none() {
            self.remove_orphans(&mut packer, &gone);
        }
        packer.close();
    }

    /// Deletes the remains of a purged job other than evaluations and allocations.
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
        packer.add(self.tags(), Counts::default());
        if let Some(record) = self.snapshot.periodic_launch(self.key) {
            let key = Key::PeriodicLaunch(self.key.clone());
            packer.add([(key, record.modify_index)], Counts::default());
        }
        self.remove_scaling_events(packer);
        // Stable markers without a version.
        let markers = self.snapshot.all_stable_versions();
        for (key, version, modify_index) in markers.filter(|(key, ..)| *key == self.key) {
            if self.snapshot.job_version(key, version).is_none() {
                let key = Key::JobStable(key.clone(), version);
                packer.add([(key, modify_index)], Counts::default());
            }
        }
    }

    /// Returns the deletion of the job's version tags.
    fn tags(&self) -> Option<(Key, u64)> {
        let tags = self.snapshot.job_tags(self.key)?;
        Some((Key::JobTags(self.key.clone()), tags.modify_index))
    }

    /// Returns the deletions of a version and of its stable marker.
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

    /// Tells whether an allocation may be deleted while its job stays.
    fn may_delete(&self, view: &AllocView) -> bool {
        let limit = self.limit(self.type_of(view));
        let is_former = self.is_former(view.alloc.job_create_index);
        self.is_removable(view, limit)
            && !self.is_depended_on(view)
            && (self.may_delete_results() || is_former)
    }

    fn may_delete_eval(&self, eval: &Indexed<Evaluation>) -> bool {
        let is_former = self
            .job
            .is_some_and(|job| eval.create_index < job.create_index);
        self.has_ended(&eval.value, self.limit(eval.value.job_type))
            && (self.may_delete_results() || is_former)
    }

    /// Without its results a batch job would run again.
    fn may_delete_results(&self) -> bool {
        match self.job {
            Some(job) if job.value.job_type.runs_to_end() => {
                self.is_dead && (job.value.stop || self.thresholds.is_forced)
            }
            Some(_) | None => true,
        }
    }

    /// Tells whether an allocation is of an earlier job of the same id, which was purged.
    fn is_former(&self, job_create_index: u64) -> bool {
        self.job
            .is_some_and(|job| job_create_index != job.create_index)
    }

    fn type_of(&self, view: &AllocView) -> JobType {
        let version = self.snapshot.job_version(self.key, view.alloc.job_version);
        let job = version.map(AsRef::as_ref).or(self.job);
        job.map_or(JobType::Service, |job| job.value.job_type)
    }

    fn limit(&self, job_type: JobType) -> Duration {
        if job_type.runs_to_end() {
            self.thresholds.batch_eval
        } else {
            self.thresholds.eval
        }
    }

    fn has_ended(&self, eval: &Evaluation, limit: Duration) -> bool {
        eval.status.is_terminal() && self.is_old(eval.modify_time, limit)
    }

    /// Tells whether an allocation ended long ago, on its node too.
    fn is_removable(&self, view: &AllocView, limit: Duration) -> bool {
        let client = view.client.as_ref();
        let reported = client.map_or(Timestamp::NEVER, |client| client.modify_time);
        let changed = view
            .alloc
            .modify_time
            .max(view.alloc.create_time)
            .max(reported);
        view.is_terminal() && !self.snapshot.may_run(view) && self.is_old(changed, limit)
    }

    /// Tells whether a decision depends on an ended allocation: an active deployment, a delayed
    /// evaluation, a disconnected allocation that it replaces, or the scheduler, which would fill its
    /// place.
    fn is_depended_on(&self, view: &AllocView) -> bool {
        let alloc = &view.alloc;
        let is_wanted = self.job.is_some_and(|job| !job.value.stop);
        if !is_wanted || self.is_former(alloc.job_create_index) {
            return false;
        }
        let deployment = alloc
            .deployment_id
            .and_then(|id| self.snapshot.deployment(id));
        let is_deploying = deployment.is_some_and(|it| it.value.status.is_active());
        let followup = alloc.followup_eval_id.and_then(|id| self.snapshot.eval(id));
        let is_waiting = followup.is_some_and(|eval| !eval.value.status.is_terminal());
        let is_unreplaced = view.client_status() == ClientStatus::Failed && has_place(alloc);
        is_deploying || is_waiting || is_unreplaced || self.is_replacement(view)
    }

    /// Tells whether an allocation replaces, directly or not, one that has not ended: a disconnected
    /// one that may reconnect.
    fn is_replacement(&self, view: &AllocView) -> bool {
        // Chains are as long as the reschedule policy allows attempts. A longer one stays.
        const LINKS_MAX: usize = 1_000;
        let mut previous = view.alloc.previous_alloc;
        for _ in 0..LINKS_MAX {
            let Some(ancestor) = previous.and_then(|id| self.snapshot.alloc(id)) else {
                return false;
            };
            if !ancestor.is_terminal() {
                return true;
            }
            previous = ancestor.alloc.previous_alloc;
        }
        true
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
