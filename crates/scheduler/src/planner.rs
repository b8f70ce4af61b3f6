//! Turns what reconciling found into a plan: looks for nodes, and writes down who goes where.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::job::TaskGroup;
use model::plan::Stop;
use model::{
    AllocId, AllocMetric, AllocatedResources, Allocation, DeploymentId, DesiredStatus,
    DesiredTransition, Evaluation, Indexed, Job, JobKey, NodeId, Plan, Timestamp,
};
use placement::Requirements;
use state::{AllocView, Snapshot};

use crate::cluster::Cluster;
use crate::config::Algorithm;
use crate::draw::Draw;
use crate::rank::{Ask, Found, Preferences, Search, Wish};
use crate::reconcile::changes::{Cause, GroupChanges, JobChanges, PlaceAsk, StopAsk};
use crate::reconcile::reschedule::events_of_replacement;

/// A plan in the making.
pub(crate) struct Planner<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) eval: &'a Evaluation,
    pub(crate) requirements: &'a BTreeMap<String, Requirements>,
    pub(crate) algorithm: Algorithm,
    pub(crate) now: Timestamp,
    pub(crate) draw: Draw,
    pub(crate) plan: Plan,
    /// Task group → why some of it has no place.
    pub(crate) failed: BTreeMap<String, AllocMetric>,
    /// Task group → how many have no place.
    pub(crate) queued: BTreeMap<String, u32>,
    /// Made when the first group has something to place.
    pub(crate) cluster: Option<Cluster<'a>>,
    /// They hold nothing any more once the plan is carried out.
    pub(crate) stopped: BTreeSet<AllocId>,
    /// Placed so far, with their groups.
    pub(crate) placed: Vec<(NodeId, &'a str)>,
}

impl<'a> Planner<'a> {
    /// Stops, updates in place and annotates; then places, group by group.
    ///
    /// `job` is `None` when it is stopped or gone: then there is nothing to place.
    pub(crate) fn carry_out(&mut self, job: Option<&'a Indexed<Job>>, changes: JobChanges<'a>) {
        let deployment_id = changes.deployment_id;
        self.plan.deployment = changes.deployment;
        self.plan.deployment_updates = changes.deployment_updates;
        self.plan.followup_evals = changes.delayed_evals;
        for stop in &changes.lost_while_stopping {
            self.stop(stop);
        }
        for group in &changes.groups {
            group.stops.iter().for_each(|stop| self.stop(stop));
            if let Some(job) = job {
                self.update_in_place(job, deployment_id, group);
            }
        }
        let Some(job) = job else { return };
        for group in changes.groups {
            let Some(task_group) = group.group else {
                continue;
            };
            self.queued.insert(group.name.clone(), 0);
            if !group.places.is_empty() {
                self.place_group(job, task_group, deployment_id, &group.places);
            }
        }
    }

    fn stop(&mut self, stop: &StopAsk<'a>) {
        let alloc = &stop.view.alloc;
        if !stop.view.is_terminal()
            && self.stopped.insert(alloc.id)
            && let Some(cluster) = &mut self.cluster
        {
            cluster.release(alloc.node_id, &alloc.resources);
        }
        self.plan
            .stops
            .entry(alloc.node_id)
            .or_default()
            .push(Stop {
                alloc_id: alloc.id,
                description: stop.description.to_owned(),
                client_status: stop.client_status,
                followup_eval_id: None,
                preempted_by: None,
            });
    }

    /// Puts those that keep running on the current version, and notes who waits for what.
    fn update_in_place(
        &mut self,
        job: &Indexed<Job>,
        deployment_id: Option<DeploymentId>,
        group: &GroupChanges<'a>,
    ) {
        let follow_up = |id: &AllocId| group.follow_ups.get(id).map(|(_, eval_id)| *eval_id);
        let mut noted = Vec::new();
        for view in &group.in_place {
            let mut alloc = Allocation::clone(&view.alloc);
            alloc.eval_id = self.eval.id;
            alloc.job_version = job.value.version;
            alloc.deployment_id = deployment_id;
            if let Some(eval_id) = follow_up(&alloc.id) {
                alloc.followup_eval_id = Some(eval_id);
                noted.push(alloc.id);
            }
            self.update(alloc);
        }
        for (id, (view, eval_id)) in &group.follow_ups {
            if !noted.contains(id) {
                let mut alloc = Allocation::clone(&view.alloc);
                alloc.followup_eval_id = Some(*eval_id);
                self.update(alloc);
            }
        }
    }

    fn update(&mut self, mut alloc: Allocation) {
        alloc.modify_time = self.now;
        self.plan
            .placements
            .entry(alloc.node_id)
            .or_default()
            .push(alloc);
    }

    fn place_group(
        &mut self,
        job: &'a Indexed<Job>,
        group: &'a TaskGroup,
        deployment_id: Option<DeploymentId>,
        asks: &[PlaceAsk<'a>],
    ) {
        let Some(requirements) = self.requirements.get(&group.name) else {
            return;
        };
        let mut cluster = match self.cluster.take() {
            Some(cluster) => cluster,
            None => self.cluster(),
        };
        let live = self.live().into_iter();
        let ask = Ask {
            requirements,
            preferences: Preferences::new(&job.value, group),
            count: group.count,
            algorithm: self.algorithm,
            live: live
                .map(|(node, name)| (node, name == group.name))
                .collect(),
        };
        let mut search = Search::new(&mut cluster, ask);
        let mut template = Template::new(self, job, group, deployment_id, requirements);
        for ask in asks {
            self.place(&mut search, &mut template, ask);
        }
        self.cluster = Some(cluster);
    }

    /// Returns the nodes, without what the plan stops on them.
    fn cluster(&mut self) -> Cluster<'a> {
        let mut cluster = Cluster::new(self.snapshot, self.draw.seed());
        for id in &self.stopped {
            if let Some(view) = self.snapshot.alloc(*id) {
                cluster.release(view.alloc.node_id, &view.alloc.resources);
            }
        }
        cluster
    }

    /// Returns where the job's live allocations are, with their groups, as the plan leaves them.
    fn live(&self) -> Vec<(NodeId, &'a str)> {
        let stay = self.snapshot.allocs_by_job(&self.eval.job);
        let stay =
            stay.filter(|view| !view.is_terminal() && !self.stopped.contains(&view.alloc.id));
        let stay = stay.map(|view| (view.alloc.node_id, &*view.alloc.task_group));
        stay.chain(self.placed.iter().copied()).collect()
    }

    fn place(
        &mut self,
        search: &mut Search<'a, '_>,
        template: &mut Template<'a>,
        ask: &PlaceAsk<'a>,
    ) {
        let is_update = matches!(ask.cause, Cause::Update(_));
        // Another one of the same size will not find what this one did not; but an update brings
        // a place of its own.
        if !is_update && let Some(metric) = self.failed.get_mut(&template.group.name) {
            metric.coalesced_failures += 1;
            self.queue(template);
            return;
        }
        let replaced = ask
            .cause
            .previous()
            .filter(|_| ask.cause.stop_description().is_some());
        let held = replaced.filter(|view| !view.is_terminal());
        if let Some(view) = held {
            search.release(view);
        }
        let wish = template.wish(ask.cause);
        match search.find(&wish, &mut self.draw) {
            Some(found) => {
                let alloc = template.allocation(search, ask, found, self.now, &mut self.draw);
                self.placed.push((alloc.node_id, &template.group.name));
                if let (Some(view), Some(description)) = (replaced, ask.cause.stop_description()) {
                    self.stop_staged(view, description);
                }
                self.plan
                    .placements
                    .entry(alloc.node_id)
                    .or_default()
                    .push(alloc);
            }
            None => {
                if let Some(view) = held {
                    search.hold(view);
                }
                match self.failed.get_mut(&template.group.name) {
                    Some(metric) => metric.coalesced_failures += 1,
                    None => {
                        self.failed
                            .insert(template.group.name.clone(), search.explain());
                    }
                }
                self.queue(template);
            }
        }
    }

    fn queue(&mut self, template: &Template<'a>) {
        *self.queued.entry(template.group.name.clone()).or_insert(0) += 1;
    }

    /// Writes down a stop whose share the search has counted already.
    fn stop_staged(&mut self, view: &AllocView, description: &str) {
        self.stopped.insert(view.alloc.id);
        self.plan
            .stops
            .entry(view.alloc.node_id)
            .or_default()
            .push(Stop {
                alloc_id: view.alloc.id,
                description: description.to_owned(),
                client_status: None,
                followup_eval_id: None,
                preempted_by: None,
            });
    }
}

/// What the new allocations of a group have in common.
struct Template<'a> {
    job: &'a Indexed<Job>,
    group: &'a TaskGroup,
    alloc: Allocation,
}

impl<'a> Template<'a> {
    fn new(
        planner: &Planner<'a>,
        job: &'a Indexed<Job>,
        group: &'a TaskGroup,
        deployment_id: Option<DeploymentId>,
        requirements: &Requirements,
    ) -> Self {
        let JobKey { namespace, job_id } = planner.eval.job.clone();
        let alloc = Allocation {
            id: AllocId::default(),
            eval_id: planner.eval.id,
            node_id: NodeId::default(),
            namespace,
            job_id,
            job_version: job.value.version,
            job_create_index: job.create_index,
            task_group: Arc::from(group.name.as_str()),
            name_index: 0,
            resources: AllocatedResources {
                total: requirements.resources,
                ports: Vec::new(),
            },
            desired_status: DesiredStatus::Run,
            desired_description: String::new(),
            transition: DesiredTransition::default(),
            deployment_id,
            canary: false,
            client_status_override: None,
            previous_alloc: None,
            next_alloc: None,
            followup_eval_id: None,
            preempted_by: None,
            reschedules: Vec::new(),
            create_time: planner.now,
            modify_time: Timestamp::NEVER,
            metric: None,
        };
        Self { job, group, alloc }
    }

    /// Returns what an allocation placed for `cause` asks for beyond its group.
    fn wish(&self, cause: Cause<'a>) -> Wish {
        let Some(previous) = cause.previous() else {
            return Wish::default();
        };
        let disk = self.group.ephemeral_disk;
        let failed = previous.client_status() == model::ClientStatus::Failed;
        let mut penalised: Vec<_> = previous
            .alloc
            .reschedules
            .iter()
            .map(|event| event.previous_node)
            .collect();
        if failed {
            penalised.push(previous.alloc.node_id);
        }
        Wish {
            preferred: (disk.sticky || disk.migrate).then_some(previous.alloc.node_id),
            penalised,
        }
    }

    /// Makes the allocation for `ask` on the node that was found, which counts it from now on.
    fn allocation(
        &self,
        search: &mut Search<'a, '_>,
        ask: &PlaceAsk<'a>,
        found: Found,
        now: Timestamp,
        draw: &mut Draw,
    ) -> Allocation {
        let mut alloc = self.alloc.clone();
        alloc.id = draw.alloc_id();
        alloc.node_id = found.node_id;
        alloc.name_index = ask.name_index;
        alloc.resources.ports = found.ports;
        alloc.metric = Some(Box::new(found.metric));
        if let Some(previous) = ask.cause.previous() {
            alloc.previous_alloc = Some(previous.alloc.id);
            alloc.reschedules = self.reschedules(ask.cause, previous, now);
        }
        search.take(found.position, &alloc.resources);
        alloc
    }

    /// Returns the history that a replacement carries on: a failure adds to it, a lost or moved
    /// allocation of the same version hands it over.
    fn reschedules(
        &self,
        cause: Cause<'a>,
        previous: &AllocView,
        now: Timestamp,
    ) -> Vec<model::allocation::RescheduleEvent> {
        match cause {
            Cause::Reschedule(_) => {
                events_of_replacement(previous, self.group.reschedule.as_ref(), now)
            }
            Cause::Lost(_) | Cause::Migrate(_)
                if previous.alloc.job_version == self.job.value.version =>
            {
                previous.alloc.reschedules.clone()
            }
            Cause::Lost(_) | Cause::Migrate(_) | Cause::Update(_) | Cause::Missing => Vec::new(),
        }
    }
}
