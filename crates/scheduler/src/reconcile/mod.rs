//! What a job has against what it wants: who is stopped, placed, updated. No nodes are looked for.
//!
//! In reading order: `classify` sorts allocations by what their node means for them, `reschedule`
//! says when a failed one is replaced, `slots` who has a slot of the group's, `stops` who is too
//! many, `spec_change` who can take a new version as it runs, `rollout` how fast a deployment may go
//! on, `canaries` who tries a version out, `names` which numbers names get, `reconnect` who stays when
//! a node comes back; `group` puts these together for one task group, in Nomad's order of steps, with
//! `waiting` for what has to be looked at again later.

mod canaries;
pub(crate) mod changes;
pub(crate) mod classify;
pub(crate) mod delayed;
mod group;
mod names;
mod reconnect;
pub(crate) mod reschedule;
pub(crate) mod rollout;
mod slots;
pub(crate) mod spec_change;
mod stops;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};

use model::job::JobType;
use model::{
    AllocId, ClientStatus, Deployment, DeploymentGroup, DeploymentStatus, Evaluation, Indexed, Job,
    JobKey, Timestamp,
};
use placement::Requirements;
use state::{AllocView, Snapshot};

use crate::draw::Draw;
use crate::in_place::InPlace;
use changes::{JobChanges, StopAsk};
use classify::{Home, home};
use group::GroupReconciler;
pub(crate) use group::stop_all;
use rollout::Triage;
use spec_change::{Comparison, SpecChange};

/// What reconciling one job looks at, and what its groups share.
pub(crate) struct Context<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) key: &'a JobKey,
    pub(crate) batch: bool,
    pub(crate) eval: &'a Evaluation,
    pub(crate) now: Timestamp,
    pub(crate) draw: Draw,
    pub(crate) triage: Triage,
    pub(crate) delayed_evals: Vec<Evaluation>,
}

impl<'a> Context<'a> {
    /// `job` is `None` when it is stopped or gone.
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        eval: &'a Evaluation,
        job: Option<&Indexed<Job>>,
        batch: bool,
        now: Timestamp,
        draw: Draw,
    ) -> Self {
        let key = &eval.job;
        let triage = Triage::new(snapshot, key, job);
        Self {
            snapshot,
            key,
            batch,
            eval,
            now,
            draw,
            triage,
            delayed_evals: Vec::new(),
        }
    }

    /// Compares everything the job has with what it wants; `job` is `None` when it is stopped or
    /// gone, and wants nothing.
    pub(crate) fn reconcile(
        mut self,
        job: Option<&'a Indexed<Job>>,
        in_place: &mut InPlace<'a>,
    ) -> (JobChanges<'a>, Draw) {
        let mut changes = JobChanges::default();
        let mut allocs = BTreeMap::<String, Vec<&'a AllocView>>::new();
        for group in job.iter().flat_map(|job| &job.value.task_groups) {
            allocs.insert(group.name.clone(), Vec::new());
        }
        for view in self.snapshot.allocs_by_job(self.key) {
            if self.is_lost_while_stopping(view) {
                changes.lost_while_stopping.push(StopAsk::lost(view));
            }
            match allocs.get_mut(&*view.alloc.task_group) {
                Some(group) => group.push(view),
                None => {
                    allocs.insert(view.alloc.task_group.to_string(), vec![view]);
                }
            }
        }
        for (name, allocs) in allocs {
            let wanted = job.and_then(|job| Some((job, job.value.task_group(&name)?)));
            let group = match wanted.filter(|(_, group)| group.count > 0) {
                Some((job, group)) => GroupReconciler {
                    context: &mut self,
                    job,
                    group,
                    in_place,
                }
                .run(allocs),
                None => group::stop_all(&self, name, allocs),
            };
            changes.generations.old.extend(group.old.iter().copied());
            let tried = group.tried.iter().copied();
            changes.generations.tried.extend(tried);
            changes.groups.push(group);
        }
        if let Some(job) = job {
            changes.generations.version = job.value.version;
            self.settle_deployment(job, &mut changes);
        }
        changes.deployment_updates = self.triage.updates;
        changes.delayed_evals = self.delayed_evals;
        (changes, self.draw)
    }

    /// Returns the live allocations of a job that is placed anywhere which go sooner or later,
    /// whatever else is decided: those that need new tasks, and canaries in vain.
    ///
    /// Empty when no group has to be distinct: then nobody asks.
    pub(crate) fn leaving(
        &self,
        job: Option<&'a Indexed<Job>>,
        requirements: &BTreeMap<String, Requirements>,
    ) -> BTreeSet<AllocId> {
        let is_anywhere = |job: &&Indexed<Job>| {
            let job_type = job.value.job_type;
            matches!(job_type, JobType::Service | JobType::Batch)
        };
        let Some(job) = job.filter(is_anywhere) else {
            return BTreeSet::new();
        };
        if !requirements.values().any(Requirements::is_distinct) {
            return BTreeSet::new();
        }
        let wanted = job.value.task_groups.iter().filter(|group| group.count > 0);
        let comparisons = wanted.map(|group| {
            let comparison = Comparison::new(self.snapshot, self.key, job, group);
            (group.name.as_str(), comparison)
        });
        let mut comparisons: BTreeMap<_, _> = comparisons.collect();
        let live = self.snapshot.allocs_by_job(self.key);
        let leaving = live.filter(|view| {
            let comparison = comparisons.get_mut(&*view.alloc.task_group);
            let stays = comparison.is_some_and(|one| one.of(view) != SpecChange::Destructive);
            !view.is_terminal() && (!stays || self.triage.is_stale_canary(view))
        });
        leaving.map(|view| view.alloc.id).collect()
    }

    /// Told to stop, on a node that will not say that it has.
    pub(crate) fn is_lost_while_stopping(&self, view: &AllocView) -> bool {
        view.alloc.is_server_terminal()
            && matches!(
                view.client_status(),
                ClientStatus::Pending | ClientStatus::Running | ClientStatus::Unknown
            )
            && matches!(home(self.snapshot, view), Home::Down | Home::Gone)
    }

    /// Makes, extends or completes the deployment of the job's version.
    fn settle_deployment(&mut self, job: &Indexed<Job>, changes: &mut JobChanges<'a>) {
        let current = self.triage.current.as_ref();
        changes.current_deployment = current.map(|current| current.value.clone());
        let entering: BTreeMap<String, DeploymentGroup> = changes
            .groups
            .iter_mut()
            .filter_map(|group| Some((group.name.clone(), group.deployment_group.take()?)))
            .collect();
        if entering.is_empty() {
            changes.deployment_id = self.triage.active_id();
            if changes.groups.iter().all(|group| group.is_complete) {
                self.triage.complete();
            }
            return;
        }
        let mut deployment = match &self.triage.current {
            Some(current) => current.value.clone(),
            None => self.new_deployment(job),
        };
        deployment.groups.extend(entering);
        if deployment.status == DeploymentStatus::Running {
            deployment
                .running_description()
                .clone_into(&mut deployment.status_description);
        }
        deployment.modify_time = self.now;
        changes.deployment_id = Some(deployment.id);
        changes.deployment = Some(deployment);
    }

    pub(crate) fn new_deployment(&mut self, job: &Indexed<Job>) -> Deployment {
        Deployment {
            id: self.draw.deployment_id(),
            job: self.key.clone(),
            job_version: job.value.version,
            job_modify_index: job.modify_index,
            job_create_index: job.create_index,
            status: DeploymentStatus::Running,
            status_description: String::new(),
            groups: BTreeMap::new(),
            eval_priority: self.eval.priority,
            create_time: self.now,
            modify_time: self.now,
        }
    }
}
